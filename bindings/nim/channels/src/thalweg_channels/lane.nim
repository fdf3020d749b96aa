## A bounded queue with one writer and one reader: the design of `crates/queue/src/lane`.
##
## Values are in lines of 64 bytes that start with a stamp. An offset is the position of a side as a
## number that only grows: 64 per line since the beginning, plus the byte offset of the next slot in
## its line. Within a line, each value adds `step`.
##
## 1. The stamp of a line is the offset of its last filled slot. The writer stores it (Release).
## 2. The reader at offset `m` loads the stamp of its line (Acquire): all slots from `m` to the stamp
##    are filled. A stamp of the previous lap is below `m`. A stamp of the next lap is above the last
##    slot, so all slots are filled. Stamps are never reset, the reader never writes to a line, and a
##    value costs one transfer of its line.
## 3. The reader stores its offset in `head` (Release) after it has removed a value. The writer loads
##    it (Acquire) only when it has reached its limit: the number of removed values plus the capacity.
## 4. A side checks only when it has used up the slots or values that it knew of.

import "."/[memory, queue]

{.push checks: off, stackTrace: off.}

template valuesAt*(T: typedesc): int = (8 + alignof(T) - 1) div alignof(T) * alignof(T)

template perLine*(T: typedesc): int =
  (if sizeof(T) == 0 or valuesAt(T) + sizeof(T) > CacheLine: 1
    else: (CacheLine - valuesAt(T)) div sizeof(T))

template alignment*(T: typedesc): int = max(CacheLine, alignof(T))

template stride*(T: typedesc): int =
  (valuesAt(T) + perLine(T) * sizeof(T) + alignment(T) - 1) div alignment(T) * alignment(T)

# If a line has only one slot, any step skips it.
template step*(T: typedesc): Word = Word(if perLine(T) == 1: 1 else: sizeof(T))
template firstSlot*(T: typedesc): Word = Word(valuesAt(T) mod CacheLine)
template full*(T: typedesc): Word = Word(perLine(T)) * step(T)

template lineStart*(T: typedesc, offset: Word): Word =
  (offset - firstSlot(T)) div CacheLine * CacheLine + firstSlot(T)
template lineEnd*(T: typedesc, offset: Word): Word = lineStart(T, offset) + full(T)

template cell*(T: typedesc, line: uint, offset: Word): ptr T =
  cast[ptr T](line + uint(valuesAt(T)) - firstSlot(T) + offset mod CacheLine)

template stamp*(line: uint): Word = cast[ptr Word](line)[]

proc position(queue: ptr Queue, offset: Word): Word =
  ## The number of values before an offset.
  let bytes = offset - queue.firstOffset
  (bytes div CacheLine - 1) * queue.perLine + bytes mod CacheLine div queue.step

proc lanePushed*(queue: ptr Queue): Word = queue.position(loadRelaxed(queue.tail))
proc lanePopped*(queue: ptr Queue): Word = queue.position(loadRelaxed(queue.head))

proc initLane*[T](queue: ptr Queue): bool =
  ## False if there is not enough memory.
  let lines = (queue.capacity + perLine(T) - 1) div perLine(T)
  queue.slotsMemory = allocZeroed(lines * stride(T) + alignment(T))
  if queue.slotsMemory == nil: return false
  let start = cast[uint](queue.slotsMemory)
  let first = (start + uint(alignment(T)) - 1) div uint(alignment(T)) * uint(alignment(T))
  queue.slots = cast[pointer](first)
  queue.slotsEnd = cast[pointer](first + uint(lines * stride(T)))
  queue.perLine = Word(perLine(T))
  queue.step = step(T)
  queue.firstOffset = firstSlot(T)
  queue.head = CacheLine + firstSlot(T)
  queue.tail = queue.head
  queue.writeLine = first
  queue.writeUntil = queue.tail
  queue.readLine = first
  queue.readUntil = queue.head
  true

