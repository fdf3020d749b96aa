## The C ABI of a guest: the structs of `thalweg_guest.h`, which describes their fields.

import ../table

const
  guestAbi* = 1'u32
  writeMore* = 1'u32

type
  RecordSpace* {.bycopy.} = object
    base*: Bytes
    first*, stride*, count*, tails*, tailsEnd*, reserved: uint32

  GuestPolicy* {.bycopy.} = object
    noticeInterval*, timeout*, linger*: uint64
    overflow*, capacity*, maxRecordSize*, reserved: uint32

  GuestPackage* {.bycopy.} = object
    size*, flags*: uint32
    package*, version*: cstring
    methods*: ptr TwMethod
    policies*: ptr GuestPolicy
    imports*: ptr TwMethod
    methodCount*, importCount*, maxQueuedCalls*, reserved: uint32
    maxQueuedBytes*: uint64

  GuestCall* {.bycopy.} = object
    call*: Handle
    number*, reserved: uint32
    deadline*: uint64
    args*: Bytes
    argsSize*: uint64

  GuestFunctions* {.bycopy.} = object
    size*, reserved: uint32
    open*: proc (ctx: pointer, state: ptr uint64, error: Err): uint32 {.cdecl.}
    call*: proc (ctx: pointer, state: uint64, call: ptr GuestCall) {.cdecl.}
    cancel*: proc (ctx: pointer, state: uint64, call: Handle) {.cdecl.}
    drop*: proc (ctx: pointer, state: uint64, kind: uint32, number: uint64) {.cdecl.}
    close*: proc (ctx: pointer, state: uint64) {.cdecl.}
    unload*: proc (ctx: pointer) {.cdecl.}

  GuestMessage* {.bycopy.} = object
    data*: Bytes
    size*, capacity: uint64

  GuestCore* {.bycopy.} = object
    abi*, size*: uint32
    core*: cstring
    now*: proc (): uint64 {.cdecl, gcsafe, raises: [].}
    serve*: proc (opening: uint64, package: ptr GuestPackage, functions: ptr GuestFunctions,
        ctx: pointer, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    answer*: proc (call: Handle, code: uint32, message: Bytes, size: uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    answerResource*: proc (call: Handle, kind: uint32, number: uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    fail*: proc (call: Handle, code: uint32, text: cstring, size: uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    callCheck*: proc (call: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    resourceNew*: proc (call: Handle, kind: uint32, number: uint64, resource: ptr Handle,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    resourceGet*: proc (call, resource: Handle, kind: uint32, number: ptr uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    resourceTake*: proc (call, resource: Handle, kind: uint32, number: ptr uint64,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    answerStream*: proc (call: Handle, writer: ptr Handle, error: Err): uint32 {.cdecl, gcsafe,
        raises: [].}
    streamWrite*: proc (writer: Handle, base: Bytes, size: uint64, first, count, flags: uint32,
        deadline: uint64, written: ptr uint32, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamFinish*: proc (writer: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamFail*: proc (writer: Handle, message: Bytes, size: uint64, error: Err): uint32 {.cdecl,
        gcsafe, raises: [].}
    streamAbort*: proc (writer: Handle, text: cstring, size: uint64, error: Err): uint32 {.cdecl,
        gcsafe, raises: [].}
    servePort, portFd, portTake, eventRelease: pointer
    readerOpen*: proc (call, stream: Handle, reader: ptr Handle, error: Err): uint32 {.cdecl,
        gcsafe, raises: [].}
    readerReceive*: proc (reader: Handle, deadline: uint64, element: ptr GuestMessage,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    readerClose*: proc (reader: Handle, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    importCall*: proc (call: Handle, number: uint32, args: Bytes, size: uint64,
        answer: ptr GuestMessage, error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    messageRelease*: proc (message: ptr GuestMessage) {.cdecl, gcsafe, raises: [].}
    readerNotify, importBegin, importAnswer, importCancel, writerNotify, answerMany: pointer
    streamReserve*: proc (writer: Handle, tails: uint32, deadline: uint64, space: ptr RecordSpace,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}
    streamCommit*: proc (writer: Handle, count, tailsEnd, flags: uint32, space: ptr RecordSpace,
        error: Err): uint32 {.cdecl, gcsafe, raises: [].}

static: # The sizes of the structs of `thalweg_guest.h` on a 64-bit machine.
  doAssert sizeof(GuestPolicy) == 40 and sizeof(GuestPackage) == 72 and sizeof(GuestCall) == 40
  doAssert sizeof(GuestFunctions) == 56 and sizeof(GuestMessage) == 24 and sizeof(GuestCore) == 264
  doAssert sizeof(RecordSpace) == 32
