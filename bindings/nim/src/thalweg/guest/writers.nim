## Streams and futures that a guest writes.

import std/asyncdispatch
import ".."/[errors, message, table]
import abi, calls, readers

type
  Put*[T] = proc (args: var Writer, at: uint32, value: T) {.nimcall, gcsafe, raises: [].}

  WriterState = object
    call: Handle   # The call that the stream answers.
    stream: Handle # 0: the call was not answered, or the stream has ended.
    isOpen: bool
    number: uint32
    capacity: uint32
    buffer: Bytes  # Of `capacity` bytes, for the next records. Nil: none.
    sent: uint32   # Without a pause.
    batch, hidden: uint32

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
  keptCapacity = 65_536'u32

var sentFuture: Future[void] # Has ended.

proc abort(state: var WriterState, text: string) =
  if state.stream != 0:
    discard core.streamAbort(state.stream, cstring(text), uint64(text.len), nil)
  state.stream = 0

proc `=destroy`(state: var WriterState) =
  state.abort("the guest has forgotten the writer of its stream")
  if state.buffer != nil: deallocShared(state.buffer)

proc keep(state: var WriterState, args: var Writer) {.inline.} =
  ## Keeps the buffer of records for the next ones, unless it is large.
  state.buffer = args.takeBuffer(state.capacity)
  if state.capacity > keptCapacity and state.buffer != nil:
    deallocShared(state.buffer)
    state.buffer = nil

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

proc refuse(args: var Writer, code: uint32, error: var TwError) {.noinline.} =
  ## Records were not written.
  if args.status != WriterStatus.ready: raise args.failure
  raise newError(code, error)

template write(writer: AnyWriter, recordSize, recordCount: uint32, put: untyped): uint32 =
  ## Writes the records that `put` puts at `first` into `args`. How many there was room for.
  if not writer.state.isOpen: writer.open()
  var
    args {.inject, noinit.}: Writer
    error {.noinit.}: TwError
    written: uint32
    code = uint32(Outcome.argument)
  let first {.inject.} = args.beginRecords(writer.state.buffer, writer.state.capacity,
    recordSize * recordCount)
  put
  if args.status == WriterStatus.ready:
    let isHidden = writer.state.hidden + recordCount < writer.state.batch
    code = core.streamWrite(writer.state.stream, args.data, uint64(args.size), first, recordCount,
      if isHidden: writeMore else: 0, 0, addr written, addr error)
    writer.state.hidden = if isHidden: writer.state.hidden + written else: 0
  keep(writer.state, args)
  if code != 0 and code != uint32(Outcome.timedOut) and code != uint32(Outcome.wouldPark):
    refuse(args, code, error)
  written

proc trySend*[T](writer: RecordWriter[T], value: T): bool =
  ## Sends a record. False: the stream is full.
  ##
  ## Raises `Outcome.closed` if its reader has left, and another outcome if it has ended otherwise.
  let written = writer.write(writer.size, 1):
    writer.put(args, first, value)
  written == 1

proc trySend*[T](writer: RecordWriter[T], values: openArray[T]): int =
  ## Sends records together, until the stream is full. Returns how many.
  let written = writer.write(writer.size, uint32(values.len)):
    for number in 0 ..< values.len:
      writer.put(args, first + uint32(number) * writer.size, values[number])
  int(written)

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
    let written = writer.write(writer.size, 1):
      writer.put(args, first, value)
    if written == 1: writer.sent(1) else: writer.sendRest(@[value], 0)
  except ThalwegError as ended:
    failedSend((ref ThalwegError)(ended))

proc finish*(writer: AnyWriter) =
  ## Ends the stream regularly. Does nothing if it has ended.
  writer.open()
  if writer.state.stream != 0: discard core.streamFinish(writer.state.stream, nil)
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
