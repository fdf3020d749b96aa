## Implements the golden file of the emitter, whose names are odd.

import odd_guest

type
  Service = ref object
  OldEcho = ref object
  Echo = ref object
    call: string

proc newEcho(self: uint8, call: string): Result[Echo, Color] {.thalweg.} =
  if self == 0: err(Color.darkGreen) else: ok(Echo(call: call))

proc close(self: Echo): seq[string] {.thalweg.} =
  if self.call == "": raise newServiceError(Writer2(kind: Writer2Kind.one, one: 1))
  @[self.call]

proc open(self, other, mine: Echo) {.thalweg.} = discard

proc echoBoth(service: Service): Echo {.thalweg.} = Echo()

proc load(writer: Message2): Message2 {.thalweg.} = writer

proc close(value: Writer2, rights: Rights): (Writer2, Rights, Color) {.thalweg.} =
  (value, rights, Color.red)

proc sing(service: Service, r: Result[uint8, string], call: Call): Future[Result[uint8, Color]] {.
    async, thalweg.} =
  return if r.isOk: ok(r.value) else: err(Color.red)

proc singAsync(): Result[Nothing, Nothing] {.thalweg.} = err(Nothing())

proc ticks(service: Service, count: uint32, ticks: RecordWriter[Nothing]) {.async, thalweg.} =
  for _ in 0 ..< int(count): await ticks.send(Nothing())

proc rows(rows: RecordWriter[(uint8, string)]): Future[Result[Nothing, Color]] {.async, thalweg.} =
  await rows.send((1'u8, "one"))
  return err(Color.red)

var kept: RecordWriter[seq[Message2]]

proc last(writer: RecordWriter[seq[Message2]]): Result[Nothing, Nothing] {.thalweg.} =
  kept = writer # Ended later.
  ok(Nothing())

proc hold(value: Holders[OldEcho, Echo], other: Option[(Kept[OldEcho], )]): Result[Holder[OldEcho,
    Echo], Kept[OldEcho]] {.thalweg.} =
  if value.len == 0: return err(Kept[OldEcho](kind: KeptKind.old, old: OldEcho()))
  ok(value[0])

proc read(writer: StreamReader[(uint8, string)], m: StreamReader[Message2], last: FutureReader[
    Nothing], call: Call): Future[uint8] {.async, thalweg.} =
  await call.`end`()
  for one in await call.cancelled2(1, "args"): result += one[0]

exportGuest(Service, OldEcho, Echo)
