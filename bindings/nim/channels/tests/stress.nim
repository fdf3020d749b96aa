## Many threads on one channel: nothing is lost, nothing arrives twice, and each producer's messages
## arrive in its order.

import system except Channel
import std/[os, strutils, unittest]
import thalweg_channels

{.used.}

# Builds with a sanitizer send fewer messages.
let messages = parseInt(getEnv("THALWEG_MESSAGES", "1000000"))

type
  Message = tuple[producer, number: int]
  Job = object
    channel: Channel[Message]
    id, count: int
    polls: bool
    counts: ptr UncheckedArray[int] ## The consumer's result: how often each message arrived.

proc produce(job: Job) {.thread.} =
  for number in 0 ..< job.count:
    if job.polls:
      while not job.channel.trySend((job.id, number)): cpuRelax()
    else:
      job.channel.blockingSend((job.id, number))

proc consume(job: Job) {.thread.} =
  var last: array[16, int]
  for number in last.mitems: number = -1
  for message in job.channel:
    doAssert message.number > last[message.producer], "the order of a producer is kept"
    last[message.producer] = message.number
    discard atomicInc(job.counts[message.producer * job.count + message.number])

proc run(mode: ChannelMode, producers, consumers, capacity: int, polls = false) =
  let count = messages div producers
  let counts = cast[ptr UncheckedArray[int]](allocShared0(producers * count * sizeof(int)))
  let channel = newChannel[Message](capacity, mode)
  var sending = newSeq[Thread[Job]](producers)
  var receiving = newSeq[Thread[Job]](consumers)
  template job(i: int): Job =
    Job(channel: channel, id: i, count: count, polls: polls, counts: counts)
  for i in 0 ..< consumers: createThread(receiving[i], consume, job(i))
  for i in 0 ..< producers: createThread(sending[i], produce, job(i))
  joinThreads(sending)
  channel.close()
  joinThreads(receiving)
  for i in 0 ..< producers * count: doAssert counts[i] == 1, "message " & $i & ": " & $counts[i]
  doAssert channel.isEmpty
  deallocShared(counts)

suite "stress":
  for capacity in [1, 16, 1024]:
    # With one slot, each message may cost two switches of threads.
    if capacity == 1 and messages > 100_000: continue
    test "SPSC, capacity " & $capacity: run(SPSC, 1, 1, capacity)
    test "MPSC, 4 producers, capacity " & $capacity: run(MPSC, 4, 1, capacity)
    test "SPMC, 3 consumers, capacity " & $capacity: run(SPMC, 1, 3, capacity)
    test "MPMC, 5 producers, 3 consumers, capacity " & $capacity: run(MPMC, 5, 3, capacity)
  test "MPMC, blocked receivers and senders that poll": run(MPMC, 2, 2, 64, polls = true)
