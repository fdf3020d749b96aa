## The lock under which a guest's code runs, and its event loop.
##
## Rules:
## 1. Code of the guest runs while its thread has `lock`: functions, on threads of the core, and what
##    they have left to the event loop, on a thread of its own. It therefore uses variables and `ref`
##    objects like a program with one thread.
## 2. All threads use one dispatcher, so that a function may start what the loop continues. The loop
##    waits for descriptors without the lock, and a function that has added something wakes it if it
##    would sleep for longer.
## 3. ORC has a list of possible cycles for each thread, and an object in it must not be freed by another
##    thread. So the list that is in use belongs to the lock: a thread that takes the lock also takes the list. Cycles are
##    collected when the lock is released, and no function is in the middle of something.
## 4. The library is never unloaded: a thread of the core keeps a reference to the dispatcher, and Nim
##    cannot free the variables of modules. `stop` ends the thread and all that the loop has to do.
## 5. In a child of fork() there is no thread of the loop, and another thread may have had the lock.

from system {.all.} import roots
import std/[asyncdispatch, atomics, deques, heapqueue, importutils, locks, monotimes, posix, selectors,
  times]

privateAccess(typeof(roots))

{.passL: "-Wl,-z,nodelete".} # Rule 4.

proc eventfd(initial: cuint, flags: cint): cint {.importc, header: "<sys/eventfd.h>".}
var eventfdFlags {.importc: "EFD_CLOEXEC | EFD_NONBLOCK", header: "<sys/eventfd.h>".}: cint

type ThreadState = object
  depth: int       # How often the thread has entered.
  isAttached: bool # It uses `dispatcher`.

const
  pauseForOthers = 50 # Microseconds. A thread that waits for the lock has it after this time.
  collectAt = 1_000   # Possible cycles. The work of a collection is that of about as many calls.

var
  lock: Lock
  possibleCycles: typeof(roots) # Those of rule 3 while nobody has the lock.
  waiting: Atomic[int]          # Threads that wait for the lock.
  dispatcher: PDispatcher
  selector: typeof(PDispatcher().getIoHandler)
  thread: Thread[void]
  wakeEvent: cint = -1
  process: Pid                  # The one that all of this belongs to. 0: none.
  isRunning, isStopping: bool
  collectFrom = collectAt       # Possible cycles.
  sleepsUntil: MonoTime         # The loop waits without the lock until then.
  own {.threadvar.}: ThreadState

proc attach() {.noinline.} =
  own.isAttached = true
  setGlobalDispatcher(dispatcher)

proc takeLock() {.noinline.} =
  discard waiting.fetchAdd(1)
  acquire(lock)
  discard waiting.fetchSub(1)

proc enter*() {.inline.} =
  ## Takes the lock. The same thread may take it again: a function may call what calls the guest.
  if own.depth == 0:
    if not tryAcquire(lock): takeLock()
    swap(roots, possibleCycles)
    if not own.isAttached: attach()
  inc own.depth

proc collect() {.noinline.} =
  GC_runOrc()
  collectFrom = collectAt

proc collectSoon*() =
  ## Collects cycles when this thread releases the lock.
  collectFrom = 1

proc drop() {.inline.} =
  if GC_prepareOrc() >= collectFrom: collect() # Rule 3.
  own.depth = 0
  swap(roots, possibleCycles)
  release(lock)

proc hasWork(): bool {.inline.} =
  ## The same as `hasPendingOperations`, which makes the dispatcher a possible cycle.
  dispatcher.callbacks.len > 0 or dispatcher.timers.len > 0 or not selector.isEmpty

proc report*(what: string, raised: ref Exception) =
  ## An exception that ends no call.
  stderr.writeLine("thalweg: " & what & ": " & $raised.name & ": " & raised.msg & "\n" &
    raised.getStackTrace)

proc wait(until: MonoTime) =
  ## Waits for a descriptor, for `wake`, or for the next timer.
  let rest = until - getMonoTime()
  let milliseconds = if until == high(MonoTime): -1'i64
    elif rest <= DurationZero: 0'i64
    else: min(rest.inMilliseconds + 1, int64(high(cint)))
  var events = [TPollfd(fd: cint(selector.getFd), events: POLLIN),
    TPollfd(fd: wakeEvent, events: POLLIN)]
  discard posix.poll(addr events[0], 2, cint(milliseconds))
  var count: uint64
  discard read(wakeEvent, addr count, sizeof(count))

proc run() {.thread.} =
  {.cast(gcsafe).}:
    enter()
    while not isStopping:
      try:
        if hasWork(): poll(0)
      except Exception as raised: # It left a future that nobody waits for.
        report("a task of the guest failed", raised)
      let until = if dispatcher.callbacks.len > 0: MonoTime()
        elif dispatcher.timers.len > 0: dispatcher.timers[0].finishAt
        else: high(MonoTime)
      sleepsUntil = until
      drop()
      wait(until)
      if waiting.load > 0: discard usleep(pauseForOthers)
      enter()
      sleepsUntil = MonoTime()
    drop()

proc wake() =
  var one = 1'u64
  discard write(wakeEvent, addr one, sizeof(one))

proc passOn() {.noinline.} =
  ## The loop continues what this thread has begun. Rule 2.
  if not isRunning:
    isRunning = true
    isStopping = false
    sleepsUntil = MonoTime()
    createThread(thread, run)
  elif dispatcher.callbacks.len > 0 or
      dispatcher.timers.len > 0 and dispatcher.timers[0].finishAt < sleepsUntil:
    wake()

proc leave*() {.inline.} =
  ## Releases the lock.
  if own.depth == 1:
    if hasWork(): passOn()
    drop()
  else:
    dec own.depth

proc start*() =
  ## The library was opened.
  let current = getpid()
  if process == current: return
  if process != 0: # Rule 5.
    dispatcher.callbacks.clear()
    dispatcher.timers.clear()
    GC_ref(dispatcher) # It may be in the list of a thread that had the lock.
    discard close(wakeEvent)
  GC_disableOrc() # Rule 3.
  own = ThreadState()
  waiting.store(0)
  isRunning = false
  initLock(lock)
  dispatcher = newDispatcher()
  selector = dispatcher.getIoHandler
  wakeEvent = eventfd(0, eventfdFlags)
  process = current

proc stop*() =
  ## The library is not used any more. Ends the thread, and what it had to do.
  enter()
  isStopping = true
  if isRunning: wake()
  drop()
  if isRunning: joinThread(thread)
  enter()
  isRunning = false
  dispatcher.callbacks.clear()
  dispatcher.timers.clear()
  GC_runOrc()
  drop()
