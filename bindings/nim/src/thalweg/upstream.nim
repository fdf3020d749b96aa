## Streams and futures that the caller writes, as parameters of functions.

import std/[asyncdispatch, monotimes]
import call, errors, handles, message, session, stream, table

type
  Put*[T] = proc (w: var Writer, at: uint32, value: T) {.nimcall, gcsafe, raises: [].}

  StreamWriter*[T] = ref object
    ## A stream that is a parameter. Create it with the client's function newFUNCTIONPARAMETER, and
    ## pass it to one call of FUNCTION. Elements may be sent before the call. It is closed with its
    ## last reference, or by `close`.
    session: Session
    writer, reader: Owned
    put: Put[T]
    size: uint32
    layout: uint64
    token: uint64
    isWaiting: bool

  FutureWriter*[T] = StreamWriter[T]
    ## A future that is a parameter: `send` its value once, or `close` it without one.

  SendOperation[T] = ref object of Operation
    future: Future[void]
    writer: StreamWriter[T]
    element: string # The message.

proc openWriter*[T](session: Session, number, parameter, size: uint32, layout: uint64,
    put: Put[T]): StreamWriter[T] =
  ## Creates the stream for a parameter. Generated code uses this.
  var error: TwError
  var writer, reader: Handle
  check(session.enter(error), error)
  let table = session.table
  check(table.streamNew(session.instance, number, parameter, addr writer, addr reader, addr error),
    error)
  StreamWriter[T](session: session, put: put, size: size, layout: layout,
    writer: newOwned(table, writer, OwnedKind.stream),
    reader: newOwned(table, reader, OwnedKind.stream))

proc putStream*[T](w: var Writer, at: uint32, value: StreamWriter[T]) =
  ## Puts the reading end, which the service takes over.
  w.putOwned(at, if value.isNil: nil else: value.reader)

template encoded(stream, value, w: untyped, body: untyped) =
  ## Runs `body` with the message of an element in `w`.
  var w {.noinit.}: Writer
  let root = w.begin(stream.layout, 0, stream.size)
  stream.put(w, root, value)
  w.finish()
  let why = if w.status != WriterStatus.ready: w.failure
    elif stream.writer.handle == 0: newError(Outcome.stale, "the stream was closed")
    else: nil
  if why != nil:
    w.free()
    raise why
  body
  w.free()

proc send*[T](stream: StreamWriter[T], value: T, deadline = MonoTime()) =
  ## Sends an element. Waits for capacity: 256 elements or 1 MiB may be unread.
  ##
  ## Raises `Outcome.closed` if the service stopped reading, and `Outcome.timedOut` at the deadline.
  var error: TwError
  var code: uint32
  stream.session.requireThread()
  encoded(stream, value, w):
    code = stream.session.table.streamSend(stream.writer.handle, w.data, uint64(w.size),
      deadline.ns, addr error)
  check(code, error)

proc send[T](operation: SendOperation[T]) =
  ## Sends, and waits if there is no capacity.
  let (stream, session) = (operation.writer, operation.writer.session)
  var error: TwError
  while true:
    var ready: uint32
    # The bytes of a string are not aligned for a message, which the library copies anyway.
    var code = session.table.streamSend(stream.writer.handle,
      cast[Bytes](addr operation.element[0]), uint64(operation.element.len), 0, addr error)
    if code == uint32(Outcome.wouldPark):
      code = session.enter(error)
      if code == 0:
        session.watch()
        stream.token = session.add(operation)
        code = session.table.streamArm(stream.writer.handle, session.port, stream.token,
          addr ready, addr error)
        stream.isWaiting = code == 0 and ready == 0
        if stream.isWaiting: return
        session.remove(stream.token)
        if code == 0: continue
    if code == 0: operation.future.complete()
    else: operation.future.fail(newError(code, error))
    return

proc finishSend[T](operation: Operation, completion: ptr Completion,
    why: ref ThalwegError) {.gcsafe.} =
  let it = SendOperation[T](operation)
  it.writer.isWaiting = false
  if completion.isNil: it.future.fail(why)
  else: it.send()

proc sendAsync*[T](stream: StreamWriter[T], value: T, deadline = MonoTime()): Future[void] =
  ## The same as `send`, as a future. One future at a time sends.
  result = newFuture[void]("thalweg.send")
  try:
    stream.session.requireThread()
    if stream.isWaiting:
      raise newError(Outcome.argument, "another future sends to this stream")
    let operation = SendOperation[T](future: result, writer: stream, finish: finishSend[T])
    encoded(stream, value, w):
      operation.element = newString(int(w.size))
      copyMem(addr operation.element[0], w.data, int(w.size))
    operation.send()
    if stream.isWaiting: stream.session.endAt(stream.token, deadline.ns)
  except ThalwegError as failed:
    result.fail(failed)

proc finish*[T](stream: StreamWriter[T]) =
  ## Ends the stream regularly, after the elements that were sent.
  var error: TwError
  stream.session.requireThread()
  if stream.writer.handle == 0: raise newError(Outcome.stale, "the stream was closed")
  check(stream.session.table.streamFinish(stream.writer.handle, addr error), error)

proc close*[T](stream: StreamWriter[T]) =
  ## Closes the stream for writing. If it was not finished, the service reads `Outcome.cancelled`. A
  ## future that sends ends as `Outcome.stale`. A second call has no effect.
  stream.session.requireThread()
  discard closeHandle(stream.writer[])
  stream.writer.handle = 0
  if stream.isWaiting:
    stream.session.finishWait(stream.token, newError(Outcome.stale, "the stream was closed"))
