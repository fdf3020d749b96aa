## The C ABI of a Thalweg library: the structs of `thalweg.h`, which describes their fields.
##
## Programs do not use this module directly.

const
  abiVersion* = 2'u32
  forever* = high(uint64)
  maxMessage* = 0x7fffffff'u32 ## The largest message, in bytes.

  completionCall* = 1'u32
  completionStreamReady* = 2'u32
  completionNotice* = 3'u32
  completionHostCall* = 4'u32

  submitNotices* = 1'u32
  submitBlock* = 2'u32

  batchEnd* = 1'u32
  batchControl* = 2'u32

  methodInline* = 2'u32
  methodNotices* = 8'u32
  methodBrief* = 64'u32

type
  Handle* = uint64
  Bytes* = ptr UncheckedArray[byte]

  TwError* {.bycopy.} = object
    code*: uint32
    retryable*: uint32
    message*: array[248, char]

  Completion* {.bycopy.} = object
    token*: uint64
    call*: Handle
    kind*: uint32
    code*: uint32
    data*: Bytes
    dataSize*: uint64
    message*: ptr UncheckedArray[char]
    messageSize*: uint32
    retryable*: uint32
    owner: uint64

  Submission* {.bycopy.} = object
    token*: uint64
    client*: Handle
    number*: uint32
    flags*: uint32
    args*: Bytes
    argsSize*: uint64
    deadline*: uint64
    call*: Handle

  TwBatch* {.bycopy.} = object
    base*: Bytes
    slots*: Bytes
    count*: uint32
    stride*: uint32
    firstSeq*: uint64
    lostBefore*: uint64
    gapReason*: uint32
    flags*: uint32
    size*: uint64

  StreamStats* {.bycopy.} = object
    ## Counters of all streams of one function of one client, open and closed. Once the writers are
    ## gone, `published` is the sum of `delivered`, `undelivered`, `occupancy` and all `lost`.
    streams*: uint64
    published*: uint64 ## Records that the service wrote.
    delivered*: uint64 ## Records that were in a batch.
    undelivered*: uint64 ## Records left in a stream when it was closed.
    occupancy*: uint64 ## Records now in open streams.
    lost*: array[8, uint64] ## Missing records; the index is the `ord` of the reason.
    highWater*: uint64 ## The most records that one stream has had.
    control*: uint64 ## Records of the control lane that were in a batch.
    wakes*: uint64
    parks*: uint64
    waits*: uint64
    faults*: uint64
    age*: array[32, uint64]

  TwMethod* {.bycopy.} = object
    name*: cstring
    params*: uint64
    ok*: uint64
    error*: uint64
    element*: uint64
    flags*: uint32
    descriptionSize*: uint32
    description*: cstring

  Err* = ptr TwError

  Table* {.bycopy.} = object
    abi*: uint32
    size*: uint32
    package*: cstring
    version*: cstring
    core*: cstring
    layout*: uint64
    methods*: ptr UncheckedArray[TwMethod]
    methodCount*: uint32
    reserved: uint32
    now*: proc (): uint64 {.cdecl, gcsafe, raises: [].}
    clientOpen*: proc (client: ptr Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    clientClose*: proc (client: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    portOpen*: proc (capacity: uint32, port: ptr Handle, error: Err): uint32 {.cdecl, gcsafe,
        raises: [].}
    portClose*: proc (port: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    portFd*: proc (port: Handle, fd: ptr cint, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    portArm*: proc (port: Handle, ready: ptr uint32, error: Err): uint32 {.cdecl, gcsafe,
        raises: [].}
    portWait*: proc (port: Handle, deadline: uint64, error: Err): uint32 {.cdecl, gcsafe,
        raises: [].}
    portReap*: proc (port: Handle, into: ptr Completion, max: uint32, count: ptr uint32,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    release*: proc (completion: ptr Completion) {.cdecl, gcsafe, raises: [].}
    submit*: proc (port: Handle, batch: ptr Submission, count: uint32, accepted: ptr uint32,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    cancel*: proc (call: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    takeHandle*: proc (completion: ptr Completion, index: uint32, handle: ptr Handle,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    resourceDrop*: proc (resource: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamAcquire*: proc (stream: Handle, max: uint32, deadline: uint64, batch: ptr TwBatch,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamRelease*: proc (stream: Handle, count: uint32, error: Err): uint32 {.cdecl, gcsafe,
        raises: [].}
    streamArm*: proc (stream, port: Handle, token: uint64, ready: ptr uint32,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamClose*: proc (stream: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    transcode*: proc (description: cstring, descriptionSize: uint64, to: uint32, data: Bytes,
        dataSize: uint64, into: Bytes, capacity: uint64, size: ptr uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamSubscribe: pointer
    streamJoin: pointer
    streamFd: pointer
    callInline*: proc (client: Handle, number: uint32, args: Bytes, argsSize, deadline: uint64,
        into: ptr Completion, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    clientSetHost*: proc (client, port: Handle, token: uint64, error: Err): uint32 {.cdecl,
        gcsafe, raises: [].}
    hostCallAnswer*: proc (call: Handle, code: uint32, data: Bytes, dataSize: uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    hostCallDeadline: pointer
    streamTee*: proc (stream: Handle, reader: ptr Handle, error: Err): uint32 {.cdecl, gcsafe,
        raises: [].}
    streamStats*: proc (stream: Handle, number: uint32, stats: ptr StreamStats, size: uint32,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamRetainBatch: pointer
    retainedBatchRelease: pointer
    streamNew*: proc (client: Handle, number, parameter: uint32, writer, reader: ptr Handle,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamSend*: proc (writer: Handle, element: Bytes, elementSize, deadline: uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamFinish*: proc (writer: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    importsLayout*: uint64
    clientSetLayouts*: proc (client: Handle, methods: ptr TwMethod, methodCount: uint32,
        imports: ptr TwMethod, importCount: uint32, error: Err): uint32 {.cdecl, gcsafe,
        raises: [].}
    streamError*: proc (stream: Handle, data: ptr Bytes, size: ptr uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    imports*: ptr UncheckedArray[TwMethod]
    importCount*: uint32
    reservedImports: uint32
    clientSetFormat: pointer
    releaseAll: pointer
    portWake: pointer
    logSetSink: pointer
    counters: pointer

static: # The sizes of the structs of `thalweg.h` on a 64-bit machine.
  doAssert sizeof(TwError) == 256 and sizeof(Completion) == 64 and sizeof(Submission) == 56
  doAssert sizeof(TwBatch) == 56 and sizeof(TwMethod) == 56 and sizeof(StreamStats) == 408
  doAssert sizeof(Table) == 400
