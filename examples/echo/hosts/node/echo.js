// @ts-check
// Calls the echo service from Node: echo.js LIBRARY. All hosts print the same output.
//
// The package `thalweg` must be installed; `thalweg gen` writes ../../generated/node.
import { ThalwegError, TimedOut } from 'thalweg';

import { Echo, TimerErrorException } from '../../generated/node/echo.js';

/** @import { Timer } from '../../generated/node/echo.js' */

const HOUR = 60 * 60 * 1000;

/**
 * Sends one message and prints the response.
 * @param {Timer} timer
 * @param {string} message
 * @param {number} delayMs
 */
async function say(timer, message, delayMs) {
  const response = await timer.echo({ message, delayMs });
  console.log(`${response.name} said ${response.message}`);
}

/**
 * A typed error, and a call whose deadline passes: the service is cancelled, too.
 * @param {Timer} timer
 */
async function showFailures(timer) {
  try {
    await say(timer, 'never', HOUR + 1);
  } catch (error) {
    if (!(error instanceof TimerErrorException && error.payload.tag === 'too-long')) {
      throw error;
    }
    console.log(`refused: ${error.payload.val} ms`);
  }
  try {
    await timer.echo({ message: 'in an hour', delayMs: HOUR }, { timeout: 20 });
  } catch (error) {
    if (!(error instanceof TimedOut)) {
      throw error;
    }
    console.log('timed out');
  }
}

/**
 * Calls every function of the service.
 * @param {string} library
 */
async function show(library) {
  const client = Echo.open(library);
  console.log(`version ${await client.version()}`);
  const timer = await client.timer('clock');
  // Both calls run concurrently.
  await Promise.all([say(timer, 'later', 50), say(timer, 'sooner', 0)]);

  const response = await timer.complex({
    messages: [
      { message: 'one', delayMs: 10 },
      { message: 'two', delayMs: 20 },
    ],
    tags: ['fast', 'async'],
    note: 'an extra',
    retries: 3n,
  });
  console.log(`${response.summary} (${response.itemCount})`);

  for await (const tick of await timer.schedule(5, 3)) {
    console.log(`tick ${tick.number}`);
  }
  await showFailures(timer);
  timer.close();
  client.close();
}

const [library, ...others] = process.argv.slice(2);
if (library === undefined || others.length > 0) {
  console.error('usage: echo.js LIBRARY');
  process.exit(2);
}
try {
  await show(library);
} catch (error) {
  if (!(error instanceof ThalwegError)) {
    throw error;
  }
  console.error(`echo.js: ${error.message}`);
  process.exitCode = 1;
}
