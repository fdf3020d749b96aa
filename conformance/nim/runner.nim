## The conformance runner in Nim: runner LIBRARY SCENARIOS REPORT [async]. conformance/README.md
## describes the steps. With `async`, calls and streams are awaited on asyncdispatch; otherwise they
## block. The checks are no `async` procs, because with arc such a proc never frees its variables,
## so that its resources would stay in the service.

import std/[asyncdispatch, json, options, os, strutils, tables, unicode]
from std/times import Duration, initDuration
from std/monotimes import getMonoTime, `+`, `<`
import conformance, values
import thalweg/call

include conformance_calls

type
  Problem = string ## What differs; empty: nothing.

  Check = proc (): Problem
    ## Waits for the end of a call, and compares it with what its step expects.

  Started = object
    check: Check
    attached: ConformanceClient

  Text = Result[string, uint64]

let library = paramStr(1)
var
  client, other: ConformanceClient
  streams: Table[string, Stream[uint64]]
  started: Table[string, seq[Started]]
  attachedClients: seq[ConformanceClient]
  scenario: string
  failures = 0

proc fail(what: string) =
  stderr.writeLine(scenario & ": " & what)
  inc failures

proc lookUp(key: uint64): Text =
  if key == 101: raise newException(ValueError, "at 101, on purpose")
  if key mod 2 == 0: Text.ok("number " & $key) else: Text.err(key)

