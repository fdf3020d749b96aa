## How long Nim's memory management interrupts a receiver with 1 GB live.
##
## A thread sends a heartbeat every millisecond with its time. After each heartbeat, the receiver changes
## its 1 GB of small objects, so that orc's cycle collector runs. Two shapes of the live objects:
##
## - `pairs`: cycles of two. The receiver replaces 100 of them.
## - `connected`: one cycle of all objects. The receiver takes and drops references to 100 of them.
##
## The collector visits all objects that an object which lost a reference can reach. In `pairs` they are few,
## in `connected` it is everything.
##
##   gc_pause SHAPE [MEGABYTES [SECONDS]]

import system except Channel
import std/[algorithm, monotimes, os, posix, random, strformat, strutils]
import thalweg_channels

type Node = ref object
  next, other: Node
  content: array[4, int]

const Changes = 100

proc beat(job: (Channel[int64], int)) {.thread.} =
  var due = getMonoTime().ticks
  for _ in 1 .. job[1] * 1000:
    due += 1_000_000
    let left = due - getMonoTime().ticks
    if left > 0:
      var time = Timespec(tv_nsec: int(left))
      discard nanosleep(time, time)
    job[0].blockingSend(getMonoTime().ticks)
  job[0].close()

proc processorTime(): int64 =
  ## Of this thread. Unlike the wall clock, it does not count other programs.
  var time: Timespec
  discard clock_gettime(CLOCK_THREAD_CPUTIME_ID, time)
  int64(time.tv_sec) * 1_000_000_000 + int64(time.tv_nsec)

proc newPair(): Node =
  result = Node(next: Node())
  result.next.next = result
  result.other = result.next

proc figures(samples: var seq[int64]): string =
  sort(samples)
  &"p50 {samples[samples.len div 2] div 1000}, p99.9 {samples[samples.len * 999 div 1000] div 1000}, " &
    &"max {samples[^1] div 1000} us"

proc main() =
  let shape = paramStr(1)
  let megabytes = if paramCount() >= 2: parseInt(paramStr(2)) else: 1000
  let seconds = if paramCount() >= 3: parseInt(paramStr(3)) else: 10
  if shape notin ["pairs", "connected"]: quit("no shape is named " & shape, 2)
  var live: seq[Node]
  while getOccupiedMem() div 1_000_000 < megabytes:
    for _ in 1 .. 1000:
      live.add(newPair())
      if shape == "connected" and live.len > 1:
        live[^1].next.next = live[^2]
        live[0].next.next = live[^1]
  let channel = newChannel[int64](1024, SPSC)
  var thread: Thread[(Channel[int64], int)]
  createThread(thread, beat, (channel, seconds))
  var generator = initRand(1)
  var late, work: seq[int64]
  var taken: Node
  for sent in channel:
    late.add(getMonoTime().ticks - sent)
    let start = processorTime()
    for _ in 1 .. Changes:
      let index = generator.rand(live.high)
      if shape == "pairs": live[index] = newPair()
      else: taken = live[index]
    work.add(processorTime() - start)
  joinThread(thread)
  # Orc raises its threshold while collections find nothing, so a run may have none. One is forced.
  taken = nil
  let start = processorTime()
  GC_runOrc()
  let forced = processorTime() - start
  echo &"| {shape} | {getOccupiedMem() div 1_000_000} MB | {late.figures} | {work.figures} | {forced div 1000} us |"
  quit(0) # Nim would destroy the cycle of all objects recursively.

main()
