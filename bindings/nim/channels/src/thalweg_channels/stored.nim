## The form in which a value is in a queue.
##
## Under arc and orc, threads share one heap, and a value moves as it is. Under refc, each thread has
## its own heap: plain data is copied, the content of a `string` and of a `seq` of plain data is copied
## into memory that belongs to no thread, and other types do not compile.

import memory

type Bytes* = object
  ## The content of a string or seq under refc.
  data: pointer
  len: int

proc dispose*(stored: Bytes) = release(stored.data)

when defined(gcDestructors):
  template storedType*(T: typedesc): typedesc = T
else:
  import std/typetraits

  proc copyOut(data: pointer, len, size: int): Bytes =
    if len > 0:
      result.data = allocZeroed(len * size)
      if result.data == nil: raise newException(OutOfMemDefect, "no memory for a message")
      copyMem(result.data, data, len * size)
      result.len = len

  proc store*[T](value: T): auto =
    when supportsCopyMem(T):
      result = value
    elif T is string:
      result = copyOut((if value.len > 0: unsafeAddr value[0] else: nil), value.len, 1)
    elif T is seq and supportsCopyMem(typeof(value[0])):
      result = copyOut((if value.len > 0: unsafeAddr value[0] else: nil), value.len, sizeof(value[0]))
    else:
      {.error: "under refc, a message is plain data, a string, or a seq of plain data".}

  template storedType*(T: typedesc): typedesc = typeof(store(default(T)))

  proc restore*[T](stored: var Bytes, value: var T) =
    when T is string: value = newString(stored.len)
    else: value.newSeq(stored.len)
    if stored.len > 0: copyMem(addr value[0], stored.data, stored.len * sizeof(value[0]))
    release(stored.data)
