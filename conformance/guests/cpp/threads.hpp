/// The threads of the guest, which write streams, and run coroutines that wait.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "thalweg/guest.hpp"

/// The interval at which a waiting call checks whether it was cancelled. Only a test should poll.
constexpr std::chrono::milliseconds look{2};

/// The threads of the guest. They are joined after their end: a detached one could still run code of the
/// library while that is unloaded.
inline std::mutex mutex;
inline std::condition_variable thread_ended;
struct thread_list {
  std::map<std::thread::id, std::thread> running;
  std::vector<std::thread> ended;
};
// A pointer, because programs may end without `unload`, while threads run.
inline thread_list *threads = nullptr;
inline std::atomic<bool> is_stopping{false};

inline void join_ended_threads(std::unique_lock<std::mutex> lock) {
  std::vector<std::thread> ended = std::exchange(threads->ended, {});
  lock.unlock();
  for (std::thread &thread : ended) {
    thread.join();
  }
}

/// Runs a function on a thread.
template <class Run> void run_on_a_thread(Run run) {
  std::unique_lock lock(mutex);
  std::thread thread([given = std::optional<Run>(std::move(run))]() mutable {
    (*given)();
    given.reset();
    const std::lock_guard lock(mutex);
    auto self = threads->running.extract(std::this_thread::get_id());
    threads->ended.push_back(std::move(self.mapped()));
    thread_ended.notify_all();
  });
  const std::thread::id id = thread.get_id();
  threads->running.emplace(id, std::move(thread));
  join_ended_threads(std::move(lock));
}

inline void begin_threads() {
  threads = new thread_list;
}

/// Waits for all threads. Coroutines that wait are resumed.
inline void end_threads() {
  is_stopping = true;
  std::unique_lock lock(mutex);
  thread_ended.wait(lock, [] { return threads->running.empty(); });
  is_stopping = false;
  join_ended_threads(std::move(lock));
  delete threads;
}

/// `co_await` of it waits for a time, or until the call was stopped or `is_over` returns true.
template <class Call> struct wait_for {
  Call &call;
  std::chrono::milliseconds time;
  std::function<bool()> is_over = [] { return false; };

  bool await_ready() const noexcept {
    return false;
  }
  void await_suspend(std::coroutine_handle<> waiting) {
    using steady = std::chrono::steady_clock;
    using std::chrono::milliseconds;
    run_on_a_thread([this, waiting, until = steady::now() + time] {
      while (steady::now() < until && call.check() == thalweg::outcome::ok && !is_over() &&
             !is_stopping) {
        std::this_thread::sleep_for(std::min(look, std::chrono::duration_cast<milliseconds>(
                                                       until - steady::now() + milliseconds(1))));
      }
      waiting.resume();
    });
  }
  void await_resume() const noexcept {
  }
};

/// `co_await` of it goes on with the coroutine on a thread, which may wait.
struct on_a_thread {
  bool await_ready() const noexcept {
    return false;
  }
  void await_suspend(std::coroutine_handle<> moved) const {
    run_on_a_thread(moved);
  }
  void await_resume() const noexcept {
  }
};
