/**
 * What a generated package expects of a library: its functions with the hashes of their messages.
 */
import { BadArgument } from './errors.js';
import { lastError, native } from './native.js';
import { Port } from './port.js';

/** TW_METHOD_INLINE of thalweg.h. */
const INLINE = 2;

/** A package. Generated code has one, and declares its functions in the order of their numbers. */
export class Package {
  #name;
  #version;
  #layout;
  #imports;
  #methods = [];
  #hostImports = [];
  /** The ports of this thread, by the library's path. */
  #ports = new Map();

  /** `layout` and `imports` are the hashes of all methods and of all host imports. */
  constructor(name, version, layout, imports = 0n) {
    this.#name = name;
    this.#version = version;
    this.#layout = layout;
    this.#imports = imports;
  }

  /**
   * Declares a method: `name` in WIT, `hashes` and `types` of its parameters, result, error and
   * element, `params`: the size of the record of its parameters, `handles`: the number of handles
   * in it, `ok` and `error`: how to read its messages, `element`: of the stream that it returns.
   */
  method(method) {
    const described = { ok: NOTHING, handles: 0, params: 0, ...method, package: this };
    described.number = this.#methods.push(described) - 1;
    described.layouts = method.hashes.map((hash) => Number(hash & 0xffff_ffffn));
    return described;
  }

  /** Declares a host import: `property` is the method of the host; `arguments` reads its arguments. */
  hostImport(imported) {
    const layouts = imported.hashes.map((hash) => Number(hash & 0xffff_ffffn));
    this.#hostImports.push({ ok: NOTHING, params: 0, ...imported, layouts });
  }

  get hostImports() {
    return this.#hostImports;
  }

  /**
   * The port of the library at `path`, which `dlopen` searches for if it has no slash.
   * @throws {BadArgument} If it cannot be loaded, or is no Thalweg library.
   * @throws {VersionMismatch} If it is incompatible; the message names both sides.
   */
  port(path) {
    const known = this.#ports.get(path);
    if (known !== undefined) {
      return known;
    }
    if (typeof path !== 'string' || path.includes('\0')) {
      throw new BadArgument(`${this.#name}: path: expected a string without NUL`);
    }
    const [text, hashes] = described(this.#methods);
    const [importText, importHashes] = described(this.#hostImports);
    const index = native.open(
      path,
      this.#name,
      this.#version,
      this.#layout,
      this.#imports,
      text,
      hashes,
      importText,
      importHashes,
    );
    if (index < 0) {
      throw lastError();
    }
    const port = Port.of(index);
    port.inline = Array.from(
      new Uint32Array(native.flags(index)),
      (flags) => (flags & INLINE) !== 0,
    );
    this.#ports.set(path, port);
    return port;
  }
}

/** How to read a message without a value. */
const NOTHING = { size: 0, get: () => undefined };

/** Functions for `native.open`. */
function described(functions) {
  const text = functions.map(({ name, types }) => `${name}\0${types.join('\n')}\0`).join('');
  return [text, BigUint64Array.from(functions.flatMap(({ hashes }) => hashes))];
}
