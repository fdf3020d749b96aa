// Streams that the service writes: as objects, as batches and as columns.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Conformance, FailureException } from '../../../conformance/generated/node/conformance.js';
import { Echo, Timer, TimerErrorException } from '../../../examples/echo/generated/node/echo.js';
import { GuestLost, Stream } from '../lib/index.js';
import { collect, delay, library, turn, until } from './support.js';

const client = Conformance.open(library('conformance'));
after(() => client.close());

const numbers = (count) => Array.from({ length: count }, (_, i) => BigInt(i));

test('stream_of_numbers_is_complete_and_in_order', async () => {
  for (const count of [0, 1, 255, 256, 257, 20_000]) {
    const stream = await client.count(0n, BigInt(count));
    assert.ok(stream instanceof Stream);
    assert.deepEqual(await collect(stream), numbers(count));
    assert.equal(stream.closed, true);
    assert.equal(stream.lost, 0n);
  }
});

test('stream_of_records_with_texts_is_complete', async () => {
  const items = await collect(await client.items(1000n));
  assert.equal(items.length, 1000);
  items.forEach((item, i) => {
    assert.equal(item.number, BigInt(i));
    assert.equal(item.name, `item ${i}`);
    assert.equal(item.tags.length, i % 3);
    assert.equal(item.blob === undefined, i % 2 === 1);
  });
});

test('batches_are_read_in_place_as_columns', async () => {
  const seen = [];
  let next = 0n;
  for await (const batch of (await client.count(0n, 10_000n)).batches({ max: 100 })) {
    assert.ok(batch.length >= 1 && batch.length <= 100);
    assert.equal(batch.firstSequence, next);
    next += BigInt(batch.length);
    const { value } = batch.columns;
    assert.equal(value.stride, 1);
    assert.equal(value.at(0), batch.firstSequence);
    assert.equal(value.at(batch.length), undefined);
    seen.push(...value.gather());
  }
  assert.deepEqual(seen, numbers(10_000));
});

test('columns_of_records_have_the_stride_of_a_record', async () => {
  let seen = 0;
  for await (const batch of (await client.samples(500)).batches()) {
    const { number, 'at.x': x, 'at.y': y } = batch.columns;
    assert.equal(number.stride, 36);
    const objects = batch.objects();
    assert.deepEqual([...batch], objects);
    assert.deepEqual(
      [...number],
      objects.map((sample) => sample.number),
    );
    assert.deepEqual(
      [...x.gather()],
      objects.map((sample) => sample.at.x),
    );
    assert.deepEqual(
      [...y],
      objects.map((sample) => 0 - sample.at.x),
    );
    assert.equal(
      number.values[number.offset + number.stride * (batch.length - 1)],
      seen + batch.length - 1,
    );
    seen += batch.length;
  }
  assert.equal(seen, 500);
});

test('released_batch_has_empty_columns_and_raises', async () => {
  const batches = (await client.items(600n)).batches();
  const { value: first } = await batches.next();
  const { number } = first.columns;
  const { values } = number;
  const copy = number.gather();
  assert.ok(values.length > 0);
  first.release();
  first.release();
  assert.equal(first.released, true);
  assert.equal(values.length, 0, 'its buffer is detached');
  assert.equal(number.at(0), undefined);
  assert.equal(copy[0], 0n, 'a copy outlives the batch');
  assert.throws(() => first.columns, { code: 'closed' });
  assert.throws(() => first.objects(), { code: 'closed' });
  const { value: second } = await batches.next();
  assert.equal(second.columns.number.at(0), second.firstSequence);
  await batches.next();
  assert.equal(second.released, true, 'the next batch releases it');
  await batches.return();
});

test('batch_of_a_closed_stream_is_released', async () => {
  const stream = await client.items(600n);
  const { value: batch } = await stream.batches().next();
  const { values } = batch.columns.number;
  stream.close();
  assert.equal(values.length, 0);
  assert.throws(() => batch.objects(), { code: 'closed' });
});

