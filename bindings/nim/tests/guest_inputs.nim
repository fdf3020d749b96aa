## Streams that a service in Nim reads, and its calls of the host: tests/guests/inputs.nim. Its address is
## GUEST of the environment.

import std/[asyncdispatch, dynlib, monotimes, os, strutils, times, unittest]
import inputs

let address = getEnv("GUEST")

proc threads(): int =
  for _ in walkDir("/proc/self/task"): inc result

proc answer(ms: uint32): Future[Result[uint32, string]] {.async.} =
  if ms == 0: return Result[uint32, string].err("no time")
  await sleepAsync(int(ms))
  return Result[uint32, string].ok(ms)

proc ring(): Future[void] {.async.} = discard

proc open(): InputsClient =
  result = InputsClient.open(address)
  result.setHost(DeskAsync(ask: answer, ring: ring))

proc received(client: InputsClient, seconds = 10): seq[uint64] =
  ## The numbers that were read later. Waits for the first one.
  let until = getMonoTime() + initDuration(seconds = seconds)
  while result.len == 0 and getMonoTime() < until:
    sleep(1)
    result = waitFor client.readAsync()

proc closeGuest(client: InputsClient) =
  ## Closes it as often as it was opened.
  type Close = proc (table, error: pointer): uint32 {.cdecl.}
  let core = loadLib(getEnv("THALWEG_LIBRARY"))
  let closeTable = cast[Close](core.checkedSymAddr("tw_address_close"))
  let table = client.session.table
  while closeTable(table, nil) == 0: discard

proc useAll(sum: ptr uint64) {.thread.} =
  {.cast(gcsafe).}:
    for round in 1'u64 .. 20:
      let client = open()
      var sums: seq[Future[uint64]]
      var streams: seq[StreamWriter[uint64]]
      for _ in 1 .. 5:
        streams.add client.newSumNumbers()
        sums.add client.sumAsync(streams[^1])
      let asked = client.askOftenAsync(10, 1)
      let late = attempt client.forwardAsync(60_000, within(initDuration(milliseconds = 1)))
      let unread = client.newCloseEarlyNumbers()
      let early = client.closeEarlyAsync(unread)
      for number in 1'u64 .. 300:
        for stream in streams: waitFor stream.sendAsync(number)
      for stream in streams: stream.finish()
      for one in waitFor all(sums): sum[] += one
      sum[] += waitFor asked
      doAssert waitFor(early)
      doAssert waitFor(late).error.outcome == Outcome.timedOut
      let left = client.newSumNumbers()
      let ended = attempt client.sumAsync(left) # The client closes before it ends.
      client.close()
      doAssert not waitFor(ended).isOk

