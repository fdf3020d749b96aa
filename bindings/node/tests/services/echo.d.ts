// The types that `thalweg gen` will write for thalweg:echo@0.1.0. Written by hand until it does.

import { type CallOptions, type Column, ServiceError, type Stream } from 'thalweg';
import { Client, Resource } from 'thalweg/generated';

/** A message, and the delay of its response. */
export interface Request {
  message: string;
  /** Delay in milliseconds, at most one hour. */
  delayMs: number;
}

/** The response to a request. */
export interface Response {
  message: string;
  /** The name of the timer that responded. */
  name: string;
}

/** Lists and optional values. */
export interface ComplexRequest {
  messages: Request[];
  tags: string[];
  note?: string | undefined;
  retries?: bigint | undefined;
}

/** A summary of a complex request. */
export interface ComplexResponse {
  summary: string;
  itemCount: bigint;
  hasNote: boolean;
}

/** One firing of a timer. */
export interface Tick {
  /** Number of the tick, counted from 1. */
  number: number;
  /** Delay in nanoseconds between the scheduled time and the actual time. A timer never fires early. */
  lateNs: bigint;
}

/** The columns of a batch of `Tick`. */
export type TickColumns = {
  readonly number: Column<Uint32Array>;
  readonly lateNs: Column<BigUint64Array>;
};

/** An error of a timer. */
export type TimerError =
  /** A timer needs a name. */
  | { tag: 'no-name' }
  /** The time is longer than one hour: the requested milliseconds. */
  | { tag: 'too-long'; val: number }
  /** The time is shorter than one millisecond. */
  | { tag: 'too-short' };

/** An error of a timer, as it is thrown. */
export class TimerErrorException extends ServiceError<TimerError> {}

/** A client of the service. */
export class Echo extends Client {
  /**
   * Opens the service in the library at `path`.
   * @throws {VersionMismatch} If the library is incompatible.
   */
  static open(path: string): Echo;
  /**
   * A new timer.
   * @throws {TimerErrorException}
   */
  timer(name: string, options?: CallOptions): Promise<Timer>;
  /** The version of the service. */
  version(options?: CallOptions): Promise<string>;
}

/** A timer with a name. */
export class Timer extends Resource {
  /**
   * Returns the message after its delay. The timer serves other calls meanwhile.
   * @throws {TimerErrorException}
   */
  echo(request: Request, options?: CallOptions): Promise<Response>;
  /** Summarizes the request. */
  complex(request: ComplexRequest, options?: CallOptions): Promise<ComplexResponse>;
  /**
   * Fires every `everyMs` milliseconds, `times` times. With 0 times, it fires until the stream is closed.
   * @throws {TimerErrorException}
   */
  schedule(
    everyMs: number,
    times: number,
    options?: CallOptions,
  ): Promise<Stream<Tick, TickColumns>>;
}
