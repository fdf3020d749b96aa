## Resources inside the values of a service from code, tests/guests/boxes.nim. Its address is BOXES of the
## environment.

import std/[options, os, strutils, unittest]
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
