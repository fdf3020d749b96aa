/**
 * Clients and resources: the bases of the classes of generated packages.
 */
import { BadArgument, read } from './errors.js';
import { Handle, KEY } from './handle.js';
import { Host } from './host.js';
import { check } from './native.js';

/** A client: an instance of the service. The classes of packages have `static package`. */
export class Client extends Handle {
  #host;

  /** Opens the library at `path`. `host` has the functions of the service's host imports. */
  static open(path, options) {
    const { package: expected, name } = this;
    const host = read(`${name}: options`, () => options?.host);
    const port = expected.port(path);
    if (host !== undefined && (typeof host !== 'object' || host === null)) {
      throw new BadArgument(`${name}: host: expected an object with the host's functions`);
    }
    check(port.native.clientOpen());
    const number = port.records.u64(0);
    const client = new this(KEY, port, number);
    if (host !== undefined) {
      try {
        client.#host = new Host(port, number, expected.hostImports, host);
      } catch (error) {
        client.close();
        throw error;
      }
    }
    return client;
  }

  close() {
    super.close();
    this.#host?.close();
  }
}

/** An object in the service. */
export class Resource extends Handle {
  /** For generated code: reads a resource of this class. */
  static read(reader, at) {
    return reader.handle(at, (port, number, client) => new this(KEY, port, number, client));
  }
}
