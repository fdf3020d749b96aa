## The two barriers of the wake-up protocol: a light one for publishers, which run often, and a heavy
## one for a waiter that is about to sleep.
##
## A publisher publishes and then checks whether a waiter sleeps. A waiter announces that it sleeps
## and then checks for data. Both stores must be visible before the loads that follow them. Linux can
## move the cost to the waiter: `membarrier(PRIVATE_EXPEDITED)` makes every running thread of the
## process execute a full barrier, and the publisher needs only a compiler fence. The rules and the
## proof are in `crates/queue/src/barrier.rs`; this is the same protocol.
##
## 1. The process has one state, which only moves on: `Unknown`, `Asymmetric`, `Changing`, `Fences`.
##    It starts as `Asymmetric` or `Fences`.
## 2. If the system refuses a heavy barrier that worked before (a sandbox that was applied later),
##    the waiter sets `Changing`, waits for `DrainNs`, in which the processors drain their store
##    buffers, and sets `Fences`.
## 3. A publisher does not read the state. The word of its wait list tells it to use a full fence, and
##    waiters set that bit permanently once the state is not `Asymmetric`.

import std/posix
import "."/[clock, memory]

const
  Unknown = Word(0)
  Asymmetric = Word(1)
  Changing = Word(2)
  Fences = Word(3)

  PrivateExpedited = 1 shl 3 # linux/membarrier.h
  RegisterPrivateExpedited = 1 shl 4

  # Rule 2. A store buffer has fewer than a hundred entries, and each takes at most a microsecond on a
  # contended cache line. This is a hundred times that, and one tick of Linux's slowest timer.
  DrainNs = 10_000_000

var
  state: Word
  sysMembarrier {.importc: "SYS_membarrier", header: "<sys/syscall.h>".}: clong

proc syscall(number: clong): clong {.importc, header: "<unistd.h>", varargs.}

proc membarrier(command: int): bool = syscall(sysMembarrier, cint(command), cint(0), cint(0)) == 0

proc register(): Word =
  result = if membarrier(RegisterPrivateExpedited): Asymmetric else: Fences
  var known = Unknown
  if not compareExchange(state, known, result): result = known

proc isAsymmetric*(): bool =
  ## Whether the system executes the heavy barrier for other threads. Once false, it stays false.
  let known = loadRelaxed(state)
  known == Asymmetric or (known == Unknown and register() == Asymmetric)

proc advance(to: Word) =
  var known = loadRelaxed(state)
  while known < to and not compareExchange(state, known, to): discard

proc heavyByWaiting() =
  advance(Changing)
  fullFence()
  let until = now() + DrainNs
  while now() < until: discard sched_yield()
  advance(Fences)

proc heavy*() =
  ## A full barrier on this thread and on every other thread of the process.
  if not membarrier(PrivateExpedited): heavyByWaiting()
  fullFence()
