## How one thread is woken: its futex while it is parked, its event loop while its tasks wait.
##
## Each thread has one notifier, which it creates when it first waits. A publisher may still use it
## when the thread has ended, so it is counted.

import std/posix
import "."/[clock, memory]

type
  Notifier* = object
    refs: Word
    woken: uint32  ## The futex: 1 from a wake-up until it is used.
    loop*: pointer ## The event loop's part, see `event_loop`. These three are set together.
    endLoop*, freeLoop*: proc (loop: pointer) {.nimcall, gcsafe, raises: [].}

var
  sysFutex {.importc: "SYS_futex", header: "<sys/syscall.h>".}: clong
  futexWaitPrivate {.importc: "FUTEX_WAIT_PRIVATE", header: "<linux/futex.h>".}: cint
  futexWakePrivate {.importc: "FUTEX_WAKE_PRIVATE", header: "<linux/futex.h>".}: cint
  mine {.threadvar.}: ptr Notifier

proc syscall(number: clong): clong {.importc, header: "<unistd.h>", varargs.}

proc retain*(notifier: ptr Notifier) =
  discard atomicAddFetch(addr notifier.refs, 1, ATOMIC_RELAXED)

proc drop*(notifier: ptr Notifier) =
  if atomicSubFetch(addr notifier.refs, 1, ATOMIC_ACQ_REL) == 0:
    if notifier.loop != nil: notifier.freeLoop(notifier.loop)
    release(notifier)

# Not `onThreadDestruction`, which leaks its closure and misses threads that Nim did not create.
var atThreadEnd: Pthread_key
doAssert pthread_key_create(addr atThreadEnd, proc (p: pointer) {.noconv.} =
  let notifier = cast[ptr Notifier](p)
  mine = nil
  if notifier.loop != nil: notifier.endLoop(notifier.loop)
  drop(notifier)) == 0

proc thisNotifier*(): ptr Notifier =
  ## The notifier of the calling thread.
  if mine == nil:
    mine = cast[ptr Notifier](allocZeroed(sizeof(Notifier)))
    if mine == nil: raise newException(OutOfMemDefect, "no memory for a thread's notifier")
    mine.refs = 1
    discard pthread_setspecific(atThreadEnd, mine)
  mine

proc isThisThread*(notifier: ptr Notifier): bool = notifier == mine

proc prepare*(notifier: ptr Notifier) =
  ## Forgets earlier wake-ups. Called before the thread announces that it waits.
  storeRelaxed(notifier.woken, 0)

proc unpark*(notifier: ptr Notifier) =
  storeRelease(notifier.woken, 1)
  discard syscall(sysFutex, addr notifier.woken, futexWakePrivate, cint(1), nil, nil, cint(0))

proc park*(notifier: ptr Notifier, deadline: int64): bool =
  ## Sleeps until `unpark` or the deadline. Returns whether it was `unpark`.
  while loadAcquire(notifier.woken) == 0:
    var limit: Timespec
    var wait: ptr Timespec
    if deadline != Never:
      let left = deadline - now()
      if left <= 0: return false
      limit.tv_sec = posix.Time(left div 1_000_000_000)
      limit.tv_nsec = clong(left mod 1_000_000_000)
      wait = addr limit
    discard syscall(sysFutex, addr notifier.woken, futexWaitPrivate, cint(0), wait, nil, cint(0))
  true
