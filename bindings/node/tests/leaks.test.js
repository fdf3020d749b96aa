// Nothing remains of clients, workers, calls and streams.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

import { Conformance } from '../../../conformance/generated/node/conformance.js';
import { leaked, library, turn, until } from './support.js';

const CALLS = Number(process.env.THALWEG_TEST_CALLS ?? 1_000_000);
/** The resident memory grows in steps. A lost allocation for each call would be 2 MB in a round. */
const PAGES = 1 << 20;

const files = () => readdirSync('/proc/self/fd').length;

test('thousand_clients_leave_no_file_and_no_memory', async () => {
  const round = async (count) => {
    for (let i = 0; i < count; i++) {
      const client = Conformance.open(library('conformance'));
      const counter = await client.counter(1n);
      const stream = await client.endless();
      await stream.next();
      if (i % 2 === 0) {
        counter.close();
        stream.close();
      }
      client.close();
    }
  };
  await round(1);
  const before = files();
  const bytes = await leaked(() => round(1000));
  assert.ok(bytes < 1000 * 100, `${bytes} bytes`);
  assert.ok(files() <= before, `${files()} files, ${before} before`);
});

test('dropped_objects_are_closed', async () => {
  const client = Conformance.open(library('conformance'));
  await (async () => {
    for (let i = 0; i < 100; i++) {
      await client.counter(BigInt(i));
      await client.endless();
    }
  })();
  await until(async () => {
    globalThis.gc();
    await turn();
    return (await client.counters()) === 0 && (await client.running()) === 0;
  });
  client.close();
});

test('dropped_client_with_a_host_that_refers_to_it_is_closed', async () => {
  let gone = false;
  const registry = new FinalizationRegistry(() => (gone = true));
  await (async () => {
    const host = { lookUp: async () => client.closed };
    const client = Conformance.open(library('conformance'), { host });
    registry.register(client, undefined);
    await client.echoU8(1);
  })();
  await until(async () => {
    globalThis.gc();
    await turn();
    return gone;
  });
});

test('workers_that_end_leave_nothing', async () => {
  const module = `
    import { Conformance } from ${JSON.stringify(new URL('../../../conformance/generated/node/conformance.js', import.meta.url))};
    const client = Conformance.open(${JSON.stringify(library('conformance'))});
    await client.counter(1n);
    await (await client.endless()).next();
    await client.echoU8(1);`;
  const round = async (count) => {
    for (let i = 0; i < count; i++) {
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(module)}`));
      await new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject));
    }
  };
  await round(2);
  const before = files();
  const bytes = await leaked(() => round(6));
  assert.ok(bytes < PAGES, `${bytes} bytes`);
  assert.ok(files() <= before, `${files()} files, ${before} before`);
});

test('million_calls_leave_no_memory', async () => {
  const client = Conformance.open(library('conformance'));
  const round = async (count) => {
    for (let i = 0; i < count; i += 1000) {
      await Promise.all(Array.from({ length: 1000 }, (_, k) => client.echoU32(i + k)));
    }
  };
  const bytes = await leaked(() => round(CALLS / 8));
  client.close();
  assert.ok(bytes < PAGES, `${bytes} bytes`);
});

test('million_records_leave_no_memory', async () => {
  const client = Conformance.open(library('conformance'));
  const round = async (count) => {
    for await (const batch of (await client.count(0n, BigInt(count))).batches()) {
      batch.columns.value.at(0);
    }
    for await (const _ of await client.count(0n, BigInt(count / 4)));
  };
  const bytes = await leaked(() => round(CALLS / 8));
  client.close();
  assert.ok(bytes < PAGES, `${bytes} bytes`);
});
