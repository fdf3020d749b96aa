## Code that has no WIT: test.sh defines one of the mistakes, and expects its error.

import thalweg/code_first

type
  Message {.thalweg.} = object
    text: string
  Level {.thalweg.} = enum
    low, high
  Thing {.thalweg.} = ref object

when defined(pointerField):
  type Raw {.thalweg.} = object
    at: pointer
when defined(cases):
  type Shape {.thalweg.} = object
    case isRound: bool
    of true: radius: int
    of false: discard
when defined(numbers):
  type Numbered {.thalweg.} = enum
    one = 1, three = 3
when defined(bothInts):
  proc sum(a: int, b: int64): int {.thalweg.} = a + int(b)
when defined(eventWithResult):
  proc onThing(thing: Thing, level: Level): int {.thalweg.}

proc newThing(): Thing {.thalweg.} = Thing()

when defined(badPackage):
  exportPackage "thing"
else:
  exportPackage "example:thing@0.1.0"
