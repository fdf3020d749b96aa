/**
 * Streams and futures that the service writes.
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
  ERROR,
  GuestLost,
  OK,
  ServiceError,
  WOULD_PARK,
} from './errors.js';
import { clientOf, Handle, KEY, open, STREAM } from './handle.js';
import { lastError, native } from './native.js';
import { NUMBERS } from './writer.js';

/** Records of a batch, by default. The same as in the Python package. */
const BATCH = 256;
const FAIR = 256;

/** Modes of `native.read`. */
const COPY_SLOTS = 0;
const COPY_ALL = 1;
const IN_PLACE = 2;

/** A flag of a batch: see thalweg.h. */
const CONTROL = 2;

const GAPS = [undefined, 'conflated', 'dropped-newest', 'dropped-oldest', 'batch-open', 'service'];

/** Waits for a notification: TW_COMPLETION_STREAM_READY. */
export class Waiter {
  slot = 0;
  generation = 0;
  #wake;
  #port;

  constructor(port) {
    this.#port = port;
    port.enter(this);
  }

  /** The promise of the notification. */
  wait() {
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#port.wait(1);
    });
  }

  /** Ends the wait, or gives the entry up. */
  end() {
    this.#port.leave(this);
    if (this.#wake !== undefined) {
      this.#port.wait(-1);
      this.#wake();
      this.#wake = undefined;
    }
  }

  complete() {
    this.end();
  }
}

