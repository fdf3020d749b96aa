## Streams: channels with a policy for a full buffer, an end, and adapters.

import system except Channel
import std/[asyncdispatch, options]
import "."/[asynchronous, blocking, cancellation, channel, clock, memory, queue]

type
  BackpressurePolicy* = enum
    ## The behaviour of a send when the buffer is full.
    Block      ## It waits.
    Drop       ## It drops the oldest message.
    DropLatest ## It drops its own message.

  Stream*[T] = object
    ## A handle, like `Channel[T]`. Any number of threads may send and receive.
    channel*: Channel[T] ## For the calls of a channel. A send on it ignores the policy.
    policy: BackpressurePolicy

proc initStream*[T](policy = Block, bufferSize = 1024): Stream[T] =
  ## A stream with a buffer of `bufferSize` messages. Raises `CapacityError`, as `newChannel`.
  Stream[T](channel: newChannel[T](bufferSize, MPMC), policy: policy)

proc close*[T](stream: Stream[T]) = stream.channel.close()
proc isClosed*[T](stream: Stream[T]): bool = stream.channel.isClosed
proc len*[T](stream: Stream[T]): int = stream.channel.len
proc capacity*[T](stream: Stream[T]): int = stream.channel.capacity

proc dropped*[T](stream: Stream[T]): int =
  ## How many messages were dropped.
  int(loadRelaxed(stream.channel.required.dropped))

proc countDropped(queue: ptr Queue) =
  discard atomicAddFetch(addr queue.dropped, 1, ATOMIC_RELAXED)

proc evict[T](stream: Stream[T]) =
  var oldest: T
  if stream.channel.tryReceive(oldest): countDropped(stream.channel.queue)

proc sendNow[T](stream: Stream[T], value: sink T): bool =
  ## Sends according to a policy that does not wait. False if the stream is closed.
  when defined(gcDestructors):
    var message = unsafeIsolate(value)
    template keeps(): bool = stream.channel.trySend(message)
  else:
    template keeps(): bool = stream.channel.trySend(value)
  while not keeps():
    if stream.isClosed: return false
    if stream.policy == DropLatest:
      countDropped(stream.channel.queue)
      break
    stream.evict()
  true

proc send*[T](stream: Stream[T], value: sink T, timeout = -1, scope: CancelScope = nil): Future[void] =
  ## Sends a message according to the policy. The errors are those of a channel's `send`.
  if stream.policy == Block: return stream.channel.send(value, timeout, scope)
  result = newFuture[void]("send")
  try:
    if stream.sendNow(value): result.complete()
    else: result.fail(newClosedError(sends = true))
  except CatchableError as error:
    result.fail(error)

proc blockingSend*[T](stream: Stream[T], value: sink T, timeout = -1) =
  ## Like `send`, and blocks the thread under the policy `Block`.
  if stream.policy == Block: stream.channel.blockingSend(value, timeout)
  elif not stream.sendNow(value): raise newClosedError(sends = true)

proc receive*[T](stream: Stream[T], scope: CancelScope = nil): Future[Option[T]] {.async.} =
  ## The next message, or none when the stream is closed and empty.
  try: return some(await stream.channel.recv(scope = scope))
  except ChannelClosedError: return none(T)

proc receiveBatch*[T](stream: Stream[T], max = 100): Future[seq[T]] {.async.} =
  ## Waits for one message and takes those that are there, at most `max`. Empty at the end.
  let first = await stream.receive()
  if first.isNone: return
  var batch = @[first.get]
  var value: T
  while batch.len < max and stream.channel.tryReceive(value): batch.add(move value)
  return batch

iterator items*[T](stream: Stream[T]): T =
  ## Receives until the end, and blocks the thread while the stream is empty.
  for value in stream.channel: yield value

proc forEach*[T](stream: Stream[T],
    action: proc (value: T) {.closure, gcsafe.}): Future[void] {.async.} =
  ## Calls `action` for each message until the end.
  while true:
    let next = await stream.receive()
    if next.isNone: return
    action(next.get)

# An adapter is a task that receives from one stream and sends to another. It closes the other stream
# at the end, and its source if nobody takes more. An error of a callback ends both.

const AdapterCapacity = 16

proc pump[T, U](source: Stream[T], to: Stream[U],
    step: proc (value: T): Future[void] {.closure, gcsafe.}) {.async.} =
  try:
    while true:
      let next = await source.receive()
      if next.isNone: break
      await step(next.get)
  except ChannelClosedError:
    discard # `to` was closed by its reader.
  finally:
    source.close()
    to.close()

proc forward[T](source, to: Stream[T]) {.async.} =
  while true:
    let next = await source.receive()
    if next.isNone: return
    await to.send(next.get)

proc map*[T, U](source: Stream[T], convert: proc (value: T): U {.closure, gcsafe.}): Stream[U] =
  let to = initStream[U](Block, AdapterCapacity)
  asyncCheck pump(source, to, proc (value: T): Future[void] = to.send(convert(value)))
  to

proc filter*[T](source: Stream[T], keeps: proc (value: T): bool {.closure, gcsafe.}): Stream[T] =
  let to = initStream[T](Block, AdapterCapacity)
  asyncCheck pump(source, to, proc (value: T): Future[void] =
    if keeps(value): return to.send(value)
    result = newFuture[void]("filter")
    result.complete())
  to

proc batch*[T](source: Stream[T], size: int): Stream[seq[T]] =
  ## Messages in groups of `size`; the last one may be smaller.
  let to = initStream[seq[T]](Block, AdapterCapacity)
  proc run() {.async.} =
    try:
      var group: seq[T]
      while true:
        let next = await source.receive()
        if next.isSome: group.add(next.get)
        if group.len == size or (next.isNone and group.len > 0): await to.send(move group)
        if next.isNone: break
    except ChannelClosedError:
      discard
    finally:
      source.close()
      to.close()
  asyncCheck run()
  to

proc throttle*[T](source: Stream[T], interval: int): Stream[T] =
  ## At most one message every `interval` milliseconds.
  let to = initStream[T](Block, AdapterCapacity)
  var earliest = now()
  proc forward(value: T) {.async.} =
    let early = (earliest - now() + 999_999) div 1_000_000
    if early > 0: await sleepAsync(int(early))
    earliest = now() + int64(interval) * 1_000_000
    await to.send(value)
  asyncCheck pump(source, to, forward)
  to

proc merge*[T](sources: varargs[Stream[T]]): Stream[T] =
  ## The messages of all sources, until the last one ends.
  let to = initStream[T](Block, AdapterCapacity)
  var left = sources.len
  proc run(source: Stream[T]) {.async.} =
    try: await source.forward(to)
    except ChannelClosedError: source.close()
    dec left
    if left == 0: to.close()
  for source in sources: asyncCheck run(source)
  to
