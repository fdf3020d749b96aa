/**
 * A call, from its arguments to its outcome.
 */
import { AsyncResource } from 'node:async_hooks';

import { aborted, BadArgument, ERROR, OK, read, ServiceError } from './errors.js';
import { give, open } from './handle.js';
import { NOTICE } from './port.js';
import { openUpstreams } from './upstream.js';

/** TW_SUBMIT_NOTICES of thalweg.h. */
const NOTICES = 1;

const { addEventListener, removeEventListener } = EventTarget.prototype;

/**
 * Calls `method` of a client, or of a resource, which is then the first handle of the message.
 * `put(writer, root)` writes the arguments. `handles` is the number of handles among them, if it
 * varies; if it is Infinity, the arguments are put twice, first to count them. Returns the promise
 * of the result.
 */
export function call(of, method, options, put, handles = method.handles) {
  try {
    const made = new Call(method, of, checked(method.name, options));
    made.begin(put, handles);
    return made.promise;
  } catch (error) {
    return Promise.reject(error);
  }
}

const DEFAULT = { signal: undefined, timeout: -1, onNotice: undefined };

/** The options of a call. Without a timeout it is -1. */
function checked(name, options) {
  if (options === undefined) {
    return DEFAULT;
  }
  if (typeof options !== 'object' || options === null) {
    throw new BadArgument(`${name}: options: expected an object`);
  }
  const { signal, timeout, onNotice, isAborted } = read(`${name}: options`, () => {
    const { signal, timeout, onNotice } = options;
    return {
      signal,
      timeout,
      onNotice,
      isAborted: signal instanceof AbortSignal && signal.aborted,
    };
  });
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout >= 0)) {
    throw new BadArgument(`${name}: timeout: expected a number of milliseconds, 0 or more`);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new BadArgument(`${name}: signal: expected an AbortSignal`);
  }
  if (onNotice !== undefined && typeof onNotice !== 'function') {
    throw new BadArgument(`${name}: onNotice: expected a function`);
  }
  if (isAborted) {
    throw aborted(signal);
  }
  return { signal, timeout: timeout ?? -1, onNotice: onNotice && AsyncResource.bind(onNotice) };
}

class Call {
  slot = 0;
  generation = 0;
  #client;
  #port;
  #isSettled = false;
  #resolve;
  #reject;
  /** The core's handle of the call; 0n before it was accepted. */
  #handle = 0n;
  #settings;
  #onAbort;
  /** Resources that belong to the service once the call is accepted. */
  #given = [];
  /** Streams that are parameters. */
  #upstreams = [];

  constructor(method, of, settings) {
    const { port, client } = open(of, method.name, 'the client or resource');
    this.method = method;
    this.of = of;
    this.#port = port;
    this.#client = client;
    this.#settings = settings;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Encodes the arguments, and submits the call or runs it on this thread. */
  begin(put, handles) {
    const port = this.#port;
    const { signal, timeout, onNotice } = this.#settings;
    const isInline = port.inline[this.method.number];
    const isBrief = port.brief[this.method.number];
    if (isInline || isBrief) {
      port.flush(); // the calls before it
    }
    const outbox = port.outbox();
    const number = this.#encode(outbox, put, handles);
    if (isInline) {
      outbox.add(this, number, 0, timeout);
      port.callInline(outbox);
      this.#finish();
      return;
    }
    port.enter(this);
    port.wait(1);
    outbox.add(this, number, onNotice ? NOTICES : 0, timeout);
    if (isBrief && port.callIfIdle(outbox)) {
      this.#given.forEach(give);
      this.complete(port);
      return;
    }
    if (signal !== undefined) {
      this.#onAbort = () => this.fail(aborted(signal));
      addEventListener.call(signal, 'abort', this.#onAbort);
    }
    port.submit(outbox, this.#given.length > 0 || this.#upstreams.length > 0);
  }

  /**
   * Writes the message. An exception of the values becomes an error that names the parameter.
   * Returns the client's number.
   */
  #encode(writer, put, handles) {
    const { method, of } = this;
    const write = (count) => {
      const root = writer.begin(method.name, method.layouts[0], count, method.params);
      if (of !== this.#client) {
        writer[method.destroys ? 'own' : 'borrow'](root, of, 'self', Object);
      }
      put?.(writer, root);
    };
    try {
      let count = handles;
      if (handles === Infinity) {
        write(Infinity);
        count = writer.abandon();
      }
      write(count);
      writer.end();
      // The values may have closed the client, or aborted the signal.
      const { number } = open(this.#client, method.name, 'the client');
      if (this.#settings.signal?.aborted) {
        throw aborted(this.#settings.signal);
      }
      if (writer.upstreams.length > 0) {
        this.#upstreams = openUpstreams(this.#port, number, method, writer);
        writer.upstreams = [];
      }
      if (writer.given.length > 0) {
        this.#given = writer.given;
        writer.given = [];
      }
      return number;
    } catch (error) {
      const named = writer.wrap(error);
      writer.abandon();
      throw named;
    }
  }

  /** The core has accepted the call. */
  accepted(handle) {
    this.#handle = handle;
    this.#given.forEach(give);
    for (const upstream of this.#upstreams) {
      upstream.begin(this);
    }
    if (this.#isSettled) {
      this.#port.native.cancel(handle);
    }
  }

  /** The core has refused the call. */
  refused(error) {
    this.#end();
    if (this.#settle()) {
      this.#reject(error);
    }
  }

  /** Cancels the call. Its promise is rejected now. */
  fail(error) {
    if (this.#settle()) {
      this.#reject(error);
      if (this.#handle !== 0n) {
        this.#port.native.cancel(this.#handle);
      }
    }
  }

  /** The promise is about to be settled. False if it was before. */
  #settle() {
    if (this.#isSettled) {
      return false;
    }
    this.#isSettled = true;
    this.#port.wait(-1);
    if (this.#onAbort !== undefined) {
      removeEventListener.call(this.#settings.signal, 'abort', this.#onAbort);
    }
    return true;
  }

  #end() {
    this.#port.leave(this);
    for (const upstream of this.#upstreams) {
      upstream.close();
    }
  }

  /** A completion of the call has arrived. */
  complete(port) {
    if (port.kind !== NOTICE) {
      this.#end();
      if (this.#settle()) {
        this.#finish();
      } else {
        port.discard();
      }
    } else if (!this.#isSettled) {
      try {
        this.#settings.onNotice(port.elapsed / 1e6);
      } catch (error) {
        this.fail(error); // the call ends with it
      }
    }
  }

  /** Settles the promise with the current completion of the port. */
  #finish() {
    const { ok, error, layouts } = this.method;
    const port = this.#port;
    try {
      if (port.code === OK) {
        this.#resolve(port.read(layouts[1], ok, this.method, this.#client));
      } else if (port.code === ERROR && error !== undefined) {
        const payload = port.read(layouts[2], error, this.method, this.#client);
        this.#reject(new (error.class ?? ServiceError)(payload, { retryable: port.retryable }));
      } else {
        this.#reject(port.error());
      }
    } catch (malformed) {
      this.#reject(malformed);
    }
  }
}
