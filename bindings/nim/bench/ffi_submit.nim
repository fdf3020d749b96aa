## nim-ffi's `bench_ffi_submit` in Nim: K threads submit calls that do nothing to one instance.
##
##   ffi_submit LIBRARY      the library of the lab's service
##
## The time is that from the start until the last thread has submitted its last call; the completions
## are not part of it. The service accepts 4096 calls that wait for it: a call that is refused is repeated,
## which takes time, and counted. Each count of threads runs FFI_SUBMIT_ITERS times, and the median
## counts. Every call must end as `ok`, once. The knobs are environment variables:
##
## | knob | default | |
## | --- | --- | --- |
## | FFI_SUBMIT_PER_THREAD | 20000 | calls of each thread, at most 65536, the largest port |
## | FFI_SUBMIT_ITERS | 5 | repetitions |
## | FFI_SUBMIT_THREADS | 1,2,4,8 | at least two counts of threads |
## | FFI_SCALING_GATE | 1 | 0: without the gate |
##
## The gate: the last count of threads submits at least 1.5 times as fast as the first. Fewer than four
## processors cannot judge it.

import std/[algorithm, asyncdispatch, cpuinfo, monotimes, os, posix, strformat, strutils]
from std/times import initDuration
import lab

type Producer = object
  handle: ClientHandle
  calls: int
  ready, begun: ptr int # Threads that are ready; 1: the threads may begin.
  doneAt: int64
  completed, refused: int
  failure: array[200, char]

const
  settle = 30_000       # Milliseconds for the completions, as in nim-ffi.
  requiredScaling = 1.5 # As in nim-ffi: above what a lock reaches.
  judgingProcessors = 4

proc submitAll(client: LabClient, producer: ptr Producer): seq[Future[void]] =
  result = newSeqOfCap[Future[void]](producer.calls)
  discard atomicInc(producer.ready[])
  while atomicLoadN(producer.begun, ATOMIC_ACQUIRE) == 0: cpuRelax()
  while result.len < producer.calls:
    let call = client.nopAsync()
    if call.failed and (ref ThalwegError)(call.readError).outcome == Outcome.overloaded:
      inc producer.refused
      discard sched_yield()
    else:
      result.add call
  producer.doneAt = getMonoTime().ticks

proc produce(producer: ptr Producer) {.thread.} =
  let client = LabClient.attach(producer.handle, producer.calls)
  let calls = client.submitAll(producer)
  let until = getMonoTime() + initDuration(milliseconds = settle)
  for call in calls:
    while not call.finished and getMonoTime() < until: poll(100)
    if call.finished and not call.failed: inc producer.completed
    elif call.failed:
      let text = call.readError.msg
      copyMem(addr producer.failure[0], text.cstring, min(text.len, producer.failure.len - 1))
  client.close()

proc run(threads, perThread: int): (float, int) =
  ## Submissions per second, and how many calls were refused.
  let client = LabClient.open(paramStr(1))
  var ready, begun = 0
  var producers = newSeq[Producer](threads)
  var running = newSeq[Thread[ptr Producer]](threads)
  for number in 0 ..< threads:
    producers[number] = Producer(handle: client.handle, calls: perThread, ready: addr ready,
      begun: addr begun)
    createThread(running[number], produce, addr producers[number])
  while atomicLoadN(addr ready, ATOMIC_ACQUIRE) < threads: sleep(1)
  let startedAt = getMonoTime().ticks
  atomicStoreN(addr begun, 1, ATOMIC_RELEASE)
  joinThreads(running)
  var (doneAt, completed, refused) = (startedAt, 0, 0)
  for producer in producers:
    doneAt = max(doneAt, producer.doneAt)
    completed += producer.completed
    refused += producer.refused
    if producer.failure[0] != '\0': quit("a call failed: " & $cast[cstring](
        unsafeAddr producer.failure[0]))
  if completed != threads * perThread:
    quit(&"{completed} of {threads * perThread} calls ended within {settle} ms")
  client.close()
  (float(completed) * 1e9 / float(doneAt - startedAt), refused)

proc median(samples: seq[float]): float =
  var sorted = samples
  sort(sorted)
  sorted[sorted.len div 2]

proc numbers(name, default: string, range: Slice[int]): seq[int] =
  for word in getEnv(name, default).split(','):
    try: result.add parseInt(word.strip)
    except ValueError: quit(name & ": not a number: " & word, 2)
    if result[^1] notin range: quit(&"{name}: {word} is not in {range}", 2)

let perThread = numbers("FFI_SUBMIT_PER_THREAD", "20000", 1 .. 65536)[0]
let iterations = numbers("FFI_SUBMIT_ITERS", "5", 1 .. 1000)[0]
let counts = numbers("FFI_SUBMIT_THREADS", "1,2,4,8", 1 .. 256)
if counts.len < 2: quit("FFI_SUBMIT_THREADS: at least two numbers", 2)

echo "| threads | submissions/s | of the first | refused, of each accepted |\n| --- | --- | --- | --- |"
var rates: seq[float]
for threads in counts:
  var samples: seq[float]
  var refused = 0
  for time in 1 .. iterations:
    let (rate, count) = run(threads, perThread)
    samples.add rate
    refused += count
  rates.add median(samples)
  let share = float(refused) / float(iterations * threads * perThread)
  echo &"| {threads} | {rates[^1] / 1e6:.2f} M | {rates[^1] / rates[0]:.2f} | {share:.2f} |"
let scaling = rates[^1] / rates[0]
if getEnv("FFI_SCALING_GATE") == "0": echo "gate: off"
elif countProcessors() < judgingProcessors: echo &"gate: not judged: {countProcessors()} processors"
elif scaling < requiredScaling: quit(&"gate: missed: {scaling:.2f} < {requiredScaling}")
else: echo &"gate: met: {scaling:.2f} >= {requiredScaling}"
