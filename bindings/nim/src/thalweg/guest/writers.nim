## Streams and futures that a guest writes.

import std/asyncdispatch
import ".."/[errors, message, table]
import abi, calls, readers

type
  Put*[T] = proc (args: var Writer, at: uint32, value: T) {.nimcall, gcsafe, raises: [].}

  WriterState = object
    call: Handle    # The call that the stream answers.
    stream: Handle  # 0: the call was not answered, or the stream has ended.
    isOpen: bool
    number: uint32
    sent: uint32    # Without a pause.
    batch: uint32
    pending: uint32 # Records that are in the stream and not visible.
    filled: uint32  # Records before `space.first` that are not in the stream yet.
    space: RecordSpace

  AnyWriter* {.acyclic.} = ref object of RootObj
    ## A writer for records of any type.
    state: WriterState

  RecordWriter*[T] {.acyclic.} = ref object of AnyWriter
    ## The writing end of a stream or future. An async function ends it when it ends. Another one keeps
    ## it, and ends it with `finish` or `fail`. A writer that is forgotten before ends its stream as
    ## `guestLost`.
    put: Put[T]
    size: uint32

const
  longestWait = 16 # Milliseconds. The core tells only guests with a port when a full stream has room.
  sentWithoutPause = 256 # So many take about 0.1 ms. Then the other tasks and calls of the guest run.

var sentFuture: Future[void] # Has ended.

proc commit(state: var WriterState, hasMore: bool, error: var TwError): uint32 =
  ## Makes the filled places part of the stream, and all of its records visible unless it `hasMore`.
  let count = state.filled
  state.filled = 0
  result = core.streamCommit(state.stream, count, state.space.tails, if hasMore: writeMore else: 0,
    addr state.space, addr error)
  state.pending = if hasMore and result == 0: state.pending + count else: 0

proc commitAll(state: var WriterState) =
  ## Before an end of the stream that is a failure anyway.
  var error {.noinit.}: TwError
  if state.filled > 0: discard state.commit(false, error)

proc abort(state: var WriterState, text: string) =
  if state.stream != 0:
    state.commitAll()
    discard core.streamAbort(state.stream, cstring(text), uint64(text.len), nil)
  state.stream = 0

proc `=destroy`(state: var WriterState) =
  state.abort("the guest has forgotten the writer of its stream")

proc newRecordWriter*[T](call: Incoming, put: Put[T], size: uint32): RecordWriter[T] =
  RecordWriter[T](put: put, size: size, state: WriterState(call: call.id, number: call.number))

proc open*(writer: AnyWriter) =
  ## Answers the call with the stream. Runs before the first record, and when the function waits.
  if writer.state.isOpen: return
  writer.state.isOpen = true
  var error {.noinit.}: TwError
  check(core.answerStream(writer.state.call, addr writer.state.stream, addr error), error)

proc setBatch*(writer: AnyWriter, count: Natural) =
  ## Records become visible in groups of `count`, or when the stream ends. The default is 1.
  writer.state.batch = uint32(count)

proc copy[T](writer: RecordWriter[T], value: T, error: var TwError): uint32 {.noinline.} =
  ## Adds a record for which the stream's memory has no space here: it is written elsewhere and copied.
  var args {.noinit.}: Writer
  let first = args.beginRecord(writer.size)
  writer.put(args, first, value)
  defer: args.free()
  if args.status != WriterStatus.ready: raise args.failure
  if writer.state.filled > 0: result = writer.state.commit(true, error)
  if result == 0:
    result = core.streamWrite(writer.state.stream, args.data, uint64(args.size), first, 1,
        writeMore, 0, nil, addr error)
    writer.state.space.count = 0
    if result == 0: inc writer.state.pending

proc add[T](writer: RecordWriter[T], value: T, error: var TwError): uint32 =
  ## Adds a record, which is visible after `show`. Returns an outcome.
  template state: untyped = writer.state
  if state.space.count == 0:
    result = core.streamReserve(state.stream, 0, 0, addr state.space, addr error)
    if result != 0 or state.space.count == 0: return # Without a failure, the stream drops the record.
  var args {.noinit.}: Writer
  args.beginPlace(state.space.base, state.space.first, writer.size, state.space.tails,
      state.space.tailsEnd)
  writer.put(args, state.space.first, value)
  if args.status == WriterStatus.noSpace: return writer.copy(value, error)
  if args.status != WriterStatus.ready: raise args.failure
  state.space.first += state.space.stride
  state.space.tails = args.size
  dec state.space.count
  inc state.filled
  if state.space.count == 0: result = state.commit(true, error)

proc show(state: var WriterState, error: var TwError): uint32 {.inline.} =
  ## Makes the records visible that were added, if they are a batch.
  if state.pending + state.filled >= max(state.batch, 1): result = state.commit(false, error)

proc isFull(code: uint32, error: var TwError): bool {.inline.} =
  ## Raises another outcome.
  if code == 0: return false
  if code != uint32(Outcome.timedOut) and code != uint32(Outcome.wouldPark): raise newError(code, error)
  true

