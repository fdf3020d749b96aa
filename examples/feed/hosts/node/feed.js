// @ts-check
// Reads the feed from Node: feed.js LIBRARY. All hosts print the same output.
//
// The package `thalweg` must be installed; `thalweg gen` writes ../../generated/node.
import { ThalwegError } from 'thalweg';

import { Feed } from '../../generated/node/feed.js';

/** A trade in the column `kind`, which has the number of each case of the type `Kind`. */
const TRADE = 1;

/** The reasons of gaps. All hosts print their number. */
const REASONS = [undefined, 'conflated', 'dropped-newest', 'dropped-oldest'];

/**
 * Sums over all events as columns, without an object per event. The overflow policy is `block`.
 * @param {Feed} client
 */
async function showAll(client) {
  let [count, trades] = [0, 0];
  let [volume, turnover, best] = [0n, 0n, 0n];
  for await (const { columns, length } of (await client.all(100_000n)).batches()) {
    const kinds = columns.kind.gather();
    const prices = columns.price.gather();
    const sizes = columns.size.gather();
    count += length;
    for (const [i, price] of prices.entries()) {
      const size = sizes[i] ?? 0n;
      if (kinds[i] === TRADE) {
        trades += 1;
        volume += size;
        turnover += price * size;
      }
      // The price of an event is the best bid.
      best = price > best ? price : best;
    }
  }
  const sums = `${trades} trades of ${volume} for ${turnover}`;
  console.log(`all: ${count} events, ${sums}, best bid ${best}`);
}

/**
 * Reads the remaining events and all halts. The overflow policy is `drop-oldest`; a halt is a control
 * record, which is never dropped.
 * @param {Feed} client
 */
async function showRecent(client) {
  const events = await client.recent(5000n);
  let count = 0;
  let volume = 0n;
  for await (const batch of events.batches()) {
    const { control, lostBefore, firstSequence, gapReason, columns, length } = batch;
    if (control) {
      for (const number of columns.number) {
        console.log(`recent: halt at event ${number}`);
      }
      continue;
    }
    if (lostBefore > 0n) {
      const reason = REASONS.indexOf(gapReason);
      const gap = `${lostBefore} events before number ${firstSequence}`;
      console.log(`recent: gap of ${gap}, reason ${reason}`);
    }
    count += length;
    for (const size of columns.size) {
      volume += size;
    }
  }
  console.log(`recent: ${count} events of ${volume}`);
  // A stream that has ended is closed. Statistics cover all streams of a method.
  const { published, delivered, lost, control } = (await client.recent(0n)).stats();
  const dropped = `${lost['dropped-oldest']} dropped`;
  console.log(
    `recent: ${published} published, ${delivered} delivered, ${dropped}, ${control} halts`,
  );
}

/**
 * Reads the newest event as an object. The overflow policy is `latest`.
 * @param {Feed} client
 */
async function showNewest(client) {
  const events = await client.newest(5000n);
  for await (const { number, atNs } of events) {
    console.log(`newest: event ${number} at ${atNs} ns, ${events.lost} overtaken`);
  }
}

const [library, ...others] = process.argv.slice(2);
if (library === undefined || others.length > 0) {
  console.error('usage: feed.js LIBRARY');
  process.exit(2);
}
try {
  const client = Feed.open(library);
  await showAll(client);
  await showRecent(client);
  await showNewest(client);
  client.close();
} catch (error) {
  if (!(error instanceof ThalwegError)) {
    throw error;
  }
  console.error(`feed.js: ${error.message}`);
  process.exitCode = 1;
}
