## A guest that does not compile: test.sh defines one of the mistakes, and expects its error.

import echo_guest

type
  Service = ref object
  Timer = ref object

proc newTimer(name: string): Timer {.thalweg.} = Timer()

when defined(unmarked):
  proc version(): string = "0.1.0"
elif not defined(missing):
  proc version(): string {.thalweg.} = "0.1.0"

when defined(parameter):
  proc echo(self: Timer, request: string): Future[Response] {.async, thalweg.} = discard
elif defined(returned):
  proc echo(self: Timer, request: Request): Future[string] {.async, thalweg.} = discard
else:
  proc echo(self: Timer, request: Request): Future[Response] {.async, thalweg.} = discard

when defined(unknown):
  proc sing(self: Timer) {.thalweg.} = discard

proc complex(self: Timer, request: ComplexRequest): ComplexResponse {.thalweg.} = discard

proc schedule(self: Timer, everyMs, times: uint32, writer: RecordWriter[Tick]) {.async, thalweg.} =
  discard

exportGuest(Service, Timer)
