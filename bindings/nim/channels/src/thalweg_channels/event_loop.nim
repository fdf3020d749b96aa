## Waiting on channels in `std/asyncdispatch`, without polling.
##
## 1. Each thread has one loop: an eventfd and an inbox. The eventfd is registered with the thread's
##    dispatcher **only while somebody waits**, so that a program that waits for nothing can end.
## 2. A wait has a side for each operation that it waits for. A side is armed in the wait list of a
##    channel. A publisher that removes it from there puts it into the inbox, and then writes to the
##    eventfd if it is on another thread. On the loop's own thread it schedules a call instead.
## 3. The loop takes a side from its inbox, tries the operation again, and arms the side again if the
##    operation still has to wait. After it arms a side, it checks again (rule 4 of `wait_list`).
## 4. A wait that is over disarms its sides. For a side that is on its way to the inbox at that time, it
##    wakes the next waiter of the channel (rule 6 of `wait_list`). The side is freed when it arrives.
## 5. Only the loop's thread touches waits and sides, with one exception: a publisher that finds the
##    loop's thread ended frees the side itself, and wakes the next waiter.

import system except Channel
import std/[asyncdispatch, locks, posix]
import "."/[channel, clock, memory, notifier, queue, wait_list]

const MaxTurns = 256
  ## So many scheduled calls in a row keep descriptors and timers waiting; the next one goes through the
  ## eventfd.

type
  Side = object
    waiter: Waiter ## First, so that a pointer to it is a pointer to the side.
    queue: ptr Queue
    sends: bool
    isOut: bool    ## It is armed or on its way to the inbox.
    previous, next: ptr Side
    wait: pointer  ## A counted reference to the `Wait`.

  Loop = object
    lock: Lock
    first, last: ptr Waiter ## The inbox, under the lock.
    ended: bool             ## Under the lock.
    signalled: bool         ## The eventfd was written since it was last read.
    fd: cint
    # The rest belongs to the thread.
    isRegistered, isScheduled, isChecking: bool
    turns: int
    waits: int              ## How many waits are not over.
    sides: ptr Side         ## All sides of waits that are not over, and those on their way.

  Wait* = ref object
    sides: seq[ptr Side]
    attempt: proc (): bool {.closure, gcsafe.}
      ## Tries the operations. True if the wait is over, and its future is completed.
    abort: proc (error: ref CatchableError) {.closure, gcsafe.}
    onOver*: proc () {.closure, gcsafe.} ## Called once when the wait is over.
    isOver: bool
    deadline: int64
    timeout: int

var
  deadlines {.threadvar.}: seq[Wait] ## The waits of this thread that have one.
  nextTimer {.threadvar.}: int64     ## When the earliest timer of `deadlines` fires, or 0.
  completed {.threadvar.}: Future[void]

proc eventfd(count, flags: cint): cint {.importc, header: "<sys/eventfd.h>".}
var
  efdCloexec {.importc: "EFD_CLOEXEC", header: "<sys/eventfd.h>".}: cint
  efdNonblock {.importc: "EFD_NONBLOCK", header: "<sys/eventfd.h>".}: cint

proc list(side: ptr Side): ptr WaitList =
  if side.sends: addr side.queue.senders else: addr side.queue.receivers

proc isReady(side: ptr Side): bool =
  (if side.sends: side.queue.hasCapacity(side.queue) else: side.queue.hasValue(side.queue)) or
    side.list[].isClosed

proc freeSide(side: ptr Side) {.raises: [].} =
  notifierOf(addr side.waiter).drop()
  drop(side.queue)
  release(side)

proc unlink(loop: ptr Loop, side: ptr Side) =
  if side.previous == nil: loop.sides = side.next else: side.previous.next = side.next
  if side.next != nil: side.next.previous = side.previous

proc signal(loop: ptr Loop) =
  if not atomicExchangeN(addr loop.signalled, true, ATOMIC_ACQ_REL):
    var one = 1'u64
    discard write(loop.fd, addr one, sizeof(one))

proc reset(loop: ptr Loop) =
  if loadAcquire(loop.signalled):
    var count: uint64
    # If the read fails, another thread has set the flag and is about to write. The flag stays, so that
    # the next reset reads.
    if read(loop.fd, addr count, sizeof(count)) > 0: storeRelease(loop.signalled, false)

