## The functions that read streams and futures or call the host.

import conformance_guest, state

template receiveAll(reader, element, body: untyped) =
  ## Runs `body` with each `element` of a stream. An end that is not regular raises its outcome.
  while true:
    let received = await reader.receive()
    if received.isNone: break
    let element = received.get
    body

proc sumOf*(numbers: StreamReader[uint64]): Future[Result[(uint64, uint64), uint32]] {.async,
    thalweg.} =
  var sum = (0'u64, 0'u64)
  try:
    numbers.receiveAll(number): sum = (sum[0] + 1, sum[1] + number)
  except ThalwegError as ended:
    return err(uint32(ended.outcome))
  return ok(sum)

proc namesOf*(items: StreamReader[Item]): Future[string] {.async, thalweg.} =
  items.receiveAll(item): result.add item.name

proc firstNumbers*(count: uint32, numbers: StreamReader[uint64]): Future[seq[uint64]] {.async,
    thalweg.} =
  while result.len < int(count):
    let number = await numbers.receive()
    if number.isNone: break
    result.add number.get
  numbers.close()

proc wordsFirst*(numbers: StreamReader[uint64], words: StreamReader[string]): Future[(string,
    uint64)] {.async, thalweg.} =
  words.receiveAll(word): result[0].add word
  numbers.receiveAll(number): result[1] += number

proc addAll*(counter: Counter, amounts: StreamReader[uint64]): Future[uint64] {.async, thalweg.} =
  amounts.receiveAll(amount): counter.value += amount
  return counter.value

proc hear*(text: FutureReader[string]): Future[Result[string, uint32]] {.async, thalweg.} =
  try: return ok(await text.receive())
  except ThalwegError as ended: return err(uint32(ended.outcome))

proc beatsOf*(beats: StreamReader[Nothing]): Future[uint64] {.async, thalweg.} =
  beats.receiveAll(_): inc result

proc comes*(signal: FutureReader[Nothing]): Future[Result[Nothing, uint32]] {.async, thalweg.} =
  try:
    discard await signal.receive()
    return ok(Nothing())
  except ThalwegError as ended:
    return err(uint32(ended.outcome))

proc ask*(key: uint64, call: Call): Future[Result[string, uint32]] {.async, thalweg.} =
  try: return ok(await call.lookUp(key))
  except ThalwegError as failed: return err(uint32(failed.outcome))

proc askLater*(key: uint64, call: Call): Future[Result[string, uint32]] {.thalweg.} =
  ask(key, call)

proc tell*(words: seq[string], at: Option[uint32], call: Call): Future[Result[uint64,
    uint32]] {.async, thalweg.} =
  try:
    await call.nod()
    return ok(await call.tell(words, at))
  except ThalwegError as failed:
    return err(uint32(failed.outcome))

proc askAll*(keys: StreamReader[uint64], call: Call): Future[seq[Result[string,
    uint32]]] {.async, thalweg.} =
  keys.receiveAll(key): result.add await ask(key, call)
