## Streams and futures that a guest writes.

import std/asyncdispatch
import ".."/[errors, message, table]
import abi, calls

type
  Put*[T] = proc (args: var Writer, at: uint32, value: T) {.nimcall, gcsafe, raises: [].}

  WriterState = object
    call: Handle         # The call that the stream answers.
    stream: Handle       # 0: the call was not answered, or the stream has ended.
    isOpen: bool
    number: uint32

  AnyWriter* {.acyclic.} = ref object of RootObj
    ## A writer for records of any type.
    state: WriterState

  RecordWriter*[T] {.acyclic.} = ref object of AnyWriter
    ## The writing end of a stream or future. An async function ends it when it ends. Another one keeps
    ## it, and ends it with `finish` or `fail`. A writer that is forgotten before ends its stream as
    ## `guestLost`.
    put: Put[T]
    size: uint32

const longestWait = 16 # Milliseconds. The core does not tell a guest when a full stream has room.

proc abort(state: var WriterState, text: string) =
  if state.stream != 0:
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

proc write[T](writer: RecordWriter[T], values: openArray[T], isFull: var bool): int =
  ## Writes as many records as there is room for, and returns their number.
  writer.open()
  if writer.state.stream == 0: raise newError(Outcome.stale, "the stream has ended")
  var args {.noinit.}: Writer
  var error {.noinit.}: TwError
  let first = args.begin(0, 0, writer.size * uint32(values.len))
  for number in 0 ..< values.len:
    writer.put(args, first + uint32(number) * writer.size, values[number])
  var written: uint32
  let status = args.status
  let code = if status != WriterStatus.ready: 0'u32
    else: core.streamWrite(writer.state.stream, args.data, uint64(args.size), first,
      uint32(values.len), 0, 0, addr written, addr error)
  let why = if status == WriterStatus.ready: nil else: args.failure
  args.free()
  if why != nil: raise why
  isFull = code == uint32(Outcome.timedOut) or code == uint32(Outcome.wouldPark)
  if not isFull: check(code, error)
  int(written)

proc trySend*[T](writer: RecordWriter[T], value: T): bool =
  ## Sends a record. False: the stream is full.
  ##
  ## Raises `Outcome.closed` if its reader has left, and another outcome if it has ended otherwise.
  var isFull: bool
  writer.write([value], isFull) == 1

proc trySend*[T](writer: RecordWriter[T], values: openArray[T]): int =
  ## Sends records together, until the stream is full. Returns how many.
  var isFull: bool
  writer.write(values, isFull)

proc sendRest[T](writer: RecordWriter[T], values: seq[T], sent: int) {.async.} =
  var (done, pause) = (sent, 1)
  while done < values.len:
    await sleepAsync(pause)
    let count = writer.trySend(values.toOpenArray(done, values.high))
    pause = if count > 0: 1 else: min(2 * pause, longestWait)
    done += count

proc send*[T](writer: RecordWriter[T], values: seq[T]): Future[void] =
  ## Sends records, and waits while the stream is full: `await numbers.send(@[1'u64, 2])`. Wait for one
  ## call of `send` before the next.
  try:
    let sent = if values.len == 0: 0 else: writer.trySend(values)
    if sent < values.len: return writer.sendRest(values, sent)
    result = newFuture[void]("thalweg.send")
    result.complete()
  except ThalwegError as ended:
    result = newFuture[void]("thalweg.send")
    result.fail(ended)

proc send*[T](writer: RecordWriter[T], value: T): Future[void] =
  ## Sends a record, and waits while the stream is full: `await numbers.send(1)`.
  try:
    if not writer.trySend(value): return writer.sendRest(@[value], 0)
    result = newFuture[void]("thalweg.send")
    result.complete()
  except ThalwegError as ended:
    result = newFuture[void]("thalweg.send")
    result.fail(ended)

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
    if writer.state.number.encodes(raised, args):
      args.finish()
      discard core.streamFail(writer.state.stream, args.data, uint64(args.size), nil)
      writer.state.stream = 0
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
      else: writer.finish())
