## Futures, select, scopes, groups and streams.

import system except Channel
import std/[asyncdispatch, options, os, sequtils, strutils, sugar, unittest]
import thalweg_channels

{.used.}

let messages = parseInt(getEnv("THALWEG_MESSAGES", "1000000")) div 10

template scenario(name: string, body: untyped) =
  test name: (proc () = body)()

proc descriptors(): int =
  for _ in walkDir("/proc/self/fd"): inc result

proc isIdle(): bool =
  ## Runs all scheduled callbacks. Then the dispatcher must have nothing to wait for.
  while hasPendingOperations():
    let before = getGlobalDispatcher()
    poll(0)
    doAssert before == getGlobalDispatcher()
  true

proc sendNumbers(channel: Channel[int], count: int) {.async.} =
  for i in 1 .. count: await channel.send(i)
  channel.close()

proc receiveAll(channel: Channel[int]): Future[seq[int]] {.async.} =
  try:
    while true: result.add(await channel.recv())
  except ChannelClosedError: discard

proc sendFromThread(job: (Channel[int], int)) {.thread.} =
  for i in 1 .. job[1]: job[0].blockingSend(i)
  job[0].close()

proc sendFromLoop(job: (Channel[int], int)) {.thread.} =
  waitFor sendNumbers(job[0], job[1])
  when defined(gcOrc): GC_runOrc()

proc receiveInThread(job: (Channel[int], int)) {.thread.} =
  var expected = 0
  for value in job[0]:
    inc expected
    doAssert value == expected
  doAssert expected == job[1]

proc addToSum(job: (Channel[int], Channel[int])) {.thread.} =
  let sum = waitFor (proc (): Future[int] {.async.} =
    try:
      while true: result += await job[0].recv()
    except ChannelClosedError: discard)()
  job[1].blockingSend(sum)
  when defined(gcOrc): GC_runOrc()

proc impatientSum(job: (Channel[int], Channel[int])) {.thread.} =
  ## Four tasks whose receives end at once, by a scope or a timeout.
  proc receive(): Future[int] {.async.} =
    while true:
      try:
        withCancelScope(scope):
          let receiving = job[0].recv(timeout = 1, scope = scope)
          if not receiving.finished:
            await sleepAsync(0)
            scope.cancel()
          result += await receiving
      except CancelledError, ChannelTimeoutError: discard
      except ChannelClosedError: break
  let tasks = [receive(), receive(), receive(), receive()]
  var sum = 0
  for task in tasks: sum += waitFor task
  job[1].blockingSend(sum)
  when defined(gcOrc): GC_runOrc()

proc blockingSum(job: (Channel[int], Channel[int])) {.thread.} =
  var sum = 0
  for value in job[0]: sum += value
  job[1].blockingSend(sum)

proc abandonWaits(channel: Channel[int]) {.thread.} =
  for _ in 1 .. 3: discard channel.recv()
  poll(0)
  when defined(gcOrc): GC_runOrc()

proc countTo(future: Future[void], count: ref int) =
  future.addCallback(proc () {.gcsafe.} = inc count[])

