// Values in JSON, as conformance/README.md describes them, and as the generated code has them.
import { NoValue, Stream } from 'thalweg';

import { NUMBERS } from '../../bindings/node/lib/writer.js';

/** How a number of this size is written, bit by bit. */
const SETTERS = { 1: 'setUint8', 2: 'setUint16', 4: 'setUint32', 8: 'setBigUint64' };

/** `delay-ms` is `delayMs`. */
export function camel(name) {
  return name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
}

/**
 * Parses the description of a type, which docs/internals/boundary.md defines. `list<u8>` has `parts`
 * with the types between the brackets, `record{a:u8}` has `fields` with `name` and `type`.
 */
export function parse(text) {
  const tokens = text.match(/[a-zA-Z0-9-]+|./g) ?? [];
  let next = 0;
  const several = (end, each) => {
    const all = [];
    for (next += 1; tokens[next] !== end; ) {
      next += tokens[next] === ',' ? 1 : 0;
      all.push(each());
    }
    next += 1;
    return all;
  };
  const field = () => {
    const name = tokens[next++];
    if (tokens[next] !== ':' && tokens[next] !== '(') {
      return { name };
    }
    const isCase = tokens[next++] === '(';
    const type = one();
    next += isCase ? 1 : 0;
    return { name, type };
  };
  const one = () => {
    const kind = tokens[next++] ?? '_';
    if (tokens[next] === '<') {
      return { kind, parts: several('>', one) };
    }
    return tokens[next] === '{' ? { kind, fields: several('}', field) } : { kind };
  };
  return one();
}

/** A value of a parameter. `kept` has the resources by name. */
export function argument(type, json, kept) {
  if (type.kind === 'future') {
    return json === null ? new NoValue() : Promise.resolve(value(type.parts[0], json.some, kept));
  }
  return value(type, json, kept);
}

/** A value from JSON. A stream is an array of its elements, and a future is its value. */
export function value(type, json, kept) {
  const { kind, parts, fields } = type;
  const part = (of, item) => value(of, item, kept);
  switch (kind) {
    case '_':
      return undefined;
    case 'string':
      return repeated(json);
    case 'u64':
    case 's64':
      return BigInt(json);
    case 'f32':
    case 'f64':
      return numbers(kind, [json])[0];
    case 'list':
      return list(type, json, kept);
    case 'stream':
      return repeated(json, true).map((item) => part(parts[0], item));
    case 'future':
      return part(parts[0], json);
    case 'tuple':
      return json.map((item, i) => part(parts[i], item));
    case 'option': {
      const some = json === null ? undefined : part(parts[0], json.some);
      return json !== null && parts[0].kind === 'option' ? { some } : some;
    }
    case 'result': {
      const isOk = 'ok' in json;
      const of = parts[isOk ? 0 : 1];
      const tag = isOk ? 'ok' : 'err';
      const val = part(of, isOk ? json.ok : json.error);
      return of.kind === '_' ? { tag } : { tag, val };
    }
    case 'record':
      return Object.fromEntries(fields.map((f) => [camel(f.name), part(f.type, json[f.name])]));
    case 'variant': {
      const { type: payload } = fields.find(({ name }) => name === json.case);
      return payload ? { tag: json.case, val: part(payload, json.value) } : { tag: json.case };
    }
    case 'flags':
      return Object.fromEntries(fields.map(({ name }) => [camel(name), json.includes(name)]));
    case 'own':
    case 'borrow':
      return kept.get(json.resource);
    default:
      return json; // bool, char, small numbers, an enum
  }
}

/** `{ repeat, count }`: an array with elements, or a text, or hex. */
function repeated(json, isArray = false) {
  if (typeof json !== 'object' || !('repeat' in json)) {
    return json;
  }
  const { repeat, count } = json;
  return isArray ? Array(count).fill(repeat) : repeat.repeat(count);
}

function list({ parts: [element, count] }, json, kept) {
  if (element.kind === 'u8') {
    const bytes = Uint8Array.from(Buffer.from(repeated(json), 'hex'));
    return count === undefined ? bytes : [...bytes];
  }
  const all = repeated(json, true);
  return count === undefined && element.kind in NUMBERS
    ? numbers(element.kind, all)
    : all.map((item) => value(element, item, kept));
}

/** A typed array. It is filled byte by byte, because a plain array does not keep the bits of a NaN. */
function numbers(kind, all) {
  const [size, TypedArray] = NUMBERS[kind];
  const view = new DataView(new ArrayBuffer(size * all.length));
  all.forEach((json, i) => {
    view[SETTERS[size]](size * i, size === 8 ? BigInt(json) : Number(json), true);
  });
  return new TypedArray(view.buffer);
}

/** A result with each stream replaced by its elements, and each future by its value. */
export async function opened(given) {
  if (given instanceof Stream) {
    const elements = [];
    for await (const element of given) {
      elements.push(element);
    }
    return elements;
  }
  if (given instanceof Promise) {
    return given;
  }
  if (Array.isArray(given)) {
    return Promise.all(given.map(opened));
  }
  if (given?.constructor === Object) {
    const fields = Object.entries(given).map(async ([name, part]) => [name, await opened(part)]);
    return Object.fromEntries(await Promise.all(fields));
  }
  return given;
}

const scratch = new DataView(new ArrayBuffer(8));

function bits(number) {
  scratch.setFloat64(0, number);
  return scratch.getBigUint64(0);
}

/** Whether two values are equal and of the same types, bit for bit. */
export function same(left, right) {
  if (typeof left === 'number' && typeof right === 'number') {
    return bits(left) === bits(right);
  }
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) {
    return left === right;
  }
  if (left.constructor !== right.constructor) {
    return false;
  }
  if (ArrayBuffer.isView(left)) {
    const [a, b] = [left, right].map((v) => Buffer.from(v.buffer, v.byteOffset, v.byteLength));
    return a.equals(b);
  }
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => key in right && same(left[key], right[key]))
  );
}
