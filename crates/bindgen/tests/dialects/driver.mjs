// Reads lines `ROOT HEX VERDICT` and compares the verdict of the generated code: `-` malformed, `?`
// either, `+` well-formed, `=` also the bytes that the writer writes for its value.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { BadArgument, Reader, Writer } from 'thalweg/generated';
import { Conformance } from './conformance.js';

const client = new Conformance();
const writer = new Writer(64);

/** The method with the result ROOT, and the function that takes the same value, if there is one. */
function find(root) {
  const name = root.replace(':reply', '');
  const method = Conformance.package.methods.get(`conformance.${name}`);
  const echo = name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  return { method, echo: name.startsWith('echo-') ? echo : undefined };
}

function layoutOf(method) {
  return Number(method.hashes[1] & 0xffff_ffffn);
}

function read(method, bytes) {
  const reader = new Reader(bytes.buffer);
  reader.method = method;
  const { size, get } = method.ok;
  const root = reader.open(0, bytes.length, layoutOf(method), size);
  const value = get(reader, root);
  reader.close();
  return value;
}

/** The message of the arguments, with the layout of the result: a record of one field is the same. */
function write({ method, put }) {
  writer.clear();
  const root = writer.begin(method.name, layoutOf(method), 0, method.params);
  put(writer, root);
  writer.end();
  return new Uint8Array(writer.buffer.slice(writer.start, writer.start + writer.size));
}

let count = 0;
let written = 0;
for (const line of readFileSync(process.argv[2], 'utf8').trimEnd().split('\n')) {
  const [root, hex, verdict] = line.split(' ');
  const { method, echo } = find(root);
  count++;
  let value;
  try {
    value = read(method, new Uint8Array(Buffer.from(hex, 'hex')));
  } catch (error) {
    assert(error instanceof BadArgument, error);
    assert('-?'.includes(verdict), `${line}: ${error.message}`);
    continue;
  }
  assert.notEqual(verdict, '-', line);
  if (echo !== undefined && verdict !== '?') {
    const bytes = write(client[echo](value));
    if (verdict === '=') {
      assert.equal(Buffer.from(bytes).toString('hex'), hex, line);
    }
    assert.deepEqual(read(method, bytes), value, line);
    written++;
  }
}
assert(written > 1000, `${written} messages were written`);

// Wrong values are refused, and the error names the function.
for (const [name, values] of [
  ['echoU8', [-1, 256, 1.5, '1', 1n, undefined]],
  ['echoS64', [1, 2n ** 63n, '1']],
  ['echoBool', [0, 'true', null]],
  ['echoChar', ['', 'ab', '\ud800', 7]],
  ['echoString', ['\ud800', 'a much longer text with a lone surrogate: \udc00', 7, null]],
  ['echoNumbers', [[1], [2n ** 63n], 7, 'text', null]],
  ['echoStrings', [[7], ['a', undefined], 'text', { length: 2 ** 40 }]],
  ['echoGrid', [[[1.5]], [7]]],
  ['echoOptionTwice', [7, { some: 'text' }]],
  ['echoResult', [[], [{ tag: 'error', val: '' }], [{ tag: 'ok', val: 1 }], { tag: 'ok' }]],
  ['echoTuple', [[1, 'a', 0.5], [1, 'a', 0.5, 'bc'], 'text']],
  ['echoColor', ['purple', 0, undefined]],
  ['echoRights', [8, 'read', { read: 1 }]],
  ['echoShape', [{ tag: 'square' }, { tag: 'circle', val: 'wide' }, {}, null]],
  ['echoThree', [[1n, 2n], [1n, 2n, 3n, 4n], 'abc']],
]) {
  for (const value of values) {
    const named = (error) => error instanceof BadArgument && error.message.includes('echo-');
    assert.throws(() => write(client[name](value)), named, name);
  }
}
console.log(count);
