// The conformance runner in JavaScript: node --expose-gc runner.js LIBRARY SCENARIOS HOSTILE REPORT.
// conformance/README.md describes the steps.
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

import { ServiceError } from 'thalweg';

import { call } from '../../bindings/node/lib/generated.js';
import { forge, methods, watch } from './interface.js';
import { argument, camel, opened, same, value } from './values.js';

// The module that watches the package must be imported before this one.

import { Conformance } from '../generated/node/conformance.js';

/** A scenario that takes longer than this, in milliseconds, ends the runner. */
const LIMIT = 120_000;

/** The reasons of gaps by their number in thalweg.h. */
const GAPS = [undefined, 'conflated', 'dropped-newest', 'dropped-oldest', 'batch-open', 'service'];

const [library, scenariosPath, hostilePath, reportPath] = process.argv.slice(2);

/** The host of every client. */
const oracle = {
  lookUp(key) {
    if (key === 101n) {
      throw new Error('at 101, on purpose');
    }
    if (key % 2n === 1n) {
      throw new ServiceError(key);
    }
    return `number ${key}`;
  },
  async tell(words, at) {
    return BigInt(Buffer.byteLength(words.join('')) + (at ?? 0));
  },
  nod() {},
};

function open() {
  return Conformance.open(library, { host: oracle });
}

function check(isRight, what) {
  if (!isRight) {
    throw new Error(what);
  }
}

/** The outcome of a promise, as a promise that is never rejected. */
function outcomeOf(promise) {
  return promise.then(
    (result) => ({ result }),
    (error) => ({ error }),
  );
}

/** Checks how a call or a stream ended. `type` is that of the service's own error. */
function checkEnding(expected, error, type) {
  const names = [expected.ends ?? ('error' in expected ? 'error' : 'ok')].flat();
  const name = error === undefined ? 'ok' : error.code;
  if (!names.includes(name)) {
    throw error ?? new Error(`it ended as ok, not as ${names}`);
  }
  if (error !== undefined) {
    check(error.message.includes(expected.message ?? ''), `another message: ${error.message}`);
    if ('error' in expected) {
      check(same(error.payload, value(type, expected.error)), `another error: ${error.message}`);
    }
  }
}

/** Checks the elements of a stream. `gap` is its `gapReason`. */
function checkElements(expected, { elements, controls, lost, gap }, type) {
  const { length } = elements;
  const are = (seen, json) =>
    seen.length === json.length && seen.every((one, i) => same(one, value(type, json[i])));
  check(!expected.elements || are(elements, expected.elements), 'other elements');
  check(!expected.controls || are(controls, expected.controls), 'other control records');
  check(!('first' in expected) || are(elements.slice(0, 1), [expected.first]), 'another first');
  check(!('last' in expected) || are(elements.slice(-1), [expected.last]), 'another last');
  check(length === (expected.count ?? length), `${length} elements`);
  check(length + lost === (expected.total ?? length + lost), `${length} elements, ${lost} lost`);
  check(expected.gap === undefined || gap === GAPS[expected.gap], `lost as ${gap}`);
}

/** The two clients of a scenario, and what its steps have stored. */
class Scenario {
  #client = open();
  #other;
  #kept = new Map();
  #started = new Map();

  async run(steps) {
    for (const step of steps) {
      await this.#step(step);
    }
  }

  close() {
    this.#client.close();
    this.#other?.close();
  }

  async #step(step) {
    if ('drop' in step) {
      this.#take(step.drop).close();
    } else if ('close' in step) {
      this.#client.close();
    } else if ('open' in step) {
      this.#client.close();
      this.#client = open();
    } else if ('other' in step) {
      [this.#client, this.#other] = [this.#other ?? open(), this.#client];
    } else if ('repeat' in step) {
      for (let i = 0; i < step.repeat; i++) {
        await this.run(step.steps);
      }
    } else if ('start' in step) {
      for (let i = 0; i < (step.times ?? 1); i++) {
        this.#start(step);
      }
    } else if ('await' in step) {
      for (const { began, outcome } of this.#started.get(step.await)) {
        await this.#finish(began, await outcome);
      }
      this.#started.delete(step.await);
    } else if ('call' in step) {
      await this.#callWithin(step);
    } else {
      await this.#stream(step);
    }
  }

