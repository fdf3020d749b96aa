## `nimble bench`: the seven benchmarks, then the comparisons, in interleaved processes.
##
##   run FOLDER [--quick]     FOLDER has the programs `suite`, `cell`, `gc_pause`, and `spsc_rate` of Rust
##
## A comparison runs subject and peer in turn, a new process for each sample. A ratio is computed pair
## by pair. The interval contains the median with 95 % probability, whatever the distribution (ranks
## n/2 -+ 0.98 sqrt(n)). It is met or missed if the interval is on one side of the bar, else undecided.

import std/[algorithm, math, os, osproc, strformat, strutils]

let folder = paramStr(1)
let quick = "--quick" in commandLineParams()

proc output(command: string): string =
  let (text, code) = execCmdEx(command)
  if code != 0: quit(command & ": " & text, 1)
  text.strip

proc sample(command: string): float = parseFloat(output(folder / command))

proc compare(what, subject, peer: string, bar: float, pairs: int) =
  if not fileExists(folder / peer.split(' ')[0]):
    echo &"| {what} | not measured: {peer.split(' ')[0]} was not built | | | |"
    return
  var ratios, subjects, peers: seq[float]
  let pairs = if quick: 1 else: pairs
  for _ in 1 .. pairs:
    let (a, b) = (sample(subject), sample(peer))
    subjects.add(a)
    peers.add(b)
    ratios.add(a / b)
  sort(ratios)
  sort(subjects)
  sort(peers)
  let rank = max(0, int(pairs / 2 - 0.98 * sqrt(pairs.float)) - 1)
  let (low, high) = (ratios[rank], ratios[^(rank + 1)])
  let verdict = if quick: "quick" elif high <= bar: "met" elif low > bar: "missed" else: "undecided"
  echo &"| {what} | {subjects[pairs div 2]:.1f} | {peers[pairs div 2]:.1f} | " &
    &"{ratios[pairs div 2]:.2f} ({low:.2f} to {high:.2f}) | <= {bar}: {verdict} |"

if quick: discard execCmd(folder / "suite --quick")
else: discard execCmd(folder / "suite")
let many = if quick: 10_000 else: 10_000_000
let some = if quick: 1_000 else: 500_000
let few = if quick: 100 else: 20_000
echo "\n| comparison | Nim, ns per message | peer | ratio (interval) | bar |"
echo "| --- | --- | --- | --- | --- |"
for capacity in [64, 1024]:
  compare(&"spsc, two threads, capacity {capacity}: Rust", &"cell spsc {many} {capacity}",
    &"spsc_rate {many} {capacity}", 1.2, pairs = 101)
compare("await, one loop, capacity 16: Channel polled, no sleep", &"cell async {some} 16",
  &"cell polled_0ms {some} 16", 0.4, pairs = 21)
compare("await, one loop, capacity 16: Channel polled, 1 ms sleep", &"cell async {some} 16",
  &"cell polled_1ms {few} 16", 0.4, pairs = 21)
echo "\n| 1 GB of live objects | memory | heartbeat, late by | processor time of 100 changes | of a collection |"
echo "| --- | --- | --- | --- | --- |"
for shape in ["pairs", "connected"]:
  echo output(folder / "gc_pause " & shape & (if quick: " 20 1" else: ""))
