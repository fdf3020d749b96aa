// The Node host program of the peers: `peer_host.js BY_HAND [NAPI]`.
//
// Its lines are `nop COUNT UNCOUNTED PAUSE_US`, also `nop-64`, of napi-rs; and `ticks COUNT` and
// `events COUNT`, a threadsafe function called once for each.
import * as reading from './reading.js';
import { EVENT, record, TICK } from './records.js';
import { block, load, serve, together } from './sample.js';
import * as touch from './touch.js';

const [path, napi] = process.argv.slice(2);
const byHand = load(path);
const commands = {
  ticks: (count) => reading.called(byHand.ticks, count, record(TICK), touch.ofTick),
  events: (count) => reading.called(byHand.events, count, record(EVENT), touch.ofEvent),
};
if (napi !== undefined) {
  const { nop } = load(napi);
  await nop();
  Object.assign(commands, { nop: block(() => nop()), 'nop-64': together(() => nop()) });
}
await serve(byHand, commands);
