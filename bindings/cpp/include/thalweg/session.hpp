/// The common state of a client, its resources and its streams: the port, and the operations that
/// wait for it. Programs do not use this file directly.
///
/// Rules:
///  1. One thread at a time uses a session. It is locked during each use, so that a second thread
///     gets an error instead of a data race.
///  2. An operation is in the table of slots from its submission until its completion was reaped or
///     the operation was removed. Its token is the number and the generation of its slot. A removed
///     operation changes the generation, so that a later completion finds nobody, and its stop
///     callback is gone.
///  3. An operation is removed before its `finish` is called, which may resume a coroutine. The
///     coroutine may use, close or destroy everything; `dispatch` and `close` hold a reference to
///     the session meanwhile.
///  4. A stop callback may run on any thread. It only sets `has_stop` and writes to `wake_fd`, which
///     stays open as long as the session. `arm_fd` reads `has_stop` after it reset the descriptor,
///     so that no stop is missed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <coroutine>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <poll.h>
#include <stop_token>
#include <thread>
#include <unistd.h>
#include <utility>

#include "error.hpp"
#include "thalweg_client.h"
#include "thalweg_stream.h"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {
namespace detail {

/// The stop callback, on any thread: it cancels a call, or if that is 0, wakes the loop.
struct stop_action {
  session *of;
  tw_handle call;
  void operator()() const noexcept;
};

/// A coroutine's wait for a completion.
class operation {
public:
  operation(std::uint64_t until_ns, std::stop_token token) noexcept
      : deadline_ns(until_ns), stop(std::move(token)) {
  }
  operation(const operation &) = delete;
  operation &operator=(const operation &) = delete;

  /// Takes a completion over by zeroing `*completion`. NULL: the client was closed, or `is_over`.
  virtual void finish(tw_completion *completion) noexcept = 0;
  /// A progress notice.
  virtual void notice(std::uint64_t) noexcept {
  }
  /// Whether the session ends the wait now. Otherwise, the library does.
  [[nodiscard]] virtual bool is_over(std::uint64_t) const noexcept {
    return false;
  }
  void watch_stop(session &of, tw_handle call) {
    if (stop.stop_possible()) {
      on_stop.emplace(stop, stop_action{&of, call});
    }
  }

  std::uint64_t deadline_ns;
  std::stop_token stop;
  std::uint64_t token = 0; // not 0 while it is in the table of slots
  std::coroutine_handle<> waiter;
  std::optional<std::stop_callback<stop_action>> on_stop;

protected:
  ~operation() = default;
};

/// The object that implements the host imports of a client.
struct host_binding {
  tw_host tw;
  void *object;
};

struct session {
  struct slot {
    operation *waiting;
    std::uint32_t generation;
    std::uint32_t next_free;
  };

  std::atomic<std::uint32_t> references{1};
  std::atomic<bool> is_busy{false};
  tw_client tw{};
  host_binding host{};
  std::uint32_t capacity = 0;
  std::uint32_t waiting = 0; // operations in `slots`
  std::uint32_t first_free = 0;
  std::unique_ptr<slot[]> slots;      // allocated by the first operation
  std::uint64_t wake_ns = TW_FOREVER; // not later than the first `deadline_ns` in `slots`
  std::atomic<bool> has_stop{false};
  int port_fd = -1;
  int wake_fd = -1; // a duplicate of `port_fd`, opened by the first stop token or deadline

  session() noexcept = default;
  session(const session &) = delete;
  session &operator=(const session &) = delete;
  ~session() {
    if (wake_fd >= 0) {
      ::close(wake_fd);
    }
  }

  /// The session of a client that was moved from.
  static session &closed() noexcept {
    static session *const none = new session;
    return *none;
  }

