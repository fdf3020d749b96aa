// A part of thalweg:conformance, written by hand. The numbers and hashes of its functions are read
// from the C header, so that further functions in the WIT file change nothing here.
import { readFileSync } from 'node:fs';

import {
  Client,
  call,
  Package,
  Resource,
  readFuture,
  ServiceError,
  Stream,
} from '../../lib/generated.js';

const HEADER =
  process.env.THALWEG_TEST_HEADER ??
  new URL('../../../../conformance/generated/c/conformance.h', import.meta.url);

const text = readFileSync(HEADER, 'utf8');

/** The functions of an array of tw_method in the header. */
function functions(array) {
  const begin = text.indexOf(`${array}[] = {`);
  const body = text.slice(begin, text.indexOf('\n};', begin));
  const one = /\{"([^"]+)",([^;]*?)\(const uint8_t \*\)((?:\s*"(?:[^"\\]|\\.)*")+)\}/g;
  return [...body.matchAll(one)].map(([, name, numbers, types]) => ({
    name,
    hashes: numbers
      .split(',')
      .slice(0, 4)
      .map((number) => BigInt(number.replace(/UINT64_C\((.*)\)/, '$1').trim())),
    types: [...types.matchAll(/"((?:[^"\\]|\\.)*)"/g)]
      .map(([, line]) => line)
      .join('')
      .split('\\n'),
  }));
}

const layout = BigInt(/CONFORMANCE_LAYOUT UINT64_C\((0x[0-9a-f]+)\)/.exec(text)[1]);
const imports = BigInt(/conformance_methods, \d+, UINT64_C\((0x[0-9a-f]+)\)/.exec(text)[1]);

export class FailureException extends ServiceError {}

const COLORS = ['red', 'green', 'bool'];
const RIGHTS = ['read', 'write', 'record'];

const leaf = (type) => (w, at, value) => w[type](at, value);
const read = (type) => (r, at) => r[type](at);
const putString = leaf('string');
const getString = read('string');

function putPoint(w, at, value) {
  w.object(value);
  w.s32(at, value.x, 'x');
  w.s32(at + 4, value.y, 'y');
}

function getPoint(r, at) {
  return { x: r.s32(at), y: r.s32(at + 4) };
}

function putShape(w, at, value) {
  w.object(value);
  switch (value.tag) {
    case 'circle':
      w.discriminant(at, 0, 1);
      w.f64(at + 8, value.val, 'val');
      break;
    case 'label':
      w.discriminant(at, 2, 1);
      w.string(at + 8, value.val, 'val');
      break;
    case 'polygon':
      w.discriminant(at, 3, 1);
      w.list(at + 8, value.val, 'val', 8, 4, putPoint);
      break;
    case 'nothing':
      w.discriminant(at, 4, 1);
      break;
    default:
      w.fail('tag', 'one of circle, label, polygon, nothing', value.tag);
  }
}

function getShape(r, at) {
  switch (r.discriminant(at, 6, 1)) {
    case 0:
      return { tag: 'circle', val: r.f64(at + 8) };
    case 2:
      return { tag: 'label', val: r.string(at + 8) };
    case 3:
      return { tag: 'polygon', val: r.list(at + 8, 8, 4, getPoint) };
    default:
      return { tag: 'nothing' };
  }
}

function putFailure(w, at, value) {
  w.object(value);
  switch (value.tag) {
    case 'unknown':
      w.discriminant(at, 0, 1);
      break;
    case 'code':
      w.discriminant(at, 1, 1);
      w.u32(at + 4, value.val, 'val');
      break;
    default:
      w.fail('tag', 'one of unknown, code, at', value.tag);
  }
}

function getFailure(r, at) {
  switch (r.discriminant(at, 3, 1)) {
    case 0:
      return { tag: 'unknown' };
    case 1:
      return { tag: 'code', val: r.u32(at + 4) };
    default:
      return { tag: 'at', val: [r.string(at + 4), getPoint(r, at + 12)] };
  }
}

