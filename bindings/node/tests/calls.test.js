// The life of calls: order, deadlines, signals, errors, limits and closing.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { after, test } from 'node:test';
import { Conformance, FailureException } from '../../../conformance/generated/node/conformance.js';
import {
  BadArgument,
  Cancelled,
  GuestPanicked,
  Overloaded,
  ServiceError,
  ThalwegError,
  TimedOut,
} from '../lib/index.js';
import { delay, library, turn, until } from './support.js';

const client = Conformance.open(library('conformance'));
after(() => client.close());

test('calls_of_one_turn_complete_in_any_number', async () => {
  for (const count of [1, 2, 64, 127, 128, 129, 1000, 5000]) {
    const calls = Array.from({ length: count }, (_, i) => client.echoU32(i));
    assert.deepEqual(
      await Promise.all(calls),
      Array.from({ length: count }, (_, i) => i),
    );
  }
});

test('calls_of_one_client_run_in_order', async () => {
  const counter = await client.counter(0n);
  const sums = Array.from({ length: 300 }, () => counter.add(1n));
  assert.deepEqual(
    await Promise.all(sums),
    Array.from({ length: 300 }, (_, i) => BigInt(i + 1)),
  );
  counter.close();
});

test('typed_error_has_code_class_and_payload', async () => {
  await assert.rejects(client.fail({ tag: 'code', val: 7 }), (error) => {
    assert.ok(error instanceof FailureException && error instanceof ServiceError);
    assert.ok(error instanceof ThalwegError && error instanceof Error);
    assert.deepEqual(error.payload, { tag: 'code', val: 7 });
    assert.deepEqual(
      [error.code, error.name, error.retryable],
      ['error', 'FailureException', false],
    );
    assert.equal(error.message, 'code: 7');
    return true;
  });
  await assert.rejects(client.fail({ tag: 'unknown' }), { message: 'unknown' });
  assert.equal(await client.fail(undefined), 7n);
});

test('panic_in_the_service_is_an_error_with_its_message', async () => {
  await assert.rejects(client.panicLater('oh no'), (error) => {
    assert.ok(error instanceof GuestPanicked);
    assert.match(error.message, /oh no/);
    assert.equal(error.code, 'guest_panicked');
    assert.equal(error.retryable, true, 'the policy file says idempotent');
    return true;
  });
  await assert.rejects(client.panicHere('here'), { code: 'guest_panicked', message: /here/ });
});

test('inline_call_returns_a_promise_of_the_result', async () => {
  const earlier = client.echoU8(1);
  assert.equal(await client.twice(21), 42n);
  assert.equal(await earlier, 1);
  await assert.rejects(client.failHere({ tag: 'code', val: 3 }), FailureException);
});

test('timeout_ends_the_call', async () => {
  const begun = performance.now();
  await assert.rejects(client.sleep(60_000, { timeout: 20 }), (error) => {
    assert.ok(error instanceof TimedOut);
    assert.equal(error.code, 'timed_out');
    return true;
  });
  assert.ok(performance.now() - begun >= 19);
  assert.equal(await client.sleep(1, { timeout: Infinity }), 1);
  await assert.rejects(client.sleep(60_000, { timeout: 0 }), { code: 'timed_out' });
  await assert.rejects(client.limited(), { code: 'timed_out' }, 'the timeout of the policy file');
});

test('signal_aborted_before_makes_no_call', async () => {
  const reason = new Error('changed my mind');
  await assert.rejects(client.never({ signal: AbortSignal.abort(reason) }), (error) => {
    assert.ok(error instanceof Cancelled);
    assert.deepEqual([error.name, error.code, error.cause], ['AbortError', 'cancelled', reason]);
    return true;
  });
});

test('signal_aborted_during_cancels_the_call', async () => {
  const controller = new AbortController();
  const call = client.never({ signal: controller.signal });
  await until(async () => (await client.waiting()) === 1);
  controller.abort();
  await assert.rejects(call, { name: 'AbortError', code: 'cancelled' });
  await until(async () => (await client.waiting()) === 0);
});

test('signal_aborted_before_the_submission_cancels_the_call', async () => {
  const controller = new AbortController();
  const call = client.never({ signal: controller.signal });
  controller.abort();
  await assert.rejects(call, { name: 'AbortError' });
  await until(async () => (await client.waiting()) === 0);
});

test('signal_aborted_after_changes_nothing', async () => {
  const controller = new AbortController();
  assert.equal(await client.echoU8(9, { signal: controller.signal }), 9);
  controller.abort();
  await turn();
  assert.equal(await client.echoU8(1), 1);
});

test('one_signal_cancels_many_calls', async () => {
  const controller = new AbortController();
  const calls = Array.from({ length: 100 }, () => client.never({ signal: controller.signal }));
  setTimeout(() => controller.abort(), 5);
  const ended = await Promise.allSettled(calls);
  assert.ok(ended.every(({ reason }) => reason instanceof Cancelled));
  await until(async () => (await client.waiting()) === 0);
});

