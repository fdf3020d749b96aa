// The Node host program of the lab's own service: `lab_host.js LIBRARY BY_HAND`.
//
// Its lines are those of src/workloads/lab_hosts.rs. It uses the generated package as a program would.
// BY_HAND is the addon of crates/bench/peers/node/by_hand.c.
import { Lab } from '../../generated/node/lab.js';
import { complete, drain, flood, paced, raw } from './completions.js';
import * as reading from './reading.js';
import { block, load, serve, together } from './sample.js';
import * as touch from './touch.js';

const [library, path] = process.argv.slice(2);
const byHand = load(path);
const lab = Lab.open(library);
byHand.open(library);

const nop = () => lab.nop();
const ticks = (count) => lab.ticks(count, reading.BATCH);
const events = (count) => lab.events(count, reading.BATCH);
const commands = {
  nop: block(nop),
  'nop-64': together(nop),
  'nop-async': block(() => lab.nopAsync()),
  tally: block(() => lab.tally(1n)),
  bare: block(byHand.bareCall),
  complete: (count) => complete(lab, count),
  drain: (count) => drain(lab, count),
  paced: (count, perS) => paced(lab, count, perS),
  raw: (count) => raw(byHand, count),
  array: reading.array((count) => lab.generate(count), touch.ofMatches),
  'tick-array': reading.array(ticks, touch.ofTicks),
  verify: async (count) => reading.verify(await lab.generate(BigInt(count))),
  flood: (milliseconds) => flood(() => Lab.open(library), milliseconds),
};
for (const [how, touchBatch] of Object.entries(reading.MATCHES)) {
  commands[how] = async (count) => reading.ready(await lab.generate(BigInt(count)), touchBatch);
}
for (const [how, touchBatch] of Object.entries(reading.TICKS)) {
  commands[`tick-${how}`] = async (count) => reading.ready(await ticks(BigInt(count)), touchBatch);
  commands[`stream-${how}`] = (count) => reading.whole(() => ticks(BigInt(count)), touchBatch);
}
commands['stream-one'] = (count) => reading.oneByOne(() => ticks(BigInt(count)));
for (const [how, touchBatch] of Object.entries(reading.EVENTS)) {
  commands[`events-${how}`] = (count) => reading.whole(() => events(BigInt(count)), touchBatch);
}

for (const operation of [nop, commands['nop-async'], byHand.bareCall]) {
  await operation(1, 0, 0);
}
await serve(byHand, commands);
lab.close();
byHand.close();
