## The lab's service as a guest in Nim: the same functions as in lab_guest.c. A call of another ends as
## `guestLost`.

import lab_guest

type Service = ref object
  sum: uint64

proc leftOut(): ref ThalwegError = newError(Outcome.guestLost, "the guest has left it out")

proc nop() {.thalweg.} = discard

proc nopAsync() {.thalweg.} = discard

proc tally(self: Service, amount: uint64): uint64 {.thalweg.} =
  self.sum += amount
  self.sum

proc echo(data: seq[byte]): seq[byte] {.thalweg.} = data

proc events(count: uint64, batch: uint32, writer: RecordWriter[Event]) {.async, thalweg.} =
  let contract = Contract(symbol: 0x4d524554, expiration: 20261218, security: 2, strike: 150.0,
    isCall: 1, exchange: 5, id: 77)
  var event = Event(kind: EventKind.quote)
  event.quote = Quote(contract: contract, date: 20261124, bidSize: 10, bidExchange: 3,
    bidCondition: 50, askExchange: 4, askCondition: 50)
  writer.setBatch(int(batch))
  for number in 0'u64 ..< count:
    let small = int32(number and 0xffff)
    event.quote.number = number
    event.quote.bid = float64(small)
    event.quote.ask = event.quote.bid + 0.25
    event.quote.msOfDay = small
    event.quote.askSize = small xor 7
    await writer.send(event)

proc ticks(count: uint64, batch: uint32, writer: RecordWriter[Tick]) {.async, thalweg.} =
  var ticks: seq[Tick]
  for number in 0'u64 ..< count:
    ticks.add Tick(number: number, bid: number, ask: number + 1)
    if uint32(ticks.len) >= batch or number + 1 == count:
      await writer.send(ticks)
      ticks.setLen 0

proc generate(count: uint64, writer: RecordWriter[Match]) {.thalweg.} =
  raise leftOut()

proc eventsReserved(count: uint64, writer: RecordWriter[Event]) {.thalweg.} =
  raise leftOut()

proc heartbeat(count, periodUs: uint64, writer: RecordWriter[Tick]) {.thalweg.} =
  raise leftOut()

proc pulses(count: uint64, batch: uint32, writer: RecordWriter[Pulse]) {.thalweg.} =
  raise leftOut()

proc feed(count: uint64, batch, writers, tails: uint32, perS: uint64,
    writer: RecordWriter[Event]) {.thalweg.} =
  raise leftOut()

proc feedAtOnce(count: uint64, batch, writers, tails: uint32, perS: uint64,
    writer: RecordWriter[Event]) {.thalweg.} =
  raise leftOut()

proc eventsIn256(count: uint64, batch: uint32, writer: RecordWriter[Event]) {.thalweg.} =
  raise leftOut()

proc eventsIn1024(count: uint64, batch: uint32, writer: RecordWriter[Event]) {.thalweg.} =
  raise leftOut()

proc parity(a, b: int64, x: float64): bool {.thalweg.} =
  raise leftOut()

proc payload(data: seq[byte]): bool {.thalweg.} =
  raise leftOut()

proc parities(count: uint64, writer: RecordWriter[Scalars]) {.thalweg.} =
  raise leftOut()

proc payloads(count: uint64, size: uint32, writer: RecordWriter[BytesPayload]) {.thalweg.} =
  raise leftOut()

exportGuest(Service)
