## Streams and futures that the service writes.

import std/[asyncdispatch, macros, monotimes, options, times]
import call, cancel, errors, handles, message, session, table

type
  GapReason* {.pure.} = enum
    ## Why records are missing.
    none, conflated, droppedNewest, droppedOldest, batchOpen, service

  Get*[T] = proc (m: Message, at: uint32): T {.nimcall, gcsafe, raises: [].}

  Stream*[T] = ref object
    ## Records that the service writes. It is closed with its last reference, or by `close`.
    session: Session
    owned: Owned
    get: Get[T]
    size: uint32          # Bytes of a record.
    number: uint32        # The function that returned the stream, for the type of its error.
    failure: FailureReader
    batch: TwBatch
    serial: int           # Of the open batch.
    token: uint64         # Of the wait of a future.
    isWaiting, isEnded: bool
    lost*: uint64         ## The number of missing records so far.
    gapReason*: GapReason ## Why the last of them are missing.

  Batch*[T] = object
    ## Records that are read in place, until the next batch is read or the stream is closed.
    stream: Stream[T]
    serial: int
    count: int
    firstSeq*: uint64   ## Number of the first record, counted from 0.
    lostBefore*: uint64 ## Missing records before the first one; in an empty batch, at the end.
    gapReason*: GapReason
    isControl*: bool    ## The records are of the control lane.

  FutureValue*[T] = ref object
    ## A value that the service sends later.
    stream: Stream[T]
    value: Option[T]

  ReadOperation[T] = ref object of Operation
    future: Future[Batch[T]]
    stream: Stream[T]
    max: uint32

proc getStream*[T](m: Message, at, size: uint32, get: Get[T], number = 0'u32,
    failure: FailureReader = nil): Stream[T] =
  ## Takes a stream out of a message. Generated code uses this.
  Stream[T](session: cast[Session](m.owner), owned: m.take(at, OwnedKind.stream), get: get,
    size: size, number: number, failure: failure)

proc getFuture*[T](m: Message, at, size: uint32, get: Get[T], number = 0'u32,
    failure: FailureReader = nil): FutureValue[T] =
  ## Takes a future out of a message. Generated code uses this.
  FutureValue[T](stream: getStream(m, at, size, get, number, failure))

proc toReason(reason: uint32): GapReason =
  if reason <= uint32(high(GapReason)): GapReason(reason) else: GapReason.service

# The open batch

proc len*(batch: Batch): int = batch.count

proc `[]`*[T](batch: Batch[T], index: int): T =
  ## A record, which is copied out of the batch.
  if index < 0 or index >= batch.count: raise newException(IndexDefect, "index " & $index &
      " not in 0 .. " & $(batch.count - 1))
  let stream = batch.stream
  if batch.serial != stream.serial or stream.batch.count == 0:
    raise newError(Outcome.stale, "the batch was released")
  let m = initMessage(stream.batch.base, stream.batch.size)
  stream.get(m, uint32(cast[uint](stream.batch.slots) - cast[uint](stream.batch.base)) +
    uint32(index) * stream.batch.stride)

iterator items*[T](batch: Batch[T]): T =
  ## The records.
  for index in 0 ..< batch.count: yield batch[index]

proc release[T](stream: Stream[T]) =
  if stream.batch.count > 0:
    discard stream.session.table.streamRelease(stream.owned.handle, stream.batch.count, nil)
    stream.batch.count = 0

# How a stream ends

proc ended[T](stream: Stream[T], code: uint32, error: TwError): ref ThalwegError =
  ## The exception of a stream that is incomplete.
  if code == uint32(Outcome.error) and stream.failure != nil:
    var completion = Completion(code: code)
    if stream.session.table.streamError(stream.owned.handle, addr completion.data,
        addr completion.dataSize, nil) == 0:
      return failed(stream.session, stream.number, addr completion, stream.failure)
  newError(code, error)

type Attempt {.pure.} = enum ready, wait, failed