proc trySend*[T](writer: RecordWriter[T], values: openArray[T]): int =
  ## Sends records together, until the stream is full. Returns how many.
  ##
  ## Raises `Outcome.closed` if its reader has left, and another outcome if it has ended otherwise;
  ## `Outcome.argument` if a record is malformed, such as a string that is not UTF-8. The others of its
  ## group are sent.
  if not writer.state.isOpen: writer.open()
  var error {.noinit.}: TwError
  var code = 0'u32
  while result < values.len and code == 0:
    code = writer.add(values[result], error)
    if code == 0: inc result
  if code == 0: code = writer.state.show(error)
  discard code.isFull(error) # Then all of its records are visible.

proc trySend*[T](writer: RecordWriter[T], value: T): bool =
  ## Sends a record. False: the stream is full. Raises the same as for several records.
  if not writer.state.isOpen: writer.open()
  var error {.noinit.}: TwError
  var code = writer.add(value, error)
  if code == 0: code = writer.state.show(error)
  not code.isFull(error)

proc sendRest[T](writer: RecordWriter[T], values: seq[T], sent: int) {.async.} =
  var (done, pause) = (sent, 1)
  while done < values.len:
    await sleepAsync(pause)
    let count = writer.trySend(values.toOpenArray(done, values.high))
    pause = if count > 0: 1 else: min(2 * pause, longestWait)
    done += count

proc pause(writer: AnyWriter): Future[void] {.noinline.} =
  if sentFuture.isNil:
    sentFuture = newFuture[void]("thalweg.send")
    sentFuture.complete()
  writer.state.sent = 0
  sleepAsync(0)

proc sent(writer: AnyWriter, count: uint32): Future[void] {.inline.} =
  ## The future of records that were sent. It does not end at once if there were many: a task that never
  ## waits would keep all others from running.
  writer.state.sent += count
  if writer.state.sent >= sentWithoutPause or sentFuture.isNil: writer.pause() else: sentFuture

proc failedSend(why: ref ThalwegError): Future[void] =
  result = newFuture[void]("thalweg.send")
  result.fail(why)

proc send*[T](writer: RecordWriter[T], values: seq[T]): Future[void] =
  ## Sends records, and waits while the stream is full: `await numbers.send(@[1'u64, 2])`. Wait for one
  ## call of `send` before the next.
  try:
    let done = if values.len == 0: 0 else: writer.trySend(values)
    if done < values.len: writer.sendRest(values, done) else: writer.sent(uint32(done))
  except ThalwegError as ended:
    failedSend((ref ThalwegError)(ended))

proc send*[T](writer: RecordWriter[T], value: T): Future[void] =
  ## Sends a record, and waits while the stream is full: `await numbers.send(1)`.
  try:
    if writer.trySend(value): writer.sent(1) else: writer.sendRest(@[value], 0)
  except ThalwegError as ended:
    failedSend((ref ThalwegError)(ended))

proc finish*(writer: AnyWriter) =
  ## Ends the stream regularly, or as `guestLost` if a record of the last group is malformed. Does nothing if it
  ## has ended.
  writer.open()
  if writer.state.stream != 0:
    var error {.noinit.}: TwError
    let code = if writer.state.filled > 0: writer.state.commit(false, error) else: 0'u32
    if code == uint32(Outcome.argument):
      writer.state.abort(newError(code, error).msg)
      return
    discard core.streamFinish(writer.state.stream, nil)
  writer.state.stream = 0

proc failWith*(writer: AnyWriter, raised: ref Exception) =
  ## Ends the stream with an exception: the error of its function, or `guestLost`. A call that was not
  ## answered fails.
  if not writer.state.isOpen:
    writer.state.isOpen = true
    writer.state.call.failed(writer.state.number, raised)
  elif writer.state.stream != 0:
    var args {.noinit.}: Writer
    if writer.state.call.encodes(writer.state.number, raised, args):
      args.finish()
      if args.status == WriterStatus.ready:
        writer.state.commitAll()
        discard core.streamFail(writer.state.stream, args.data, uint64(args.size), nil)
        writer.state.stream = 0
      else:
        writer.state.abort(args.failure.msg)
      args.free()
    else:
      writer.state.abort(raised.panic)

proc fail*[E](writer: AnyWriter, error: E) =
  ## Ends the stream with the error of its function.
  writer.failWith((ref ServiceError[E])(msg: "the service's error", outcome: Outcome.error,
    payload: error))

proc serveWriter*(writer: AnyWriter) =
  ## A function that is not async has returned: it keeps the writer.
  writer.open()

proc serveWriter*(writer: AnyWriter, future: Future[void]) =
  ## An async function has returned, or waits.
  if not future.finished: writer.open()
  future.addCallback(proc () {.gcsafe.} =
    {.cast(gcsafe).}:
      if future.failed: writer.failWith(future.readError)
      else: writer.finish()
      collectReaders(writer.state.call))
