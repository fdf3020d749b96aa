// The part of a JavaScript codec that does not depend on types: a writer, and a message that is
// checked and then read. Both use one ArrayBuffer, which the caller can share with the core.

const HEADER = 16;
const MAX_SIZE = 0x7fffffff;
const MAX_UNSIZED = 65_536;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

export class Malformed extends Error {}

/** Writes a message. A wrong value raises a TypeError or a RangeError. */
export class Writer {
  #grow(end) {
    if (end > MAX_SIZE) {
      throw new RangeError('the message is too large');
    }
    if (!this.bytes || end > this.bytes.length) {
      const bytes = new Uint8Array(Math.min(MAX_SIZE, Math.max(1024, 2 * end)));
      bytes.set(this.bytes?.subarray(0, this.next) ?? []);
      this.bytes = bytes;
      this.view = new DataView(bytes.buffer);
    }
  }

  /** Begins a message. Returns the offset of its root. */
  begin(layout, handles, size) {
    const root = HEADER + 8 * handles;
    this.next = 0;
    this.#grow(root + size);
    this.bytes.fill(0, 0, root + size);
    this.next = root + size;
    this.used = 0;
    this.handles = handles;
    this.view.setUint32(4, layout, true);
    this.view.setUint32(8, handles, true);
    this.view.setUint32(12, root, true);
    return root;
  }

  /** Ends the message. */
  end() {
    this.view.setUint32(0, this.next, true);
    return this.bytes.subarray(0, this.next);
  }

  fail(what) {
    throw new TypeError(what);
  }

  #integer(value, least, most) {
    if (!Number.isInteger(value)) {
      throw new TypeError('an integer is expected');
    }
    if (value < least || value > most) {
      throw new RangeError(`${value} is not in ${least} .. ${most}`);
    }
    return value;
  }

  #long(value, least, most) {
    if (typeof value !== 'bigint') {
      throw new TypeError('a bigint is expected');
    }
    if (value < least || value > most) {
      throw new RangeError(`${value} is not in ${least} .. ${most}`);
    }
    return value;
  }

  #float(value) {
    if (typeof value !== 'number') {
      throw new TypeError('a number is expected');
    }
    return value;
  }

  bool(at, value) {
    if (typeof value !== 'boolean') {
      throw new TypeError('a boolean is expected');
    }
    this.bytes[at] = value ? 1 : 0;
  }

  u8(at, value) {
    this.bytes[at] = this.#integer(value, 0, 0xff);
  }

  u16(at, value) {
    this.view.setUint16(at, this.#integer(value, 0, 0xffff), true);
  }

  u32(at, value) {
    this.view.setUint32(at, this.#integer(value, 0, 0xffffffff), true);
  }

  u64(at, value) {
    this.view.setBigUint64(at, this.#long(value, 0n, 2n ** 64n - 1n), true);
  }

  s8(at, value) {
    this.view.setInt8(at, this.#integer(value, -0x80, 0x7f));
  }

  s16(at, value) {
    this.view.setInt16(at, this.#integer(value, -0x8000, 0x7fff), true);
  }

  s32(at, value) {
    this.view.setInt32(at, this.#integer(value, -0x80000000, 0x7fffffff), true);
  }

  s64(at, value) {
    this.view.setBigInt64(at, this.#long(value, -(2n ** 63n), 2n ** 63n - 1n), true);
  }

  f32(at, value) {
    this.view.setFloat32(at, this.#float(value), true);
  }

  f64(at, value) {
    this.view.setFloat64(at, this.#float(value), true);
  }

  char(at, value) {
    const code = typeof value === 'string' ? value.codePointAt(0) : undefined;
    if (code === undefined || String.fromCodePoint(code) !== value || !value.isWellFormed()) {
      throw new TypeError('one Unicode scalar value is expected');
    }
    this.view.setUint32(at, code, true);
  }

  /** The bits of `count` flags. */
  flags(value, count) {
    return this.#integer(value, 0, 2 ** count - 1);
  }

  length(value) {
    if (!Array.isArray(value) && !ArrayBuffer.isView(value)) {
      throw new TypeError('an array is expected');
    }
    return value.length;
  }

  exactly(value, count) {
    if (this.length(value) !== count) {
      throw new RangeError(`${count} elements are expected`);
    }
  }

  text(at, value) {
    if (typeof value !== 'string') {
      throw new TypeError('a string is expected');
    }
    const length = value.length;
    if (length === 0) {
      return;
    }
    const first = this.next;
    this.#grow(first + 3 * length);
    let written = 0;
    // A call of the encoder takes longer than a few letters.
    if (length <= 32) {
      for (; written < length; written++) {
        const code = value.charCodeAt(written);
        if (code >= 0x80) {
          break;
        }
        this.bytes[first + written] = code;
      }
    }
    if (written < length) {
      if (!value.isWellFormed()) {
        throw new TypeError('a string without lone surrogates is expected');
      }
      written = encoder.encodeInto(value, this.bytes.subarray(first)).written;
    }
    this.next = first + written;
    this.view.setUint32(at, first, true);
    this.view.setUint32(at + 4, written, true);
  }

  list(at, count, size, align) {
    if (count === 0) {
      return 0;
    }
    if (size === 0) {
      if (count > MAX_UNSIZED) {
        throw new RangeError('the list is too long');
      }
      this.view.setUint32(at + 4, count, true);
      return 0;
    }
    const first = Math.ceil(this.next / align) * align;
    const end = first + count * size;
    this.#grow(end);
    this.bytes.fill(0, this.next, end);
    this.next = end;
    this.view.setUint32(at, first, true);
    this.view.setUint32(at + 4, count, true);
    return first;
  }

  /** The numbers as a typed array, which must represent them. */
  #typed(value, Type) {
    if (value instanceof Type) {
      return value;
    }
    this.length(value);
    const items = Type.from(value);
    const isFloat = Type === Float32Array || Type === Float64Array;
    for (let i = 0; i < items.length; i++) {
      if (isFloat ? typeof value[i] !== 'number' : items[i] !== value[i]) {
        throw new RangeError(`element ${i} is not a number of the list`);
      }
    }
    return items;
  }

  #copy(items, first) {
    this.bytes.set(new Uint8Array(items.buffer, items.byteOffset, items.byteLength), first);
  }

  numbers(at, value, Type) {
    const items = this.#typed(value, Type);
    const size = Type.BYTES_PER_ELEMENT;
    const first = this.list(at, items.length, size, size);
    if (items.length > 0) {
      this.#copy(items, first);
    }
  }

  array(at, value, Type, count) {
    this.exactly(value, count);
    this.#copy(this.#typed(value, Type), at);
  }

  handle(at, value) {
    const index = this.used++;
    if (index < this.handles) {
      this.view.setBigUint64(HEADER + 8 * index, value, true);
      this.view.setUint32(at, index, true);
    }
  }
}

/** A message that is checked and then read. */
export class Message {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Checks the header. Returns the offset of the root, which has `size` bytes. */
  open(layout, size) {
    const length = this.bytes.length;
    if (length < HEADER || length > MAX_SIZE || this.u32(0) !== length || this.u32(4) !== layout) {
      throw new Malformed('header');
    }
    this.handles = this.u32(8);
    this.met = 0;
    const root = HEADER + 8 * this.handles;
    if (this.u32(12) !== root || root + size > length) {
      throw new Malformed('root');
    }
    this.floor = root + size;
    return root;
  }

  /** After the check of the root. */
  close() {
    if (this.met !== this.handles) {
      throw new Malformed('handles');
    }
  }

  bool(at) {
    return this.bytes[at] !== 0;
  }

  u8(at) {
    return this.bytes[at];
  }

  u16(at) {
    return this.view.getUint16(at, true);
  }

  u32(at) {
    return this.view.getUint32(at, true);
  }

  u64(at) {
    return this.view.getBigUint64(at, true);
  }

  s8(at) {
    return this.view.getInt8(at);
  }

  s16(at) {
    return this.view.getInt16(at, true);
  }

  s32(at) {
    return this.view.getInt32(at, true);
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

  char(at) {
    return String.fromCodePoint(this.u32(at));
  }

  text(at) {
    const first = this.u32(at);
    const end = first + this.u32(at + 4);
    // A call of the decoder takes longer than a few letters.
    if (end - first <= 16) {
      let text = '';
      let next = first;
      for (; next < end && this.bytes[next] < 0x80; next++) {
        text += String.fromCharCode(this.bytes[next]);
      }
      if (next === end) {
        return text;
      }
    }
    return decoder.decode(this.bytes.subarray(first, end));
  }

  #copy(first, Type, count) {
    const start = this.bytes.byteOffset + first;
    const end = start + count * Type.BYTES_PER_ELEMENT;
    return new Type(this.bytes.buffer.slice(start, end));
  }

  numbers(at, Type) {
    return this.#copy(this.u32(at), Type, this.u32(at + 4));
  }

  array(at, Type, count) {
    return this.#copy(at, Type, count);
  }

  handle(at) {
    return this.u64(HEADER + 8 * this.u32(at));
  }

  checkBool(at) {
    if (this.bytes[at] > 1) {
      throw new Malformed('bool');
    }
  }

  checkChar(at) {
    const code = this.u32(at);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      throw new Malformed('char');
    }
  }

  checkList(at, size, align) {
    const first = this.u32(at);
    const count = this.u32(at + 4);
    if (count === 0 || size === 0) {
      if (first !== 0 || count > MAX_UNSIZED) {
        throw new Malformed('empty list');
      }
      return count;
    }
    const end = first + count * size;
    if (first % align !== 0 || first < this.floor || end > this.bytes.length) {
      throw new Malformed('list');
    }
    this.floor = end;
    return count;
  }

  checkText(at) {
    const count = this.checkList(at, 1, 1);
    const first = this.u32(at);
    try {
      decoder.decode(this.bytes.subarray(first, first + count));
    } catch {
      throw new Malformed('UTF-8');
    }
  }

  #number(at, size) {
    return size === 1 ? this.u8(at) : size === 2 ? this.u16(at) : this.u32(at);
  }

  checkTag(at, size, count) {
    const tag = this.#number(at, size);
    if (tag >= count) {
      throw new Malformed('discriminant');
    }
    return tag;
  }

  checkFlags(at, size, count) {
    if (this.#number(at, size) >= 2 ** count) {
      throw new Malformed('flags');
    }
  }

  checkHandle(at) {
    if (this.u32(at) !== this.met || this.met >= this.handles) {
      throw new Malformed('handles');
    }
    this.met++;
  }
}
