## Messages: values in the canonical memory layout, with offsets instead of pointers.
##
## Generated code writes with a `Writer`, and checks and reads with a `Message`. Both remember their
## first failure and do nothing from then on, so that the code does not test for it. A message is
## read only after it was checked, so that reading cannot fail.

import std/unicode
import errors, handles, table

const
  inlineBytes = 256 # Smaller messages need no allocation. The C headers use the same number.
  headerBytes = 16

type
  WriterStatus* {.pure.} = enum
    ready, counting, tooLarge, noSpace, passedTwice, noHandle, noObject, malformed

  Writer* = object
    ## A message under construction. It is on the stack, is not moved, and is not zeroed when it is
    ## created. Call `free` afterwards.
    data*: Bytes
    size*, capacity: uint32
    status*: WriterStatus
    handles, handlesPut: uint32
    passed: ptr OwnedObj # The objects in the message, which belong to the service later.
    call*: Handle # In a guest: the call that the message ends.
    isFixed: bool # `data` cannot grow: it is memory of a stream.
    small: array[inlineBytes div 8, uint64]

  Message* = object
    ## A message, or a batch of records, that is read.
    data*: Bytes
    size, floor, handles, handlesMet: uint32
    isMalformed*: bool
    completion: ptr Completion # NULL: the message has no handles.
    table: ptr Table
    owner*: pointer            # The session that streams and resources in the message belong to. In a
                               # guest: the number of the call.

{.push checks: off, inline, gcsafe, raises: [].}

# Writing

proc grow(w: var Writer, needed: uint64) {.noinline.} =
  if uint64(w.size) + needed > maxMessage:
    w.status = WriterStatus.tooLarge
    return
  if w.isFixed:
    w.status = WriterStatus.noSpace
    return
  let capacity = min(max(uint64(w.capacity) * 2, uint64(w.size) + needed), maxMessage)
  if w.data == cast[Bytes](addr w.small):
    let data = cast[Bytes](allocShared(int(capacity)))
    copyMem(data, w.data, int(w.size))
    w.data = data
  else:
    w.data = cast[Bytes](reallocShared(w.data, int(capacity)))
  w.capacity = uint32(capacity)

proc reserve(w: var Writer, size: uint64, align: uint32): uint32 =
  ## Appends `size` zero bytes at the next multiple of `align`. Returns their offset.
  if w.status != WriterStatus.ready: return 0
  let total = size + ((align - (w.size and (align - 1))) and (align - 1))
  if total > uint64(w.capacity - w.size):
    w.grow(total)
    if w.status != WriterStatus.ready: return 0
  zeroMem(addr w.data[w.size], int(total))
  w.size += uint32(total)
  w.size - uint32(size)

template put(w: var Writer, at: uint32, value: typed) =
  if w.status == WriterStatus.ready:
    let bits = value
    copyMem(addr w.data[at], unsafeAddr bits, sizeof(bits))

proc begin*(w: var Writer, layout: uint64, handles, size: uint32): uint32 =
  ## Begins a message with a table of `handles` handles. Returns the offset of its root.
  w.data = cast[Bytes](addr w.small)
  w.size = headerBytes
  w.capacity = inlineBytes
  w.status = WriterStatus.ready
  w.handles = handles
  w.handlesPut = 0
  w.passed = nil
  w.isFixed = false
  w.small[0] = layout shl 32
  w.small[1] = uint64(handles) or uint64(headerBytes + 8 * handles) shl 32
  if handles > 0: discard w.reserve(8 * uint64(handles), 8)
  w.reserve(size, 8)

proc beginRecord*(w: var Writer, size: uint32): uint32 =
  ## Begins a record without a header. Returns its offset.
  w.data = cast[Bytes](addr w.small)
  w.size = 0
  w.capacity = inlineBytes
  w.status = WriterStatus.ready
  w.handles = 0
  w.handlesPut = 0
  w.passed = nil
  w.isFixed = false
  w.reserve(size, 8)

