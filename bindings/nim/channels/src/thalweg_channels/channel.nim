## The channel: creating, closing, and the calls that do not wait.

import std/[isolation, typetraits]
import "."/[isolated, lane, memory, queue, ring, stored, wait_list]

export queue.ChannelMode, isolated.NotIsolatedError, isolation.Isolated, isolation.isolate,
  isolation.unsafeIsolate, isolation.extract

type
  ChannelError* = object of CatchableError
    ## The base of the errors of a channel.
  CapacityError* = object of ChannelError
    ## The capacity is not 1 to 2^30, or there is not enough memory for it.
  ChannelClosedError* = object of ChannelError
    ## The channel is closed: nothing more can be sent, and everything that was sent is received.
  ChannelTimeoutError* = object of ChannelError
    ## The time is over, and nothing was sent or received.
  ChannelModeDefect* = object of Defect
    ## More threads use the channel at the same time than its mode allows. Detected in debug builds.

  Channel*[T] = object
    ## A queue of messages between threads or tasks. It is a handle: copies refer to the same channel.
    ## Under arc and orc, the last handle that is destroyed also destroys the messages in it. Under
    ## refc, a channel exists until the program ends.
    queue*: ptr Queue

when defined(gcDestructors):
  proc `=destroy`*[T](channel: var Channel[T]) =
    if channel.queue != nil: drop(channel.queue)

  proc `=copy`*[T](to: var Channel[T], source: Channel[T]) =
    if to.queue == source.queue: return
    if source.queue != nil: retain(source.queue)
    `=destroy`(to)
    wasMoved(to)
    to.queue = source.queue

const MaxCapacity = 1 shl 30

# In a debug build, the two sides of a mode with one thread are checked. A release build trusts them.
const checksMode = not defined(release) and not defined(danger)

template single(queue: ptr Queue, flag: untyped, isSingle: bool, what: string, body: untyped) =
  when checksMode:
    let checked = isSingle
    if checked and atomicExchangeN(addr queue.flag, true, ATOMIC_ACQUIRE):
      raise newException(ChannelModeDefect, "two threads " & what & " an " & $queue.mode & " channel")
    body
    if checked: storeRelease(queue.flag, false)
  else:
    body

proc push*[S](queue: ptr Queue, value: var S): bool {.inline.} =
  ## Moves a value into the queue and wakes a receiver. False if the queue is full or closed: the value
  ## stays.
  single(queue, sending, queue.mode in {SPSC, SPMC}, "send to"):
    if queue.mode == SPSC: result = not queue.senders.isClosed and lanePush(S, queue, value)
    else: result = ringPush[S](queue, value)
  if result: queue.receivers.signal()

template takeValue(S: typedesc, queue: ptr Queue, value: untyped): bool =
  (if queue.mode == SPSC: lanePop(S, queue, value) else: ringPop[S](queue, value))

proc pop*[S](queue: ptr Queue, value: ptr S): bool {.inline.} =
  ## Moves the oldest value to memory without a value, and wakes a sender. False if the queue is empty.
  single(queue, receiving, queue.mode in {SPSC, MPSC}, "receive from"):
    result = takeValue(S, queue, value)
  if result: queue.senders.signal()

proc hasValue[S](queue: ptr Queue): bool {.nimcall, gcsafe, raises: [].} =
  if queue.mode == SPSC: laneHasValue(S, queue) else: ringHasValue[S](queue)

proc hasCapacity[S](queue: ptr Queue): bool {.nimcall, gcsafe, raises: [].} =
  if queue.mode == SPSC: laneHasCapacity(queue) else: ringHasCapacity[S](queue)

proc isDrained[S](queue: ptr Queue): bool {.nimcall, gcsafe, raises: [].} =
  if queue.mode == SPSC: not laneHasValue(S, queue) else: queue.ringIsDrained

proc discardValues[S](queue: ptr Queue) {.nimcall, gcsafe, raises: [].} =
  # A destructor must not raise. The compiler cannot know that of a closure's or an inheritable type's.
  {.cast(gcsafe), cast(raises: []).}:
    when not supportsCopyMem(S):
      var count = 0
      while true:
        var value: S
        if not takeValue(S, queue, addr value): break
        inc count
      # A message may have been a cycle, and this thread may not live until its next collection.
      when defined(gcOrc) and mayHaveRefs(S):
        if count > 0: GC_runOrc()
    elif S is Bytes:
      var value: S
      while takeValue(S, queue, addr value): dispose(value)

