/**
 * Host imports: functions that the service calls on its host. They are methods of an object that
 * the program passes to `open`, and may be async.
 */
import { CLOSED, ERROR, GUEST_PANICKED, OK, ServiceError, STALE } from './errors.js';
import { lastError, native } from './native.js';
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
      native.answer(port.index, port.handle, CLOSED, new ArrayBuffer(0), 0, 0);
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
  #entry;

  constructor(port, client, imports, object) {
    this.#port = port;
    this.#imports = imports;
    this.#object = object;
    this.#entry = new HostEntry(this);
    port.enter(this.#entry);
    dropped.register(this, { port, entry: this.#entry });
    const { slot, generation } = this.#entry;
    if (native.setHost(port.index, client, slot, generation) !== OK) {
      throw lastError();
    }
  }

  close() {
    this.#port.leave(this.#entry);
  }

  /** The current completion of the port is a host call. */
  serve(port) {
    const call = port.handle;
    const imported = this.#imports[port.code];
    let values;
    try {
      const { arguments: get, params: size, layouts } = imported;
      values = port.read(layouts[0], { size, get }, imported, undefined);
    } catch (error) {
      this.#panic(call, imported?.name, error);
      return;
    }
    this.#run(call, imported, values);
  }

  /** Runs the function. An answer that arrives too late is dropped, because no call waits for it. */
  async #run(call, imported, values) {
    try {
      this.#answer(
        call,
        OK,
        imported,
        imported.ok,
        1,
        await this.#object[imported.property](...values),
      );
    } catch (error) {
      if (error instanceof ServiceError && imported.error !== undefined) {
        try {
          this.#answer(call, ERROR, imported, imported.error, 2, error.payload);
          return;
        } catch (unfit) {
          error = unfit;
        }
      }
      this.#panic(call, imported.name, error);
    }
  }

  #answer(call, code, imported, { size, put }, layout, value) {
    const writer = new Writer(ANSWER_SIZE);
    try {
      const root = writer.begin(`the host's ${imported.name}`, imported.layouts[layout], 0, size);
      put?.(writer, root, value);
      writer.end();
      const { buffer, start, size: length } = writer;
      const status = native.answer(this.#port.index, call, code, buffer, start, length);
      if (status !== OK && status !== STALE) {
        throw lastError();
      }
    } catch (error) {
      throw writer.wrap(error);
    }
  }

  #panic(call, name, error) {
    const text = Buffer.from(`the host's ${name}: ${messageOf(error)}`);
    const buffer = new Uint8Array(text).buffer;
    native.answer(this.#port.index, call, GUEST_PANICKED, buffer, 0, text.length);
  }
}

/** The text of anything that was thrown. */
function messageOf(error) {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return 'an exception without a text';
  }
}
