## A host in Nim, whose instructions are counted: `hosts_nim LIBRARY PATH COUNT`.
import std/[os, strutils]
import lab

if paramCount() != 3 or paramStr(2) != "call":
  stderr.writeLine("usage: hosts_nim LIBRARY call COUNT")
  quit(2)
let client = LabClient.open(paramStr(1), 64)
for call in 1 .. parseInt(paramStr(3)): client.nop()
client.close()
