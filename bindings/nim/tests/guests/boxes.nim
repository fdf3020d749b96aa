## A service from code whose values have resources inside.

import thalweg/code_first

type
  Box {.thalweg.} = ref object
    number: int

  Boxes {.thalweg.} = object
    first: Box
    rest: seq[Box]
    last: Option[Box]

proc newBox(number: int): Box {.thalweg.} =
  Box(number: number)

proc number(self: Box): int {.thalweg.} =
  self.number

proc split(number: int): Boxes {.thalweg.} =
  result = Boxes(first: Box(number: 0), last: some(Box(number: number)))
  for one in 1 ..< number: result.rest.add Box(number: one)

proc reversed(boxes: Boxes): Result[Boxes, Boxes] {.thalweg.} =
  ## The last one is the first; without a last one, returns the boxes as the error.
  if boxes.last.isNone: return err(boxes)
  ok(Boxes(first: boxes.last.get, rest: boxes.rest, last: some(boxes.first)))

proc empty(isNil: bool): Boxes {.thalweg.} =
  ## A mistake: a box is missing.
  Boxes(first: if isNil: nil else: Box(number: 1))

proc sum(box: Box, numbers: StreamReader[int]): Future[int] {.async, thalweg.} =
  result = box.number
  while true:
    let number = await numbers.receive()
    if number.isNone: break
    result += number.get

proc reversedText(text: FutureReader[string]): Future[string] {.async, thalweg.} =
  let text = await text.receive()
  for at in countdown(text.high, 0): result.add text[at]

exportPackage "example:boxes@0.1.0"
