// Values in both directions, and values that are refused.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Conformance } from '../../../conformance/generated/node/conformance.js';
import { Echo } from '../../../examples/echo/generated/node/echo.js';
import { BadArgument } from '../lib/index.js';
import { library } from './support.js';

const client = Conformance.open(library('conformance'));
const echo = Echo.open(library('echo'));
after(() => {
  client.close();
  echo.close();
});

/** The call is refused by an error that matches, and the client is usable afterwards. */
async function refused(promise, pattern) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof BadArgument, String(error));
    assert.equal(error.code, 'argument');
    assert.equal(error.retryable, false);
    assert.match(error.message, pattern);
    return true;
  });
  assert.equal(await client.echoU8(7), 7);
}

const VALUES = {
  bool: [true, false],
  u8: [0, 255],
  s8: [-128, 127],
  u16: [0, 65535],
  s16: [-32768, 32767],
  u32: [0, 4294967295],
  s32: [-2147483648, 2147483647],
  u64: [0n, 2n ** 64n - 1n],
  s64: [-(2n ** 63n), 2n ** 63n - 1n],
  f32: [0, -1.5, Infinity, NaN],
  f64: [0.1, -1e308, NaN],
  char: ['a', 'ß', '☃', '𐍈'],
  string: [
    '',
    'a',
    'twelve bytes',
    'thirteen byte',
    'ß',
    '☃'.repeat(9),
    '𐍈 and more than that',
    'x'.repeat(70_000),
    '\0',
  ],
};

for (const [type, values] of Object.entries(VALUES)) {
  test(`${type}_round_trip_returns_the_value`, async () => {
    for (const value of values) {
      assert.deepEqual(await client[`echo${type[0].toUpperCase()}${type.slice(1)}`](value), value);
    }
  });
}

test('lists_round_trip_returns_the_value', async () => {
  const bytes = Uint8Array.from([0, 255, 7]);
  assert.deepEqual(await client.echoBytes(bytes), bytes);
  assert.deepEqual(await client.echoBytes(new Uint8Array()), new Uint8Array());
  assert.deepEqual(await client.echoBytes(Buffer.from('abc')), Uint8Array.from([97, 98, 99]));
  const numbers = BigInt64Array.from([1n, -(2n ** 63n), 0n]);
  assert.deepEqual(await client.echoNumbers(numbers), numbers);
  assert.deepEqual(await client.echoNumbers([...numbers]), numbers);
  assert.deepEqual(await client.echoFloats([0.5, -1]), Float64Array.from([0.5, -1]));
  const texts = ['', 'a', 'ß☃', 'x'.repeat(100)];
  assert.deepEqual(await client.echoStrings(texts), texts);
  assert.deepEqual(await client.echoThree([1n, 2n, 3n]), [1n, 2n, 3n]);
});

test('parts_of_a_typed_array_are_sent_alone', async () => {
  const whole = BigInt64Array.from([1n, 2n, 3n, 4n]);
  assert.deepEqual(await client.echoNumbers(whole.subarray(1, 3)), BigInt64Array.from([2n, 3n]));
});

test('options_records_and_variants_round_trip', async () => {
  assert.equal(await client.echoOption(undefined), undefined);
  assert.equal(await client.echoOption(null), undefined);
  assert.equal(await client.echoOption('text'), 'text');
  assert.deepEqual(await client.echoPoint({ x: 1, y: -2 }), { x: 1, y: -2 });
  const shapes = [
    { tag: 'circle', val: 1.5 },
    { tag: 'label', val: 'a label of some length' },
    { tag: 'polygon', val: [{ x: 1, y: 2 }] },
    { tag: 'nothing' },
  ];
  assert.deepEqual(await client.echoShapes(shapes), shapes);
  assert.equal(await client.echoColor('green'), 'green');
  const rights = { read: true, write: false, record: true };
  assert.deepEqual(await client.echoRights(rights), rights);
  assert.deepEqual(await client.echoRights({}), { read: false, write: false, record: false });
});

test('messages_larger_than_the_buffers_arrive_whole', async () => {
  for (const size of [65_000, 262_144, 300_000, 3_000_000]) {
    const bytes = new Uint8Array(size).fill(size % 251);
    assert.deepEqual(await client.echoBytes(bytes), bytes);
  }
  const both = await Promise.all([client.echoBytes(new Uint8Array(200_000)), client.echoU8(1)]);
  assert.equal(both[0].length, 200_000);
});

