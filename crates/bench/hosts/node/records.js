// Objects of the peer's records: the C structures of crates/bench/peers/node/by_hand.c.

/**
 * The fields of a record in the order of its memory: `name:type`. `{` begins a nested record.
 */
export const TICK = 'number:Q at:Q bid:Q ask:Q bidSize:Q askSize:Q last:Q volume:Q';
const CONTRACT =
  'contract:{ symbol:Q expiration:i security:u strike:d isCall:u exchange:u id:Q }';
export const EVENT = `kind:k
  ohlcvc:{ ${CONTRACT} msOfDay:i date:i open:d high:d low:d close:d volume:q count:q
    receivedAt:Q number:Q }
  openInterest:{ ${CONTRACT} msOfDay:i openInterest:i date:i bits:u receivedAt:Q }
  quote:{ ${CONTRACT} number:Q receivedAt:Q bid:d ask:d msOfDay:i date:i bidSize:i bidExchange:i
    bidCondition:i askSize:i askExchange:i askCondition:i }
  trade:{ ${CONTRACT} number:Q receivedAt:Q price:d msOfDay:i date:i sequence:i size:i exchange:i
    condition:i condition1:i condition2:i condition3:i condition4:i conditionFlags:u priceFlags:u
    volumeType:u recordsBack:u }
  control:{ kind:i id:i detail:Q }
  raw:{ code:u bits:u payload:Q payloadLength:Q }
  rest:3 detail:s payload:b`;

const U64 = (at) => `view.getBigUint64(${at}, true)`;
/** The bytes of each type, and the expression that reads it at a position. */
const TYPES = {
  Q: [8, U64],
  q: [8, (at) => `view.getBigInt64(${at}, true)`],
  i: [4, (at) => `view.getInt32(${at}, true)`],
  u: [4, (at) => `view.getUint32(${at}, true)`],
  d: [8, (at) => `view.getFloat64(${at}, true)`],
  // The kind of an event; all are quotes.
  k: [8, (at) => `KINDS[view.getUint32(${at}, true)]`],
  3: [24, (at) => `[${U64(at)}, ${U64(at + 8)}, ${U64(at + 16)}]`],
  // Text and bytes, which are empty.
  s: [8, () => "''"],
  b: [8, () => 'new Uint8Array(0)'],
};

/**
 * A buffer for one record and a function that creates its object: one literal with all fields, as if
 * written by hand for the record, which is the fastest form.
 */
export function record(fields) {
  let size = 0;
  const literal = fields.replace(/(\w+:)(\S+)|\s+/g, (word, name, type) => {
    if (name === undefined) {
      return ' ';
    }
    if (type === '{') {
      return word;
    }
    const [bytes, read] = TYPES[type];
    size += bytes;
    return `${name} ${read(size - bytes)},`;
  });
  const buffer = new ArrayBuffer(size);
  const body = `return () => ({ ${literal.replaceAll('}', '},')} });`;
  const create = new Function('view', 'KINDS', body)(new DataView(buffer), ['quote']);
  return { buffer, create };
}
