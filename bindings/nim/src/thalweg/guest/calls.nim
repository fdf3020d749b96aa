## Calls that a guest serves: their arguments, and how they end.

from system {.all.} import head, rcShift
import std/[asyncdispatch, importutils, monotimes]
from std/tables import del, len, pop, `[]=`
import ".."/[errors, message, table]
import abi, loop

privateAccess(typeof(head(nil)[]))

type
  Incoming* = object
    ## A call, as the guest gets it. Its arguments are valid until the function returns.
    id*: Handle
    state*: uint64
    number*: uint32
    deadline*: uint64
    arguments*: Message

  Call* = ref object
    ## A running call. A function gets it if its last parameter has this type.
    id: Handle
    deadline: uint64
    ended: Future[void]

  EncodeError* = proc (args: var Writer, layout: uint64, raised: ref Exception): bool {.nimcall.}
    ## Encodes the error of a function. False: the exception is another one. Nil: it has none.

var
  core*: ptr GuestCore
  methods*: ptr UncheckedArray[TwMethod]
  encoders*: ptr UncheckedArray[EncodeError] # One for each method.
  watched: tables.Table[Handle, Call]        # Calls that wait for their end.

proc initIncoming*(call: ptr GuestCall, state: uint64): Incoming {.inline.} =
  result = Incoming(id: call.call, state: state, number: call.number, deadline: call.deadline,
    arguments: initMessage(call.args, call.argsSize))
  result.arguments.owner = cast[pointer](call.call)

proc root*(m: Message): uint32 {.inline.} =
  ## The offset of the value. The core has checked the message.
  m.getU32(12)

proc root*(call: Incoming): uint32 {.inline.} =
  ## The offset of the parameters.
  call.arguments.root

# A running call

proc newCall*(call: Incoming): Call =
  Call(id: call.id, deadline: call.deadline)

proc id*(call: Call): Handle {.inline.} = call.id

proc deadline*(call: Call): MonoTime =
  ## When the call ends as `timedOut`. `high(MonoTime)`: never.
  if call.deadline == forever: high(MonoTime) else: cast[MonoTime](int64(call.deadline))

proc isCancelled*(call: Call): bool =
  ## Whether the call has ended: its program has cancelled it or has gone, or its deadline has passed.
  core.callCheck(call.id, nil) != 0

proc cancelled*(call: Call): Future[void] =
  ## Completes when the call has ended before it was answered.
  ##
  ## .. code-block:: nim
  ##   await sleepAsync(1000) or call.cancelled
  if call.ended.isNil:
    call.ended = newFuture[void]("thalweg.cancelled")
    if call.isCancelled: call.ended.complete()
    else: watched[call.id] = call
  call.ended

proc cancel*(id: Handle) =
  ## The core has ended a call.
  var call: Call
  if watched.len > 0 and watched.pop(id, call) and not call.ended.finished: call.ended.complete()

proc forget(id: Handle) {.inline.} =
  if watched.len > 0: watched.del(id)

# How calls end

proc fail*(id: Handle, code: Outcome, text: string) =
  ## Ends a call without a result.
  forget(id)
  discard core.fail(id, uint32(code), cstring(text), uint64(text.len), nil)

proc panic*(raised: ref Exception): string =
  ## The text of an exception, with its stack trace if the guest was compiled with one.
  result = $raised.name & ": " & raised.msg
  let trace = raised.getStackTrace
  if trace.len > 0: result.add "\n" & trace

proc send*(id: Handle, code: Outcome, args: var Writer) {.inline.} =
  ## Ends a call with a message.
  args.finish()
  if args.status == WriterStatus.ready:
    forget(id)
    discard core.answer(id, uint32(code), args.data, uint64(args.size), nil)
  else:
    id.fail(Outcome.guestLost, args.failure.msg)
  args.free()

