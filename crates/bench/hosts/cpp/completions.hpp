/// Many calls, each awaited by a coroutine; and the least that a drain of completions to coroutines
/// can be.
#ifndef LAB_COMPLETIONS_HPP
#define LAB_COMPLETIONS_HPP

#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

#include "reading.hpp"

/// Maximum number of calls in flight; a drain also waits for this many completions.
constexpr std::uint64_t window = 2048;

inline thalweg::task<> count_call(const lab::client &client, std::uint64_t token, reading &read) {
  need_ok(co_await client.nop());
  read.checksum += token;
  read.records++;
}

/// COUNT calls from the first submission to the last completion, at most `window` of them in flight.
inline reading complete(const lab::client &of, std::uint64_t count) {
  const auto client = need(of.attach(window));
  thalweg::poll_loop loop;
  loop.add(client);
  reading read;
  std::uint64_t submitted = 0;
  const std::uint64_t began = now_ns();
  while (read.records < count) {
    while (submitted < count && submitted - read.records < window) {
      thalweg::spawn(count_call(client, submitted++, read));
    }
    loop.turn();
  }
  read.ns = now_ns() - began;
  return read;
}

/// Resumes the coroutines of COUNT calls by windows. All completions of a window are ready before,
/// and only the dispatching is timed.
inline reading drain(const lab::client &of, std::uint64_t count) {
  const auto client = need(of.attach(window));
  thalweg::poll_loop loop;
  loop.add(client);
  reading read;
  while (read.records < count) {
    const std::uint64_t until = std::min(count, read.records + window);
    for (std::uint64_t token = read.records; token < until; ++token) {
      thalweg::spawn(count_call(client, token, read));
    }
    // The calls of one instance are answered in order: when this one is, all are.
    need_ok(of.nop().get());
    const std::uint64_t began = now_ns();
    while (read.records < until) {
      loop.turn();
    }
    read.ns += now_ns() - began;
  }
  return read;
}

inline thalweg::task<> time_call(const lab::client &client, std::uint64_t due,
                                 std::uint64_t &latency, std::uint64_t &ended) {
  need_ok(co_await client.nop());
  latency = now_ns() - due;
  ended++;
}

/// Makes COUNT calls at a rate of PER_S a second. Measures for each, in ns, how long after its due
/// time its coroutine resumed. Between submissions, the loop turns.
inline std::vector<std::uint64_t> paced(const lab::client &of, std::uint64_t count,
                                        std::uint64_t per_s) {
  const auto client = need(of.attach(window));
  std::vector<std::uint64_t> latencies(count);
  std::uint64_t submitted = 0;
  std::uint64_t ended = 0;
  const std::uint64_t began = now_ns();
  while (ended < count) {
    while (submitted < count && submitted - ended < window) {
      const std::uint64_t due = began + submitted * 1000000000u / per_s;
      if (now_ns() < due) {
        break;
      }
      thalweg::spawn(time_call(client, due, latencies[submitted++], ended));
    }
    client.dispatch();
  }
  return latencies;
}

/// Completions that another thread has put into an array; each resumes a coroutine.
struct raw_queue {
  std::mutex mutex;
  std::vector<std::uint64_t> filled;
  std::vector<std::coroutine_handle<>> waiting;
  int event = eventfd(0, EFD_CLOEXEC);
};

struct raw_wait {
  raw_queue &queue;
  [[nodiscard]] bool await_ready() const noexcept {
    return false;
  }
  void await_suspend(std::coroutine_handle<> waiter) const {
    queue.waiting.push_back(waiter);
  }
  void await_resume() const noexcept {
  }
};

inline thalweg::task<> count_raw(raw_queue &queue, std::uint64_t token, reading &read) {
  co_await raw_wait{queue};
  read.checksum += token;
  read.records++;
}

/// The peer of `drain`: polls and reads an eventfd, takes the array under its lock, and resumes the
/// coroutine of each.
inline reading raw(std::uint64_t count) {
  raw_queue queue;
  queue.waiting.reserve(window);
  reading read;
  while (read.records < count) {
    const std::uint64_t now = std::min(count - read.records, window);
    queue.waiting.clear();
    for (std::uint64_t number = 0; number < now; ++number) {
      thalweg::spawn(count_raw(queue, read.records + number, read));
    }
    std::thread([&queue, now] {
      for (std::uint64_t number = 0; number < now; ++number) {
        const std::lock_guard<std::mutex> lock(queue.mutex);
        queue.filled.push_back(number);
      }
      eventfd_write(queue.event, 1);
    }).join();
    const std::uint64_t began = now_ns();
    pollfd polled{queue.event, POLLIN, 0};
    poll(&polled, 1, -1);
    eventfd_t value = 0;
    eventfd_read(queue.event, &value);
    std::vector<std::uint64_t> taken;
    {
      const std::lock_guard<std::mutex> lock(queue.mutex);
      taken.swap(queue.filled);
    }
    for (const std::uint64_t number : taken) {
      queue.waiting[number].resume();
    }
    read.ns += now_ns() - began;
  }
  close(queue.event);
  return read;
}

#endif
