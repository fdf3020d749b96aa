## Threads that wait in the core, for an element of a stream or for an answer of the host, while the code
## of the guest runs.
##
## Rules:
## 1. `run` of a wait runs on such a thread without the lock of the guest. It uses the numbers in the wait
##    and no references. Then `done` runs with that lock.
## 2. `idle` is the number of threads that have nothing to do, less the waits in the queue. A wait that
##    finds none starts a thread. A thread that would be one idle thread too many ends, and is joined when
##    the next wait begins.
## 3. `queueLock` is taken last, and for a few instructions.
## 4. In a child of fork() there are no such threads.

import std/[locks, posix]
import ../table
import abi, loop

type
  WaitObj* = object
    run*: proc (wait: var WaitObj) {.nimcall, gcsafe, raises: [].}
    done*: proc (wait: var WaitObj)
    handle*: Handle ## Of a reader, or of a call.
    number*: uint32 ## Of a host import.
    args*: Bytes
    argsSize*: uint64
    code*: uint32
    error*: TwError
    message*: GuestMessage
    next: ptr WaitObj

  Wait* = ref WaitObj

  Worker = object
    thread: Thread[ptr Worker]
    hasEnded: bool

const keptIdle = 4 # Threads. Calls that wait one after the other need one.

var
  queueLock: Lock
  available: Cond
  first, last: ptr WaitObj # The queue.
  idle: int
  isStopping: bool
  workers: seq[ref Worker]
  process: Pid             # The one that all of this belongs to. 0: none.

proc serve(wait: ptr WaitObj) =
  wait.run(wait[])
  enter()
  try: wait.done(wait[])
  except Exception as raised: report("the end of a wait failed", raised)
  GC_unref(cast[Wait](wait))
  leave()

proc work(worker: ptr Worker) {.thread.} =
  {.cast(gcsafe).}:
    acquire(queueLock)
    while true:
      while first.isNil and not isStopping: wait(available, queueLock)
      let current = first
      if current.isNil: break
      first = current.next
      release(queueLock)
      serve(current)
      acquire(queueLock)
      if idle == keptIdle: break
      inc idle
    worker.hasEnded = true
    release(queueLock)

proc startWorker() =
  let worker = new Worker
  createThread(worker.thread, work, cast[ptr Worker](worker))
  workers.add worker

proc joinEnded() =
  var at = 0
  while at < workers.len:
    if workers[at].hasEnded:
      joinThread(workers[at].thread)
      workers.del(at)
    else:
      inc at

proc prepare() =
  let current = getpid()
  if process == current: return
  initLock(queueLock)
  initCond(available)
  first = nil
  idle = 0
  isStopping = false
  workers = @[]
  process = current

proc begin*(wait: Wait) =
  ## Begins to wait. Called with the lock of the guest.
  prepare()
  withLock queueLock:
    joinEnded()
    if idle == 0: startWorker()
    else: dec idle
    GC_ref(wait)
    let added = cast[ptr WaitObj](wait)
    added.next = nil
    if first.isNil: first = added
    else: last.next = added
    last = added
    signal(available)

proc endWaits*() =
  ## The library is not used any more: what the threads wait for has ended. Ends the threads. Called without
  ## the lock of the guest.
  if process != getpid(): return
  withLock queueLock:
    isStopping = true
    broadcast(available)
  for worker in workers: joinThread(worker.thread)
  workers = @[]
  process = Pid(0)
