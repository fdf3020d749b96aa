// The code that `thalweg gen` will write for thalweg:echo@0.1.0. Written by hand until it does.

/** An echo and a timer: a small service with state, typed errors, calls that take time, and a stream. */

import { Client, call, Package, Resource, ServiceError, Stream } from '../../lib/generated.js';

const PACKAGE = new Package('thalweg:echo', '0.1.0', 0x85b23d4efd1e2c0an);

/** An error of a timer. Its `payload` is a `TimerError`. */
export class TimerErrorException extends ServiceError {}

function putRequest(w, at, value) {
  w.object(value);
  w.string(at, value.message, 'message');
  w.u32(at + 8, value.delayMs, 'delayMs');
}

function putString(w, at, value) {
  w.string(at, value);
}

function putS64(w, at, value) {
  w.s64(at, value);
}

function putComplexRequest(w, at, value) {
  w.object(value);
  w.list(at, value.messages, 'messages', 12, 4, putRequest);
  w.list(at + 8, value.tags, 'tags', 8, 4, putString);
  w.option(at + 16, value.note, 'note', 4, putString);
  w.option(at + 32, value.retries, 'retries', 8, putS64);
}

function getString(r, at) {
  return r.string(at);
}

function getResponse(r, at) {
  return { message: r.string(at), name: r.string(at + 8) };
}

function getComplexResponse(r, at) {
  return { summary: r.string(at), itemCount: r.u64(at + 8), hasNote: r.bool(at + 16) };
}

function getTick(r, at) {
  return { number: r.u32(at), lateNs: r.u64(at + 8) };
}

function getTimerError(r, at) {
  switch (r.discriminant(at, 3, 1)) {
    case 0:
      return { tag: 'no-name' };
    case 1:
      return { tag: 'too-long', val: r.u32(at + 4) };
    default:
      return { tag: 'too-short' };
  }
}

const TIMER_ERROR = { size: 8, get: getTimerError, class: TimerErrorException };

const TICK = {
  size: 16,
  tails: false,
  get: getTick,
  columns: { number: [0, 'u32'], lateNs: [8, 'u64'] },
};

const TIMER_NEW = PACKAGE.method({
  name: 'echo.[constructor]timer',
  hashes: [0xfa31dfc4d160bd48n, 0x5a1c164e7b57a908n, 0x8b48cb051347f86cn, 0n],
  types: ['record{name:string}', 'own<timer>', 'variant{no-name,too-long(u32),too-short}', ''],
  params: 8,
  ok: { size: 4, get: (r, at) => Timer.read(r, at) },
  error: TIMER_ERROR,
});

const TIMER_ECHO = PACKAGE.method({
  name: 'echo.[method]timer.echo',
  hashes: [0x149c38db7ec9c630n, 0x888b9577f47f0650n, 0x8b48cb051347f86cn, 0n],
  types: [
    'record{self:borrow<timer>,request:record{message:string,delay-ms:u32}}',
    'record{message:string,name:string}',
    'variant{no-name,too-long(u32),too-short}',
    '',
  ],
  handles: 1,
  params: 16,
  ok: { size: 16, get: getResponse },
  error: TIMER_ERROR,
});

const TIMER_COMPLEX = PACKAGE.method({
  name: 'echo.[method]timer.complex',
  hashes: [0x5b6cb073f292c545n, 0x7ba19d6c2aca7502n, 0n, 0n],
  types: [
    'record{self:borrow<timer>,request:record{messages:list<record{message:string,delay-ms:u32}>,tags:list<string>,note:option<string>,retries:option<s64>}}',
    'record{summary:string,item-count:u64,has-note:bool}',
    '',
    '',
  ],
  handles: 1,
  params: 56,
  ok: { size: 24, get: getComplexResponse },
});

const TIMER_SCHEDULE = PACKAGE.method({
  name: 'echo.[method]timer.schedule',
  hashes: [0x161eb98fd3b66130n, 0x8679efcc66983aa2n, 0x8b48cb051347f86cn, 0xba691612fa35926en],
  types: [
    'record{self:borrow<timer>,every-ms:u32,times:u32}',
    'stream<record{number:u32,late-ns:u64}>',
    'variant{no-name,too-long(u32),too-short}',
    'record{number:u32,late-ns:u64}',
  ],
  handles: 1,
  params: 12,
  ok: { size: 4, get: (r, at) => Stream.read(r, at, TICK) },
  error: TIMER_ERROR,
});

const VERSION = PACKAGE.method({
  name: 'echo.version',
  hashes: [0x651bccb0340f0ef8n, 0x704be0d8faaffc58n, 0n, 0n],
  types: ['record{}', 'string', '', ''],
  ok: { size: 8, get: getString },
});

/** A client of the service. */
export class Echo extends Client {
  static package = PACKAGE;

  /** A new timer. */
  timer(name, options) {
    return call(this, TIMER_NEW, options, (w, at) => {
      w.string(at, name, 'name');
    });
  }

  /** The version of the service. */
  version(options) {
    return call(this, VERSION, options);
  }
}

/** A timer with a name. */
export class Timer extends Resource {
  /** Returns the message after its delay. The timer serves other calls meanwhile. */
  echo(request, options) {
    return call(this, TIMER_ECHO, options, (w, at) => {
      w.value(at + 4, request, 'request', putRequest);
    });
  }

  /** Summarizes the request. */
  complex(request, options) {
    return call(this, TIMER_COMPLEX, options, (w, at) => {
      w.value(at + 8, request, 'request', putComplexRequest);
    });
  }

  /** Fires every `everyMs` milliseconds, `times` times. With 0 times, until the stream is closed. */
  schedule(everyMs, times, options) {
    return call(this, TIMER_SCHEDULE, options, (w, at) => {
      w.u32(at + 4, everyMs, 'everyMs');
      w.u32(at + 8, times, 'times');
    });
  }
}
