## Host imports: the functions that a service calls on its host.

import client, errors, library, message, session, table

type
  HostCall* = object
    ## One call of a host import. Generated code uses it.
    session: Session
    completion: ptr Completion
    number*: uint32
    arguments*: Message
    writer*: Writer
    code: Outcome

proc begin*(call: var HostCall, code: Outcome, size: uint32): uint32 =
  ## Begins the answer: a value with `ok`, or an error.
  let signature = call.session.package.imports[call.number]
  call.code = code
  call.writer.begin(if code == Outcome.ok: signature.ok else: signature.error, 0, size)

proc layout*(call: HostCall): uint64 =
  ## The layout of the arguments.
  call.session.package.imports[call.number].params

proc fail(call: HostCall, code: Outcome, text: string) =
  discard call.session.table.hostCallAnswer(call.completion.call, uint32(code),
    cast[Bytes](cstring(text)), uint64(text.len), nil)

proc serve(session: Session, completion: ptr Completion, run: proc (call: var HostCall)) =
  var call {.noinit.}: HostCall
  zeroMem(addr call, sizeof(call))
  call.session = session
  call.completion = completion
  call.number = completion.code
  call.arguments = initMessage(completion.data, completion.dataSize)
  discard call.writer.begin(0, 0, 0)
  try:
    call.code = Outcome.argument
    if call.number < session.package.importCount: run(call)
    if call.code == Outcome.argument:
      call.fail(call.code, "the library's message is malformed")
    else:
      call.writer.finish()
      if call.writer.status == WriterStatus.ready:
        discard session.table.hostCallAnswer(completion.call, uint32(call.code), call.writer.data,
          uint64(call.writer.size), nil)
      else:
        call.fail(Outcome.argument, call.writer.failure.msg)
  except Exception as raised: # Also a defect: the service must receive an answer.
    call.fail(Outcome.guestPanicked, raised.msg)
  call.writer.free()

proc setHost*[H: object](client: Client, host: H, run: proc (call: var HostCall)) =
  ## Serves the host calls of a client with `run`. Raises `Outcome.argument` if the host lacks a
  ## function. Generated code uses this.
  var error: TwError
  for name, function in fieldPairs(host):
    if function.isNil: raise newError(Outcome.argument, "the host has no " & name)
  let session = client.session
  check(session.enter(error), error)
  check(session.table.clientSetHost(session.instance, session.port, 0, addr error), error)
  let this = cast[pointer](session) # A reference would keep the session alive.
  session.serve = proc (completion: ptr Completion) =
    serve(cast[Session](this), completion, run)