  void retain() noexcept {
    references.fetch_add(1, std::memory_order_relaxed);
  }
  void drop() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete this;
    }
  }

  // For std::lock_guard.
  bool try_lock() noexcept {
    return !is_busy.exchange(true, std::memory_order_acquire);
  }
  void lock() noexcept {
    while (!try_lock()) {
      std::this_thread::yield();
    }
  }
  void unlock() noexcept {
    is_busy.store(false, std::memory_order_release);
  }
  /// Locks the session, unless another thread uses it: then the result is an error.
  std::uint32_t enter(tw_error *error) noexcept {
    if (try_lock()) [[likely]] {
      return TW_OK;
    }
    return tw.host != nullptr && tw.host->serving
               ? tw_fail(error, TW_WOULD_PARK,
                         "a host must not call the client whose service waits for its answer")
               : tw_fail(error, TW_ARGUMENT,
                         "another thread uses this client; attach a client for each thread");
  }

  /// Adds an operation, whose token it sets. The session is locked, as for `find` and `remove`.
  std::uint32_t add(operation &added, tw_error *error) noexcept {
    if (!slots) {
      slots.reset(new (std::nothrow) slot[capacity]);
      for (std::uint32_t index = 0; slots && index < capacity; ++index) {
        slots[index] = {nullptr, 1, index + 1};
      }
    }
    if (!slots || first_free >= capacity) {
      return tw_fail(error, TW_OVERLOADED, "every slot of the client's port is used");
    }
    slot &taken = slots[first_free];
    added.token = std::uint64_t{taken.generation} << 32 | first_free;
    first_free = taken.next_free;
    taken.waiting = &added;
    ++waiting;
    return TW_OK;
  }
  [[nodiscard]] operation *find(std::uint64_t token) const noexcept {
    const auto index = static_cast<std::uint32_t>(token);
    if (!slots || index >= capacity || slots[index].generation != token >> 32) {
      return nullptr;
    }
    return slots[index].waiting;
  }
  operation *remove(std::uint64_t token) noexcept {
    operation *const found = find(token);
    if (found != nullptr) {
      const auto index = static_cast<std::uint32_t>(token);
      slot &freed = slots[index];
      freed.waiting = nullptr;
      freed.generation = freed.generation == UINT32_MAX ? 1 : freed.generation + 1;
      freed.next_free = first_free;
      first_free = index;
      --waiting;
      found->token = 0;
      found->on_stop.reset();
    }
    return found;
  }
  void abandon(const operation &ended) noexcept {
    const std::lock_guard<session> use(*this);
    remove(ended.token);
  }

  /// Submits a call whose completion belongs to `added`.
  std::uint32_t submit(tw_request *request, operation &added, tw_error *error) noexcept {
    std::uint32_t code = enter(error);
    if (code != TW_OK) {
      return code;
    }
    const std::lock_guard<session> use(*this, std::adopt_lock);
    code = add(added, error);
    if (code == TW_OK) {
      request->submission.token = added.token;
      code = tw_submit(request->client, &request->submission, error);
      if (code != TW_OK) {
        remove(added.token);
      } else {
        added.watch_stop(*this, request->submission.call);
      }
    }
    return code;
  }

  /// Arms a stream or a stream writer. `*ready`: there is nothing to wait for.
  std::uint32_t arm(tw_handle stream, operation &added, std::uint32_t *ready,
                    tw_error *error) noexcept {
    std::uint32_t code = enter(error);
    if (code != TW_OK) {
      return code;
    }
    const std::lock_guard<session> use(*this, std::adopt_lock);
    if (tw.port == 0) {
      return tw_fail(error, TW_CANCELLED, "the client was closed");
    }
    if ((added.stop.stop_possible() || added.deadline_ns != TW_FOREVER) && !open_wake_fd()) {
      return tw_fail(error, TW_OVERLOADED, "no file descriptor for a stop token or deadline");
    }
    code = add(added, error);
    if (code != TW_OK) {
      return code;
    }
    code = tw.table->stream_arm(stream, tw.port, added.token, ready, error);
    if (code != TW_OK || *ready != 0) {
      remove(added.token);
      return code;
    }
    added.watch_stop(*this, 0);
    if (added.deadline_ns < wake_ns) {
      wake_ns = added.deadline_ns;
      wake(); // the loop may be waiting already, with a later deadline
    }
    return code;
  }

  /// The port's descriptor; -1 if the client is closed.
  int fd() noexcept {
    if (port_fd < 0 && tw.port != 0) {
      tw.table->port_fd(tw.port, &port_fd, nullptr);
    }
    return port_fd;
  }
  /// Prepares `wake`.
  bool open_wake_fd() noexcept {
    if (wake_fd < 0 && fd() >= 0) {
      wake_fd = ::fcntl(port_fd, F_DUPFD_CLOEXEC, 0);
    }
    return wake_fd >= 0;
  }
  /// Wakes the loop. Called on any thread.
  void wake() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_fd, &one, sizeof(one));
  }
  /// Arms the port's descriptor. False: dispatch first.
  bool arm_fd() noexcept {
    std::uint32_t ready = 0;
    if (tw.port != 0) {
      tw.table->port_arm(tw.port, &ready, nullptr);
    }
    return ready == 0 && !has_stop.load();
  }
  /// Milliseconds until the first deadline, rounded up; -1: there is none.
  [[nodiscard]] int timeout_ms() const noexcept {
    if (wake_ns == TW_FOREVER) {
      return -1;
    }
    const std::uint64_t now = tw.table->now();
    const std::uint64_t left = wake_ns > now ? (wake_ns - now + 999999) / 1000000 : 0;
    return static_cast<int>(std::min<std::uint64_t>(left, INT32_MAX));
  }
  /// Blocks this thread until there is something to dispatch, and dispatches it.
  std::uint32_t turn(tw_error *error) {
    if (arm_fd() && tw.port != 0) {
      pollfd wait{fd(), POLLIN, 0};
      if (::poll(&wait, 1, timeout_ms()) < 0 && errno == EINTR) {
        return tw_fail(error, TW_INTERRUPTED, "a signal arrived during a wait for a stream");
      }
    }
    dispatch(256);
    return TW_OK;
  }

  /// Reaps up to `budget` completions and finishes their operations. Returns their number.
  std::size_t dispatch(std::size_t budget) {
    constexpr std::size_t at_once = 16;
    std::size_t total = 0;
    retain();
    if (has_stop.load() || (wake_ns != TW_FOREVER && wake_ns <= tw.table->now())) [[unlikely]] {
      end_waits();
    }
    while (total < budget && try_lock()) {
      tw_completion reaped[at_once];
      std::uint32_t count = 0;
      if (tw.port != 0) {
        const auto most = static_cast<std::uint32_t>(std::min(budget - total, at_once));
        tw.table->port_reap(tw.port, reaped, most, &count, nullptr);
      }
      unlock();
      for (std::uint32_t index = 0; index < count; ++index) {
        deliver(&reaped[index]);
      }
      total += count;
      if (count < at_once) {
        break; // what has arrived since then wakes the loop again
      }
    }
    drop();
    return total;
  }

  /// Closes the client. Its waiting operations finish inside this function.
  std::uint32_t close(tw_error *error) noexcept {
    retain();
    lock();
    const std::uint32_t code = tw_client_close(&tw, error);
    port_fd = -1;
    unlock();
    finish_each([](const operation &) { return true; });
    drop();
    return code;
  }

