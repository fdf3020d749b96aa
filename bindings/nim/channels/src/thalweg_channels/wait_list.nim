## The waiters of one side of a channel, and how the other side wakes them.
##
## The protocol is the one of `crates/queue/src/wait_list.rs`, with its rules 1 to 6. Rules 7 to 9 are
## optimisations for many threads and are not here.
##
## 1. A publisher makes its data visible (Release), then **loads the word**. If nobody is armed and
##    `Fenced` is clear, there is nothing to do. This is the whole fast path.
## 2. Otherwise, the publisher executes a full fence and loads the word again.
## 3. If a waiter is armed, the publisher removes the first one from the list and wakes it. One
##    published value wakes one waiter.
## 4. A waiter arms: under the lock, it joins the list and adds one to the word. Then it executes a
##    barrier, **checks again** for everything that it waits for, and only then sleeps. The barrier is
##    a full fence if the word had `Fenced` before the addition, otherwise the heavy barrier.
## 5. A waiter that arms may set `Fenced`; it then executes the heavy barrier under the lock. A
##    publisher may clear it. Count and mode are one word, so a thread that sees `Fenced` cleared also
##    sees every waiter that armed with a fence before.
## 6. A waiter that was removed from the list, but leaves without taking the value, wakes the next
##    one. So does a waiter that takes its value and sees more.
## 7. A waiter's node belongs to the waiting thread. Others touch it only under the lock of the list
##    while it is armed, and a task's node also between its removal and its arrival at its event loop.

import std/locks
import "."/[barrier, memory, notifier, spin]

const
  Closed* = Word(1)
  Fenced = Word(2)
  Armed = Word(4)
  Busy = 512 # from this many messages between two sleeps on, the heavy barrier is cheaper

type
  Waiter* = object
    ## One entry of a list (rule 7).
    previous, next*: ptr Waiter
    list*: ptr WaitList
    notifier: ptr Notifier
    deliver: proc (waiter: ptr Waiter): bool {.nimcall, gcsafe, raises: [].}
      ## For a task: hands the node to its event loop. False if the loop has ended, and the node is
      ## gone. Nil for a thread.
    isArmed: bool ## Under the lock of the list.

  WaitList* = object
    word*: Word
    idlePublishes: Word ## Publishes that found `Fenced` but no waiter, since a waiter last armed.
    lock: Lock
    first, last: ptr Waiter
    transferred: Word   ## How many values had passed through the channel at the last arming.
    spin*: Spin

proc init*(list: var WaitList) =
  list.word = if isAsymmetric(): Word(0) else: Fenced
  initLock(list.lock)
  list.spin.init()

proc deinit*(list: var WaitList) = deinitLock(list.lock)

# Templates: see `lane`.
template isClosed*(list: WaitList): bool = (loadAcquire(list.word) and Closed) != 0

proc hasAny*(list: var WaitList): bool {.inline.} = loadRelaxed(list.word) >= Armed

proc unlink(list: var WaitList, waiter: ptr Waiter) =
  if waiter.previous == nil: list.first = waiter.next else: waiter.previous.next = waiter.next
  if waiter.next == nil: list.last = waiter.previous else: waiter.next.previous = waiter.previous
  waiter.previous = nil
  waiter.next = nil
  waiter.isArmed = false
  discard atomicSubFetch(addr list.word, Armed, ATOMIC_RELAXED)

proc wakeOne(list: var WaitList): bool {.gcsafe, raises: [].} =
  ## Rule 3. False if nobody is armed.
  while true:
    acquire(list.lock)
    let waiter = list.first
    if waiter == nil:
      release(list.lock)
      return false
    list.unlink(waiter)
    # A thread's node may be gone as soon as the lock is released.
    let notifier = waiter.notifier
    let deliver = waiter.deliver
    notifier.retain()
    release(list.lock)
    let woken = deliver == nil or deliver(waiter)
    if deliver == nil: notifier.unpark()
    notifier.drop()
    if woken: return true

proc wake*(list: var WaitList, count: int) {.gcsafe, raises: [].} =
  for _ in 0 ..< count:
    if not list.wakeOne(): break

proc signalSlow*(list: var WaitList, published: int) {.noinline.} =
  fullFence()
  let word = loadRelaxed(list.word)
  if word >= Armed:
    list.wake(published)
  elif (word and Fenced) != 0:
    let idle = loadRelaxed(list.idlePublishes) + 1
    storeRelaxed(list.idlePublishes, idle)
    if idle >= Busy and isAsymmetric():
      storeRelaxed(list.idlePublishes, 0)
      discard atomicAndFetch(addr list.word, not Fenced, ATOMIC_RELAXED)

template signal*(list: WaitList, published = 1) =
  ## Rule 1: called after `published` values became visible.
  compilerFence()
  if (loadRelaxed(list.word) and not Closed) != 0: signalSlow(list, published)

proc close*(list: var WaitList): bool =
  ## Wakes every waiter. Returns whether this was the first close.
  let before = atomicFetchOr(addr list.word, Closed, ATOMIC_ACQ_REL)
  fullFence()
  while list.wakeOne(): discard
  (before and Closed) == 0

proc initThread*(waiter: var Waiter, notifier: ptr Notifier) =
  ## The node of a thread that will park.
  waiter.notifier = notifier

proc initTask*(waiter: ptr Waiter, notifier: ptr Notifier,
    deliver: proc (waiter: ptr Waiter): bool {.nimcall, gcsafe, raises: [].}) =
  waiter.notifier = notifier
  waiter.deliver = deliver

proc notifierOf*(waiter: ptr Waiter): ptr Notifier = waiter.notifier

proc arm*(list: var WaitList, waiter: ptr Waiter, transferred: Word) =
  ## Rule 4, up to "checks again". `transferred` is the number of values that have passed through the
  ## channel.
  acquire(list.lock)
  waiter.list = addr list
  waiter.previous = list.last
  waiter.next = nil
  waiter.isArmed = true
  if list.last == nil: list.first = waiter else: list.last.next = waiter
  list.last = waiter
  let busy = transferred - list.transferred >= Busy
  list.transferred = transferred
  storeRelaxed(list.idlePublishes, 0)
  let fenced = (atomicFetchAdd(addr list.word, Armed, ATOMIC_RELAXED) and Fenced) != 0
  # `Fenced` stays set if the system no longer executes the heavy barrier.
  let setsFenced = not fenced and (not busy or not isAsymmetric())
  if setsFenced: discard atomicFetchOr(addr list.word, Fenced, ATOMIC_RELAXED)
  if fenced: fullFence()
  elif setsFenced: heavy() # under the lock, because the next waiter that arms relies on it
  release(list.lock)
  if not fenced and not setsFenced: heavy()

proc disarm*(waiter: ptr Waiter): bool =
  ## Cancels an arming. False if it was woken already.
  let list = waiter.list
  acquire(list.lock)
  result = waiter.isArmed
  if result: list[].unlink(waiter)
  release(list.lock)
