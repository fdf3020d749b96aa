/// Records read in place, and the same loops over arrays.
#ifndef LAB_READING_HPP
#define LAB_READING_HPP

#include <string>
#include <vector>

#include "lab.hpp"
#include "sample.h"

/// Records in a batch.
constexpr std::uint32_t batch_size = 256;
/// A stream's worth: its capacity in crates/bench/wit/lab.thalweg.toml.
constexpr std::uint64_t kept_count = 8192;
/// Untimed pause in which a service fills a stream: several times the time it needs.
constexpr std::uint32_t fill_us = 3000;

struct reading {
  std::uint64_t ns = 0;
  std::uint64_t records = 0;
  std::uint64_t checksum = 0;
};

/// Ends the program if a call fails, because the measurement of a failed call is meaningless.
template <class R> void need_ok(const R &result) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", result.error().name(), result.error().message().data());
    std::exit(1);
  }
}
/// The same, and the value.
template <class R> auto need(R &&result) {
  need_ok(result);
  return std::move(*result);
}

/// What every host reads of a record.
inline std::uint64_t touch(const lab::match &match) {
  const std::string_view path = match.path;
  const std::string_view text = match.text;
  return match.line + match.column + path.size() + static_cast<std::uint8_t>(text.front()) +
         static_cast<std::uint8_t>(text.back());
}
inline std::uint64_t touch(const lab::tick &tick) {
  return tick.number + tick.bid + tick.volume;
}
inline std::uint64_t touch(const lab::event &event) {
  return event.quote.number;
}

template <class T> void read_batch(const thalweg::batch<T> &batch, reading &read) {
  for (const auto &record : batch) {
    read.checksum += touch(record);
  }
  read.records += batch.size();
}

/// Reads `count` records. Timed: acquire, loop and release, for batches that are ready after each
/// wait.
template <class T> reading read_ready(thalweg::stream<T> stream, std::uint64_t count) {
  reading read;
  std::uint64_t until = 0;
  while (read.records < count) {
    if (read.records >= until) {
      pause_us(fill_us);
      until = read.records + kept_count;
    }
    const std::uint64_t began = now_ns();
    auto batch = stream.next(batch_size).get();
    if (!batch) {
      break;
    }
    read_batch(batch, read);
    batch.release();
    read.ns += now_ns() - began;
  }
  need_ok(stream.status());
  return read;
}

/// Reads the stream that a call returns, from the call on, `max` records at a time.
template <class Open> reading read_whole(Open open, std::uint32_t max) {
  reading read;
  const std::uint64_t began = now_ns();
  auto stream = need(open().get());
  while (const auto batch = stream.next(max).get()) {
    read_batch(batch, read);
  }
  read.ns = now_ns() - began;
  need_ok(stream.status());
  return read;
}

/// The same in a coroutine.
template <class Open> thalweg::task<reading> read_awaited(Open open) {
  reading read;
  const std::uint64_t began = now_ns();
  auto stream = need(co_await open());
  while (const auto batch = co_await stream.next(batch_size)) {
    read_batch(batch, read);
  }
  read.ns = now_ns() - began;
  need_ok(stream.status());
  co_return read;
}

/// Sums the records of an array, repeatedly until there were `count`.
template <class T> reading sum_array(const std::vector<T> &records, std::uint64_t count) {
  reading read;
  const std::uint64_t began = now_ns();
  while (read.records < count) {
    const std::uint64_t now = std::min<std::uint64_t>(count - read.records, records.size());
    for (const T *record = records.data(); record != records.data() + now; ++record) {
      read.checksum += touch(*record);
    }
    read.records += now;
  }
  read.ns = now_ns() - began;
  return read;
}

/// Matches and their texts.
struct match_array {
  std::vector<lab::match> records;
  std::vector<char> texts;

  /// Copies the first `count` matches of a stream, unless they are here.
  void fill(const lab::client &client, std::uint64_t count) {
    if (records.size() == count) {
      return;
    }
    records.clear();
    texts.clear();
    records.reserve(count);
    // No path has more than 23 bytes and no text more than 85: service/src/content.rs.
    texts.reserve(count * 108);
    auto stream = need(client.generate(count).get());
    for (const auto batch : stream) {
      for (const lab::match &match : batch) {
        lab::match copy;
        copy.path = keep(match.path);
        copy.line = match.line;
        copy.column = match.column;
        copy.text = keep(match.text);
        copy.cut = match.cut;
        records.push_back(copy);
      }
    }
    need_ok(stream.status());
  }

private:
  std::string_view keep(std::string_view text) {
    const char *const at = texts.data() + texts.size();
    texts.insert(texts.end(), text.begin(), text.end());
    return {at, text.size()};
  }
};

inline reading read_match_array(const lab::client &client, std::uint64_t kept,
                                std::uint64_t count) {
  static match_array arrays[2];
  match_array &all = arrays[kept == kept_count];
  all.fill(client, kept);
  return sum_array(all.records, count);
}

inline reading read_tick_array(const lab::client &client, std::uint64_t count) {
  static std::vector<lab::tick> kept;
  if (kept.size() != count) {
    kept.clear();
    kept.reserve(count);
    auto stream = need(client.ticks(count, batch_size).get());
    for (const auto batch : stream) {
      kept.insert(kept.end(), batch.begin(), batch.end());
    }
    need_ok(stream.status());
  }
  return sum_array(kept, count);
}

struct verified {
  std::uint64_t records = 0;
  std::uint64_t digest = 0xcbf29ce484222325;

  void add(const void *bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      digest = (digest ^ static_cast<const std::uint8_t *>(bytes)[i]) * 0x100000001b3;
    }
  }
};

/// FNV-1a over every byte of `count` matches, in order: see `Contents::digest` in the service.
inline verified verify(const lab::client &client, std::uint64_t count) {
  verified all;
  auto stream = need(client.generate(count).get());
  for (const auto batch : stream) {
    for (const lab::match &match : batch) {
      all.add(match.path.data(), match.path.size());
      all.add(match.text.data(), match.text.size());
      all.add(&match.line, sizeof(match.line));
      all.add(&match.column, sizeof(match.column));
      all.add(&match.cut, 1);
    }
    all.records += batch.size();
  }
  need_ok(stream.status());
  return all;
}

#endif
