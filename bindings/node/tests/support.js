// What the tests share. `test.sh` builds the libraries; THALWEG_TEST_LIBRARIES is their folder.
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

export const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, '../../..');
const libraries = process.env.THALWEG_TEST_LIBRARIES ?? join(root, 'target/debug');

/** The path of a test library. */
export function library(name) {
  return join(libraries, `libthalweg_${name}.so`);
}

/** A folder that is removed after the tests of the file. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), 'thalweg-node-'));
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Compiles a C file into a shared library. */
export function compile(source, output, ...flags) {
  const all = ['-std=c11', '-g', '-fPIC', '-shared', '-D_GNU_SOURCE', ...flags];
  execFileSync('cc', [
    ...all,
    `-I${join(root, 'bindings/c/include')}`,
    source,
    '-o',
    output,
    '-ldl',
  ]);
}

/** Lets the event loop run. */
export function turn() {
  return new Promise(setImmediate);
}

export function delay(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Waits until `condition` returns true. */
export async function until(condition) {
  const end = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > end) {
      throw new Error(`still not true: ${condition}`);
    }
    await delay(2);
  }
}

/** Runs a module in another process. Resolves to its exit code, signal, output and duration. */
export function run(code, ...flags) {
  const begun = Date.now();
  const args = [...flags, '--input-type=module', '--eval', code];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: here, timeout: 60_000 }, (error, stdout, stderr) => {
      const milliseconds = Date.now() - begun;
      resolve({
        code: error ? error.code : 0,
        signal: error?.signal ?? null,
        stdout,
        stderr,
        milliseconds,
      });
    });
  });
}

/** Collects all values of an async iterable. */
export async function collect(values) {
  const all = [];
  for await (const value of values) {
    all.push(value);
  }
  return all;
}

/** The resident memory of this process, in bytes, after garbage was collected. */
async function memory() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await turn();
  }
  return process.memoryUsage.rss();
}

/**
 * How much memory a round leaves, in bytes. A heap grows in steps, but a leak grows in each round:
 * this is the smallest growth of four rounds, after four rounds in which caches grow.
 */
export async function leaked(round) {
  for (let i = 0; i < 4; i++) {
    await round();
  }
  let smallest = Infinity;
  let before = await memory();
  for (let i = 0; i < 4; i++) {
    await round();
    const after = await memory();
    smallest = Math.min(smallest, after - before);
    before = after;
  }
  return smallest;
}