proc tell(words: seq[string], at: Option[uint32]): uint64 =
  uint64(words.join.len) + at.get(0'u32)

proc openClient(): ConformanceClient =
  ## Calls that are awaited have a host whose functions return futures.
  result = ConformanceClient.open(library)
  if isAsync:
    result.setHost(OracleAsync(
      lookUp: proc (key: uint64): Future[Text] {.async.} =
      await sleepAsync(0)
      return lookUp(key),
      tell: proc (words: seq[string], at: Option[uint32]): Future[uint64] {.async.} =
      return tell(words, at),
      nod: proc () {.async.} = await sleepAsync(0)))
  else:
    result.setHost(Oracle(lookUp: lookUp, tell: tell, nod: proc () = discard))

proc number(step: JsonNode, key: string, otherwise: int): int =
  if step.hasKey(key): step[key].getInt else: otherwise

proc checkEnding(step: JsonNode, error: ref ThalwegError): Problem =
  ## Compares an outcome with the expected one.
  let name = if error.isNil: "ok" else: $error.outcome
  let message = if error.isNil: "" else: error.msg
  let wanted = step{"ends"}
  var names: seq[string]
  if wanted.isNil: names = @[if step.hasKey("error"): "error" else: "ok"]
  elif wanted.kind == JArray: names = wanted.to(seq[string])
  else: names = @[wanted.getStr]
  if name notin names: return "another outcome: " & name & ": " & message
  if step{"message"}.getStr notin message: return "another message: " & message

proc checkError(step: JsonNode, error: ref ThalwegError, E: typedesc): Problem =
  ## The same for a function with an error type.
  if step.hasKey("error") and not error.isNil:
    if not (error of ServiceError[E]): return "no payload: " & error.msg
    if not same((ref ServiceError[E])(error).payload, step["error"]): return "another error"
  checkEnding(step, error)

proc checkPayload(step: JsonNode, error: ref ThalwegError): Problem =
  ## The same for any function.
  if error of ServiceError[Failure]: checkError(step, error, Failure)
  elif error of ServiceError[uint32]: checkError(step, error, uint32)
  elif error of ServiceError[MaybeCounter]: checkError(step, error, MaybeCounter)
  elif error of ServiceError[Feed]: checkError(step, error, Feed)
  elif step.hasKey("error") and not step["error"].isNil and step["error"].kind != JNull:
    "no payload: " & (if error.isNil: "ok" else: error.msg)
  else: checkEnding(step, error)

template tried(blocking, later: untyped): untyped =
  ## The result of an operation, in the mode of this run.
  if isAsync: waitFor(attempt later) else: attempt blocking

proc checkStream[T](stream: Stream[T], wanted: JsonNode): Problem =
  ## Reads a stream and compares it with what a step expects.
  let take = number(wanted, "take", high(int))
  var counts = [0, 0] # Elements, and records of the control lane.
  var isLast = not wanted.hasKey("last")
  while counts[0] < take:
    let most = min(take - counts[0], 256)
    let got = tried(stream.nextBatch(most), stream.nextBatchAsync(most))
    if not got.isOk:
      let problem = checkPayload(wanted, got.error)
      if problem != "": return problem
      break
    let batch = got.value
    if batch.len == 0:
      let problem = checkEnding(wanted, nil)
      if problem != "": return problem
      break
    for element in batch:
      let all = wanted{if batch.isControl: "controls" else: "elements"}
      let index = counts[ord(batch.isControl)]
      if not all.isNil and (index >= countOf(all) or not same(element, itemOf(all, index))):
        return "another element at " & $index
      if not batch.isControl:
        if index == 0 and wanted.hasKey("first") and not same(element, wanted["first"]):
          return "another first element"
        isLast = not wanted.hasKey("last") or same(element, wanted["last"])
      inc counts[ord(batch.isControl)]
  if counts[0] >= take: stream.close()
  let lost = int(stream.lost)
  if not isLast: return "another last element"
  for place, key in ["elements", "controls"]:
    if wanted.hasKey(key) and counts[place] != countOf(wanted[key]): return "other " & key
  if counts[0] != number(wanted, "count", counts[0]): return "another number of elements"
  if counts[0] + lost != number(wanted, "total", counts[0] + lost): return "another total"
  if ord(stream.gapReason) != number(wanted, "gap", ord(stream.gapReason)): return "another gap"

proc checkFuture[T](future: FutureValue[T], wanted: JsonNode): Problem =
  let got = tried(future.wait(), future.waitAsync())
  if not got.isOk: return checkPayload(wanted, got.error)
  if wanted.hasKey("elements") and not same(got.value, wanted["elements"][
      0]): return "another value"
  return checkEnding(wanted, nil)

proc checkResult[T](step: JsonNode, got: Result[T, ref ThalwegError],
    arguments, reply: string): Problem =
  ## Compares the result of a call with what its step expects.
  let isClosed = not got.isOk and got.error.outcome == Outcome.closed
  if step.hasKey("arguments") and not isClosed and arguments != unhex(step["arguments"].getStr):
    return "other arguments: " & toHex(arguments)
  if step.hasKey("reply") and reply != unhex(step["reply"].getStr):
    return "another reply: " & toHex(reply)
  if not got.isOk:
    return checkPayload(if step.hasKey("stream"): step["stream"] else: step, got.error)
  when T is Stream:
    if step.hasKey("stream"): return checkStream(got.value, step["stream"])
  elif T is FutureValue:
    if step.hasKey("stream"): return checkFuture(got.value, step["stream"])
  if step.hasKey("bind"):
    when T is Stream[uint64]: streams[step["bind"].getStr] = got.value
    elif T is Resource: resources[step["bind"].getStr] = got.value
  if step.hasKey("ok"):
    if not same(got.value, step["ok"]): return "another value"
  return checkEnding(step, nil)

proc cancelLater(argument: (CancelHandle, int)) {.thread.} =
  sleep(argument[1])
  argument[0].cancel()

proc perform(by: ConformanceClient, step: JsonNode, awaits: bool): Check =
  ## Makes the call of a step.
  let token = newCancelToken()
  var options = CallOptions()
  var timer: Thread[(CancelHandle, int)]
  if step.hasKey("timeout_ms"):
    options = within(initDuration(milliseconds = step["timeout_ms"].getInt))
  if step.hasKey("cancel_after_ms"):
    options.cancel = token
    createThread(timer, cancelLater, (token.handle, step["cancel_after_ms"].getInt))
  if step.hasKey("cancel_after_notices"):
    options.cancel = token
    var left = step["cancel_after_notices"].getInt
    options.onNotice = proc (elapsed: Duration) =
      dec left
      if left == 0: token.cancel()
  var check: Check
  lastReply = ""
  template use(blocking, later: untyped) =
    if awaits:
      let future = attempt later
      let arguments = lastArguments
      var reply: string
      future.addCallback(proc () = reply = lastReply)
      if step.hasKey("cancel_after_ms"): discard waitFor future
      check = proc (): Problem = checkResult(step, waitFor future, arguments, reply)
    else:
      let got = attempt blocking
      let (arguments, reply) = (lastArguments, lastReply)
      check = proc (): Problem = checkResult(step, got, arguments, reply)
  callByName(step["call"].getStr, by, step{"params"}, options, use)
  if step.hasKey("cancel_after_ms"): joinThread(timer)
  check

proc start(step: JsonNode) =
  ## Starts a call that is not awaited. Beside calls that block, it has an attached client.
  var by = client
  if not isAsync:
    by = ConformanceClient.attach(client.handle, 8)
    attachedClients.add by
  started.mgetOrPut(step["start"].getStr, @[]).add Started(check: perform(by, step, true), attached: by)

proc call(step: JsonNode) =
  let until = getMonoTime() + initDuration(milliseconds = number(step, "within_ms", 0))
  var problem: Problem
  while true:
    try: problem = perform(client, step, isAsync)()
    except Refused: problem = checkEnding(step, (ref ThalwegError)(outcome: Outcome.argument))
    if problem == "" or until < getMonoTime(): break
    GC_fullCollect() # What earlier calls left behind is closed.
  if problem != "": fail(step["call"].getStr & ": " & problem)

proc streamStep(step: JsonNode): Problem =
  ## An operation on a stored stream. A callback is replaced by reading.
  if step.hasKey("read"):
    let stream = streams[step["read"].getStr]
    streams.del step["read"].getStr
    result = checkStream(stream, step["stream"])
    stream.close()
  elif step.hasKey("tee"):
    streams[step["bind"].getStr] = streams[step["tee"].getStr].tee()
  elif step.hasKey("stats"):
    let stats = streams[step["stats"].getStr].stats
    var lost = 0'u64
    for count in stats.lost: lost += count
    for (key, count) in {"streams": stats.streams, "published": stats.published,
        "delivered": stats.delivered, "undelivered": stats.undelivered,
        "occupancy": stats.occupancy, "control": stats.control, "lost": lost}:
      if number(step, key, int(count)) != int(count): result = "other statistics: " & key

proc runSteps(steps: JsonNode) =
  ## Runs the steps up to the first one that fails.
  let before = failures
  for step in steps:
    if failures != before: return
    if step.hasKey("start"):
      for time in 1 .. number(step, "times", 1): start(step)
    elif step.hasKey("call"): call(step)
    elif step.hasKey("drop"):
      let name = step["drop"].getStr
      if name in resources: resources[name].close()
      else: streams[name].close()
      resources.del name
      streams.del name
    elif step.hasKey("await"):
      for one in started[step["await"].getStr]:
        let problem = one.check()
        if problem != "": fail(step["await"].getStr & ": " & problem)
      started.del step["await"].getStr
    elif step.hasKey("close"): client.close()
    elif step.hasKey("open"):
      client.close()
      client = openClient()
    elif step.hasKey("other"):
      swap(client, other)
      if client.isNil: client = openClient()
    elif step.hasKey("repeat"):
      for time in 1 .. step["repeat"].getInt: runSteps(step["steps"])
    else:
      let problem = streamStep(step)
      if problem != "": fail(problem)

isAsync = paramCount() > 3
let verdicts = newJArray()
for one in parseFile(paramStr(2)):
  let before = failures
  scenario = one["name"].getStr
  client = openClient()
  try: runSteps(one["steps"])
  except CatchableError as raised: fail(raised.msg & "\n" & raised.getStackTrace)
  client.close()
  if not other.isNil: other.close()
  for attached in attachedClients: attached.close()
  attachedClients.setLen 0
  other = nil
  started.clear()
  streams.clear()
  resources.clear()
  let verdict = if failures == before: "ok" else: "failed"
  verdicts.add %*{"name": scenario, "verdict": verdict}
let language = if isAsync: "Nim async" else: "Nim"
writeFile(paramStr(3), $ %*{"language": language, "version": NimVersion, "scenarios": verdicts})
echo "conformance: ", verdicts.len, " scenarios, ", failures, " failures"
quit(if failures > 0: 1 else: 0)
