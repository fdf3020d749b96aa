## The state of a client, and the resources.

import conformance_guest

type
  Counted = object
    ## Is counted while it exists.
    count: ref uint32

  Service* = ref object
    counters, running*, waiting*: ref uint32
    turn: Future[void] # Ended by `letGo`.
    ticking*: seq[Ticking]

  Ticking* = object
    writer*: RecordWriter[uint64]
    next*: uint64

  Counter* = ref object
    value*: uint64
    counted: Counted

  Even* = ref object
    half: uint32

  Scale* = ref object
    by: uint64
    service: Service

proc `=copy`(to: var Counted, it: Counted) {.error.}

proc `=destroy`(it: var Counted) =
  if it.count != nil: dec it.count[]
  `=destroy`(it.count)

proc newService*(): Service {.thalweg.} =
  Service(counters: new uint32, running: new uint32, waiting: new uint32, turn: newFuture[void]("turn"))

proc newCounter*(self: Service, start: uint64): Counter {.thalweg.} =
  inc self.counters[]
  Counter(value: start, counted: Counted(count: self.counters))

proc add*(self: Counter, amount: uint64): uint64 {.thalweg.} =
  self.value += amount
  self.value

proc value*(self: Counter): uint64 {.thalweg.} =
  self.value

proc valueLater*(self: Counter): Future[uint64] {.async, thalweg.} =
  return self.value

proc steps*(self: Counter, count: uint32, writer: RecordWriter[uint64]) {.async, thalweg.} =
  for _ in 1'u32 .. count:
    inc self.value
    await writer.send(self.value)

proc counterSum*(self: Service, left, right: Counter): Counter {.thalweg.} =
  self.newCounter(left.value + right.value)

proc counterFinish*(counter: Counter): uint64 {.thalweg.} =
  counter.value

proc counters*(self: Service): uint32 {.thalweg.} =
  self.counters[]

proc newEven*(value: uint32): Even {.thalweg.} =
  if value mod 2 == 1: raise newServiceError(Failure(kind: FailureKind.code, code: value))
  Even(half: value div 2)

proc half*(self: Even): uint32 {.thalweg.} =
  self.half

proc newScale*(self: Service, by: uint64): Scale {.thalweg.} =
  Scale(by: by, service: self)

proc apply*(self: Scale, counter: Counter): Counter {.thalweg.} =
  self.service.newCounter(counter.value * self.by)

# Resources inside of values

proc giveCounters*(self: Service, start: uint64, count: uint32): seq[Counter] {.thalweg.} =
  for number in 0'u64 ..< uint64(count): result.add self.newCounter(start + number)

proc total*(counters: seq[Counter]): uint64 {.thalweg.} =
  for counter in counters: result += counter.value

proc firstOf*(counter: Option[Counter]): Option[uint64] {.thalweg.} =
  counter.map(value)

proc swap*(value: Pair[Counter]): Future[Result[Pair[Counter], MaybeCounter[Counter]]] {.async,
    thalweg.} =
  if value.right.isNone:
    return err(MaybeCounter[Counter](kind: MaybeCounterKind.one, one: value.left))
  return ok(Pair[Counter](name: value.name, left: value.right.get, right: some(value.left)))

proc refuse*(value: MaybeCounter[Counter]) {.thalweg.} =
  raise newServiceError(value)

# Calls that wait

proc waits(self: Service, future: Future[void], call: Call) {.async.} =
  inc self.waiting[]
  await future or call.cancelled
  dec self.waiting[]

proc never*(self: Service, call: Call): Future[void] {.thalweg.} =
  self.waits(newFuture[void]("never"), call)

proc limited*(self: Service, call: Call): Future[void] {.thalweg.} =
  self.waits(sleepAsync(60_000), call)

proc heldUp*(self: Service, call: Call): Future[void] {.thalweg.} =
  self.waits(self.turn, call)

proc letGo*(self: Service) {.thalweg.} =
  let ended = self.turn
  self.turn = newFuture[void]("turn")
  ended.complete()

proc waiting*(self: Service): uint32 {.thalweg.} =
  self.waiting[]

proc sleep*(milliseconds: uint32, call: Call): Future[uint32] {.async, thalweg.} =
  await sleepAsync(int(milliseconds)) or call.cancelled
  return milliseconds

proc doze*(milliseconds: uint32): uint32 {.thalweg.} =
  raise newError(Outcome.wouldPark, "a guest does not wait")