/** A stream. It is an async iterator over its records. */
export class Stream extends Handle {
  #port;
  #method;
  #element;
  #objects = [];
  #next = 0;
  #taken = 0;
  #isReading = false;
  #waiter;
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
    super(key, port, STREAM, number, client);
    this.#port = port;
    this.#method = method;
    this.#element = element;
  }

  /** Records lost so far under the stream's overflow policy. */
  get lost() {
    return this.#lost;
  }

  /** Why the last of them were lost; `undefined` if none was lost. */
  get gapReason() {
    return this.#gapReason;
  }

  /** Whether the last object was a record of the control lane. */
  get control() {
    return this.#control;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** The next record. */
  next() {
    if (this.#next < this.#objects.length) {
      return Promise.resolve({ done: false, value: this.#take() });
    }
    return this.#refill();
  }

  /** Closes the stream: `for await` calls it when the loop is left early. */
  async return(value) {
    this.close();
    return { done: true, value };
  }

  /**
   * The batches of the stream, of at most `max` records each. A batch is released by the next one.
   * Leaving the loop closes the stream.
   */
  async *batches({ max = BATCH } = {}) {
    if (!Number.isInteger(max) || max < 1 || max > 0xffff_ffff) {
      throw new BadArgument(`${this.#method.name}: max: expected an integer from 1 to 4294967295`);
    }
    try {
      for (;;) {
        const batch = await this.#read(IN_PLACE, max);
        if (batch === undefined) {
          return;
        }
        yield batch;
      }
    } finally {
      this.close();
    }
  }

  /** Another reader. It starts with the next record that is written. */
  tee() {
    const { number } = open(this, this.#method.name, 'the stream');
    const reader = native.tee(this.#port.index, number);
    if (reader === 0n) {
      throw lastError();
    }
    return new Stream(KEY, this.#port, reader, clientOf(this), this.#method, this.#element);
  }

  /** Closes the stream: its writers are notified and stop. A second call has no effect. */
  close() {
    this.#batch?.release();
    super.close();
    this.#objects = [];
    this.#next = 0;
    this.#waiter?.end();
  }

  #take() {
    const value = this.#objects[this.#next];
    this.#objects[this.#next] = undefined;
    this.#next += 1;
    return value;
  }

  /** Creates the objects of the next batch. Returns the first of them. */
  async #refill() {
    const batch = await this.#read(this.#element.tails ? COPY_ALL : COPY_SLOTS, BATCH);
    return batch === undefined
      ? { done: true, value: undefined }
      : { done: false, value: this.#take() };
  }

  /** Waits for the next batch; `undefined` at the regular end. */
  async #read(mode, max) {
    if (this.#isReading) {
      throw new BadArgument(`${this.#method.name}: another reader waits for this stream`);
    }
    this.#isReading = true;
    try {
      this.#batch?.release();
      for (;;) {
        if (this.closed) {
          return undefined;
        }
        if (this.#taken >= FAIR) {
          this.#taken = 0;
          await new Promise(setImmediate);
          continue;
        }
        const batch = this.#acquire(mode, max);
        if (batch !== WOULD_PARK) {
          return batch;
        }
        this.#taken = 0;
        await this.#waiter.wait();
        this.#waiter = undefined;
      }
    } finally {
      this.#isReading = false;
    }
  }

  /** Like `#read`, but does not wait: WOULD_PARK if `#waiter` was armed. */
  #acquire(mode, max) {
    const { index, records } = this.#port;
    const { number } = open(this, this.#method.name, 'the stream');
    const waiter = new Waiter(this.#port);
    const { slot, generation } = waiter;
    const read = native.read(index, number, max, slot, generation, mode, this.#element.size);
    if (read === WOULD_PARK) {
      this.#waiter = waiter;
      return WOULD_PARK;
    }
    waiter.end();
    const isOver = typeof read === 'number' && read !== OK;
    const error = isOver && read !== CLOSED ? this.#errorOf(read, number) : undefined;
    const lost = records.u64(8);
    if (lost > 0n) {
      this.#lost += lost;
      this.#gapReason = GAPS[records.u32(44)] ?? 'unknown';
    }
    if (isOver) {
      this.close();
      if (error !== undefined) {
        throw error;
      }
      return undefined;
    }
    const buffer = read === OK ? records.buffer : read;
    const batch = new Batch(this.#port, this, this.#method, this.#element, buffer);
    this.#taken += batch.length;
    if (mode === IN_PLACE) {
      this.#batch = batch;
    } else {
      this.#create(batch);
    }
    return batch;
  }

  /** Creates the objects of a batch that was copied: `records` is used again soon. */
  #create(batch) {
    try {
      this.#objects = batch.objects();
    } catch (error) {
      this.close();
      throw error;
    }
    this.#control = batch.control;
    this.#next = 0;
  }

  /** The error of a stream that ended with this code. */
  #errorOf(code, number) {
    const { error, layouts } = this.#method;
    if (code !== ERROR || error === undefined) {
      return lastError();
    }
    const message = native.streamError(this.#port.index, number);
    if (typeof message === 'number') {
      return lastError();
    }
    const reader = this.#port.reader(message);
    reader.method = this.#method;
    try {
      const root = reader.open(0, message.byteLength, layouts[2], error.size);
      return new (error.class ?? ServiceError)(error.get(reader, root));
    } catch (malformed) {
      return malformed;
    }
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
  #stream;
  #method;
  #element;
  #buffer;
  #base;
  #first;
  #stride;
  #limit;
  #retained;
  #isReleased = false;
  #columns;

  /** `port.records` describes the batch, whose records are in `buffer`. */
  constructor(port, stream, method, element, buffer) {
    const { records } = port;
    this.#port = port;
    this.#stream = stream;
    this.#method = method;
    this.#element = element;
    this.#buffer = buffer;
    this.#retained = records.u64(16);
    this.#stride = records.u32(28);
    this.#first = records.u32(32);
    this.#base = records.s32(36);
    this.#limit = records.u32(40);
    /** The number of records. */
    this.length = records.u32(24);
    /** The number of the first record in the stream, from 0. */
    this.firstSequence = records.u64(0);
    /** Records that are missing directly before the first one. */
    this.lostBefore = records.u64(8);
    /** Why they are missing; `undefined` if none is. */
    this.gapReason = GAPS[records.u32(44)];
    /** Whether the records are of the control lane. */
    this.control = (records.u32(48) & CONTROL) !== 0;
  }

  /** Whether it was released. */
  get released() {
    return this.#isReleased;
  }

  /** All records as objects, which outlive the batch. */
  objects() {
    const { size, get } = this.#element;
    const reader = this.#reader();
    const objects = new Array(this.length);
    for (let i = 0; i < this.length; i++) {
      objects[i] = reader.record(this.#first + i * this.#stride, size, get);
    }
    return objects;
  }

  /** The records as objects, each created when it is reached. */
  *[Symbol.iterator]() {
    const { size, get } = this.#element;
    const reader = this.#reader();
    for (let i = 0; i < this.length; i++) {
      this.#check();
      yield reader.record(this.#first + i * this.#stride, size, get);
    }
  }

  #reader() {
    this.#check();
    const { records } = this.#port;
    const reader = this.#buffer === records.buffer ? records : this.#port.reader(this.#buffer);
    reader.method = this.#method;
    reader.openRecords(this.#base, this.#limit);
    return reader;
  }

  /** The columns: one for each number in the record, by its name. A stream of numbers has `value`. */
  get columns() {
    this.#check();
    this.#columns ??= Object.fromEntries(
      Object.entries(this.#element.columns).map(([name, [offset, type]]) => [
        name,
        new Column(this.#buffer, this.#first + offset, this.#stride, this.length, type),
      ]),
    );
    return this.#columns;
  }

  /** Releases the batch. Its columns are empty afterwards. A second call has no effect. */
  release() {
    if (!this.#isReleased) {
      this.#isReleased = true;
      if (this.#retained !== 0n) {
        const { index } = this.#port;
        const { number } = open(this.#stream, 'batch', 'the stream');
        native.release(index, number, this.length, this.#buffer, this.#retained);
      }
    }
  }

  #check() {
    if (this.#isReleased) {
      throw new Closed('the batch was released');
    }
  }
}

/**
 * One number of all records, read in place. Record `i` is `values[offset + i * stride]`, where
 * `values` is a typed array over the whole memory of the batch.
 */
export class Column {
  constructor(buffer, position, stride, length, type) {
    const [size, TypedArray] = NUMBERS[type];
    this.values = new TypedArray(buffer, 0, Math.floor(buffer.byteLength / size));
    this.offset = position / size;
    this.stride = stride / size;
    this.length = length;
  }

  /** The number in record `index`; `undefined` after the batch was released. */
  at(index) {
    return index >= 0 && index < this.length
      ? this.values[this.offset + index * this.stride]
      : undefined;
  }

  /**
   * All numbers as a typed array without gaps. If there are none between them, it is a view of the
   * batch's memory; otherwise it is a copy, made in one pass.
   */
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
