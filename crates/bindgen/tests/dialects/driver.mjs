// Reads lines `ROOT HEX VERDICT` and compares the verdict of the generated code: `-` malformed, `+`
// well-formed, `=` also the bytes that the writer writes for its value.
import assert from 'node:assert';
import { readFileSync } from 'node:fs';

import { roots } from './codec.mjs';
import { Malformed, Message, Writer } from './runtime.mjs';

const writer = new Writer();

function read(root, bytes) {
  const message = new Message(bytes);
  const at = message.open(root.layout, root.size);
  root.check(message, at);
  message.close();
  return root.get(message, at);
}

let count = 0;
for (const line of readFileSync(process.argv[2], 'utf8').trimEnd().split('\n')) {
  const [name, hex, verdict] = line.split(' ');
  const root = roots[name];
  const bytes = new Uint8Array(Buffer.from(hex, 'hex'));
  let value;
  try {
    value = read(root, bytes);
  } catch (error) {
    assert(error instanceof Malformed, error);
    assert.strictEqual(verdict, '-', `${line}: ${error.message}`);
    count++;
    continue;
  }
  assert.notStrictEqual(verdict, '-', line);
  const at = writer.begin(root.layout, 0, root.size);
  root.put(writer, at, value);
  const written = writer.end();
  if (verdict === '=') {
    assert.strictEqual(Buffer.from(written).toString('hex'), hex, line);
  }
  assert.deepStrictEqual(read(root, written), value, line);
  count++;
}

// Wrong values are refused.
for (const [name, values] of [
  ['echo-u8:reply', [-1, 256, 1.5, '1', 1n, undefined]],
  ['echo-s64:reply', [1, 2n ** 63n, '1']],
  ['echo-bool:reply', [0, 'true', null]],
  ['echo-char:reply', ['', 'ab', '\ud800', 7]],
  ['echo-string:reply', ['\ud800', 'a much longer text with a lone surrogate: \udc00', 7, null]],
  ['echo-numbers:reply', [[1], [2n ** 63n], 7, 'text', null]],
  ['echo-strings:reply', [[7], ['a', undefined], 'text', { length: 2 ** 40 }]],
  ['echo-color:reply', ['purple', 0, undefined]],
  ['echo-rights:reply', [8, -1, 'read']],
  ['echo-shape:reply', [{ tag: 'square' }, { tag: 'circle', value: 'wide' }, {}]],
  ['echo-three:reply', [[1n, 2n], [1n, 2n, 3n, 4n], 'abc']],
]) {
  const root = roots[name];
  for (const value of values) {
    const at = writer.begin(root.layout, 0, root.size);
    const put = () => root.put(writer, at, [value]);
    assert.throws(put, (error) => error instanceof TypeError || error instanceof RangeError, name);
  }
}
console.log(count);
