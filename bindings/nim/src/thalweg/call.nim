## Calls of a service's functions, and the macro that generated code uses for them.

import std/[asyncdispatch, macros, monotimes, times]
import cancel, errors, message, session, table

type
  CallOptions* = object
    ## How a call runs.
    deadline*: MonoTime  ## The call ends as `timedOut` at this time. The default is none.
    cancel*: CancelToken ## Cancels the call.
    onNotice*: proc (elapsed: Duration)
      ## Is called while the service still runs a call of a function with a `notice_interval`.

  Call* = object
    ## One call. It is on the stack, is not moved, and is not zeroed when it is created.
    writer*: Writer
    submission: Submission
    completion*: Completion
    error*: TwError

  CallOperation[T] = ref object of Operation
    future: Future[T]
    session: Session
    number: uint32
    token: CancelToken
    node: CancelNode
    failure: FailureReader
    read: proc (m: var Message, layout: uint64): T {.nimcall, gcsafe.}

  FailureReader* = proc (m: var Message, layout: uint64, text: string): ref ThalwegError {.nimcall, gcsafe.}
    ## Reads the error payload of a function. Nil: it has none.

when defined(thalwegMessages):
  # For tests of the encoding.
  var lastArguments* {.threadvar.}: string ## The arguments of the last call.
  var lastReply* {.threadvar.}: string ## The last result or error.

  proc copied(data: Bytes, size: uint64): string =
    result = newString(int(size))
    if size > 0: copyMem(addr result[0], data, int(size))

proc within*(timeout: Duration): CallOptions =
  ## A call that may take this long: `client.count("fn ", ".", within(initDuration(seconds = 2)))`.
  CallOptions(deadline: getMonoTime() + timeout)

proc ns*(deadline: MonoTime): uint64 {.inline.} =
  ## The time on the clock of the library, which is that of `MonoTime`.
  if deadline == MonoTime(): forever else: uint64(max(deadline.ticks, 1))

proc newServiceError*[E](payload: E, text: string): ref ThalwegError =
  (ref ServiceError[E])(msg: text, outcome: Outcome.error, payload: payload)

proc readNothing*(m: var Message, layout: uint64): Nothing =
  ## Reads an error without a payload.
  discard m.open(layout, 0)
  discard m.close()

proc readVoid*(m: var Message, layout: uint64) =
  ## Reads a result without a value.
  discard readNothing(m, layout)

proc failNothing*(m: var Message, layout: uint64, text: string): ref ThalwegError =
  ## The error of a function whose error carries nothing.
  newServiceError(readNothing(m, layout), text)

proc text(completion: Completion): string =
  result = newString(int(completion.messageSize))
  if result.len > 0: copyMem(addr result[0], completion.message, result.len)

proc messageOf*(session: Session, completion: ptr Completion): Message {.inline.} =
  ## The result or error in a completion.
  when defined(thalwegMessages):
    lastReply = copied(completion.data, completion.dataSize)
  initMessage(session.table, completion, cast[pointer](session))

proc malformed*(session: Session, number: uint32): ref ThalwegError =
  newError(Outcome.argument, $session.package.methods[number].name &
    ": the library's message is malformed")

proc failed*(session: Session, number: uint32, completion: ptr Completion,
    failure: FailureReader): ref ThalwegError {.noinline.} =
  ## The exception of a call that did not end as `ok`.
  if completion.code == uint32(Outcome.error) and failure != nil:
    var m = session.messageOf(completion)
    let name = $session.package.methods[number].name
    result = failure(m, session.package.methods[number].error, name & ": the service's error")
    if m.isMalformed: return malformed(session, number)
    result.retryable = completion.retryable != 0
  else:
    result = newError(completion.code.toOutcome, completion[].text, completion.retryable != 0)

proc refused(c: var Call, code: uint32): ref ThalwegError {.noinline.} =
  ## The call was not accepted: its resources and streams stay the caller's.
  let isEncoded = c.writer.status == WriterStatus.ready
  result = if isEncoded: newError(code, c.error) else: c.writer.failure
  c.writer.settle(false)
  c.writer.free()

proc prepare(c: var Call, session: Session, number: uint32, options: CallOptions) {.inline.} =
  c.writer.finish()
  c.submission.token = 0
  c.submission.client = session.instance
  c.submission.number = number
  c.submission.flags = 0
  c.submission.args = c.writer.data
  c.submission.argsSize = uint64(c.writer.size)
  c.submission.deadline = options.deadline.ns
  c.submission.call = 0
  when defined(thalwegMessages):
    lastArguments = copied(c.writer.data, uint64(c.writer.size))

proc accept(c: var Call, session: Session): uint32 {.inline.} =
  ## Submits the call.
  var accepted: uint32
  result = session.table.submit(session.port, addr c.submission, 1, addr accepted, addr c.error)

proc wants(session: Session, number: uint32, options: CallOptions): bool =
  ## Whether the call asks for notices.
  options.onNotice != nil and number < session.table.methodCount and
    (session.table.methods[number].flags and methodNotices) != 0