proc drain() {.gcsafe.}

proc schedule(loop: ptr Loop) =
  if loop.isScheduled: return
  loop.isScheduled = true
  if loop.turns < MaxTurns:
    inc loop.turns
    callSoon(drain)
  else:
    loop.turns = 0
    signal(loop)

proc deliver(waiter: ptr Waiter): bool {.nimcall, gcsafe, raises: [].} =
  ## Rule 2. The caller keeps the notifier alive.
  let notifier = waiter.notifierOf
  let loop = cast[ptr Loop](notifier.loop)
  acquire(loop.lock)
  if loop.ended:
    release(loop.lock)
    freeSide(cast[ptr Side](waiter)) # rule 5
    return false
  waiter.next = nil
  if loop.last == nil: loop.first = waiter else: loop.last.next = waiter
  loop.last = waiter
  release(loop.lock)
  if notifier.isThisThread:
    {.cast(raises: []), cast(gcsafe).}: schedule(loop)
  else:
    signal(loop)
  true

proc endLoop(p: pointer) {.nimcall, gcsafe, raises: [].} =
  ## The thread ends: its waits are abandoned.
  let loop = cast[ptr Loop](p)
  acquire(loop.lock)
  loop.ended = true
  var arrived = loop.first
  loop.first = nil
  loop.last = nil
  release(loop.lock)
  when defined(gcDestructors): # Under refc, the thread's heap is gone.
    {.cast(raises: []), cast(gcsafe).}:
      var side = loop.sides
      while side != nil:
        GC_unref(cast[Wait](side.wait))
        side = side.next
      reset(deadlines)
      reset(completed)
      when defined(gcOrc): GC_runOrc() # frees the list of possible cycles of this thread
  while arrived != nil:
    let side = cast[ptr Side](arrived)
    arrived = arrived.next
    loop.unlink(side)
    side.list[].wake(1)
    freeSide(side)
  while loop.sides != nil:
    let side = loop.sides
    loop.unlink(side)
    if side.isOut and not disarm(addr side.waiter): continue # `deliver` frees it
    freeSide(side)
  discard close(loop.fd)

proc freeLoop(p: pointer) {.nimcall, gcsafe, raises: [].} =
  let loop = cast[ptr Loop](p)
  deinitLock(loop.lock)
  release(loop)

proc thisLoop(): ptr Loop =
  let notifier = thisNotifier()
  if notifier.loop == nil:
    let fd = eventfd(0, efdCloexec or efdNonblock)
    if fd < 0: raise newException(OSError, "no descriptor for an event loop")
    let loop = cast[ptr Loop](allocZeroed(sizeof(Loop)))
    if loop == nil: raise newException(OutOfMemDefect, "no memory for an event loop")
    initLock(loop.lock)
    loop.fd = fd
    notifier.endLoop = endLoop
    notifier.freeLoop = freeLoop
    notifier.loop = loop
  cast[ptr Loop](notifier.loop)

proc completedFuture*(): Future[void] =
  ## A finished future never changes, so one per thread is enough.
  if completed == nil:
    discard thisLoop() # `endLoop` frees it
    completed = newFuture[void]("completed")
    completed.complete()
  completed

proc register(loop: ptr Loop) =
  if loop.isRegistered: return
  asyncdispatch.register(AsyncFD(loop.fd))
  addRead(AsyncFD(loop.fd), proc (fd: AsyncFD): bool {.gcsafe.} =
    drain()
    false) # it stays registered
  loop.isRegistered = true

proc unregisterIfIdle() {.gcsafe.} =
  let loop = thisLoop()
  loop.isChecking = false
  if loop.waits == 0 and loop.isRegistered:
    unregister(AsyncFD(loop.fd))
    loop.isRegistered = false

proc arm(side: ptr Side) =
  side.isOut = true
  side.list[].arm(addr side.waiter, side.queue.transferred(side.sends))

proc dispose(loop: ptr Loop, side: ptr Side) =
  let wait = cast[Wait](side.wait)
  loop.unlink(side)
  freeSide(side)
  GC_unref(wait)

