/// Reads the feed from C++: feed-cpp LIBRARY. All hosts print the same output.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "feed.hpp"

namespace {

/// Sums over all events: the policy is `block`.
void show_all(const feed::client &client) {
  std::uint64_t count = 0;
  std::uint64_t trades = 0;
  std::uint64_t volume = 0;
  std::int64_t turnover = 0;
  std::int64_t best = 0;
  auto events = client.all(100000).get().value();
  for (const auto batch : events) {
    for (const feed::event &event : batch) {
      for (const feed::level &bid : event.bids) {
        best = std::max(best, bid.price);
      }
      if (event.kind == feed::kind::trade) {
        trades++;
        volume += event.size;
        turnover += event.price * static_cast<std::int64_t>(event.size);
      }
    }
    count += batch.size();
  }
  events.status().value();
  std::printf("all: %" PRIu64 " events, %" PRIu64 " trades of %" PRIu64 " for %" PRId64
              ", best bid %" PRId64 "\n",
              count, trades, volume, turnover, best);
}

/// Prints gaps and halts. The policy is `drop-oldest`; a halt is a control record, which is never
/// dropped.
void show_recent(const feed::client &client) {
  std::uint64_t count = 0;
  std::uint64_t volume = 0;
  auto events = client.recent(5000).get().value();
  for (const auto batch : events) {
    if (batch.lost_before() > 0) {
      std::printf("recent: gap of %" PRIu64 " events before number %" PRIu64 ", reason %" PRIu32
                  "\n",
                  batch.lost_before(), batch.first_seq(), batch.gap_reason());
    }
    for (const feed::event &event : batch) {
      if (batch.is_control()) {
        std::printf("recent: halt at event %" PRIu64 "\n", event.number);
      } else {
        count++;
        volume += event.size;
      }
    }
  }
  events.status().value();
  const tw_stats stats = events.stats().value();
  std::printf("recent: %" PRIu64 " events of %" PRIu64 "\n", count, volume);
  std::printf("recent: %" PRIu64 " published, %" PRIu64 " delivered, %" PRIu64 " dropped, %" PRIu64
              " halts\n",
              stats.published, stats.delivered, stats.lost[TW_GAP_DROPPED_OLDEST], stats.control);
}

/// The newest event. The policy is `latest`.
thalweg::task<> show_newest(const feed::client &client) {
  auto events = (co_await client.newest(5000)).value();
  while (const auto batch = co_await events.next()) {
    for (const feed::event &event : batch) {
      std::printf("newest: event %" PRIu64 " at %" PRIu64 " ns, %" PRIu64 " overtaken\n",
                  event.number, event.at_ns, batch.lost_before());
    }
  }
  events.status().value();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: feed-cpp LIBRARY\n", stderr);
    return 2;
  }
  try {
    const feed::client client = feed::client::open(argv[1]).value();
    show_all(client);
    show_recent(client);
    thalweg::poll_loop loop;
    loop.add(client);
    loop.run(show_newest(client));
  } catch (const thalweg::exception &failed) {
    std::fprintf(stderr, "feed-cpp: %s\n", failed.what());
    return 1;
  }
  return 0;
}
