/// Ticks through a bounded queue of the standard library, one at a time: what a C++ program does
/// without a library for it.
#ifndef LAB_STD_QUEUE_HPP
#define LAB_STD_QUEUE_HPP

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "reading.hpp"

template <class T> class std_queue {
public:
  void push(const T &value) {
    std::unique_lock<std::mutex> lock(mutex_);
    has_room_.wait(lock, [this] { return queue_.size() < kept_count; });
    queue_.push_back(value);
    if (queue_.size() == 1) {
      has_values_.notify_one();
    }
  }
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    has_ended_ = true;
    has_values_.notify_one();
  }
  std::optional<T> pop() {
    std::unique_lock<std::mutex> lock(mutex_);
    has_values_.wait(lock, [this] { return !queue_.empty() || has_ended_; });
    if (queue_.empty()) {
      return std::nullopt;
    }
    std::optional<T> value(queue_.front());
    queue_.pop_front();
    if (queue_.size() == kept_count - 1) {
      has_room_.notify_one();
    }
    return value;
  }

private:
  std::mutex mutex_;
  std::condition_variable has_room_;
  std::condition_variable has_values_;
  std::deque<T> queue_;
  bool has_ended_ = false;
};

/// The thread that writes is started within the time, as the call that opens a stream is.
template <class T, class Make> reading read_queue(std::uint64_t count, Make make) {
  std_queue<T> queue;
  reading read;
  const std::uint64_t began = now_ns();
  std::thread writer([&] {
    for (std::uint64_t number = 0; number < count; ++number) {
      queue.push(make(number));
    }
    queue.end();
  });
  while (const std::optional<T> record = queue.pop()) {
    read.checksum += touch(*record);
    read.records++;
  }
  read.ns = now_ns() - began;
  writer.join();
  return read;
}

/// Tick number `number`: service/src/ticks.rs.
inline lab::tick make_tick(std::uint64_t number) {
  const std::uint64_t bid = 10000 + number % 97;
  return {.number = number,
          .at = 0,
          .bid = bid,
          .ask = bid + 1,
          .bid_size = number % 7,
          .ask_size = number % 11,
          .last = bid,
          .volume = 3 * number};
}

/// Event number `number`, with the fields that are read: service/src/events.rs.
inline lab::event make_event(std::uint64_t number) {
  lab::event event;
  event.quote.number = number;
  event.quote.received_at = number;
  return event;
}

#endif
