## A timer with a constructor, requests and events. Annotated code is its interface; README.md has the
## command that compiles it.

import thalweg/code_first

const maxDelayMs = 5_000

type
  TimerConfig {.thalweg.} = object
    name: string

  EchoRequest {.thalweg.} = object
    message: string
    delayMs: int

  EchoResponse {.thalweg.} = object
    echoed: string
    timerName: string

  ComplexRequest {.thalweg.} = object
    messages: seq[EchoRequest]
    tags: seq[string]
    note: Option[string]
    retries: Option[int]

  ComplexResponse {.thalweg.} = object
    summary: string
    itemCount: int
    hasNote: bool

  JobPriority {.thalweg.} = enum
    jpLow = "low"
    jpNormal = "normal"
    jpHigh = "high"

  JobSpec {.thalweg.} = object
    name: string
    payload: seq[string]
    priority: JobPriority

  EchoEvent {.thalweg.} = object
    message: string
    echoCount: int

  MyTimer {.thalweg.} = ref object
    name: string

proc onEchoFired(timer: MyTimer, event: EchoEvent) {.thalweg.}
  ## An echo was answered.

proc onJobScheduled(timer: MyTimer, jobId: string, willRunCount: int) {.thalweg.}
  ## A job was scheduled.

proc newMyTimer(config: TimerConfig): Future[Result[MyTimer, string]] {.async, thalweg.} =
  ## A timer with a name.
  await sleepAsync(1)
  if config.name.len == 0: return err("a timer needs a name")
  return ok(MyTimer(name: config.name))

proc echo(timer: MyTimer, req: EchoRequest): Future[Result[EchoResponse, string]] {.async, thalweg.} =
  ## Returns the message after its delay.
  if req.delayMs > maxDelayMs: return err("delayMs must not exceed " & $maxDelayMs)
  await sleepAsync(req.delayMs)
  timer.onEchoFired(EchoEvent(message: req.message, echoCount: 1))
  return ok(EchoResponse(echoed: req.message, timerName: timer.name))

proc version(timer: MyTimer): string {.thalweg: brief.} =
  ## The version of the library.
  "nim-timer v0.1.0"

proc libVersion(): string {.thalweg.} =
  ## The same, without a timer.
  "nim-timer v0.1.0"

proc complex(timer: MyTimer, req: ComplexRequest): ComplexResponse {.thalweg.} =
  let note = req.note.get("<none>")
  let retries = req.retries.get(0)
  ComplexResponse(
    summary: "received " & $req.messages.len & " messages, note=" & note & ", retries=" & $retries,
    itemCount: req.messages.len, hasNote: req.note.isSome)

proc schedule(timer: MyTimer, job: JobSpec, every: int): Result[string, string] {.thalweg.} =
  ## Returns the id of the job.
  if job.name.len == 0: return err("a job needs a name")
  let id = timer.name & ":" & job.name & ":" & $job.priority
  timer.onJobScheduled(id, if every > 0: 60_000 div every else: 1)
  ok(id)

exportPackage "example:my-timer@0.1.0"
