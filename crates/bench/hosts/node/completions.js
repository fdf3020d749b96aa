// Calls in numbers: by windows, drained when all are there, the least that a drain can be, and a
// timer while calls and a stream flood the event loop.
import { delay, since, sleep } from './sample.js';

/** The largest number of calls in flight; a drain also waits for this many completions. */
const WINDOW = 1024;
/** Untimed milliseconds for the service to answer a window: several times the need. */
const FILL = 3;

/** `count` calls by windows. `fill` makes their answers lie ready, untimed; without it all is timed. */
async function windows(count, call, fill) {
  let [ns, records, checksum] = [0, 0, 0];
  while (records < count) {
    const window = Math.min(WINDOW, count - records);
    let began = performance.now();
    const promises = [];
    for (let i = 0; i < window; i++) {
      promises.push(call(records + i));
    }
    if (fill !== undefined) {
      await Promise.resolve(); // they are submitted
      fill(records, window);
      began = performance.now();
    }
    for (const promise of promises) {
      await promise;
      checksum += records;
      records += 1;
    }
    ns += since(began);
  }
  return { ns, records, checksum };
}

/** From the first submission to the last completion. */
export function complete(lab, count) {
  return windows(count, () => lab.nop());
}

/** Times only the awaiting of calls whose completions are ready. */
export function drain(lab, count) {
  return windows(
    count,
    () => lab.nop(),
    () => sleep(FILL),
  );
}

/** A baseline: a watched eventfd, finished work under a mutex, a promise for each. */
export function raw(byHand, count) {
  return windows(count, byHand.rawCall, byHand.rawFill);
}

/** How long after it was due each of `count` calls has ended, `perS` a second. The loop turns. */
export async function paced(lab, count, perS) {
  const began = performance.now();
  const latencies = new Array(count).fill(0);
  const promises = [];
  for (let i = 0; i < count; i++) {
    const due = began + (i * 1000) / perS;
    while (performance.now() < due) {
      await new Promise(setImmediate);
    }
    promises.push(
      lab.nop().then(() => {
        latencies[i] = since(due);
      }),
    );
  }
  await Promise.all(promises);
  return { latencies };
}

/** How late a 10 ms timer is, in milliseconds: the 99th percentile. */
async function lateness(milliseconds, each = () => {}) {
  const late = [];
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    const due = performance.now() + 10;
    await delay(10);
    late.push(Math.max(0, performance.now() - due));
    each();
  }
  late.sort((a, b) => a - b);
  return { p99: late[Math.floor(late.length * 0.99)], timers: late.length };
}

/** Callers that each await one call after the other, and the clients that they share. */
const CALLERS = 10_000;
const CLIENTS = 10;

/**
 * The lateness in the idle loop, then while CALLERS and a stream flood it. V8's heap grows at first:
 * `grown_mib` is by how much the largest resident memory of the second half exceeds the first's.
 */
export async function flood(open, milliseconds) {
  const labs = Array.from({ length: CLIENTS }, open);
  const idle = await lateness(milliseconds);
  let [isOver, calls, records] = [false, 0, 0];
  const call = async (_, i) => {
    while (!isOver) {
      await labs[i % CLIENTS].nop();
      calls += 1;
    }
  };
  const read = async () => {
    for await (const _ of await labs[0].ticks(1n << 62n, 256)) {
      records += 1;
      if (isOver) {
        return;
      }
    }
  };
  const running = [read(), ...Array.from({ length: CALLERS }, call)];
  const half = performance.now() + milliseconds / 2;
  const largest = [0, 0];
  const flooded = await lateness(milliseconds, () => {
    const now = performance.now() < half ? 0 : 1;
    largest[now] = Math.max(largest[now], process.memoryUsage.rss());
  });
  isOver = true;
  await Promise.all(running);
  labs.forEach((lab) => lab.close());
  return {
    idle_ms: idle.p99,
    flood_ms: flooded.p99,
    timers: flooded.timers,
    calls,
    records,
    grown_mib: Math.max(0, largest[1] - largest[0]) / 2 ** 20,
  };
}
