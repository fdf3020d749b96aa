/**
 * Streams and futures that the service writes. index.d.ts describes their public members.
 *
 * 1. A stream has one reader at a time and one open batch. The next batch releases it.
 * 2. Objects are read from a copy of the records, which is used again: all objects of a batch are
 *    created at once. A batch of `batches` is read in place. Its memory is retained, and its buffer
 *    is detached when the batch is released.
 * 3. A reader that always finds records lets other events of the loop run after FAIR records.
 * 4. While a reader waits, its entry in the port refers to the stream. Otherwise nothing does, so a
 *    stream that is dropped is closed.
 */
import {
  BadArgument,
  CLOSED,
  Closed,
  GuestLost,
  OK,
  read,
  ServiceError,
  WOULD_PARK,
} from './errors.js';
import { Handle, KEY, open } from './handle.js';
import { check, lastError } from './native.js';
import { Waiter } from './port.js';
import { NUMBERS } from './writer.js';

/** Records of a batch, by default. The same as in the Python package. */
const BATCH = 256;
const FAIR = 256;

/** The argument of `native.read`: it returns the records, also the data they refer to, or the memory itself. */
const SLOTS = 0;
const TAILS = 1;
const IN_PLACE = 2;

/** TW_BATCH_* of thalweg.h, and the names of TW_GAP_*. */
const END = 1;
const CONTROL = 2;
const GAPS = ['conflated', 'dropped-newest', 'dropped-oldest', 'batch-open', 'service'];

/** Counters of a tw_stats, after which `lost` has 8; further counters, after which `age` has 32. */
const COUNTERS = ['streams', 'published', 'delivered', 'undelivered', 'occupancy'];
const MORE_COUNTERS = ['highWater', 'control', 'wakes', 'parks', 'waits', 'faults'];

function gapOf(number) {
  return number === 0 ? undefined : (GAPS[number - 1] ?? 'unknown');
}

/** A stream. It is an async iterator over its records. */
export class Stream extends Handle {
  #port;
  #method;
  #element;
  #waiter;
  #objects = [];
  #next = 0;
  #taken = 0;
  #isReading = false;
  #batch;
  #lost = 0n;
  #gapReason;
  #control = false;

  /** For generated code: reads a stream of `element`. */
  static read(reader, at, element) {
    return reader.handle(
      at,
      (port, number, client, method) => new Stream(KEY, port, number, client, method, element),
    );
  }

  constructor(key, port, number, client, method, element) {
    super(key, port, number, client);
    this.#port = port;
    this.#method = method;
    this.#element = element;
    this.#waiter = new Waiter(port);
  }

  get lost() {
    return this.#lost;
  }

  get gapReason() {
    return this.#gapReason;
  }

  get control() {
    return this.#control;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    return this.#next < this.#objects.length ? Promise.resolve(this.#take()) : this.#refill();
  }

