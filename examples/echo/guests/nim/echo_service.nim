## The echo service in Nim: a shared library that programs open as thread:PATH. README.md has the command.

import std/[monotimes, strutils, times]
import echo_guest

const hourMs = 60'u32 * 60 * 1000

type
  Service = ref object
  Timer = ref object
    name: string

proc tooLong(ms: uint32): ref ServiceError[TimerError] =
  newServiceError(TimerError(kind: TimerErrorKind.tooLong, tooLong: ms))

proc version(): string {.thalweg.} =
  "0.1.0"

proc newTimer(name: string): Timer {.thalweg.} =
  if name.len == 0: raise newServiceError(TimerError(kind: TimerErrorKind.noName))
  Timer(name: name)

proc echo(self: Timer, request: Request, call: Call): Future[Response] {.async, thalweg.} =
  if request.delayMs > hourMs: raise tooLong(request.delayMs)
  await sleepAsync(int(request.delayMs)) or call.cancelled
  return Response(message: request.message, name: self.name)

proc complex(self: Timer, request: ComplexRequest): ComplexResponse {.thalweg.} =
  let tags = request.tags.join(" ")
  let retries = if request.retries.isSome: $request.retries.get else: "none"
  ComplexResponse(
    summary: "$1 messages, tags: $2, note: $3, retries: $4" %
      [$request.messages.len, tags, request.note.get("none"), retries],
    itemCount: uint64(request.messages.len), hasNote: request.note.isSome)

proc schedule(self: Timer, everyMs, times: uint32, ticks: RecordWriter[Tick]) {.async, thalweg.} =
  if everyMs == 0: raise newServiceError(TimerError(kind: TimerErrorKind.tooShort))
  if everyMs > hourMs: raise tooLong(everyMs)
  var due = getMonoTime()
  var number = 0'u32
  while times == 0 or number < times:
    inc number
    due = due + initDuration(milliseconds = int64(everyMs))
    while getMonoTime() < due:
      await sleepAsync(int((due - getMonoTime()).inMilliseconds) + 1)
    await ticks.send(Tick(number: number, lateNs: uint64((getMonoTime() - due).inNanoseconds)))

exportGuest(Service, Timer)