suite "async":
  for mode in ChannelMode:
    for capacity in [1, 16, 1000]:
      scenario $mode & ", capacity " & $capacity & ": two tasks of one loop":
        let channel = newChannel[int](capacity, mode)
        let sender = sendNumbers(channel, messages)
        check (waitFor receiveAll(channel)) == toSeq(1 .. messages)
        waitFor sender
        check isIdle()

    scenario $mode & ": a thread sends to a task":
      let channel = newChannel[int](16, mode)
      var thread: Thread[(Channel[int], int)]
      createThread(thread, sendFromThread, (channel, messages))
      check (waitFor receiveAll(channel)) == toSeq(1 .. messages)
      joinThread(thread)
      check isIdle()

    scenario $mode & ": a task sends to a thread":
      let channel = newChannel[int](16, mode)
      var thread: Thread[(Channel[int], int)]
      createThread(thread, receiveInThread, (channel, messages))
      waitFor sendNumbers(channel, messages)
      joinThread(thread)
      check isIdle()

    scenario $mode & ": two loops":
      let channel = newChannel[int](16, mode)
      var thread: Thread[(Channel[int], int)]
      createThread(thread, sendFromLoop, (channel, messages))
      check (waitFor receiveAll(channel)) == toSeq(1 .. messages)
      joinThread(thread)

    scenario $mode & ": a close ends the waits of both sides":
      let empty = newChannel[int](1, mode)
      let receiving = empty.recv()
      empty.close()
      expect ChannelClosedError: discard waitFor receiving
      let full = newChannel[int](1, mode)
      waitFor full.send(1)
      let sending = full.send(2)
      full.close()
      expect ChannelClosedError: waitFor sending
      check (waitFor full.recv()) == 1
      expect ChannelClosedError: discard waitFor full.recv()
      check isIdle()

    scenario $mode & ": a receive that ended has taken nothing":
      let channel = newChannel[int](1, mode)
      let scope = initCancelScope()
      let receiving = channel.recv(scope = scope)
      scope.cancel()
      expect CancelledError: discard waitFor receiving
      expect ChannelTimeoutError: discard waitFor channel.recv(timeout = 1)
      expect CancelledError: discard waitFor channel.recv(scope = scope)
      check channel.trySend(5)
      check (waitFor channel.recv(timeout = 1000)) == 5
      waitFor channel.send(6, timeout = 0)
      check channel.len == 1
      expect ChannelTimeoutError: waitFor channel.send(7, timeout = 1)
      check (waitFor channel.recv()) == 6 and channel.isEmpty

  scenario "several loops receive from one channel":
    let channel = newChannel[int](16, MPMC)
    let sums = newChannel[int](3, MPSC)
    var threads: array[3, Thread[(Channel[int], Channel[int])]]
    for i in 0 .. 2: createThread(threads[i], addToSum, (channel, sums))
    waitFor sendNumbers(channel, messages)
    var sum = 0
    for _ in 0 .. 2: sum += sums.blockingRecv()
    joinThreads(threads)
    check sum == messages * (messages + 1) div 2

  scenario "a message wakes one of many tasks":
    let channel = newChannel[int](16, MPMC)
    let count = new int
    for _ in 1 .. 10: channel.recv().addCallback(proc () {.gcsafe.} = inc count[])
    check channel.trySend(1)
    for _ in 1 .. 5: poll(0)
    check count[] == 1
    for i in 2 .. 10: check channel.trySend(i)
    check isIdle()
    check count[] == 10 and channel.isEmpty

  scenario "a thread that ends with waits leaves the channel usable":
    let before = descriptors()
    for _ in 1 .. 20:
      let channel = newChannel[int](4, MPMC)
      var thread: Thread[Channel[int]]
      createThread(thread, abandonWaits, channel)
      joinThread(thread)
      let receiving = channel.recv()
      check channel.trySend(1)
      check (waitFor receiving) == 1
    # Each dispatcher of asyncdispatch keeps one descriptor when its thread ends.
    check descriptors() - before <= 20 + 1

  scenario "waiting tasks do not keep descriptors and timers waiting":
    let ping = newChannel[int](1, SPSC)
    let pong = newChannel[int](1, SPSC)
    var stop = false
    var turns = 0
    proc serve() {.async.} =
      while not stop:
        await ping.send(1)
        discard await pong.recv()
        inc turns
    proc answer() {.async.} =
      try:
        while true: await pong.send(await ping.recv())
      except ChannelClosedError: discard
    let (server, client) = (serve(), answer())
    waitFor sleepAsync(5)
    stop = true
    waitFor server
    ping.close()
    waitFor client
    check turns > 0

  scenario "receives that time out while messages arrive lose no wake-up":
    let channel = newChannel[int](4, MPMC)
    let sums = newChannel[int](3, MPSC)
    var threads: array[2, Thread[(Channel[int], Channel[int])]]
    createThread(threads[0], impatientSum, (channel, sums))
    createThread(threads[1], blockingSum, (channel, sums))
    for i in 1 .. messages: channel.blockingSend(i)
    channel.close()
    check sums.blockingRecv() + sums.blockingRecv() == messages * (messages + 1) div 2
    joinThreads(threads)

