## The Nim host program of the lab's own service: `lab_host (blocking | asyncdispatch) LIBRARY`. Its
## lines are those of src/workloads/lab_hosts.rs. It uses the generated module as a program would.

import std/[asyncdispatch, os]
import bare, lab, sample

const
  capacity = 8192 # Of a stream in crates/bench/wit/lab.thalweg.toml.
  fillUs = 3000   # Untimed, for a generator to fill a stream: several times the need.

proc readMatches(client: LabClient, count: int) =
  ## Times the host's own work for COUNT matches, which are ready and copied out of their batches.
  let stream = client.generate(uint64(count))
  var (ns, records, until, checksum) = (0'i64, 0, 0, 0'u64)
  while true:
    if records >= until:
      pause(fillUs)
      until = records + capacity
    let began = nowNs()
    let batch = stream.nextBatch()
    if batch.len == 0: break
    for it in batch:
      checksum += it.line + it.column + uint64(it.path.len) + uint64(it.text[0]) + uint64(it.text[^1])
    records += batch.len
    ns += nowNs() - began
  answer(ns, records, checksum)

proc runBlocking(client: LabClient, bare: Bare, command: string, numbers: Numbers) =
  case command
  of "nop": timeEach(numbers, client.nop())
  of "nop-async": timeEach(numbers, client.nopAsync2())
  of "tally":
    timeEach(numbers):
      discard client.tally(1)
  of "bare": timeEach(numbers, bare.call())
  of "objects": client.readMatches(numbers[0])
  else: quit("not a command: " & command)

proc runAwaiting(client: LabClient, bare: Bare, command: string, numbers: Numbers) =
  case command
  of "nop": waitFor timeAwaits(numbers, proc (): Future[void] = client.nopAsync())
  of "nop-async": waitFor timeAwaits(numbers, proc (): Future[void] = client.nopAsync2Async())
  of "tally": waitFor timeAwaits(numbers, proc (): Future[uint64] = client.tallyAsync(1))
  of "bare": waitFor timeAwaits(numbers, proc (): Future[void] = bare.post())
  else: runBlocking(client, bare, command, numbers)

let mode = if paramCount() == 2: paramStr(1) else: ""
if mode notin ["blocking", "asyncdispatch"]:
  stderr.writeLine("usage: lab_host (blocking | asyncdispatch) LIBRARY")
  quit(2)
let client = LabClient.open(paramStr(2), 64)
let opened = openBare(paramStr(2))
client.nop()
opened.call()
if mode == "asyncdispatch": opened.watch()
serve(proc (command: string, numbers: Numbers) =
  if mode == "blocking": runBlocking(client, opened, command, numbers)
  else: runAwaiting(client, opened, command, numbers))
client.close()
