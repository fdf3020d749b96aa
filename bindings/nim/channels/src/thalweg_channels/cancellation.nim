## Cancellation of the waits of one event loop.
##
## A scope is a tree: cancelling one cancels its children. Scopes belong to the thread that created
## them. To stop another thread, close the channel that it receives from.

import std/[asyncdispatch, tables]
import event_loop

type
  CancelState* = enum
    Active, Cancelled, Completed
  CancelReason* = enum
    Manual        ## Somebody called `cancel`.
    Timeout       ## The time of the scope is over.
    ParentCancel  ## A scope above this one was cancelled.
    TaskError     ## A task of the group failed.
    ResourceLimit ## For the program's own limits.

  CancelledError* = object of CatchableError
    ## The scope of this call is cancelled.
    reason*: CancelReason

  CancelScope* = ref object
    state: CancelState
    reason: CancelReason
    parent: CancelScope
    idInParent: int
    timer: Wait
    nextId: int
    callbacks: OrderedTable[int, proc (error: ref CancelledError) {.closure, gcsafe.}]

proc active*(scope: CancelScope): bool = scope.state == Active
proc cancelled*(scope: CancelScope): bool = scope.state == Cancelled
proc completed*(scope: CancelScope): bool = scope.state == Completed

proc newCancelledError(reason: CancelReason): ref CancelledError =
  result = newException(CancelledError, "cancelled: " & $reason)
  result.reason = reason

proc onCancel*(scope: CancelScope,
    callback: proc (error: ref CancelledError) {.closure, gcsafe.}): int =
  ## Registers a callback for the cancellation, and returns its id.
  inc scope.nextId
  scope.callbacks[scope.nextId] = callback
  scope.nextId

proc removeOnCancel*(scope: CancelScope, id: int) = scope.callbacks.del(id)

proc leave(scope: CancelScope, state: CancelState) =
  scope.state = state
  if scope.parent != nil:
    scope.parent.removeOnCancel(scope.idInParent)
    scope.parent = nil
  if scope.timer != nil:
    scope.timer.stop()
    scope.timer = nil

proc cancel*(scope: CancelScope, reason = CancelReason.Manual) =
  ## Cancels the scope, its children, and every call that waits with one of them. Does nothing if the
  ## scope is cancelled or completed.
  if not scope.active: return
  scope.reason = reason
  scope.leave(Cancelled)
  let callbacks = move scope.callbacks
  for callback in callbacks.values: callback(newCancelledError(reason))

proc complete*(scope: CancelScope) =
  ## The work of the scope is done: a later cancel does nothing.
  if scope.active:
    scope.leave(Completed)
    scope.callbacks.clear()

proc initCancelScope*(parent: CancelScope = nil, timeout = -1, isShielded = false): CancelScope =
  ## A scope that is cancelled with its parent, unless it is shielded, and after `timeout`
  ## milliseconds.
  result = CancelScope(parent: parent)
  let scope = result
  if parent != nil:
    if parent.state == Cancelled and not isShielded:
      scope.parent = nil
      scope.cancel(ParentCancel)
      return
    if isShielded or not parent.active:
      scope.parent = nil
    else:
      scope.idInParent = parent.onCancel(
        proc (error: ref CancelledError) = scope.cancel(ParentCancel))
  if timeout >= 0:
    scope.timer = newWait(proc (): bool = false, proc (error: ref CatchableError) =
      scope.timer = nil
      scope.cancel(Timeout))
    scope.timer.start(timeout)

proc shield*(scope: CancelScope): CancelScope =
  ## A child that is not cancelled with `scope`, for work that must not be interrupted.
  initCancelScope(scope, isShielded = true)

proc getReason*(scope: CancelScope): CancelReason =
  ## Why the scope was cancelled.
  scope.reason

proc checkCancelled*(scope: CancelScope) =
  ## Raises `CancelledError` if the scope is cancelled.
  if scope.cancelled: raise newCancelledError(scope.reason)

proc within*[T](future: Future[T], scope: CancelScope): Future[T] =
  ## A future that fails with `CancelledError` when the scope is cancelled before `future` is finished.
  ## The work of `future` itself goes on.
  let either = newFuture[T]("within")
  result = either
  if scope.cancelled:
    either.fail(newCancelledError(scope.reason))
    return
  let id = scope.onCancel(proc (error: ref CancelledError) =
    if not either.finished: either.fail(error))
  future.addCallback(proc () {.gcsafe.} =
    scope.removeOnCancel(id)
    if either.finished: return
    if future.failed: either.fail(future.readError)
    else:
      when T is void: either.complete()
      else: either.complete(future.read))

template withCancelScope*(scope, body: untyped) =
  ## Runs `body` with a new scope, and completes the scope afterwards.
  block:
    let scope = initCancelScope()
    try: body
    finally: scope.complete()
