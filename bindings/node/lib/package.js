/**
 * What a generated package expects of a library: its functions with the hashes of their messages.
 */
import { BadArgument } from './errors.js';
import { Port } from './port.js';

/** How to read a message without a value. */
const NOTHING = { size: 0, get: () => undefined };

/** A package. Generated code has one, and declares its functions in the order of their numbers. */
export class Package {
  #texts;
  #layouts;
  #methods = [];
  /** The ports of this thread, by the library's path. */
  #ports = new Map();
  hostImports = [];

  /** `layout` and `imports` are the hashes of all methods and of all host imports. */
  constructor(name, version, layout, imports = 0n) {
    this.name = name;
    this.#texts = [name, version];
    this.#layouts = [layout, imports];
  }

  /**
   * Declares a method: `name` in WIT, `hashes` and `types` of its parameters, result, error and
   * element, `params`: the size of the record of its parameters, `handles`: the number of handles
   * in it, `ok` and `error`: how to read its messages, `element`: of the stream that it returns.
   */
  method(method) {
    return declare(this.#methods, { handles: 0, ...method });
  }

  /** Declares a host import: `property` is the method of the host; `arguments` reads its arguments. */
  hostImport(imported) {
    declare(this.hostImports, imported);
  }

  /**
   * The port of the library at `path`, which `dlopen` searches for if it has no slash.
   * @throws {BadArgument} If it cannot be loaded, or is no Thalweg library.
   * @throws {VersionMismatch} If it is incompatible; the message names both sides.
   */
  port(path) {
    if (typeof path !== 'string' || path.includes('\0')) {
      throw new BadArgument(`${this.name}: path: expected a string without NUL`);
    }
    let port = this.#ports.get(path);
    if (port === undefined) {
      const all = [...this.#methods, ...this.hostImports];
      const texts = all.flatMap(({ name, types }) => [name, types.join('\n')]);
      const hashes = all.flatMap((one) => one.hashes);
      port = new Port(
        path,
        [...this.#texts, ...texts, ''].join('\0'),
        BigUint64Array.from([...this.#layouts, ...hashes]),
        this.#methods.length,
      );
      this.#ports.set(path, port);
    }
    return port;
  }
}

function declare(functions, declared) {
  const layouts = declared.hashes.map((hash) => Number(hash & 0xffff_ffffn));
  const described = { ok: NOTHING, params: 0, ...declared, layouts, number: functions.length };
  functions.push(described);
  return described;
}
