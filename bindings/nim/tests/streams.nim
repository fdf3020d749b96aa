## Streams in both directions, and host imports. The library is in LIBRARY of the environment.

import std/[asyncdispatch, monotimes, options, os, strutils, times, unittest]
import conformance

let library = getEnv("LIBRARY")

proc open(): ConformanceClient = ConformanceClient.open(library)

proc soon(): MonoTime = getMonoTime() + initDuration(milliseconds = 5)

suite "streams that block":
  let client = open()

  test "a loop has all records":
    var sum = 0'u64
    for number in client.count(5, 1000): sum += number
    check sum == 504500

  test "batches have their numbers, and are released":
    let stream = client.dropsNewest(50) # All are written before it is read.
    let first = stream.nextBatch(3)
    check first.len in 1 .. 3 and first[0] == 0 and first.firstSeq == 0
    let second = stream.nextBatch(3)
    check second[0] == uint64(first.len) and second.firstSeq == uint64(first.len)
    check attempt(first[0]).error.outcome == Outcome.stale
    expect IndexDefect: discard second[3]
    stream.close()
    check attempt(second[0]).error.outcome == Outcome.stale
    check attempt(stream.nextBatch()).error.outcome == Outcome.stale

  test "records have texts and lists":
    var names: seq[string]
    for item in client.items(3): names.add item.name & " " & $item.tags.len
    check names == @["item 0 0", "item 1 1", "item 2 2"]

  test "an incomplete stream raises after its records":
    # Has its own instance: the panic also ends other streams, even ones that are opened soon after.
    let panicking = open()
    var count = 0
    let stream = panicking.breaks(20_000)
    try:
      for number in stream: inc count
      check false
    except ThalwegError as ended:
      check ended.outcome == Outcome.guestPanicked
    check count == 20_000
    panicking.close()

  test "the service's own error ends a stream":
    try:
      for number in client.stops(2, "fail"): check number < 2
      check false
    except ServiceError[Failure] as ended:
      check ended.payload.code == 2

  test "a deadline ends a wait, and the stream continues":
    let stream = client.ticks()
    check attempt(stream.nextBatch(deadline = soon())).error.outcome == Outcome.timedOut
    check client.tick(2) == 1
    check stream.nextBatch(1)[0] == 0
    client.endTicks()

  test "lost records are counted":
    let stream = client.dropsNewest(1000)
    var count = 0'u64
    for batch in stream.batches: count += uint64(batch.len)
    check count + stream.lost == 1000 and stream.gapReason == GapReason.droppedNewest

  test "a second reader has later records":
    let stream = client.ticks()
    let other = stream.tee()
    discard client.tick(3)
    client.endTicks()
    var counts = [0, 0]
    for number in stream: inc counts[0]
    for number in other: inc counts[1]
    check counts == [3, 3] and stream.stats.delivered >= 3

  test "a future has its value, or none":
    check client.later(1, "word").wait == "word"
    let none = client.neverComes(none(string))
    check attempt(none.wait).error.outcome == Outcome.guestLost

  test "streams inside values":
    var seen: seq[string]
    for feed in client.feeds(4):
      var count = 0
      for number in feed.numbers: inc count
      seen.add feed.name & $count & (if feed.last.isSome: feed.last.get.wait else: "")
    check seen == @["00", "111", "22", "333"]

suite "streams with futures":
  let client = open()

  test "an awaited loop has all records":
    proc run() {.async.} =
      var sum = 0'u64
      for number in awaited(await client.countAsync(0, 1000)):
        if number == 3: continue
        if number == 900: break
        sum += number
      check sum == 404547
    waitFor run()

  test "a future waits until there are records":
    proc run() {.async.} =
      let stream = await client.ticksAsync()
      let waiting = stream.nextBatchAsync()
      check not waiting.finished
      check (await client.tickAsync(1)) == 1
      check (await waiting)[0] == 0
      let late = await attempt stream.nextBatchAsync(deadline = soon())
      check late.error.outcome == Outcome.timedOut
      let last = stream.nextBatchAsync()
      check (await attempt stream.nextBatchAsync()).error.outcome == Outcome.argument
      await client.endTicksAsync()
      check (await last).len == 0
    waitFor run()

  test "closing a stream ends a wait":
    proc run() {.async.} =
      let stream = await client.ticksAsync()
      let waiting = stream.nextBatchAsync()
      stream.close()
      check (await attempt waiting).error.outcome == Outcome.stale
    waitFor run()

  test "a future value is awaited":
    proc run() {.async.} =
      check (await (await client.laterAsync(1, "word")).waitAsync()) == "word"
    waitFor run()