proc attempt[T](stream: Stream[T], max: uint32, deadline: uint64, batch: var Batch[T],
    why: var ref ThalwegError): Attempt =
  ## Reads a batch. `wait`: there are no records yet.
  var error: TwError
  stream.release()
  inc stream.serial
  if stream.owned.handle == 0:
    why = newError(Outcome.stale, "the stream was closed")
    return Attempt.failed
  zeroMem(addr stream.batch, sizeof(TwBatch))
  var code = stream.session.table.streamAcquire(stream.owned.handle, max, deadline,
    addr stream.batch, addr error)
  let isEnd = (stream.batch.flags and batchEnd) != 0
  if code == 0 and stream.batch.stride < stream.size:
    stream.release()
    code = error.fail(Outcome.version, "built for records of " & $stream.size &
      " bytes, the stream's have " & $stream.batch.stride)
  if code != 0 and not isEnd:
    stream.batch.count = 0
    if code == uint32(Outcome.wouldPark): return Attempt.wait
    why = newError(code, error)
    return Attempt.failed
  batch = Batch[T](stream: stream, serial: stream.serial, count: int(stream.batch.count),
    firstSeq: stream.batch.firstSeq, lostBefore: stream.batch.lostBefore,
    gapReason: toReason(stream.batch.gapReason), isControl: (stream.batch.flags and batchControl) != 0)
  if not (isEnd and stream.isEnded): stream.lost += batch.lostBefore
  if batch.lostBefore > 0: stream.gapReason = batch.gapReason
  if isEnd:
    stream.isEnded = true
    batch.count = 0
    stream.batch.count = 0
    if code != uint32(Outcome.closed):
      why = stream.ended(code, error)
      return Attempt.failed
  Attempt.ready

# Blocking

proc serveUntilReady(session: Session, stream: Handle, deadline: uint64, token: CancelToken,
    error: var TwError): uint32 =
  ## Waits for a stream, and answers host calls meanwhile.
  var ready: uint32
  result = session.table.streamArm(stream, session.port, servingToken, addr ready, addr error)
  while result == 0 and ready == 0:
    var completion: Completion
    var count: uint32
    if token.isNil: result = session.table.portWait(session.port, deadline, addr error)
    elif token.isCancelled: raise cancelled()
    else: result = session.waitOrWake(deadline, error)
    if result == 0:
      result = session.table.portReap(session.port, addr completion, 1, addr count, addr error)
    if result != 0 or count == 0: continue
    if completion.kind == completionHostCall and session.serve != nil:
      session.serveHost(addr completion)
      continue
    if completion.kind != completionStreamReady or completion.token != servingToken:
      result = error.fail(Outcome.argument, "a stream's wait on a port with outstanding calls")
    ready = uint32(completion.call == stream)
    session.table.release(addr completion)

proc readServing[T](stream: Stream[T], max: Positive, deadline: MonoTime, token: CancelToken,
    batch: var Batch[T]) =
  ## Reads, and waits at the port.
  var error: TwError
  var why: ref ThalwegError
  let session = stream.session
  check(session.enterBlocking(error), error)
  while true:
    case stream.attempt(uint32(max), 0, batch, why)
    of Attempt.ready: return
    of Attempt.failed: raise why
    of Attempt.wait:
      check(session.serveUntilReady(stream.owned.handle, deadline.ns, token, error), error)

proc nextBatch*[T](stream: Stream[T], max: Positive = 256, deadline = MonoTime(),
    cancel: CancelToken = nil): Batch[T] =
  ## Waits for records. The batch is empty at the end of the stream, if the stream is complete.
  ##
  ## Raises the service's own error, another outcome of an incomplete stream, `Outcome.timedOut` at the
  ## deadline, and `Outcome.cancelled` when the token is cancelled. After the last two the stream continues.
  var why: ref ThalwegError
  let session = stream.session
  session.requireThread()
  if stream.isWaiting: raise newError(Outcome.argument, "a future waits for this stream")
  if cancel != nil and session.port != 0:
    var node: CancelNode
    cancel.add(addr node, session.openWakeEvent())
    defer: cancel.remove(addr node)
    stream.readServing(max, deadline, cancel, result)
  elif session.serve != nil and session.port != 0:
    stream.readServing(max, deadline, nil, result)
  elif stream.attempt(uint32(max), deadline.ns, result, why) == Attempt.failed:
    raise why

iterator batches*[T](stream: Stream[T], max: Positive = 256): Batch[T] =
  ## All batches. The loop blocks while there are none. Raises as `nextBatch`.
  while true:
    let batch = stream.nextBatch(max)
    if batch.len == 0: break
    yield batch

iterator items*[T](stream: Stream[T]): T =
  ## All records. The loop blocks while there are none. Raises as `nextBatch`.
  ##
  ## .. code-block:: nim
  ##   for match in client.search("fn ", "."): echo match.text
  for batch in stream.batches:
    for index in 0 ..< batch.len: yield batch[index]

# Async

proc arm[T](operation: ReadOperation[T]): bool =
  ## Waits for the port to say that the stream is ready. False: it is ready, or has failed.
  let (stream, session) = (operation.stream, operation.stream.session)
  var error: TwError
  var ready: uint32
  var code = session.enter(error)
  if code == 0:
    session.watch()
    stream.token = session.add(operation)
    code = session.table.streamArm(stream.owned.handle, session.port, stream.token, addr ready,
      addr error)
    stream.isWaiting = code == 0 and ready == 0
    if not stream.isWaiting: session.remove(stream.token)
  if code != 0: operation.future.fail(newError(code, error))
  stream.isWaiting

