## How calls and streams end: `Outcome`, exceptions, and `Result` for code that does not raise.

import std/asyncfutures
import table

type
  Outcome* {.pure.} = enum
    ## How a call or a stream ended.
    ok, error, cancelled, timedOut, guestLost, guestPanicked, overloaded, shutDown, closed, stale,
    argument, version, forked, interrupted, wouldPark, unknown

  ThalwegError* = object of CatchableError
    ## A call, stream or operation failed. `msg` is the text of the library.
    outcome*: Outcome
    retryable*: bool ## The same call may succeed later, and repeating it does no harm.

  ServiceError*[E] = object of ThalwegError
    ## The service's own error: the `outcome` is `error`.
    payload*: E

  Nothing* = object
    ## The type of a value that carries nothing.

  Result*[T, E] = object
    ## A value or an error.
    case isOk*: bool
    of true: value*: T
    of false: error*: E

const outcomeNames: array[Outcome, string] = ["ok", "error", "cancelled", "timed_out",
  "guest_lost", "guest_panicked", "overloaded", "shut_down", "closed", "stale", "argument",
  "version", "forked", "interrupted", "would_park", "unknown"]

proc `$`*(outcome: Outcome): string =
  ## The name of the outcome in the C ABI: `timed_out`.
  outcomeNames[outcome]

func ok*[T, E](R: typedesc[Result[T, E]], value: T): Result[T, E] =
  ## A value: `Result[string, int].ok("text")`.
  Result[T, E](isOk: true, value: value)

func err*[T, E](R: typedesc[Result[T, E]], error: E): Result[T, E] =
  ## An error: `Result[string, int].err(3)`.
  Result[T, E](isOk: false, error: error)

func `==`*[T, E](a, b: Result[T, E]): bool =
  ## Whether both are the same value, or the same error.
  a.isOk == b.isOk and (if a.isOk: a.value == b.value else: a.error == b.error)

proc attemptLater*[T](future: Future[T]): auto =
  ## What `attempt` returns for a future.
  when T is void:
    type Attempted = Result[Nothing, ref ThalwegError]
  else:
    type Attempted = Result[T, ref ThalwegError]
  let attempted = newFuture[Attempted]("thalweg.attempt")
  future.addCallback(proc () {.gcsafe.} =
    if not future.failed:
      when T is void: attempted.complete(Attempted.ok(Nothing()))
      else: attempted.complete(Attempted.ok(future.read))
    elif future.readError of ThalwegError:
      attempted.complete(Attempted.err((ref ThalwegError)(future.readError)))
    else:
      attempted.fail(future.readError))
  attempted

template attempt*(call: untyped): untyped =
  ## Makes a call and returns a `Result` instead of raising. For a future, returns a future of that.
  ##
  ## .. code-block:: nim
  ##   let found = attempt client.count("fn ", ".")
  ##   if found.isOk: echo found.value
  ##   else: echo found.error.outcome
  ##   let other = await attempt client.countAsync("fn ", ".")
  when typeof(call) is FutureBase:
    attemptLater(call)
  elif typeof(call) is void:
    var attempted: Result[Nothing, ref ThalwegError]
    try:
      call
      attempted = Result[Nothing, ref ThalwegError].ok(Nothing())
    except ThalwegError as failed:
      attempted = Result[Nothing, ref ThalwegError].err(failed)
    attempted
  else:
    var attempted: Result[typeof(call), ref ThalwegError]
    try:
      attempted = Result[typeof(call), ref ThalwegError].ok(call)
    except ThalwegError as failed:
      attempted = Result[typeof(call), ref ThalwegError].err(failed)
    attempted

proc toOutcome*(code: uint32): Outcome =
  if code < uint32(Outcome.unknown): Outcome(code) else: Outcome.unknown

proc newError*(outcome: Outcome, text: string, retryable = false): ref ThalwegError =
  (ref ThalwegError)(msg: text, outcome: outcome, retryable: retryable)

proc newError*(code: uint32, error: TwError): ref ThalwegError =
  ## What a function of the table reported.
  var text = newStringOfCap(64)
  for letter in error.message:
    if letter == '\0': break
    text.add letter
  newError(code.toOutcome, text, error.retryable != 0)

proc fail*(error: var TwError, code: Outcome, text: string): uint32 =
  ## Fills in `error` and returns its code.
  error.code = uint32(code)
  error.retryable = uint32(code == Outcome.overloaded)
  let size = min(text.len, error.message.len - 1)
  if size > 0: copyMem(addr error.message[0], unsafeAddr text[0], size)
  error.message[size] = '\0'
  error.code

proc check*(code: uint32, error: TwError) =
  ## Raises unless `code` is `ok`.
  if code != 0: raise newError(code, error)
