// @ts-check
// Calls the service from Node: hello.js LIBRARY. All hosts print the same output.
//
// The package `thalweg` must be installed; `thalweg gen` writes ../../generated/node.
import { ThalwegError } from 'thalweg';

import { Hello, HelloErrorException } from '../../generated/node/hello.js';

/**
 * Calls every function of the service.
 * @param {string} library
 */
async function show(library) {
  const client = Hello.open(library);
  const [ada, grace] = [{ name: 'Ada', age: 36 }, { name: 'Grace' }];
  console.log(await client.greet(ada, 'friendly'));
  console.log(await client.greet(grace, 'formal'));
  try {
    await client.greet({ name: '' }, 'formal');
  } catch (error) {
    if (!(error instanceof HelloErrorException && error.payload.tag === 'no-name')) {
      throw error;
    }
    console.log('refused: no name');
  }
  const guests = await client.guests([ada, grace]);
  console.log(`${await guests.count()} guests`);
  for await (const { name, age } of await guests.arrive()) {
    console.log(`${name} arrives${age === undefined ? '' : `, ${age}`}`);
  }
  for (const greeting of await client.greetAll(guests)) {
    console.log(greeting);
  }
  console.log(`greeted ${await client.greeted()}`);
  guests.close();
  client.close();
}

const [library, ...others] = process.argv.slice(2);
if (library === undefined || others.length > 0) {
  console.error('usage: hello.js LIBRARY');
  process.exit(2);
}
try {
  await show(library);
} catch (error) {
  if (!(error instanceof ThalwegError)) {
    throw error;
  }
  console.error(`hello.js: ${error.message}`);
  process.exitCode = 1;
}
