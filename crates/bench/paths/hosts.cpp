/// The same in C++: `hosts_cpp LIBRARY PATH COUNT`.
#include <algorithm>

#include "reading.hpp"

/// Records of a stream that is full before it is read.
constexpr std::uint64_t at_once = 8000;

/// Only instructions of these two functions and what they call are counted for the paths `view` and
/// `event_view`.
extern "C" __attribute__((noinline)) void lab_counted_matches(thalweg::stream<lab::match> &stream,
                                                              std::uint64_t count, reading &read) {
  while (read.records < count) {
    read_batch(stream.next(batch_size).get(), read);
  }
}

extern "C" __attribute__((noinline)) void lab_counted_events(thalweg::stream<lab::event> &stream,
                                                             std::uint64_t count, reading &read) {
  while (read.records < count) {
    read_batch(stream.next(batch_size).get(), read);
  }
}

template <class T> void wait_until_full(thalweg::stream<T> &stream, std::uint64_t count) {
  do {
    pause_us(1000);
  } while (need(stream.stats()).occupancy < count);
}

int main(int argc, char **argv) {
  const std::string_view path = argc == 4 ? argv[2] : "";
  const std::uint64_t count = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  auto client = need(lab::client::open(argc == 4 ? argv[1] : "", 64));
  std::uint64_t records = 0;
  while (records < count) {
    const std::uint64_t now = std::min(count - records, at_once);
    reading read;
    if (path == "call") {
      need_ok(client.nop().get());
      read.records = 1;
    } else if (path == "view") {
      auto stream = need(client.generate(now).get());
      wait_until_full(stream, now);
      lab_counted_matches(stream, now, read);
    } else if (path == "event_view") {
      auto stream = need(client.events(now, batch_size).get());
      wait_until_full(stream, now);
      lab_counted_events(stream, now, read);
    } else if (path == "event") {
      read = read_whole([&] { return client.events(count, batch_size); }, batch_size);
    } else {
      std::fprintf(stderr, "not a path: %s\n", argv[2]);
      return 2;
    }
    records += read.records;
  }
  need_ok(client.close());
  return records == count ? 0 : 1;
}
