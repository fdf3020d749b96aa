## Streams and futures that a guest reads: parameters of its functions.
##
## The core keeps a state while it has open readers. Those of an async proc that has ended are garbage in a
## cycle, like everything in its closure. Readers are therefore closed with the end of their stream and with
## their state, and cycles are collected when a call ends and has left one open.

import std/[asyncdispatch, options, tables]
import ".."/[errors, message, table]
import abi, calls, loop, waits

type
  Get*[T] = proc (m: Message, at: uint32): T {.nimcall, gcsafe, raises: [].}

  ReaderState = object
    handle: Handle          # 0: closed
    isWaiting: bool
    received: uint32        # Without a pause.
    ended: ref ThalwegError # How the stream ended, unless regularly.

  Opened = object
    state: uint64
    call: Handle

  StreamReader*[T] {.acyclic.} = ref object
    ## The reading end of a stream that is a parameter. It may be read after the call was answered. It is
    ## closed with its last reference, or by `close`: from then on, the program cannot send to it.
    state: ReaderState
    get: Get[T]

  FutureReader*[T] {.acyclic.} = ref object
    ## The reading end of a future that is a parameter.
    stream: StreamReader[T]

const receivedWithoutPause = 256 # As `sentWithoutPause` of writers.

var open: tables.Table[Handle, Opened] # The open readers.

proc close(state: var ReaderState) =
  if state.handle != 0:
    open.del(state.handle)
    discard core.readerClose(state.handle, nil)
  state.handle = 0

proc `=destroy`(state: var ReaderState) =
  state.close()

proc openStream*[T](call: Incoming, at: uint32, get: Get[T]): StreamReader[T] =
  ## Takes the stream at an offset of the arguments.
  var handle: Handle
  var error {.noinit.}: TwError
  check(core.readerOpen(call.id, call.arguments.handleAt(at), addr handle, addr error), error)
  open[handle] = Opened(state: call.state, call: call.id)
  StreamReader[T](state: ReaderState(handle: handle), get: get)

proc openFuture*[T](call: Incoming, at: uint32, get: Get[T]): FutureReader[T] =
  ## Takes the future at an offset of the arguments.
  FutureReader[T](stream: call.openStream(at, get))

proc closeReaders*(state: uint64) =
  ## A state has ended.
  var all: seq[Handle]
  for handle, opened in open:
    if opened.state == state: all.add handle
  for handle in all:
    open.del(handle)
    discard core.readerClose(handle, nil)

proc collectReaders*(call: Handle) =
  ## An async function has ended.
  for opened in open.values:
    if opened.call == call: collectSoon()

proc close*[T](reader: StreamReader[T]) =
  ## Closes the stream. A `receive` that waits ends as at the end of the stream.
  reader.state.close()

proc close*[T](reader: FutureReader[T]) =
  ## Closes the future.
  reader.stream.close()

proc give[T](reader: StreamReader[T], future: Future[Option[T]], code: uint32, error: TwError,
    element: var GuestMessage) =
  ## Ends a future with what the core has returned.
  if reader.state.handle == 0: # It was closed while this waited.
    core.messageRelease(addr element)
    future.complete(none(T))
    return
  if code == 0:
    let m = initMessage(element.data, element.size)
    let value = reader.get(m, m.root)
    core.messageRelease(addr element)
    future.complete(some(value))
    return
  reader.close()
  if code == uint32(Outcome.closed):
    future.complete(none(T))
  else:
    reader.state.ended = newError(code, error)
    future.fail(reader.state.ended)

proc wait[T](reader: StreamReader[T], future: Future[Option[T]]) =
  reader.state.isWaiting = true
  reader.state.received = 0
  let run = proc (wait: var WaitObj) {.nimcall, gcsafe, raises: [].} =
    wait.code = core.readerReceive(wait.handle, forever, addr wait.message, addr wait.error)
  let done = proc (wait: var WaitObj) =
    reader.state.isWaiting = false
    reader.give(future, wait.code, wait.error, wait.message)
  begin(Wait(run: run, done: done, handle: reader.state.handle))

proc receive*[T](reader: StreamReader[T]): Future[Option[T]] =
  ## The next element, or `none` at the regular end of the stream: `let number = await numbers.receive()`.
  ## Wait for one call of `receive` before the next.
  ##
  ## Raises the outcome of a stream that has ended otherwise: `Outcome.cancelled` if the program has left it.
  let future = newFuture[Option[T]]("thalweg.receive")
  result = future
  var element: GuestMessage
  var error {.noinit.}: TwError
  if reader.state.isWaiting:
    future.fail(newError(Outcome.argument, "another receive waits for this stream"))
    return
  if reader.state.handle == 0:
    if reader.state.ended.isNil: future.complete(none(T)) else: future.fail(reader.state.ended)
    return
  let code = core.readerReceive(reader.state.handle, 0, addr element, addr error)
  if code == uint32(Outcome.wouldPark):
    reader.wait(future)
    return
  inc reader.state.received
  if reader.state.received < receivedWithoutPause:
    reader.give(future, code, error, element)
    return
  # A task that never waits would keep all others from running.
  reader.state.received = 0
  reader.state.isWaiting = true
  sleepAsync(0).addCallback(proc () {.gcsafe.} =
    {.cast(gcsafe).}:
      reader.state.isWaiting = false
      reader.give(future, code, error, element))

proc receive*[T](reader: FutureReader[T]): Future[T] =
  ## The value of the future: `let text = await given.receive()`.
  ##
  ## Raises `Outcome.cancelled` if the program has dropped it without a value.
  let future = newFuture[T]("thalweg.receive")
  result = future
  reader.stream.receive().addCallback(proc (element: Future[Option[T]]) {.gcsafe.} =
    {.cast(gcsafe).}:
      reader.close()
      if element.failed: future.fail(element.readError)
      elif element.read.isSome: future.complete(element.read.get)
      else: future.fail(newError(Outcome.cancelled, "the future has ended without a value")))
