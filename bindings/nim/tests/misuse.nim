## Wrong use and libraries that do not fit. The library is in LIBRARY of the environment, and the
## libraries that are refused are in FAKES. Compiled with threads.

import std/[os, strutils, unittest]
import conformance

let library = getEnv("LIBRARY")

proc open(): ConformanceClient = ConformanceClient.open(library)

suite "libraries that are refused":
  proc refused(path: string): ref ThalwegError =
    let opened = attempt ConformanceClient.open(path)
    check not opened.isOk
    opened.error

  test "a missing file":
    let error = refused("no/such/library.so")
    check error.outcome == Outcome.argument and "no/such/library.so" in error.msg
    check refused("a\0b").outcome == Outcome.argument

  test "a file that is no library":
    check refused(getAppFilename()).outcome == Outcome.argument

  test "a library without the symbol":
    let error = refused(getEnv("FAKES") / "libfake_no_symbol.so")
    check error.outcome == Outcome.argument and "tw_library" in error.msg

  test "a library of another ABI, package or layout":
    for (name, part) in [("other_abi", "abi"), ("other_package", "thalweg:find"),
        ("other_layout", "thalweg:conformance@0.1.0")]:
      let error = refused(getEnv("FAKES") / "libfake_" & name & ".so")
      check error.outcome == Outcome.version and part in error.msg

  test "a port without slots":
    check attempt(ConformanceClient.open(library, 0)).error.outcome == Outcome.argument

suite "use after close":
  test "a closed client":
    let client = open()
    let counter = client.newCounter(1)
    let stream = client.endless()
    client.close()
    client.close()
    check not client.isOpen
    check attempt(client.echoU8(1)).error.outcome == Outcome.closed
    check attempt(client.twice(1)).error.outcome == Outcome.closed
    check attempt(counter.value).error.outcome == Outcome.closed
    check attempt(client.newSumOfNumbers()).error.outcome == Outcome.closed
    check attempt(ConformanceClient.attach(client.handle)).error.outcome == Outcome.closed
    expect ThalwegError:
      for number in stream: discard
    counter.close()
    stream.close()

  test "a closed resource":
    let client = open()
    let counter = client.newCounter(1)
    counter.close()
    counter.close()
    check attempt(counter.value).error.outcome == Outcome.argument
    check attempt(client.counterSum(counter, counter)).error.outcome == Outcome.argument
    check attempt(client.counterFinish(counter)).error.outcome == Outcome.argument
    check attempt(client.counterFinish(nil)).error.outcome == Outcome.argument

  test "a resource of another client":
    let (one, other) = (open(), open())
    check attempt(one.counterFinish(other.newCounter(1))).error.outcome == Outcome.argument

suite "threads":
  var outcomes: array[3, Outcome]
  var shared: pointer
  var handle: ClientHandle

  proc useShared() {.thread.} =
    {.cast(gcsafe).}:
      let client {.cursor.} = cast[ConformanceClient](shared)           # Counting is not atomic.
      try: discard client.echoU8(1)
      except ThalwegError as failed: outcomes[0] = failed.outcome
      try: client.close()
      except ThalwegError as failed: outcomes[1] = failed.outcome

  proc useAttached() {.thread.} =
    {.cast(gcsafe).}:
      let client = ConformanceClient.attach(handle)
      if client.echoU8(7) != 7: outcomes[2] = Outcome.error
      client.close()

  test "another thread's client is refused":
    let client = open()
    shared = cast[pointer](client)
    var thread: Thread[void]
    createThread(thread, useShared)
    joinThread(thread)
    check outcomes[0] == Outcome.argument and outcomes[1] == Outcome.argument
    check client.echoU8(1) == 1

  test "an attached client is for another thread":
    let client = open()
    handle = client.handle
    var thread: Thread[void]
    createThread(thread, useAttached)
    joinThread(thread)
    check outcomes[2] == Outcome.ok
    check client.echoU8(1) == 1
