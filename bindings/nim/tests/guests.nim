## A service in C, which is opened by its address, GUEST of the environment. Compiled with threads.

import std/[os, strutils, unittest]
import probe

let address = getEnv("GUEST")

suite "a guest":
  test "calls, with the state of its client":
    let client = ProbeClient.open(address)
    let other = ProbeClient.open(address)
    check client.add(3) == 3
    check client.add(4) == 7
    check other.add(1) == 1
    check client.echo("héllo") == "héllo"
    check client.later(1, 42) == 42
    client.close()
    other.close()

  test "resources and streams":
    let client = ProbeClient.open(address)
    let cell = client.newCell(5)
    check cell.add(10) == 15
    check cell.get() == 15
    cell.close()
    var sum = 0'u64
    for number in client.numbers(1000): sum += number
    check sum == 499500
    client.close()

  test "wrong answers":
    let client = ProbeClient.open(address)
    let lost = attempt client.misbehave(1)
    check lost.error.outcome == Outcome.guestLost and "probe.misbehave" in lost.error.msg
    check attempt(client.misbehave(5)).error.outcome == Outcome.guestPanicked
    check client.add(1) == 1
    client.close()

  test "wrong addresses":
    for (wrong, why) in [("process:guest", "only guests in the process"),
        ("thread:/no/such/guest.so", "/no/such/guest.so")]:
      let error = attempt(ProbeClient.open(wrong)).error
      check error.outcome == Outcome.argument and why in error.msg
