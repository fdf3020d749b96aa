## The common state of a client, its resources and its streams: the port, and the operations that
## wait for it. Programs do not use this module directly.
##
## Rules:
## 1. A session belongs to the thread that opened it. Another thread gets `Outcome.argument`.
## 2. An operation has a slot from its submission until its completion was reaped, or it was removed.
##    Its token is the number and the generation of the slot, so that a late completion finds nobody.
## 3. While operations wait, the session has a reference to itself.
## 4. The event loop refers to the session through a `Link`, which does not keep it alive. The
##    finalizer must not use the event loop, so it leaves a registered port in a list, which
##    `closeAbandoned` closes before the next session is opened.
## 5. The ports and instances that a thread has opened are in lists outside its heap. At the end of the
##    thread its event loop and finalizers no longer run, so a destructor of pthread closes the rest.
##    Only the thread itself uses its lists. A finalizer on another thread closes the handles, and leaves the entry, whose
##    handles are stale from then on.
## 6. A token that cancels waits writes `wakeEvent`, which is created for the first such wait. The thread
##    of the session then ends the waits whose tokens are cancelled.

import std/[asyncdispatch, posix]
import cancel, errors, library, table

type
  Operation* = ref object of RootObj
    ## A future that waits for a completion.
    finish*: proc (operation: Operation, completion: ptr Completion, why: ref ThalwegError)
      {.nimcall, gcsafe.}
      ## Takes the result. Without a completion, the wait has failed because of `why`.
    notice*: proc (nanoseconds: uint64)
    deadline: uint64     # Of a wait that the library does not end. 0: none.
    cancel*: CancelToken ## Of such a wait. Nil: none.
    cancelNode: CancelNode

  Slot = object
    waiting: Operation
    generation: uint32

  Link = ref object
    session: pointer # A `Session`; NULL: it was finalized.

  Session* = ref object
    ## A port, and an instance of the service.
    table*: ptr Table
    package*: ptr Package
    instance*, port*: Handle
    isAttached: bool
    thread: culong
    isServing: bool    # A function of the host is running.
    isArmed, isScheduled, isWakeWatched: bool
    serve*: proc (completion: ptr Completion)
      ## Answers a host call. Nil: there is no host.
    isAsyncHost*: bool # The host's functions return futures, which end in the event loop.
    slots: seq[Slot]
    free: seq[uint32]
    waiting: int
    wakeAt: uint64     # When the first timer for deadlines fires.
    fd: cint           # -1: the event loop does not watch the port.
    wakeEvent: cint    # -1: no wait had a token.
    link: Link

  Entry = object
    next: ptr Entry
    table: ptr Table
    port, instance: Handle # Instance 0: another client's.
    fd, wakeEvent: cint

  OfThread = object
    ## The open sessions of a thread, and those that are gone but that the event loop still watches.
    opened, abandoned: ptr Entry

const
  reapedAtOnce = 16
  budget = 256 # Completions between two turns of the event loop's other work.
  servingToken* = high(uint64)

var ofThread {.threadvar.}: ptr OfThread

proc threadId(): culong {.importc: "pthread_self", header: "<pthread.h>", gcsafe, raises: [].}

# The lists of a thread

type ThreadKey {.importc: "pthread_key_t", header: "<pthread.h>".} = cuint

proc createKey(key: ptr ThreadKey, destructor: proc (lists: pointer) {.cdecl, raises: [].}): cint
  {.importc: "pthread_key_create", header: "<pthread.h>".}
proc setKey(key: ThreadKey, lists: pointer): cint {.importc: "pthread_setspecific",
    header: "<pthread.h>", raises: [].}

{.push stackTrace: off.} # A thread that ends has no stack traces any more.
proc closeAll(lists: pointer) {.cdecl, raises: [].} =
  ## Rule 5.
  let lists = cast[ptr OfThread](lists)
  for first in [lists.opened, lists.abandoned]:
    var entry = first
    while entry != nil:
      let next = entry.next
      discard entry.table.portClose(entry.port, nil)
      if entry.instance != 0: discard entry.table.clientClose(entry.instance, nil)
      if entry.wakeEvent >= 0: discard posix.close(entry.wakeEvent)
      deallocShared(entry)
      entry = next
  deallocShared(lists)
{.pop.}

var threadKey: ThreadKey
let hasThreadKey = createKey(addr threadKey, closeAll) == 0

