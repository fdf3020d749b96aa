## A guest of the tests that reads streams and calls its host.

import inputs_guest

type Service = ref object
  read: seq[uint64]
  late: uint32

var kept: seq[StreamReader[uint64]]

proc keep(numbers: StreamReader[uint64]) {.thalweg.} =
  kept.add numbers

proc sum(numbers: StreamReader[uint64]): Future[uint64] {.async, thalweg.} =
  while true:
    let number = await numbers.receive()
    if number.isNone: break
    result += number.get

proc receiveTwice(numbers: StreamReader[uint64]): Future[string] {.async, thalweg.} =
  let first = numbers.receive()
  try:
    discard await numbers.receive()
  except ThalwegError as failed:
    result = failed.msg
  discard await first

proc closeEarly(numbers: StreamReader[uint64]): Future[bool] {.async, thalweg.} =
  let number = numbers.receive()
  await sleepAsync(5)
  numbers.close()
  return (await number).isNone and (await numbers.receive()).isNone

proc readAll(self: Service, numbers: StreamReader[uint64]) {.async.} =
  try:
    while true:
      let number = await numbers.receive()
      if number.isNone: break
      self.read.add number.get
  except ThalwegError:
    discard # The client has gone.

proc readLater(self: Service, numbers: StreamReader[uint64]) {.thalweg.} =
  asyncCheck self.readAll(numbers)

proc read(self: Service): seq[uint64] {.thalweg.} =
  self.read

proc firstTwice(numbers: StreamReader[uint64], writer: RecordWriter[uint64]) {.async, thalweg.} =
  let number = await numbers.receive()
  for _ in 1 .. 2: await writer.send(number.get)

proc ignore(text: FutureReader[string], ms: uint32, call: Call) {.async, thalweg.} =
  await sleepAsync(int(ms)) or call.cancelled

proc forward(ms: uint32, call: Call): Future[uint32] {.thalweg.} =
  call.ask(ms)

proc askOften(count, ms: uint32, call: Call): Future[uint32] {.async, thalweg.} =
  var answers: seq[Future[uint32]]
  for _ in 1'u32 .. count: answers.add call.ask(ms)
  for answer in answers:
    if await(answer) == ms: inc result

proc ring(self: Service, call: Call) {.async.} =
  await sleepAsync(10) # The call is answered.
  try: await call.ring()
  except ThalwegError as failed: self.late = uint32(failed.outcome)

proc ringLater(self: Service, call: Call): Future[uint32] {.async, thalweg.} =
  await call.ring()
  asyncCheck self.ring(call)

proc late(self: Service): uint32 {.thalweg.} =
  self.late

exportGuest(Service)
