// A guest in C++ that reads streams of its callers and calls its host. It serves the package of
// bindings/c/tests/guests/inputs, and bindings/c/tests/guest_inputs.c calls it.
#include <atomic>
#include <coroutine>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "inputs_guest.hpp"

// Read by the test through dlsym: the threads that run.
extern "C" __attribute__((visibility("default"))) std::atomic<long> inputs_threads;
std::atomic<long> inputs_threads{0};

namespace {

namespace methods = inputs::methods;
using thalweg::incoming;
using thalweg::task;
using thalweg::text;

std::mutex mutex;
// A pointer, because the test ends without `unload`.
std::vector<std::thread> *threads = nullptr;

/// `co_await` of it goes on with the coroutine on a thread, which may wait.
struct on_a_thread {
  bool await_ready() const noexcept {
    return false;
  }
  void await_suspend(std::coroutine_handle<> moved) const {
    inputs_threads++;
    const std::lock_guard lock(mutex);
    threads->emplace_back([moved] {
      moved.resume();
      inputs_threads--;
    });
  }
  void await_resume() const noexcept {
  }
};

class service final : public inputs::service {
public:
  task<> sum(incoming<methods::sum> &call,
             thalweg::stream_reader<std::uint64_t> &numbers) override {
    co_await on_a_thread{};
    std::uint64_t sum = 0;
    while (const auto number = numbers.next()) {
      sum += *number;
    }
    const auto status = numbers.status();
    status ? call.answer(sum) : call.end(status.error());
  }
  task<> join(incoming<methods::join> &call, thalweg::stream_reader<text> &names,
              thalweg::future_reader<text> &between) override {
    co_await on_a_thread{};
    const auto word = between.get();
    if (!word) {
      call.end(word.error());
      co_return;
    }
    const std::string link = word->str();
    if (between.get()) { // it has one value
      std::abort();
    }
    std::string joined;
    while (const auto name = names.next()) {
      joined += joined.empty() ? name->str() : link + name->str();
    }
    const auto status = names.status();
    status ? call.answer(joined) : call.end(status.error());
  }
  void ignore(incoming<methods::ignore> &call,
              thalweg::stream_reader<std::uint64_t> &numbers) override {
    // A function of the guest must not wait.
    const bool would_park =
        !numbers.next() && numbers.status().error().code() == thalweg::outcome::would_park;
    numbers.close();
    const bool is_stale =
        !numbers.next() && numbers.status().error().code() == thalweg::outcome::stale;
    if (would_park && is_stale) {
      call.answer();
    }
  }
  task<> ask(incoming<methods::ask> &call, std::uint64_t key) override {
    co_await on_a_thread{};
    const inputs::host host(call);
    const auto found = host.look_up(key);
    if (found) {
      call.answer(**found);
    } else if (const std::uint64_t *const odd = found.error().payload()) {
      call.fail(*odd);
    } else {
      call.end(found.error());
    }
  }
  task<> tell(incoming<methods::tell> &call, const thalweg::list<text> &words) override {
    co_await on_a_thread{};
    const inputs::host host(call);
    const auto told = host.tell(words, 1000);
    told ? call.answer(*told) : call.end(told.error());
    // The host can only be called until the answer.
    if (host.tell(words, 1).has_value() || inputs::host(call).tell(words, 1).has_value()) {
      std::abort();
    }
  }
  void ask_now(incoming<methods::ask_now> &call, std::uint64_t key) override {
    const auto found = inputs::host(call).look_up(key);
    call.answer(static_cast<std::uint32_t>(found ? thalweg::outcome::ok : found.error().code()));
  }

  static void load() {
    threads = new std::vector<std::thread>;
  }
  static void unload() {
    for (std::thread &thread : *threads) {
      thread.join();
    }
    delete threads;
  }
};

} // namespace

THALWEG_EXPORT_GUEST(service)