  #take(name) {
    const one = this.#kept.get(name);
    this.#kept.delete(name);
    return one;
  }

  #start(step) {
    const all = this.#started.get(step.start) ?? [];
    all.push({ began: step, outcome: this.#begin(step) });
    this.#started.set(step.start, all);
  }

  /** Makes the call, again and again if it has `within_ms`. What it leaves behind becomes garbage. */
  async #callWithin(step) {
    const end = performance.now() + (step.within_ms ?? 0);
    for (;;) {
      try {
        await this.#call(step);
        return;
      } catch (error) {
        if (performance.now() >= end) {
          throw error;
        }
      }
      globalThis.gc();
      await delay(10);
    }
  }

  async #call(step) {
    const messages = 'arguments' in step || 'reply' in step ? watch() : undefined;
    const outcome = await this.#begin(step);
    if ('arguments' in step && outcome.error?.code !== 'closed') {
      check(messages.written === step.arguments, `other arguments: ${messages.written}`);
    }
    // An error without a payload is not read.
    const isRead = outcome.error === undefined || methods.get(step.call).error.kind !== '_';
    if ('reply' in step && isRead) {
      check(messages.read === step.reply, `another reply: ${messages.read}`);
    }
    await this.#finish(step, outcome);
  }

  /** Calls the function of the client or resource. */
  #begin(step) {
    const [, kind, path] = /^(?:\[(\w+)\])?(.*)$/.exec(step.call);
    const params = [...(step.params ?? [])];
    const fields = [...methods.get(step.call).params.fields];
    let of = this.#client;
    let name = camel(path.replace('.', '-'));
    if (kind === 'method' || kind === 'destructor') {
      of = this.#kept.get(params.shift().resource);
      fields.shift();
      name = kind === 'method' ? camel(path.split('.')[1]) : 'destroy';
    }
    // An array whose first elements are numbers does not keep the bits of a NaN.
    const all = [of];
    for (const { type } of fields) {
      all.push(argument(type, params.shift(), this.#kept));
    }
    all.push(this.#options(step));
    return outcomeOf(of[name].call(...all));
  }

  #options({ timeout_ms: timeout, cancel_after_ms: after, cancel_after_notices: notices }) {
    const controller = new AbortController();
    const options = { timeout, signal: controller.signal };
    if (after !== undefined) {
      setTimeout(() => controller.abort(), after);
    }
    if (notices !== undefined) {
      let left = notices;
      options.onNotice = () => {
        left -= 1;
        if (left === 0) {
          controller.abort();
        }
      };
    }
    return options;
  }

  /** Checks the outcome of a call. */
  async #finish(step, { result, error }) {
    const { ok, error: failure } = methods.get(step.call);
    const { stream: expected } = step;
    if (expected !== undefined && ok.kind === 'future') {
      const elements = error === undefined ? [result] : [];
      checkElements(expected, { elements, controls: [], lost: 0 }, ok.parts[0]);
      checkEnding(expected, error, failure);
    } else if (expected !== undefined && error === undefined) {
      await this.#read(result, expected, ok.parts[0], failure);
    } else {
      checkEnding(expected ?? step, error, failure);
      if ('bind' in step) {
        this.#kept.set(step.bind, result);
      }
      if ('ok' in step) {
        check(same(await opened(result), value(ok, step.ok)), 'another result');
      }
    }
  }

  /** Reads a stream and checks it. */
  async #read(stream, expected, type, failure) {
    const elements = [];
    const controls = [];
    let ended;
    try {
      for await (const element of stream) {
        (stream.control ? controls : elements).push(element);
        if (elements.length === expected.take) {
          break;
        }
      }
    } catch (error) {
      ended = error;
    }
    checkEnding(expected, ended, failure);
    const lost = Number(stream.lost);
    checkElements(expected, { elements, controls, lost, gap: stream.gapReason }, type);
  }

  /** A step about a stored stream of numbers. There are no callbacks: records are read later. */
  async #stream(step) {
    if ('read' in step) {
      await this.#read(this.#take(step.read), step.stream, { kind: 'u64' });
    } else if ('tee' in step) {
      this.#kept.set(step.bind, this.#kept.get(step.tee).tee());
    } else if ('stats' in step) {
      const stats = this.#kept.get(step.stats).stats();
      const lost = Object.values(stats.lost).reduce((sum, count) => sum + BigInt(count), 0n);
      for (const [key, wanted] of Object.entries(step).filter(([name]) => name !== 'stats')) {
        const count = BigInt(key === 'lost' ? lost : stats[key]);
        check(count === BigInt(wanted), `${key}: ${count}`);
      }
    } else {
      check('subscribe' in step, `an unknown step: ${Object.keys(step)}`);
    }
  }
}

/** Runs a scenario. Returns its verdict. */
async function verdictOf({ name, steps }) {
  const timer = setTimeout(() => {
    console.error(`${name}: it does not end`);
    process.exit(1);
  }, LIMIT);
  const scenario = new Scenario();
  try {
    await scenario.run(steps);
    return 'ok';
  } catch (error) {
    console.error(`${name}: ${error.stack}`);
    return 'failed';
  } finally {
    scenario.close();
    clearTimeout(timer);
  }
}

/** Sends malformed messages, cut at every byte and with each byte changed. Returns their number. */
async function sendHostile(messages) {
  const client = open();
  let sent = 0;
  const send = async (name, bytes, ends) => {
    sent += 1;
    forge(bytes);
    const bad = outcomeOf(call(client, methods.get(name).known));
    const [{ error }] = await Promise.all([bad, client.nothing()]);
    const code = error === undefined ? 'ok' : error.code;
    check(ends.includes(code), `${name} of ${bytes.toString('hex')}: ${error?.stack ?? code}`);
  };
  for (const { call: name, arguments: hex, ends, damage } of messages) {
    const bytes = Buffer.from(hex, 'hex');
    await send(name, bytes, [ends]);
    for (let at = 0; damage && at < bytes.length; at++) {
      await send(name, bytes.subarray(0, at), ['argument']);
      for (const other of [0x00, 0x01, 0x7f, 0x80, 0xc0, 0xff]) {
        const changed = Buffer.from(bytes);
        changed[at] = other;
        await send(name, changed, ['ok', 'error', 'argument']);
      }
    }
  }
  client.close();
  return sent;
}

const scenarios = [];
for (const scenario of JSON.parse(readFileSync(scenariosPath, 'utf8'))) {
  scenarios.push({ name: scenario.name, verdict: await verdictOf(scenario) });
}
const report = { language: 'Node', version: process.versions.node, scenarios };
writeFileSync(reportPath, JSON.stringify(report));
const failures = scenarios.filter(({ verdict }) => verdict !== 'ok').length;
console.log(`conformance: ${scenarios.length} scenarios, ${failures} failures`);
const sent = await sendHostile(JSON.parse(readFileSync(hostilePath, 'utf8')));
console.log(`conformance: ${sent} malformed messages were refused or answered`);
process.exitCode = failures > 0 ? 1 : 0;
