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

/** The functions of src/addon.c, where each is described. */
export const native = load();

const errorWords = new Uint32Array(native.error, 0, 2);
const errorText = Buffer.from(native.error, 8);

/** The error that the last native function that failed has written. */
export function lastError() {
  const end = errorText.indexOf(0);
  const [code, retryable] = errorWords;
  return errorOf(code, errorText.toString('utf8', 0, end < 0 ? undefined : end), retryable !== 0);
}
