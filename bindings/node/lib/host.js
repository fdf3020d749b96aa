/**
 * Host imports: functions that the service calls on its host. They are methods of an object that
 * the program passes to `open`, and may be async. They run in the async context of `open`.
 */
import { AsyncResource } from 'node:async_hooks';

import { CLOSED, ERROR, GUEST_PANICKED, messageOf, OK, ServiceError, STALE } from './errors.js';
import { check } from './native.js';
import { HOST_CALL } from './port.js';
import { Writer } from './writer.js';

/** The size of an answer's buffer; a larger answer enlarges it. */
const ANSWER_SIZE = 1024;

/**
 * The entry of a host in the port. It does not keep the host alive: the client does, so that a host
 * that refers to its client can be garbage.
 */
class HostEntry {
  slot = 0;
  generation = 0;
  #host;

  constructor(host) {
    this.#host = new WeakRef(host);
  }

  complete(port) {
    const host = this.#host.deref();
    if (port.kind === HOST_CALL && host !== undefined) {
      host.serve(port);
      return;
    }
    if (port.kind === HOST_CALL) {
      port.native.answer(port.handle, CLOSED, new ArrayBuffer(0), 0, 0);
    }
    port.discard();
  }
}

const dropped = new FinalizationRegistry(({ port, entry }) => port.leave(entry));

/** The host of a client. */
export class Host {
  #port;
  #imports;
  #object;
  #entry = new HostEntry(this);
  #context = new AsyncResource('thalweg.Host');

  constructor(port, client, imports, object) {
    this.#port = port;
    this.#imports = imports;
    this.#object = object;
    port.enter(this.#entry);
    dropped.register(this, { port, entry: this.#entry });
    check(port.native.setHost(client, this.#entry.slot, this.#entry.generation));
  }

  close() {
    this.#port.leave(this.#entry);
  }

  /** The current completion of the port is a host call. */
  serve(port) {
    const call = port.handle;
    const imported = this.#imports[port.code];
    try {
      const { arguments: get, params: size, layouts } = imported;
      const values = port.read(layouts[0], { size, get }, imported, undefined);
      this.#context.runInAsyncScope(() => this.#run(call, imported, values));
    } catch (error) {
      this.#panic(call, imported?.name, error);
    }
  }

  /** Runs the function. An answer that arrives too late is dropped, because no call waits for it. */
  async #run(call, imported, values) {
    const answer = (...outcome) => this.#answer(call, imported, ...outcome);
    try {
      try {
        answer(OK, imported.ok, 1, await this.#object[imported.property](...values));
      } catch (error) {
        if (!(error instanceof ServiceError) || imported.error === undefined) {
          throw error;
        }
        answer(ERROR, imported.error, 2, error.payload);
      }
    } catch (error) {
      this.#panic(call, imported.name, error);
    }
  }

  #answer(call, imported, code, { size, put }, layout, value) {
    const writer = new Writer(ANSWER_SIZE);
    try {
      const root = writer.begin(`the host's ${imported.name}`, imported.layouts[layout], 0, size);
      put?.(writer, root, value);
      writer.end();
      const { buffer, start, size: length } = writer;
      const status = this.#port.native.answer(call, code, buffer, start, length);
      check(status === STALE ? OK : status);
    } catch (error) {
      throw writer.wrap(error);
    }
  }

  #panic(call, name, error) {
    const text = Buffer.from(`the host's ${name}: ${messageOf(error)}`);
    const { buffer } = new Uint8Array(text);
    this.#port.native.answer(call, GUEST_PANICKED, buffer, 0, text.length);
  }
}