function putItem(w, at, value) {
  w.object(value);
  w.u64(at, value.number, 'number');
  w.string(at + 8, value.name, 'name');
  w.list(at + 16, value.tags, 'tags', 8, 4, putString);
  w.option(at + 24, value.blob, 'blob', 4, leaf('blob'));
}

function getItem(r, at) {
  return {
    number: r.u64(at),
    name: r.string(at + 8),
    tags: r.list(at + 16, 8, 4, getString),
    blob: r.option(at + 24, 4, read('blob')),
  };
}

function getSample(r, at) {
  return { number: r.u32(at), at: getPoint(r, at + 4) };
}

function getResult(r, at) {
  return r.discriminant(at, 2, 1) === 0
    ? { tag: 'ok', val: r.string(at + 4) }
    : { tag: 'err', val: r.u32(at + 4) };
}

const U64S = { size: 8, tails: false, get: read('u64'), columns: { value: [0, 'u64'] } };
const ITEMS = { size: 40, tails: true, get: getItem, columns: { number: [0, 'u64'] } };
const SAMPLES = {
  size: 144,
  tails: true,
  get: getSample,
  columns: { number: [0, 'u32'], 'at.x': [4, 's32'], 'at.y': [8, 's32'] },
};
const STRINGS = { size: 8, tails: true, get: getString, columns: {} };
const FAILURE = { size: 20, get: getFailure, class: FailureException };
const CODE = { size: 4, get: read('u32') };
const stream = (element) => ({ size: 4, get: (r, at) => Stream.read(r, at, element) });
const COUNTER = { size: 4, get: (r, at) => Counter.read(r, at) };
const number = (type, size) => ({ params: size, ok: { size, get: read(type) } });

