// A guest in C++ for guests.cpp: it serves the package of bindings/c/tests/guests/interface.
// PROBE_VERSION and PROBE_BALLAST: as in bindings/c/tests/guests/probe.c, for reload.c there.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "probe_guest.hpp"

namespace {

using std::chrono::milliseconds;

std::mutex mutex;
std::condition_variable changed;
/// A thread, and whether it has ended.
struct worker {
  std::thread thread;
  std::shared_ptr<std::atomic<bool>> has_ended = std::make_shared<std::atomic<bool>>(false);
};
std::vector<worker> workers;
bool is_stopping = false;
std::atomic<bool> refuses{false};
/// Cells and services that exist.
std::atomic<int> living{0};

#ifndef PROBE_VERSION
#define PROBE_VERSION 1
#endif
#ifndef PROBE_BALLAST
#define PROBE_BALLAST 1
#endif
volatile char ballast[PROBE_BALLAST];

/// Runs a function on a thread, which `unload` waits for.
template <class Run> void run_on_a_thread(Run &&run) {
  const std::lock_guard lock(mutex);
  std::erase_if(workers, [](worker &one) {
    const bool has_ended = *one.has_ended;
    if (has_ended) {
      one.thread.join();
    }
    return has_ended;
  });
  worker &added = workers.emplace_back();
  added.thread = std::thread([run = std::forward<Run>(run), ended = added.has_ended]() mutable {
    run();
    *ended = true;
  });
}

struct sleep_for {
  milliseconds time;
  bool await_ready() const noexcept {
    return false;
  }
  void await_suspend(std::coroutine_handle<> sleeper) const {
    run_on_a_thread([=, time = time] {
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, time, [] { return is_stopping; });
      }
      sleeper.resume();
    });
  }
  void await_resume() const noexcept {
  }
};

class cell final : public probe::cell {
public:
  explicit cell(std::uint64_t value) : value_(value) {
    living++;
  }
  ~cell() override {
    living--;
  }
  void get(thalweg::incoming<probe::methods::cell_get> &call) override {
    call.answer(value_);
  }
  void add(thalweg::incoming<probe::methods::cell_add> &call, std::uint64_t value) override {
    call.answer(value_ += value);
  }
  std::uint64_t value() const noexcept {
    return value_;
  }

private:
  std::uint64_t value_;
};

class service final : public probe::service {
public:
  service() {
    if (refuses.exchange(false)) {
      throw std::runtime_error("the service was told not to start");
    }
    living++;
  }
  ~service() override {
    living--;
  }

