## Uses the timer: use_timer ADDRESS. `thalweg gen --lang nim` has written the module `my_timer` from the WIT
## that the compilation of timer_service.nim has written.

import std/[asyncdispatch, options, os]
import my_timer

let client = MyTimerClient.open(paramStr(1))
echo client.libVersion

let refused = attempt client.newMyTimer(TimerConfig(name: ""))
echo "refused: ", ServiceError[string](refused.error[]).payload

let timer = client.newMyTimer(TimerConfig(name: "demo"))
let other = client.newMyTimer(TimerConfig(name: "other"))
let echoes = timer.onEchoFired()
let jobs = timer.onJobScheduled()
echo timer.version

let response = waitFor timer.echoAsync(EchoRequest(message: "hello", delayMs: 20))
echo response.timerName, " echoed ", response.echoed
discard other.echo(EchoRequest(message: "not an event of demo", delayMs: 0))
discard timer.echo(EchoRequest(message: "again", delayMs: 0))
echo "too long: ", ServiceError[string](
  attempt(timer.echo(EchoRequest(message: "", delayMs: 5_001))).error[]).payload

let answer = timer.complex(ComplexRequest(messages: @[EchoRequest(message: "one"), EchoRequest()],
  tags: @["a"], note: some("note"), retries: some(3'i64)))
echo answer.summary, " (", answer.itemCount, ", ", answer.hasNote, ")"

echo timer.schedule(JobSpec(name: "backup", priority: JobPriority.jpHigh), 20_000)

# The events of a timer end with it.
timer.close()
for event in echoes: echo "event: ", event.message, " ", event.echoCount
for event in jobs: echo "event: ", event.jobId, " ", event.willRunCount
client.close()
