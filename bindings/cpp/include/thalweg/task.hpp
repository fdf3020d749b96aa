/// `task<T>`: a coroutine that starts when it is awaited, and returns a `T`.
///
/// It resumes its caller directly, without an event loop. Run the outermost task with `poll_loop`
/// (poll_loop.hpp), with Asio (asio.hpp), or in your own loop with `spawn`.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "view.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

template <class T = void> class task;

namespace detail {

/// Ends the program where exceptions are off and none can be stored.
class task_promise_base {
public:
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept {
    return {};
  }
  struct final_awaiter {
    [[nodiscard]] bool await_ready() const noexcept {
      return false;
    }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      return ended.promise().continuation;
    }
    void await_resume() const noexcept {
    }
  };
  [[nodiscard]] final_awaiter final_suspend() const noexcept {
    return {};
  }
  void unhandled_exception() noexcept {
    failure_ = std::current_exception();
  }
  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

  std::coroutine_handle<> continuation = std::noop_coroutine();

private:
  std::exception_ptr failure_;
};

template <class T> class task_promise : public task_promise_base {
public:
  task<T> get_return_object() noexcept;
  template <class U = T>
  requires std::constructible_from<T, U>
  void return_value(U &&value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    rethrow();
    return std::move(*value_);
  }

private:
  std::optional<T> value_;
};

template <> class task_promise<void> : public task_promise_base {
public:
  task<void> get_return_object() noexcept;
  void return_void() const noexcept {
  }
  void take() const {
    rethrow();
  }
};

} // namespace detail

template <class T> class [[nodiscard]] task {
public:
  using promise_type = detail::task_promise<T>;

  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {
  }
  task(task &&other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {
  }
  task &operator=(task &&other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  /// Destroys the coroutine, also one that is suspended: its call is cancelled.
  ~task() {
    if (frame_) {
      frame_.destroy();
    }
  }

  // The awaiter.
  [[nodiscard]] bool await_ready() const noexcept {
    return false;
  }
  /// A task that ends without suspending does not suspend its caller either, so that a loop over such
  /// tasks needs no stack for each.
  bool await_suspend(std::coroutine_handle<> waiter) {
    frame_.resume();
    if (frame_.done()) {
      return false;
    }
    frame_.promise().continuation = waiter;
    return true;
  }
  T await_resume() {
    return frame_.promise().take();
  }

private:
  std::coroutine_handle<promise_type> frame_;
};

namespace detail {

template <class T> task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
  return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

/// A coroutine that runs until its end and then frees itself. An exception that leaves it ends the
/// program.
struct detached {
  struct promise_type {
    [[nodiscard]] detached get_return_object() const noexcept {
      return {};
    }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept {
      return {};
    }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept {
      return {};
    }
    void return_void() const noexcept {
    }
    [[noreturn]] void unhandled_exception() const noexcept {
      std::terminate();
    }
  };
};

/// Waits for a task, and leaves its value or exception in it.
template <class T> struct until_done {
  task<T> &of;
  [[nodiscard]] bool await_ready() const noexcept {
    return false;
  }
  bool await_suspend(std::coroutine_handle<> waiter) const {
    return of.await_suspend(waiter);
  }
  void await_resume() const noexcept {
  }
};

} // namespace detail

/// Starts a task now, without waiting for it. It frees itself at its end. An exception that leaves it
/// ends the program.
inline void spawn(task<void> started) {
  [](task<void> running) -> detail::detached { co_await std::move(running); }(std::move(started));
}

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
