## The line protocol of the lab (src/child.rs), and blocks of operations that are timed one by one.

import std/[asyncdispatch, os, posix, strutils]
from std/monotimes import getMonoTime, ticks

type Numbers* = array[3, int] ## The numbers of a line, or 0.

proc nowNs*(): int64 =
  ## Nanoseconds of CLOCK_MONOTONIC.
  getMonoTime().ticks

proc answer*(latencies: seq[int64]) =
  echo "{\"latencies\": [", latencies.join(", "), "]}"

proc answer*(ns: int64, records: int, checksum: uint64) =
  echo "{\"ns\": ", ns, ", \"records\": ", records, ", \"checksum\": ", checksum, "}"

proc pause*(us: int) =
  ## Stops this thread.
  var length = Timespec(tv_sec: posix.Time(us div 1_000_000), tv_nsec: us mod 1_000_000 * 1000)
  if us > 0: discard nanosleep(length, length)

template timeEach*(numbers: Numbers, operation: untyped) =
  ## Times COUNT operations one by one, after UNCOUNTED more, each after a pause of PAUSE_US.
  let (count, uncounted, pauseUs) = (numbers[0], numbers[1], numbers[2])
  var latencies = newSeq[int64](count)
  for number in 1 .. uncounted: operation
  for index in 0 ..< count:
    pause(pauseUs)
    let began = nowNs()
    operation
    latencies[index] = nowNs() - began
  answer(latencies)

proc timeAwaits*[T](numbers: Numbers, operation: proc (): Future[T]) {.async.} =
  ## The same for operations whose futures are awaited.
  when T is void:
    timeEach(numbers, await operation())
  else:
    timeEach(numbers):
      discard await operation()

var cpuSetSize {.importc: "sizeof(cpu_set_t)", header: "<sched.h>", nodecl.}: csize_t

type CpuSet {.importc: "cpu_set_t", header: "<sched.h>", bycopy.} = object

proc zero(set: ptr CpuSet) {.importc: "CPU_ZERO", header: "<sched.h>".}
proc add(cpu: csize_t, set: ptr CpuSet) {.importc: "CPU_SET", header: "<sched.h>".}
proc setAffinity(thread: cint, size: csize_t, set: ptr CpuSet): cint {.importc: "sched_setaffinity",
    header: "<sched.h>".}

proc moveCaller() =
  ## Moves this thread to its own processor if the lab asks for it. All other threads were started
  ## before and stay where they are.
  let cpu = getEnv("LAB_CALLER_CPU")
  if cpu == "": return
  var only: CpuSet
  zero(addr only)
  add(csize_t(parseInt(cpu)), addr only)
  if setAffinity(0, cpuSetSize, addr only) != 0: raiseOSError(osLastError(), "moveCaller")

proc serve*(run: proc (command: string, numbers: Numbers)) =
  ## Answers the lines of standard input.
  moveCaller()
  echo "{\"ready\": true}"
  flushFile(stdout)
  for line in lines(stdin):
    let words = line.split(' ')
    var numbers: Numbers
    for index in 1 ..< words.len: numbers[index - 1] = parseInt(words[index])
    run(words[0], numbers)
    flushFile(stdout)