  async #refill() {
    const batch = await this.#read(this.#element.tails ? TAILS : SLOTS, BATCH);
    return batch === undefined ? { done: true, value: undefined } : this.#take();
  }

  #take() {
    const value = this.#objects[this.#next];
    this.#objects[this.#next] = undefined;
    this.#next += 1;
    return { done: false, value };
  }

  async return(value) {
    this.close();
    return { done: true, value };
  }

  async *batches(options) {
    const max = read(`${this.#method.name}: options`, () => options?.max) ?? BATCH;
    if (!Number.isInteger(max) || max < 1 || max > 0xffff_ffff) {
      throw new BadArgument(`${this.#method.name}: max: expected an integer from 1 to 4294967295`);
    }
    try {
      for (let batch = await this.#read(IN_PLACE, max); batch !== undefined; ) {
        yield batch;
        batch = await this.#read(IN_PLACE, max);
      }
    } finally {
      this.close();
    }
  }

  tee() {
    const { number, client } = this.#open();
    check(this.#port.native.tee(number));
    const reader = this.#port.records.u64(0);
    return new Stream(KEY, this.#port, reader, client, this.#method, this.#element);
  }

  stats() {
    check(this.#port.native.stats(this.#open().number));
    const words = new BigUint64Array(this.#port.native.records.slice(0, 8 * 51));
    const named = (names, first) =>
      Object.fromEntries(names.map((name, i) => [name, words[first + i]]));
    return {
      ...named(COUNTERS, 0),
      lost: { ...named(GAPS, 6), unknown: words[11] + words[12] },
      ...named(MORE_COUNTERS, 13),
      age: [...words.subarray(19)],
    };
  }

  close() {
    this.#batch?.release();
    super.close();
    this.#objects = [];
    this.#next = 0;
    this.#waiter.complete();
  }

  #open() {
    return open(this, this.#method.name, 'the stream');
  }

  /** Waits for the next batch; `undefined` at the regular end. */
  async #read(mode, max) {
    if (this.#isReading) {
      throw new BadArgument(`${this.#method.name}: another reader waits for this stream`);
    }
    this.#isReading = true;
    try {
      this.#batch?.release();
      while (!this.closed) {
        if (this.#taken >= FAIR) {
          this.#taken = 0;
          await new Promise(setImmediate);
          continue;
        }
        const { number } = this.#open();
        const result = this.#waiter.arm((slot, generation) =>
          this.#port.native.read(number, max, slot, generation, mode, this.#element.size),
        );
        if (result !== WOULD_PARK) {
          return this.#receive(mode, number, result);
        }
        this.#taken = 0;
        await this.#waiter.wait();
      }
      return undefined;
    } finally {
      this.#isReading = false;
    }
  }

  /** What `native.read` has returned: the end, or a batch, whose objects are created if necessary. */
  #receive(mode, number, result) {
    const { records } = this.#port;
    const lost = records.u64(32);
    if (lost > 0n) {
      this.#lost += lost;
      this.#gapReason = gapOf(records.u32(40));
    }
    try {
      if (result === CLOSED) {
        this.close();
        return undefined;
      }
      if ((typeof result === 'number' && result !== OK) || (records.u32(44) & END) !== 0) {
        throw this.#errorOf(result);
      }
      const buffer = result === OK ? records.buffer : result;
      const batch = new Batch(this.#port, number, this.#method, this.#element, buffer);
      this.#taken += batch.length;
      if (mode === IN_PLACE) {
        this.#batch = batch;
      } else {
        this.#objects = batch.objects();
        this.#control = batch.control;
        this.#next = 0;
      }
      return batch;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The error of a stream that has ended with this code, or with the message in this buffer. */
  #errorOf(result) {
    const { error, layouts } = this.#method;
    if (typeof result === 'number' || error === undefined) {
      return lastError();
    }
    const reader = this.#port.reader(result);
    reader.method = this.#method;
    const root = reader.open(0, result.byteLength, layouts[2], error.size);
    return new (error.class ?? ServiceError)(error.get(reader, root));
  }
}

/** For generated code: reads a future of `element`, as a promise of its value. */
export function readFuture(reader, at, element) {
  const promise = valueOf(Stream.read(reader, at, element));
  // A program that does not await it does not want to end because of it.
  promise.catch(() => {});
  return promise;
}

async function valueOf(stream) {
  try {
    const { done, value } = await stream.next();
    if (done) {
      throw new GuestLost('the service dropped the future without a value');
    }
    return value;
  } finally {
    stream.close();
  }
}

/** A run of a stream's records. */
export class Batch {
  #port;
  #number;
  #method;
  #element;
  #buffer;
  #place;
  #isReleased = false;
  #columns;

  /** `port.records` has the tw_batch of stream `number`, whose records are in `buffer`. */
  constructor(port, number, method, element, buffer) {
    const { records } = port;
    this.#port = port;
    this.#number = number;
    this.#method = method;
    this.#element = element;
    this.#buffer = buffer;
    this.#place = {
      base: records.s32(0),
      first: records.u32(8),
      stride: records.u32(20),
      limit: records.u32(48),
      retained: records.u64(56),
    };
    this.length = records.u32(16);
    this.firstSequence = records.u64(24);
    this.lostBefore = records.u64(32);
    this.gapReason = gapOf(records.u32(40));
    this.control = (records.u32(44) & CONTROL) !== 0;
  }

  get released() {
    return this.#isReleased;
  }

  objects() {
    const at = this.#reader();
    const objects = [];
    for (let i = 0; i < this.length; i++) {
      objects.push(at(i));
    }
    return objects;
  }

  *[Symbol.iterator]() {
    const at = this.#reader();
    for (let i = 0; i < this.length; i++) {
      this.#check();
      yield at(i);
    }
  }

  /** A function that creates the object of record `i`. */
  #reader() {
    const { base, first, stride, limit } = this.#check();
    const { size, get } = this.#element;
    const { records } = this.#port;
    const reader = this.#buffer === records.buffer ? records : this.#port.reader(this.#buffer);
    reader.method = this.#method;
    reader.openRecords(base, limit);
    return (i) => reader.record(first + i * stride, size, get);
  }

  get columns() {
    const { first, stride } = this.#check();
    this.#columns ??= Object.fromEntries(
      Object.entries(this.#element.columns).map(([name, [offset, type]]) => [
        name,
        new Column(this.#buffer, first + offset, stride, this.length, type),
      ]),
    );
    return this.#columns;
  }

  release() {
    const { retained } = this.#place;
    if (!this.#isReleased && retained !== 0n) {
      this.#port.native.release(this.#number, this.length, this.#buffer, retained);
    }
    this.#isReleased = true;
  }

  #check() {
    if (this.#isReleased) {
      throw new Closed('the batch was released');
    }
    return this.#place;
  }
}

/** One number of all records, read in place. */
export class Column {
  constructor(buffer, position, stride, length, type) {
    const [size, TypedArray] = NUMBERS[type];
    this.values = new TypedArray(buffer, 0, Math.floor(buffer.byteLength / size));
    this.offset = position / size;
    this.stride = stride / size;
    this.length = length;
  }

  at(index) {
    return index >= 0 && index < this.length
      ? this.values[this.offset + index * this.stride]
      : undefined;
  }

  gather() {
    const { values, offset, stride, length } = this;
    if (stride === 1 || values.length === 0) {
      return values.subarray(offset, offset + length);
    }
    const gathered = new values.constructor(length);
    for (let i = 0; i < length; i++) {
      gathered[i] = values[offset + i * stride];
    }
    return gathered;
  }

  *[Symbol.iterator]() {
    for (let i = 0; i < this.length; i++) {
      yield this.at(i);
    }
  }
}
