## Messages with references: their owner, and the moment at which they are destroyed.

import system except Channel
import std/unittest
import thalweg_channels

{.used.}

template scenario(name: string, body: untyped) =
  ## A test with local variables. The variables of a test at module level live as long as the program.
  test name: (proc () = body)()

when defined(gcDestructors):
  import std/options

  var live: int

  type
    Tracked = object
      id: int
    Leaf = ref object
      tracked: Tracked
      text: string
    Tree = ref object
      tracked: Tracked
      left, right: Tree
    Ring = ref object
      tracked: Tracked
      next: Ring
    Shape = ref object of RootObj
      tracked: Tracked
    Circle = ref object of Shape
      inner: Leaf
    Kind = enum none, one, two
    Variant = object
      case kind: Kind
      of none: discard
      of one: leaf: Leaf
      of two: leaves: array[2, Leaf]
    Base {.inheritable.} = object
      tracked: Tracked
    Derived = object of Base
    Parcel = object
      names: seq[string]
      leaves: seq[Leaf]
      reply: Channel[Leaf]

  proc `=destroy`(tracked: var Tracked) =
    if tracked.id != 0: discard atomicDec(live)

  proc `=copy`(to: var Tracked, source: Tracked) {.error.}

  proc track(id: int): Tracked =
    discard atomicInc(live)
    Tracked(id: id)

  proc newLeaf(id: int): Leaf = Leaf(tracked: track(id), text: "leaf " & $id)

  proc newTree(depth: int): Tree =
    result = Tree(tracked: track(depth))
    if depth > 1:
      result.left = newTree(depth - 1)
      result.right = newTree(depth - 1)

  proc size(tree: Tree): int = (if tree == nil: 0 else: 1 + tree.left.size + tree.right.size)

  proc newRing(size: int): Ring =
    result = Ring(tracked: track(size))
    var last = result
    for i in 1 ..< size:
      last.next = Ring(tracked: track(i))
      last = last.next
    last.next = result

  proc size(ring: Ring): int =
    var at = ring
    while true:
      inc result
      at = at.next
      if at == ring: break

  proc collect() =
    ## Under orc, the list of a thread's possible roots of cycles leaks with the thread.
    when defined(gcOrc): GC_runOrc()

  proc sendLeaves(channel: Channel[Leaf]) {.thread.} =
    for i in 1 .. 20_000: channel.blockingSend(newLeaf(i))
    channel.close()
    collect()

  proc sendTrees(channel: Channel[Tree]) {.thread.} =
    for i in 1 .. 2_000: channel.blockingSend(newTree(4))
    channel.close()
    collect()

  proc sendRings(channel: Channel[Ring]) {.thread.} =
    for i in 1 .. 2_000:
      var ring = newRing(1 + i mod 5)
      # Temporary references make the objects possible roots of the cycle collector of this thread.
      var alias = ring.next
      alias = nil
      channel.blockingSend(move ring)
    channel.close()
    collect()

  proc leaveLeaves(channel: Channel[Leaf]) {.thread.} =
    for i in 1 .. 10: channel.blockingSend(newLeaf(i))
    collect()

  proc leaveParcels(channel: Channel[Parcel]) {.thread.} =
    for parcel in channel:
      var leaf = newLeaf(parcel.leaves.len + parcel.names.len)
      parcel.reply.blockingSend(move leaf)
    collect()

  suite "messages":
    for mode in ChannelMode:
      scenario $mode & ": ref objects between threads":
        let channel = newChannel[Leaf](64, mode)
        var thread: Thread[Channel[Leaf]]
        createThread(thread, sendLeaves, channel)
        var expected = 0
        for leaf in channel:
          inc expected
          doAssert leaf.tracked.id == expected and leaf.text == "leaf " & $expected
        joinThread(thread)
        check expected == 20_000 and live == 0

      scenario $mode & ": a dropped channel destroys its messages":
        block:
          let channel = newChannel[Leaf](100, mode)
          for i in 1 .. 100: channel.blockingSend(newLeaf(i))
          for i in 1 .. 30: discard channel.blockingRecv()
          check live == 70
        check live == 0

      scenario $mode & ": nothing is retained after a receive":
        let channel = newChannel[Leaf](1000, mode)
        for i in 1 .. 1000: channel.blockingSend(newLeaf(i))
        var leaf: Leaf
        for i in 1 .. 1000:
          check channel.tryReceive(leaf)
          check live == 1001 - i
        leaf = nil
        check live == 0

      scenario $mode & ": a refused message is destroyed, or kept by Isolated":
        let channel = newChannel[Leaf](1, mode)
        check channel.trySend(newLeaf(1))
        check not channel.trySend(newLeaf(2))
        check live == 1
        var kept = isolate(Leaf(tracked: track(3)))
        check not channel.trySend(kept)
        check live == 2
        expect ChannelTimeoutError: channel.blockingSend(kept, timeout = 0)
        channel.close()
        expect ChannelClosedError: channel.blockingSend(kept)
        check live == 2
        check kept.extract.tracked.id == 3
        check live == 1 and channel.blockingRecv().tracked.id == 1
        check live == 0

    scenario "trees between threads":
      let channel = newChannel[Tree](16, SPSC)
      var thread: Thread[Channel[Tree]]
      createThread(thread, sendTrees, channel)
      for tree in channel: doAssert tree.size == 15
      joinThread(thread)
      collect()
      check live == 0

    when defined(gcOrc):
      scenario "cycles between threads are sent whole and collected by the receiver":
        let channel = newChannel[Ring](16, MPMC)
        var thread: Thread[Channel[Ring]]
        createThread(thread, sendRings, channel)
        var count = 0
        for ring in channel:
          inc count
          doAssert ring.size == 1 + count mod 5
        joinThread(thread)
        GC_runOrc()
        check count == 2_000 and live == 0

      scenario "cycles in a dropped channel are collected at once":
        block:
          let channel = newChannel[Ring](16, SPSC)
          for i in 1 .. 10: channel.blockingSend(newRing(3))
          check live == 30
        check live == 0

    scenario "a message that its sender still refers to is refused":
      let channel = newChannel[Leaf](4, SPSC)
      let leaf = newLeaf(1)
      let alias = leaf
      expect NotIsolatedError: discard channel.trySend(leaf)
      expect NotIsolatedError: channel.blockingSend(leaf)
      var kept = unsafeIsolate(alias)
      expect NotIsolatedError: discard channel.trySend(kept)
      check channel.isEmpty and alias.text == "leaf 1" and kept.extract == leaf

    scenario "a shared object inside a message is refused, and inside one message is sent":
      let channel = newChannel[Tree](4, SPSC)
      var inner = newTree(1)
      var outer = Tree(tracked: track(2), left: inner)
      expect NotIsolatedError: discard channel.trySend(move outer)
      outer = Tree(tracked: track(3), left: inner, right: inner)
      inner = nil
      check channel.trySend(move outer)
      let received = channel.blockingRecv()
      check received.left == received.right and received.left.tracked.id == 1

    scenario "a thread may end with its messages in a channel":
      let channel = newChannel[Leaf](16, SPSC)
      var thread: Thread[Channel[Leaf]]
      createThread(thread, leaveLeaves, channel)
      joinThread(thread)
      check channel.len == 10 and live == 10
      for i in 1 .. 10: check channel.blockingRecv().text == "leaf " & $i
      check live == 0

    scenario "objects with strings, sequences and a channel for the reply":
      let channel = newChannel[Parcel](4, MPSC)
      let reply = newChannel[Leaf](4, SPSC)
      var thread: Thread[Channel[Parcel]]
      createThread(thread, leaveParcels, channel)
      for i in 1 .. 100:
        channel.blockingSend(
          Parcel(names: @["a", "b"], leaves: @[newLeaf(1), nil, newLeaf(2)], reply: reply))
        check reply.blockingRecv().tracked.id == 5
      channel.close()
      joinThread(thread)
      check live == 0

    scenario "variants, arrays, tuples, options and distinct types":
      type Wrapped = distinct Leaf
      let variants = newChannel[Variant](4, SPSC)
      check variants.trySend(Variant(kind: none))
      check variants.trySend(Variant(kind: one, leaf: newLeaf(1)))
      check variants.trySend(Variant(kind: two, leaves: [newLeaf(2), newLeaf(3)]))
      let shared = newLeaf(4)
      expect NotIsolatedError:
        discard variants.trySend(Variant(kind: two, leaves: [shared, newLeaf(5)]))
      check variants.blockingRecv().kind == none and variants.blockingRecv().leaf.tracked.id == 1
      check variants.blockingRecv().leaves[1].tracked.id == 3
      let options = newChannel[(Option[Leaf], int)](4, SPSC)
      check options.trySend((some(newLeaf(6)), 1)) and options.trySend((none(Leaf), 2))
      expect NotIsolatedError: discard options.trySend((some(shared), 3))
      check options.blockingRecv()[0].get.tracked.id == 6 and options.blockingRecv()[0].isNone
      let wrapped = newChannel[Wrapped](4, SPSC)
      check wrapped.trySend(Wrapped(newLeaf(7)))
      expect NotIsolatedError: discard wrapped.trySend(Wrapped(shared))
      check Leaf(wrapped.blockingRecv()).tracked.id == 7 and shared.tracked.id == 4

    scenario "inheritable types and closures need isolate":
      let shapes = newChannel[Shape](4, SPSC)
      check not compiles(shapes.trySend(Shape(tracked: track(1))))
      var circle = isolate(Shape(Circle(tracked: track(1), inner: Leaf(tracked: track(2)))))
      check shapes.trySend(circle)
      let received = shapes.blockingRecv()
      check received of Circle and Circle(received).inner.tracked.id == 2
      check not compiles(newChannel[ref Base](4, SPSC).trySend((ref Base)()))
      check not compiles(newChannel[ref Derived](4, SPSC).trySend((ref Derived)()))
      let tasks = newChannel[proc (): int](4, SPSC)
      check not compiles(tasks.trySend(proc (): int = 1))

  test "every object of this file is gone":
    collect()
    check live == 0
else:
  type Leaf = ref object
  suite "messages":
    scenario "under refc, a ref is refused at compile time":
      check not compiles(newChannel[Leaf](4, SPSC))
      check compiles(newChannel[string](4, SPSC))