suite "inputs of a guest":
  let client = open()

  test "a long stream":
    let numbers = client.newSumNumbers()
    let sum = client.sumAsync(numbers)
    for number in 1'u64 .. 30_000: numbers.send(number)
    check waitFor(client.readAsync()).len == 0 # Other calls are served.
    numbers.finish()
    check waitFor(sum) == 450_015_000

  test "a stream that is written before the call":
    let numbers = client.newSumNumbers()
    for number in 1'u64 .. 256: numbers.send(number)
    numbers.finish()
    check waitFor(client.sumAsync(numbers)) == 32_896

  test "a program that leaves a stream":
    let numbers = client.newSumNumbers()
    let sum = attempt client.sumAsync(numbers)
    numbers.send(1)
    numbers.close()
    check waitFor(sum).error.outcome == Outcome.cancelled

  test "one receive at a time":
    let numbers = client.newReceiveTwiceNumbers()
    let text = client.receiveTwiceAsync(numbers)
    sleep(5)
    numbers.finish()
    check "another receive waits for this stream" in waitFor(text)

  test "a reader that closes ends its receive and the writer":
    let numbers = client.newCloseEarlyNumbers()
    check waitFor(client.closeEarlyAsync(numbers))
    check attempt(numbers.send(1)).error.outcome == Outcome.closed

  test "a stream is read after the answer":
    let numbers = client.newReadLaterNumbers()
    waitFor client.readLaterAsync(numbers)
    numbers.send(7)
    check client.received() == @[7'u64]
    numbers.finish()

  test "a stream from a stream, whose reader is left open":
    let numbers = client.newFirstTwiceNumbers()
    numbers.send(3)
    let twice = waitFor client.firstTwiceAsync(numbers)
    var all: seq[uint64]
    while true:
      let batch = waitFor twice.nextBatchAsync()
      if batch.len == 0: break
      for number in batch: all.add number
    check all == @[3'u64, 3]
    let until = getMonoTime() + initDuration(seconds = 10)
    var ended = attempt numbers.send(4, until)
    while ended.isOk:
      sleep(1)
      ended = attempt numbers.send(4, until)
    check ended.error.outcome == Outcome.closed

  test "a reader that is forgotten closes":
    # It closes soon after the answer.
    let until = getMonoTime() + initDuration(seconds = 10)
    var isClosed = false
    while not isClosed and getMonoTime() < until:
      let text = client.newIgnoreText()
      waitFor client.ignoreAsync(text, 1)
      sleep(1)
      let ended = attempt text.send("late")
      isClosed = not ended.isOk and ended.error.outcome == Outcome.closed
    check isClosed

  test "many streams wait at the same time":
    var streams: seq[StreamWriter[uint64]]
    var sums: seq[Future[uint64]]
    for _ in 1 .. 100:
      streams.add client.newSumNumbers()
      sums.add client.sumAsync(streams[^1])
    var until = getMonoTime() + initDuration(seconds = 10)
    while threads() < 100 and getMonoTime() < until: sleep(1)
    check threads() >= 100
    for number, stream in streams:
      stream.send(uint64(number))
      stream.finish()
    for number, sum in waitFor(all(sums)): check sum == uint64(number)
    until = getMonoTime() + initDuration(seconds = 10)
    while threads() > 20 and getMonoTime() < until:
      check waitFor(client.forwardAsync(1)) == 1 # Joins the threads that have ended.
    check threads() <= 20

  test "the host":
    check waitFor(client.forwardAsync(3)) == 3
    let refused = waitFor(attempt client.forwardAsync(0))
    check (ref ServiceError[string])(refused.error).payload == "no time"
    check waitFor(client.askOftenAsync(50, 20)) == 50

  test "a call of the host ends with its call":
    let late = waitFor(attempt client.forwardAsync(60_000, within(initDuration(milliseconds = 20))))
    check late.error.outcome == Outcome.timedOut
    check waitFor(client.forwardAsync(1)) == 1

  test "no call of the host after the answer":
    discard waitFor(client.ringLaterAsync())
    let until = getMonoTime() + initDuration(seconds = 10)
    while waitFor(client.lateAsync()) == 0 and getMonoTime() < until: sleep(1)
    check waitFor(client.lateAsync()) == uint32(Outcome.stale)

  test "a program without a host":
    let other = InputsClient.open(address)
    let forwarded = attempt other.forward(1)
    check forwarded.error.outcome == Outcome.guestLost
    check "host" in forwarded.error.msg
    other.close()

  test "a client that is closed ends what waits":
    let other = open()
    let numbers = other.newSumNumbers()
    let sum = attempt other.sumAsync(numbers)
    let asked = attempt other.forwardAsync(60_000)
    sleep(5)
    other.close()
    check not waitFor(sum).isOk
    check not waitFor(asked).isOk
    check waitFor(client.forwardAsync(1)) == 1

  test "everything on many threads":
    var threads: array[4, Thread[ptr uint64]]
    var sums: array[4, uint64]
    for index in 0 .. 3: createThread(threads[index], useAll, addr sums[index])
    joinThreads(threads)
    for sum in sums: check sum == 20'u64 * (5 * 45_150 + 10)

  test "a guest that is closed ends its threads, and is opened again":
    let numbers = client.newReadLaterNumbers()
    waitFor client.readLaterAsync(numbers)
    let kept = client.newKeepNumbers()
    waitFor client.keepAsync(kept)
    sleep(5) # A thread waits for the first stream.
    let before = threads()
    client.close()
    for stream in [numbers, kept]: stream.close() # The core keeps the state of a stream that a program has.
    client.closeGuest()
    let until = getMonoTime() + initDuration(seconds = 10)
    while threads() > before - 1 and getMonoTime() < until: sleep(1)
    check threads() < before
    let again = open()
    check waitFor(again.forwardAsync(2)) == 2
    again.close()
