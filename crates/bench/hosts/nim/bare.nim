## Two hand-offs between two threads and nothing else: the baseline of a call. The lab's library
## exports it, so that all languages use the same one: crates/bench/service/src/bare.rs.

import std/[asyncdispatch, dynlib, posix]

type
  Bare* = ref object
    ## The thread that answers.
    state: pointer
    callIt, postIt: proc (state: pointer) {.cdecl.}
    fd: cint
    waiting: Future[void] # The one that the next reply completes.

proc find[T](library: LibHandle, name: string, function: var T) =
  let found = library.symAddr(name)
  if found.isNil: quit(name & " is missing")
  function = cast[T](found)

proc openBare*(path: string): Bare =
  ## Starts the thread.
  let library = loadLib(path)
  var start: proc (): pointer {.cdecl.}
  var fd: proc (state: pointer): cint {.cdecl.}
  if library.isNil: quit("cannot load " & path)
  result = Bare()
  library.find("lab_bare_open", start)
  library.find("lab_bare_call", result.callIt)
  library.find("lab_bare_post", result.postIt)
  library.find("lab_bare_fd", fd)
  result.state = start()
  if result.state.isNil: quit("no thread for the bare hand-offs")
  result.fd = fd(result.state)

proc call*(bare: Bare) =
  ## One request, one reply, blocking.
  bare.callIt(bare.state)

proc watch*(bare: Bare) =
  ## Lets the event loop read the eventfd of the replies, as the binding lets it watch a port.
  register(AsyncFD(bare.fd))
  addRead(AsyncFD(bare.fd), proc (fd: AsyncFD): bool {.gcsafe.} =
    var count: uint64
    if read(cint(fd), addr count, sizeof(count)) == sizeof(count): bare.waiting.complete())

proc post*(bare: Bare): Future[void] =
  ## One request, whose reply completes the future.
  result = newFuture[void]("bare")
  bare.waiting = result
  bare.postIt(bare.state)