test('transferred_buffer_of_a_batch_stays_valid', async () => {
  const stream = await client.count(0n, 3000n);
  const batches = stream.batches();
  const { value: batch } = await batches.next();
  const { values, offset } = batch.columns.value;
  const length = batch.length;
  let moved = values;
  if (typeof values.buffer.transfer === 'function') {
    moved = new BigUint64Array(values.buffer.transfer());
  }
  await batches.next();
  await batches.return();
  globalThis.gc?.();
  await turn();
  if (moved !== values) {
    assert.deepEqual([...moved.subarray(offset, offset + length)], numbers(length));
  }
});

test('memory_of_batches_is_used_again_in_many_rounds', async () => {
  // The core uses the memory of released batches again, so V8 receives the same addresses.
  for (let round = 0; round < 30; round++) {
    let next = 0n;
    for await (const batch of (await client.count(0n, 20_000n)).batches()) {
      const { value } = batch.columns;
      assert.equal(value.at(0), next);
      assert.equal(value.at(batch.length - 1), next + BigInt(batch.length) - 1n);
      next += BigInt(batch.length);
    }
    assert.equal(next, 20_000n);
    globalThis.gc?.();
  }
});

test('leaving_the_loop_closes_the_stream', async () => {
  const stream = await client.endless();
  for await (const number of stream) {
    if (number === 1000n) {
      break;
    }
  }
  assert.equal(stream.closed, true);
  const other = await client.endless();
  for await (const batch of other.batches()) {
    assert.equal(batch.released, false);
    break;
  }
  assert.equal(other.closed, true);
  await until(async () => (await client.running()) === 0);
});

test('close_ends_a_waiting_reader', async () => {
  const echo = Echo.open(library('echo'));
  const timer = await echo.timer('t');
  const ticks = await timer.schedule(3_600_000, 1);
  const next = ticks.next();
  await delay(5);
  ticks.close();
  assert.deepEqual(await next, { done: true, value: undefined });
  assert.deepEqual(await ticks.next(), { done: true, value: undefined });
  echo.close();
});

test('second_reader_is_refused', async () => {
  const echo = Echo.open(library('echo'));
  const timer = await echo.timer('t');
  const ticks = await timer.schedule(20, 1);
  const first = ticks.next();
  await assert.rejects(ticks.next(), { code: 'argument', message: /another reader/ });
  assert.equal((await first).value.number, 1);
  echo.close();
});

test('stream_that_breaks_raises_after_its_records', async () => {
  let stream;
  await until(async () => {
    // If the panic precedes the reply, the call itself fails.
    stream = await client.breaks(300n).catch(() => undefined);
    return stream !== undefined;
  });
  const seen = [];
  await assert.rejects(
    async () => {
      for await (const number of stream) {
        seen.push(number);
      }
    },
    { code: 'guest_panicked' },
  );
  assert.deepEqual(seen, numbers(300));
  await assert.rejects(collect(await client.stops(3n, 'drop')), GuestLost);
});

test('stream_that_fails_raises_the_typed_error', async () => {
  await assert.rejects(collect(await client.stops(3n, 'fail')), (error) => {
    assert.ok(error instanceof FailureException);
    assert.deepEqual(error.payload, { tag: 'code', val: 3 });
    return true;
  });
});

test('deadline_of_the_call_covers_its_stream', async () => {
  let stream;
  for (let timeout = 30; stream === undefined; timeout *= 2) {
    // On a busy machine, the call itself may end at its deadline.
    stream = await client.endless({ timeout }).catch((error) => {
      assert.equal(error.code, 'timed_out');
      return undefined;
    });
  }
  await assert.rejects(collect(stream), { code: 'timed_out' });
});

test('lost_records_are_counted_with_their_reason', async () => {
  const stream = await client.dropsOldest(1000n);
  const seen = await collect(stream);
  assert.ok(stream.lost > 0n);
  assert.equal(stream.gapReason, 'dropped-oldest');
  assert.equal(BigInt(seen.length) + stream.lost, 1000n);
  assert.equal(seen.at(-1), 999n);
});

