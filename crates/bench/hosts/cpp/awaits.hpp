/// Operations that a coroutine awaits one by one, and the bare one. The bare one hands a number to
/// another thread and back. The way back is an eventfd, which a loop over `poll` watches.
#ifndef LAB_AWAITS_HPP
#define LAB_AWAITS_HPP

#include <poll.h>
#include <unistd.h>

#include "bare.h"
#include "reading.hpp"

/// The thread that answers, and the coroutine that waits for it.
class awaited_bare {
public:
  explicit awaited_bare(const char *library) {
    bare_open(&both_, library);
    void *const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*fd)(void *) = nullptr;
    bare_find(opened, "lab_bare_post", &post_);
    bare_find(opened, "lab_bare_fd", &fd);
    event_ = fd(both_.state);
  }
  awaited_bare(const awaited_bare &) = delete;
  awaited_bare &operator=(const awaited_bare &) = delete;
  ~awaited_bare() {
    both_.close(both_.state);
  }
  /// One request, one reply, blocking.
  void call() {
    both_.call(both_.state);
  }

  /// One request whose reply resumes the coroutine.
  struct reply {
    awaited_bare &from;
    [[nodiscard]] bool await_ready() const noexcept {
      return false;
    }
    void await_suspend(std::coroutine_handle<> waiter) const {
      from.waiter_ = waiter;
      from.post_(from.both_.state);
    }
    void await_resume() const noexcept {
    }
  };

  /// Runs a task that awaits nothing else.
  void run(thalweg::task<> root) {
    bool has_ended = false;
    thalweg::spawn([](thalweg::task<> running, bool &ended) -> thalweg::task<> {
      co_await std::move(running);
      ended = true;
    }(std::move(root), has_ended));
    while (!has_ended) {
      pollfd polled{event_, POLLIN, 0};
      std::uint64_t count = 0;
      if (poll(&polled, 1, -1) == 1 && read(event_, &count, sizeof(count)) == sizeof(count)) {
        waiter_.resume();
      }
    }
  }

private:
  bare both_{};
  void (*post_)(void *) = nullptr;
  int event_ = -1;
  std::coroutine_handle<> waiter_;
};

/// Times COUNT operations one by one, after UNCOUNTED more, each after a pause of PAUSE_US.
template <class Operation>
std::vector<std::uint64_t> time_each(Operation operation, const std::uint64_t numbers[3]) {
  std::vector<std::uint64_t> latencies(numbers[0]);
  for (std::uint64_t i = 0; i < numbers[1]; ++i) {
    operation();
  }
  for (std::uint64_t &latency : latencies) {
    if (numbers[2] > 0) {
      pause_us(static_cast<std::uint32_t>(numbers[2]));
    }
    const std::uint64_t began = now_ns();
    operation();
    latency = now_ns() - began;
  }
  return latencies;
}

/// The same for operations that `make` returns and the coroutine awaits.
template <class Make>
thalweg::task<> time_awaits(Make make, const std::uint64_t numbers[3],
                            std::vector<std::uint64_t> &latencies) {
  latencies.resize(numbers[0]);
  for (std::uint64_t i = 0; i < numbers[1]; ++i) {
    co_await make();
  }
  for (std::uint64_t &latency : latencies) {
    if (numbers[2] > 0) {
      pause_us(static_cast<std::uint32_t>(numbers[2]));
    }
    const std::uint64_t began = now_ns();
    co_await make();
    latency = now_ns() - began;
  }
}

#endif
