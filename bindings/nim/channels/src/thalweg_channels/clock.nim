## Monotonic time in nanoseconds.

import std/posix

proc now*(): int64 =
  var time: Timespec
  discard clock_gettime(CLOCK_MONOTONIC, time)
  int64(time.tv_sec) * 1_000_000_000 + int64(time.tv_nsec)

const Never* = high(int64)
  ## The deadline of a wait without one.

proc deadlineIn*(milliseconds: int): int64 =
  ## The deadline of a timeout. A negative timeout is none.
  if milliseconds < 0: return Never
  let start = now()
  if milliseconds > (Never - start) div 1_000_000: Never
  else: start + int64(milliseconds) * 1_000_000