test('result_of_a_cancelled_call_is_discarded_with_its_handles', async () => {
  const before = await client.counters();
  for (let i = 0; i < 50; i++) {
    const controller = new AbortController();
    const call = client.counter(1n, { signal: controller.signal });
    await Promise.resolve();
    controller.abort();
    await assert.rejects(call, { name: 'AbortError' });
  }
  await until(async () => (await client.counters()) === before);
});

test('notices_arrive_while_the_call_runs', async () => {
  const notices = [];
  const call = client.heldUp({ onNotice: (milliseconds) => notices.push(milliseconds) });
  await until(() => notices.length >= 3);
  await client.letGo();
  await call;
  const count = notices.length;
  await delay(10);
  assert.equal(notices.length, count, 'none after the end');
  assert.ok(notices.every((milliseconds, i) => i === 0 || milliseconds >= notices[i - 1]));
});

test('async_context_is_kept_in_continuations_and_callbacks', async () => {
  const storage = new AsyncLocalStorage();
  const seen = [];
  const see = (what) => seen.push(`${what} ${storage.getStore()}`);
  const host = {
    async lookUp(key) {
      see('host');
      await null;
      see('host');
      return String(key);
    },
  };
  const asking = storage.run('open', () => Conformance.open(library('conformance'), { host }));
  async function* numbers() {
    see('iterable');
    yield await client.echoU64(1n);
    see('iterable');
  }
  await Promise.all([
    storage.run('a', async () => {
      await client.echoU8(1);
      see('await');
      const [first] = await Promise.all([client.count(0n, 600n), client.twice(1)]);
      for await (const _ of first);
      see('loop');
      await client.sumOf(numbers());
    }),
    storage.run('b', async () => {
      await client.heldUp({
        onNotice: () => {
          see('notice');
          client.letGo();
        },
      });
    }),
    storage.run('c', () => asking.askLater(2n)),
  ]);
  asking.close();
  assert.deepEqual([...new Set(seen)].sort(), [
    'await a',
    'host open',
    'iterable a',
    'loop a',
    'notice b',
  ]);
});

test('exception_of_a_notice_function_cancels_the_call', async () => {
  const raised = new Error('enough');
  const call = client.never({
    onNotice: () => {
      throw raised;
    },
  });
  await assert.rejects(call, (error) => error === raised);
  await until(async () => (await client.waiting()) === 0);
});

test('full_port_refuses_with_a_retryable_error', async () => {
  const controller = new AbortController();
  const options = { signal: controller.signal };
  const calls = Array.from({ length: 20_000 }, () => client.never(options));
  const caught = calls.map((call) => call.catch((error) => error));
  await delay(50);
  controller.abort();
  const errors = await Promise.all(caught);
  const refused = errors.filter((error) => error instanceof Overloaded);
  assert.ok(refused.length > 0 && refused.length < errors.length, String(refused.length));
  assert.ok(refused.every((error) => error.code === 'overloaded' && error.retryable));
  assert.ok(errors.every((error) => error instanceof Overloaded || error instanceof Cancelled));
  await until(async () => {
    try {
      return (await client.waiting()) === 0;
    } catch (error) {
      return error instanceof Overloaded ? false : Promise.reject(error);
    }
  });
});

test('close_ends_running_calls_as_cancelled', async () => {
  const other = Conformance.open(library('conformance'));
  const running = other.never();
  await until(async () => (await other.waiting()) === 1);
  const queued = other.never();
  other.close();
  other.close();
  assert.equal(other.closed, true);
  await assert.rejects(running, { code: 'cancelled' });
  await assert.rejects(queued, { code: 'cancelled' });
  await assert.rejects(other.never(), { code: 'closed' });
});

test('client_in_a_pending_call_stays_open_without_a_reference', async () => {
  const call = (() => Conformance.open(library('conformance')).sleep(30))();
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.();
    await delay(2);
  }
  assert.equal(await call, 30);
});

test('resource_in_a_value_belongs_to_the_caller', async () => {
  const before = await client.counters();
  const counters = await client.giveCounters(10n, 3);
  assert.deepEqual(await Promise.all(counters.map((counter) => counter.value())), [10n, 11n, 12n]);
  assert.equal(await client.counters(), before + 3);
  const [first, second, third] = counters;
  assert.equal(await client.total([first, second]), 21n);
  assert.equal(first.closed, true, 'it was given to the service');
  await assert.rejects(first.value(), { code: 'closed' });
  assert.equal(await client.counterFinish(third), 12n);
  assert.equal(await client.counters(), before);
});

test('resource_that_is_passed_twice_is_refused_and_stays_with_the_caller', async () => {
  const counter = await client.counter(4n);
  await assert.rejects(client.total([counter, counter]), BadArgument);
  assert.equal(await counter.value(), 4n);
  counter.close();
});

test('disposal_closes_client_and_resource', async () => {
  const other = Conformance.open(library('conformance'));
  const counter = await other.counter(1n);
  counter[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
  assert.equal(counter.closed, true);
  await other[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]();
  assert.equal(other.closed, true);
});
