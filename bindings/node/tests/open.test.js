// Opening a library, refusing an incompatible one, and surviving a malformed one.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Conformance } from '../../../conformance/generated/node/conformance.js';
import { Echo } from '../../../examples/echo/generated/node/echo.js';
import { BadArgument, VersionMismatch } from '../lib/index.js';
import { collect, compile, folder, here, library, root } from './support.js';

const made = folder();

/** A library without a service that claims to be thalweg:search, except where macros say otherwise. */
function fake(name, ...macros) {
  const path = join(made, `lib${name}.so`);
  compile(join(root, 'bindings/python/tests/fake.c'), path, ...macros);
  return path;
}

const ECHO = ['-DFAKE_PACKAGE="thalweg:echo"'];

function refused(path, pattern) {
  assert.throws(
    () => Echo.open(path),
    (error) => {
      assert.ok(error instanceof VersionMismatch, String(error));
      assert.equal(error.code, 'version');
      assert.match(error.message, pattern);
      return true;
    },
  );
}

test('library_of_another_abi_is_refused_with_both_sides_named', () => {
  refused(
    fake('abi', ...ECHO, '-DFAKE_ABI=9'),
    /built for abi 2 \(thalweg:echo@0\.1\.0\), but the library has abi 9 \(thalweg:echo@0\.1\.0/,
  );
  refused(fake('size', ...ECHO, '-DFAKE_SIZE=64'), /table of \d+ bytes .* library's has 64/);
});

test('library_of_another_layout_is_refused_with_both_sides_named', () => {
  refused(
    fake('layout', ...ECHO),
    /layout 85b23d4efd1e2c0a, but the library's thalweg:echo@0\.1\.0 has layout 000000000000002a/,
  );
});

test('library_of_another_package_or_version_is_refused', () => {
  refused(library('search'), /built for thalweg:echo@0\.1\.0, but the library is thalweg:search@/);
  refused(fake('version', ...ECHO, '-DFAKE_VERSION="0.2.0"'), /thalweg:echo@0\.2\.0/);
});

test('file_that_is_no_library_is_refused', () => {
  assert.throws(
    () => Echo.open('no/such/library.so'),
    (error) => {
      assert.ok(error instanceof BadArgument);
      assert.match(
        error.message,
        /cannot load the library for thalweg:echo@0\.1\.0: no\/such\/library\.so/,
      );
      return true;
    },
  );
  assert.throws(() => Echo.open(fake('symbol', '-DFAKE_NO_SYMBOL')), {
    code: 'argument',
    message: /no tw_library/,
  });
  refused(fake('table', '-DFAKE_NO_TABLE'), /offers no table/);
  assert.throws(() => Echo.open(join(here, 'support.js')), { code: 'argument' });
  assert.throws(() => Echo.open(5), { code: 'argument', message: /path/ });
  assert.throws(() => Echo.open('a\0b'), { code: 'argument', message: /path/ });
});

process.env.THALWEG_HOSTILE_REAL = library('conformance');
const hostile = join(made, 'libhostile.so');
compile(join(here, 'hostile.c'), hostile);
afterEach(() => {
  delete process.env.THALWEG_HOSTILE_REPLY;
  delete process.env.THALWEG_HOSTILE_BATCH;
});

/** The low half of the layout hash of `string`, as in the header of each package. */
const STRING_LAYOUT = 0xfaaffc58;

/** Variants of a message: cut at every byte, one byte longer, and each byte changed. */
function* damaged(good) {
  for (let size = 1; size < good.length; size++) {
    yield good.subarray(0, size);
  }
  yield Buffer.concat([good, Buffer.of(0)]);
  for (let at = 0; at < good.length; at++) {
    for (const other of [0, 1, 0x7f, 0x80, 0xff]) {
      const bad = Buffer.from(good);
      bad[at] = other;
      yield bad;
    }
  }
}

test('malformed_result_is_refused_or_read', async () => {
  const client = Conformance.open(hostile);
  const body = Buffer.alloc(16 + 8 + 13);
  body.writeUInt32LE(body.length, 0);
  body.writeUInt32LE(STRING_LAYOUT, 4);
  body.writeUInt32LE(16, 12);
  body.writeUInt32LE(24, 16);
  body.writeUInt32LE(13, 20);
  body.write('thirteen byte', 24);
  process.env.THALWEG_HOSTILE_REPLY = body.toString('hex');
  assert.equal(await client.echoString('x'), 'thirteen byte');
  let count = 0;
  for (const bad of damaged(body)) {
    process.env.THALWEG_HOSTILE_REPLY = bad.toString('hex');
    try {
      assert.equal(typeof (await client.echoString('x')), 'string');
    } catch (error) {
      assert.ok(error instanceof BadArgument, String(error));
      assert.match(error.message, /the library's message is malformed/);
      count += 1;
    }
  }
  assert.ok(count > 100, String(count));
  process.env.THALWEG_HOSTILE_REPLY = '-';
  await assert.rejects(client.echoString('x'), BadArgument);
  delete process.env.THALWEG_HOSTILE_REPLY;
  assert.equal(await client.echoString('x'), 'x');
  client.close();
});

test('malformed_batch_is_refused_or_read', async () => {
  const client = Conformance.open(hostile);
  for (let at = 0; at < 4 * 40 + 100; at++) {
    for (const value of [1, 0x7f, 0xff]) {
      process.env.THALWEG_HOSTILE_BATCH = `1 ${at} ${value}`;
      try {
        await collect(await client.items(4n));
      } catch (error) {
        assert.ok(error instanceof BadArgument, String(error));
      }
    }
  }
  for (const [what, values] of [
    [2, ['0', '1', '31', '4294967296']],
    [3, ['0', '1048576', '2147483648', '4294967295']],
    [4, ['0', '1', '1048576', '4294967295']],
    [5, ['4294967296', '18446744073709551608', '1099511627776']],
  ]) {
    for (const value of values) {
      process.env.THALWEG_HOSTILE_BATCH = `${what} 0 ${value}`;
      await assert.rejects(
        collect(await client.items(4n)),
        /malformed|built for records/,
        `${what} ${value}`,
      );
      const batches = (await client.items(4n)).batches();
      await assert.rejects(batches.next(), /malformed|built for records/);
    }
  }
  delete process.env.THALWEG_HOSTILE_BATCH;
  assert.equal((await collect(await client.items(4n))).length, 4);
  client.close();
});