private:
  /// Finishes the operations that `ends` selects.
  template <class Ends> void finish_each(Ends &&ends) noexcept {
    for (std::uint32_t index = 0; slots && index < capacity; ++index) {
      lock();
      operation *const each = slots[index].waiting;
      const bool has_ended = each != nullptr && ends(*each);
      if (has_ended) {
        remove(each->token);
      }
      unlock();
      if (has_ended) {
        each->finish(nullptr);
      }
    }
  }
  /// Finishes the operations that a stop or their deadline ends.
  void end_waits() noexcept {
    lock();
    has_stop.store(false);
    wake_ns = TW_FOREVER;
    unlock();
    finish_each([&, now = tw.table->now()](const operation &each) {
      const bool is_over = each.is_over(now);
      if (!is_over) {
        wake_ns = std::min(wake_ns, each.deadline_ns);
      }
      return is_over;
    });
  }
  void deliver(tw_completion *completion) {
    const tw_table *const table = tw.table;
    if (completion->kind == TW_COMPLETION_HOST_CALL && tw.host != nullptr) {
      tw_host_serve(tw.host, completion);
      return;
    }
    const bool is_notice = completion->kind == TW_COMPLETION_NOTICE;
    lock();
    operation *const waiter = is_notice ? find(completion->token) : remove(completion->token);
    unlock();
    if (waiter != nullptr && is_notice) {
      std::uint64_t elapsed_ns = 0;
      std::memcpy(&elapsed_ns, completion->data, sizeof(elapsed_ns));
      waiter->notice(elapsed_ns);
    } else if (waiter != nullptr) {
      waiter->finish(completion);
    }
    table->release(completion);
  }
};

inline void stop_action::operator()() const noexcept {
  if (call != 0) {
    of->tw.table->cancel(call, nullptr);
  } else {
    of->has_stop.store(true);
    of->wake();
  }
}

/// A reference to a session. It is never NULL.
class session_ref {
public:
  /// The session of a client that was moved from.
  session_ref() noexcept : session_(&session::closed()) {
    session_->retain();
  }
  /// Takes over the first reference.
  explicit session_ref(session *created) noexcept : session_(created) {
  }
  explicit session_ref(session &shared) noexcept : session_(&shared) {
    session_->retain();
  }
  session_ref(const session_ref &other) noexcept : session_(other.session_) {
    session_->retain();
  }
  session_ref(session_ref &&other) noexcept : session_ref() {
    std::swap(session_, other.session_);
  }
  session_ref &operator=(session_ref other) noexcept {
    std::swap(session_, other.session_);
    return *this;
  }
  ~session_ref() {
    session_->drop();
  }
  session *operator->() const noexcept {
    return session_;
  }
  session &operator*() const noexcept {
    return *session_;
  }

private:
  session *session_;
};

} // namespace detail
} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
