/**
 * Writes messages: see "Messages" in thalweg.h. Generated code calls one method per field.
 *
 * 1. Positions are relative to the buffer, which can be replaced by a larger one at any time: use
 *    `this.view` and `this.bytes` anew after each call that can run other code or reserve memory.
 * 2. All bytes from `position` on are 0.
 * 3. Reading a value can run code of the user: getters, iterators, proxies. That code can make
 *    calls, which then use another writer: `isOpen`. It can change lengths: a length is read once.
 */
import { types } from 'node:util';

import { BadArgument, wrap } from './errors.js';
import { open } from './handle.js';

/** The largest message, in bytes: TW_MESSAGE_MAX, with room to round a position up to 8. */
const MESSAGE_MAX = 0x7fff_fff0;
/** The size of a message's header. */
const HEADER = 16;
/** Longer texts are written by one native call; measured on Node 20. */
const SHORT = 24;
/** A larger buffer is replaced by a small one after use. */
const KEEP = 1 << 20;
/** Faster than `fill` of Buffer. */
const { fill } = Uint8Array.prototype;

/** The number types of WIT: size in bytes, and the typed array. */
export const NUMBERS = {
  u8: [1, Uint8Array],
  s8: [1, Int8Array],
  u16: [2, Uint16Array],
  s16: [2, Int16Array],
  u32: [4, Uint32Array],
  s32: [4, Int32Array],
  u64: [8, BigUint64Array],
  s64: [8, BigInt64Array],
  f32: [4, Float32Array],
  f64: [8, Float64Array],
};

/** A buffer with messages. */
export class Writer {
  /** A message is being written. */
  isOpen = false;
  /** Where the next message or tail begins. */
  position;
  /** The size of the message that was completed last. */
  size = 0;
  /** Resources that the message gives to the service. */
  given = [];
  /** Streams that are parameters: what their ends need. See upstream.js. */
  upstreams = [];
  #initial;
  #reserved;
  #start = 0;
  #handles = 0;
  #handlesPut = 0;
  #what = '';
  #path = [];

  /** `reserved` bytes at the beginning are not part of messages. */
  constructor(size, reserved = 0) {
    this.#initial = size;
    this.#reserved = reserved;
    this.position = reserved;
    this.#use(new ArrayBuffer(size));
  }