proc isOwn(c: var Call, session: Session, options: CallOptions,
    isForeign: var bool): bool {.noinline.} =
  ## Whether a completion is that of the call. Serves and releases all others.
  let it = addr c.completion
  if it.kind == completionHostCall and session.serve != nil:
    session.serveHost(it)
    return
  if it.kind == completionNotice and it.call == c.submission.call:
    if options.onNotice != nil:
      var nanoseconds: uint64
      copyMem(addr nanoseconds, it.data, sizeof(nanoseconds))
      {.cast(gcsafe).}: options.onNotice(initDuration(nanoseconds = int64(nanoseconds)))
  elif it.kind != completionStreamReady or it.token != servingToken:
    isForeign = true
  session.table.release(it)

proc wait(c: var Call, session: Session, options: CallOptions): uint32 =
  ## Waits for the completion.
  let table = session.table
  var isInterrupted, isForeign = false
  while true:
    var count: uint32
    result = table.portWait(session.port, forever, addr c.error)
    if result == uint32(Outcome.interrupted):
      if not isInterrupted: discard table.cancel(c.submission.call, nil)
      isInterrupted = true
      continue
    if result == 0:
      result = table.portReap(session.port, addr c.completion, 1, addr count, addr c.error)
    if result != 0: return
    if count == 0: continue
    if c.completion.kind == completionCall and c.completion.call == c.submission.call: break
    discard c.isOwn(session, options, isForeign)
  if isForeign:
    table.release(addr c.completion)
    return c.error.fail(Outcome.argument, "the port has other outstanding calls")
  if isInterrupted and c.completion.code == uint32(Outcome.cancelled):
    table.release(addr c.completion)
    return c.error.fail(Outcome.interrupted, "a signal arrived during the call")

proc callInline(c: var Call, session: Session, number: uint32, options: CallOptions): uint32 =
  session.table.callInline(session.instance, number, c.writer.data, uint64(c.writer.size),
    options.deadline.ns, addr c.completion, addr c.error)

proc ranHere(c: var Call, session: Session, number: uint32, options: CallOptions): bool =
  ## Runs a brief function on this thread, if its service is idle. Then `c.completion` is the
  ## completion.
  let isBrief = number < session.table.methodCount and
    (session.table.methods[number].flags and methodBrief) != 0
  result = isBrief and options.onNotice == nil and c.writer.status == WriterStatus.ready and
    session.enter(c.error) == 0 and c.callInline(session, number, options) == 0
  if result:
    c.writer.settle(true)
    c.writer.free()

proc run*(c: var Call, session: Session, number: uint32, options: CallOptions) =
  ## Makes a call that blocks. Then `c.completion` is its completion.
  c.prepare(session, number, options)
  if c.ranHere(session, number, options): return
  c.submission.flags = submitBlock
  var code = uint32(c.writer.status)
  if code == 0: code = session.enterBlocking(c.error)
  if code == 0:
    if session.wants(number, options): c.submission.flags = submitBlock or submitNotices
    code = c.accept(session)
  if code != 0: raise c.refused(code)
  c.writer.settle(true)
  c.writer.free()
  if options.cancel.isNil:
    code = c.wait(session, options)
  else:
    var node: CancelNode
    options.cancel.add(addr node, session.table, c.submission.call)
    code = c.wait(session, options)
    options.cancel.remove(addr node)
  if code != 0: raise newError(code, c.error)

proc runInline*(c: var Call, session: Session, number: uint32, options: CallOptions) =
  ## Calls an inline function on this thread.
  c.prepare(session, number, options)
  var code = uint32(c.writer.status)
  if code == 0: code = session.enter(c.error)
  if code == 0:
    code = c.callInline(session, number, options)
  if code != 0: raise c.refused(code)
  c.writer.settle(true)
  c.writer.free()

proc finishCall[T](operation: Operation, completion: ptr Completion,
    why: ref ThalwegError) {.gcsafe.} =
  let it = CallOperation[T](operation)
  if it.token != nil: it.token.remove(addr it.node)
  if completion.isNil:
    it.future.fail(why)
  elif completion.code != 0:
    it.future.fail(failed(it.session, it.number, completion, it.failure))
  else:
    var m = it.session.messageOf(completion)
    let layout = it.session.package.methods[it.number].ok
    when T is void:
      it.read(m, layout)
    else:
      let value = it.read(m, layout)
    if m.isMalformed:
      it.future.fail(malformed(it.session, it.number))
    else:
      when T is void: it.future.complete()
      else: it.future.complete(value)

