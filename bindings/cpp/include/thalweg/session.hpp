/// The common state of a client, its resources and its streams: the port, and the operations that
/// wait for it. Programs do not use this file directly.
///
/// Rules:
///  1. One thread at a time uses a session. `is_busy` is set during each use, so that a second
///     thread gets an error instead of a data race.
///  2. An operation is in the table of slots from its submission until its completion was reaped or
///     the operation was removed. Its token is the number and the generation of its slot. A removed
///     operation changes the generation, so that a later completion finds nobody.
///  3. An operation is removed before its `finish` is called, which may resume a coroutine. The
///     coroutine may use, close or destroy everything; `dispatch` and `close` hold a reference to
///     the session meanwhile.
#ifndef THALWEG_SESSION_HPP
#define THALWEG_SESSION_HPP

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "error.hpp"
#include "thalweg_client.h"
#include "thalweg_stream.h"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {
namespace detail {

/// A coroutine's wait for a completion.
struct operation {
  /// Takes a completion over by zeroing `*completion`. NULL: the client was closed.
  void (*finish)(operation *self, tw_completion *completion) noexcept;
  /// A progress notice. NULL: none are wanted.
  void (*notice)(operation *self, std::uint64_t elapsed_ns) noexcept = nullptr;
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
  std::unique_ptr<slot[]> slots; // allocated by the first operation

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

  /// Begins a use by this thread. TW_ARGUMENT: another thread uses the session.
  std::uint32_t enter(tw_error *error) noexcept {
    if (is_busy.exchange(true, std::memory_order_acquire)) [[unlikely]] {
      return tw.host != nullptr && tw.host->serving
                 ? tw_fail(error, TW_WOULD_PARK,
                           "a host must not call the client whose service waits for its answer")
                 : tw_fail(error, TW_ARGUMENT,
                           "another thread uses this client; attach a client for each thread");
    }
    return TW_OK;
  }
  void leave() noexcept {
    is_busy.store(false, std::memory_order_release);
  }
  /// Waits until the other user has left. It cannot fail.
  void wait_to_enter() noexcept {
    while (is_busy.exchange(true, std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }

  /// Adds an operation. Returns its token; 0 if there is no slot.
  std::uint64_t add(operation *added) noexcept {
    if (!slots) {
      slots.reset(new (std::nothrow) slot[capacity]);
      if (!slots) {
        return 0;
      }
      for (std::uint32_t index = 0; index < capacity; ++index) {
        slots[index] = {nullptr, 1, index + 1};
      }
      first_free = 0;
    }
    if (first_free >= capacity) {
      return 0;
    }
    slot &taken = slots[first_free];
    const std::uint64_t token = std::uint64_t{taken.generation} << 32 | first_free;
    first_free = taken.next_free;
    taken.waiting = added;
    ++waiting;
    return token;
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
    }
    return found;
  }
  /// The same for the destructor of an operation.
  void abandon(std::uint64_t token) noexcept {
    wait_to_enter();
    remove(token);
    leave();
  }

  /// Submits a call whose completion belongs to `added`, and frees the request's message.
  std::uint32_t submit(tw_request *request, operation *added, std::uint64_t *token,
                       tw_error *error) noexcept {
    std::uint32_t code = enter(error);
    if (code != TW_OK) {
      return code;
    }
    *token = add(added);
    if (*token == 0) {
      code = tw_fail(error, TW_OVERLOADED, "every slot of the client's port is used");
    } else {
      request->submission.token = *token;
      code = tw_submit(request->client, &request->submission, error);
      if (code != TW_OK) {
        remove(*token);
        *token = 0;
      }
    }
    leave();
    return code;
  }

  /// Arms a stream or a stream writer. `*ready`: there is nothing to wait for.
  std::uint32_t arm(tw_handle stream, operation *added, std::uint64_t *token, std::uint32_t *ready,
                    tw_error *error) noexcept {
    std::uint32_t code = enter(error);
    if (code != TW_OK) {
      return code;
    }
    if (tw.port == 0) {
      code = tw_fail(error, TW_CANCELLED, "the client was closed");
    } else {
      *token = add(added);
      code = *token != 0 ? tw.table->stream_arm(stream, tw.port, *token, ready, error)
                         : tw_fail(error, TW_OVERLOADED, "every slot of the client's port is used");
      if (*token != 0 && (code != TW_OK || *ready != 0)) {
        remove(*token);
        *token = 0;
      }
    }
    leave();
    return code;
  }

  /// Reaps up to `budget` completions and finishes their operations. Returns their number.
  std::size_t dispatch(std::size_t budget) {
    constexpr std::size_t at_once = 16;
    std::size_t total = 0;
    retain();
    while (total < budget) {
      tw_completion reaped[at_once];
      std::uint32_t count = 0;
      if (enter(nullptr) != TW_OK) {
        break;
      }
      if (tw.port != 0) {
        tw.table->port_reap(
            tw.port, reaped,
            static_cast<std::uint32_t>(budget - total < at_once ? budget - total : at_once), &count,
            nullptr);
      }
      leave();
      if (count == 0) {
        break;
      }
      for (std::uint32_t index = 0; index < count; ++index) {
        deliver(&reaped[index]);
      }
      total += count;
    }
    drop();
    return total;
  }

  /// Closes the client. Its waiting operations finish inside this function.
  std::uint32_t close(tw_error *error) noexcept {
    retain();
    wait_to_enter();
    const std::uint32_t code = tw_client_close(&tw, error);
    leave();
    for (std::uint32_t index = 0; slots && index < capacity; ++index) {
      wait_to_enter();
      operation *const ended = slots[index].waiting != nullptr
                                   ? remove(std::uint64_t{slots[index].generation} << 32 | index)
                                   : nullptr;
      leave();
      if (ended != nullptr) {
        ended->finish(ended, nullptr);
      }
    }
    drop();
    return code;
  }

private:
  void deliver(tw_completion *completion) {
    const tw_table *const table = tw.table;
    if (completion->kind == TW_COMPLETION_HOST_CALL && tw.host != nullptr) {
      tw_host_serve(tw.host, completion);
      return;
    }
    wait_to_enter();
    const bool is_notice = completion->kind == TW_COMPLETION_NOTICE;
    operation *const waiter = is_notice ? find(completion->token) : remove(completion->token);
    leave();
    if (waiter != nullptr && !is_notice) {
      waiter->finish(waiter, completion);
    } else if (waiter != nullptr && waiter->notice != nullptr) {
      std::uint64_t elapsed_ns = 0;
      std::memcpy(&elapsed_ns, completion->data, sizeof(elapsed_ns));
      waiter->notice(waiter, elapsed_ns);
    }
    table->release(completion);
  }
};

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
#endif
