## Malformed messages in both directions. In the environment: LIBRARY, HOSTILE, the same library wrapped
## by bindings/python/tests/hostile.c, which replaces its replies, and MESSAGES, a file of malformed
## arguments.

import std/[asyncdispatch, dynlib, json, options, os, strutils, unicode, unittest]
import conformance
import thalweg/[errors, table]

proc damaged(good: string, change: proc (bytes: string, isCut: bool)) =
  ## Variants: cut at every byte, one byte longer, and each byte changed.
  for size in 0 ..< good.len: change(good[0 ..< size], true)
  change(good & "\0", true)
  for at in 0 ..< good.len:
    for other in ['\0', '\1', '\x7f', '\x80', '\xc0', '\xff', chr(ord(good[at]) xor 1)]:
      if other == good[at]: continue
      var changed = good
      changed[at] = other
      change(changed, false)

suite "malformed arguments":
  let client = ConformanceClient.open(getEnv("LIBRARY"))

  proc numberOf(name: string): uint32 =
    let table = client.session.table
    while $table.methods[result].name != "conformance." & name: inc result

  proc send(number: uint32, bytes: string): Outcome =
    ## What generated code never submits.
    let session = client.session
    var words = newSeq[uint64](bytes.len div 8 + 1) # Aligned.
    if bytes.len > 0: copyMem(addr words[0], unsafeAddr bytes[0], bytes.len)
    var submission = Submission(client: session.instance, number: number,
      args: cast[Bytes](addr words[0]), argsSize: uint64(bytes.len), deadline: forever)
    var accepted, count: uint32
    var error: TwError
    let code = session.table.submit(session.port, addr submission, 1, addr accepted, addr error)
    if code != 0: return code.toOutcome
    var completion: Completion
    while count == 0:
      doAssert session.table.portWait(session.port, forever, addr error) == 0
      doAssert session.table.portReap(session.port, addr completion, 1, addr count, addr error) == 0
    result = completion.code.toOutcome
    session.table.release(addr completion)

  test "each is refused or answered, and the client stays usable":
    var sent = 0
    for message in parseFile(getEnv("MESSAGES")):
      let (number, bytes) = (numberOf(message["call"].getStr), parseHexStr(message[
          "arguments"].getStr))
      check $send(number, bytes) == message["ends"].getStr
      if message{"damage"}.getBool:
        damaged(bytes, proc (bytes: string, isCut: bool) =
          let outcome = send(number, bytes)
          check outcome in (if isCut: {Outcome.argument}
            else: {Outcome.ok, Outcome.error, Outcome.argument})
          check client.echoU8(7) == 7
          inc sent)
    check sent > 1000

suite "malformed replies":
  let library = loadLib(getEnv("HOSTILE"))
  proc function(T: typedesc, name: string): T = cast[T](library.symAddr(name))
  let wrap = function(proc (path: cstring): cint {.cdecl.}, "wrap")
  let reply = function(proc (bytes: cstring, size: uint64) {.cdecl.}, "reply")
  let honest = function(proc () {.cdecl.}, "honest")
  let last = function(proc (bytes: cstring, capacity: uint64): uint64 {.cdecl.}, "last")
  let judge = function(proc (name: cstring, part: uint32, bytes: cstring,
    size: uint64): uint32 {.cdecl.}, "judge")
  check wrap(getEnv("LIBRARY").cstring) == 0
  let client = ConformanceClient.open(getEnv("HOSTILE"))

  proc lastReply(): string =
    result = newString(65536)
    result.setLen(int(last(result.cstring, uint64(result.len))))

  proc damageReplies(name: string, part: uint32, outcome: proc (): Outcome, right: Outcome) =
    ## Nim refuses what the core refuses, except text that is not UTF-8, which the core never sends.
    check outcome() == right
    damaged(lastReply(), proc (bytes: string, isCut: bool) =
      reply(bytes.cstring, uint64(bytes.len))
      let ended = outcome()
      check ended in {right, Outcome.argument}
      if isCut: check ended == Outcome.argument
      elif judge(("conformance." & name).cstring, part, bytes.cstring, uint64(bytes.len)) == 0:
        check ended == right)
    honest()
    check outcome() == right

  template damage(name: string, call: untyped) =
    test "of " & name:
      damageReplies(name, 1, proc (): Outcome =
        let got = attempt call
        (if got.isOk: Outcome.ok else: got.error.outcome), Outcome.ok)

  let shapes = @[Shape(kind: ShapeKind.circle, circle: 1.5),
    Shape(kind: ShapeKind.line, line: (Point(x: 1, y: -2), Point())),
    Shape(kind: ShapeKind.label, label: "text"), Shape(kind: ShapeKind.nothing)]
  damage("echo-bool", client.echoBool(true))
  damage("echo-char", client.echoChar(Rune(0x78)))
  damage("echo-string", client.echoString("h\u00e9"))
  damage("echo-names", client.echoNames(@["ab", ""]))
  damage("echo-option", client.echoOption(some("text")))
  damage("echo-option-twice", client.echoOptionTwice(some(some(7'u32))))
  damage("echo-tuple", client.echoTuple((255'u8, "text", 1.5, some(Rune(0x63)))))
  damage("echo-shapes", client.echoShapes(shapes))
  damage("echo-days", client.echoDays({DaysFlag.monday}))

  test "of an error":
    damageReplies("fail", 2, proc (): Outcome =
      attempt(client.fail(some(Failure(kind: FailureKind.at, at: ("there", Point(
          x: 3)))))).error.outcome,
      Outcome.error)

  test "of a future's call":
    damageReplies("echo-point", 1, proc (): Outcome =
      let got = waitFor attempt client.echoPointAsync(Point(x: 1, y: 2))
      (if got.isOk: Outcome.ok else: got.error.outcome), Outcome.ok)
