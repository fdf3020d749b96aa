## nim-ffi's `bench_codec` in Nim: its values, as flat messages and as CBOR.
##
##   codec LIBRARY [--include-1mib]      any library: it converts between flat messages and CBOR
##
## `encode` writes a value, `decode` checks the bytes and copies the value out, and `free` destroys the
## copy. A Nim program produces CBOR from a flat message, which the library's `transcode` converts, so
## the rows of CBOR include both steps. Every value that is decoded must equal the original.

import std/[algorithm, dynlib, monotimes, os, strformat, strutils]
import thalweg/table
include codec_values

type
  Times = array[3, float] ## Encode, decode and free, in ns.

  Read[T] = proc (m: var Message, layout: uint64): T {.nimcall, gcsafe, raises: [].}

  Codec[T] = object
    ## The procs that generated code has for a type, and the type in the text that `transcode` needs.
    put: Put[T]
    read: Read[T]
    layout: uint64
    size: uint32
    description: string

const
  rounds = 15
  bytesPerRound = 16 shl 20 # A round takes some ms.
  formats = ["flat", "cbor"]

let library = block:
  let loaded = loadLib(paramStr(1))
  if loaded.isNil: quit("cannot load " & paramStr(1), 2)
  cast[proc (abi: uint32): ptr Table {.cdecl.}](loaded.symAddr("tw_library"))(abiVersion)

var
  cbor = newSeq[uint64](1 shl 18) # Aligned, as messages must be.
  flat = newSeq[uint64](1 shl 18)

proc convert[T](codec: Codec[T], to: uint32, data: Bytes, size: uint64,
    into: var seq[uint64]): uint64 {.inline.} =
  var error: TwError
  check(library.transcode(codec.description.cstring, uint64(codec.description.len), to, data, size,
    cast[Bytes](addr into[0]), uint64(into.len * 8), addr result, addr error), error)

proc encode[T](codec: Codec[T], writer: var Writer, value: T, isCbor: bool): uint64 {.inline.} =
  ## The bytes of the value. They are in `writer` or in `cbor`.
  let root = writer.begin(codec.layout, 0, codec.size)
  codec.put(writer, root, value)
  writer.finish()
  if not isCbor: return uint64(writer.size)
  codec.convert(1, writer.data, uint64(writer.size), cbor)

proc decode[T](codec: Codec[T], data: Bytes, size: uint64, isCbor: bool): T {.inline.} =
  var (data, size) = (data, size)
  if isCbor:
    size = codec.convert(0, cast[Bytes](addr cbor[0]), size, flat)
    data = cast[Bytes](addr flat[0])
  var m = initMessage(data, size)
  result = codec.read(m, codec.layout)
  doAssert not m.isMalformed

proc measure[T](codec: Codec[T], value: T, isCbor: bool): (Times, uint64) =
  ## One round, and the bytes of the value.
  var writer {.noinit.}: Writer
  let size = codec.encode(writer, value, isCbor)
  doAssert codec.decode(writer.data, size, isCbor) == value
  let count = clamp(bytesPerRound div int(size + 500), 16, 20_000)
  var copies = newSeq[T](clamp((2 shl 20) div int(size), 2, 64))
  var times: Times
  for time in 1 .. count:
    let began = getMonoTime().ticks
    writer.free()
    doAssert codec.encode(writer, value, isCbor) == size
    times[0] += float(getMonoTime().ticks - began)
  for chunk in 1 .. count div copies.len:
    let began = getMonoTime().ticks
    for copy in copies.mitems: copy = codec.decode(writer.data, size, isCbor)
    let decoded = getMonoTime().ticks
    for copy in copies.mitems: copy = default(T)
    times[1] += float(decoded - began)
    times[2] += float(getMonoTime().ticks - decoded)
  writer.free()
  times[0] = times[0] / float(count)
  for part in 1 .. 2: times[part] = times[part] / float(count div copies.len * copies.len)
  (times, size)

proc row[T](name: string, codec: Codec[T], value: T, isBlob = false) =
  var medians: array[2, Times]
  var sizes: array[2, uint64]
  var samples: array[2, array[3, seq[float]]]
  for round in 1 .. rounds: # The formats take turns.
    for isCbor in [false, true]:
      let (times, size) = codec.measure(value, isCbor)
      sizes[ord(isCbor)] = size
      for part in 0 .. 2: samples[ord(isCbor)][part].add times[part]
  for format in 0 .. 1:
    for part in 0 .. 2:
      sort(samples[format][part])
      medians[format][part] = samples[format][part][rounds div 2]
  for format, times in medians:
    var rates = ""
    if isBlob:
      for part in 0 .. 1: rates.add &" {int(float(sizes[format]) * 1e9 / times[part] / 1048576)} |"
    else: rates = " | |"
    echo &"| {name} | {formats[format]} | {sizes[format]} | {times[0]:.1f} | {times[1]:.1f} | " &
      &"{times[2]:.1f} |{rates}"
  let both = [medians[0][0] + medians[0][1], medians[1][0] + medians[1][1]]
  echo &"| {name} | cbor / flat | | | | | | {both[1] / both[0]:.1f} times |"

proc codecOf[T](number: int, size: uint32, put: Put[T], read: Read[T]): Codec[T] =
  let it = package.methods[number]
  Codec[T](put: put, read: read, layout: it.ok, size: size,
    description: ($it.description).splitLines[1])

let (text, tags) = ("hello world", @["alpha", "beta", "gamma"])
let request = EchoRequest(message: text, delayMs: 100)
echo "| value | format | bytes | encode, ns | decode, ns | free, ns | encode, MiB/s | decode, MiB/s |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
row("EchoRequest", codecOf[EchoRequest](0, 16, putEchoRequest, readEchoRequest), request)
row("EchoResponse", codecOf[EchoResponse](1, 16, putEchoResponse, readEchoResponse),
  EchoResponse(echoed: text, timerName: "timer"))
row("ComplexRequest", codecOf[ComplexRequest](2, 48, putComplexRequest, readComplexRequest),
  ComplexRequest(messages: @[request, request, request, request], tags: tags,
    note: some(repeat('n', 53)), retries: some(3'i64)))
var sizes = @[100, 1 shl 10, 10 shl 10, 64 shl 10, 150 shl 10]
if "--include-1mib" in commandLineParams(): sizes.add 1 shl 20
let blobs = codecOf[BytesPayload](3, 8, putBytesPayload, readBytesPayload)
for size in sizes:
  var payload = BytesPayload(data: newSeq[byte](size))
  for index in 0 ..< size: payload.data[index] = byte(index and 255)
  row(&"BytesPayload {size}", blobs, payload, isBlob = true)
