## Cancelling calls and waits for streams, from the same thread or from another one.

import std/[locks, posix]
import table

type
  CancelNode* = object
    ## A running call, or a wait for a stream, in the list of its token.
    previous, next: ptr CancelNode
    table: ptr Table
    call: Handle
    event: cint # An eventfd, which wakes the thread of a wait. -1: a call.

  CancelState = object
    lock: Lock
    isCancelled: bool
    first: ptr CancelNode

  CancelToken* = ref object
    ## Cancels the calls and waits that were made with it, and all later ones.
    state: ptr CancelState

  CancelHandle* = object
    ## A `CancelToken` for another thread. It is valid as long as the token.
    state: ptr CancelState

proc finalize(token: CancelToken) {.raises: [].} =
  # A running call has a reference to its token, so that the list is empty.
  deinitLock(token.state.lock)
  deallocShared(token.state)

proc newCancelToken*(): CancelToken =
  ## .. code-block:: nim
  ##   let token = newCancelToken()
  ##   let found = client.countAsync("fn ", ".", CallOptions(cancel: token))
  ##   token.cancel()
  new(result, finalize)
  result.state = cast[ptr CancelState](allocShared0(sizeof(CancelState)))
  initLock(result.state.lock)

proc handle*(token: CancelToken): CancelHandle =
  ## For `cancel` on another thread. Keep the token until that thread has ended.
  CancelHandle(state: token.state)

proc stop(node: ptr CancelNode) {.gcsafe, raises: [].} =
  var one = 1'u64
  if node.event < 0: discard node.table.cancel(node.call, nil)
  else: discard write(node.event, addr one, sizeof(one))

proc cancel*(handle: CancelHandle) {.gcsafe, raises: [].} =
  ## Cancels the calls and waits. A second call has no effect.
  let state = handle.state
  acquire(state.lock)
  state.isCancelled = true
  var node = state.first
  while node != nil:
    node.stop()
    node = node.next
  release(state.lock)

proc cancel*(token: CancelToken) {.gcsafe, raises: [].} =
  ## Cancels the calls and waits. A second call has no effect.
  token.handle.cancel()

proc isCancelled*(token: CancelToken): bool {.gcsafe, raises: [].} =
  ## Whether `cancel` was called.
  acquire(token.state.lock)
  result = token.state.isCancelled
  release(token.state.lock)

proc add(token: CancelToken, node: ptr CancelNode) {.gcsafe, raises: [].} =
  let state = token.state
  acquire(state.lock)
  node.previous = nil
  node.next = state.first
  if node.next != nil: node.next.previous = node
  state.first = node
  if state.isCancelled: node.stop()
  release(state.lock)

proc add*(token: CancelToken, node: ptr CancelNode, table: ptr Table, call: Handle) {.gcsafe,
    raises: [].} =
  ## A call was submitted. It is cancelled now if the token was.
  node.table = table
  node.call = call
  node.event = -1
  token.add(node)

proc add*(token: CancelToken, node: ptr CancelNode, event: cint) {.gcsafe, raises: [].} =
  ## A wait begins. Its thread is woken by the eventfd, now if the token was cancelled.
  node.event = event
  token.add(node)

proc remove*(token: CancelToken, node: ptr CancelNode) {.gcsafe, raises: [].} =
  ## The call or the wait has ended.
  let state = token.state
  acquire(state.lock)
  if node.previous != nil: node.previous.next = node.next
  else: state.first = node.next
  if node.next != nil: node.next.previous = node.previous
  release(state.lock)