proc beginPlace*(w: var Writer, data: Bytes, first, size, tails, tailsEnd: uint32) =
  ## Begins a record in a place of a stream's memory. If its strings and lists do not fit between `tails` and
  ## `tailsEnd`, the status is `noSpace`. Do not call `free`.
  w.data = data
  w.size = tails
  w.capacity = tailsEnd
  w.status = WriterStatus.ready
  w.handles = 0
  w.handlesPut = 0
  w.passed = nil
  w.isFixed = true
  zeroMem(addr data[first], int(size))

proc copyBytes*(w: Writer): Bytes =
  ## A copy of a finished message, for `deallocShared`.
  result = cast[Bytes](allocShared(int(w.size)))
  copyMem(result, w.data, int(w.size))

proc putRecord*[T: object](w: var Writer, at: uint32, value: T) =
  ## Puts a record that has the same bytes in memory.
  if w.status == WriterStatus.ready: copyMem(addr w.data[at], unsafeAddr value, sizeof(T))

proc beginCounting*(w: var Writer) =
  ## Until the next `begin`, putting a value only counts its handles.
  w.status = WriterStatus.counting
  w.handlesPut = 0

proc counted*(w: Writer): uint32 = w.handlesPut

proc finish*(w: var Writer) =
  ## Completes the message.
  if w.status == WriterStatus.ready: copyMem(w.data, addr w.size, 4)

proc free*(w: var Writer) =
  if w.data != cast[Bytes](addr w.small): deallocShared(w.data)
  w.data = cast[Bytes](addr w.small)

proc putBool*(w: var Writer, at: uint32, value: bool) = w.put(at, uint8(value))
proc putU8*(w: var Writer, at: uint32, value: uint8) = w.put(at, value)
proc putU16*(w: var Writer, at: uint32, value: uint16) = w.put(at, value)
proc putU32*(w: var Writer, at: uint32, value: uint32) = w.put(at, value)
proc putU64*(w: var Writer, at: uint32, value: uint64) = w.put(at, value)
proc putS8*(w: var Writer, at: uint32, value: int8) = w.put(at, value)
proc putS16*(w: var Writer, at: uint32, value: int16) = w.put(at, value)
proc putS32*(w: var Writer, at: uint32, value: int32) = w.put(at, value)
proc putS64*(w: var Writer, at: uint32, value: int64) = w.put(at, value)
proc putF32*(w: var Writer, at: uint32, value: float32) = w.put(at, value)
proc putF64*(w: var Writer, at: uint32, value: float64) = w.put(at, value)
proc putChar*(w: var Writer, at: uint32, value: Rune) = w.put(at, value)

proc putList*(w: var Writer, at: uint32, count: int, size, align: uint32): uint32 =
  ## Puts a list of `count` elements, which follow. Returns the offset of the first one.
  if count == 0 or w.status != WriterStatus.ready: return 0
  if uint64(count) > uint64(maxMessage) or uint64(count) * size > uint64(maxMessage):
    w.status = WriterStatus.tooLarge
    return 0
  let first = w.reserve(uint64(count) * size, align)
  w.put(at, first)
  w.put(at + 4, uint32(count))
  first

proc putNumbers*[T](w: var Writer, at: uint32, values: openArray[T]) =
  ## Puts a list whose elements have the same bytes in memory.
  let first = w.putList(at, values.len, uint32(sizeof(T)), uint32(sizeof(T)))
  if values.len > 0 and w.status == WriterStatus.ready:
    copyMem(addr w.data[first], unsafeAddr values[0], values.len * sizeof(T))

proc putText*(w: var Writer, at: uint32, value: string) =
  ## Puts UTF-8. The library refuses other bytes.
  w.putNumbers(at, value.toOpenArray(0, value.high))

proc putArray*[N: static int, T](w: var Writer, at: uint32, values: array[N, T]) =
  if w.status == WriterStatus.ready:
    copyMem(addr w.data[at], unsafeAddr values[0], sizeof(values))

