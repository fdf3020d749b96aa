## Calls, their errors and their options. The library is in LIBRARY of the environment.

import std/[asyncdispatch, options, os, strutils, times, unicode, unittest]
import conformance

let library = getEnv("LIBRARY")

proc open(): ConformanceClient = ConformanceClient.open(library)

suite "calls that block":
  let client = open()

  test "numbers and texts return":
    check client.echoU64(high(uint64)) == high(uint64)
    check client.echoS8(-128) == -128
    check client.echoF64(-0.5) == -0.5
    check client.echoChar(Rune(0x10348)) == Rune(0x10348)
    check client.echoString("a\0ß") == "a\0ß"
    check client.echoString(repeat("long ", 100)).len == 500
    check client.echoBytes(@[1'u8, 0, 255]) == @[1'u8, 0, 255]

  test "compound values return":
    check client.echoStrings(@["a", "", "c"]) == @["a", "", "c"]
    check client.echoGrid(@[@[1'i32], @[], @[2'i32, 3]]) == @[@[1'i32], @[], @[2'i32, 3]]
    check client.echoPoint(Point(x: 1, y: -2)) == Point(x: 1, y: -2)
    check client.echoOptionTwice(some(none(uint32))) == some(none(uint32))
    check client.echoDays({DaysFlag.monday, DaysFlag.workday}) == {DaysFlag.monday,
        DaysFlag.workday}
    check client.echoColor(Color.`bool`) == Color.`bool`
    check client.echoTuple((1'u8, "b", 2.5, some(Rune(99)))) == (1'u8, "b", 2.5, some(Rune(99)))
    let shape = client.echoShape(Shape(kind: ShapeKind.line, line: (Point(x: 1), Point(y: 2))))
    check shape.kind == ShapeKind.line and shape.line == (Point(x: 1), Point(y: 2))
    check client.echoResultError(@[Result[Nothing, string].err("no")])[0].error == "no"

  test "text that is not UTF-8 is refused":
    check attempt(client.echoString("\xff")).error.outcome == Outcome.argument

  test "an inline function runs on this thread":
    check client.twice(4) == 8

  test "the service's own error has its payload":
    expect ServiceError[Failure]:
      discard client.fail(some(Failure(kind: FailureKind.unknown)))
    try:
      discard client.fail(some(Failure(kind: FailureKind.at, at: ("here", Point(x: 3)))))
      check false
    except ServiceError[Failure] as failed:
      check failed.outcome == Outcome.error
      check failed.payload.at == ("here", Point(x: 3))
    expect ServiceError[Nothing]: client.failBare(true)
    client.failBare(false)

  test "attempt returns a result":
    let found = attempt client.fail()
    check found.isOk and found.value == 7
    let failed = attempt client.fail(some(Failure(kind: FailureKind.code, code: 9)))
    check not failed.isOk
    check (ref ServiceError[Failure])(failed.error).payload.code == 9
    check attempt(client.failBare(true)).error.outcome == Outcome.error
    check attempt(client.nothing()).isOk

  test "a panic ends its own call":
    let failed = attempt client.panic("on purpose")
    check failed.error.outcome == Outcome.guestPanicked
    check "on purpose" in failed.error.msg
    check client.echoU8(1) == 1

  test "a deadline ends a call":
    let failed = attempt client.never(within(initDuration(milliseconds = 5)))
    check failed.error.outcome == Outcome.timedOut

  test "a token that is cancelled before the call cancels it":
    let token = newCancelToken()
    token.cancel()
    check attempt(client.never(CallOptions(cancel: token))).error.outcome == Outcome.cancelled

  test "a notice may cancel its call":
    let token = newCancelToken()
    var notices = 0
    let failed = attempt client.never(CallOptions(cancel: token, onNotice: proc (
        elapsed: Duration) =
      check elapsed > initDuration()
      inc notices
      if notices == 3: token.cancel()))
    check failed.error.outcome == Outcome.cancelled
    check notices >= 3

suite "futures":
  let client = open()

  test "a future has the result":
    check waitFor(client.echoU64Async(7)) == 7
    waitFor client.nothingAsync()
    check waitFor(client.twiceAsync(5)) == 10

  test "many calls are outstanding at once":
    var all: seq[Future[uint32]]
    for number in 0'u32 ..< 200: all.add client.echoU32Async(number)
    for number in 0'u32 ..< 200: check waitFor(all[number]) == number

  test "a future fails with the service's error":
    proc run() {.async.} =
      let failed = await attempt client.failLaterAsync(some(Failure(kind: FailureKind.code, code: 2)))
      check (ref ServiceError[Failure])(failed.error).payload.code == 2
    waitFor run()

  test "a call beyond the capacity of the port is refused":
    let small = ConformanceClient.open(library, 2)
    let all = [small.neverAsync(), small.neverAsync(), small.neverAsync()]
    check all[2].failed and (ref ThalwegError)(all[2].readError).outcome == Outcome.overloaded
    small.close()
    for one in all[0 .. 1]: expect ThalwegError: waitFor one

  test "a token cancels all calls made with it":
    let token = newCancelToken()
    let all = [client.neverAsync(CallOptions(cancel: token)), client.neverAsync(CallOptions(
        cancel: token))]
    token.cancel()
    for one in all:
      try:
        waitFor one
        check false
      except ThalwegError as failed: check failed.outcome == Outcome.cancelled

  test "a call that blocks is refused while a future waits":
    let token = newCancelToken()
    let waiting = client.neverAsync(CallOptions(cancel: token))
    check attempt(client.echoU8(1)).error.outcome == Outcome.argument
    token.cancel()
    expect ThalwegError: waitFor waiting
    check client.echoU8(1) == 1

  test "closing the client cancels its calls":
    let other = open()
    let waiting = other.neverAsync()
    other.close()
    try:
      waitFor waiting
      check false
    except ThalwegError as failed:
      check failed.outcome == Outcome.cancelled

suite "resources":
  let client = open()

  test "methods are called on the object":
    let counter = client.newCounter(5)
    check counter.add(3) == 8
    check waitFor(counter.valueLaterAsync()) == 8
    check client.counterSum(counter, counter).value == 16

  test "an object is dropped with its last reference":
    proc use() =
      for start in 1'u64 .. 100: check client.newCounter(start).value == start
    use()
    GC_fullCollect()
    check client.counters < 10 # refc looks for references on the stack, and finds old ones.

  test "an object that was passed to the service is gone":
    let counter = client.newCounter(5)
    check client.counterFinish(counter) == 5
    check not counter.isOpen
    check attempt(counter.value).error.outcome == Outcome.argument

  test "a refused call leaves its objects with the caller":
    let counter = client.newCounter(5)
    let twice = attempt client.total(@[counter, counter])
    check twice.error.outcome == Outcome.argument and "twice" in twice.error.msg
    check counter.isOpen and counter.value == 5
    check client.total(@[counter, client.newCounter(2)]) == 7

  test "objects inside values belong to their owner":
    let pair = client.swap(Pair(name: "p", left: client.newCounter(1), right: some(
        client.newCounter(2))))
    check pair.left.value == 2 and pair.right.get.value == 1
