// Streams and futures that are parameters, and host imports.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Conformance } from '../../../conformance/generated/node/conformance.js';
import { BadArgument, NoValue, ServiceError } from '../lib/index.js';
import { delay, library, until } from './support.js';

const client = Conformance.open(library('conformance'));
after(() => client.close());

const numbers = (count) => Array.from({ length: count }, (_, i) => BigInt(i));

test('iterables_and_async_iterables_are_sent', async () => {
  const sum = 499_500n;
  assert.deepEqual(await client.sumOf(numbers(1000)), [1000n, sum]);
  assert.deepEqual(await client.sumOf(new Set(numbers(1000))), [1000n, sum]);
  async function* generate() {
    for (const number of numbers(1000)) {
      await null;
      yield number;
    }
  }
  assert.deepEqual(await client.sumOf(generate()), [1000n, sum]);
  assert.deepEqual(await client.sumOf([]), [0n, 0n]);
  assert.deepEqual(await client.sumOf(BigUint64Array.from([1n, 2n])), [2n, 3n]);
});

test('long_stream_waits_for_capacity', async () => {
  assert.deepEqual(await client.sumOf(numbers(20_000)), [20_000n, 199_990_000n]);
});

test('records_are_sent', async () => {
  const items = numbers(5).map((number) => ({
    number,
    name: `n${number}`,
    tags: [],
    blob: undefined,
  }));
  assert.equal(await client.namesOf(items), 'n0n1n2n3n4');
});

test('service_that_stops_reading_closes_the_iterator', async () => {
  let closed = false;
  let sent = 0;
  async function* generate() {
    try {
      for (;;) {
        sent += 1;
        yield BigInt(sent);
      }
    } finally {
      closed = true;
    }
  }
  const first = await client.firstNumbers(3, generate());
  assert.deepEqual(first, BigUint64Array.from([1n, 2n, 3n]));
  await until(() => closed);
});

test('iterator_that_waits_forever_is_closed_when_the_call_ends', async () => {
  let returned = false;
  const values = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => {
        returned = true;
        return { done: true, value: undefined };
      },
    }),
  };
  await assert.rejects(client.sumOf(values, { timeout: 20 }), { code: 'timed_out' });
  await until(() => returned);
});

test('iterable_that_throws_fails_the_call_by_name', async () => {
  const cause = new Error('no more');
  function* generate() {
    yield 1n;
    throw cause;
  }
  await assert.rejects(client.sumOf(generate()), (error) => {
    assert.ok(error instanceof BadArgument);
    assert.match(error.message, /sum-of: numbers: no more/);
    assert.equal(error.cause, cause);
    return true;
  });
  const iterable = {
    [Symbol.iterator]: () => {
      throw cause;
    },
  };
  await assert.rejects(client.sumOf(iterable), { code: 'argument', cause });
  await assert.rejects(client.sumOf({ [Symbol.iterator]: () => 1 }), { code: 'argument' });
  assert.deepEqual(await client.sumOf([1n]), [1n, 1n]);
});

test('element_of_another_type_fails_the_call_by_name', async () => {
  await assert.rejects(client.sumOf([1n, 2n, 3]), {
    code: 'argument',
    message: /sum-of: numbers\[2\]: expected a bigint .* got 3/,
  });
  await assert.rejects(client.sumOf('123'), {
    code: 'argument',
    message: /numbers: expected an iterable/,
  });
  await assert.rejects(client.sumOf(undefined), {
    code: 'argument',
    message: /numbers: expected an iterable/,
  });
});

test('iterable_that_calls_the_client_is_sent', async () => {
  async function* generate() {
    for (let i = 0; i < 50; i++) {
      yield client.echoU64(BigInt(i));
    }
  }
  assert.deepEqual(await client.sumOf(generate()), [50n, 1225n]);
  function* synchronous() {
    for (let i = 0n; i < 50n; i++) {
      client.echoU8(1);
      yield i;
    }
  }
  assert.deepEqual(await client.sumOf(synchronous()), [50n, 1225n]);
});

test('iterable_that_closes_the_client_ends_the_call', async () => {
  const other = Conformance.open(library('conformance'));
  let returned = false;
  function* generate() {
    try {
      yield 1n;
      other.close();
      for (;;) {
        yield 2n;
      }
    } finally {
      returned = true;
    }
  }
  // The service may see the end of the stream first, and answer with its code.
  await assert.rejects(
    other.sumOf(generate()),
    (error) => error.code === 'cancelled' || error.payload === 2,
  );
  await until(() => returned);
  assert.equal(await client.echoU8(1), 1);
});

