## Calls that return futures of `std/asyncdispatch`.

import system except Channel
import std/[asyncdispatch, typetraits]
import "."/[cancellation, channel, event_loop, queue, stored, wait_list]
when defined(gcDestructors):
  import isolated

proc canceller(wait: Wait): proc (error: ref CancelledError) {.closure, gcsafe.} =
  (proc (error: ref CancelledError) = wait.cancel(error))

proc remover(scope: CancelScope, id: int): proc () {.closure, gcsafe.} =
  (proc () = scope.removeOnCancel(id))

proc start*(wait: Wait, timeout: int, scope: CancelScope) =
  if scope != nil: wait.onOver = remover(scope, scope.onCancel(canceller(wait)))
  wait.start(timeout)

proc send*[T](channel: Channel[T], value: sink T, timeout = -1, scope: CancelScope = nil): Future[void] =
  ## Sends a message. The future completes when the message is in the channel, after at most `timeout`
  ## milliseconds. A cancelled `scope` ends the wait; the message is then destroyed.
  ##
  ## The future fails with `ChannelClosedError`, `ChannelTimeoutError`, `CancelledError` or
  ## `NotIsolatedError`.
  try:
    let queue = channel.required
    if scope != nil: scope.checkCancelled()
    when defined(gcDestructors):
      requireIsolated(value, checkedByCompiler = false)
      var message = value
    else:
      var message = store(value)
    if queue.push(message):
      wasMoved(message)
      return completedFuture()
    let future = newFuture[void]("send")
    result = future
    proc attempt(): bool =
      if queue.push(message):
        wasMoved(message)
        future.complete()
        queue.passOn(sends = true)
        return true
      result = queue.senders.isClosed
      if result:
        when message is Bytes: dispose(message)
        future.fail(newClosedError(sends = true))
    if attempt(): return
    let wait = newWait(attempt, proc (error: ref CatchableError) =
      when message is Bytes: dispose(message)
      future.fail(error))
    wait.addSide(queue, sends = true)
    wait.start(timeout, scope)
  except CatchableError as error:
    result = newFuture[void]("send")
    result.fail(error)

proc takeNow[T](queue: ptr Queue, value: var T): bool =
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

proc recv*[T](channel: Channel[T], timeout = -1, scope: CancelScope = nil): Future[T] =
  ## Receives the oldest message. The future completes when there is one, after at most `timeout`
  ## milliseconds. A wait that ends without a message has taken none.
  ##
  ## The future fails with `ChannelClosedError`, `ChannelTimeoutError` or `CancelledError`.
  let future = newFuture[T]("recv")
  result = future
  try:
    let queue = channel.required
    if scope != nil: scope.checkCancelled()
    proc attempt(): bool =
      let closed = queue.receivers.isClosed
      var value: T
      if queue.takeNow(value):
        future.complete(value)
        queue.passOn(sends = false)
        return true
      result = closed and queue.isDrained(queue)
      if result: future.fail(newClosedError(sends = false))
    if attempt(): return
    let wait = newWait(attempt, proc (error: ref CatchableError) = future.fail(error))
    wait.addSide(queue, sends = false)
    wait.start(timeout, scope)
  except CatchableError as error:
    future.fail(error)