  #use(buffer) {
    this.buffer = buffer;
    this.view = new DataView(buffer);
    this.bytes = Buffer.from(buffer);
  }

  /**
   * Begins a message of the function `what`, with a table of `handles` handles and a root of `size`
   * bytes. Returns the root's position. With Infinity it has no table: `abandon` counts them.
   */
  begin(what, layout, handles, size) {
    this.isOpen = true;
    this.#what = what;
    this.#path.length = 0;
    this.#start = this.position;
    this.#handles = handles;
    this.#handlesPut = 0;
    const first = HEADER + (handles === Infinity ? 0 : 8 * handles);
    const start = this.reserve(first + size, 8);
    this.view.setUint32(start + 4, layout, true);
    this.view.setUint32(start + 8, handles, true);
    this.view.setUint32(start + 12, first, true);
    return start + first;
  }

  /** Completes the message: `size` bytes from `start` on. */
  end() {
    if (this.#handlesPut !== this.#handles) {
      this.fail(undefined, `${this.#handles} handles`, this.#handlesPut);
    }
    this.size = this.position - this.#start;
    this.view.setUint32(this.#start, this.size, true);
    this.position = (this.position + 7) & ~7;
    this.isOpen = false;
  }

  /** The position of the message. */
  get start() {
    return this.#start;
  }

  /** Removes the message that is open, or was completed last. Returns the number of its handles. */
  abandon() {
    fill.call(this.bytes, 0, this.#start, this.position);
    this.position = this.#start;
    this.isOpen = false;
    this.given = [];
    this.upstreams = [];
    return this.#handlesPut;
  }

  /** Removes all messages. */
  clear() {
    if (this.buffer.byteLength > KEEP) {
      this.#use(new ArrayBuffer(this.#initial));
    } else {
      fill.call(this.bytes, 0, this.#reserved, this.position);
    }
    this.position = this.#reserved;
  }

  /** Reserves `size` zero bytes. Returns their position. */
  reserve(size, align) {
    const at = (this.position + align - 1) & -align;
    const end = at + size;
    if (end > MESSAGE_MAX) {
      this.fail(undefined, 'at most 2 GiB of arguments', size);
    }
    if (end > this.buffer.byteLength) {
      const old = this.bytes.subarray(0, this.position);
      this.#use(new ArrayBuffer(Math.max(end, 2 * this.buffer.byteLength)));
      this.bytes.set(old);
    }
    this.position = end;
    return at;
  }

  /** The following values are parts of the field or element `name`, until `leave`. */
  enter(name) {
    this.#path.push(name);
  }

  leave() {
    this.#path.pop();
  }

  /** @throws {BadArgument} Always: the value of the field or element `name` has the wrong type or range. */
  fail(name, expected, value) {
    const place = this.#place(name);
    throw new BadArgument(`${this.#what}: ${place}expected ${expected}, got ${shown(value)}`);
  }

  /** The error for an exception while values were read: it names the parameter. */
  wrap(error) {
    return wrap(error, `${this.#what}: ${this.#place()}`.slice(0, -2));
  }

  #place(name) {
    const path = [...this.#path, name].filter((part) => part !== undefined);
    const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('');
    return text === '' ? '' : `${text.replace(/^\./, '')}: `;
  }

  u8(at, value, name) {
    this.#integer(value, name, 0, 0xff);
    this.view.setUint8(at, value);
  }

  s8(at, value, name) {
    this.#integer(value, name, -0x80, 0x7f);
    this.view.setInt8(at, value);
  }

  u16(at, value, name) {
    this.#integer(value, name, 0, 0xffff);
    this.view.setUint16(at, value, true);
  }

  s16(at, value, name) {
    this.#integer(value, name, -0x8000, 0x7fff);
    this.view.setInt16(at, value, true);
  }

  u32(at, value, name) {
    this.#integer(value, name, 0, 0xffff_ffff);
    this.view.setUint32(at, value, true);
  }

  s32(at, value, name) {
    this.#integer(value, name, -0x8000_0000, 0x7fff_ffff);
    this.view.setInt32(at, value, true);
  }

  #integer(value, name, low, high) {
    if (!Number.isInteger(value) || value < low || value > high) {
      this.fail(name, `an integer from ${low} to ${high}`, value);
    }
  }

  u64(at, value, name) {
    if (typeof value !== 'bigint' || BigInt.asUintN(64, value) !== value) {
      this.fail(name, 'a bigint from 0n to 2n ** 64n - 1n', value);
    }
    this.view.setBigUint64(at, value, true);
  }

  s64(at, value, name) {
    if (typeof value !== 'bigint' || BigInt.asIntN(64, value) !== value) {
      this.fail(name, 'a bigint from -(2n ** 63n) to 2n ** 63n - 1n', value);
    }
    this.view.setBigInt64(at, value, true);
  }

  f32(at, value, name) {
    if (typeof value !== 'number') {
      this.fail(name, 'a number', value);
    }
    this.view.setFloat32(at, value, true);
  }

  f64(at, value, name) {
    if (typeof value !== 'number') {
      this.fail(name, 'a number', value);
    }
    this.view.setFloat64(at, value, true);
  }

  bool(at, value, name) {
    if (typeof value !== 'boolean') {
      this.fail(name, 'a boolean', value);
    }
    this.view.setUint8(at, value ? 1 : 0);
  }

  char(at, value, name) {
    const code = typeof value === 'string' ? value.codePointAt(0) : undefined;
    const length = code > 0xffff ? 2 : 1;
    if (code === undefined || value.length !== length || (code >= 0xd800 && code < 0xe000)) {
      this.fail(name, 'a string with one character', value);
    }
    this.view.setUint32(at, code, true);
  }

  /** Writes the slice of a tail at `at`. Returns the tail's position. An empty one is {0, 0}. */
  #slice(at, count, size, align) {
    if (count === 0) {
      return 0;
    }
    const first = this.reserve(count * size, align);
    this.view.setUint32(at, first - this.#start, true);
    this.view.setUint32(at + 4, count, true);
    return first;
  }

  string(at, value, name) {
    if (typeof value !== 'string') {
      this.fail(name, 'a string', value);
    }
    const { length } = value;
    if (length <= SHORT && this.#ascii(at, value, length)) {
      return;
    }
    if (!value.isWellFormed()) {
      this.fail(name, 'a string without lone surrogates', value);
    }
    const size = Buffer.byteLength(value);
    const first = this.#slice(at, size, 1, 1);
    this.bytes.write(value, first, size, 'utf8');
  }

  /** Writes a short text. False, with nothing written, if it is not ASCII. */
  #ascii(at, value, length) {
    for (let i = 0; i < length; i++) {
      if (value.charCodeAt(i) > 0x7f) {
        return false;
      }
    }
    const first = this.#slice(at, length, 1, 1);
    for (let i = 0; i < length; i++) {
      this.bytes[first + i] = value.charCodeAt(i);
    }
    return true;
  }

  /** A list of numbers: a typed array of that type, or an array. `type` is a key of `NUMBERS`. */
  numbers(at, value, name, type) {
    const [size, TypedArray] = NUMBERS[type];
    if (!(value instanceof TypedArray)) {
      this.list(at, value, name, size, size, (writer, place, item) => writer[type](place, item));
      return;
    }
    this.#attached(value, name);
    const source = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    const first = this.#slice(at, source.length / size, size, size);
    this.bytes.set(source, first);
  }

  /** `list<u8>`. */
  blob(at, value, name) {
    if (!types.isUint8Array(value)) {
      this.fail(name, 'a Uint8Array', value);
    }
    this.#attached(value, name);
    const first = this.#slice(at, value.byteLength, 1, 1);
    this.bytes.set(value, first);
  }

  /** A typed array whose buffer was transferred is empty, which no caller means. */
  #attached(value, name) {
    if (value.byteLength > 0) {
      return;
    }
    try {
      new Uint8Array(value.buffer);
    } catch {
      this.fail(name, 'a typed array', 'one with a detached buffer');
    }
  }

  /** Any other list. `put(writer, position, element)` writes an element of `size` bytes. */
  list(at, value, name, size, align, put) {
    if (!Array.isArray(value)) {
      this.fail(name, 'an array', value);
    }
    const { length } = value;
    this.#elements(this.#slice(at, length, size, align), value, length, name, size, put);
  }

  /** `list<T, N>`: `count` elements in place. */
  fixed(at, value, name, count, size, put) {
    if (!Array.isArray(value) && !ArrayBuffer.isView(value)) {
      this.fail(name, 'an array', value);
    }
    if (value.length !== count) {
      this.fail(name, `${count} elements`, value.length);
    }
    this.#elements(at, value, count, name, size, put);
  }

  #elements(first, value, length, name, size, put) {
    this.enter(name);
    for (let i = 0; i < length; i++) {
      this.enter(i);
      put(this, first + i * size, value[i]);
      this.leave();
    }
    this.leave();
  }

  /** Checks the value of a record or variant. */
  object(value) {
    if (typeof value !== 'object' || value === null) {
      this.fail(undefined, 'an object', value);
    }
    return value;
  }

  /** Checks the value of a tuple with `count` elements. */
  tuple(value, count) {
    if (!Array.isArray(value)) {
      this.fail(undefined, 'an array', value);
    }
    if (value.length !== count) {
      this.fail(undefined, `${count} elements`, value.length);
    }
  }

  /** A record or another type that `put` writes. */
  value(at, value, name, put) {
    this.enter(name);
    put(this, at, value);
    this.leave();
  }

  /** An option: `undefined` or a value, which `put` writes at `at + offset`. */
  option(at, value, name, offset, put) {
    if (value === undefined || value === null) {
      return;
    }
    this.view.setUint8(at, 1);
    this.value(at + offset, value, name, put);
  }

  /** The number of a case. `size` is 1, 2 or 4. */
  discriminant(at, number, size) {
    this.bytes.writeUIntLE(number, at, size);
  }

  /** An enum: one of `names`. Returns its number. */
  enumeration(at, value, name, names, size) {
    const number = names.indexOf(value);
    if (number < 0) {
      this.fail(name, `one of ${names.join(', ')}`, value);
    }
    this.discriminant(at, number, size);
    return number;
  }

  /** Flags: an object with a boolean for each of `names`; `undefined` is false. */
  flags(at, value, name, names, size) {
    this.enter(name);
    this.object(value);
    let bits = 0;
    names.forEach((flag, bit) => {
      const is = value[flag];
      if (is !== undefined && typeof is !== 'boolean') {
        this.fail(flag, 'a boolean', is);
      }
      bits += is ? 2 ** bit : 0;
    });
    this.bytes.writeUIntLE(bits, at, size);
    this.leave();
  }

  /** A resource that the service uses during the call. */
  borrow(at, resource, name, type) {
    if (!(resource instanceof type)) {
      this.fail(name, `an open ${type.name}`, resource);
    }
    this.#handle(at, open(resource, this.#what, name ?? 'a resource').number);
  }

  /** A resource that belongs to the service afterwards. */
  own(at, resource, name, type) {
    this.borrow(at, resource, name, type);
    if (this.given.includes(resource)) {
      this.fail(name, `another ${type.name}: this one was passed already`, resource);
    }
    this.given.push(resource);
  }

  /** Values that are sent while the call runs. `parameter` is its number, with `self` counted. */
  stream(at, values, name, parameter, element) {
    const isIterable =
      typeof values === 'object' &&
      values !== null &&
      (Symbol.asyncIterator in values || Symbol.iterator in values);
    if (!isIterable) {
      this.fail(name, 'an iterable or async iterable', values);
    }
    this.#upstream(at, { values, name, parameter, element, isFuture: false });
  }

  /** A value or a promise of one. */
  future(at, value, name, parameter, element) {
    this.#upstream(at, { values: value, name, parameter, element, isFuture: true });
  }

  /** The handle is written once the stream exists: `setHandle`. */
  #upstream(at, upstream) {
    this.upstreams.push({ ...upstream, index: this.#handlesPut });
    this.#handle(at, 0n);
  }

  #handle(at, number) {
    const index = this.#handlesPut;
    if (index >= this.#handles) {
      this.fail(undefined, `${this.#handles} handles`, 'more');
    }
    this.#handlesPut += 1;
    this.setHandle(index, number);
    this.view.setUint32(at, index, true);
  }

  /** Sets entry number `index` of the message's table of handles. */
  setHandle(index, number) {
    if (this.#handles === Infinity) {
      return;
    }
    this.view.setBigUint64(this.#start + HEADER + 8 * index, number, true);
  }
}

/** A value for a message. Runs no code of the user. */
function shown(value) {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}..` : value);
    case 'bigint':
      return `${value > -(10n ** 40n) && value < 10n ** 40n ? value : 'a longer bigint'}`;
    case 'number':
    case 'boolean':
      return String(value);
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'an array' : 'an object';
    case 'undefined':
      return 'undefined';
    default:
      return `a ${typeof value}`;
  }
}
