## Random calls, compared with a model that is a deque.

import system except Channel
import std/[deques, os, random, strutils, unittest]
import thalweg_channels

{.used.}

let seed = parseInt(getEnv("THALWEG_TEST_SEED", "20"))

proc compare[T](generator: var Rand, mode: ChannelMode, make: proc (i: int): T) =
  let capacity = generator.rand(1 .. 20)
  let channel = newChannel[T](capacity, mode)
  var model: Deque[T]
  var closed = false
  var next = 0
  for step in 1 .. 400:
    case generator.rand(0 .. 100)
    of 0:
      if generator.rand(3) == 0:
        channel.close()
        closed = true
    of 1 .. 50:
      let accepted = channel.trySend(make(next))
      doAssert accepted == (not closed and model.len < capacity), "step " & $step
      if accepted: model.addLast(make(next))
      inc next
    of 51 .. 70:
      if model.len > 0: doAssert channel.blockingRecv() == model.popFirst()
      elif closed:
        doAssertRaises(ChannelClosedError): discard channel.blockingRecv()
    of 71 .. 80:
      if closed:
        doAssertRaises(ChannelClosedError): channel.blockingSend(make(next))
      elif model.len < capacity:
        channel.blockingSend(make(next))
        model.addLast(make(next))
        inc next
    else:
      var value: T
      doAssert channel.tryReceive(value) == (model.len > 0), "step " & $step
      if model.len > 0: doAssert value == model.popFirst()
    doAssert channel.len == model.len and channel.isClosed == closed
    doAssert channel.isEmpty == (model.len == 0) and channel.isFull == (model.len == capacity)

suite "model":
  for mode in ChannelMode:
    test $mode & ": random calls agree with a deque (THALWEG_TEST_SEED=" & $seed & ")":
      var generator = initRand(seed)
      for _ in 1 .. 100:
        compare(generator, mode, proc (i: int): int = i)
        compare(generator, mode, proc (i: int): string = repeat('x', i mod 50) & $i)
        compare(generator, mode, proc (i: int): seq[int] = @[i, i + 1])
        compare(generator, mode, proc (i: int): array[9, int] = [i, 0, 0, 0, 0, 0, 0, 0, i])
