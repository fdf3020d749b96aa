// The fields of records that every program reads, and their sums.

export function ofTick({ number, bid, volume }) {
  return BigInt.asUintN(64, number + bid + volume);
}

export function ofTicks(ticks) {
  let total = 0n;
  for (const tick of ticks) {
    total = BigInt.asUintN(64, total + ofTick(tick));
  }
  return total;
}

export function ofEvent({ quote }) {
  return Number(quote.number);
}

export function ofEvents(events) {
  let total = 0;
  for (const event of events) {
    total += ofEvent(event);
  }
  return total;
}

/** Texts begin and end with ASCII. */
export function ofMatches(matches) {
  let total = 0;
  for (const { line, column, path, text } of matches) {
    const ends = text.charCodeAt(0) + text.charCodeAt(text.length - 1);
    total += Number(line) + Number(column) + path.length + ends;
  }
  return total;
}

/** The sum of a column of 64-bit numbers. */
export function ofColumn({ values, offset, stride, length }) {
  let total = 0n;
  for (let i = 0; i < length; i++) {
    total = BigInt.asUintN(64, total + values[offset + i * stride]);
  }
  return total;
}
