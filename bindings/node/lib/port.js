/**
 * The port of a library in this thread's event loop. Submits calls and delivers completions.
 *
 * 1. Calls are encoded into the outbox. They are submitted together by a microtask: all calls that
 *    are made before it runs cost one crossing and one wake-up of the service.
 * 2. Calls that pass handles to the service are submitted at once, because their outcome decides
 *    whether the handles still belong to the caller.
 * 3. Each awaited operation has an entry. Its slot and generation are the token that the core
 *    carries. A completion whose entry is gone is discarded, and its handles are closed.
 * 4. `#state` is shared memory: whether a turn of the event loop delivers completions, and the number
 *    of operations that a promise waits for. The process stays alive while there are any: `native`
 *    looks at the number after each turn, and `wait` tells it about changes between turns. A call
 *    whose promise was rejected early, by its signal, keeps its entry until its completion arrives.
 * 5. `native` calls `#deliver` with the completions of a turn of the event loop. They are in shared
 *    memory, which is used again in the next turn.
 */
import { errorOf, OK, WOULD_PARK } from './errors.js';
import { check, lastError, open } from './native.js';
import { Reader } from './reader.js';
import { Writer } from './writer.js';

/** As in src/addon.c. */
const MAX_CALLS = 128;
/** The sizes of a tw_submission and a tw_completion. */
const SUBMISSION = 56;
const COMPLETION = 64;
/** TW_METHOD_INLINE of thalweg.h, and kinds of completions. */
const INLINE = 2;
const BRIEF = 64;
export const NOTICE = 3;
export const HOST_CALL = 4;

/** The size of the outbox; a larger message enlarges it. */
const OUTBOX_SIZE = 64 * 1024;
/** The number of bytes from which calls are submitted without waiting for the microtask. */
const FULL = 256 * 1024;

/** Messages of calls, and the calls that they belong to. */
class Outbox extends Writer {
  calls = [];

  constructor() {
    super(OUTBOX_SIZE, MAX_CALLS * SUBMISSION);
  }

  get isFull() {
    return this.calls.length === MAX_CALLS || this.position > FULL;
  }

  /** Adds the message that was written last, as a tw_submission. */
  add(call, client, flags, timeout) {
    const { view, start, size } = this;
    const at = SUBMISSION * this.calls.length;
    view.setUint32(at, call.slot, true);
    view.setUint32(at + 4, call.generation, true);
    view.setBigUint64(at + 8, client, true);
    view.setUint32(at + 16, call.method.number, true);
    view.setUint32(at + 20, flags, true);
    view.setUint32(at + 24, start, true);
    view.setUint32(at + 32, size, true);
    view.setFloat64(at + 40, timeout, true);
    this.calls.push(call);
  }

  /** The handle that the core gave to call number `index`. */
  handleOf(index) {
    return this.view.getBigUint64(SUBMISSION * index + 48, true);
  }

  clear() {
    this.calls = []; // faster than setting its length
    if (!this.isOpen) {
      super.clear();
    }
  }
}

const settled = Promise.resolve();

/** One library in this thread. */
export class Port {
  /** The completion that is being delivered. */
  kind = 0;
  code = 0;
  retryable = false;
  #words;
  #at = 0;
  #reader;
  #results;
  #entries = [];
  #free = [];
  #generation = 0;
  #state;
  #outbox = new Outbox();

  /** The parameters are those of `open` of src/addon.c. */
  constructor(path, texts, hashes, methods) {
    const deliver = (count, own) => this.#deliver(count, own);
    this.native = open(path, texts, hashes, methods, deliver);
    if (this.native === undefined) {
      throw lastError();
    }
    this.#state = new Uint32Array(this.native.state);
    this.#results = this.reader(this.native.results);
    /** Batches, results of inline calls, and what functions return. */
    this.records = this.reader(this.native.records);
    const flagsOf = Array.from(new Uint32Array(this.native.flags));
    /** Whether calls of a method run on this thread, by the method's number. */
    this.inline = flagsOf.map((flags) => (flags & INLINE) !== 0);
    /** The same, for calls that do so only if the service is idle. */
    this.brief = flagsOf.map((flags) => (flags & BRIEF) !== 0);
  }

  /** A reader of messages of this port. */
  reader(buffer) {
    const reader = new Reader(buffer);
    reader.port = this;
    return reader;
  }

