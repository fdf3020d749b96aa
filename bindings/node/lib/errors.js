/**
 * The errors of calls and streams. Each outcome except success has a class; index.d.ts describes
 * them.
 */

/** Base of all errors of Thalweg. */
export class ThalwegError extends Error {
  static code = 'unknown';

  constructor(message = '', { retryable = false, cause } = {}) {
    super(
      message || new.target.code.replace('_', ' '),
      cause === undefined ? undefined : { cause },
    );
    this.name = new.target.name;
    this.code = new.target.code;
    this.retryable = retryable;
  }
}

/** The service's own typed error. */
export class ServiceError extends ThalwegError {
  static code = 'error';

  constructor(payload, options) {
    super(textOf(payload), options);
    this.payload = payload;
  }
}

/** The class of each `tw_code`, by its number. */
const BY_CODE = [ThalwegError, ServiceError];

/** The class of the next outcome. */
function outcome(name, code) {
  const named = {
    [name]: class extends ThalwegError {
      static code = code;
    },
  };
  BY_CODE.push(named[name]);
  return named[name];
}

export const Cancelled = outcome('Cancelled', 'cancelled');
export const TimedOut = outcome('TimedOut', 'timed_out');
export const GuestLost = outcome('GuestLost', 'guest_lost');
export const GuestPanicked = outcome('GuestPanicked', 'guest_panicked');
export const Overloaded = outcome('Overloaded', 'overloaded');
export const ShutDown = outcome('ShutDown', 'shut_down');
export const Closed = outcome('Closed', 'closed');
export const Stale = outcome('Stale', 'stale');
export const BadArgument = outcome('BadArgument', 'argument');
export const VersionMismatch = outcome('VersionMismatch', 'version');
export const Forked = outcome('Forked', 'forked');
export const Interrupted = outcome('Interrupted', 'interrupted');
export const WouldPark = outcome('WouldPark', 'would_park');

/** Numbers of `tw_code` that this package uses. */
export const OK = 0;
export const ERROR = 1;
export const GUEST_PANICKED = 5;
export const CLOSED = 8;
export const STALE = 9;
export const ARGUMENT = 10;
export const WOULD_PARK = 14;

/** The error of an operation that ended with this code. A newer library may have further codes. */
export function errorOf(code, message, retryable) {
  if (code === ERROR) {
    const error = new ServiceError(undefined, { retryable });
    error.message = message || error.message;
    return error;
  }
  return new (BY_CODE[code] ?? ThalwegError)(message, { retryable });
}

/** The error of an operation whose signal was aborted. Its name is the usual one for that. */
export function aborted(signal) {
  const error = new Cancelled('the signal was aborted', { cause: signal.reason });
  error.name = 'AbortError';
  return error;
}

/** The error for an exception of code of the program, such as a getter, in the value at `place`. */
export function wrap(error, place) {
  try {
    if (error instanceof ThalwegError) {
      return error;
    }
  } catch {
    // a proxy
  }
  return new BadArgument(`${place}: ${messageOf(error)}`, { cause: error });
}

/** The text of anything that was thrown. */
export function messageOf(error) {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return 'an exception without a text';
  }
}

/** What `get` reads from an argument named `place`. */
export function read(place, get) {
  try {
    return get();
  } catch (error) {
    throw wrap(error, place);
  }
}

/** A short text for a payload: texts and the names of cases, without nested values. */
function textOf(payload) {
  if (typeof payload === 'object' && payload !== null && 'tag' in payload) {
    const value = payload.val;
    return value === undefined || typeof value === 'object'
      ? payload.tag
      : `${payload.tag}: ${value}`;
  }
  return typeof payload === 'object' || payload === undefined ? '' : String(payload);
}
