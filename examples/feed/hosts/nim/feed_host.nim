## Reads the feed from Nim: feed_host LIBRARY. All hosts print the same output.
##
## `thalweg gen` writes ../../generated/nim.
import std/os
import feed

proc showAll(client: FeedClient) =
  ## Sums over all events. The overflow policy is `block`.
  var count, trades = 0
  var volume, turnover, best = 0'i64
  for event in client.all(100_000):
    inc count
    if event.kind == Kind.trade:
      inc trades
      volume += int64(event.size)
      turnover += event.price * int64(event.size)
    best = max(best, event.price) # The price of an event is the best bid.
  echo "all: ", count, " events, ", trades, " trades of ", volume, " for ", turnover,
    ", best bid ", best

proc showRecent(client: FeedClient) =
  ## Reads the remaining events and all halts. The overflow policy is `drop-oldest`; a halt is a
  ## control record, which is never dropped.
  let events = client.recent(5000)
  var count, volume = 0'u64
  for batch in events.batches:
    if batch.isControl:
      for event in batch: echo "recent: halt at event ", event.number
      continue
    if batch.lostBefore > 0:
      echo "recent: gap of ", batch.lostBefore, " events before number ", batch.firstSeq,
        ", reason ", ord(batch.gapReason)
    for event in batch:
      inc count
      volume += event.size
  echo "recent: ", count, " events of ", volume
  let stats = events.stats
  echo "recent: ", stats.published, " published, ", stats.delivered, " delivered, ",
    stats.lost[ord(GapReason.droppedOldest)], " dropped, ", stats.control, " halts"

proc showNewest(client: FeedClient) =
  ## Reads the newest event. The overflow policy is `latest`.
  let events = client.newest(5000)
  for event in events:
    echo "newest: event ", event.number, " at ", event.atNs, " ns, ", events.lost, " overtaken"

if paramCount() != 1:
  stderr.writeLine("usage: feed_host LIBRARY")
  quit(2)
try:
  let client = FeedClient.open(paramStr(1))
  showAll(client)
  showRecent(client)
  showNewest(client)
  client.close()
except ThalwegError as failed:
  stderr.writeLine("feed_host: " & failed.msg)
  quit(1)