proc outcomeOf(raised: ref Exception): Outcome =
  ## That of what the function needed, for example a call of the host. `guestLost`: a guest cannot cause
  ## that outcome. Another exception is a panic, and so is the error of another function.
  if not (raised of ThalwegError): return Outcome.guestPanicked
  let outcome = (ref ThalwegError)(raised).outcome
  case outcome
  of Outcome.cancelled, Outcome.timedOut, Outcome.guestPanicked, Outcome.overloaded, Outcome.stale,
      Outcome.argument, Outcome.wouldPark: outcome
  of Outcome.error: Outcome.guestPanicked
  else: Outcome.guestLost

proc encodes*(id: Handle, number: uint32, raised: ref Exception, args: var Writer): bool =
  ## Whether an exception is the error of its function, which is then the message `args`.
  args.call = id
  encoders[number] != nil and encoders[number](args, methods[number].error, raised)

proc failed*(id: Handle, number: uint32, raised: ref Exception) {.noinline.} =
  ## Ends a call whose function has raised an exception.
  var args {.noinit.}: Writer
  if id.encodes(number, raised, args):
    id.send(Outcome.error, args)
    return
  let outcome = raised.outcomeOf
  id.fail(outcome, if outcome == Outcome.guestPanicked: raised.panic else: raised.msg)

# Objects

proc reference*[T: ref](value: T): uint64 =
  ## A number for an object, which is kept until `release`.
  GC_ref(value)
  cast[uint64](cast[pointer](value))

proc isShared(value: pointer): bool =
  ## Whether an object has more than one reference.
  head(value).rc shr rcShift > 0

proc release*(T: typedesc[ref], number: uint64) =
  ## Ends the reference. The calls of an async function that have ended are a cycle with a reference to
  ## their object, which therefore may be garbage, too.
  let value = cast[pointer](number)
  let isShared = value.isShared
  GC_unref(cast[T](value))
  if isShared: collectSoon()

proc handleAt*(m: Message, at: uint32): Handle {.inline.} =
  m.getU64(16 + 8 * m.getU32(at))

proc borrowed*(call: Incoming, at, kind: uint32, T: typedesc[ref]): T =
  ## The object of an argument.
  var number: uint64
  var error {.noinit.}: TwError
  check(core.resourceGet(call.id, call.arguments.handleAt(at), kind, addr number, addr error), error)
  cast[T](cast[pointer](number))

proc takeObject*(m: Message, at, kind: uint32, T: typedesc[ref]): T =
  ## The object of a resource in the arguments, which the program no longer has.
  var number: uint64
  var error {.noinit.}: TwError
  check(core.resourceTake(cast[Handle](m.owner), m.handleAt(at), kind, addr number, addr error), error)
  result = cast[T](cast[pointer](number))
  GC_unref(result)

proc taken*(call: Incoming, at, kind: uint32, T: typedesc[ref]): T =
  ## The object of an argument, which the program no longer has.
  call.arguments.takeObject(at, kind, T)

proc putObject*[T: ref](args: var Writer, at, kind: uint32, value: T) =
  ## Puts an object into an answer. The program has it then.
  var handle: Handle
  if args.status == WriterStatus.ready:
    if value.isNil:
      args.status = WriterStatus.noObject
    else:
      let number = reference(value)
      if core.resourceNew(args.call, kind, number, addr handle, nil) != 0: release(T, number)
  args.putHandle(at, handle)

template beginWithObjects*(args: var Writer, id: Handle, layout: uint64, size: uint32, put,
    value: untyped): uint32 =
  ## Begins a message whose value has objects.
  args.beginCounting()
  put(args, 0, value)
  args.call = id
  args.begin(layout, args.counted, size)

proc answerObject*[T: ref](id: Handle, kind: uint32, value: T) =
  ## Ends a call with an object, which the program then has.
  if value.isNil: raise newError(Outcome.guestLost, "a function returned no object")
  forget(id)
  let number = reference(value)
  if core.answerResource(id, kind, number, nil) != 0: release(T, number)
