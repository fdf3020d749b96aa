// @ts-check
// Searches a directory tree for plain text, from Node.
//
//   search.js LIBRARY PATTERN DIR [--print | --count | --json]
//
// --print  prints each matching line like `grep -rn` (the default)
// --count  prints the number of matching lines, which the service counts without a stream
// --json   streams the matches and prints their number and the time as one line of JSON
//
// The package `thalweg` must be installed; `thalweg gen` writes ../../generated/node.
import { ThalwegError } from 'thalweg';

import { Search } from '../../generated/node/search.js';

/** Searches every file, also hidden ones and those in ignore files. */
const EVERY_FILE = {
  fixed: true,
  ignoreCase: false,
  hidden: true,
  ignoreFiles: false,
  globs: [],
};

/**
 * Streams the matches as objects. Prints the original bytes of text that is not UTF-8.
 * @param {Search} client
 * @param {string} pattern
 * @param {string} directory
 */
async function print(client, pattern, directory) {
  const query = await client.query(pattern, directory, EVERY_FILE);
  for await (const batch of (await client.matches(query)).batches()) {
    const parts = batch
      .objects()
      .flatMap((match) => [
        match.pathBytes ?? Buffer.from(match.path),
        Buffer.from(`:${match.line}:`),
        match.textBytes ?? Buffer.from(match.text),
        Buffer.from('\n'),
      ]);
    process.stdout.write(Buffer.concat(parts));
  }
}

/**
 * Streams the matches as columns, without an object per match.
 * @param {Search} client
 * @param {string} pattern
 * @param {string} directory
 */
async function report(client, pattern, directory) {
  const began = process.hrtime.bigint();
  let first;
  let [matches, linesSum] = [0, 0n]; // the sum of the line numbers, to compare two searches
  const query = await client.query(pattern, directory, EVERY_FILE);
  for await (const batch of (await client.matches(query)).batches()) {
    first ??= process.hrtime.bigint();
    matches += batch.length;
    for (const line of batch.columns.line) {
      linesSum += line;
    }
  }
  const ended = process.hrtime.bigint();
  const numbers = [
    `"matches":${matches}`,
    `"lines_sum":${linesSum}`,
    `"first_match_ns":${(first ?? ended) - began}`,
    `"total_ns":${ended - began}`,
  ];
  console.log(`{"host":"Node",${numbers}}`);
}

/**
 * `count` takes a regular expression, which `escape` makes from the text.
 * @param {Search} client
 * @param {string} pattern
 * @param {string} directory
 */
async function count(client, pattern, directory) {
  console.log(String(await client.count(await client.escape(pattern), directory)));
}

const MODES = new Map([
  ['--print', print],
  ['--count', count],
  ['--json', report],
]);

const [library, pattern, directory, name = '--print', ...others] = process.argv.slice(2);
const mode = MODES.get(name);
if (!library || pattern === undefined || directory === undefined || !mode || others.length > 0) {
  console.error('usage: search.js LIBRARY PATTERN DIR [--print | --count | --json]');
  process.exit(2);
}
try {
  const client = Search.open(library);
  await mode(client, pattern, directory);
  client.close();
} catch (error) {
  if (!(error instanceof ThalwegError)) {
    throw error;
  }
  console.error(`search.js: ${error.message}`);
  process.exitCode = 1;
}