proc putHandle*(w: var Writer, at: uint32, handle: Handle) =
  let index = w.handlesPut
  inc w.handlesPut
  if w.status == WriterStatus.ready:
    if index >= w.handles:
      w.status = WriterStatus.malformed
    elif handle == 0:
      w.status = WriterStatus.noHandle
    else:
      w.put(uint32(headerBytes) + 8 * index, handle)
      w.put(at, index)

proc putBorrowed*(w: var Writer, at: uint32, value: Owned) =
  ## Puts an object that stays the caller's.
  w.putHandle(at, if value.isNil: 0'u64 else: value.handle)

proc putOwned*(w: var Writer, at: uint32, value: Owned) =
  ## Puts an object that belongs to the service once the call was accepted.
  w.putHandle(at, if value.isNil: 0'u64 else: value.handle)
  if w.status == WriterStatus.ready:
    let it = cast[ptr OwnedObj](value)
    if it.isPassed:
      w.status = WriterStatus.passedTwice
    else:
      it.isPassed = true
      it.next = w.passed
      w.passed = it

proc settle*(w: var Writer, isAccepted: bool) =
  ## The objects in the message belong to the service now, or they stay the caller's.
  var it = w.passed
  while it != nil:
    let next = it.next
    if isAccepted: it.handle = 0
    it.isPassed = false
    it.next = nil
    it = next
  w.passed = nil

# Checking

proc load[T](m: Message, at: uint32): T =
  copyMem(addr result, addr m.data[at], sizeof(T))

proc open*(m: var Message, layout: uint64, size: uint32): uint32 =
  ## Checks the header. Returns the offset of the root, which has at least `size` bytes.
  let header = m.size
  if m.data == nil or (cast[uint](m.data) and 7) != 0 or header < headerBytes or
      m.load[:uint32](0) != header or m.load[:uint32](4) != uint32(layout and 0xffffffff'u64):
    m.isMalformed = true
    return headerBytes
  let handles = m.load[:uint32](8)
  let root = m.load[:uint32](12)
  if handles > (header - headerBytes) div 8 or root != headerBytes + 8 * handles or
      size > header - root:
    m.isMalformed = true
    return headerBytes
  m.handles = handles
  m.floor = root + size
  root

proc close*(m: var Message): bool =
  ## After the checks of a value: whether it may be read.
  if m.handlesMet != m.handles: m.isMalformed = true
  not m.isMalformed

proc checkBool*(m: var Message, at: uint32) =
  if not m.isMalformed and m.data[at] > 1: m.isMalformed = true

proc checkChar*(m: var Message, at: uint32) =
  if m.isMalformed: return
  let value = m.load[:uint32](at)
  if value > 0x10ffff or (value >= 0xd800 and value < 0xe000): m.isMalformed = true

proc checkList*(m: var Message, at, size, align: uint32): uint32 {.discardable.} =
  ## Checks the bounds of a list. Returns the number of its elements.
  if m.isMalformed: return 0
  let first = m.load[:uint32](at)
  let count = m.load[:uint32](at + 4)
  let bytes = uint64(count) * size
  if count == 0:
    if first != 0: m.isMalformed = true
  elif first < m.floor or (first and (align - 1)) != 0 or first > m.size or
      bytes > uint64(m.size - first):
    m.isMalformed = true
  else:
    m.floor = first + uint32(bytes)
  if m.isMalformed: 0'u32 else: count

proc checkText*(m: var Message, at: uint32) =
  ## The bounds of a string. The core ensures that it is UTF-8.
  m.checkList(at, 1, 1)

proc number(m: Message, at, size: uint32): uint32 =
  case size
  of 1: uint32(m.data[at])
  of 2: uint32(m.load[:uint16](at))
  else: m.load[:uint32](at)

proc checkTag*(m: var Message, at, size, count: uint32): uint32 {.discardable.} =
  ## Checks a discriminant, and returns it.
  if m.isMalformed: return 0
  result = m.number(at, size)
  if result >= count:
    m.isMalformed = true
    result = 0

proc checkFlags*(m: var Message, at, size, count: uint32) =
  if not m.isMalformed and count < 32 and m.number(at, size) shr count != 0:
    m.isMalformed = true

proc checkHandle*(m: var Message, at: uint32) =
  if m.isMalformed: return
  let index = m.load[:uint32](at)
  if index >= m.handles or index != m.handlesMet: m.isMalformed = true
  inc m.handlesMet

# Reading

proc getBool*(m: Message, at: uint32): bool = m.data[at] != 0
proc getU8*(m: Message, at: uint32): uint8 = m.data[at]
proc getU16*(m: Message, at: uint32): uint16 = m.load[:uint16](at)
proc getU32*(m: Message, at: uint32): uint32 = m.load[:uint32](at)
proc getU64*(m: Message, at: uint32): uint64 = m.load[:uint64](at)
proc getS8*(m: Message, at: uint32): int8 = m.load[:int8](at)
proc getS16*(m: Message, at: uint32): int16 = m.load[:int16](at)
proc getS32*(m: Message, at: uint32): int32 = m.load[:int32](at)
proc getS64*(m: Message, at: uint32): int64 = m.load[:int64](at)
proc getF32*(m: Message, at: uint32): float32 = m.load[:float32](at)
proc getF64*(m: Message, at: uint32): float64 = m.load[:float64](at)
proc getChar*(m: Message, at: uint32): Rune = m.load[:Rune](at)

proc getFirst*(m: Message, at: uint32): uint32 =
  ## The offset of the first element of a list. Also used while a message is checked: a malformed one
  ## may end before `at`.
  if not m.isMalformed: result = m.load[:uint32](at)

proc getNumbers*(m: Message, at: uint32, T: typedesc): seq[T] =
  let count = int(m.getU32(at + 4))
  result = newSeq[T](count)
  if count > 0: copyMem(addr result[0], addr m.data[m.getU32(at)], count * sizeof(T))

proc getText*(m: Message, at: uint32): string =
  let count = int(m.getU32(at + 4))
  result = newString(count)
  if count > 0: copyMem(addr result[0], addr m.data[m.getU32(at)], count)

proc getArray*(m: Message, at: uint32, N: static int, T: typedesc): array[N, T] =
  copyMem(addr result, addr m.data[at], sizeof(result))

proc take*(m: Message, at: uint32, kind: OwnedKind): Owned {.noinline.} =
  ## Takes the resource, stream or future at an offset out of the message.
  var handle: Handle
  if m.completion != nil:
    discard m.table.takeHandle(m.completion, m.getU32(at), addr handle, nil)
  newOwned(m.table, handle, kind)

{.pop.}

proc putNothing*(w: var Writer, at: uint32, value: Nothing) = discard
proc getNothing*(m: Message, at: uint32): Nothing = discard

proc initMessage*(table: ptr Table, completion: ptr Completion,
    owner: pointer): Message {.inline.} =
  ## The message in a completion.
  result.data = completion.data
  # A longer one is malformed: its own size is another one.
  result.size = uint32(min(completion.dataSize, uint64(maxMessage)))
  result.completion = completion
  result.table = table
  result.owner = owner

proc initMessage*(data: Bytes, size: uint64): Message {.inline.} =
  ## Memory without handles: the records of a batch, the arguments of a host import, or an error.
  result.data = data
  result.size = uint32(min(size, uint64(maxMessage)))

proc failure*(w: Writer): ref ThalwegError =
  ## Why a message cannot be sent.
  newError(Outcome.argument, case w.status
    of WriterStatus.tooLarge: "the message has more than 2 GiB"
    of WriterStatus.passedTwice: "the same resource or stream is passed twice"
    of WriterStatus.noObject: "a function returned no object"
    of WriterStatus.noHandle: "a resource or stream was closed, or passed to the service"
    else: "a value with resources changed while it was encoded")
