// Streams: the host's own time for a record that has arrived, and the whole way of one.
import { since, sleep } from './sample.js';
import * as touch from './touch.js';

/** Records of a batch. */
export const BATCH = 256;
/** The capacity of a stream in crates/bench/wit/lab.thalweg.toml. */
const CAPACITY = 8192;
/** Untimed milliseconds for a generator to fill a stream: several times the need. */
const FILL = 3;

/** How each way reads a batch, and returns the sum of its fields. */
export const TICKS = {
  one: (batch) => touch.ofTicks(batch),
  views: (batch) => touch.ofTicks(batch),
  objects: (batch) => touch.ofTicks(batch.objects()),
  columns: ({ columns: { number, bid, volume } }) =>
    touch.ofColumn(number) + touch.ofColumn(bid) + touch.ofColumn(volume),
};
export const EVENTS = {
  objects: (batch) => touch.ofEvents(batch.objects()),
  columns: ({ columns }) => touch.ofColumn(columns['quote.number']),
};
export const MATCHES = {
  views: (batch) => touch.ofMatches(batch),
  objects: (batch) => touch.ofMatches(batch.objects()),
};

/** Times acquiring, reading and releasing batches that are ready after each wait. */
export async function ready(stream, touchBatch) {
  const batches = stream.batches({ max: BATCH });
  let [ns, records, checksum, until] = [0, 0, 0, 0];
  for (;;) {
    if (records >= until) {
      sleep(FILL);
      until = records + CAPACITY;
    }
    const began = performance.now();
    const { done, value: batch } = await batches.next();
    if (done) {
      return { ns, records, checksum };
    }
    records += batch.length;
    checksum += Number(touchBatch(batch));
    batch.release();
    ns += since(began);
  }
}

/** Times all of a stream, from the call that opens it on. */
export async function whole(open, touchBatch) {
  const began = performance.now();
  const stream = await open();
  let [records, checksum] = [0, 0];
  for await (const batch of stream.batches({ max: BATCH })) {
    records += batch.length;
    checksum += Number(touchBatch(batch));
  }
  return { ns: since(began), records, checksum };
}

/** The same for ticks that the program takes one at a time. */
export async function oneByOne(open) {
  const began = performance.now();
  let [records, checksum] = [0, 0n];
  for await (const tick of await open()) {
    records += 1;
    checksum = BigInt.asUintN(64, checksum + touch.ofTick(tick));
  }
  return { ns: since(began), records, checksum: Number(checksum) };
}

/** The same for a function that `start` makes a thread call for each of `count` records. */
export async function called(start, count, { buffer, create }, touchOne) {
  const began = performance.now();
  let [records, checksum] = [0, 0];
  await new Promise((resolve) => {
    start(count, buffer, () => {
      checksum += Number(touchOne(create()));
      records += 1;
      if (records === count) {
        resolve();
      }
    });
  });
  return { ns: since(began), records, checksum };
}

/** Times a loop over objects in an array, which `create` creates once. */
export function array(create, touchAll) {
  let kept = [];
  return async (count) => {
    if (kept.length !== count) {
      kept = [];
      for await (const record of await create(BigInt(count))) {
        kept.push(record);
      }
    }
    const began = performance.now();
    const checksum = Number(touchAll(kept));
    return { ns: since(began), records: count, checksum };
  };
}

/** FNV-1a over every byte of every match, in order: see `Contents::digest` in the service. */
export async function verify(matches) {
  let [records, digest] = [0, 0xcbf29ce484222325n];
  const numbers = Buffer.alloc(17);
  for await (const { path, text, line, column, cut } of matches) {
    numbers.writeBigUInt64LE(line, 0);
    numbers.writeBigUInt64LE(column, 8);
    numbers[16] = Number(cut);
    for (const byte of Buffer.concat([Buffer.from(path), Buffer.from(text), numbers])) {
      digest = BigInt.asUintN(64, (digest ^ BigInt(byte)) * 0x100000001b3n);
    }
    records += 1;
  }
  return { records, digest: digest.toString(16).padStart(16, '0') };
}
