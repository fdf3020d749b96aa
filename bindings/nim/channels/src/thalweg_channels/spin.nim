## How long a blocking call spins before it parks: an adaptive budget, with the constants of
## `crates/queue/src/spin.rs`, where each is explained.
##
## The state belongs to one side of a channel. Its waiters share it: two that wait at the same time may
## overwrite each other's result, which only costs learning it again.

import std/[cpuinfo, posix]
import "."/[clock, memory]

const
  MaxSpinNs = 50_000 # the upper end of the measured cost of a wake-up across processors
  MinSpinNs = 1_000
  PermitTries = 64
  MaxBackoff = 1 shl 16
  MaxYields = 16
  MaxYieldingNs = 1_000_000
  LingerNs = 30
  MaxLinger = 5

type
  Backoff = object
    ## An action is done each time while it helps, and half as often after each failure.
    left, after: uint32
  Spin* = object
    budget: uint32
    linger: uint32
    yielding, resuming: Backoff
    transferred: Word

var
  spinners: Word
  processorCount: Word

proc schedGetaffinity(pid: cint, size: csize_t, mask: pointer): cint {.
  importc: "sched_getaffinity", header: "<sched.h>".}

proc processors(): Word =
  ## How many processors this process may use, as at the first call.
  result = loadRelaxed(processorCount)
  if result == 0:
    var mask: array[128, uint8] # 1,024 processors, the size of glibc's cpu_set_t
    if schedGetaffinity(0, csize_t(sizeof(mask)), addr mask) == 0:
      for byte in mask:
        for bit in 0 .. 7: result += Word((byte shr bit) and 1)
    if result == 0: result = Word(max(1, countProcessors()))
    storeRelaxed(processorCount, result)

proc init*(spin: var Spin) =
  spin.budget = MaxSpinNs
  spin.yielding.after = 1
  spin.resuming.after = 1

proc isDue(backoff: var Backoff): bool =
  let left = loadRelaxed(backoff.left)
  result = left == 0
  if not result: storeRelaxed(backoff.left, left - 1)

proc record(backoff: var Backoff, helpful: bool) =
  if helpful:
    storeRelaxed(backoff.after, 1'u32)
  else:
    let after = loadRelaxed(backoff.after)
    storeRelaxed(backoff.left, after)
    storeRelaxed(backoff.after, min(after * 2, MaxBackoff))

proc adjustLinger(spin: var Spin, count, capacity: Word) =
  let linger = loadRelaxed(spin.linger)
  if count >= Word(2) shl linger and count <= capacity div 4:
    storeRelaxed(spin.linger, min(linger + 1, MaxLinger))
  elif linger > 0 and (count < Word(1) shl linger or count > capacity div 2):
    storeRelaxed(spin.linger, linger - 1)

proc wait(spin: var Spin) =
  let linger = loadRelaxed(spin.linger)
  if linger > 0:
    let until = now() + (LingerNs shl linger)
    while now() < until: cpuRelax()

template withPermit(found, body: untyped): bool =
  ## Runs `body` while fewer threads than processors spin.
  block:
    var tries = 0
    var answer = false
    while true:
      if atomicAddFetch(addr spinners, 1, ATOMIC_RELAXED) < processors():
        answer = body
        discard atomicSubFetch(addr spinners, 1, ATOMIC_RELAXED)
        break
      discard atomicSubFetch(addr spinners, 1, ATOMIC_RELAXED)
      inc tries
      if tries == PermitTries or found:
        answer = found
        break
      cpuRelax()
    answer

template spinFor(spin: var Spin, found: untyped): bool =
  let start = now()
  let budget = int64(loadRelaxed(spin.budget))
  var answer = false
  block spinning:
    while true:
      for _ in 0 ..< 16:
        if found:
          let took = now() - start
          storeRelaxed(spin.budget, uint32(min(max(budget, took * 4), MaxSpinNs)))
          wait(spin)
          answer = true
          break spinning
        cpuRelax()
      if now() - start >= budget:
        storeRelaxed(spin.budget, uint32(budget div 2))
        break spinning
  answer

template yieldSome(spin: var Spin, found: untyped): bool =
  ## For more runnable threads than processors.
  var hit = false
  if isDue(spin.yielding):
    let start = now()
    var isShort = true
    for _ in 0 ..< MaxYields:
      discard sched_yield()
      hit = found
      isShort = now() - start < MaxYieldingNs
      if hit or not isShort: break
    record(spin.yielding, hit and isShort)
  hit

template until*(spin: var Spin, count, capacity: Word, found: untyped): bool =
  ## Waits actively until `found` or until the budget is used up. `count` is the number of values that
  ## have passed through the channel.
  block:
    let before = loadRelaxed(spin.transferred)
    storeRelaxed(spin.transferred, count)
    adjustLinger(spin, count - before, capacity)
    found or
      (processors() > 1 and loadRelaxed(spin.budget) >= MinSpinNs and
        withPermit(found, spinFor(spin, found))) or
      yieldSome(spin, found)

template sleep*(spin: var Spin, park: untyped): bool =
  ## Runs `park` and learns from its duration: a short park was worth spinning for. A thread that was
  ## woken lets its waker continue, so that more than one value is there when it looks.
  block:
    let since = now()
    let woken = park
    let slept = now() - since
    let budget = loadRelaxed(spin.budget)
    if slept < MaxSpinNs and budget < MaxSpinNs:
      storeRelaxed(spin.budget, min(max(budget * 2, MinSpinNs * 4), MaxSpinNs))
    if woken and isDue(spin.resuming):
      let start = now()
      discard sched_yield()
      record(spin.resuming, now() - start < MaxYieldingNs)
    woken