proc finish(wait: Wait) =
  ## Rule 4.
  let loop = thisLoop()
  wait.isOver = true
  wait.attempt = nil
  wait.abort = nil
  let sides = move wait.sides
  for side in sides:
    if not side.isOut or disarm(addr side.waiter): loop.dispose(side)
    else: side.list[].wake(1) # Now, because this thread may not look at its inbox soon.
  if wait.deadline != Never:
    let index = deadlines.find(wait)
    if index >= 0: deadlines.del(index)
  dec loop.waits
  if loop.waits == 0 and not loop.isChecking:
    # Later, because the task that this wait belongs to may wait again at once.
    loop.isChecking = true
    callSoon(unregisterIfIdle)
  if wait.onOver != nil:
    let onOver = move wait.onOver
    onOver()

proc settle(wait: Wait) =
  ## Tries until the wait is over, or until every side is armed and not ready.
  while true:
    if wait.attempt():
      wait.finish()
      return
    var ready = false
    for side in wait.sides:
      if not side.isOut: side.arm()
      if side.isReady: ready = true
    if not ready: return

proc drain() =
  let loop = thisLoop()
  loop.isScheduled = false
  reset(loop)
  acquire(loop.lock)
  var arrived = loop.first
  loop.first = nil
  loop.last = nil
  release(loop.lock)
  while arrived != nil:
    let side = cast[ptr Side](arrived)
    arrived = arrived.next
    side.isOut = false
    let wait = cast[Wait](side.wait)
    if wait.isOver: loop.dispose(side)
    else: wait.settle()

proc newWait*(attempt: proc (): bool {.closure, gcsafe.},
    abort: proc (error: ref CatchableError) {.closure, gcsafe.}): Wait =
  Wait(attempt: attempt, abort: abort, deadline: Never)

proc addSide*(wait: Wait, queue: ptr Queue, sends: bool) =
  let loop = thisLoop()
  let side = cast[ptr Side](allocZeroed(sizeof(Side)))
  if side == nil: raise newException(OutOfMemDefect, "no memory for a wait")
  let notifier = thisNotifier()
  notifier.retain()
  retain(queue)
  initTask(addr side.waiter, notifier, deliver)
  side.queue = queue
  side.sends = sends
  GC_ref(wait)
  side.wait = cast[pointer](wait)
  side.next = loop.sides
  if loop.sides != nil: loop.sides.previous = side
  loop.sides = side
  wait.sides.add(side)

proc cancel*(wait: Wait, error: ref CatchableError) =
  ## Ends the wait with `error`, unless it is over or its operation succeeds at the last moment.
  if wait.isOver: return
  let abort = wait.abort
  let succeeded = wait.attempt()
  wait.finish()
  if not succeeded: abort(error)

proc stop*(wait: Wait) =
  ## Ends the wait. Nobody learns of it.
  if not wait.isOver: wait.finish()

proc armTimer(at: int64) {.gcsafe.}

proc expire() {.gcsafe.} =
  let time = now()
  var expired: seq[Wait]
  var earliest = Never
  for wait in deadlines:
    if wait.deadline <= time: expired.add(wait)
    else: earliest = min(earliest, wait.deadline)
  nextTimer = 0
  if earliest != Never: armTimer(earliest)
  for wait in expired: wait.cancel(newTimeoutError(wait.timeout))

proc armTimer(at: int64) =
  if nextTimer != 0 and nextTimer <= at: return
  nextTimer = at
  # Rounded up: a timer that is early would find nothing expired.
  let milliseconds = min(max(0, (at - now() + 999_999) div 1_000_000), high(int32).int64)
  sleepAsync(int(milliseconds)).addCallback(proc () {.gcsafe.} =
    if nextTimer != 0 and nextTimer <= now() + 1_000_000: expire())

proc start*(wait: Wait, timeout = -1) =
  ## Starts to wait, after the sides were added and one attempt has failed.
  let loop = thisLoop()
  loop.register()
  inc loop.waits
  if timeout >= 0:
    wait.timeout = timeout
    wait.deadline = deadlineIn(timeout)
    if wait.deadline != Never:
      deadlines.add(wait)
      armTimer(wait.deadline)
  wait.settle()
