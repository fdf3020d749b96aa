## Calls that block the calling thread. The thread spins for at most the cost of a wake-up and then
## sleeps.

import system except Channel
import std/[posix, typetraits]
import "."/[channel, clock, stored]
import "."/[memory, notifier, queue, spin, wait_list]

when defined(gcDestructors):
  import std/isolation
  import isolated

type Ready = proc (queue: ptr Queue): bool {.nimcall, gcsafe, raises: [].}

proc waitUntil(queue: ptr Queue, list: var WaitList, ready: Ready, sends: bool,
    deadline: int64): bool =
  ## Waits until `ready` holds, the channel is closed, or somebody wakes this thread. False at the
  ## deadline.
  let count = queue.transferred(sends)
  if list.spin.until(count, Word(queue.capacity), ready(queue) or list.isClosed): return true
  let notifier = thisNotifier()
  var waiter: Waiter
  waiter.initThread(notifier)
  notifier.prepare()
  list.arm(addr waiter, count)
  if ready(queue) or list.isClosed:
    discard disarm(addr waiter)
    return true
  result = list.spin.sleep(notifier.park(deadline))
  # If it was woken at the deadline, the caller tries once more, and then passes the wake-up on.
  if not disarm(addr waiter): result = true

proc pushSlow[S](queue: ptr Queue, value: var S, milliseconds: int) {.noinline.} =
  let deadline = deadlineIn(milliseconds)
  while true:
    if queue.push(value): break
    if queue.senders.isClosed: raise newClosedError(sends = true)
    if not queue.waitUntil(queue.senders, queue.hasCapacity, sends = true, deadline):
      if queue.push(value): break
      raise newTimeoutError(milliseconds)
  queue.passOn(sends = true)

proc popSlow[S](queue: ptr Queue, value: ptr S, milliseconds: int): bool {.noinline.} =
  ## False if the channel is closed and empty.
  let deadline = deadlineIn(milliseconds)
  while true:
    let closed = queue.receivers.isClosed
    if queue.pop(value): break
    if closed:
      if queue.isDrained(queue): return false
      discard sched_yield() # A send that was accepted before the close is in progress.
    elif not queue.waitUntil(queue.receivers, queue.hasValue, sends = false, deadline):
      if queue.pop(value): break
      raise newTimeoutError(milliseconds)
  queue.passOn(sends = false)
  true

proc blockingSend*[T](channel: Channel[T], value: sink T, timeout = -1) {.inline.} =
  ## Sends a message and blocks the thread while the channel is full, at most for `timeout`
  ## milliseconds.
  ##
  ## Raises `ChannelClosedError`, `ChannelTimeoutError`, or `NotIsolatedError`. The message is then
  ## destroyed. To keep it, send a variable of type `Isolated[T]`.
  let queue = channel.required
  when defined(gcDestructors):
    requireIsolated(value, checkedByCompiler = false)
    if not queue.push(value): queue.pushSlow(value, timeout)
    wasMoved(value)
  else:
    var stored = store(value)
    when stored is Bytes:
      try:
        if not queue.push(stored): queue.pushSlow(stored, timeout)
      except ChannelError:
        dispose(stored)
        raise
    else:
      if not queue.push(stored): queue.pushSlow(stored, timeout)

when defined(gcDestructors):
  proc blockingSend*[T](channel: Channel[T], value: var Isolated[T], timeout = -1) =
    ## As above. If it raises, `value` keeps the message.
    let queue = channel.required
    requireIsolated(value.content, checkedByCompiler = true)
    if not queue.push(value.content): queue.pushSlow(value.content, timeout)
    wasMoved(value)

proc receive[T](queue: ptr Queue, value: var T, timeout: int): bool {.inline.} =
  when supportsCopyMem(T):
    result = queue.pop(addr value) or queue.popSlow(addr value, timeout)
  elif defined(gcDestructors):
    var received: T
    result = queue.pop(addr received) or queue.popSlow(addr received, timeout)
    if result: value = move received
  else:
    var stored: Bytes
    result = queue.pop(addr stored) or queue.popSlow(addr stored, timeout)
    if result: restore(stored, value)

proc blockingRecv*[T](channel: Channel[T], timeout = -1): T {.inline.} =
  ## Receives the oldest message and blocks the thread while the channel is empty, at most for
  ## `timeout` milliseconds.
  ##
  ## Raises `ChannelClosedError` if the channel is closed and empty, or `ChannelTimeoutError`.
  if not channel.required.receive(result, timeout): raise newClosedError(sends = false)

iterator items*[T](channel: Channel[T]): T =
  ## Receives messages until the channel is closed and empty. Blocks while it is empty.
  let queue = channel.required
  while true:
    var value: T
    if not queue.receive(value, -1): break
    yield move(value)
