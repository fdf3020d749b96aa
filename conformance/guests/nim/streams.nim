## The functions that return streams and futures.

import std/strutils
import conformance_guest, state

proc code(number: uint32): ref ServiceError[Failure] =
  newServiceError(Failure(kind: FailureKind.code, code: number))

template records(writer, count: untyped, record: untyped) =
  ## Sends a record for each `number` below `count`.
  var number {.inject.} = typeof(count)(0)
  while number < count:
    await writer.send(record)
    inc number

proc count*(first, count: uint64, writer: RecordWriter[uint64]) {.async, thalweg.} =
  writer.records(min(count, high(uint64) - first), first + number)

proc items*(count: uint64, writer: RecordWriter[Item]) {.async, thalweg.} =
  let tags = @["tag 0", "tag 1"]
  for number in 0'u64 ..< count:
    var item = Item(number: number, name: "item " & $number, tags: tags[0 ..< int(number mod 3)])
    if number mod 2 == 0:
      var blob = newSeq[byte](number mod 7)
      for one in blob.mitems: one = byte(number and 0xff)
      item.blob = some(blob)
    await writer.send(item)

proc latest*(count: uint64, writer: RecordWriter[uint64]) {.async, thalweg.} =
  writer.records(count, number)

proc breaks*(after: uint64, writer: RecordWriter[uint64]) {.async, thalweg.} =
  writer.records(after, number)
  raise newException(ValueError, "broken after " & $after)

proc endless*(self: Service, writer: RecordWriter[uint64]) {.async, thalweg.} =
  inc self.running[]
  defer: dec self.running[]
  writer.records(high(uint64), number)

proc running*(self: Service): uint32 {.thalweg.} =
  self.running[]

proc sampleAt(number: uint32): Sample =
  let (i, isEven) = (int32(number), number mod 2 == 0)
  result = Sample(number: number, at: Point(x: i, y: -i),
    all: Scalars(aBool: isEven, aU64: uint64(number) shl 32, aU8: uint8(number and 0xff),
      aU16: uint16(number and 0xffff), aS8: cast[int8](number), aU32: number, aS16: cast[int16](-i),
      aF64: float64(number) / 2, aChar: Rune(ord('a') + i mod 26), aS64: -int64(i),
      aF32: float32(number) / 4, aS32: -i),
    color: Color(number mod 3), days: {if isEven: DaysFlag.monday else: DaysFlag.workday},
    pair: (uint8(number and 0xff), uint64(number)))
  if isEven:
    result.weight = some(float64(number))
    result.name = some("sample " & $number)
  for corner in 0'i32 ..< i mod 4: result.corners.add Point(x: i, y: corner)

proc samples*(count: uint32, writer: RecordWriter[Sample]) {.async, thalweg.} =
  writer.records(count, sampleAt(number))

proc shapes*(count: uint32, writer: RecordWriter[Shape]) {.async, thalweg.} =
  writer.records(count, Shape(kind: ShapeKind.circle, circle: float64(number)))

proc later*(milliseconds: uint32, text: string, writer: RecordWriter[string]) {.async, thalweg.} =
  await sleepAsync(int(milliseconds))
  await writer.send(text)

proc signal*(milliseconds: uint32, writer: RecordWriter[Nothing]) {.async, thalweg.} =
  await sleepAsync(int(milliseconds))
  await writer.send(Nothing())

proc neverComes*(message: Option[string], writer: RecordWriter[Point]) {.async, thalweg.} =
  writer.open()
  raise newException(ValueError, message.get("the service dropped the future without a value"))

proc failsToCome*(code: uint32, writer: RecordWriter[Point]) {.async, thalweg.} =
  writer.open()
  raise code(code)

proc ticks*(self: Service, writer: RecordWriter[uint64]) {.thalweg.} =
  self.ticking.add Ticking(writer: writer)

proc ticked(one: var Ticking, count: uint32): bool =
  ## Whether the stream has taken the next numbers.
  try:
    for _ in 1'u32 .. count:
      if not one.writer.trySend(one.next): return false
      inc one.next
    true
  except ThalwegError:
    false

proc tick*(self: Service, count: uint32): uint32 {.thalweg.} =
  var reading: seq[Ticking]
  for one in self.ticking.mitems:
    if one.ticked(count): reading.add one
  self.ticking = reading
  uint32(reading.len)

proc endTicks*(self: Service) {.thalweg.} =
  for one in self.ticking: one.writer.finish()
  self.ticking = @[]

proc writeAtOnce(count: uint64, writer: RecordWriter[uint64]) =
  ## Writes the numbers together, so that the reader cannot keep up.
  var numbers: seq[uint64]
  for number in 0'u64 ..< count: numbers.add number
  discard writer.trySend(numbers)
  writer.finish()

proc dropsNewest*(count: uint64, writer: RecordWriter[uint64]) {.thalweg.} =
  writeAtOnce(count, writer)

proc dropsOldest*(count: uint64, writer: RecordWriter[uint64]) {.thalweg.} =
  writeAtOnce(count, writer)

proc refuses*(count: uint64, writer: RecordWriter[uint64]) {.thalweg.} =
  writeAtOnce(count, writer)

proc beats*(count: uint64, writer: RecordWriter[Nothing]) {.async, thalweg.} =
  writer.records(count, Nothing())

proc bits*(count: uint32, writer: RecordWriter[bool]) {.async, thalweg.} =
  writer.records(count, number mod 2 == 1)

proc letters*(count: uint32, writer: RecordWriter[Rune]) {.async, thalweg.} =
  const letters = [Rune('a'), Rune(0xdf), Rune(0x2603), Rune(0x10348)]
  writer.records(count, letters[number mod 4])

proc maybes*(count: uint32, writer: RecordWriter[Option[string]]) {.async, thalweg.} =
  writer.records(count, if number mod 2 == 0: some($number) else: none(string))

proc couples*(count: uint32, writer: RecordWriter[(uint8, string)]) {.async, thalweg.} =
  writer.records(count, (uint8(number and 0xff), $number))

proc rows*(count: uint32, writer: RecordWriter[seq[uint16]]) {.async, thalweg.} =
  let row = @[0'u16, 1, 2]
  writer.records(count, row[0 ..< int(number mod 4)])

proc outcomes*(count: uint32, writer: RecordWriter[Result[uint32, string]]) {.async, thalweg.} =
  type Outcomes = Result[uint32, string]
  writer.records(count, if number mod 2 == 0: Outcomes.ok(number) else: Outcomes.err("no " & $number))

proc stops*(count: uint64, how: string, writer: RecordWriter[uint64]) {.async, thalweg.} =
  writer.open() # Also without a number, the stream fails and not the call.
  writer.records(count, number)
  case how
  of "finish": discard
  of "fail": raise code(uint32(count))
  else: # A guest's stream has one writer.
    raise newError(Outcome.guestLost, "a writer was dropped without finish()")

proc rowsOf*(count, size: uint32, writer: RecordWriter[string]) {.async, thalweg.} =
  writer.records(count, "x")
  try:
    await writer.send(repeat('x', int(size)))
    await writer.send("x")
  except ThalwegError as failed:
    raise newError(Outcome.guestLost, "a send failed: " & $failed.outcome & ": " & failed.msg)