proc cancelSoon(handle: CancelHandle) {.thread.} =
  sleep(20)
  handle.cancel()

suite "tokens of waits":
  let client = open()
  var thread: Thread[CancelHandle]

  test "a token ends a wait that blocks, and the stream continues":
    let stream = client.ticks()
    let token = newCancelToken()
    createThread(thread, cancelSoon, token.handle)
    check attempt(stream.nextBatch(cancel = token)).error.outcome == Outcome.cancelled
    joinThread(thread)
    check attempt(stream.nextBatch(cancel = token)).error.outcome == Outcome.cancelled
    check client.tick(2) == 1
    check stream.nextBatch(1, cancel = newCancelToken())[0] == 0
    check stream.nextBatch(1, cancel = token)[0] == 1 # There is no wait.
    client.endTicks()
    check stream.nextBatch(cancel = newCancelToken()).len == 0

  test "a deadline is before the token":
    let stream = client.ticks()
    let late = attempt stream.nextBatch(deadline = soon(), cancel = newCancelToken())
    check late.error.outcome == Outcome.timedOut
    client.endTicks()

  test "a token ends waits of futures, from this thread and from another one":
    proc run() {.async.} =
      let streams = [await client.ticksAsync(), await client.ticksAsync()]
      for isHere in [true, false]:
        let (token, other) = (newCancelToken(), newCancelToken())
        let waits = [attempt streams[0].nextBatchAsync(cancel = token),
          attempt streams[1].nextBatchAsync(cancel = other)]
        if isHere: token.cancel()
        else: createThread(thread, cancelSoon, token.handle)
        check (await waits[0]).error.outcome == Outcome.cancelled
        check not waits[1].finished
        other.cancel()
        check (await waits[1]).error.outcome == Outcome.cancelled
      check (await attempt streams[0].nextBatchAsync(deadline = soon(),
        cancel = newCancelToken())).error.outcome == Outcome.timedOut
      discard await client.tickAsync(1)
      check (await streams[0].nextBatchAsync(cancel = newCancelToken())).len == 1
      await client.endTicksAsync()
    waitFor run()
    joinThread(thread)

  test "a token may be cancelled after its wait, and after its client was closed":
    let closing = open()
    let token = newCancelToken()
    proc run() {.async.} =
      let stream = await closing.ticksAsync()
      let waiting = attempt stream.nextBatchAsync(cancel = token)
      closing.close()
      check (await waiting).error.outcome == Outcome.cancelled
    waitFor run()
    token.cancel()
    check token.isCancelled

