// A service in C, which is opened by its address.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { library, root } from './support.js';

const guests = process.env.THALWEG_TEST_GUESTS ?? join(library('x'), '../../guests');
const address = `thread:${join(guests, 'libguest_probe.so')}`;
process.env.THALWEG_LIBRARY = join(library('x'), '../libthalweg.so');
const { Probe } = await import(join(guests, 'node/probe.js'));

test('guest_serves_calls_with_the_state_of_its_client', async () => {
  const [probe, other] = [Probe.open(address), Probe.open(address)];
  assert.deepEqual([await probe.add(3n), await probe.add(4n), await other.add(1n)], [3n, 7n, 1n]);
  assert.equal(await probe.echo('h\u00e9llo'), 'h\u00e9llo');
  assert.equal(await probe.later(1, 42n), 42n);
  const cell = await probe.cell(5n);
  assert.equal(await cell.add(10n), 15n);
  cell.close();
  let sum = 0n;
  for await (const number of await probe.numbers(1000n)) {
    sum += number;
  }
  assert.equal(sum, 499500n);
  probe.close();
  other.close();
});

test('example_prints_the_same_with_a_guest', () => {
  const echo = join(root, 'examples/echo');
  for (const name of ['echo', 'echo_cpp']) {
    const guest = `thread:${join(guests, `libguest_${name}.so`)}`;
    const printed = execFileSync(process.execPath, [join(echo, 'hosts/node/echo.js'), guest]);
    assert.equal(String(printed), String(readFileSync(join(echo, 'expected.txt'))));
  }
});

test('wrong_answer_of_a_guest_is_an_error', async () => {
  const probe = Probe.open(address);
  await assert.rejects(probe.misbehave(1), { code: 'guest_lost', message: /probe\.misbehave/ });
  await assert.rejects(probe.misbehave(5), { code: 'guest_panicked', message: /it went wrong/ });
  assert.equal(await probe.add(1n), 1n);
  probe.close();
});

test('wrong_address_is_refused', () => {
  assert.throws(() => Probe.open('process:guest'), {
    code: 'argument',
    message: /only guests in the process/,
  });
  assert.throws(() => Probe.open('thread:/no/such/guest.so'), { code: 'argument' });
});
