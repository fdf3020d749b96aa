/**
 * The port of a library in this thread's event loop. Submits calls and delivers completions.
 *
 * 1. Calls are encoded into the outbox. They are submitted together by a microtask: all calls that
 *    are made before it runs cost one crossing and one wake-up of the service.
 * 2. Calls that pass handles to the service are submitted at once, because their outcome decides
 *    whether the handles still belong to the caller.
 * 3. Each awaited operation has an entry. Its slot and generation are the token that the core
 *    carries. A completion whose entry is gone is discarded, and its handles are closed.
 * 4. `waiting` counts the operations that a promise waits for. The process stays alive while there
 *    are any. A call whose promise was rejected early, by its signal, keeps its entry until its
 *    completion arrives.
 * 5. `native` calls `#deliver` with the completions of a turn of the event loop. They are in shared
 *    memory, which is used again in the next turn.
 */
import { errorOf } from './errors.js';
import { lastError, native } from './native.js';
import { Reader } from './reader.js';
import { Writer } from './writer.js';

/** As in src/addon.c. */
const MAX_CALLS = 128;
const CALL_SIZE = 48;
const HEADER = 64;
const ENTRY_SIZE = 48;

/** The size of the outbox; a larger message enlarges it. */
const OUTBOX_SIZE = 64 * 1024;
/** The number of bytes from which calls are submitted without waiting for the microtask. */
const FULL = 256 * 1024;

/** Kinds of completions: see thalweg.h. */
export const NOTICE = 3;
export const HOST_CALL = 4;

/** Messages of calls, and the calls that they belong to. */
export class Outbox {
  writer = new Writer(OUTBOX_SIZE, MAX_CALLS * CALL_SIZE);
  calls = [];

  get isFull() {
    return this.calls.length === MAX_CALLS || this.writer.position > FULL;
  }

  /** Adds the message that was written last. */
  add(call, client, flags, timeout) {
    const { view, start, size } = this.writer;
    const at = CALL_SIZE * this.calls.length;
    view.setUint32(at, call.slot, true);
    view.setUint32(at + 4, call.generation, true);
    view.setBigUint64(at + 8, client, true);
    view.setFloat64(at + 16, timeout, true);
    view.setUint32(at + 32, call.method.number, true);
    view.setUint32(at + 36, flags, true);
    view.setUint32(at + 40, start, true);
    view.setUint32(at + 44, size, true);
    this.calls.push(call);
  }

  /** The handle that the core gave to call number `index`. */
  handleOf(index) {
    return this.writer.view.getBigUint64(CALL_SIZE * index + 24, true);
  }
}

const settled = Promise.resolve();

/** One library in this thread. */
export class Port {
  static #all = [];

  /** The completion that is being delivered. */
  kind = 0;
  code = 0;
  retryable = false;
  /** Whether calls of a method run on this thread, by the method's number. */
  inline = [];
  #message = 0;
  #messageSize = 0;
  #data = 0;
  #dataSize = 0;
  #call = 0;
  #reader;
  #shared;
  #words;
  #waiting;
  #delivering = false;
  #entries = [];
  #free = [];
  #generation = 0;
  #outbox = new Outbox();
  #inlineOutbox = new Outbox();

  /** The port number `index` of `native`. */
  static of(index) {
    Port.#all[index] ??= new Port(index);
    return Port.#all[index];
  }