test('results_stay_valid_after_further_calls', async () => {
  const bytes = await client.echoBytes(Uint8Array.from([1, 2, 3]));
  const text = await client.echoString('the first text of some length');
  await Promise.all(
    Array.from({ length: 100 }, (_, i) => client.echoBytes(new Uint8Array(100).fill(i))),
  );
  assert.deepEqual(bytes, Uint8Array.from([1, 2, 3]));
  assert.equal(text, 'the first text of some length');
});

test('number_out_of_range_is_refused_by_name', async () => {
  await refused(client.echoU8(256), /echo-u8: value: expected an integer from 0 to 255, got 256/);
  await refused(client.echoU8(-1), /got -1/);
  await refused(client.echoU8(1.5), /got 1.5/);
  await refused(client.echoU8(NaN), /got NaN/);
  await refused(client.echoS64(2n ** 63n), /echo-s64: value: expected a bigint/);
  await refused(client.echoU64(-1n), /got -1/);
  await refused(client.echoU64(10n ** 1000n), /a longer bigint/);
});

test('value_of_another_type_is_refused_by_name', async () => {
  await refused(client.echoU8('1'), /value: expected an integer .* got "1"/);
  await refused(client.echoU64(1), /value: expected a bigint .* got 1/);
  await refused(client.echoBool(0), /value: expected a boolean, got 0/);
  await refused(client.echoChar('ab'), /value: expected a string with one character, got "ab"/);
  await refused(client.echoChar(''), /one character/);
  await refused(client.echoF64('1'), /expected a number/);
  await refused(client.echoString(undefined), /value: expected a string, got undefined/);
  await refused(client.echoString(Symbol('s')), /got a symbol/);
  await refused(client.echoBytes([1, 2]), /value: expected a Uint8Array, got an array/);
  await refused(client.echoNumbers(Int32Array.from([1])), /value: expected an array/);
  await refused(client.echoStrings(['a', 1]), /value\[1\]: expected a string, got 1/);
  await refused(client.echoStrings({ length: 1, 0: 'a' }), /expected an array, got an object/);
  await refused(client.echoColor('blue'), /value: expected one of red, green, bool, got "blue"/);
  await refused(client.echoRights({ read: 1 }), /value.read: expected a boolean, got 1/);
  await refused(client.echoThree([1n]), /value: expected 3 elements, got 1/);
  await refused(client.echoShapes([{ tag: 'sphere' }]), /value\[0\].tag: expected one of/);
  await refused(client.echoShapes([null]), /value\[0\]: expected an object, got null/);
});

test('missing_field_is_refused_by_name', async () => {
  const timer = await echo.timer('t');
  await refused(
    client.echoPoint({ x: 1 }),
    /echo-point: value.y: expected an integer .* got undefined/,
  );
  await refused(timer.echo({ message: 'a' }), /timer.echo: request.delayMs: expected an integer/);
  await refused(
    timer.complex({ messages: [{ message: 'a', delayMs: 1 }, {}], tags: [] }),
    /request.messages\[1\].message: expected a string, got undefined/,
  );
  timer.close();
});

test('lone_surrogate_is_refused_by_name', async () => {
  for (const text of ['\ud800', 'a\udfff', `${'x'.repeat(100)}\ud800`]) {
    await refused(client.echoString(text), /value: expected a string without lone surrogates/);
  }
  await refused(client.echoChar('\ud800'), /value: expected a string with one character/);
});

test('detached_buffer_is_refused_by_name', async () => {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  await refused(
    client.echoBytes(bytes),
    /value: expected a typed array, got "one with a detached buffer"/,
  );
  const numbers = new BigInt64Array(2);
  structuredClone(numbers.buffer, { transfer: [numbers.buffer] });
  await refused(client.echoNumbers(numbers), /detached buffer/);
});

test('getter_that_throws_is_refused_by_name_with_its_cause', async () => {
  const cause = new RangeError('out of luck');
  const value = {
    x: 1,
    get y() {
      throw cause;
    },
  };
  await assert.rejects(client.echoPoint(value), (error) => {
    assert.ok(error instanceof BadArgument);
    assert.match(error.message, /echo-point: value: out of luck/);
    assert.equal(error.cause, cause);
    return true;
  });
  await refused(
    client.echoStrings(
      new Proxy(['a'], {
        get: () => {
          throw 'a string';
        },
      }),
    ),
    /echo-strings: /,
  );
});

test('getter_that_calls_the_client_leaves_both_calls_intact', async () => {
  const inner = [];
  const value = {
    get x() {
      inner.push(client.echoString('inner, while the outer message is written'), client.twice(4));
      return 1;
    },
    get y() {
      inner.push(client.echoPoint({ x: 5, y: 6 }));
      return 2;
    },
  };
  const before = client.echoU8(1);
  const outer = client.echoPoint(value);
  assert.equal(await before, 1);
  assert.deepEqual(await outer, { x: 1, y: 2 });
  assert.deepEqual(await Promise.all(inner), [
    'inner, while the outer message is written',
    8n,
    { x: 5, y: 6 },
  ]);
});