test('refused_call_sends_nothing', async () => {
  const counter = await client.counter(1n);
  counter.close();
  let begun = false;
  const values = {
    *[Symbol.iterator]() {
      begun = true;
      yield 1n;
    },
  };
  await assert.rejects(client.addAll(counter, values), { code: 'closed' });
  await delay(5);
  assert.equal(begun, false);
  const open = await client.counter(1n);
  assert.equal(await client.addAll(open, [1n, 2n]), 4n);
  open.close();
});

test('future_parameter_accepts_a_value_or_a_promise', async () => {
  assert.equal(await client.hear('now'), 'now');
  assert.equal(await client.hear(delay(5).then(() => 'later')), 'later');
  await assert.rejects(client.hear(Promise.reject(new Error('broken'))), {
    code: 'argument',
    message: /hear: text: broken/,
  });
});

test('no_value_ends_a_future_parameter_without_a_value', async () => {
  const dropped = { code: 'error', payload: 2 };
  await assert.rejects(client.hear(new NoValue()), dropped);
  await assert.rejects(client.hear(delay(2).then(() => new NoValue())), dropped);
  await assert.rejects(client.hear(NoValue), { code: 'argument', message: /hear: text: / });
});

test('promise_that_settles_after_close_is_ignored', async () => {
  const other = Conformance.open(library('conformance'));
  let settle;
  const call = other.hear(
    new Promise((resolve) => {
      settle = resolve;
    }),
  );
  await delay(5);
  other.close();
  // The service may see the end of the future first, and answer with its code.
  await assert.rejects(call, (error) => error.code === 'cancelled' || error.payload === 2);
  settle('too late');
  await delay(5);
  assert.equal(await client.echoU8(1), 1);
});

const oracle = {
  async lookUp(key) {
    if (key % 2n === 1n) {
      throw new ServiceError(key);
    }
    return `text ${key}`;
  },
  tell(words, at) {
    return BigInt(words.join('').length + (at ?? 0));
  },
  nod() {},
};

function withHost(host) {
  return Conformance.open(library('conformance'), { host });
}

test('host_functions_answer_the_service', async () => {
  const asking = withHost(oracle);
  assert.equal(await asking.ask(2n), 'text 2');
  assert.equal(await asking.askLater(4n), 'text 4');
  assert.equal(await asking.tell(['ab', 'c'], 10), 13n);
  assert.equal(await asking.tell([], undefined), 0n);
  assert.deepEqual(await asking.askAll([0n, 1n, 2n]), [
    { tag: 'ok', val: 'text 0' },
    { tag: 'err', val: 1 },
    { tag: 'ok', val: 'text 2' },
  ]);
  asking.close();
});

test('typed_error_of_a_host_function_reaches_the_service', async () => {
  const asking = withHost(oracle);
  await assert.rejects(asking.ask(3n), { code: 'error', payload: 1 });
  asking.close();
});

test('other_exceptions_of_a_host_function_are_panics', async () => {
  const panicked = { code: 'error', payload: 5 };
  const broken = [
    {
      lookUp: () => {
        throw new Error('broken');
      },
    },
    {
      lookUp: async () => {
        throw undefined;
      },
    },
    { lookUp: async () => 5 },
    {
      lookUp: async () => {
        throw new ServiceError('not a bigint');
      },
    },
    { lookUp: 1 },
    {},
    {
      get lookUp() {
        throw new Error('getter');
      },
    },
  ];
  for (const host of broken) {
    const asking = withHost(host);
    await assert.rejects(asking.ask(2n), panicked);
    asking.close();
  }
});

test('host_function_may_call_another_function_of_its_client', async () => {
  const asking = withHost({
    ...oracle,
    lookUp: async (key) => `twice ${await asking.twice(Number(key))}`,
  });
  assert.equal(await asking.askLater(2n), 'twice 4');
  asking.close();
});

test('host_function_that_answers_after_close_is_ignored', async () => {
  let settle;
  const asking = withHost({ lookUp: () => new Promise((resolve) => (settle = resolve)) });
  const call = asking.askLater(2n);
  await until(() => settle !== undefined);
  asking.close();
  await assert.rejects(call, { code: 'cancelled' });
  settle('too late');
  await delay(5);
});

test('client_without_a_host_fails_host_calls', async () => {
  await assert.rejects(client.ask(2n), { code: 'error', payload: 8 });
  assert.throws(() => withHost(5), { code: 'argument', message: /host: expected an object/ });
});
