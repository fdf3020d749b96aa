## What is particular to a service in Nim, tests/guests/probe.nim. Its address is GUEST of the
## environment. Compiled with threads.

import std/[asyncdispatch, monotimes, options, os, strutils, times, unittest]
import probe

let address = getEnv("GUEST")

proc failure(client: ProbeClient, how: uint32): ref ThalwegError =
  attempt(client.misbehave(how)).error

proc callOften(expected: ptr uint64) {.thread.} =
  {.cast(gcsafe).}:
    let client = ProbeClient.open(address)
    for number in 1'u64 .. 2000: doAssert client.add(number) == number * (number + 1) div 2
    expected[] = client.add(0)
    client.close()

proc useAll(sum: ptr uint64) {.thread.} =
  {.cast(gcsafe).}:
    for round in 1'u64 .. 20:
      let client = ProbeClient.open(address)
      let awaiting = ProbeClient.attach(client.handle)
      var calls: seq[Future[uint64]]
      for number in 1'u64 .. 20: calls.add awaiting.laterAsync(uint32(number mod 3), number)
      let cells = [client.newCell(1), client.newCell(2), client.newCell(3)]
      let left = client.numbers(1_000_000) # Its reader leaves.
      for number in client.numbers(500): sum[] += number
      for point in client.points(100, 0): sum[] += 1
      for cell in cells: sum[] += cell.add(1)
      doAssert attempt(client.later(60_000, 1, within(initDuration(milliseconds = 1)))).error
        .outcome == Outcome.timedOut
      for number in waitFor(all(calls)): sum[] += number
      if round mod 5 == 0: doAssert client.failure(5).outcome == Outcome.guestPanicked
      doAssert left.isOpen
      awaiting.close()
      client.close()

suite "a guest in Nim":
  let client = ProbeClient.open(address)

  test "values":
    check client.bytes(@[0'u8, 1, 255]) == @[0'u8, 1, 255]
    check client.bytes(@[]).len == 0
    let points = @[Point(name: "a", x: 1, y: 2), Point(name: "bb", x: 3, y: 4)]
    let by = Point(x: 10, y: 20)
    check client.moveAll(points, by) ==
      @[Point(name: "bb", x: 13, y: 24), Point(name: "a", x: 11, y: 22)]
    check client.moveAll(points, by, some({ColorsFlag.red, ColorsFlag.blue}))[0].y == 0
    client.nothing()
    let long = attempt client.echo(repeat('x', 100001))
    check (ref ServiceError[Trouble])(long.error).payload.tooLong == 100001

  test "exceptions end the call and the state":
    check client.add(5) == 5
    let raised = client.failure(5)
    check raised.outcome == Outcome.guestPanicked
    check "ValueError: it went wrong" in raised.msg and "at probe.nim" in raised.msg
    check "probe.nim(" in raised.msg # The stack trace.
    check client.add(1) == 1
    let defect = client.failure(6)
    check defect.outcome == Outcome.guestPanicked and "IndexDefect" in defect.msg
    let later = client.failure(10)
    check later.outcome == Outcome.guestPanicked and "a future that failed" in later.msg
    let number = attempt client.later(1, 0)
    check number.error.outcome == Outcome.guestPanicked and "there is no number" in number.error.msg

  test "other outcomes":
    check client.failure(7).outcome == Outcome.overloaded
    check client.failure(8).outcome == Outcome.guestLost
    check client.failure(2).outcome == Outcome.guestLost
    check client.failure(1).outcome == Outcome.guestLost
    let refused = client.failure(99)
    check (ref ServiceError[Trouble])(refused).payload.because == "no such case"

  test "a service that does not start fails its call":
    check client.misbehave(9) == "the next service does not start"
    let other = ProbeClient.open(address)
    let lost = attempt other.add(1)
    check lost.error.outcome == Outcome.guestLost and "told not to start" in lost.error.msg
    check other.add(1) == 1
    other.close()

  test "deadlines and cancels reach an async proc":
    let begin = getMonoTime()
    let late = attempt client.later(60_000, 1, within(initDuration(milliseconds = 20)))
    check late.error.outcome == Outcome.timedOut
    let token = newCancelToken()
    let call = attempt client.laterAsync(60_000, 1, CallOptions(cancel: token))
    token.cancel()
    check waitFor(call).error.outcome == Outcome.cancelled
    check getMonoTime() - begin < initDuration(seconds = 30)

  test "async procs run side by side":
    let begin = getMonoTime()
    var calls: seq[Future[uint64]]
    for number in 1'u64 .. 100: calls.add client.laterAsync(50, number)
    var sum = 0'u64
    for number in waitFor(all(calls)): sum += number
    check sum == 5050 and getMonoTime() - begin < initDuration(seconds = 3)

  test "a full stream makes its writer wait":
    let numbers = client.numbers(30_000)
    sleep(50)
    check client.add(2) >= 2 # The event loop does not wait.
    var next = 0'u64
    for number in numbers:
      check number == next
      inc next
    check next == 30_000

  test "streams that fail, and futures":
    var count = 0
    let ended = attempt: (for point in client.points(10, 4): inc count)
    check count == 3
    check (ref ServiceError[Trouble])(ended.error).payload.because == "it was asked to"
    check attempt(client.points(10, 1)).error of ServiceError[Trouble] # Before the first record.
    check client.soon(7).wait() == 7

  test "malformed record of the last group ends its stream as guestLost":
    var count = 0
    let ended = attempt: (for point in client.points(6, high(uint32)): inc count)
    check count == 5
    check ended.error.outcome == Outcome.guestLost
    check "malformed" in ended.error.msg

  test "resources":
    let cell = client.newCell(5)
    check client.cellOpen(cell) == 5
    check attempt(cell.get()).error.outcome in {Outcome.stale, Outcome.argument}

  test "threads with clients of their own":
    var threads: array[4, Thread[ptr uint64]]
    var sums: array[4, uint64]
    for index in 0 .. 3: createThread(threads[index], callOften, addr sums[index])
    joinThreads(threads)
    for sum in sums: check sum == 2_001_000

  test "everything on many threads":
    var threads: array[4, Thread[ptr uint64]]
    var sums: array[4, uint64]
    for index in 0 .. 3: createThread(threads[index], useAll, addr sums[index])
    joinThreads(threads)
    for sum in sums: check sum == 20'u64 * (124_750 + 100 + 9 + 210)