test('getter_that_closes_the_client_fails_the_call', async () => {
  const other = Conformance.open(library('conformance'));
  const value = {
    x: 1,
    get y() {
      other.close();
      return 2;
    },
  };
  await assert.rejects(other.echoPoint(value), { code: 'closed' });
  await assert.rejects(other.echoU8(1), {
    code: 'closed',
    message: /the client or resource is closed/,
  });
});

test('array_that_shrinks_while_it_is_read_is_refused', async () => {
  const list = [
    { x: 1, y: 1 },
    { x: 2, y: 2 },
    { x: 3, y: 3 },
  ];
  const shape = {
    tag: 'polygon',
    val: [
      {
        get x() {
          shape.val.length = 1;
          return 1;
        },
        y: 1,
      },
      ...list,
    ],
  };
  await refused(
    client.echoShapes([shape]),
    /value\[0\].val\[1\]: expected an object, got undefined/,
  );
});

test('options_of_another_type_are_refused_by_name', async () => {
  await refused(client.echoU8(1, 5), /options: expected an object/);
  await refused(client.echoU8(1, { timeout: -1 }), /timeout: expected a number/);
  await refused(client.echoU8(1, { timeout: NaN }), /timeout: expected a number/);
  await refused(client.echoU8(1, { timeout: '1' }), /timeout: expected a number/);
  await refused(client.echoU8(1, { signal: {} }), /signal: expected an AbortSignal/);
  await refused(client.never({ onNotice: 1 }), /onNotice: expected a function/);
});

test('options_with_getters_that_throw_are_refused_by_name', async () => {
  const cause = new Error('out of luck');
  const throws = (name) => Object.defineProperty({}, name, { get: () => assert.fail(cause) });
  await refused(client.echoU8(1, throws('timeout')), /echo-u8: options: out of luck/);
  await refused(client.echoU8(1, throws('signal')), /echo-u8: options: out of luck/);
  const fake = Object.create(AbortSignal.prototype);
  await refused(client.echoU8(1, { signal: fake }), /echo-u8: options: /);
  assert.throws(() => Conformance.open(library('conformance'), throws('host')), {
    code: 'argument',
    message: /Conformance: options: out of luck/,
  });
  const stream = await client.count(0n, 1n);
  await assert.rejects(stream.batches(throws('max')).next(), {
    code: 'argument',
    message: /count: options: out of luck/,
  });
});

test('thrown_proxy_is_refused_by_name', async () => {
  const trap = () => {
    throw new Error('a trap');
  };
  const thrown = new Proxy(() => {}, { get: trap, getPrototypeOf: trap, has: trap });
  const value = {
    x: 1,
    get y() {
      throw thrown;
    },
  };
  await refused(client.echoPoint(value), /echo-point: value: an exception without a text/);
  const { proxy, revoke } = Proxy.revocable([], {});
  revoke();
  await refused(client.echoStrings(proxy), /echo-strings: /);
  await refused(client.echoPoint(proxy), /echo-point: value: /);
  await refused(client.sumOf(proxy), /sum-of: /);
  await refused(client.echoU8(proxy), /echo-u8: /);
});

test('getter_that_aborts_the_signal_of_its_call_cancels_it', async () => {
  const controller = new AbortController();
  const value = {
    x: 1,
    get y() {
      controller.abort();
      return 2;
    },
  };
  await assert.rejects(client.echoPoint(value, { signal: controller.signal }), {
    name: 'AbortError',
  });
  assert.equal(await client.echoU8(7), 7);
});

test('object_of_another_class_is_refused_by_name', async () => {
  const [left, timer] = [await client.counter(1n), await echo.timer('t')];
  await refused(
    client.counterSum(left, {}),
    /counter.sum: right: expected an open Counter, got an object/,
  );
  await refused(client.counterSum(left, timer), /right: expected an open Counter/);
  await refused(client.counterSum(left, structuredClone(left)), /right: expected an open Counter/);
  await refused(
    Conformance.prototype.echoU8.call({}, 1),
    /expected an object that this thread has opened/,
  );
  assert.throws(() => new Conformance(), BadArgument);
  left.close();
  await assert.rejects(client.counterSum(left, left), {
    code: 'closed',
    message: /counter.sum: left is closed/,
  });
  timer.close();
});
