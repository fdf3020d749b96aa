## The conformance service in Nim: the functions of ../../wit that a guest can have, which service/ has in
## Rust. ../build.sh builds it.

import conformance_guest, inputs, state, streams

template returns(name, T: untyped) =
  ## A function that returns its parameter.
  proc name(value: T): T {.thalweg.} = value

returns(echoBool, bool)
returns(echoU8, uint8)
returns(echoU16, uint16)
returns(echoU32, uint32)
returns(echoU64, uint64)
returns(echoS8, int8)
returns(echoS16, int16)
returns(echoS32, int32)
returns(echoS64, int64)
returns(echoF32, float32)
returns(echoF64, float64)
returns(echoChar, Rune)
returns(echoString, string)
returns(echoBytes, seq[byte])
returns(echoBools, seq[bool])
returns(echoNumbers, seq[int64])
returns(echoFloats, seq[float64])
returns(echoStrings, seq[string])
returns(echoGrid, seq[seq[int32]])
returns(echoPoints, seq[Point])
returns(echoOption, Option[string])
returns(echoOptionTwice, Option[Option[uint32]])
returns(echoResult, (Result[uint64, string], ))
returns(echoResultOk, seq[Result[uint32, Nothing]])
returns(echoResultError, seq[Result[Nothing, string]])
returns(echoResultBare, seq[Result[Nothing, Nothing]])
returns(echoTuple, (uint8, string, float64, Option[Rune]))
returns(echoPoint, Point)
returns(echoSpot, Spot)
returns(echoScalars, Scalars)
returns(echoNested, Nested)
returns(echoKeywords, Keywords)
returns(echoShape, Shape)
returns(echoShapes, seq[Shape])
returns(echoColor, Color)
returns(echoColors, seq[Color])
returns(echoRights, Rights)
returns(echoDays, Days)
returns(echoWide, Wide)
returns(echoNames, Names)
returns(echoFailure, Failure)
returns(echoKey, array[16, uint8])
returns(echoThree, array[3, int64])
returns(echoFixed, Fixed)
returns(echoKeys, seq[array[2, uint8]])

proc several(`type`: uint8, match: string, list: seq[uint16], bool: Option[Point]): (uint8, string,
    seq[uint16], Option[Point]) {.thalweg.} =
  (`type`, match, list, bool)

proc nothing() {.thalweg.} =
  discard

proc many(a: uint8, b: uint16, c: uint32, d: uint64, e: uint8, f: string, g: uint16, h: uint32,
    i: seq[byte], j: uint64, k: uint8, n: Option[string], counter: Counter, m: uint16): (uint64,
    string) {.thalweg.} =
  var sum = d + j + counter.value
  for number in [uint32(a), b, c, e, g, h, k, m]: sum += number
  for number in i: sum += number
  (sum, f & n.get(""))

proc fail(how: Option[Failure]): uint64 {.thalweg.} =
  if how.isSome: raise newServiceError(how.get)
  7

proc failLater(how: Option[Failure]): Future[uint64] {.async, thalweg.} =
  return fail(how)

proc failBare(fails: bool) {.thalweg.} =
  if fails: raise newServiceError(Nothing())

proc panic(message: string): uint32 {.thalweg.} =
  raise newException(ValueError, message)

proc panicLater(message: string): Future[uint32] {.async, thalweg.} =
  raise newException(ValueError, message)

exportGuest(Service, Counter, Even, Scale)
