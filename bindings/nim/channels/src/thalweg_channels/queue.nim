## The state that the threads of a channel share, without the values.
##
## The memory has one block of words, each group on its own cache lines, and one block of slots.
## `lane` and `ring` define what the positions and slots mean.

import "."/[memory, wait_list]

type
  ChannelMode* = enum
    ## How many threads may send, and how many may receive, at the same time.
    SPSC ## one producer, one consumer
    MPSC ## many producers, one consumer
    SPMC ## one producer, many consumers
    MPMC ## many producers, many consumers

  Queue* = object
    # Read by every call, written by none.
    mode*: ChannelMode
    capacity*: int
    lap*: Word                              ## Ring: the distance between the same index of two laps.
    slots*: pointer                         ## The first slot of a ring, the first line of a lane.
    slotsEnd*: pointer                      ## Lane: behind the last line.
    slotsMemory*: pointer                   ## What `slots` was allocated as.
    hasValue*, hasCapacity*, isDrained*: proc (queue: ptr Queue): bool {.nimcall, gcsafe, raises: [].}
    discardValues*: proc (queue: ptr Queue) {.nimcall, gcsafe, raises: [].}
    perLine*, step*, firstOffset*: Word     ## Lane: for procs that do not know the type.
    refs*: Word
    dropped*: Word                          ## Streams: how many messages a policy has dropped.

    # The senders' words.
    tail* {.align: Padding.}: Word
    writeLine*: uint                        ## Lane: the writer's line. These four belong to the producer alone.
    writeUntil*: Word
    writeLimit*: Word
    writeLines*: Word
    sending*: bool                          ## In debug builds: a thread is in a send of a single producer.

    # The receivers' words.
    head* {.align: Padding.}: Word
    readLine*: uint                         ## Lane: the reader's line. These two belong to the consumer alone.
    readUntil*: Word
    receiving*: bool                        ## In debug builds, as `sending`.

    receivers* {.align: Padding.}: WaitList ## Waiters for values.
    senders* {.align: Padding.}: WaitList   ## Waiters for capacity.

proc destroyQueue(queue: ptr Queue) {.raises: [].} =
  ## Nobody uses the queue any more. Destroys the values in it.
  {.cast(gcsafe).}: queue.discardValues(queue)
  queue.receivers.deinit()
  queue.senders.deinit()
  release(queue.slotsMemory)
  release(queue)

proc retain*(queue: ptr Queue) = discard atomicAddFetch(addr queue.refs, 1, ATOMIC_RELAXED)

proc drop*(queue: ptr Queue) {.raises: [].} =
  if atomicSubFetch(addr queue.refs, 1, ATOMIC_ACQ_REL) == 0: destroyQueue(queue)
