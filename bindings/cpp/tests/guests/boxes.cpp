// A guest in C++ for guest_boxes.cpp, with resources inside of values.
#include <atomic>
#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "boxes_guest.hpp"

namespace {

namespace methods = boxes::methods;
using thalweg::incoming;
using thalweg::task;
using share = std::shared_ptr<boxes::box>;

std::atomic<std::uint32_t> living{0};
std::thread *late = nullptr; // of the last call of `make-late`

void join_late() {
  if (late != nullptr) {
    late->join();
    delete std::exchange(late, nullptr);
  }
}

class box final : public boxes::box {
public:
  explicit box(std::uint64_t number) : number_(number) {
    living++;
  }
  ~box() override {
    living--;
  }
  void number(incoming<methods::box_number> &call) override {
    call.answer(number_);
  }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return number_;
  }

private:
  std::uint64_t number_;
};

std::uint64_t number_of(const share &object) {
  return static_cast<const box &>(*object).value();
}

std::vector<share> make_boxes(std::uint32_t count) {
  std::vector<share> made;
  for (std::uint32_t number = 1; number <= count; ++number) {
    made.push_back(std::make_shared<box>(number));
  }
  return made;
}

struct sleep_for {
  std::chrono::milliseconds time;
  bool await_ready() const noexcept {
    return false;
  }
  void await_suspend(std::coroutine_handle<> sleeper) const {
    join_late();
    late = new std::thread([sleeper, time = time] {
      std::this_thread::sleep_for(time);
      sleeper.resume();
    });
  }
  void await_resume() const noexcept {
  }
};

class service final : public boxes::service {
public:
  void box(incoming<methods::box_new> &call, std::uint64_t number) override {
    call.answer(number == 0 ? nullptr : std::make_shared<::box>(number));
  }
  void make(incoming<methods::make> &call, std::uint32_t count) override {
    call.answer(make_boxes(count));
  }
  void spoil(incoming<methods::spoil> &call, std::uint32_t count) override {
    std::vector<share> made = make_boxes(count);
    made.back() = nullptr;
    call.answer(made);
  }
  task<> make_late(incoming<methods::make_late> &call, std::uint32_t ms,
                   std::uint32_t count) override {
    co_await sleep_for{std::chrono::milliseconds(ms)};
    call.answer(make_boxes(count));
  }
  void sum(incoming<methods::sum> &call, const boxes::load &load) override {
    std::uint64_t sum = 0;
    if (const auto *one = load.get_if<boxes::load::one>()) {
      sum = number_of(one->value);
    } else if (const auto *pair = load.get_if<boxes::load::pair>()) {
      const auto &[left, right] = pair->value;
      sum = number_of(left) + (right ? number_of(*right) : 0);
    } else if (const auto *several = load.get_if<boxes::load::several>()) {
      for (const share &each : several->value) {
        sum += number_of(each);
      }
    }
    call.answer(sum);
  }
  task<> pass(incoming<methods::pass> &call, const boxes::load &load) override {
    load.get_if<boxes::load::one>() != nullptr ? call.fail(load) : call.answer(load);
    co_return;
  }
  void living(incoming<methods::living> &call) override {
    call.answer(::living);
  }
  static void unload() {
    join_late();
  }
};

} // namespace

THALWEG_EXPORT_GUEST(service)
