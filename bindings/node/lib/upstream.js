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
import { check, lastError } from './native.js';
import { Waiter } from './port.js';
import { Writer } from './writer.js';

/** The size of the buffer for an element; a larger one enlarges it. */
const ELEMENT_SIZE = 1024;
/** The number of elements that are sent before other events of the loop. */
const FAIR = 256;

/** For a parameter that is a future: the future ends without a value. */
export class NoValue {}

/** Creates the streams of the message that `writer` has just completed. */
export function openUpstreams(port, client, method, writer) {
  const opened = [];
  try {
    for (const parameter of writer.upstreams) {
      check(port.native.streamNew(client, method.number, parameter.parameter));
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
  #writer = new Writer(ELEMENT_SIZE);
  #waiter;
  #sent = 0;
  #isClosed = false;
  #iterator;

  constructor(port, method, parameter) {
    this.#port = port;
    this.#method = method;
    this.#parameter = parameter;
    this.#waiter = new Waiter(port);
    this.#number = port.records.u64(0);
    /** The service's end; 0n once it belongs to the service. */
    this.reader = port.records.u64(8);
  }

  /** The call was accepted. */
  begin(call) {
    this.#port.native.forget(this.reader);
    this.reader = 0n;
    this.#run(call);
  }

  async #run(call) {
    const { values, name, isFuture } = this.#parameter;
    await undefined; // code of the user must not run while calls are submitted
    try {
      if (!isFuture) {
        await this.#sendAll(values);
      } else {
        const value = await values;
        if (!(value instanceof NoValue)) {
          await (this.#push(value) || this.#retry());
        }
      }
    } catch (error) {
      this.#iterator = undefined;
      if (!this.#isClosed) {
        this.#writer.clear();
        this.#writer.begin(this.#method.name, 0, 0, 0);
        this.#writer.enter(name);
        call.fail(this.#writer.wrap(error));
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
        this.#port.native.finish(this.#number);
        return;
      }
      if (!this.#push(value) && !(await this.#retry())) {
        return;
      }
      if (this.#sent % FAIR === 0) {
        await new Promise(setImmediate);
      }
    }
  }

  /** Encodes an element and sends it, as `#send` does. */
  #push(value) {
    const { element, name, isFuture } = this.#parameter;
    const writer = this.#writer;
    writer.clear();
    const root = writer.begin(this.#method.name, element.layout, 0, element.size);
    writer.enter(name);
    if (isFuture) {
      element.put(writer, root, value);
    } else {
      writer.value(root, value, this.#sent, element.put);
    }
    writer.end();
    return this.#send();
  }

  /** Sends the element. False: there is no capacity, or the stream is closed. */
  #send() {
    if (this.#isClosed) {
      return false;
    }
    const { buffer, start, size } = this.#writer;
    const code = this.#waiter.arm((slot, generation) =>
      this.#port.native.send(this.#number, buffer, start, size, slot, generation),
    );
    if (code === ARGUMENT) {
      throw lastError();
    }
    if (code === OK) {
      this.#sent += 1;
    } else if (code !== WOULD_PARK) {
      this.close();
    }
    return code === OK;
  }

  /** Waits for capacity and sends the element. False: the stream is closed. */
  async #retry() {
    while (!this.#isClosed) {
      await this.#waiter.wait();
      if (this.#send()) {
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
    this.#port.native.close(this.#number);
    if (this.reader !== 0n) {
      this.#port.native.close(this.reader);
    }
    this.#waiter.complete();
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
