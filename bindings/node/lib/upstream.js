/**
 * Streams and futures that are parameters: this side sends their values.
 *
 * 1. Each one is created for one call. Its reader goes into the call's message and belongs to the
 *    service once the call is accepted. If the call is refused, both ends are closed.
 * 2. While the call runs, a loop takes values from the iterable and sends them. If there is no
 *    capacity, it waits until the stream is ready.
 * 3. An exception of the values closes the writer without finishing it, and the call fails with it.
 * 4. If the service stops reading or the call ends, sending stops, and the iterator is closed.
 */
import { ARGUMENT, OK, WOULD_PARK } from './errors.js';
import { STREAM } from './handle.js';
import { lastError, native } from './native.js';
import { Waiter } from './stream.js';
import { Writer } from './writer.js';

/** The size of the buffer for an element; a larger one enlarges it. */
const ELEMENT_SIZE = 1024;
/** The number of elements that are sent before other events of the loop. */
const FAIR = 256;

/** Creates the streams of the message that `writer` has just completed. */
export function openUpstreams(port, client, method, writer) {
  const opened = [];
  try {
    for (const parameter of writer.upstreams) {
      const code = native.streamNew(port.index, client, method.number, parameter.parameter);
      if (code !== OK) {
        throw lastError();
      }
      const upstream = new Upstream(port, method, parameter);
      opened.push(upstream);
      writer.setHandle(parameter.index, upstream.reader);
    }
  } catch (error) {
    for (const upstream of opened) {
      upstream.close();
    }
    throw error;
  }
  return opened;
}

class Upstream {
  #port;
  #method;
  #parameter;
  #number;
  #element = new Writer(ELEMENT_SIZE);
  #sent = 0;
  #isClosed = false;
  #waiter;
  #iterator;

  constructor(port, method, parameter) {
    this.#port = port;
    this.#method = method;
    this.#parameter = parameter;
    this.#number = port.records.u64(0);
    /** The service's end; 0n once it belongs to the service. */
    this.reader = port.records.u64(8);
  }

  /** The call was accepted. */
  begin(call) {
    native.forget(this.#port.index, this.reader);
    this.reader = 0n;
    this.#run(call);
  }

  async #run(call) {
    const { values, isFuture } = this.#parameter;
    await undefined; // code of the user must not run while calls are submitted
    try {
      if (isFuture) {
        await this.#send(await values);
      } else {
        await this.#sendAll(values);
      }
    } catch (error) {
      this.#iterator = undefined;
      if (!this.#isClosed) {
        this.#element.clear();
        this.#element.begin(this.#method.name, 0, 0, 0);
        this.#element.enter(this.#parameter.name);
        call.fail(this.#element.wrap(error));
      }
    }
    this.close();
  }

  async #sendAll(values) {
    if (this.#isClosed) {
      return;
    }
    const asynchronous = values[Symbol.asyncIterator];
    this.#iterator = asynchronous ? asynchronous.call(values) : values[Symbol.iterator]();
    for (;;) {
      const next = this.#iterator.next();
      const { done, value } = asynchronous ? await next : next;
      if (this.#isClosed) {
        return;
      }
      if (done) {
        this.#iterator = undefined;
        native.finish(this.#port.index, this.#number);
        return;
      }
      if (!this.#push(value) && !(await this.#waitAndPush())) {
        return;
      }
      if (this.#sent % FAIR === 0) {
        await new Promise(setImmediate);
      }
    }
  }

  async #send(value) {
    if (!this.#isClosed && !this.#push(value)) {
      await this.#waitAndPush();
    }
  }

  /** Encodes an element and sends it. False: there is no capacity, or the stream is closed. */
  #push(value) {
    const { element, name, isFuture } = this.#parameter;
    const writer = this.#element;
    writer.clear();
    const root = writer.begin(this.#method.name, element.layout, 0, element.size);
    writer.enter(name);
    if (isFuture) {
      element.put(writer, root, value);
    } else {
      writer.value(root, value, this.#sent, element.put);
    }
    writer.end();
    return this.#pushEncoded();
  }

  #pushEncoded() {
    if (this.#isClosed) {
      return false;
    }
    const { buffer, start, size } = this.#element;
    const waiter = new Waiter(this.#port);
    const { slot, generation } = waiter;
    const code = native.send(this.#port.index, this.#number, buffer, start, size, slot, generation);
    if (code === WOULD_PARK) {
      this.#waiter = waiter;
      return false;
    }
    waiter.end();
    if (code === ARGUMENT) {
      throw lastError();
    }
    if (code !== OK) {
      this.close();
      return false;
    }
    this.#sent += 1;
    return true;
  }

  /** Waits for capacity and sends the element. False: the stream is closed. */
  async #waitAndPush() {
    while (!this.#isClosed) {
      await this.#waiter.wait();
      if (this.#pushEncoded()) {
        return true;
      }
    }
    return false;
  }

  /** Closes both ends that belong to this side. A second call has no effect. */
  close() {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    const { index } = this.#port;
    native.close(index, STREAM, this.#number);
    if (this.reader !== 0n) {
      native.close(index, STREAM, this.reader);
    }
    this.#waiter?.end();
    this.#returnIterator();
  }

  /** Closes the iterator. Nobody waits for it, and its exceptions have no receiver. */
  async #returnIterator() {
    const iterator = this.#iterator;
    await undefined; // code of the user must not run while completions are delivered
    try {
      await iterator?.return?.();
    } catch {
      // Rule 4: the call has ended, or ends as it would without this.
    }
  }
}
