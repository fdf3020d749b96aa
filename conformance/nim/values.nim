## Values from JSON, and their comparison with JSON: conformance/README.md describes the format.
## Types are converted by their fields, cases and labels.

import std/[asyncdispatch, json, options, parseutils, strutils, tables, unicode]
import conformance

type Refused* = object of CatchableError
  ## A value is of another type, as a compiler would refuse it.

var isAsync*: bool ## Calls and streams are awaited.
var resources*: Table[string, Resource] ## What steps have stored.

proc kebab(name: string): string =
  ## The name in WIT.
  for letter in name:
    if letter in {'A' .. 'Z'}: result.add '-'
    result.add letter.toLowerAscii

proc refuse(json: JsonNode) {.noreturn.} =
  raise newException(Refused, "refused: " & $json)

proc unhex*(text: string): string =
  if text.len == 0: "" else: parseHexStr(text)

proc itemOf*(json: JsonNode, index: int): JsonNode =
  if json.kind == JArray: json[index] else: json["repeat"]

proc countOf*(json: JsonNode): int =
  if json.kind == JArray: json.len else: json["count"].getInt

proc textOf(json: JsonNode): string =
  if json.kind == JObject: repeat(json["repeat"].getStr, json["count"].getInt) else: json.getStr

template isByteArray(T: typedesc): bool =
  when T is array: typeof(default(T)[0]) is byte
  else: false

proc fromJson*(json: JsonNode, T: typedesc): T

proc payload(json: JsonNode, key: string): JsonNode =
  if json.hasKey(key): json[key] else: newJNull()

proc integer(json: JsonNode, T: typedesc): T =
  ## A number, or its digits.
  when T is uint64:
    if parseBiggestUInt(json.getStr, result) == 0: refuse(json)
  elif T is int64:
    result = parseBiggestInt(json.getStr)
  else:
    if json.kind != JInt or json.getBiggestInt < int64(low(T)) or json.getBiggestInt > int64(high(T)):
      refuse(json)
    result = T(json.getBiggestInt)

proc label(name: JsonNode, T: typedesc[enum]): T =
  for label in low(T) .. high(T):
    if kebab($label) == name.getStr: return label
  refuse(name)

proc setPayload(value: var object, name: string, json: JsonNode) =
  for field, payload in fieldPairs(value):
    when field != "kind":
      if kebab(field) == name: payload = fromJson(json, typeof(payload))

proc fromJson*(json: JsonNode, T: typedesc): T =
  when T is bool: json.getBool
  elif T is SomeInteger: integer(json, T)
  elif T is float32: cast[float32](uint32(fromHex[uint64](json.getStr)))
  elif T is float64: cast[float64](fromHex[uint64](json.getStr))
  elif T is Rune: json.getStr.runeAt(0)
  elif T is string: textOf(json)
  elif T is seq[byte]: cast[seq[byte]](unhex(textOf(json)))
  elif T is Nothing: Nothing()
  elif T is enum: label(json, T)
  elif T is set:
    for name in json: result.incl label(name, typeof(items(result)))
  elif T is seq:
    result.setLen(countOf(json))
    for index in 0 ..< result.len:
      result[index] = fromJson(itemOf(json, index), typeof(result[0]))
  elif isByteArray(T):
    let bytes = unhex(textOf(json))
    if bytes.len != result.len: refuse(json)
    copyMem(addr result[0], unsafeAddr bytes[0], bytes.len)
  elif T is array:
    if countOf(json) != result.len: refuse(json)
    for index in 0 ..< result.len:
      result[index] = fromJson(itemOf(json, index), typeof(result[0]))
  elif T is Option:
    if json.kind != JNull: result = some(fromJson(json["some"], typeof(result.get)))
  elif T is Result:
    if json.hasKey("ok"): T.ok(fromJson(json["ok"], typeof(result.value)))
    else: T.err(fromJson(json["error"], typeof(result.error)))
  elif T is Resource:
    let found = resources.getOrDefault(json{"resource"}.getStr)
    if found.isNil or not (found of T): refuse(json)
    T(found)
  elif T is tuple:
    var index = 0
    for field in fields(result):
      field = fromJson(json[index], typeof(field))
      inc index
  elif compiles(default(T).kind):
    result = T(kind: label(json["case"], typeof(result.kind)))
    setPayload(result, json["case"].getStr, payload(json, "value"))
  else:
    for name, field in fieldPairs(result): field = fromJson(json[kebab(name)], typeof(field))

template now(blocking, later: untyped): untyped =
  if isAsync: waitFor(later) else: blocking

proc same*[T](value: T, json: JsonNode): bool =
  ## Whether a value is that in JSON.
  when T is float32: cast[uint32](value) == cast[uint32](fromJson(json, T))
  elif T is float64: cast[uint64](value) == cast[uint64](fromJson(json, T))
  elif T is Resource: true
  elif T is Stream:
    var index = 0
    while true:
      let batch = now(value.nextBatch(), value.nextBatchAsync())
      if batch.len == 0: return index == countOf(json)
      for item in batch:
        if index >= countOf(json) or not same(item, itemOf(json, index)): return false
        inc index
  elif T is FutureValue: same(now(value.wait(), value.waitAsync()), json)
  elif T is (SomeInteger or bool or Rune or string or seq[byte] or enum or set or Nothing):
    value == fromJson(json, T)
  elif isByteArray(T): value == fromJson(json, T)
  elif T is (seq or array):
    if value.len != countOf(json): return false
    for index in 0 ..< value.len:
      if not same(value[index], itemOf(json, index)): return false
    true
  elif T is Option:
    if value.isNone: json.kind == JNull
    else: json.kind == JObject and same(value.get, json["some"])
  elif T is Result:
    if value.isOk: json.hasKey("ok") and same(value.value, json["ok"])
    else: json.hasKey("error") and same(value.error, json["error"])
  elif T is tuple:
    var index = 0
    for field in fields(value):
      if not same(field, json[index]): return false
      inc index
    true
  elif compiles(value.kind):
    if value.kind != label(json["case"], typeof(value.kind)): return false
    for name, field in fieldPairs(value):
      when name != "kind":
        if not same(field, payload(json, "value")): return false
    true
  else:
    for name, field in fieldPairs(value):
      if not same(field, json[kebab(name)]): return false
    true

proc written*[T](stream: StreamWriter[T], json: JsonNode): StreamWriter[T] =
  ## Sends all elements of a stream that is a parameter, or the value of a future, and closes it.
  if json.kind == JArray or not json{"repeat"}.isNil:
    for index in 0 ..< countOf(json): stream.send(fromJson(itemOf(json, index), T))
    stream.finish()
  elif json.kind == JObject:
    stream.send(fromJson(json["some"], T))
  stream.close()
  stream
