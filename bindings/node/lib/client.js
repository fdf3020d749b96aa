/**
 * Clients and resources: the bases of the classes of generated packages.
 */
import { BadArgument } from './errors.js';
import { CLIENT, Handle, KEY, RESOURCE } from './handle.js';
import { Host } from './host.js';
import { lastError, native } from './native.js';

/** A client: an instance of the service. The classes of packages have `static package`. */
export class Client extends Handle {
  #host;

  /**
   * Opens the service in the library at `path`. `host` has the functions of the service's host
   * imports.
   */
  static open(path, options = {}) {
    const { host } = options ?? {};
    const { package: expected, name } = this;
    const port = expected.port(path);
    if (host !== undefined && (typeof host !== 'object' || host === null)) {
      throw new BadArgument(`${name}: host: expected an object with the host's functions`);
    }
    const number = native.clientOpen(port.index);
    if (number === 0n) {
      throw lastError();
    }
    const client = new this(KEY, port, CLIENT, number);
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
    return reader.handle(
      at,
      (port, number, client) => new this(KEY, port, RESOURCE, number, client),
    );
  }
}
