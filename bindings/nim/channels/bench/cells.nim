## The measured loops. Each returns nanoseconds per message and checks what arrived.

import system except Channel
import std/[asyncdispatch, monotimes]
import thalweg_channels

type NimChannel[T] = system.Channel[T]

template elapsed(messages: int, body: untyped): float =
  let start = getMonoTime().ticks
  body
  float(getMonoTime().ticks - start) / float(messages)

proc expectSum(sum, messages: int) =
  doAssert sum == messages * (messages + 1) div 2, "a message was lost or arrived twice"

# One thread: push, then pop.

proc sameThread*(messages, capacity: int): float =
  let channel = newChannel[int](capacity, SPSC)
  var sum, value = 0
  result = elapsed(messages):
    for i in 1 .. messages:
      doAssert channel.trySend(i)
      doAssert channel.tryReceive(value)
      sum += value
  expectSum(sum, messages)

# Two threads. The clock starts when both threads run.

type Job = object
  channel: Channel[int]
  messages: int
  polls: bool
  ready: ptr bool

proc produce(job: Job) {.thread.} =
  atomicStoreN(job.ready, true, ATOMIC_RELEASE)
  for i in 1 .. job.messages:
    if job.polls:
      while not job.channel.trySend(i): cpuRelax()
    else:
      job.channel.blockingSend(i)

proc twoThreads*(messages, capacity: int, mode = SPSC, polls = false): float =
  let channel = newChannel[int](capacity, mode)
  var ready = false
  var thread: Thread[Job]
  createThread(thread, produce, Job(channel: channel, messages: messages, polls: polls,
    ready: addr ready))
  while not atomicLoadN(addr ready, ATOMIC_ACQUIRE): cpuRelax()
  var sum, value, received = 0
  result = elapsed(messages):
    while received < messages:
      if polls:
        while not channel.tryReceive(value): cpuRelax()
      else:
        value = channel.blockingRecv()
      inc received
      doAssert value == received
      sum += value
  joinThread(thread)
  expectSum(sum, messages)

# Two tasks of one event loop.

proc sendAll(channel: Channel[int], messages: int) {.async.} =
  for i in 1 .. messages: await channel.send(i)

proc receiveAll(channel: Channel[int], messages: int): Future[int] {.async.} =
  for _ in 1 .. messages: result += await channel.recv()

proc oneLoop*(messages, capacity: int): float =
  let channel = newChannel[int](capacity, SPSC)
  var sum = 0
  result = elapsed(messages):
    let sender = sendAll(channel, messages)
    sum = waitFor receiveAll(channel, messages)
    waitFor sender
  expectSum(sum, messages)

proc sendFromLoop(job: Job) {.thread.} = waitFor sendAll(job.channel, job.messages)

proc twoLoops*(messages, capacity: int): float =
  let channel = newChannel[int](capacity, SPSC)
  var thread: Thread[Job]
  var sum = 0
  result = elapsed(messages):
    createThread(thread, sendFromLoop, Job(channel: channel, messages: messages))
    sum = waitFor receiveAll(channel, messages)
  joinThread(thread)
  expectSum(sum, messages)

# The peer: Nim's own channel, polled by two tasks. `pause` is the sleep between two polls in
# milliseconds; with 0, the other tasks of the loop have their turn, and the processor is never idle.

proc send(channel: ptr NimChannel[int], value, pause: int) {.async.} =
  while not channel[].trySend(value): await sleepAsync(pause)

proc recv(channel: ptr NimChannel[int], pause: int): Future[int] {.async.} =
  while true:
    let (there, value) = channel[].tryRecv()
    if there: return value
    await sleepAsync(pause)

proc polledSender(channel: ptr NimChannel[int], messages, pause: int) {.async.} =
  for i in 1 .. messages: await channel.send(i, pause)

proc polledReceiver(channel: ptr NimChannel[int], messages, pause: int): Future[int] {.async.} =
  for _ in 1 .. messages: result += await channel.recv(pause)

proc polled*(messages, capacity, pause: int): float =
  let channel = cast[ptr NimChannel[int]](allocShared0(sizeof(NimChannel[int])))
  channel[].open(capacity)
  var sum = 0
  result = elapsed(messages):
    let sender = polledSender(channel, messages, pause)
    sum = waitFor polledReceiver(channel, messages, pause)
    waitFor sender
  channel[].close()
  deallocShared(channel)
  expectSum(sum, messages)
