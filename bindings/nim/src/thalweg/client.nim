## Clients and resources: what generated types are based on.

import errors, handles, library, message, session, table

type
  Client* = ref object of RootObj
    ## An instance of a service, and a port that calls it. It is closed with its last reference, or
    ## by `close`. A client belongs to the thread that opened it.
    session*: Session

  ClientHandle* = object
    ## A client for `attach`, on another thread.
    table*: ptr Table
    instance*: Handle

  Resource* = ref object of RootObj
    ## An object in the service, which is dropped with its last reference, or by `close`.
    session*: Session
    owned*: Owned

proc openClient*(C: typedesc, path: string, package: ptr Package, capacity: Natural): C =
  ## Opens a library, and a client of it.
  C(session: newSession(openLibrary(path, package), package, 0, capacity))

proc attachClient*(C: typedesc, handle: ClientHandle, package: ptr Package, capacity: Natural): C =
  ## Opens a further client of an instance.
  if handle.instance == 0: raise newError(Outcome.closed, "the client is closed")
  C(session: newSession(handle.table, package, handle.instance, capacity))

proc handle*(client: Client): ClientHandle =
  ## For `attach`, on this or another thread.
  ClientHandle(table: client.session.table, instance: client.session.instance)

proc isOpen*(client: Client): bool =
  client.session.port != 0

proc close*(client: Client) =
  ## Closes the client, and the instance unless the client was attached. Its calls and streams end as
  ## `Outcome.cancelled`. A second call has no effect.
  client.session.close()

proc isOpen*(resource: Resource): bool =
  ## Whether there is an object: it was neither closed nor passed to the service.
  resource.owned.handle != 0

proc close*(resource: Resource) =
  ## Drops the object in the service. A second call has no effect.
  resource.session.requireThread()
  discard closeHandle(resource.owned[])
  resource.owned.handle = 0

proc getOwned*(m: Message, at: uint32, R: typedesc): R {.inline.} =
  ## Takes a resource out of a message.
  R(session: cast[Session](m.owner), owned: m.take(at, OwnedKind.resource))

proc putBorrowed*(w: var Writer, at: uint32, value: Resource) {.inline.} =
  ## Puts a resource that stays the caller's.
  w.putBorrowed(at, if value.isNil: nil else: value.owned)

proc putOwned*(w: var Writer, at: uint32, value: Resource) {.inline.} =
  ## Puts a resource that the service takes over.
  w.putOwned(at, if value.isNil: nil else: value.owned)
