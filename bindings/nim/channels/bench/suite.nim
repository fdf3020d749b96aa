## nimsync's seven benchmarks, each in its original form and as its name says.
##
## The original form ("theirs") keeps nimsync's loop, parameters and arithmetic: one thread, and a send
## and a receive counted as two operations. The other row is the honest twin: two threads, wall-clock
## time, a message counted once.
##
##   suite [--quick] [NAME...]
##
## `--quick` divides the numbers of messages by 100; its figures mean nothing.

import system except Channel
import std/[algorithm, monotimes, os, sequtils, strformat, strutils]
import thalweg_channels
import ./cells

let quick = "--quick" in commandLineParams()
let names = commandLineParams().filterIt(not it.startsWith("--"))

proc scaled(messages: int): int = (if quick: max(messages div 100, 100) else: messages)

proc row(benchmark, form, parameters, figure: string) =
  echo &"| {benchmark} | {form} | {parameters} | {figure} |"

proc millions(nanoseconds: float): string = &"{1000 / nanoseconds:.1f} M"

proc percentile(sorted: seq[int64], share: float): int64 =
  sorted[min(sorted.high, int(float(sorted.len) * share))]

proc percentiles(samples: var seq[int64]): string =
  sort(samples)
  &"p50 {samples.percentile(0.5)}, p95 {samples.percentile(0.95)}, p99 {samples.percentile(0.99)}, " &
    &"p99.9 {samples.percentile(0.999)}, max {samples[^1]} ns"

proc spread(samples: seq[float], unit: string): string =
  ## The rate of the median, and of the slowest and the fastest run.
  var sorted = samples
  sort(sorted)
  &"{millions(sorted[sorted.len div 2])} {unit} ({millions(sorted[^1])} to {millions(sorted[0])})"

proc repeat(count: int, cell: proc (): float): seq[float] =
  for _ in 1 .. count: result.add(cell())

# Their loop alternates, so the ring contains at most one message. They count both halves.
proc theirs(messages, capacity: int): float = sameThread(messages, capacity) / 2

proc spscSimple() =
  for (messages, capacity) in [(10_000_000, 16), (10_000_000, 1024), (100_000_000, 1024)]:
    let count = scaled(messages)
    discard theirs(scaled(1_000_000), 1024)
    let parameters = &"{count} messages, capacity {capacity}"
    row("spsc_simple", "theirs, one thread", parameters,
      spread(repeat(3, proc (): float = theirs(count, capacity)), "operations/s"))
    row("spsc_simple", "two threads", parameters,
      spread(repeat(5, proc (): float = twoThreads(min(count, 10_000_000), capacity)), "messages/s"))

proc answer(channels: (Channel[int], Channel[int])) {.thread.} =
  for value in channels[0]: channels[1].blockingSend(value)

proc latency() =
  let channel = newChannel[int](1024, SPSC)
  var samples: seq[int64]
  var value: int
  for i in 1 .. 11_000:
    let start = getMonoTime().ticks
    doAssert channel.trySend(i) and channel.tryReceive(value)
    if i > 1000: samples.add(getMonoTime().ticks - start)
  row("latency", "theirs, one thread", "10000 pairs, capacity 1024", percentiles(samples))
  let (there, back) = (newChannel[int](1024, SPSC), newChannel[int](1024, SPSC))
  var thread: Thread[(Channel[int], Channel[int])]
  createThread(thread, answer, (there, back))
  var trips: seq[int64]
  for i in 1 .. scaled(100_000) + 1000:
    let start = getMonoTime().ticks
    there.blockingSend(i)
    doAssert back.blockingRecv() == i
    if i > 1000: trips.add(getMonoTime().ticks - start)
  there.close()
  joinThread(thread)
  row("latency", "two threads, round trip", &"{trips.len} trips, capacity 1024", percentiles(trips))

proc acknowledge(job: (Channel[int], Channel[int], int)) {.thread.} =
  var received = 0
  for value in job[0]:
    inc received
    if received mod job[2] == 0: job[1].blockingSend(value)