suite "select":
  scenario "ready operations have turns, closed channels are ready":
    let a = newChannel[int](4, SPSC)
    let b = newChannel[int](4, MPMC)
    var select = initSelect()
    let (fromA, fromB, toB) = (select.recv(a), select.recv(b), select.send(b))
    check select.blockingReady(timeout = 0) == toB
    for _ in 1 .. 4: check b.trySend(1) and a.trySend(1)
    var seen: array[3, int]
    for _ in 1 .. 4:
      let index = select.blockingReady()
      inc seen[index]
    check seen[fromA] == 2 and seen[fromB] == 2 and seen[toB] == 0
    var value: int
    while a.tryReceive(value) or b.tryReceive(value): discard
    while b.trySend(1): discard
    check select.blockingReady() == fromB
    b.close()
    check select.blockingReady() in {fromB, toB}

  scenario "nothing is ready in time":
    let a = newChannel[int](1, SPSC)
    var select = initSelect()
    discard select.recv(a)
    check select.blockingReady(timeout = 1) == NoneReady
    check (waitFor select.ready(timeout = 1)) == NoneReady
    let scope = initCancelScope()
    let waiting = select.ready(scope = scope)
    scope.cancel()
    expect CancelledError: discard waitFor waiting
    check isIdle()

  scenario "threads send to the channels of a blocking select":
    let channels = [newChannel[int](4, SPSC), newChannel[int](4, MPMC), newChannel[int](4, MPSC)]
    var threads: array[3, Thread[(Channel[int], int)]]
    for i in 0 .. 2: createThread(threads[i], sendFromThread, (channels[i], messages))
    var sums: array[3, int]
    while true:
      var select = initSelect()
      var indexes: seq[int]
      for i in 0 .. 2:
        if not (channels[i].isClosed and channels[i].isEmpty):
          discard select.recv(channels[i])
          indexes.add(i)
      if indexes.len == 0: break
      let i = indexes[select.blockingReady()]
      var value: int
      if channels[i].tryReceive(value): sums[i] += value
    joinThreads(threads)
    for sum in sums: check sum == messages * (messages + 1) div 2

  scenario "threads send to the channels of an awaited select":
    let a = newChannel[int](4, SPSC)
    let b = newChannel[int](4, SPSC)
    var threads: array[2, Thread[(Channel[int], int)]]
    createThread(threads[0], sendFromThread, (a, messages))
    createThread(threads[1], sendFromThread, (b, messages))
    var (fromA, fromB) = (0, 0)
    proc run() {.async.} =
      try:
        while true:
          select:
            a.recv() -> (value):
              check value == fromA + 1
              fromA = value
            b.recv() -> (value):
              check value == fromB + 1
              fromB = value
      except ChannelClosedError: discard
      for value in await receiveAll(a): fromA = value
      for value in await receiveAll(b): fromB = value
    waitFor run()
    joinThreads(threads)
    check fromA == messages and fromB == messages

  scenario "a busy channel does not starve another":
    let a = newChannel[int](1, SPSC)
    let b = newChannel[int](1, SPSC)
    check b.trySend(1)
    var choices = 0
    while b.len == 1:
      inc choices
      check choices < 1000 # with two equal choices, once in 2^1000 runs
      discard a.trySend(1)
      blockingSelect:
        a.recv() -> (value): discard value
        b.recv() -> (value): discard value

  scenario "the macros send, receive, and time out":
    let a = newChannel[string](1, SPSC)
    var log: seq[string]
    for _ in 1 .. 3:
      blockingSelect:
        a.send("sent") -> (): log.add("send")
        timeout(1) -> (): log.add("timeout")
    blockingSelect:
      a.recv() -> (text): log.add(text)
    check log == ["send", "timeout", "timeout", "sent"]
    a.close()
    expect ChannelClosedError:
      blockingSelect:
        a.recv() -> (text): log.add(text)

suite "cancellation":
  scenario "a parent cancels its children, a shield does not":
    let parent = initCancelScope()
    let child = initCancelScope(parent)
    let shielded = parent.shield()
    let done = initCancelScope(parent)
    done.complete()
    parent.cancel(ResourceLimit)
    check parent.getReason == ResourceLimit and child.cancelled and child.getReason == ParentCancel
    check shielded.active and done.completed
    check initCancelScope(parent).cancelled
    parent.cancel()
    check parent.getReason == ResourceLimit
    expect CancelledError: child.checkCancelled()
    shielded.checkCancelled()

  scenario "a timeout cancels":
    let scope = initCancelScope(timeout = 1)
    try:
      discard waitFor newChannel[int](1, SPSC).recv(scope = scope)
      check false
    except CancelledError as error: check error.reason == CancelReason.Timeout
    let early = initCancelScope(timeout = 1)
    early.complete()
    waitFor sleepAsync(3)
    check early.completed and isIdle()

  scenario "any future can be awaited within a scope":
    let scope = initCancelScope()
    let slow = newFuture[int]("slow")
    let waiting = slow.within(scope)
    let fast = newFuture[string]("fast")
    let other = fast.within(scope)
    fast.complete("done")
    check (waitFor other) == "done"
    scope.cancel()
    expect CancelledError: discard waitFor waiting
    slow.complete(1)

  scenario "withCancelScope completes its scope":
    var kept: CancelScope
    withCancelScope(scope):
      kept = scope
      check scope.active
    check kept.completed

