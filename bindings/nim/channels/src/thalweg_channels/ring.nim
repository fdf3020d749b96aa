## A bounded queue whose slots record whether they are full: Dmitry Vyukov's bounded MPMC queue
## (1024cores.net) for any capacity, as in `crates/queue/src/ring.rs`.
##
## A position consists of a lap and an index. The position after the last index is the first index of
## the next lap. Each slot has a stamp:
##
## 1. stamp `== p`: the slot is empty, and the push of position `p` may claim it.
## 2. stamp `== p + 1`: the slot has the value of position `p`, and the pop of `p` may claim it.
## 3. A push or pop claims a position by a CAS of the tail or head from `p` to the next position. A
##    side with one thread stores instead. Until the claimer has stored the next stamp (`p + 1` after a
##    push, `p` one lap later after a pop), nobody else accesses the value.
## 4. The stamp hands over the value (Release and Acquire), never the head or tail.
## 5. Closing sets the highest bit of the tail, so that every later claim fails. A single producer uses
##    the CAS as well, because a close may come from any thread.

import "."/[memory, queue]

{.push checks: off, stackTrace: off.}

const Closed = Word(1) shl 63

type
  Slot[T] = object
    stamp: Word
    value: T
  Slots[T] = ptr UncheckedArray[Slot[T]]

template slot[T](queue: ptr Queue, position: Word): ptr Slot[T] =
  addr cast[Slots[T]](queue.slots)[position and (queue.lap - 1)]

proc after(queue: ptr Queue, position: Word): Word {.inline.} =
  if (position and (queue.lap - 1)) + 1 < Word(queue.capacity): position + 1
  else: (position and not (queue.lap - 1)) + queue.lap

proc count(queue: ptr Queue, position: Word): Word =
  position div queue.lap * Word(queue.capacity) + position mod queue.lap

proc ringPushed*(queue: ptr Queue): Word = queue.count(loadRelaxed(queue.tail) and not Closed)
proc ringPopped*(queue: ptr Queue): Word = queue.count(loadRelaxed(queue.head))

proc initRing*[T](queue: ptr Queue): bool =
  ## False if there is not enough memory.
  queue.slotsMemory = allocZeroed(queue.capacity * sizeof(Slot[T]))
  if queue.slotsMemory == nil: return false
  queue.slots = queue.slotsMemory
  # It must exceed the capacity. Otherwise, with one slot, "full" and "empty for the next lap" would be
  # the same stamp.
  queue.lap = 2
  while queue.lap <= Word(queue.capacity): queue.lap *= 2
  for index in 0 ..< queue.capacity: cast[Slots[T]](queue.slots)[index].stamp = Word(index)
  true

proc ringPush*[T](queue: ptr Queue, value: var T): bool =
  ## Moves the value into the queue. False if the queue is full or closed, and the value stays.
  var position = loadRelaxed(queue.tail)
  while true:
    if (position and Closed) != 0: return false
    let slot = slot[T](queue, position)
    let ahead = cast[int](loadAcquire(slot.stamp) - position)
    if ahead == 0:
      if compareExchange(queue.tail, position, queue.after(position)):
        copyMem(addr slot.value, addr value, sizeof(T))
        storeRelease(slot.stamp, position + 1)
        return true
    elif ahead < 0:
      return false
    else:
      position = loadRelaxed(queue.tail)

proc ringPop*[T](queue: ptr Queue, value: ptr T): bool =
  ## Moves the oldest value to memory without a value. False if the queue is empty.
  var position = loadRelaxed(queue.head)
  while true:
    let slot = slot[T](queue, position)
    let ahead = cast[int](loadAcquire(slot.stamp) - (position + 1))
    if ahead == 0:
      var claimed = true
      if queue.mode == MPSC: storeRelaxed(queue.head, queue.after(position))
      else: claimed = compareExchange(queue.head, position, queue.after(position))
      if claimed:
        copyMem(value, addr slot.value, sizeof(T))
        storeRelease(slot.stamp, position + queue.lap)
        return true
    elif ahead < 0:
      return false
    else:
      position = loadRelaxed(queue.head)

proc ringHasValue*[T](queue: ptr Queue): bool =
  ## It may miss a push in progress, but not a push that returned before this call.
  let head = loadRelaxed(queue.head)
  loadAcquire(slot[T](queue, head).stamp) == head + 1 or loadRelaxed(queue.head) != head

proc ringHasCapacity*[T](queue: ptr Queue): bool =
  let tail = loadRelaxed(queue.tail)
  loadAcquire(slot[T](queue, tail and not Closed).stamp) == tail or loadRelaxed(queue.tail) != tail

proc closeRing*(queue: ptr Queue) =
  discard atomicFetchOr(addr queue.tail, Closed, ATOMIC_ACQ_REL)

proc ringIsDrained*(queue: ptr Queue): bool =
  ## Whether every accepted push has been popped, including pushes in progress.
  let tail = loadAcquire(queue.tail) and not Closed
  loadAcquire(queue.head) == tail

proc ringLen*(queue: ptr Queue): int =
  let popped = queue.ringPopped
  let pushed = queue.ringPushed
  if pushed > popped: int(min(pushed - popped, Word(queue.capacity))) else: 0

{.pop.}
