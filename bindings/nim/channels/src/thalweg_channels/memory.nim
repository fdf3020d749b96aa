## Memory that does not belong to a thread's heap, and loads and stores of single words.
##
## Channels allocate with the C library, because `allocShared` has one lock for the whole process,
## does not report that memory is exhausted, and cannot align to cache lines.

type Word* = uint

const
  CacheLine* = 64
  Padding* = 128
    ## The distance that keeps two words apart: x86 prefetches cache lines of 64 bytes in pairs.

proc posixMemalign(p: ptr pointer, alignment, size: csize_t): cint {.
  importc: "posix_memalign", header: "<stdlib.h>".}
proc cCalloc(count, size: csize_t): pointer {.importc: "calloc", header: "<stdlib.h>".}
proc cFree(p: pointer) {.importc: "free", header: "<stdlib.h>".}

proc allocZeroed*(size: int): pointer =
  ## Memory of zeros, or nil if there is not enough. The system provides the pages of a large block
  ## when they are first touched.
  cCalloc(1, csize_t(size))

proc allocPadded*(size: int): pointer =
  ## Memory of zeros at a multiple of `Padding`, or nil if there is not enough.
  if posixMemalign(addr result, Padding, csize_t(size)) != 0: return nil
  zeroMem(result, size)

proc release*(p: pointer) =
  ## Frees what the two procs above returned. Nil is allowed.
  cFree(p)

# Every access of a word that threads share is one of these, with the order in its name.

template loadRelaxed*[T](place: T): T = atomicLoadN(addr place, ATOMIC_RELAXED)
template loadAcquire*[T](place: T): T = atomicLoadN(addr place, ATOMIC_ACQUIRE)
template storeRelaxed*[T](place: T, value: T) = atomicStoreN(addr place, value, ATOMIC_RELAXED)
template storeRelease*[T](place: T, value: T) = atomicStoreN(addr place, value, ATOMIC_RELEASE)

template compareExchange*[T](place: T, expected: var T, desired: T): bool =
  ## Relaxed: `expected` becomes the current value if it differs.
  atomicCompareExchangeN(addr place, addr expected, desired, false, ATOMIC_RELAXED, ATOMIC_RELAXED)

template compilerFence*() = atomicSignalFence(ATOMIC_SEQ_CST)
template fullFence*() = atomicThreadFence(ATOMIC_SEQ_CST)
