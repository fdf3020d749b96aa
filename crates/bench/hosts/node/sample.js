// The line protocol of the lab (src/child.rs), and blocks of operations that are timed one by one.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

/** Loads a native addon. */
export const load = createRequire(import.meta.url);

/** Nanoseconds of the monotonic clock since `began`, a value of `performance.now()`. */
export function since(began) {
  return Math.round((performance.now() - began) * 1e6);
}

/** Answers the line that was asked. */
export function answer(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Lets the event loop wait. */
export function delay(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Stops this thread: no event runs. */
export function sleep(milliseconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

/**
 * Serves standard input: `commands[command](...numbers)` returns the answer. The event loop waits
 * for the next line. First moves this thread to its own processor if the lab asks for it; all
 * others were started before.
 */
export async function serve(byHand, commands) {
  const cpu = process.env.LAB_CALLER_CPU;
  if (cpu !== undefined) {
    byHand.moveCaller(Number(cpu));
  }
  answer({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, ...numbers] = line.split(' ');
    answer(await commands[command](...numbers.map(Number)));
  }
}

/** A command that times operations one by one: COUNT after UNCOUNTED ones, with pauses between. */
export function block(operation) {
  return async (count, uncounted, pauseUs) => {
    for (let i = 0; i < uncounted; i++) {
      await operation();
    }
    const latencies = [];
    for (let i = 0; i < count; i++) {
      if (pauseUs > 0) {
        await delay(pauseUs / 1000);
      }
      const began = performance.now();
      await operation();
      latencies.push(since(began));
    }
    return { latencies };
  };
}

/** A command that awaits 64 of these operations together. */
export function together(operation) {
  return block(() => Promise.all(Array.from({ length: 64 }, operation)));
}
