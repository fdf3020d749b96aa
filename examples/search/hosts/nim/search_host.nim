## Searches a directory tree for plain text, from Nim.
##
##   search_host LIBRARY PATTERN DIR [--print | --count | --json]
##
## --print  prints each matching line like `grep -rn` (the default)
## --count  prints the number of matching lines, which the service counts without a stream
## --json   streams the matches and prints their number and the time as one line of JSON
##
## `thalweg gen` writes ../../generated/nim.
import std/[monotimes, options, os, times]
import search

# Searches every file, also hidden ones and those in ignore files.
const everyFile = search.Options(fixed: true, hidden: true)

proc write(bytes: seq[byte]) =
  if bytes.len > 0: discard stdout.writeBuffer(unsafeAddr bytes[0], bytes.len)

proc print(client: SearchClient, pattern, directory: string) =
  ## Streams the matches. Prints the original bytes of text that is not UTF-8.
  for match in client.matches(client.newQuery(pattern, directory, everyFile)):
    if match.pathBytes.isSome: write(match.pathBytes.get) else: stdout.write(match.path)
    stdout.write(":", match.line, ":")
    if match.textBytes.isSome: write(match.textBytes.get) else: stdout.write(match.text)
    stdout.write("\n")

proc report(client: SearchClient, pattern, directory: string) =
  ## Streams the matches, and prints their number and the time.
  let began = getMonoTime()
  var first = began
  var matches, linesSum = 0'u64 # The sum of the line numbers, to compare two searches.
  for batch in client.matches(client.newQuery(pattern, directory, everyFile)).batches:
    if matches == 0: first = getMonoTime()
    for match in batch:
      inc matches
      linesSum += match.line
  let ended = getMonoTime()
  if matches == 0: first = ended
  echo "{\"host\":\"Nim\",\"matches\":", matches, ",\"lines_sum\":", linesSum,
    ",\"first_match_ns\":", inNanoseconds(first - began), ",\"total_ns\":",
    inNanoseconds(ended - began), "}"

proc printCount(client: SearchClient, pattern, directory: string) =
  ## `count` takes a regular expression, which `escape` makes from the text.
  echo client.count(client.escape(pattern), directory)

let mode = if paramCount() > 3: paramStr(4) else: "--print"
if paramCount() notin 3 .. 4 or mode notin ["--print", "--count", "--json"]:
  stderr.writeLine("usage: search_host LIBRARY PATTERN DIR [--print | --count | --json]")
  quit(2)
try:
  let client = SearchClient.open(paramStr(1))
  case mode
  of "--count": printCount(client, paramStr(2), paramStr(3))
  of "--json": report(client, paramStr(2), paramStr(3))
  else: print(client, paramStr(2), paramStr(3))
  client.close()
except ThalwegError as failed:
  stderr.writeLine("search_host: " & failed.msg)
  quit(1)