proc burst() =
  for size in [100, 250, 500]:
    let parameters = &"100 bursts of {size}, capacity 1024"
    proc oneThread(): float =
      let channel = newChannel[int](1024, SPSC)
      var value: int
      let start = getMonoTime().ticks
      for _ in 1 .. 100:
        for i in 1 .. size: doAssert channel.trySend(i)
        for i in 1 .. size: doAssert channel.tryReceive(value) and value == i
      float(getMonoTime().ticks - start) / float(2 * 100 * size)
    proc twoThreads(): float =
      let (there, back) = (newChannel[int](1024, SPSC), newChannel[int](1, SPSC))
      var thread: Thread[(Channel[int], Channel[int], int)]
      createThread(thread, acknowledge, (there, back, size))
      let start = getMonoTime().ticks
      for _ in 1 .. 100:
        for i in 1 .. size: there.blockingSend(i)
        doAssert back.blockingRecv() == size
      result = float(getMonoTime().ticks - start) / float(100 * size)
      there.close()
      joinThread(thread)
    row("burst", "theirs, one thread", parameters, spread(repeat(5, oneThread), "operations/s"))
    row("burst", "two threads, each burst confirmed", parameters,
      spread(repeat(5, twoThreads), "messages/s"))

proc sizes() =
  var capacity = 8
  while capacity <= 4096:
    let size = capacity
    let parameters = &"{scaled(100_000)} messages, capacity {size}"
    row("sizes", "theirs, one thread", parameters,
      spread(repeat(3, proc (): float = theirs(scaled(100_000), size)), "operations/s"))
    row("sizes", "two threads", parameters,
      spread(repeat(5, proc (): float = twoThreads(scaled(1_000_000), size)), "messages/s"))
    capacity *= 2

proc sendPolling(job: (Channel[int], int, ptr int)) {.thread.} =
  for i in 1 .. job[1]:
    while not job[0].trySend(i):
      inc job[2][]
      cpuRelax()

proc stress() =
  for messages in [100_000, 250_000, 500_000]:
    let count = scaled(messages)
    let parameters = &"{count} messages, capacity 1024"
    row("stress", "theirs, one thread", parameters,
      spread(repeat(3, proc (): float = theirs(count, 1024)), "operations/s") & ", none can fail")
    let channel = newChannel[int](1024, SPSC)
    var fullTries, emptyTries, value: int
    var thread: Thread[(Channel[int], int, ptr int)]
    createThread(thread, sendPolling, (channel, count, addr fullTries))
    let start = getMonoTime().ticks
    for i in 1 .. count:
      while not channel.tryReceive(value):
        inc emptyTries
        cpuRelax()
      doAssert value == i
    let rate = millions(float(getMonoTime().ticks - start) / float(count))
    joinThread(thread)
    row("stress", "two threads", parameters,
      &"{rate} messages/s, {fullTries} failed sends, {emptyTries} failed receives")

proc sustained() =
  for seconds in [3, 5, 10]:
    let duration = if quick: 30_000_000'i64 else: int64(seconds) * 1_000_000_000
    for form in ["theirs, one thread", "two threads"]:
      var samples: seq[float]
      let start = getMonoTime().ticks
      while getMonoTime().ticks - start < duration:
        samples.add(if form == "two threads": twoThreads(scaled(5_000_000), 1024)
                    else: theirs(50_000, 1024))
      row("sustained", form, &"{seconds} s, {samples.len} windows",
        spread(samples, if form == "two threads": "messages/s" else: "operations/s"))

proc concurrent() =
  for (messages, capacity) in [(1_000_000, 16), (1_000_000, 1024), (10_000_000, 1024)]:
    let count = scaled(messages)
    let parameters = &"{count} messages, capacity {capacity}"
    row("concurrent", "theirs, two tasks of one loop", parameters,
      spread(repeat(3, proc (): float = oneLoop(count, capacity)), "messages/s"))
    row("concurrent", "two loops in two threads", parameters,
      spread(repeat(3, proc (): float = twoLoops(min(count, 1_000_000), capacity)), "messages/s"))

const All = {"spsc_simple": spscSimple, "latency": latency, "burst": burst, "sizes": sizes,
  "stress": stress, "sustained": sustained, "concurrent": concurrent}

for name in names:
  if name notin All.mapIt(it[0]): quit("no benchmark is named " & name, 2)
echo "| benchmark | form | parameters | median (slowest to fastest run) |"
echo "| --- | --- | --- | --- |"
for (name, run) in All:
  if names.len == 0 or name in names: run()
