// The functions of the interface with their types, and the messages of calls. Generated code has no
// list of its functions, and the package hides the messages, so this module watches the package. It
// must be imported before the generated code.
import { Package } from '../../bindings/node/lib/package.js';
import { Reader } from '../../bindings/node/lib/reader.js';
import { Writer } from '../../bindings/node/lib/writer.js';
import { parse } from './values.js';

/** The functions by their name without the interface. */
export const methods = new Map();

const { method } = Package.prototype;
Package.prototype.method = function (described) {
  const known = method.call(this, described);
  const name = described.name.slice(described.name.indexOf('.') + 1);
  const [params, ok, error, element] = described.types.map(parse);
  methods.set(name, { known, params, ok, error, element });
  return known;
};

let watched;
let forged;

/** The first message that is written from now on, and the first one that is read, in hex. */
export function watch() {
  watched = { written: undefined, read: undefined };
  return watched;
}

/** The next message consists of these bytes instead. */
export function forge(bytes) {
  forged = bytes;
}

const { end } = Writer.prototype;
Writer.prototype.end = function () {
  end.call(this);
  const { start } = this;
  if (forged !== undefined) {
    this.bytes.fill(0, start, this.position);
    this.position = start;
    this.reserve(forged.length, 1);
    this.bytes.set(forged, start);
    this.size = forged.length;
    this.position = (this.position + 7) & ~7;
    forged = undefined;
  }
  if (watched !== undefined) {
    watched.written ??= this.bytes.toString('hex', start, start + this.size);
  }
};

const { open } = Reader.prototype;
Reader.prototype.open = function (start, length, ...rest) {
  if (watched !== undefined) {
    watched.read ??= this.bytes.toString('hex', start, start + length);
    watched = undefined;
  }
  return open.call(this, start, length, ...rest);
};
