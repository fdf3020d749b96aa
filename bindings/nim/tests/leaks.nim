## Opens 1,000 clients, makes 100,000 calls, and compares the memory and the descriptors:
## the library is in LIBRARY of the environment.

import std/[asyncdispatch, options, os, strutils]
import conformance

let library = getEnv("LIBRARY")

proc descriptors(): int =
  for entry in walkDir("/proc/self/fd"): inc result

proc resident(): int =
  ## In KiB.
  for line in lines("/proc/self/status"):
    if line.startsWith("VmRSS:"): return parseInt(line.splitWhitespace()[1])

proc useClient() =
  ## Leaves a client, a resource, a stream and a future to their finalizers.
  let client = ConformanceClient.open(library)
  doAssert client.echoString("text") == "text"
  let counter = client.newCounter(1)
  let stream = client.endless()
  discard stream.nextBatch(1)
  doAssert waitFor(client.echoU8Async(1)) == 1
  doAssert counter.value == 1

proc useCalls(client: ConformanceClient, count: int) =
  let point = Point(x: 1, y: 2)
  for number in 0 ..< count:
    case number mod 4
    of 0: doAssert client.echoPoint(point) == point
    of 1: doAssert client.echoStrings(@["a", "b"]).len == 2
    of 2: doAssert not attempt(client.fail(some(Failure(kind: FailureKind.unknown)))).isOk
    else: doAssert waitFor(client.echoU64Async(uint64(number))) == uint64(number)

for turn in 1 .. 50: useClient()
GC_fullCollect()
let client = ConformanceClient.open(library)
client.useCalls(10_000)
let (memory, files) = (resident(), descriptors())
for turn in 1 .. 1000: useClient()
GC_fullCollect()
client.useCalls(100_000)
GC_fullCollect()
doAssert ConformanceClient.open(library).isOpen # Closes the ports that finalizers have left.
let (memoryAfter, filesAfter) = (resident(), descriptors())
echo "memory: ", memory, " KiB, then ", memoryAfter, " KiB; descriptors: ", files, ", then ", filesAfter
# refc looks for references on the stack, and may keep a few clients.
doAssert filesAfter <= files + 8
doAssert memoryAfter <= memory + 4096
