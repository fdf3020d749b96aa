/** Base of all errors of Thalweg. */
export class ThalwegError extends Error {
  /** The outcome's name, as in `enum tw_code` of thalweg.h: `timed_out`, `overloaded`, .. */
  readonly code: string;
  /** Whether the same call may succeed later, and repeating it does no harm. */
  readonly retryable: boolean;
}

/** The service's own typed error. Generated packages derive theirs from it. */
export class ServiceError<T = unknown> extends ThalwegError {
  /** For host functions: the service receives this error. */
  constructor(payload: T, options?: { retryable?: boolean; cause?: unknown });
  /** The value that the service sent. */
  readonly payload: T;
}

/** The call was cancelled: by its signal (`name` is then `AbortError`), or its client was closed. */
export class Cancelled extends ThalwegError {}
/** The deadline passed. */
export class TimedOut extends ThalwegError {}
/** The service could not be started again, or dropped the call. */
export class GuestLost extends ThalwegError {}
/** The service panicked in this call; the message has the panic's text. */
export class GuestPanicked extends ThalwegError {}
/** A limit was reached, and the call did not begin: try again later. */
export class Overloaded extends ThalwegError {}
/** The library's runtime is shutting down. */
export class ShutDown extends ThalwegError {}
/** The client, resource, stream or batch is closed. */
export class Closed extends ThalwegError {}
/** The handle's object does not exist any more. */
export class Stale extends ThalwegError {}
/** A value of a wrong kind; the message names the parameter. Or a malformed message. */
export class BadArgument extends ThalwegError {}
/** The library and the package are incompatible; the message names both. */
export class VersionMismatch extends ThalwegError {}
/** The object belongs to the parent process. */
export class Forked extends ThalwegError {}
/** A wait was interrupted. */
export class Interrupted extends ThalwegError {}
/** A wait was necessary where waiting is not allowed. */
export class WouldPark extends ThalwegError {}

/** Options of a call. */
export interface CallOptions {
  /** Cancels the call. Its promise is rejected at once, with a `Cancelled` named `AbortError`. */
  signal?: AbortSignal | undefined;
  /**
   * Milliseconds until the call ends as `TimedOut`. **The deadline also covers the stream that the
   * call returns.** Default: none.
   */
  timeout?: number | undefined;
}

/** Options of a call whose function has a `notice_interval` in the policy file. */
export interface NoticeOptions extends CallOptions {
  /**
   * Called at this interval with the milliseconds since the submission. An exception cancels the
   * call, and the call ends with it.
   */
  onNotice?: ((milliseconds: number) => void) | undefined;
}

/** An object of the service that belongs to this thread. */
export interface Handle {
  /** Whether it was closed, or given to the service. */
  readonly closed: boolean;
  /** Closes it. Does not wait. A second call has no effect. */
  close(): void;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Why records of a stream are missing. */
export type GapReason =
  | 'conflated'
  | 'dropped-newest'
  | 'dropped-oldest'
  | 'batch-open'
  | 'service'
  | 'unknown';

/** For a parameter that is a future: the future ends without a value. */
export class NoValue {}

/**
 * Counters of all streams of one method of a client, open and closed, in records. Once the writers
 * are gone, `published` is the sum of `delivered`, `undelivered`, `occupancy` and all of `lost`.
 */
export interface StreamStats {
  readonly streams: bigint;
  /** Records that the service wrote. */
  readonly published: bigint;
  /** Records that readers received in a batch. */
  readonly delivered: bigint;
  /** Unread records of streams that were closed. */
  readonly undelivered: bigint;
  /** Unread records of streams that are open. */
  readonly occupancy: bigint;
  readonly lost: { readonly [reason in GapReason]: bigint };
  /** The largest number of records that one stream has held, in whole segments. */
  readonly highWater: bigint;
  /** Records of the control lane that readers received in a batch. */
  readonly control: bigint;
  /** The number of times that a writer woke a reader. */
  readonly wakes: bigint;
  /** The number of times that a reader asked to be woken. */
  readonly parks: bigint;
  /** The number of times that a writer waited for capacity. */
  readonly waits: bigint;
  /** Streams that ended with an error. */
  readonly faults: bigint;
  /** Segments by age: entry `i` counts those first read after 2 ** i ns or more. */
  readonly age: readonly bigint[];
}

/** The numbers of a record, by the name of their field. */
export type Columns = { readonly [name: string]: Column };

/**
 * A stream that the service writes. It is an async iterator over its records:
 * `for await (const record of stream)`. Leaving the loop closes it. One reader at a time.
 */
export class Stream<T, C extends Columns = Columns> implements Handle, AsyncIterableIterator<T> {
  private constructor();
  readonly closed: boolean;
  /** Records lost so far under the stream's overflow policy. */
  readonly lost: bigint;
  /** Why the last of them were lost; `undefined` if none was lost. */
  readonly gapReason: GapReason | undefined;
  /** Whether the last object was a record of the control lane. */
  readonly control: boolean;
  /** The next record. After the regular end, `done` is true; otherwise it rejects. */
  next(): Promise<IteratorResult<T, undefined>>;
  return(value?: undefined): Promise<IteratorResult<T, undefined>>;
  /** Batches of at most `max` records (default 256). The next one releases the previous one. */
  batches(options?: {
    max?: number | undefined;
  }): AsyncGenerator<Batch<T, C>, undefined, undefined>;
  /** The counters of this stream's method. */
  stats(): StreamStats;
  /** Another reader. It starts with the next record that is written. */
  tee(): Stream<T, C>;
  close(): void;
  [Symbol.asyncIterator](): this;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A run of a stream's records, in the library's memory. */
export class Batch<T, C extends Columns = Columns> implements Iterable<T> {
  private constructor();
  /** The number of records. */
  readonly length: number;
  /** The number of the first record in the stream, from 0. */
  readonly firstSequence: bigint;
  /** Records that are missing directly before the first one. */
  readonly lostBefore: bigint;
  readonly gapReason: GapReason | undefined;
  /** Whether the records are of the control lane. */
  readonly control: boolean;
  readonly released: boolean;
  /** The numbers of all records, read in place. */
  readonly columns: C;
  /** All records as objects, which outlive the batch. */
  objects(): T[];
  /** Releases the batch. Its columns are empty afterwards. A second call has no effect. */
  release(): void;
  [Symbol.iterator](): Generator<T, undefined, undefined>;
}

/** A typed array of numbers. */
export type NumberArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigUint64Array
  | BigInt64Array;

/**
 * One number of all records, without a copy. Record `i` is `values[offset + i * stride]`. The values
 * are empty after the batch was released.
 */
export class Column<A extends NumberArray = NumberArray> implements Iterable<A[number]> {
  private constructor();
  readonly values: A;
  readonly offset: number;
  readonly stride: number;
  readonly length: number;
  at(index: number): A[number] | undefined;
  /**
   * All numbers without gaps: a view if `stride` is 1, otherwise a copy that is made in one pass
   * and outlives the batch.
   */
  gather(): A;
  [Symbol.iterator](): Generator<A[number], undefined, undefined>;
}