  void cell(thalweg::incoming<probe::methods::cell_new> &call, std::uint64_t value) override {
    call.answer(std::make_shared<::cell>(value));
  }
  void cell_open(thalweg::incoming<probe::methods::cell_open> &call,
                 const std::shared_ptr<probe::cell> &cell) override {
    call.answer(static_cast<const ::cell &>(*cell).value());
  }
  void add(thalweg::incoming<probe::methods::add> &call, std::uint64_t number) override {
    call.answer(sum_ += number);
  }
  void echo(thalweg::incoming<probe::methods::echo> &call, const thalweg::text &text) override {
    if (text.size() > 1000) {
      call.fail({probe::trouble::too_long{static_cast<std::uint32_t>(text.size())}});
    } else {
      call.answer(text);
    }
  }
  void move_all(thalweg::incoming<probe::methods::move_all> &call,
                const thalweg::list<probe::point> &points, const probe::point &by,
                const std::optional<probe::colors> &) override {
    std::vector<probe::point> moved;
    for (const probe::point point : points) {
      moved.push_back({point.name, point.x + by.x, point.y + by.y});
    }
    std::ranges::reverse(moved);
    call.answer(moved);
  }
  void bytes(thalweg::incoming<probe::methods::bytes> &call, const thalweg::bytes &bytes) override {
    call.answer(bytes);
  }
  void nothing(thalweg::incoming<probe::methods::nothing> &call) override {
    call.answer();
  }
  thalweg::task<> later(thalweg::incoming<probe::methods::later> &call, std::uint32_t ms,
                        std::uint64_t number) override {
    co_await sleep_for{milliseconds(ms)};
    if (number == 0) {
      throw std::runtime_error("there is no number");
    }
    // The service is kept until here, although its client may be closed.
    latest_ = number;
    call.answer(latest_);
  }
  void numbers(thalweg::incoming<probe::methods::numbers> &call, std::uint64_t count) override {
    thalweg::record_writer<probe::methods::numbers> numbers;
    if (call.answer(numbers) == thalweg::outcome::ok) {
      run_on_a_thread([count, numbers = std::move(numbers)]() mutable {
        std::vector<std::uint64_t> some;
        for (std::uint64_t number = 0; number < count; ++number) {
          some.push_back(number);
          if (some.size() == 64 || number + 1 == count) {
            if (!numbers.send(some)) {
              return;
            }
            some.clear();
          }
        }
        numbers.finish();
      });
    }
  }
  void points(thalweg::incoming<probe::methods::points> &call, std::uint32_t count,
              std::uint32_t failing) override {
    thalweg::record_writer<probe::methods::points> points;
    call.answer(points);
    points.set_batch(4);
    for (std::uint32_t number = 1; number <= count; ++number) {
      if (number == failing) {
        points.fail({probe::trouble::because{"it was asked to"}});
        return;
      }
      const std::string name = "point " + std::to_string(number);
      if (!points.send({name, static_cast<std::int32_t>(number), 0}, 0)) {
        return;
      }
    }
    if (failing <= count) {
      points.finish();
    } // otherwise, the writer is dropped
  }
  void soon(thalweg::incoming<probe::methods::soon> &call, std::uint32_t value) override {
    thalweg::record_writer<probe::methods::soon> future;
    call.answer(future);
    if (future.send(value)) {
      future.finish();
    }
  }
  void misbehave(thalweg::incoming<probe::methods::misbehave> &call, std::uint32_t how) override {
    switch (how) {
    case 0: // not answered
      break;
    case 1:
      throw std::runtime_error("it went wrong");
    case 2:
      throw how;
    case 3: { // answered twice
      call.answer("once");
      thalweg::record_writer<probe::methods::points> points; // which was never set
      const bool is_stale = call.answer("twice") == thalweg::outcome::stale &&
                            call.fail({probe::trouble::unknown{}}) == thalweg::outcome::stale &&
                            call.check() == thalweg::outcome::stale &&
                            points.send({"", 0, 0}).error().code() == thalweg::outcome::stale &&
                            points.fail({probe::trouble::unknown{}}) == thalweg::outcome::stale &&
                            points.finish() == thalweg::outcome::stale;
      refuses = !is_stale;
      break;
    }
    case 4: // moved away and dropped
      thalweg::incoming<probe::methods::misbehave>(std::move(call));
      break;
    case 5:
      refuses = true;
      call.answer("the next service does not start");
      break;
    default:
      call.end(thalweg::outcome::overloaded, "there is too much to do");
      break;
    }
  }

  static void load() {
    const std::lock_guard lock(mutex);
    is_stopping = false;
    for (std::size_t i = 0; i < sizeof(ballast); i += 4096) {
      ballast[i] = 1;
    }
  }
  static void unload() {
    {
      const std::lock_guard lock(mutex);
      is_stopping = true;
      changed.notify_all();
    }
    for (worker &one : workers) {
      one.thread.join();
    }
    workers.clear();
    if (living != 0) {
      std::fprintf(stderr, "%d objects are left\n", living.load());
      std::abort();
    }
  }

private:
  std::uint64_t sum_ = (PROBE_VERSION - 1) * std::uint64_t{1000000};
  std::uint64_t latest_ = 0;
};

} // namespace

THALWEG_EXPORT_GUEST(service)
