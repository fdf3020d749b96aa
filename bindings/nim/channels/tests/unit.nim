## One channel at a time: the calls, their errors, and what happens at a close.

import system except Channel
import std/unittest
import thalweg_channels

{.used.}

proc receiveAfter(channel: Channel[int]) {.thread.} =
  check channel.blockingRecv() == 7

proc sendAfter(channel: Channel[int]) {.thread.} =
  channel.blockingSend(2)

proc closeFromThread(channel: Channel[int]) {.thread.} =
  channel.close()

proc carries[T](value: T) =
  for mode in ChannelMode:
    let channel = newChannel[T](5, mode)
    for _ in 1 .. 3:
      for _ in 1 .. 5: doAssert channel.trySend(value)
      for _ in 1 .. 5:
        var got: T
        doAssert channel.tryReceive(got)
        doAssert got == value

suite "channel":
  for mode in ChannelMode:
    test $mode & ": messages arrive in their order":
      let channel = newChannel[int](3, mode)
      check channel.isEmpty and not channel.isFull
      for i in 1 .. 3: check channel.trySend(i)
      check channel.isFull and channel.len == 3 and channel.capacity == 3 and channel.mode == mode
      check not channel.trySend(4)
      var value: int
      for i in 1 .. 3:
        check channel.tryReceive(value)
        check value == i
      check not channel.tryReceive(value)
      check channel.len == 0

    test $mode & ": every capacity is exact, over many laps":
      for capacity in [1, 2, 3, 6, 7, 8, 9, 14, 100, 1000]:
        let channel = newChannel[int](capacity, mode)
        var sent, received = 0
        for lap in 0 .. 20:
          while channel.trySend(sent): inc sent
          check sent - received == capacity and channel.len == capacity
          for _ in 0 ..< max(1, capacity - lap):
            var value: int
            check channel.tryReceive(value)
            check value == received
            inc received

    test $mode & ": a close refuses sends and keeps accepted messages":
      let channel = newChannel[int](4, mode)
      channel.blockingSend(1)
      channel.close()
      channel.close()
      check channel.isClosed
      check not channel.trySend(2)
      expect ChannelClosedError: channel.blockingSend(2)
      check channel.blockingRecv() == 1
      expect ChannelClosedError: discard channel.blockingRecv()
      var value: int
      check not channel.tryReceive(value)

    test $mode & ": a timeout leaves the channel as it was":
      let channel = newChannel[int](1, mode)
      expect ChannelTimeoutError: discard channel.blockingRecv(timeout = 1)
      channel.blockingSend(1)
      expect ChannelTimeoutError: channel.blockingSend(2, timeout = 1)
      check channel.len == 1 and channel.blockingRecv(timeout = 0) == 1

    test $mode & ": a receiver that sleeps is woken by a send":
      let channel = newChannel[int](1, mode)
      var thread: Thread[Channel[int]]
      createThread(thread, receiveAfter, channel)
      channel.blockingSend(7)
      joinThread(thread)

    test $mode & ": a sender that sleeps is woken by a receive":
      let channel = newChannel[int](1, mode)
      channel.blockingSend(1)
      var thread: Thread[Channel[int]]
      createThread(thread, sendAfter, channel)
      check channel.blockingRecv() == 1
      check channel.blockingRecv() == 2
      joinThread(thread)

    test $mode & ": a close wakes a receiver and a sender":
      var thread: Thread[Channel[int]]
      let empty = newChannel[int](1, mode)
      createThread(thread, closeFromThread, empty)
      expect ChannelClosedError: discard empty.blockingRecv()
      joinThread(thread)
      let full = newChannel[int](1, mode)
      full.blockingSend(1)
      createThread(thread, closeFromThread, full)
      expect ChannelClosedError: full.blockingSend(2)
      joinThread(thread)

  test "a capacity of zero, below, or beyond memory is refused":
    for capacity in [0, -1, low(int), 1 shl 30 + 1, high(int)]:
      expect CapacityError: discard newChannel[int](capacity, MPMC)

  test "a channel that was not created refuses every call":
    var channel: Channel[int]
    var value: int
    expect ChannelClosedError: discard channel.trySend(1)
    expect ChannelClosedError: discard channel.tryReceive(value)
    expect ChannelClosedError: channel.blockingSend(1)
    expect ChannelClosedError: discard channel.blockingRecv()
    expect ChannelClosedError: discard channel.len
    check channel.isClosed
    channel.close()

  test "messages of every size keep their content":
    carries(true)
    carries('x')
    carries(-3'i16)
    carries((1'i8, -1'i64))
    carries(())
    carries([1, 2, 3, 4, 5, 6, 7])
    carries([1, 2, 3, 4, 5, 6, 7, 8])
    carries(default(array[1000, byte]))
    carries("")
    carries("a string that is long enough for its own memory")
    carries(@[1, 2, 3])
    carries[seq[int]](@[])

  test "for receives until the channel is closed and empty":
    let channel = newChannel[string](8, MPSC)
    for i in 1 .. 5: channel.blockingSend($i)
    channel.close()
    var all = ""
    for message in channel: all.add(message)
    check all == "12345"

  when not defined(release) and not defined(danger):
    test "a second thread in a send of a single producer is a defect":
      let channel = newChannel[int](2, SPSC)
      channel.queue.sending = true
      expect ChannelModeDefect: discard channel.trySend(1)
      channel.queue.sending = false
      check channel.trySend(1)
