## Calls the echo service from Nim: echo_host LIBRARY. All hosts print the same output.
##
## `thalweg gen` writes ../../generated/nim.
import std/[asyncdispatch, options, os, times]
import echo

const hour = 60'u32 * 60 * 1000

proc say(timer: Timer, message: string, delayMs: uint32) {.async.} =
  ## Sends one message and prints the response.
  let response = await timer.echoAsync(Request(message: message, delayMs: delayMs))
  echo response.name, " said ", response.message

proc showFailures(timer: Timer) =
  ## A typed error, and a call whose deadline passes: the service is cancelled, too.
  try:
    discard timer.echo(Request(message: "never", delayMs: hour + 1))
  except ServiceError[TimerError] as refused:
    echo "refused: ", refused.payload.tooLong, " ms"
  let late = attempt timer.echo(Request(message: "in an hour", delayMs: hour),
    within(initDuration(milliseconds = 20)))
  if not late.isOk and late.error.outcome == Outcome.timedOut: echo "timed out"

proc show(library: string) =
  ## Calls every function of the service.
  let client = EchoClient.open(library)
  echo "version ", client.version
  let timer = client.newTimer("clock")
  # Both calls run concurrently.
  waitFor all(say(timer, "later", 50), say(timer, "sooner", 0))

  let response = timer.complex(ComplexRequest(
    messages: @[Request(message: "one", delayMs: 10), Request(message: "two", delayMs: 20)],
    tags: @["fast", "async"], note: some("an extra"), retries: some(3'i64)))
  echo response.summary, " (", response.itemCount, ")"

  for tick in timer.schedule(5, 3): echo "tick ", tick.number
  showFailures(timer)
  timer.close()
  client.close()

if paramCount() != 1:
  stderr.writeLine("usage: echo_host LIBRARY")
  quit(2)
try: show(paramStr(1))
except ThalwegError as failed:
  stderr.writeLine("echo_host: " & failed.msg)
  quit(1)
