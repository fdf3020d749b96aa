/**
 * The errors of calls and streams. Each outcome except success has a class.
 */

/**
 * Base of all errors of Thalweg. `code` is the outcome's name, as in `enum tw_code` of thalweg.h.
 * `retryable`: the same call may succeed later, and repeating it does no harm.
 */
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

/** The service's own typed error. Generated packages derive theirs from it. */
export class ServiceError extends ThalwegError {
  static code = 'error';

  constructor(payload, options) {
    super(textOf(payload), options);
    /** The value that the service sent; `undefined` if the error has no payload. */
    this.payload = payload;
  }
}

/** The call was cancelled: by its signal, or because its client was closed. */
export class Cancelled extends ThalwegError {
  static code = 'cancelled';
}

/** The deadline passed. */
export class TimedOut extends ThalwegError {
  static code = 'timed_out';
}

/** The service could not be started again, or dropped the call. */
export class GuestLost extends ThalwegError {
  static code = 'guest_lost';
}

/** The service panicked in this call; the message has the panic's text. */
export class GuestPanicked extends ThalwegError {
  static code = 'guest_panicked';
}

/** A limit was reached, and the call did not begin: try again later. */
export class Overloaded extends ThalwegError {
  static code = 'overloaded';
}

/** The library's runtime is shutting down. */
export class ShutDown extends ThalwegError {
  static code = 'shut_down';
}

/** The client, resource, stream or batch is closed. */
export class Closed extends ThalwegError {
  static code = 'closed';
}

/** The handle's object does not exist any more. */
export class Stale extends ThalwegError {
  static code = 'stale';
}

/** A value of a wrong kind, or a malformed message. */
export class BadArgument extends ThalwegError {
  static code = 'argument';
}

/** The library and the package are incompatible; the message names both. */
export class VersionMismatch extends ThalwegError {
  static code = 'version';
}

/** The object belongs to the parent process. */
export class Forked extends ThalwegError {
  static code = 'forked';
}

/** A wait was interrupted. */
export class Interrupted extends ThalwegError {
  static code = 'interrupted';
}

/** A wait was necessary where waiting is not allowed. */
export class WouldPark extends ThalwegError {
  static code = 'would_park';
}

/** The class of each `tw_code`, by its number. */
const BY_CODE = [
  ThalwegError,
  ServiceError,
  Cancelled,
  TimedOut,
  GuestLost,
  GuestPanicked,
  Overloaded,
  ShutDown,
  Closed,
  Stale,
  BadArgument,
  VersionMismatch,
  Forked,
  Interrupted,
  WouldPark,
];

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