proc remember(session: Session) =
  if ofThread.isNil:
    ofThread = cast[ptr OfThread](allocShared0(sizeof(OfThread)))
    if hasThreadKey: discard setKey(threadKey, ofThread)
  let entry = cast[ptr Entry](allocShared(sizeof(Entry)))
  entry[] = Entry(next: ofThread.opened, table: session.table, port: session.port,
    instance: if session.isAttached: 0'u64 else: session.instance, wakeEvent: -1)
  ofThread.opened = entry

proc place(session: Session): ptr ptr Entry {.raises: [].} =
  ## The pointer to the entry. It is nil if another thread opened the session.
  result = addr ofThread.opened
  while result[] != nil and (result.port != session.port or result.table != session.table):
    result = addr result.next

proc forget(session: Session): ptr Entry {.raises: [].} =
  ## Takes the entry out of the list. Nil: another thread opened the session.
  if ofThread.isNil: return
  let place = session.place
  result = place[]
  if result != nil: place[] = result.next

proc discardEntry(entry: ptr Entry) {.raises: [].} =
  ## Without an entry, the thread of the session has it, or has closed the descriptor at its end.
  if entry.isNil: return
  if entry.wakeEvent >= 0: discard posix.close(entry.wakeEvent)
  deallocShared(entry)

proc abandon(session: Session) {.raises: [].} =
  if session.port == 0: return
  var entry = session.forget()
  if entry.isNil or session.fd < 0:
    discard session.table.portClose(session.port, nil)
    entry.discardEntry()
  else:
    entry.fd = session.fd
    entry.next = ofThread.abandoned
    ofThread.abandoned = entry
  if session.link != nil: session.link.session = nil
  if not session.isAttached: discard session.table.clientClose(session.instance, nil)

proc finalize(session: Session) {.raises: [].} =
  session.abandon()

proc unwatch(fd: cint) =
  try: unregister(AsyncFD(fd))
  except ValueError, OSError: discard # The event loop does not know it.

proc closeAbandoned() =
  while ofThread != nil and ofThread.abandoned != nil:
    let it = ofThread.abandoned
    ofThread.abandoned = it.next
    unwatch(it.fd)
    discard it.table.portClose(it.port, nil)
    if it.wakeEvent >= 0: unwatch(it.wakeEvent)
    it.discardEntry()

proc newSession*(table: ptr Table, package: ptr Package, instance: Handle,
    capacity: Natural): Session =
  ## Opens a client, or with an `instance` a further port for it.
  closeAbandoned()
  var error: TwError
  var opened = instance
  if instance == 0:
    check(table.clientOpen(addr opened, addr error), error)
  var port: Handle
  var code = table.portOpen(uint32(min(capacity, int(high(uint32)))), addr port, addr error)
  if code == 0 and instance == 0 and table.layout != package.layout:
    code = table.clientSetLayouts(opened, addr package.methods[0], package.methodCount,
      cast[ptr TwMethod](package.imports), package.importCount, addr error)
  if code != 0:
    if port != 0: discard table.portClose(port, nil)
    if instance == 0: discard table.clientClose(opened, nil)
    raise newError(code, error)
  new(result, finalize)
  result.table = table
  result.package = package
  result.instance = opened
  result.port = port
  result.isAttached = instance != 0
  result.thread = threadId()
  result.fd = -1
  result.wakeEvent = -1
  result.wakeAt = forever
  result.remember()

proc refused(session: Session, error: var TwError): uint32 {.noinline.} =
  if session.thread != threadId():
    error.fail(Outcome.argument, "another thread opened this client; attach a client for each thread")
  elif session.isServing:
    error.fail(Outcome.wouldPark,
      "a host must not call the client whose service waits for its answer")
  else:
    error.fail(Outcome.closed, "the client is closed")

proc enter*(session: Session, error: var TwError): uint32 {.inline.} =
  ## Begins an operation. The code is `ok` if this thread may use the session, and it is open.
  if session.thread == threadId() and not session.isServing and session.port != 0: 0'u32
  else: session.refused(error)

proc requireThread*(session: Session) =
  ## Raises `Outcome.argument` on another thread.
  var error: TwError
  if session.thread != threadId(): check(session.refused(error), error)

proc dispatchSoon(session: Session) {.gcsafe.}

proc enterBlocking*(session: Session, error: var TwError): uint32 {.inline.} =
  ## The same for an operation that blocks the thread.
  result = session.enter(error)
  if result == 0 and session.isArmed: # The operation uses up what the event loop waits for.
    session.isArmed = false
    session.dispatchSoon()
  if result == 0 and session.waiting > 0:
    result = error.fail(Outcome.argument,
      "an operation that blocks, but futures wait for this client")
  elif result == 0 and session.isAsyncHost:
    result = error.fail(Outcome.argument,
      "an operation that blocks, but the functions of this client's host return futures")

# Tokens of waits

proc eventfd(count, flags: cint): cint {.importc, header: "<sys/eventfd.h>".}
var eventFlags {.importc: "(EFD_CLOEXEC | EFD_NONBLOCK)", header: "<sys/eventfd.h>".}: cint

proc openWakeEvent*(session: Session): cint =
  ## Rule 6.
  if session.wakeEvent < 0:
    let entry = if ofThread.isNil: nil else: session.place[]
    if entry.isNil: raise newError(Outcome.argument, "the thread that opened this client has ended")
    session.wakeEvent = eventfd(0, eventFlags)
    if session.wakeEvent < 0: raise newError(Outcome.overloaded, "there are no more descriptors", true)
    entry.wakeEvent = session.wakeEvent
  session.wakeEvent

proc resetWakeEvent(session: Session) =
  var count: uint64
  discard read(session.wakeEvent, addr count, sizeof(count))

proc cancelled*(): ref ThalwegError = newError(Outcome.cancelled, "the token was cancelled")

# Operations

proc watchWakeEvent(session: Session) {.gcsafe.}

proc add*(session: Session, operation: Operation): uint64 =
  ## Gives the operation a slot. Returns its token.
  if session.free.len == 0:
    session.free.add uint32(session.slots.len)
    session.slots.add Slot(generation: 1)
  let number = session.free.pop()
  session.slots[number].waiting = operation
  if session.waiting == 0: GC_ref(session) # Rule 3.
  inc session.waiting
  if operation.cancel != nil:
    session.watchWakeEvent()
    operation.cancel.add(addr operation.cancelNode, session.wakeEvent)
  uint64(session.slots[number].generation) shl 32 or number

proc find(session: Session, token: uint64): Operation =
  let number = token and 0xffffffff'u64
  if number < uint64(session.slots.len) and session.slots[number].generation == token shr 32:
    result = session.slots[number].waiting

proc remove*(session: Session, token: uint64): Operation {.discardable.} =
  ## Ends the wait of an operation. Nil: it had ended before.
  result = session.find(token)
  if result.isNil: return
  let number = uint32(token and 0xffffffff'u64)
  session.slots[number].waiting = nil
  inc session.slots[number].generation
  session.free.add number
  dec session.waiting
  if result.cancel != nil: result.cancel.remove(addr result.cancelNode)
  if session.waiting == 0: GC_unref(session)

proc serveHost*(session: Session, completion: ptr Completion) =
  ## Answers a host call, and releases it.
  let before = session.isServing
  session.isServing = true
  {.cast(gcsafe).}: # It runs on the thread that set the host.
    session.serve(completion)
  session.isServing = before
  session.table.release(completion)

proc deliver(session: Session, completion: ptr Completion) =
  if completion.kind == completionHostCall and session.serve != nil:
    session.serveHost(completion)
    return
  if completion.kind == completionNotice:
    let operation = session.find(completion.token)
    if operation != nil and operation.notice != nil:
      var nanoseconds: uint64
      copyMem(addr nanoseconds, completion.data, sizeof(nanoseconds))
      {.cast(gcsafe).}: operation.notice(nanoseconds)
  else:
    let operation = session.remove(completion.token)
    if operation != nil: operation.finish(operation, completion, nil)
  session.table.release(completion)

proc reap(session: Session): int =
  ## Takes completions, at most `reapedAtOnce`, and delivers them. Returns their number.
  var reaped {.noinit.}: array[reapedAtOnce, Completion]
  var count: uint32
  if session.port == 0 or session.table.portReap(session.port, addr reaped[0], reapedAtOnce,
      addr count, nil) != 0: return 0
  for index in 0 ..< int(count): session.deliver(addr reaped[index])
  int(count)

proc dispatch(session: Session) {.gcsafe.}

proc dispatchSoon(session: Session) =
  let link = session.link
  session.isScheduled = true
  callSoon(proc () {.gcsafe.} =
    if link.session == nil: return
    let session = cast[Session](link.session)
    session.isScheduled = false
    session.dispatch())

proc arm(session: Session) =
  ## Lets the next completion wake the event loop.
  var ready: uint32
  if session.port == 0 or session.isArmed or session.isScheduled: return
  if session.table.portArm(session.port, addr ready, nil) == 0 and ready == 0:
    session.isArmed = true
    return
  session.dispatchSoon()

proc dispatch(session: Session) =
  ## Ends the operations whose completions have arrived.
  session.isArmed = false
  var total = 0
  while total < budget:
    let count = session.reap()
    total += count
    if count < reapedAtOnce: break
  if session.waiting > 0 or session.serve != nil: session.arm()

proc watch*(session: Session) =
  ## Lets the event loop of this thread wait for the port.
  if session.fd < 0:
    var error: TwError
    var fd: cint
    check(session.table.portFd(session.port, addr fd, addr error), error)
    let link = Link(session: cast[pointer](session))
    session.link = link
    register(AsyncFD(fd))
    session.fd = fd
    addRead(AsyncFD(fd), proc (fd: AsyncFD): bool {.gcsafe.} =
      if link.session == nil: return true
      let session = cast[Session](link.session) # Counted, so that it stays until the end.
      session.dispatch())
  session.arm()

proc waitOrWake*(session: Session, deadline: uint64, error: var TwError): uint32 =
  ## Waits for a completion, or until a token of this session was cancelled.
  var fd: cint
  var ready: uint32
  result = session.table.portFd(session.port, addr fd, addr error)
  if result == 0: result = session.table.portArm(session.port, addr ready, addr error)
  if result != 0 or ready != 0: return
  let now = session.table.now()
  let left = if deadline > now: (deadline - now) div 1_000_000 + 1 else: 0
  var polled = [TPollfd(fd: fd, events: POLLIN), TPollfd(fd: session.wakeEvent, events: POLLIN)]
  let count = poll(addr polled[0], 2, if deadline == forever: -1 else: int(min(left, 0x7fffffff)))
  if count < 0: return error.fail(Outcome.interrupted, "a signal arrived during the wait")
  if count == 0: return error.fail(Outcome.timedOut, "the deadline has passed")
  if polled[1].revents != 0: session.resetWakeEvent()

# Deadlines

proc finishWait*(session: Session, token: uint64, why: ref ThalwegError) =
  ## Ends the wait of an operation with an error.
  let operation = session.remove(token)
  if operation != nil: operation.finish(operation, nil, why)

proc tokenOf(session: Session, number: int): uint64 =
  uint64(session.slots[number].generation) shl 32 or uint64(number)

proc endCancelled(session: Session) =
  ## Ends the waits whose token was cancelled.
  session.resetWakeEvent()
  for number in 0 ..< session.slots.len:
    let operation = session.slots[number].waiting
    if operation != nil and operation.cancel != nil and operation.cancel.isCancelled:
      session.finishWait(session.tokenOf(number), cancelled())

proc watchWakeEvent(session: Session) =
  ## Lets the event loop of this thread wait for cancelled tokens.
  if session.isWakeWatched: return
  let fd = session.openWakeEvent()
  let link = session.link
  register(AsyncFD(fd))
  session.isWakeWatched = true
  addRead(AsyncFD(fd), proc (fd: AsyncFD): bool {.gcsafe.} =
    if link.session == nil: return true
    let session = cast[Session](link.session)
    session.endCancelled())

proc endLate(session: Session) {.gcsafe.}

proc schedule(session: Session, deadline: uint64) =
  session.wakeAt = deadline
  let now = session.table.now()
  let milliseconds = if deadline > now: min((deadline - now) div 1_000_000 + 1, 0x7fffffff) else: 0
  let link = session.link
  sleepAsync(int(milliseconds)).addCallback(proc () {.gcsafe.} =
    if link.session != nil: cast[Session](link.session).endLate())

proc endLate(session: Session) =
  ## Ends the waits whose deadline has passed.
  let now = session.table.now()
  var next = forever
  session.wakeAt = forever
  for number in 0 ..< session.slots.len:
    let operation = session.slots[number].waiting
    if operation.isNil or operation.deadline == 0: continue
    if operation.deadline > now: next = min(next, operation.deadline)
    else: session.finishWait(session.tokenOf(number),
        newError(Outcome.timedOut, "the deadline has passed"))
  if next != forever: session.schedule(next)

proc endAt*(session: Session, token, deadline: uint64) =
  ## Ends the wait of an operation at its deadline. A timer cannot be cancelled, so there is a new one
  ## only if it is earlier than the others.
  let operation = session.find(token)
  if deadline == forever or operation.isNil: return
  operation.deadline = deadline
  if deadline < session.wakeAt: session.schedule(deadline)

proc close*(session: Session) =
  ## Closes the port and the instance. Operations that wait end as `Outcome.cancelled`.
  session.requireThread()
  if session.port == 0: return
  if session.fd >= 0:
    session.link.session = nil
    unwatch(session.fd)
    session.fd = -1
  if session.isWakeWatched: unwatch(session.wakeEvent)
  let entry = session.forget()
  discard session.table.portClose(session.port, nil)
  if not session.isAttached: discard session.table.clientClose(session.instance, nil)
  session.port = 0
  session.instance = 0
  session.serve = nil
  for number in 0 ..< session.slots.len:
    session.finishWait(session.tokenOf(number),
        newError(Outcome.cancelled, "the client was closed"))
  session.wakeEvent = -1
  entry.discardEntry() # Now no token has its event.