  constructor(index) {
    this.index = index;
    const buffers = native.start(index, (count, own) => this.#deliver(count, own));
    if (buffers === undefined) {
      throw lastError();
    }
    const [results, records] = buffers;
    this.#waiting = new Int32Array(results, 0, 1);
    this.#words = new Uint32Array(results);
    this.#shared = this.reader(results);
    /** Batches and results of inline calls. */
    this.records = this.reader(records);
  }

  /** A reader of messages of this port. */
  reader(buffer) {
    const reader = new Reader(buffer);
    reader.port = this;
    return reader;
  }

  // ---- Entries ---------------------------------------------------------------------------------

  /** Gives `entry` a slot and a generation. Its `complete(port)` is called for completions. */
  enter(entry) {
    const slot = this.#free.pop() ?? this.#entries.length;
    this.#generation = (this.#generation + 1) >>> 0;
    entry.slot = slot;
    entry.generation = this.#generation;
    this.#entries[slot] = entry;
  }

  leave(entry) {
    if (this.#entries[entry.slot] === entry) {
      this.#entries[entry.slot] = undefined;
      this.#free.push(entry.slot);
    }
  }

  /** A promise waits for one operation more, or less (-1). `now`: no submission follows. */
  wait(change, now = true) {
    const before = this.#waiting[0];
    this.#waiting[0] = before + change;
    if ((before === 0 || before + change === 0) && now && !this.#delivering) {
      native.sync(this.index);
    }
  }

  // ---- Submitting ------------------------------------------------------------------------------

  /** An outbox for a message: another one while code of the user runs inside of encoding. */
  outbox() {
    if (this.#outbox.writer.isOpen) {
      return new Outbox();
    }
    if (this.#outbox.isFull) {
      this.flush();
    }
    return this.#outbox;
  }

  /** The same for a call that runs on this thread. */
  inlineOutbox() {
    return this.#inlineOutbox.writer.isOpen ? new Outbox() : this.#inlineOutbox;
  }

  /** A call was added to `outbox`. `now`: do not wait for others. */
  submit(outbox, now) {
    if (outbox !== this.#outbox) {
      this.flush();
      this.#submitAll(outbox);
    } else if (now || outbox.isFull) {
      this.flush();
    } else if (outbox.calls.length === 1) {
      settled.then(this.flush);
    }
  }

  /** Submits the calls of the outbox. */
  flush = () => {
    if (this.#outbox.calls.length > 0) {
      this.#submitAll(this.#outbox);
    }
  };

  #submitAll(outbox) {
    const { calls, writer } = outbox;
    let next = 0;
    while (next < calls.length) {
      const refused = native.submit(this.index, writer.buffer, next, calls.length);
      for (; next < refused; next++) {
        calls[next].accepted(outbox.handleOf(next));
      }
      if (next < calls.length) {
        calls[next].refused(lastError());
        next += 1;
      }
    }
    calls.length = 0;
    if (!writer.isOpen) {
      writer.clear();
    }
  }

  // ---- Completions -----------------------------------------------------------------------------

  #deliver(count, own) {
    this.#delivering = true;
    try {
      for (let i = 0; i < count; i++) {
        this.#deliverOne((HEADER + i * ENTRY_SIZE) / 4, own);
      }
    } finally {
      this.#delivering = false;
    }
  }

  #deliverOne(at, own) {
    const words = this.#words;
    const entry = this.#entries[words[at]];
    this.#load(words, at, own, this.#shared);
    if (entry !== undefined && entry.generation === words[at + 1]) {
      entry.complete(this);
    } else {
      this.discard();
    }
  }

  /** Makes the completion at `words[at]` the current one. Its data is in `shared` or in `own`. */
  #load(words, at, own, shared) {
    this.#call = at + 2;
    this.kind = words[at + 4];
    this.code = words[at + 5];
    this.retryable = words[at + 6] !== 0;
    this.#reader = words[at + 7] === 0 ? shared : this.reader(own[words[at + 7] - 1]);
    this.#data = words[at + 8];
    this.#dataSize = words[at + 9];
    this.#message = words[at + 10];
    this.#messageSize = words[at + 11];
  }

  /** Runs the call in `outbox` on this thread. Its result is the current completion. */
  callInline(outbox) {
    const own = native.callInline(this.index, outbox.writer.buffer);
    outbox.calls.length = 0;
    outbox.writer.clear();
    if (typeof own === 'number' && own !== 0) {
      throw lastError();
    }
    this.#load(new Uint32Array(this.records.buffer, 0, ENTRY_SIZE / 4), 0, [own], this.records);
  }

  /** The handle of the current completion, which is a host call. */
  get handle() {
    return this.#shared.u64(4 * this.#call);
  }

  /** The nanoseconds of a notice. */
  get elapsed() {
    return Number(this.#reader.u64(this.#data));
  }

  /** The error of the current completion, without a payload. */
  error() {
    const end = this.#message + this.#messageSize;
    const text = this.#reader.bytes.toString('utf8', this.#message, end);
    return errorOf(this.code, text, this.retryable);
  }

  /**
   * Reads the message of the current completion with `get`. If it is malformed, its handles are
   * closed.
   */
  read(layout, { size, get }, method, client) {
    const reader = this.#reader;
    reader.method = method;
    reader.client = client;
    try {
      const value = get(reader, reader.open(this.#data, this.#dataSize, layout, size));
      reader.close();
      return value;
    } catch (error) {
      this.discard();
      throw error;
    } finally {
      reader.client = undefined; // or the last client would never be garbage
    }
  }

  /** Closes the handles of the current completion. */
  discard() {
    if (this.kind !== NOTICE) {
      this.#reader.discard(this.#data, this.#dataSize);
    }
  }
}
