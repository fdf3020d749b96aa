/**
 * Loads the native part. The package contains one for each supported platform.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import { errorOf } from './errors.js';

const PLATFORM = `${process.platform}-${process.arch}`;

function load() {
  const path = process.env.THALWEG_NATIVE ?? `../prebuilds/${PLATFORM}/thalweg.node`;
  try {
    return createRequire(import.meta.url)(path);
  } catch (error) {
    const folder = fileURLToPath(new URL('../prebuilds', import.meta.url));
    const text = `thalweg has no native part for ${PLATFORM} in ${folder}: ${error.message}`;
    throw new Error(text, { cause: error });
  }
}

/** `open` of src/addon.c, and the memory of the last error. */
export const { open, error } = load();

const [words, text] = [new Uint32Array(error, 0, 2), Buffer.from(error, 8)];

/** The error that the last native function that failed has written. */
export function lastError() {
  return errorOf(words[0], text.toString('utf8', 0, text.indexOf(0)), words[1] !== 0);
}

/** @throws {ThalwegError} If `code`, which a native function has returned, is not OK. */
export function check(code) {
  if (code !== 0) {
    throw lastError();
  }
}
