## Functions with which generated code serves calls and exports the library.

import std/[asyncdispatch, macros]
import ".."/[errors, message, table]
import abi, annotations, calls, loop, readers, waits, writers

when not (defined(gcOrc) and compileOption("threads") and defined(useMalloc) and
    defined(noSignalHandler)):
  # Threads of the core and the event loop free each other's objects, which Nim's own allocator does
  # not support. Signals belong to the program.
  {.error: "compile a guest with: nim c --app:lib --mm:orc --threads:on -d:useMalloc -d:noSignalHandler".}

proc describe*(name: cstring, params, ok, error, element: uint64, flags: uint32,
    description: static string): TwMethod =
  ## A method of a package.
  TwMethod(name: name, params: params, ok: ok, error: error, element: element, flags: flags,
    description: cstring(description), descriptionSize: uint32(description.len))

proc newServiceError*[E](payload: E): ref ServiceError[E] =
  ## The error of a function: `raise newServiceError(TimerError(kind: TimerErrorKind.noName))`.
  (ref ServiceError[E])(msg: "the service's error", outcome: Outcome.error, payload: payload)

proc orRaise*[E](future: Future[Result[Nothing, E]]): Future[void] {.async.} =
  ## Raises the error of a `Result`.
  let value = await future
  if not value.isOk: raise newServiceError(value.error)

proc later[F](call: Incoming, future: F,
    done: proc (id: Handle, number: uint32, future: F) {.nimcall.}) =
  ## Answers when a future has ended.
  if future.isNil: raise newError(Outcome.guestLost, "an async function returned no future")
  if future.finished:
    done(call.id, call.number, future)
    collectReaders(call.id)
    return
  let (id, number) = (call.id, call.number)
  future.addCallback(proc () {.gcsafe.} =
    {.cast(gcsafe).}:
      try: done(id, number, future)
      except Exception as raised: id.failed(number, raised)
      collectReaders(id))

template finishWith(id: Handle, number: uint32, T: typedesc, finish, made: untyped) =
  ## Answers with what a function has returned: a value, nothing, or a `Result`.
  when typeof(made) is void:
    made
    finish(id, number, Nothing())
  else:
    let value = made
    when typeof(value) is Result:
      if value.isOk: finish(id, number, value.value)
      else: id.failed(number, newServiceError(value.error))
    else:
      finish(id, number, value)

template checkType(T: typedesc, made: untyped, wanted: static string) =
  when not (typeof(made) is T or typeof(made) is Future[T] or T is Nothing and
      (typeof(made) is void or typeof(made) is Future[void]) or
      compiles((let value: T = made.value)) or compiles((let value: T = made.read.value))):
    {.error: "a function returns another type, " & $typeof(made) & "; write: " & wanted.}

template answerWith(call: Incoming, T: typedesc, finish, made: untyped) =
  when typeof(made) is FutureBase:
    proc done(id: Handle, number: uint32, future: typeof(made)) {.nimcall, gensym.} =
      if future.failed: id.failed(number, future.readError)
      else: finishWith(id, number, T, finish, future.read)
    later(call, made, done)
  else:
    finishWith(call.id, call.number, T, finish, made)

template answerValue*(call: Incoming, wanted: static string, T: typedesc, size: uint32,
    put, made: untyped) =
  checkType(T, made, wanted)
  proc finish(id: Handle, number: uint32, value: T) {.nimcall, gensym.} =
    var args {.noinit.}: Writer
    let at = args.begin(methods[number].ok, 0, size)
    put(args, at, value)
    id.send(Outcome.ok, args)
  answerWith(call, T, finish, made)

template answerValueWithObjects*(call: Incoming, wanted: static string, T: typedesc, size: uint32,
    put, made: untyped) =
  checkType(T, made, wanted)
  proc finish(id: Handle, number: uint32, value: T) {.nimcall, gensym.} =
    var args {.noinit.}: Writer
    let at = args.beginWithObjects(id, methods[number].ok, size, put, value)
    put(args, at, value)
    id.send(Outcome.ok, args)
  answerWith(call, T, finish, made)

template answerWithObject*(call: Incoming, wanted: static string, T: typedesc, kind: uint32,
    made: untyped) =
  checkType(T, made, wanted)
  proc finish(id: Handle, number: uint32, value: T) {.nimcall, gensym.} =
    answerObject(id, kind, value)
  answerWith(call, T, finish, made)

template answerStream*(call: Incoming, wanted: static string, name: untyped, T: typedesc,
    size: uint32, put, made: untyped) =
  let name = newRecordWriter[T](call, put, size)
  checkType(Nothing, made, wanted)
  when typeof(made) is FutureBase:
    let future = made
    when typeof(future.read) is void: serveWriter(name, future)
    else: serveWriter(name, orRaise(future))
  elif typeof(made) is void:
    made
    serveWriter(name)
  else:
    let value = made
    if value.isOk: serveWriter(name)
    else: name.failWith(newServiceError(value.error))

macro serveValue*(call: Incoming, function, wanted: static string, T: typedesc,
    size: static uint32, put, self, made: untyped): untyped =
  ## Calls a function, and ends the call with a value.
  newCall(bindSym"answerValue", call, newLit(wanted), T, newLit(size), put,
    invoke(function, wanted, call, self, made))

