/**
 * Reads messages and records: see "Messages" in thalweg.h. Generated code calls one method per
 * field.
 *
 * 1. Every position is checked, so a malformed message is a `BadArgument`. As in C, this relies on
 *    the core for UTF-8.
 * 2. No code of the user runs while a value is read, so the memory does not change meanwhile.
 * 3. Values are copies. They stay valid when the memory is used for the next message.
 */
import { BadArgument } from './errors.js';
import { NUMBERS } from './writer.js';

const HEADER = 16;
/** Longer texts are read by one native call; measured on Node 20. */
const SHORT = 12;

const ASCII = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));

/** A buffer with messages or records. */
export class Reader {
  /** The owner of the handles in the message: a client and its port. */
  client;
  port;
  /** The method whose message is read. */
  method;
  #base = 0;
  #limit = 0;
  /** Tails begin at or after this position, in the order of their fields. */
  #floor = 0;
  #handles = 0;
  #handlesMet = 0;

  constructor(buffer) {
    this.buffer = buffer;
    this.view = new DataView(buffer);
    this.bytes = Buffer.from(buffer);
  }

  /** Opens a message whose root has `size` bytes. Returns the root's position. */
  open(start, length, layout, size) {
    this.#base = start;
    this.#limit = start + length;
    if (length < HEADER || this.view.getUint32(start, true) !== length) {
      this.fail('its size is wrong');
    }
    this.#handles = this.view.getUint32(start + 8, true);
    this.#handlesMet = 0;
    const first = this.view.getUint32(start + 12, true);
    if (
      this.view.getUint32(start + 4, true) !== layout ||
      first !== HEADER + 8 * this.#handles ||
      first + size > length
    ) {
      this.#handles = 0;
      this.fail('its header is wrong');
    }
    this.#floor = start + first + size;
    return start + first;
  }

  /** After the value: each handle of the message was read. */
  close() {
    if (this.#handlesMet !== this.#handles) {
      this.fail('a handle is not used');
    }
  }

  /** Opens records: offsets are relative to `base`, and the memory ends at `limit`. */
  openRecords(base, limit) {
    this.#base = base;
    this.#limit = limit;
    this.#handles = 0;
  }

  /** Reads a record of `size` bytes at `at`. */
  record(at, size, get) {
    this.#floor = at + size;
    return get(this, at);
  }

  fail(why) {
    throw new BadArgument(
      `${this.method?.name ?? 'message'}: the library's message is malformed: ${why}`,
    );
  }

  u8(at) {
    return this.view.getUint8(at);
  }

  s8(at) {
    return this.view.getInt8(at);
  }

  u16(at) {
    return this.view.getUint16(at, true);
  }

  s16(at) {
    return this.view.getInt16(at, true);
  }

  u32(at) {
    return this.view.getUint32(at, true);
  }

  s32(at) {
    return this.view.getInt32(at, true);
  }

  u64(at) {
    return this.view.getBigUint64(at, true);
  }

  s64(at) {
    return this.view.getBigInt64(at, true);
  }

  f32(at) {
    return this.view.getFloat32(at, true);
  }

  f64(at) {
    return this.view.getFloat64(at, true);
  }

  bool(at) {
    const value = this.view.getUint8(at);
    if (value > 1) {
      this.fail('a bool');
    }
    return value === 1;
  }

  char(at) {
    const code = this.view.getUint32(at, true);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      this.fail('a char');
    }
    return String.fromCodePoint(code);
  }

  /** The position of a tail of `count` elements of `size` bytes. */
  #tail(at, count, size, align) {
    const offset = this.view.getUint32(at, true);
    const first = this.#base + offset;
    if (count === 0) {
      return offset === 0 ? first : this.fail('an empty list');
    }
    if (first < this.#floor || offset % align !== 0 || first + count * size > this.#limit) {
      this.fail('a list is outside of it');
    }
    this.#floor = first + count * size;
    return first;
  }

  string(at) {
    const length = this.view.getUint32(at + 4, true);
    const first = this.#tail(at, length, 1, 1);
    const end = first + length;
    if (length > SHORT) {
      return this.bytes.toString('utf8', first, end);
    }
    let text = '';
    for (let i = first; i < end; i++) {
      const byte = this.bytes[i];
      if (byte > 0x7f) {
        return this.bytes.toString('utf8', first, end);
      }
      text += ASCII[byte];
    }
    return text;
  }

  /** A list of numbers, as a typed array. `type` is a key of `NUMBERS`. */
  numbers(at, type) {
    const [size, TypedArray] = NUMBERS[type];
    const length = this.view.getUint32(at + 4, true);
    const first = this.#tail(at, length, size, size);
    return length === 0
      ? new TypedArray(0)
      : new TypedArray(this.buffer.slice(first, first + length * size));
  }

  /** `list<u8>`. */
  blob(at) {
    return this.numbers(at, 'u8');
  }

  /** Any other list. `get(reader, position)` reads an element of `size` bytes. */
  list(at, size, align, get) {
    const length = this.view.getUint32(at + 4, true);
    return this.fixed(this.#tail(at, length, size, align), length, size, get);
  }

  /** `list<T, N>`: `count` elements in place. */
  fixed(first, count, size, get) {
    const values = [];
    for (let i = 0; i < count; i++) {
      values.push(get(this, first + i * size));
    }
    return values;
  }

  option(at, offset, get) {
    return this.bool(at) ? get(this, at + offset) : undefined;
  }

  /** The number of a case, which is below `count`. `size` is 1, 2 or 4. */
  discriminant(at, count, size) {
    const number = this.bytes.readUIntLE(at, size);
    return number < count ? number : this.fail('an unknown case');
  }

  enumeration(at, names, size) {
    return names[this.discriminant(at, names.length, size)];
  }

  flags(at, names, size) {
    const bits = this.bytes.readUIntLE(at, size);
    if (bits >= 2 ** names.length) {
      this.fail('an unknown flag');
    }
    return Object.fromEntries(names.map((name, bit) => [name, (bits >>> bit) % 2 === 1]));
  }

  /** A resource, stream or future: `Type.of(port, number, client)`. */
  handle(at, make) {
    const index = this.view.getUint32(at, true);
    if (index >= this.#handles || index !== this.#handlesMet) {
      this.fail('a handle');
    }
    this.#handlesMet += 1;
    const number = this.view.getBigUint64(this.#base + HEADER + 8 * index, true);
    return make(this.port, number, this.client, this.method);
  }

  /** Closes all handles of a message at `start`, which was not read. */
  discard(start, length) {
    if (length < HEADER) {
      return;
    }
    const handles = Math.min(this.view.getUint32(start + 8, true), (length - HEADER) >>> 3);
    for (let i = 0; i < handles; i++) {
      this.port.native.close(this.view.getBigUint64(start + HEADER + 8 * i, true));
    }
  }
}
