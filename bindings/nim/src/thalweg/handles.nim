## Objects in the service that belong to the caller: resources, streams and futures.

import table

type
  OwnedKind* {.pure.} = enum
    resource, stream

  OwnedObj* = object
    ## A handle, which is closed with the object.
    table*: ptr Table
    handle*: Handle     # 0: closed, or given away
    kind*: OwnedKind
    isPassed*: bool     # It is in a message that was not submitted yet.
    next*: ptr OwnedObj # The next one in that message.

  Owned* = ref OwnedObj

proc closeHandle*(owned: OwnedObj): uint32 {.raises: [], gcsafe.} =
  ## Closes the handle in the service.
  if owned.handle == 0: return 0
  if owned.kind == OwnedKind.stream:
    owned.table.streamClose(owned.handle, nil)
  else:
    owned.table.resourceDrop(owned.handle, nil)

proc finalize(owned: Owned) {.raises: [].} =
  discard closeHandle(owned[])

proc newOwned*(table: ptr Table, handle: Handle, kind: OwnedKind): Owned {.raises: [].} =
  new(result, finalize)
  result.table = table
  result.handle = handle
  result.kind = kind