proc newChannel*[T](capacity: int, mode: ChannelMode): Channel[T] =
  ## A channel for at most `capacity` messages. The capacity is exact: it is not rounded up.
  ##
  ## Raises `CapacityError` if it is not 1 to 2^30, or if there is not enough memory for it.
  if capacity < 1 or capacity > MaxCapacity:
    raise newException(CapacityError, "a capacity of " & $capacity & " is not 1 to 2^30")
  type S = storedType(T)
  let queue = cast[ptr Queue](allocPadded(sizeof(Queue)))
  if queue != nil:
    queue.mode = mode
    queue.capacity = capacity
    queue.refs = 1
  if queue == nil or not (if mode == SPSC: initLane[S](queue) else: initRing[S](queue)):
    release(queue)
    raise newException(CapacityError, "no memory for a capacity of " & $capacity)
  queue.hasValue = hasValue[S]
  queue.hasCapacity = hasCapacity[S]
  queue.isDrained = isDrained[S]
  queue.discardValues = discardValues[S]
  queue.receivers.init()
  queue.senders.init()
  Channel[T](queue: queue)

proc raiseNoChannel*() {.noinline.} =
  raise newException(ChannelClosedError, "the channel was not created with newChannel")

template required*[T](channel: Channel[T]): ptr Queue =
  ## The queue of a channel that was created with `newChannel`.
  if channel.queue == nil: raiseNoChannel()
  channel.queue

proc trySend*[T](channel: Channel[T], value: sink T): bool {.inline.} =
  ## Sends a message if there is capacity. False if the channel is full or closed; the message is then
  ## destroyed. To keep it, send a variable of type `Isolated[T]`.
  ##
  ## Raises `NotIsolatedError` if something else refers to an object of the message.
  let queue = channel.required
  when defined(gcDestructors):
    requireIsolated(value, checkedByCompiler = false)
    result = queue.push(value)
    if result: wasMoved(value)
  else:
    var stored = store(value)
    result = queue.push(stored)
    when stored is Bytes:
      if not result: dispose(stored)

when defined(gcDestructors):
  template content*[T](isolated: var Isolated[T]): var T =
    ## The value in place. In Nim 1.6, taking it out and putting it back leaks a reference.
    cast[ptr T](addr isolated)[]

  proc trySend*[T](channel: Channel[T], value: var Isolated[T]): bool =
    ## Sends a message if there is capacity. False if the channel is full or closed: `value` keeps the
    ## message.
    let queue = channel.required
    requireIsolated(value.content, checkedByCompiler = true)
    result = queue.push(value.content)
    if result: wasMoved(value)

proc tryReceive*[T](channel: Channel[T], value: var T): bool {.inline.} =
  ## Receives the oldest message if there is one. False if the channel is empty; `isClosed` tells
  ## whether more can come.
  let queue = channel.required
  when supportsCopyMem(T):
    result = queue.pop(addr value)
  elif defined(gcDestructors):
    var received: T
    result = queue.pop(addr received)
    if result: value = move received
  else:
    var stored: Bytes
    result = queue.pop(addr stored)
    if result: restore(stored, value)

proc transferred*(queue: ptr Queue, sends: bool): Word =
  ## The number of values that have passed one side.
  if queue.mode == SPSC: (if sends: queue.lanePushed else: queue.lanePopped)
  else: (if sends: queue.ringPushed else: queue.ringPopped)

proc passOn*(queue: ptr Queue, sends: bool) =
  ## Rule 6 of `wait_list`, after a waiter has sent or received.
  if sends:
    if queue.senders.hasAny and queue.hasCapacity(queue): queue.senders.wake(1)
  else:
    if queue.receivers.hasAny and queue.hasValue(queue): queue.receivers.wake(1)

proc newClosedError*(sends: bool): ref ChannelClosedError =
  newException(ChannelClosedError,
    if sends: "sending on a closed channel" else: "the channel is closed and empty")

proc newTimeoutError*(milliseconds: int): ref ChannelTimeoutError =
  newException(ChannelTimeoutError, "nothing happened within " & $milliseconds & " ms")

proc close*[T](channel: Channel[T]) =
  ## Refuses every later send, and wakes all waiting threads and tasks. Messages that were accepted
  ## before are still received. A second close does nothing.
  ##
  ## A close that is concurrent with a send: the send is refused or its message is received. With SPSC,
  ## close on the producer's side, because the message of a concurrent send may be destroyed instead.
  let queue = channel.queue
  if queue != nil:
    if queue.mode != SPSC: closeRing(queue)
    discard queue.senders.close()
    discard queue.receivers.close()

proc isClosed*[T](channel: Channel[T]): bool =
  channel.queue == nil or channel.queue.receivers.isClosed

proc capacity*[T](channel: Channel[T]): int = channel.required.capacity
proc mode*[T](channel: Channel[T]): ChannelMode = channel.required.mode

proc len*[T](channel: Channel[T]): int =
  ## The number of messages in the channel. It may lag behind other threads.
  let queue = channel.required
  if queue.mode == SPSC: queue.laneLen else: queue.ringLen

proc isEmpty*[T](channel: Channel[T]): bool = channel.len == 0
proc isFull*[T](channel: Channel[T]): bool = channel.len == channel.capacity

proc `==`*[T](a, b: Channel[T]): bool = a.queue == b.queue