proc read[T](operation: ReadOperation[T]) =
  ## Reads, and waits if there are no records.
  let future = operation.future
  var batch: Batch[T]
  var why: ref ThalwegError
  while not future.finished:
    case operation.stream.attempt(operation.max, 0, batch, why)
    of Attempt.ready: future.complete(batch)
    of Attempt.failed: future.fail(why)
    of Attempt.wait:
      if operation.arm(): return

proc finishRead[T](operation: Operation, completion: ptr Completion,
    why: ref ThalwegError) {.gcsafe.} =
  let it = ReadOperation[T](operation)
  it.stream.isWaiting = false
  if completion.isNil: it.future.fail(why)
  else: it.read()

proc nextBatchAsync*[T](stream: Stream[T], max: Positive = 256, deadline = MonoTime(),
    cancel: CancelToken = nil): Future[Batch[T]] =
  ## The same as `nextBatch`, as a future.
  result = newFuture[Batch[T]]("thalweg.nextBatch")
  stream.session.requireThread()
  if stream.isWaiting:
    result.fail(newError(Outcome.argument, "another future waits for this stream"))
    return
  let operation = ReadOperation[T](future: result, stream: stream, max: uint32(max),
    cancel: cancel, finish: finishRead[T])
  operation.read()
  if stream.isWaiting: stream.session.endAt(stream.token, deadline.ns)

proc noBatch*[T](stream: Stream[T]): Batch[T] = discard

macro awaited*(loop: ForLoopStmt): untyped =
  ## Iterates over a stream in an async proc.
  ##
  ## .. code-block:: nim
  ##   for match in awaited(stream): echo match.text
  let (name, stream, body) = (loop[0], loop[1][1], loop[2])
  result = quote do:
    block:
      let source = `stream`
      var batch = source.noBatch
      var index = 0
      while true: # One loop, so that the body can use `break` and `continue`.
        if index == batch.len:
          batch = await source.nextBatchAsync()
          index = 0
          if batch.len == 0: break
        let `name` = batch[index]
        inc index
        `body`

# Both

proc tee*[T](stream: Stream[T]): Stream[T] =
  ## Adds a reader: an independent stream with its own capacity, gaps and sequence numbers.
  var error: TwError
  var handle: Handle
  stream.session.requireThread()
  check(stream.session.table.streamTee(stream.owned.handle, addr handle, addr error), error)
  Stream[T](session: stream.session, get: stream.get, size: stream.size, number: stream.number,
    failure: stream.failure, owned: newOwned(stream.session.table, handle, OwnedKind.stream))

proc stats*[T](stream: Stream[T]): StreamStats =
  ## Counters of all streams of this stream's function and client.
  var error: TwError
  check(stream.session.table.streamStats(stream.owned.handle, 0, addr result,
    uint32(sizeof(StreamStats)), addr error), error)

proc isOpen*[T](stream: Stream[T]): bool =
  stream.owned.handle != 0

proc close*[T](stream: Stream[T]) =
  ## Closes the stream: its writers see it and stop. The open batch becomes invalid. A future that
  ## waits for the stream ends as `Outcome.stale`. A second call has no effect.
  stream.session.requireThread()
  inc stream.serial
  stream.batch.count = 0
  discard closeHandle(stream.owned[])
  stream.owned.handle = 0
  if stream.isWaiting:
    stream.session.finishWait(stream.token, newError(Outcome.stale, "the stream was closed"))

proc valueOf[T](batch: Batch[T]): T =
  if batch.len == 0:
    raise newError(Outcome.guestLost, "the service dropped the future without a value")
  batch[0]

proc wait*[T](future: FutureValue[T], deadline = MonoTime()): T =
  ## Waits for the value. Raises `Outcome.guestLost` if the service dropped the future without one.
  if future.value.isNone: future.value = some(valueOf(future.stream.nextBatch(1, deadline)))
  future.value.get

proc waitAsync*[T](future: FutureValue[T], deadline = MonoTime()): Future[T] =
  ## The same as `wait`, as a future of asyncdispatch.
  let waiting = newFuture[T]("thalweg.wait")
  if future.value.isSome:
    waiting.complete(future.value.get)
    return waiting
  # Not an `async` proc: with arc, it would keep the value and the stream for ever.
  let batch = future.stream.nextBatchAsync(1, deadline)
  batch.addCallback(proc () {.gcsafe.} =
    if batch.failed:
      waiting.fail(batch.readError)
      return
    try:
      future.value = some(valueOf(batch.read))
      waiting.complete(future.value.get)
    except ThalwegError as failed:
      waiting.fail(failed))
  waiting

proc close*[T](future: FutureValue[T]) =
  ## Closes the future. A second call has no effect.
  future.stream.close()
