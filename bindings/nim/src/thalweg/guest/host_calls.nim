## Calls of host imports, the functions that the program has.

import std/asyncdispatch
import ".."/[errors, message]
import calls, readers, serve, waits

proc callHost*[T, E](call: Call, number: uint32, args: var Writer, get: Get[T],
    getError: Get[E]): auto =
  ## Calls the host with the message of the parameters, which is freed. `getError` is nil if the function
  ## has no error.
  when T is Nothing:
    let future = newFuture[void]("thalweg.host")
  else:
    let future = newFuture[T]("thalweg.host")
  args.finish()
  if args.status != WriterStatus.ready:
    future.fail(args.failure)
    args.free()
    return future
  let run = proc (wait: var WaitObj) {.nimcall, gcsafe, raises: [].} =
    wait.code = core.importCall(wait.handle, wait.number, wait.args, wait.argsSize,
      addr wait.message, addr wait.error)
  let done = proc (wait: var WaitObj) =
    deallocShared(wait.args)
    let m = initMessage(wait.message.data, wait.message.size)
    if wait.code == uint32(Outcome.ok):
      when T is Nothing: future.complete()
      else: future.complete(get(m, m.root))
    elif wait.code == uint32(Outcome.error) and not getError.isNil:
      future.fail(newServiceError(getError(m, m.root)))
    else:
      future.fail(newError(wait.code, wait.error))
    core.messageRelease(addr wait.message)
  begin(Wait(run: run, done: done, handle: call.id, number: number, args: args.copyBytes,
    argsSize: uint64(args.size)))
  args.free()
  return future
