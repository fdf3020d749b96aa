## Services in Nim: libraries that programs open by their address, `thread:PATH`. `thalweg gen --guest
## nim` writes a module for each package, which uses this one. See docs/guests.md.

import std/[asyncdispatch, options, unicode]
import errors
import guest/[annotations, calls, readers, serve, writers]

export asyncdispatch, options, unicode.Rune
export errors except toOutcome, check, fail
export annotations.thalweg
export calls.Call, calls.deadline, calls.isCancelled, calls.cancelled
export serve.newServiceError
export readers.StreamReader, readers.FutureReader, readers.receive, readers.close
export writers.RecordWriter, writers.open, writers.send, writers.trySend, writers.setBatch,
    writers.finish, writers.fail

template ok*[T](returned: T): untyped =
  ## Returns a value from a proc whose result is a `Result`: `return ok(3)`.
  typeof(result).ok(returned)

template err*[E](returned: E): untyped =
  ## Returns an error from a proc whose result is a `Result`: `return err("why")`.
  typeof(result).err(returned)
