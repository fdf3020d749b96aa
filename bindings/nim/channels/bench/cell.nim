## Measures one cell and prints its nanoseconds per message: `cell NAME MESSAGES CAPACITY`.

import std/[os, strutils]
import ./cells

let (name, messages, capacity) = (paramStr(1), parseInt(paramStr(2)), parseInt(paramStr(3)))
echo case name
  of "spsc": twoThreads(messages, capacity)
  of "async": oneLoop(messages, capacity)
  of "polled_0ms": polled(messages, capacity, 0)
  of "polled_1ms": polled(messages, capacity, 1)
  else: quit("no cell is named " & name, 2)