  /** Gives `entry` a slot and a generation. Its `complete(port)` is called for completions. */
  enter(entry) {
    this.#generation = (this.#generation + 1) >>> 0;
    entry.slot = this.#free.pop() ?? this.#entries.length;
    entry.generation = this.#generation;
    this.#entries[entry.slot] = entry;
  }

  leave(entry) {
    if (this.#entries[entry.slot] === entry) {
      this.#entries[entry.slot] = undefined;
      this.#free.push(entry.slot);
    }
  }

  /** A promise waits for one operation more, or less (-1). */
  wait(change) {
    this.#state[1] += change;
    const isTurn = this.#state[0] !== 0;
    if (!isTurn && (this.#state[1] === 0 || this.#state[1] === change)) {
      this.native.hold();
    }
  }

  /** An outbox for a message: another one while code of the user runs inside of encoding. */
  outbox() {
    if (this.#outbox.isOpen) {
      return new Outbox();
    }
    if (this.#outbox.isFull) {
      this.flush();
    }
    return this.#outbox;
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
    const { calls } = outbox;
    let next = 0;
    while (next < calls.length) {
      const refused = this.native.submit(outbox.buffer, next, calls.length);
      for (; next < refused; next++) {
        calls[next].accepted(outbox.handleOf(next));
      }
      if (next < calls.length) {
        calls[next].refused(lastError());
        next += 1;
      }
    }
    outbox.clear();
  }

  /** Runs the call in `outbox` on this thread. Its result is the current completion. */
  callInline(outbox) {
    const own = this.native.callInline(outbox.buffer);
    outbox.clear();
    if (typeof own === 'number') {
      check(own);
    }
    this.#load(this.records, 0, own);
  }

  /** The same for a brief method. False if the service is busy: submit the outbox. */
  callIfIdle(outbox) {
    const own = this.native.callInline(outbox.buffer);
    if (typeof own === 'number' && own !== OK) {
      return false;
    }
    outbox.clear();
    this.#load(this.records, 0, own);
    return true;
  }

  #deliver(count, own) {
    for (let i = 0; i < count; i++) {
      const { view } = this.#results;
      const at = i * COMPLETION;
      const entry = this.#entries[view.getUint32(at, true)];
      this.#load(this.#results, at, own);
      if (entry !== undefined && entry.generation === view.getUint32(at + 4, true)) {
        entry.complete(this);
      } else {
        this.discard();
      }
    }
  }

  /** Makes the tw_completion at `at` the current one. Its data is in the same buffer or in `own`. */
  #load(reader, at, own) {
    const { view } = reader;
    const buffer = view.getUint32(at + 56, true);
    this.kind = view.getUint32(at + 16, true);
    this.code = view.getUint32(at + 20, true);
    this.retryable = view.getUint32(at + 52, true) !== 0;
    this.#words = view;
    this.#at = at;
    this.#reader = buffer === 0 ? reader : this.reader(own[buffer - 1]);
  }

  get #data() {
    return this.#words.getUint32(this.#at + 24, true);
  }

  get #dataSize() {
    return this.#words.getUint32(this.#at + 32, true);
  }

  /** The handle of the current completion, which is a host call. */
  get handle() {
    return this.#words.getBigUint64(this.#at + 8, true);
  }

  /** The nanoseconds of a notice. */
  get elapsed() {
    return Number(this.#reader.u64(this.#data));
  }

  /** The error of the current completion, without a payload. */
  error() {
    const first = this.#words.getUint32(this.#at + 40, true);
    const end = first + this.#words.getUint32(this.#at + 48, true);
    return errorOf(this.code, this.#reader.bytes.toString('utf8', first, end), this.retryable);
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

/** Waits until a stream is ready: TW_COMPLETION_STREAM_READY. */
export class Waiter {
  slot = 0;
  generation = 0;
  #port;
  #wake;

  constructor(port) {
    this.#port = port;
  }

  /** Returns what `attempt` returns. If that is WOULD_PARK, it has armed the stream: `wait`. */
  arm(attempt) {
    this.#port.enter(this);
    const result = attempt(this.slot, this.generation);
    if (result !== WOULD_PARK) {
      this.#port.leave(this);
    }
    return result;
  }

  wait() {
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#port.wait(1);
    });
  }

  /** Ends the wait: the stream is ready, or was closed. */
  complete() {
    this.#port.leave(this);
    if (this.#wake !== undefined) {
      this.#port.wait(-1);
      this.#wake();
      this.#wake = undefined;
    }
  }
}