suite "streams that are parameters":
  let client = open()

  test "elements may be sent before the call":
    let numbers = client.newSumOfNumbers()
    for number in 1'u64 .. 10: numbers.send(number)
    numbers.finish()
    check client.sumOf(numbers) == (10'u64, 55'u64)

  test "a writer without capacity waits":
    proc run() {.async.} =
      let numbers = client.newSumOfNumbers()
      let sum = client.sumOfAsync(numbers)
      for number in 1'u64 .. 10_000: await numbers.sendAsync(number)
      numbers.finish()
      check (await sum) == (10_000'u64, 50_005_000'u64)
    waitFor run()

  test "a deadline ends the wait for capacity":
    let numbers = client.newSumOfNumbers()
    var sent = 0
    while attempt(numbers.send(1, soon())).isOk: inc sent
    check sent == 256
    numbers.close()
    check attempt(numbers.send(1)).error.outcome == Outcome.stale

  test "closing a writer ends its wait":
    let numbers = client.newSumOfNumbers()
    var last: Future[void]
    while last == nil or last.finished: last = numbers.sendAsync(1)
    numbers.close()
    try:
      waitFor last
      check false
    except ThalwegError as ended: check ended.outcome == Outcome.stale

  test "a writer that is dropped cancels the stream":
    let numbers = client.newSumOfNumbers()
    let sum = client.sumOfAsync(numbers)
    numbers.close()
    try:
      discard waitFor sum
      check false
    except ServiceError[uint32] as ended: check ended.payload == uint32(Outcome.cancelled)

  test "the service stops reading":
    proc run() {.async.} =
      let numbers = client.newFirstNumbersNumbers()
      let first = client.firstNumbersAsync(2, numbers)
      var ended = await attempt numbers.sendAsync(1)
      while ended.isOk: ended = await attempt numbers.sendAsync(1)
      check ended.error.outcome == Outcome.closed
      check (await first) == @[1'u64, 1]
    waitFor run()

  test "a future is sent":
    let text = client.newHearText()
    text.send("word")
    check client.hear(text) == "word"

type Text = Result[string, uint64]

suite "host imports":
  let client = open()
  var isCalling = false
  client.setHost(Oracle(
    lookUp: proc (key: uint64): Text =
    if key == 101: raise newException(ValueError, "at 101, on purpose")
    if isCalling: discard client.echoU8(1)
    if key mod 2 == 0: Text.ok("number " & $key) else: Text.err(key),
    tell: proc (words: seq[string], at: Option[uint32]): uint64 =
    uint64(words.join.len) + at.get(0'u32),
    nod: proc () = discard))

  test "a call that blocks answers":
    check client.ask(4) == "number 4"
    check client.tell(@["a", "bc"], some(7'u32)) == 10

  test "the event loop answers":
    for turn in 1 .. 3:
      check waitFor(client.askAsync(6)) == "number 6"
      check client.ask(8) == "number 8"

  test "a stream's wait answers":
    var texts: seq[string]
    for text in client.lookedUp(3): texts.add text
    check texts == @["number 0", "number 2", "number 4"]

  test "an exception fails the host call with a code":
    try:
      discard client.ask(101)
      check false
    except ServiceError[uint32] as failed:
      check failed.payload == uint32(Outcome.guestPanicked)
    check client.ask(2) == "number 2"

  test "a host that calls its own client is refused":
    isCalling = true
    try:
      discard client.ask(2)
      check false
    except ServiceError[uint32] as failed:
      check failed.payload == uint32(Outcome.guestPanicked)
    isCalling = false

  test "a host without a function is refused":
    check attempt(client.setHost(Oracle())).error.outcome == Outcome.argument

suite "host imports that return futures":
  var gate: Future[void]
  proc later(key: uint64): Future[Text] {.async.} =
    await sleepAsync(1)
    if key == 101: raise newException(ValueError, "at 101, on purpose")
    if key == 102: await gate
    return Text.ok("number " & $key)

  proc open(lookUp: proc (key: uint64): Future[Text]): ConformanceClient =
    result = ConformanceClient.open(library)
    result.setHost(OracleAsync(lookUp: lookUp,
      tell: proc (words: seq[string], at: Option[uint32]): Future[uint64] {.async.} =
      return uint64(words.len),
      nod: proc () {.async.} = discard))

  let client = open(later)

  test "calls and streams are answered when the futures end":
    proc run() {.async.} =
      let both = [client.askAsync(4), client.askAsync(7)]
      check (await both[0]) == "number 4" and (await both[1]) == "number 7"
      check (await client.tellAsync(@["a", "b"])) == 2
      var texts: seq[string]
      for text in awaited(await client.lookedUpAsync(3)): texts.add text
      check texts == @["number 0", "number 2", "number 4"]
    waitFor run()

  test "a future that fails, and an exception before there is one, fail the host call":
    let raising = open(proc (key: uint64): Future[Text] = raise newException(ValueError, "no"))
    proc run() {.async.} =
      for failed in [await attempt client.askAsync(101), await attempt raising.askAsync(1)]:
        check (ref ServiceError[uint32])(failed.error).payload == uint32(Outcome.guestPanicked)
      check (await client.askAsync(2)) == "number 2"
    waitFor run()

  test "a function that returns no future fails the host call":
    let empty = open(proc (key: uint64): Future[Text] = discard)
    let failed = waitFor attempt empty.askAsync(1)
    check (ref ServiceError[uint32])(failed.error).payload == uint32(Outcome.guestPanicked)

  test "an operation that blocks is refused":
    let failed = attempt client.ask(1)
    check failed.error.outcome == Outcome.argument and "futures" in failed.error.msg

  test "a future may end after its client was closed":
    gate = newFuture[void]()
    let closed = open(later)
    let asked = attempt closed.askAsync(102)
    waitFor sleepAsync(10)
    closed.close()
    gate.complete()
    check (waitFor asked).error.outcome == Outcome.cancelled
    waitFor sleepAsync(5)
