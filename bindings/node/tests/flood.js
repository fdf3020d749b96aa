// How late a 10 ms timer is while calls and a stream flood the event loop: node flood.js LIBRARY.
// A program of its own, because the hooks of the test runner make each promise expensive.
import { readFileSync } from 'node:fs';

import { Conformance } from '../../../conformance/generated/node/conformance.js';

/** Milliseconds that this thread was ready to run while other threads had the processors. */
function preempted() {
  const text = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8');
  return Number(text.split(' ')[1]) / 1e6;
}

/**
 * The lateness of the timer, in milliseconds: its 99th percentile. Other threads and programs cause
 * some of it, which is not counted.
 */
async function lateness(milliseconds) {
  const late = [];
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    const due = performance.now() + 10;
    const before = preempted();
    await new Promise((resolve) => setTimeout(resolve, 10));
    const by = performance.now() - due;
    late.push(Math.max(0, by - (preempted() - before)));
  }
  late.sort((a, b) => a - b);
  return late[Math.floor(late.length * 0.99)];
}

const clients = Array.from({ length: 10 }, () => Conformance.open(process.argv[2]));
const idle = await lateness(1000);
let isOver = false;
let calls = 0;
for (let i = 0; i < 10_000; i++) {
  const client = clients[i % clients.length];
  (async () => {
    while (!isOver) {
      await client.echoU32(calls);
      calls += 1;
    }
  })();
}
(async () => {
  for await (const _ of await clients[0].endless()) {
    if (isOver) {
      return;
    }
  }
})();
const late = await lateness(2000);
isOver = true;
console.log(JSON.stringify({ idle, late, calls }));