macro serveValueWithObjects*(call: Incoming, function, wanted: static string, T: typedesc,
    size: static uint32, put, self, made: untyped): untyped =
  ## The same for a value with objects.
  newCall(bindSym"answerValueWithObjects", call, newLit(wanted), T, newLit(size), put,
    invoke(function, wanted, call, self, made))

macro serveObject*(call: Incoming, function, wanted: static string, T: typedesc,
    kind: static uint32, self, made: untyped): untyped =
  ## Calls a function, and ends the call with an object.
  newCall(bindSym"answerWithObject", call, newLit(wanted), T, newLit(kind),
    invoke(function, wanted, call, self, made))

macro serveStream*(call: Incoming, function, wanted: static string, T: typedesc,
    size: static uint32, put, self, made: untyped): untyped =
  ## Calls a function, and ends the call with a stream or a future. The last argument of the function is
  ## the name of its writer.
  newCall(bindSym"answerStream", call, newLit(wanted), made[^1], T, newLit(size), put,
    invoke(function, wanted, call, self, made))

template encodeError*(args: var Writer, layout: uint64, raised: ref Exception, E: typedesc,
    size: uint32, put: untyped): bool =
  ## The body of an `EncodeError`.
  let isError = raised of ServiceError[E]
  if isError:
    let at = args.begin(layout, 0, size)
    put(args, at, (ref ServiceError[E])(raised).payload)
  isError

template encodeErrorWithObjects*(args: var Writer, layout: uint64, raised: ref Exception,
    E: typedesc, size: uint32, put: untyped): bool =
  ## The same for an error with objects.
  let isError = raised of ServiceError[E]
  if isError:
    let payload = (ref ServiceError[E])(raised).payload
    let at = args.beginWithObjects(args.call, layout, size, put, payload)
    put(args, at, payload)
  isError

# The functions of the ABI

proc refuse(error: Err, code: Outcome, text: string): uint32 =
  if error != nil: error[].fail(code, text) else: uint32(code)

template guarded*(body: untyped) =
  ## Runs code of the guest on a thread of the core.
  {.cast(gcsafe).}:
    enter()
    try: body
    except Exception as raised: report("a function of the guest failed", raised)
    leave()

proc serveGuest*(abi: uint32, given: ptr GuestCore, opening: uint64, error: Err,
    package: var GuestPackage, functions: var GuestFunctions,
    errors: ptr UncheckedArray[EncodeError], load: proc () {.nimcall.}): uint32 =
  ## The body of `tw_guest`.
  if abi != guestAbi or given.isNil or given.size < uint32(sizeof(GuestCore)):
    return refuse(error, Outcome.version, "the guest was built for guest abi " & $guestAbi &
      ", and libthalweg.so has guest abi " & $abi)
  core = given
  methods = cast[ptr UncheckedArray[TwMethod]](package.methods)
  encoders = errors
  start()
  enter()
  try:
    load()
  except Exception as raised:
    result = refuse(error, Outcome.guestLost, raised.panic)
  leave()
  if result != 0: stop()
  else:
    functions.size = uint32(sizeof(functions))
    result = core.serve(opening, addr package, addr functions, nil, error)
    if result != 0: functions.unload(nil)

template exportLibrary*(S: untyped, package, errors, serveCall, dropObject: untyped) =
  ## Exports the library. `serveCall` serves a call of a state, and `dropObject` drops an object.
  proc openState(ctx: pointer, state: ptr uint64, error: Err): uint32 {.cdecl.} =
    {.cast(gcsafe).}:
      enter()
      try: state[] = reference(newState(S))
      except Exception as raised: result = error[].fail(Outcome.guestLost, raised.panic)
      leave()
  proc callState(ctx: pointer, state: uint64, call: ptr GuestCall) {.cdecl.} =
    {.cast(gcsafe).}:
      enter()
      let incoming = initIncoming(call, state)
      try: serveCall(incoming, cast[S](cast[pointer](state)))
      except Exception as raised: incoming.id.failed(incoming.number, raised)
      leave()
  proc cancelCall(ctx: pointer, state: uint64, call: Handle) {.cdecl.} =
    guarded: cancel(call)
  proc dropResource(ctx: pointer, state: uint64, kind: uint32, number: uint64) {.cdecl.} =
    guarded: dropObject(kind, number)
  proc closeState(ctx: pointer, state: uint64) {.cdecl.} =
    guarded:
      let self {.used.} = cast[S](cast[pointer](state))
      hook("close", S, self)
    guarded:
      closeReaders(state)
      release(S, state)
  proc unloadGuest(ctx: pointer) {.cdecl.} =
    guarded: hook("unload")
    endWaits()
    stop()
  proc loadGuest() {.nimcall.} = hook("load")
  proc tw_guest(abi: uint32, core: ptr GuestCore, opening: uint64, error: Err): uint32 {.
      exportc: "tw_guest", dynlib, cdecl.} =
    var functions {.global.} = GuestFunctions(open: openState, call: callState, cancel: cancelCall,
      drop: dropResource, close: closeState, unload: unloadGuest)
    serveGuest(abi, core, opening, error, package, functions,
      cast[ptr UncheckedArray[EncodeError]](addr errors[0]), loadGuest)
  checkAnnotations()