proc start*[T](c: var Call, session: Session, number: uint32, options: CallOptions,
    read: proc (m: var Message, layout: uint64): T {.nimcall, gcsafe.},
        failure: FailureReader): Future[T] =
  ## Submits a call whose completion ends a future.
  result = newFuture[T]("thalweg")
  c.prepare(session, number, options)
  if c.ranHere(session, number, options):
    finishCall[T](CallOperation[T](future: result, session: session, number: number,
      failure: failure, read: read), addr c.completion, nil)
    session.table.release(addr c.completion)
    return
  var code = uint32(c.writer.status)
  if code == 0: code = session.enter(c.error)
  if code == 0:
    session.watch()
    let operation = CallOperation[T](future: result, session: session, number: number,
      token: options.cancel, failure: failure, read: read, finish: finishCall[T])
    if session.wants(number, options):
      let notice = options.onNotice
      operation.notice = proc (nanoseconds: uint64) =
        notice(initDuration(nanoseconds = int64(nanoseconds)))
      c.submission.flags = submitNotices
    c.submission.token = session.add(operation)
    code = c.accept(session)
    if code == 0:
      if options.cancel != nil:
        options.cancel.add(addr operation.node, session.table, c.submission.call)
    else:
      session.remove(c.submission.token)
  if code != 0:
    result.fail(c.refused(code))
  else:
    c.writer.settle(true)
    c.writer.free()

template finishRun*(c, session, number, read, failure): untyped =
  ## Reads the result of a call that has ended.
  if c.completion.code == 0:
    var m = session.messageOf(addr c.completion)
    when typeof(read(m, 0'u64)) is void: read(m, session.package.methods[number].ok)
    else: result = read(m, session.package.methods[number].ok)
    session.table.release(addr c.completion)
    if m.isMalformed: raise malformed(session, number)
  else:
    let ended = failed(session, number, addr c.completion, failure)
    session.table.release(addr c.completion)
    raise ended

template runAsync*(T: typedesc, call: untyped): untyped =
  ## A call that blocks, as a future that has ended.
  let future = newFuture[T]("thalweg")
  try:
    when T is void:
      call
      future.complete()
    else:
      future.complete(call)
  except ThalwegError as ended:
    future.fail(ended)
  future

proc arguments(definition: NimNode, c, session: NimNode, number, size, handles: int): NimNode =
  ## Code that begins a call and writes its arguments.
  let (args, root, client) = (ident"args", ident"root", definition.params[1][0])
  let (at, bytes) = (newLit(uint32(number)), newLit(uint32(size)))
  let body = newStmtList()
  for statement in definition.body:
    if statement.kind != nnkCommentStmt: body.add statement.copyNimTree
  let count = if handles >= 0: newLit(uint32(handles)) else: newDotExpr(args, ident"counted")
  result = quote do:
    let `session` {.cursor.} = `client`.session
    var `c` {.noinit.}: Call
    template `args`: untyped = `c`.writer
  if handles < 0: # Their number depends on the values.
    let body = body.copyNimTree
    result.add quote do:
      `args`.beginCounting()
      block:
        let `root` {.used.} = 0'u32
        `body`
  result.add quote do:
    let `root` {.used.} = `args`.begin(`session`.package.methods[`at`].params, `count`, `bytes`)
    `body`

macro service*(number, size, handles: static int, isInline: static bool, read, failure,
    definition: untyped): untyped =
  ## Defines the procs of a function of a service: NAME blocks, and NAMEAsync returns a future. The
  ## body of the definition writes the arguments with `args`, at offsets from `root`. The parameters
  ## begin with the client or resource and end with `callOptions`. Generated code uses this macro.
  let params = definition.params
  let ok = if params[0].kind == nnkEmpty: ident"void" else: params[0]
  let (options, at) = (ident"callOptions", newLit(uint32(number)))
  let blocking = definition.copyNimTree
  blocking.pragma = newEmptyNode()
  let later = blocking.copyNimTree
  var name = later[0]
  while name.kind != nnkIdent: name = name[name.len - 1]
  later[0] = nnkPostfix.newTree(ident"*", ident(name.strVal & "Async"))
  later.params[0] = nnkBracketExpr.newTree(bindSym"Future", ok)
  let about = newCommentStmtNode("The same as `" & name.strVal & "`, as a future.")
  let run = ident(if isInline: "runInline" else: "run")
  var (c, session) = (genSym(nskVar, "call"), genSym(nskLet, "session"))
  blocking.body = arguments(definition, c, session, number, size, handles)
  blocking.body.add quote do:
    `c`.`run`(`session`, `at`, `options`)
    finishRun(`c`, `session`, `at`, `read`, `failure`)
  for index in countdown(definition.body.len - 1, 0):
    if definition.body[index].kind == nnkCommentStmt:
      blocking.body.insert(0, definition.body[index])
  if isInline:
    let call = newCall(name)
    for index in 1 ..< params.len:
      for place in 0 ..< params[index].len - 2: call.add params[index][place]
    later.body = newStmtList(about, quote do: runAsync(`ok`, `call`))
  else:
    (c, session) = (genSym(nskVar, "call"), genSym(nskLet, "session"))
    later.body = newStmtList(about, arguments(definition, c, session, number, size, handles))
    later.body.add quote do:
      start[`ok`](`c`, `session`, `at`, `options`, `read`, `failure`)
  newStmtList(blocking, later)