test('stats_count_the_streams_of_a_method', async () => {
  const other = Conformance.open(library('conformance'));
  const first = await other.dropsOldest(1000n);
  const seen = BigInt((await collect(first)).length);
  assert.throws(() => first.stats(), { code: 'closed' });
  const second = await other.dropsOldest(10n);
  await until(() => second.stats().published === 1010n);
  const stats = second.stats();
  assert.equal(stats.streams, 2n);
  assert.equal(stats.delivered, seen);
  assert.equal(stats.occupancy, 10n);
  assert.deepEqual(stats.lost, {
    conflated: 0n,
    'dropped-newest': 0n,
    'dropped-oldest': first.lost,
    'batch-open': 0n,
    service: 0n,
    unknown: 0n,
  });
  assert.equal(stats.published, stats.delivered + stats.occupancy + stats.lost['dropped-oldest']);
  for (const name of ['undelivered', 'highWater', 'control', 'wakes', 'parks', 'waits', 'faults']) {
    assert.equal(typeof stats[name], 'bigint', name);
  }
  assert.ok(stats.age.length === 32 && stats.age.every((count) => typeof count === 'bigint'));
  second.close();
  assert.throws(() => second.stats(), { code: 'closed' });
  other.close();
});

test('tee_reads_on_its_own', async () => {
  const stream = await client.endless();
  const other = stream.tee();
  assert.equal((await stream.next()).value, 0n);
  const next = other.next();
  stream.close(); // the slowest reader limits the writer
  assert.equal(typeof (await next).value, 'bigint');
  assert.equal(typeof (await other.next()).value, 'bigint');
  other.close();
  await until(async () => (await client.running()) === 0);
});

test('endless_stream_lets_timers_run', async () => {
  const stream = await client.endless();
  let fired = 0;
  const timer = setInterval(() => (fired += 1), 5);
  let count = 0;
  for await (const _ of stream) {
    count += 1;
    if (fired >= 10) {
      break;
    }
  }
  clearInterval(timer);
  assert.ok(count > 256);
});

test('future_is_a_promise_of_its_value', async () => {
  assert.equal(await client.later(5, 'the text'), 'the text');
  await assert.rejects(client.neverComes(undefined), GuestLost);
  await assert.rejects(client.neverComes('why'), { code: 'guest_panicked' });
});

test('max_of_another_type_is_refused', async () => {
  const stream = await client.endless();
  await assert.rejects(stream.batches({ max: 0 }).next(), { code: 'argument', message: /max/ });
  stream.close();
});

test('echo_example_reads_ticks_and_typed_errors', async () => {
  const echo = Echo.open(library('echo'));
  assert.match(await echo.version(), /^\d+\.\d+\.\d+$/);
  const timer = await echo.timer('clock');
  assert.ok(timer instanceof Timer);
  const said = [];
  const say = async (message, delayMs) => {
    const response = await timer.echo({ message, delayMs });
    said.push(`${response.name} said ${response.message}`);
  };
  await Promise.all([say('later', 50), say('sooner', 0)]);
  assert.deepEqual(said, ['clock said sooner', 'clock said later']);
  const request = {
    messages: [
      { message: 'one', delayMs: 10 },
      { message: 'two', delayMs: 20 },
    ],
    tags: ['fast', 'async'],
    note: 'an extra',
    retries: 3n,
  };
  assert.deepEqual(await timer.complex(request), {
    summary: '2 messages, tags: fast async, note: an extra, retries: 3',
    itemCount: 2n,
    hasNote: true,
  });
  const ticks = await collect(await timer.schedule(5, 3));
  assert.deepEqual(
    ticks.map((tick) => tick.number),
    [1, 2, 3],
  );
  assert.ok(ticks.every((tick) => typeof tick.lateNs === 'bigint'));
  await assert.rejects(say('never', 3_600_001), (error) => {
    assert.ok(error instanceof TimerErrorException);
    assert.deepEqual(error.payload, { tag: 'too-long', val: 3_600_001 });
    return true;
  });
  await assert.rejects(timer.echo({ message: '', delayMs: 3_600_000 }, { timeout: 20 }), {
    code: 'timed_out',
  });
  await assert.rejects(echo.timer(''), { code: 'error', payload: { tag: 'no-name' } });
  echo.close();
});
