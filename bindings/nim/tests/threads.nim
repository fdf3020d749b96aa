## Threads that end without closing their clients. The library is in LIBRARY of the
## environment. Compiled with threads.

import std/[asyncdispatch, os, strutils, unittest]
import conformance

let library = getEnv("LIBRARY")

var kept {.threadvar.}: ConformanceClient

proc ports(): int =
  ## The eventfds of this process: one for each port.
  for entry in walkDir("/proc/self/fd"):
    if "eventfd" in expandSymlink(entry.path): inc result

proc useClient(): ConformanceClient =
  {.cast(gcsafe).}:
    result = ConformanceClient.open(library)
    doAssert waitFor(result.echoU8Async(1)) == 1

proc dropAwaitingClient() {.thread.} =
  {.cast(gcsafe).}:
    doAssert useClient().isOpen
    GC_fullCollect()

proc dropSeveral() {.thread.} =
  for turn in 1 .. 3: dropAwaitingClient()

proc keepClient() {.thread.} =
  {.cast(gcsafe).}: kept = ConformanceClient.open(library)

proc keepPendingCall() {.thread.} =
  {.cast(gcsafe).}:
    kept = useClient()
    let stream = kept.endless()
    discard kept.neverAsync()
    doAssert stream.isOpen

proc closeClient() {.thread.} = useClient().close()

proc keepAttached(handle: ClientHandle) {.thread.} =
  {.cast(gcsafe).}:
    kept = ConformanceClient.attach(handle)
    doAssert kept.echoU8(1) == 1

suite "a thread that ends":
  for (name, run) in {"after dropping a client that it awaited": dropAwaitingClient,
      "after dropping several": dropSeveral, "with an open client": keepClient,
      "with a pending call and a stream": keepPendingCall, "after closing its client": closeClient}:
    test name & " leaves no port":
      let before = ports()
      for turn in 1 .. 20:
        var thread: Thread[void]
        createThread(thread, run)
        joinThread(thread)
      check ports() == before

  test "with an attached client leaves the instance open":
    let client = ConformanceClient.open(library)
    let before = ports()
    for turn in 1 .. 20:
      var thread: Thread[ClientHandle]
      createThread(thread, keepAttached, client.handle)
      joinThread(thread)
    check ports() == before
    check client.echoU8(2) == 2
