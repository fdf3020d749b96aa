/**
 * Thalweg for Node. Programs import the package that `thalweg gen` writes for a service; this one
 * has the errors and the streams that those packages use.
 */
export {
  BadArgument,
  Cancelled,
  Closed,
  Forked,
  GuestLost,
  GuestPanicked,
  Interrupted,
  Overloaded,
  ServiceError,
  ShutDown,
  Stale,
  ThalwegError,
  TimedOut,
  VersionMismatch,
  WouldPark,
} from './errors.js';
export { Batch, Column, Stream } from './stream.js';
export { NoValue } from './upstream.js';
