/**
 * Handles: objects of the service that belong to this side.
 *
 * A handle is closed by `close`, `using`, or when its object is garbage. A resource and a stream
 * refer to their client, and a call that runs refers to it, too. They keep it open.
 */
import { BadArgument, Closed } from './errors.js';

/** Node 20 before 20.5 has no such symbols. */
const dispose = Symbol.dispose ?? Symbol.for('nodejs.dispose');
const asyncDispose = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose');

/** Only this package creates handles. */
export const KEY = Symbol('thalweg');

const dropped = new FinalizationRegistry(({ port, number }) => port.native.close(number));

let parts;
let take;

/** Base of `Client`, `Resource` and `Stream`. */
export class Handle {
  #port;
  #number;
  #client;

  static {
    parts = (handle) =>
      #number in handle
        ? { port: handle.#port, number: handle.#number, client: handle.#client ?? handle }
        : undefined;
    take = (handle) => {
      const number = handle.#number;
      handle.#number = 0n;
      dropped.unregister(handle);
      return number;
    };
  }

  /** `client` is the owner of a resource or stream. */
  constructor(key, port, number, client) {
    if (key !== KEY) {
      throw new BadArgument(`${new.target.name}: only the service creates it, or 'open'`);
    }
    this.#port = port;
    this.#number = number;
    this.#client = client;
    dropped.register(this, { port, number }, this);
  }

  get closed() {
    return this.#number === 0n;
  }

  close() {
    if (this.#number !== 0n) {
      this.#port.flush(); // calls that use it and were not submitted yet
      this.#port.native.close(take(this));
    }
  }

  [dispose]() {
    this.close();
  }

  async [asyncDispose]() {
    this.close();
  }
}

/**
 * The port, the number and the client of an open handle. `name` and `what` are for the error.
 * @throws {BadArgument} If it is none, for example a copy that another worker received.
 * @throws {Closed}
 */
export function open(handle, name, what) {
  const found = typeof handle === 'object' && handle !== null ? parts(handle) : undefined;
  if (found === undefined) {
    throw new BadArgument(`${name}: ${what}: expected an object that this thread has opened`);
  }
  if (found.number === 0n) {
    throw new Closed(`${name}: ${what} is closed`);
  }
  return found;
}

/** The handle belongs to the service now. */
export function give(handle) {
  const { port } = parts(handle);
  port.native.forget(take(handle));
}