proc reserveSlow*[T](queue: ptr Queue): bool {.noinline.} =
  var tail = queue.tail
  let pushed = queue.position(tail)
  if pushed == queue.writeLimit:
    queue.writeLimit = queue.position(loadAcquire(queue.head)) + Word(queue.capacity)
    if pushed == queue.writeLimit: return false
  if tail == lineEnd(T, tail):
    queue.writeLine += uint(stride(T))
    if queue.writeLine == cast[uint](queue.slotsEnd): queue.writeLine = cast[uint](queue.slots)
    tail = lineStart(T, tail) + CacheLine
    storeRelaxed(queue.tail, tail)
  let granted = queue.writeLimit - pushed
  let left = (lineEnd(T, tail) - tail) div step(T)
  queue.writeUntil = tail + min(granted, left) * step(T)
  let linesAfter = (cast[uint](queue.slotsEnd) - queue.writeLine) div uint(stride(T)) - 1
  let linesGranted = (granted - left) div Word(perLine(T))
  queue.writeLines = if granted > left: min(linesGranted, linesAfter) else: 0
  true

proc nextGrantedLine*[T](queue: ptr Queue, tail: Word): bool {.inline.} =
  if queue.writeLines == 0: return false
  dec queue.writeLines
  queue.writeLine += uint(stride(T))
  let first = tail - full(T) + CacheLine
  storeRelaxed(queue.tail, first)
  queue.writeUntil = first + full(T)
  true

# The next calls are templates, because Nim checks for an exception after each call of a proc, also of an
# inlined one that raises nothing.

template lanePush*(T: typedesc, queue: ptr Queue, value: untyped): bool =
  ## Moves the value into the queue. False if the queue is full, and the value stays.
  let pushed = queue.tail != queue.writeUntil or nextGrantedLine[T](queue, queue.tail) or
    reserveSlow[T](queue)
  if pushed:
    let tail = queue.tail
    let line = queue.writeLine
    copyMem(cell(T, line, tail), addr value, sizeof(T))
    storeRelease(stamp(line), tail)
    storeRelaxed(queue.tail, tail + step(T))
  pushed

proc loadStamp*[T](queue: ptr Queue): bool {.inline.} =
  ## For a reader that knows of no value: whether there is one. Does not leave the last line.
  var head = queue.head
  var line = queue.readLine
  let isNext = head mod CacheLine == (firstSlot(T) + full(T)) mod CacheLine
  if isNext:
    head = head - full(T) + CacheLine
    line += uint(stride(T))
    if line == cast[uint](queue.slotsEnd): line = cast[uint](queue.slots)
  let filled = loadAcquire(stamp(line))
  if filled < head: return false
  if isNext:
    queue.readLine = line
    # Release, like every other store of `head`: a weaker store would hide the previous one.
    storeRelease(queue.head, head)
  queue.readUntil = min(lineEnd(T, head), filled + step(T))
  true

template laneHasValue*(T: typedesc, queue: ptr Queue): bool =
  ## Only the reader may call it.
  queue.head != queue.readUntil or loadStamp[T](queue)

template lanePop*(T: typedesc, queue: ptr Queue, value: untyped): bool =
  ## Moves the oldest value to memory without a value. False if the queue is empty.
  let popped = laneHasValue(T, queue)
  if popped:
    let head = queue.head
    copyMem(value, cell(T, queue.readLine, head), sizeof(T))
    storeRelease(queue.head, head + step(T))
  popped

proc laneHasCapacity*(queue: ptr Queue): bool =
  ## Only the writer may call it.
  queue.lanePushed != queue.writeLimit or
    queue.position(loadAcquire(queue.head)) + Word(queue.capacity) != queue.writeLimit

proc laneLen*(queue: ptr Queue): int =
  # The reader may advance between the two loads.
  let pushed = queue.lanePushed
  let popped = queue.lanePopped
  if pushed > popped: int(pushed - popped) else: 0

{.pop.}
