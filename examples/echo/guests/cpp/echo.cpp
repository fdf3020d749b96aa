// The echo service in C++: a shared library that programs open as thread:PATH. README.md has the
// command.
//
// The functions of a guest return soon. What is due later is a coroutine, which one thread resumes.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "echo_guest.hpp"

namespace {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint32_t hour_ms = 60 * 60 * 1000;
// A tick for a full stream is tried again after this time.
constexpr milliseconds retry{10};

/// A thread that resumes coroutines when they are due.
class alarm_clock {
public:
  /// `co_await` of it waits until `due`, or until the call with this number was cancelled.
  struct sleep {
    alarm_clock &clock;
    steady::time_point due;
    tw_handle call;
    bool await_ready() const noexcept {
      return false;
    }
    void await_suspend(std::coroutine_handle<> sleeper) const {
      const std::lock_guard lock(clock.mutex_);
      clock.sleepers_.push_back({due, call, sleeper});
      clock.changed_.notify_one();
    }
    void await_resume() const noexcept {
    }
  };

  sleep until(steady::time_point due, tw_handle call = 0) {
    return {*this, due, call};
  }
  void wake(tw_handle call) {
    const std::lock_guard lock(mutex_);
    for (sleeper &one : sleepers_) {
      if (one.call == call) {
        one.due = steady::time_point::min();
      }
    }
    changed_.notify_one();
  }
  bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return is_stopping_;
  }

  alarm_clock() : thread_([this] { run(); }) {
  }
  /// Resumes all coroutines, so that they end.
  ~alarm_clock() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }

private:
  struct sleeper {
    steady::time_point due;
    tw_handle call;
    std::coroutine_handle<> coroutine;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_ || !sleepers_.empty()) {
      const auto first = std::ranges::min_element(sleepers_, {}, &sleeper::due);
      if (first == sleepers_.end()) {
        changed_.wait(lock);
      } else if (!is_stopping_ && first->due > steady::now()) {
        changed_.wait_until(lock, steady::time_point(first->due));
      } else {
        const std::coroutine_handle<> coroutine = first->coroutine;
        sleepers_.erase(first);
        lock.unlock();
        coroutine.resume();
        lock.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<sleeper> sleepers_;
  bool is_stopping_ = false;
  std::thread thread_; // last, because it uses the others
};

// A pointer, because programs may end without `unload`, while its thread runs.
alarm_clock *timers = nullptr;

echo::timer_error too_long(std::uint32_t ms) {
  return {echo::timer_error::too_long{ms}};
}

class timer final : public echo::timer {
public:
  explicit timer(std::string_view name) : name_(name) {
  }

  thalweg::task<> echo(thalweg::incoming<echo::methods::timer_echo> &call,
                       const echo::request &request) override {
    if (request.delay_ms > hour_ms) {
      call.fail(too_long(request.delay_ms));
      co_return;
    }
    co_await timers->until(steady::now() + milliseconds(request.delay_ms), call.id());
    call.answer({.message = request.message, .name = name_});
  }

  void complex(thalweg::incoming<echo::methods::timer_complex> &call,
               const echo::complex_request &request) override {
    std::string summary = std::to_string(request.messages.size()) + " messages, tags:";
    for (const thalweg::text &tag : request.tags) {
      summary += " " + tag.str();
    }
    summary += ", note: " + (request.note ? request.note->str() : "none");
    summary += ", retries: " + (request.retries ? std::to_string(*request.retries) : "none");
    call.answer({.summary = summary,
                 .item_count = request.messages.size(),
                 .has_note = request.note.has_value()});
  }

  void schedule(thalweg::incoming<echo::methods::timer_schedule> &call, std::uint32_t every_ms,
                std::uint32_t times) override {
    if (every_ms == 0) {
      call.fail({echo::timer_error::too_short{}});
    } else if (every_ms > hour_ms) {
      call.fail(too_long(every_ms));
    } else {
      thalweg::record_writer<echo::methods::timer_schedule> ticks;
      if (call.answer(ticks) == thalweg::outcome::ok) {
        thalweg::spawn(tick(std::move(ticks), milliseconds(every_ms), times));
      }
    }
  }

private:
  /// Sends ticks until there were enough, or the reader has gone.
  static thalweg::task<> tick(thalweg::record_writer<echo::methods::timer_schedule> ticks,
                              milliseconds every, std::uint32_t times) {
    steady::time_point due = steady::now();
    for (std::uint32_t number = 1; times == 0 || number <= times; ++number) {
      due += every;
      co_await timers->until(due);
      const auto late = std::chrono::nanoseconds(steady::now() - due);
      const echo::tick record{.number = number,
                              .late_ns = static_cast<std::uint64_t>(late.count())};
      // The thread must not wait for one reader: the others have timers, too.
      auto sent = ticks.send(record, 0);
      while (!sent && sent.error().code() == thalweg::outcome::timed_out &&
             !timers->is_stopping()) {
        co_await timers->until(steady::now() + retry);
        sent = ticks.send(record, 0);
      }
      if (!sent || timers->is_stopping()) {
        co_return;
      }
    }
    ticks.finish();
  }

  std::string name_;
};

class service final : public echo::service {
public:
  void timer(thalweg::incoming<echo::methods::timer_new> &call,
             const thalweg::text &name) override {
    if (name.empty()) {
      call.fail({echo::timer_error::no_name{}});
    } else {
      call.answer(std::make_shared<::timer>(name.view()));
    }
  }
  void version(thalweg::incoming<echo::methods::version> &call) override {
    call.answer("0.1.0");
  }
  void cancelled(tw_handle call) override {
    timers->wake(call);
  }

  static void load() {
    timers = new alarm_clock;
  }
  static void unload() {
    delete timers;
  }
};

} // namespace

THALWEG_EXPORT_GUEST(service)
