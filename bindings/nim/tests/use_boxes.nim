## Resources inside the values of a service from code, tests/guests/boxes.nim. Its address is BOXES of the
## environment.

import std/[asyncdispatch, options, os, strutils, unittest]
import boxes

suite "values with resources":
  let client = BoxesClient.open(getEnv("BOXES"))

  test "in a result, a parameter and an error":
    let boxes = client.split(3)
    check boxes.rest.len == 2 and boxes.rest[1].number == 2 and boxes.last.get.number == 3
    let reversed = client.reversed(boxes)
    check reversed.first.number == 3 and reversed.last.get.number == 0
    let refused = attempt client.reversed(Boxes(first: client.newBox(7)))
    check (ref ServiceError[Boxes])(refused.error).payload.first.number == 7

  test "a resource that is missing ends the call":
    check client.empty(false).first.number == 1
    let failed = attempt client.empty(true)
    check failed.error.outcome == Outcome.guestLost
    check "a function returned no object" in failed.error.msg

  test "streams and futures that are parameters":
    let box = client.newBox(4)
    let numbers = box.newSumNumbers()
    let sum = box.sumAsync(numbers)
    for number in 1'i64 .. 3: numbers.send(number)
    numbers.finish()
    check waitFor(sum) == 10
    let text = client.newReversedTextText()
    text.send("abc")
    check client.reversedText(text) == "cba"