/** The sizes and readers of the functions that the tests call. */
const KNOWN = {
  'echo-bool': number('bool', 1),
  'echo-u8': number('u8', 1),
  'echo-u16': number('u16', 2),
  'echo-u32': number('u32', 4),
  'echo-u64': number('u64', 8),
  'echo-s8': number('s8', 1),
  'echo-s16': number('s16', 2),
  'echo-s32': number('s32', 4),
  'echo-s64': number('s64', 8),
  'echo-f32': number('f32', 4),
  'echo-f64': number('f64', 8),
  'echo-char': number('char', 4),
  'echo-string': number('string', 8),
  'echo-bytes': number('blob', 8),
  'echo-numbers': { params: 8, ok: { size: 8, get: (r, at) => r.numbers(at, 's64') } },
  'echo-floats': { params: 8, ok: { size: 8, get: (r, at) => r.numbers(at, 'f64') } },
  'echo-strings': { params: 8, ok: { size: 8, get: (r, at) => r.list(at, 8, 4, getString) } },
  'echo-option': { params: 12, ok: { size: 12, get: (r, at) => r.option(at, 4, getString) } },
  'echo-point': { params: 8, ok: { size: 8, get: getPoint } },
  'echo-shapes': { params: 8, ok: { size: 8, get: (r, at) => r.list(at, 24, 8, getShape) } },
  'echo-color': { params: 1, ok: { size: 1, get: (r, at) => r.enumeration(at, COLORS, 1) } },
  'echo-rights': { params: 1, ok: { size: 1, get: (r, at) => r.flags(at, RIGHTS, 1) } },
  'echo-three': { params: 24, ok: { size: 24, get: (r, at) => r.fixed(at, 3, 8, read('s64')) } },
  nothing: {},
  count: { params: 16, ok: stream(U64S) },
  items: { params: 8, ok: stream(ITEMS), error: FAILURE },
  latest: { params: 8, ok: stream(U64S) },
  breaks: { params: 8, ok: stream(U64S) },
  endless: { ok: stream(U64S) },
  running: { ok: CODE },
  fail: { params: 24, ok: { size: 8, get: read('u64') }, error: FAILURE },
  panic: { params: 8, ok: CODE },
  'panic-later': { params: 8, ok: CODE },
  never: {},
  sleep: { params: 4, ok: CODE },
  counters: { ok: CODE },
  twice: { params: 4, ok: { size: 8, get: read('u64') } },
  'fail-here': { params: 24, ok: { size: 8, get: read('u64') }, error: FAILURE },
  'panic-here': { params: 8, ok: CODE },
  ask: { params: 8, ok: { size: 8, get: getString }, error: CODE },
  'ask-later': { params: 8, ok: { size: 8, get: getString }, error: CODE },
  tell: { params: 16, ok: { size: 8, get: read('u64') }, error: CODE },
  samples: { params: 4, ok: stream(SAMPLES) },
  'give-counters': {
    params: 16,
    ok: {
      size: 8,
      get: (r, at) => r.list(at, 4, 4, (reader, place) => Counter.read(reader, place)),
    },
  },
  total: { params: 8, ok: { size: 8, get: read('u64') } },
  later: { params: 12, ok: { size: 4, get: (r, at) => readFuture(r, at, STRINGS) } },
  'never-comes': {
    params: 12,
    ok: {
      size: 4,
      get: (r, at) => readFuture(r, at, { size: 8, tails: false, get: getPoint, columns: {} }),
    },
    error: FAILURE,
  },
  'drops-oldest': { params: 8, ok: stream(U64S) },
  'sum-of': {
    params: 4,
    handles: 1,
    ok: { size: 16, get: (r, at) => [r.u64(at), r.u64(at + 8)] },
    error: CODE,
  },
  'names-of': { params: 4, handles: 1, ok: { size: 8, get: getString } },
  'first-numbers': { params: 8, handles: 1, ok: { size: 8, get: (r, at) => r.numbers(at, 'u64') } },
  'add-all': { params: 8, handles: 2, ok: { size: 8, get: read('u64') } },
  hear: { params: 4, handles: 1, ok: { size: 8, get: getString }, error: CODE },
  'ask-all': {
    params: 4,
    handles: 1,
    ok: { size: 8, get: (r, at) => r.list(at, 12, 4, getResult) },
  },
  waiting: { ok: CODE },
  'held-up': {},
  'let-go': {},
  limited: {},
  stops: { params: 16, ok: stream(U64S), error: FAILURE },
  '[constructor]counter': { params: 8, ok: COUNTER },
  '[method]counter.add': { params: 16, handles: 1, ok: { size: 8, get: read('u64') } },
  '[method]counter.value': { params: 4, handles: 1, ok: { size: 8, get: read('u64') } },
  '[static]counter.sum': { params: 8, handles: 2, ok: COUNTER },
  '[static]counter.finish': { params: 4, handles: 1, ok: { size: 8, get: read('u64') } },
};

const PACKAGE = new Package('thalweg:conformance', '0.1.0', layout, imports);
const METHODS = {};
for (const described of functions('conformance_methods')) {
  const name = described.name.replace('conformance.', '');
  METHODS[name] = PACKAGE.method({ ...described, ...KNOWN[name] });
}

const IMPORTS = {
  'oracle.look-up': {
    property: 'lookUp',
    params: 8,
    arguments: (r, at) => [r.u64(at)],
    ok: { size: 8, put: putString },
    error: { size: 8, put: leaf('u64') },
  },
  'oracle.tell': {
    property: 'tell',
    params: 16,
    arguments: (r, at) => [r.list(at, 8, 4, getString), r.option(at + 8, 4, read('u32'))],
    ok: { size: 8, put: leaf('u64') },
  },
  'oracle.nod': { property: 'nod', params: 0, arguments: () => [], ok: { size: 0 } },
};
for (const described of functions('conformance_imports')) {
  PACKAGE.hostImport({ ...described, ...IMPORTS[described.name] });
}

const hashOf = (name) => Number(METHODS[name].hashes[3] & 0xffff_ffffn);
const SEND_U64 = { size: 8, layout: hashOf('count'), put: leaf('u64') };
const SEND_ITEM = { size: 40, layout: hashOf('items'), put: putItem };
const SEND_STRING = { size: 8, layout: hashOf('looked-up'), put: putString };