suite "task group":
  proc work(channel: Channel[int], scope: CancelScope): Future[int] {.async.} =
    return await channel.recv(scope = scope)
  proc failing(message: string) {.async.} =
    await sleepAsync(1)
    raise newException(IOError, message)

  scenario "FailFast cancels the others and raises the error":
    let never = newChannel[int](1, MPMC)
    let group = newTaskGroup()
    for _ in 1 .. 3: group.spawn(work(never, group.scope))
    group.spawn(failing("first"))
    expect IOError: waitFor group.wait()
    check group.len == 4 and group.cancelled == 3 and group.failed == 1 and group.running == 0
    check group.scope.getReason == TaskError and group.getErrors[0].msg.startsWith("first")

  scenario "CollectErrors and IgnoreErrors run every task to its end":
    for policy in [CollectErrors, IgnoreErrors]:
      let channel = newChannel[int](1, MPMC)
      let group = newTaskGroup(policy)
      let value = group.spawn(work(channel, group.scope))
      group.spawn(failing("one"))
      group.spawn(failing("two"))
      waitFor sleepAsync(5)
      check channel.trySend(9)
      try:
        waitFor group.wait()
        check policy == IgnoreErrors
      except TaskGroupError as error:
        check policy == CollectErrors and error.errors.len == 2
      check value.read == 9 and group.completed == 1 and group.failed == 2

  scenario "an empty group, a cancelled group, a cancelled parent":
    waitFor newTaskGroup().wait()
    let never = newChannel[int](1, MPMC)
    let parent = initCancelScope()
    for byParent in [false, true]:
      let group = newTaskGroup(parent = parent)
      group.spawn(work(never, group.scope))
      if byParent: parent.cancel() else: group.cancel()
      waitFor group.wait()
      check group.cancelled == 1

  scenario "withTaskGroup awaits its tasks":
    let count = new int
    proc run() {.async.} =
      withTaskGroup(group):
        for i in 1 .. 5: countTo(group.spawn(sleepAsync(i)), count)
    waitFor run()
    check count[] == 5

suite "streams":
  scenario "the policies keep and drop exactly":
    for (policy, kept, dropped) in [(Drop, @[8, 9, 10], 7), (DropLatest, @[1, 2, 3], 7)]:
      let stream = initStream[int](policy, 3)
      for i in 1 .. 10: waitFor stream.send(i)
      check stream.dropped == dropped and stream.len == 3
      stream.close()
      check toSeq(stream.items) == kept
      expect ChannelClosedError: waitFor stream.send(11)
      expect ChannelClosedError: stream.blockingSend(11)

  scenario "Block makes the sender wait":
    let stream = initStream[int](Block, 3)
    let sending = (proc () {.async.} =
      for i in 1 .. 10: await stream.send(i)
      stream.close())()
    check stream.len == 3 and not sending.finished
    check (waitFor stream.receive()) == some(1)
    check (waitFor stream.receiveBatch(2)).len in 1 .. 2
    var rest: seq[int]
    while true:
      let batch = waitFor stream.receiveBatch()
      if batch.len == 0: break
      rest.add(batch)
    check rest[^1] == 10 and stream.dropped == 0
    check (waitFor stream.receive()) == none(int)

  scenario "adapters":
    proc numbers(count: int): Stream[int] =
      result = initStream[int](Block, 4)
      let stream = result
      asyncCheck (proc () {.async.} =
        for i in 1 .. count: await stream.send(i)
        stream.close())()
    proc collect[T](stream: Stream[T]): seq[T] =
      var all: seq[T]
      waitFor stream.forEach(proc (value: T) = all.add(value))
      all
    check numbers(6).map((x: int) => x * 2).filter((x: int) => x mod 4 == 0).collect == [4, 8, 12]
    check numbers(5).batch(2).collect == [@[1, 2], @[3, 4], @[5]]
    check merge(numbers(3), numbers(4)).collect.len == 7
    check numbers(3).throttle(1).collect == [1, 2, 3]

  scenario "an adapter whose reader closes ends its source":
    let source = initStream[int](Block, 1)
    let mapped = source.map((x: int) => x)
    mapped.close()
    check source.channel.trySend(1)
    while not source.isClosed: poll()
    check isIdle()
