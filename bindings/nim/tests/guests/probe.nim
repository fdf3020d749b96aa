## A guest of the tests, which also misbehaves on request.

import std/[algorithm, posix]
import probe_guest

# Read by the tests through dlsym.
var
  probeStates {.exportc: "probe_states", dynlib.}: clong
  probeCells {.exportc: "probe_cells", dynlib.}: clong
  probeCancels {.exportc: "probe_cancels", dynlib.}: clong
  probeThreads {.exportc: "probe_threads", dynlib.}: clong # Streams that are being written.
  refuses: bool
  loadedBy: Pid # A process, or 0. A forked child opens the library again.

type
  Service = ref object
    sum: uint64

  CellObj = object
    value: uint64
    isCounted: bool
  Cell = ref CellObj

proc `=destroy`(cell: var CellObj) =
  if cell.isCounted: dec probeCells

proc newService(): Service {.thalweg.} =
  if refuses:
    refuses = false
    raise newException(ValueError, "the service was told not to start")
  inc probeStates
  Service()

proc close(self: Service) {.thalweg.} =
  dec probeStates

proc load() {.thalweg.} =
  doAssert loadedBy != getpid(), "the guest is loaded already"
  loadedBy = getpid()

proc unload() {.thalweg.} =
  doAssert loadedBy == getpid()
  loadedBy = Pid(0)

proc newCell(value: uint64): Cell {.thalweg.} =
  inc probeCells
  Cell(value: value, isCounted: true)

proc get(self: Cell): uint64 {.thalweg.} =
  self.value

proc add(self: Cell, value: uint64): uint64 {.thalweg.} =
  self.value += value
  self.value

proc cellOpen(cell: Cell): uint64 {.thalweg.} =
  cell.value

proc add(self: Service, number: uint64): uint64 {.thalweg.} =
  self.sum += number
  self.sum

proc echo(self: Service, text: string): string {.thalweg.} =
  if text.len > 100000:
    raise newServiceError(Trouble(kind: TroubleKind.tooLong, tooLong: uint32(text.len)))
  text

proc moveAll(points: seq[Point], by: Point, colors: Option[Colors]): seq[Point] {.thalweg.} =
  let isFlat = colors.isSome and ColorsFlag.blue in colors.get
  for point in points.reversed:
    result.add Point(name: point.name, x: point.x + by.x, y: if isFlat: 0'i32 else: point.y + by.y)

proc bytes(bytes: seq[byte]): seq[byte] {.thalweg.} =
  bytes

proc nothing() {.thalweg.} =
  discard

proc later(self: Service, ms: uint32, number: uint64, call: Call): Future[uint64] {.async, thalweg.} =
  let sleep = sleepAsync(int(ms))
  await sleep or call.cancelled
  if not sleep.finished:
    doAssert call.isCancelled
    inc probeCancels
  elif number == 0:
    raise newException(ValueError, "there is no number")
  return number

proc numbers(self: Service, count: uint64, writer: RecordWriter[uint64]) {.async, thalweg.} =
  inc probeThreads
  defer: dec probeThreads
  var next = 0'u64
  while next < count:
    var some: seq[uint64]
    while some.len < 100 and next < count:
      some.add next
      inc next
    await writer.send(some)

proc points(self: Service, count, failing: uint32, writer: RecordWriter[Point]) {.async, thalweg.} =
  inc probeThreads
  defer: dec probeThreads
  let isMalformed = failing == high(uint32) # The last point, in a group that is not complete.
  if isMalformed: writer.setBatch(4)
  for number in 1'u32 .. count:
    if number == failing:
      raise newServiceError(Trouble(kind: TroubleKind.because, because: "it was asked to"))
    let name = if isMalformed and number == count: "caf\xe9" else: "point " & $number
    await writer.send(Point(name: name, x: int32(number), y: -int32(number)))

proc soon(value: uint32, writer: RecordWriter[uint32]) {.async, thalweg.} =
  await sleepAsync(1)
  await writer.send(value)

proc misbehave(self: Service, how: uint32, call: Call): Future[string] {.thalweg.} =
  result = newFuture[string]("misbehave")
  case how
  of 1: result.complete("caf\xe9") # Not UTF-8.
  of 2: return nil
  of 4: # No answer.
    call.cancelled.addCallback(proc () {.gcsafe.} = inc probeCancels)
  of 5: raise newException(ValueError, "it went wrong\n  at probe.nim")
  of 6:
    let empty: seq[int] = @[]
    result.complete($empty[int(how)])
  of 7: raise newError(Outcome.overloaded, "there is too much to do")
  of 8: raise newError(Outcome.shutDown, "an outcome that a guest cannot cause")
  of 9:
    refuses = true
    result.complete("the next service does not start")
  of 10: result.fail(newException(IOError, "a future that failed"))
  else: raise newServiceError(Trouble(kind: TroubleKind.because, because: "no such case"))

exportGuest(Service, Cell)