/** Calls a function of the interface. */
function to(client, name, options, put, handles) {
  return call(client, METHODS[name], options, put, handles);
}

/** A client of the service. */
export class Conformance extends Client {
  static package = PACKAGE;

  /** Calls `echo-TYPE`, for a type that `Writer` and `Reader` have a method for. */
  echo(type, value, options) {
    return to(this, `echo-${type}`, options, (w, at) => w[type](at, value, 'value'));
  }

  echoU8(value, options) {
    return to(this, 'echo-u8', options, (w, at) => w.u8(at, value, 'value'));
  }

  echoString(value, options) {
    return to(this, 'echo-string', options, (w, at) => w.string(at, value, 'value'));
  }

  echoBytes(value, options) {
    return to(this, 'echo-bytes', options, (w, at) => w.blob(at, value, 'value'));
  }

  echoNumbers(value, options) {
    return to(this, 'echo-numbers', options, (w, at) => w.numbers(at, value, 'value', 's64'));
  }

  echoFloats(value, options) {
    return to(this, 'echo-floats', options, (w, at) => w.numbers(at, value, 'value', 'f64'));
  }

  echoStrings(value, options) {
    return to(this, 'echo-strings', options, (w, at) =>
      w.list(at, value, 'value', 8, 4, putString),
    );
  }

  echoOption(value, options) {
    return to(this, 'echo-option', options, (w, at) => w.option(at, value, 'value', 4, putString));
  }

  echoPoint(value, options) {
    return to(this, 'echo-point', options, (w, at) => w.value(at, value, 'value', putPoint));
  }

  echoShapes(value, options) {
    return to(this, 'echo-shapes', options, (w, at) => w.list(at, value, 'value', 24, 8, putShape));
  }

  echoColor(value, options) {
    return to(this, 'echo-color', options, (w, at) => w.enumeration(at, value, 'value', COLORS, 1));
  }

  echoRights(value, options) {
    return to(this, 'echo-rights', options, (w, at) => w.flags(at, value, 'value', RIGHTS, 1));
  }

  echoThree(value, options) {
    return to(this, 'echo-three', options, (w, at) =>
      w.fixed(at, value, 'value', 3, 8, leaf('s64')),
    );
  }

  nothing(options) {
    return to(this, 'nothing', options);
  }

  count(first, count, options) {
    return to(this, 'count', options, (w, at) => {
      w.u64(at, first, 'first');
      w.u64(at + 8, count, 'count');
    });
  }

  items(count, options) {
    return to(this, 'items', options, (w, at) => w.u64(at, count, 'count'));
  }

  latest(count, options) {
    return to(this, 'latest', options, (w, at) => w.u64(at, count, 'count'));
  }

  breaks(after, options) {
    return to(this, 'breaks', options, (w, at) => w.u64(at, after, 'after'));
  }

  dropsOldest(count, options) {
    return to(this, 'drops-oldest', options, (w, at) => w.u64(at, count, 'count'));
  }

  samples(count, options) {
    return to(this, 'samples', options, (w, at) => w.u32(at, count, 'count'));
  }

  stops(count, how, options) {
    return to(this, 'stops', options, (w, at) => {
      w.u64(at, count, 'count');
      w.string(at + 8, how, 'how');
    });
  }

  endless(options) {
    return to(this, 'endless', options);
  }

  running(options) {
    return to(this, 'running', options);
  }

  waiting(options) {
    return to(this, 'waiting', options);
  }

  heldUp(options) {
    return to(this, 'held-up', options);
  }

  letGo(options) {
    return to(this, 'let-go', options);
  }

  limited(options) {
    return to(this, 'limited', options);
  }

  fail(how, options) {
    return to(this, 'fail', options, (w, at) => w.option(at, how, 'how', 4, putFailure));
  }

  failHere(how, options) {
    return to(this, 'fail-here', options, (w, at) => w.option(at, how, 'how', 4, putFailure));
  }

