## Host imports: the functions that a service calls on its host.

import std/[asyncdispatch, macros]
import client, errors, library, message, session, table

type
  HostCall* = object
    ## One call of a host import. Generated code uses it.
    table: ptr Table
    package: ptr Package
    call: Handle
    number*: uint32
    arguments*: Message
    writer*: Writer
    code: Outcome
    isLater: bool # A future answers.

proc begin*(call: var HostCall, code: Outcome, size: uint32): uint32 =
  ## Begins the answer: a value with `ok`, or an error.
  let signature = call.package.imports[call.number]
  call.code = code
  call.writer.begin(if code == Outcome.ok: signature.ok else: signature.error, 0, size)

proc layout*(call: HostCall): uint64 =
  ## The layout of the arguments.
  call.package.imports[call.number].params

proc fail(call: HostCall, code: Outcome, text: string) =
  discard call.table.hostCallAnswer(call.call, uint32(code), cast[Bytes](cstring(text)),
    uint64(text.len), nil)

template answering(call: var HostCall, body: untyped) =
  ## Sends the answer that `body` has begun. Without one, the arguments were malformed.
  call.code = Outcome.argument
  discard call.writer.begin(0, 0, 0)
  try:
    body
    if call.isLater: discard
    elif call.code == Outcome.argument:
      call.fail(call.code, "the library's message is malformed")
    else:
      call.writer.finish()
      if call.writer.status == WriterStatus.ready:
        discard call.table.hostCallAnswer(call.call, uint32(call.code), call.writer.data,
          uint64(call.writer.size), nil)
      else:
        call.fail(Outcome.argument, call.writer.failure.msg)
  except Exception as raised: # Also a defect: the service must receive an answer.
    call.fail(Outcome.guestPanicked, raised.msg)
  call.writer.free()

proc serve(session: Session, completion: ptr Completion, run: proc (call: var HostCall)) =
  var call {.noinit.}: HostCall
  zeroMem(addr call, sizeof(call))
  call.table = session.table
  call.package = session.package
  call.call = completion.call
  call.number = completion.code
  call.arguments = initMessage(completion.data, completion.dataSize)
  answering(call):
    if call.number < session.package.importCount: run(call)

proc answerLater*(call: var HostCall, future: FutureBase, answer: proc (call: var HostCall)) =
  ## Answers when the future has ended. The call may have ended before: then nobody receives it.
  call.isLater = true
  let (table, package, handle, number) = (call.table, call.package, call.call, call.number)
  future.addCallback(proc () {.gcsafe.} =
    var call {.noinit.}: HostCall
    zeroMem(addr call, sizeof(call))
    call.table = table
    call.package = package
    call.call = handle
    call.number = number
    answering(call):
      if future.failed: raise future.error
      {.cast(gcsafe).}: answer(call)) # It runs on the thread that set the host.

template answered*(it: var HostCall, made, value, body: untyped) =
  ## Runs `body` with what a function of the host has returned, or with what its future returns.
  when typeof(made) is FutureBase:
    let future = made
    if future.isNil: raise newError(Outcome.argument, "a function of the host returned no future")
    answerLater(it, future, proc (call {.inject.}: var HostCall) =
      when typeof(future) isnot Future[void]:
        let value = future.read
      body)
  elif typeof(made) is void:
    made
    body
  else:
    let value = made
    body

macro asyncHost*(name: untyped, host: typedesc[object]): untyped =
  ## Defines `name`: the object `host`, whose functions return futures.
  let fields = newNimNode(nnkRecList)
  for field in host.getTypeInst[1].getImpl[2][2]:
    if field.kind != nnkIdentDefs: continue
    let function = field[1].copyNimTree
    let value = if function[0][0].kind == nnkEmpty: ident"void" else: function[0][0]
    function[0][0] = nnkBracketExpr.newTree(bindSym"Future", value)
    fields.add newIdentDefs(field[0].copyNimTree, function)
  nnkTypeSection.newTree(nnkTypeDef.newTree(nnkPostfix.newTree(ident"*", name), newEmptyNode(),
    nnkObjectTy.newTree(newEmptyNode(), newEmptyNode(), fields)))

proc setHost*[H: object](client: Client, host: H, isAsync: bool,
    run: proc (call: var HostCall)) =
  ## Serves the host calls of a client with `run`. Raises `Outcome.argument` if the host lacks a
  ## function. Generated code uses this.
  var error: TwError
  for name, function in fieldPairs(host):
    if function.isNil: raise newError(Outcome.argument, "the host has no " & name)
  let session = client.session
  check(session.enter(error), error)
  check(session.table.clientSetHost(session.instance, session.port, 0, addr error), error)
  let this = cast[pointer](session) # A reference would keep the session alive.
  session.isAsyncHost = isAsync
  session.serve = proc (completion: ptr Completion) =
    serve(cast[Session](this), completion, run)
  if isAsync: session.watch()