  panic(message, options) {
    return to(this, 'panic', options, (w, at) => w.string(at, message, 'message'));
  }

  panicLater(message, options) {
    return to(this, 'panic-later', options, (w, at) => w.string(at, message, 'message'));
  }

  panicHere(message, options) {
    return to(this, 'panic-here', options, (w, at) => w.string(at, message, 'message'));
  }

  never(options) {
    return to(this, 'never', options);
  }

  sleep(milliseconds, options) {
    return to(this, 'sleep', options, (w, at) => w.u32(at, milliseconds, 'milliseconds'));
  }

  twice(value, options) {
    return to(this, 'twice', options, (w, at) => w.u32(at, value, 'value'));
  }

  ask(key, options) {
    return to(this, 'ask', options, (w, at) => w.u64(at, key, 'key'));
  }

  askLater(key, options) {
    return to(this, 'ask-later', options, (w, at) => w.u64(at, key, 'key'));
  }

  tell(words, at, options) {
    return to(this, 'tell', options, (w, root) => {
      w.list(root, words, 'words', 8, 4, putString);
      w.option(root + 8, at, 'at', 4, leaf('u32'));
    });
  }

  later(milliseconds, word, options) {
    return to(this, 'later', options, (w, at) => {
      w.u32(at, milliseconds, 'milliseconds');
      w.string(at + 4, word, 'text');
    });
  }

  neverComes(message, options) {
    return to(this, 'never-comes', options, (w, at) =>
      w.option(at, message, 'message', 4, putString),
    );
  }

  sumOf(numbers, options) {
    return to(this, 'sum-of', options, (w, at) => w.stream(at, numbers, 'numbers', 0, SEND_U64));
  }

  namesOf(items, options) {
    return to(this, 'names-of', options, (w, at) => w.stream(at, items, 'items', 0, SEND_ITEM));
  }

  firstNumbers(count, numbers, options) {
    return to(this, 'first-numbers', options, (w, at) => {
      w.u32(at, count, 'count');
      w.stream(at + 4, numbers, 'numbers', 1, SEND_U64);
    });
  }

  addAll(counter, amounts, options) {
    return to(this, 'add-all', options, (w, at) => {
      w.borrow(at, counter, 'counter', Counter);
      w.stream(at + 4, amounts, 'amounts', 1, SEND_U64);
    });
  }

  hear(word, options) {
    return to(this, 'hear', options, (w, at) => w.future(at, word, 'text', 0, SEND_STRING));
  }

  askAll(keys, options) {
    return to(this, 'ask-all', options, (w, at) => w.stream(at, keys, 'keys', 0, SEND_U64));
  }

  counters(options) {
    return to(this, 'counters', options);
  }

  counter(start, options) {
    return to(this, '[constructor]counter', options, (w, at) => w.u64(at, start, 'start'));
  }

  counterSum(left, right, options) {
    return to(this, '[static]counter.sum', options, (w, at) => {
      w.borrow(at, left, 'left', Counter);
      w.borrow(at + 4, right, 'right', Counter);
    });
  }

  counterFinish(counter, options) {
    return to(this, '[static]counter.finish', options, (w, at) => {
      w.own(at, counter, 'counter', Counter);
    });
  }

  giveCounters(start, count, options) {
    return to(this, 'give-counters', options, (w, at) => {
      w.u64(at, start, 'start');
      w.u32(at + 8, count, 'count');
    });
  }

  total(counters, options) {
    const put = (w, at, value) => w.own(at, value, undefined, Counter);
    return to(
      this,
      'total',
      options,
      (w, at) => w.list(at, counters, 'counters', 4, 4, put),
      counters?.length ?? 0,
    );
  }
}

/** A number that stays in the service. */
export class Counter extends Resource {
  add(amount, options) {
    return to(this, '[method]counter.add', options, (w, at) => w.u64(at + 8, amount, 'amount'));
  }

  value(options) {
    return to(this, '[method]counter.value', options);
  }
}
