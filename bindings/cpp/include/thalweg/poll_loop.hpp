/// An event loop over `poll`: the smallest one that runs coroutines. It shows what another loop must
/// do for each client: `arm`, wait for `fd`, `dispatch`.
#ifndef THALWEG_POLL_LOOP_HPP
#define THALWEG_POLL_LOOP_HPP

#include <cerrno>
#include <poll.h>
#include <vector>

#include "client.hpp"
#include "task.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// Runs coroutines on the thread that calls it.
class poll_loop {
public:
  /// `client` must outlive the loop, and must not be moved meanwhile.
  void add(const client &watched) {
    clients_.push_back(&watched);
  }

  /// Waits until a client has completions, and dispatches them. Returns false after `timeout_ms`
  /// milliseconds (-1: never), and if there is no open client to wait for.
  bool turn(int timeout_ms = -1) {
    fds_.clear();
    bool was_ready = false;
    bool is_open = false;
    for (const client *const watched : clients_) {
      if (!watched->arm()) {
        watched->dispatch();
        was_ready = true;
      }
      const int fd = watched->fd();
      is_open = is_open || fd >= 0;
      fds_.push_back({fd, POLLIN, 0}); // poll ignores -1
    }
    if (was_ready) {
      return true;
    }
    if (!is_open) {
      return false;
    }
    int ready = 0;
    do {
      ready = ::poll(fds_.data(), static_cast<nfds_t>(fds_.size()), timeout_ms);
    } while (ready < 0 && errno == EINTR);
    for (std::size_t index = 0; ready > 0 && index < fds_.size(); ++index) {
      if (fds_[index].revents != 0) {
        clients_[index]->dispatch();
      }
    }
    return ready > 0;
  }

  /// Runs a task to its end and returns its value. Ends the program if the task waits for something
  /// that no client of this loop can deliver.
  template <class T> T run(task<T> root) {
    bool has_ended = false;
    std::optional<std::conditional_t<std::is_void_v<T>, none, T>> value;
    std::exception_ptr failure;
    auto drive = [](task<T> running, bool &ended, [[maybe_unused]] auto &out,
                    [[maybe_unused]] std::exception_ptr &failed) -> detail::detached {
#if defined(__cpp_exceptions)
      try {
#endif
        if constexpr (std::is_void_v<T>) {
          co_await std::move(running);
        } else {
          out.emplace(co_await std::move(running));
        }
#if defined(__cpp_exceptions)
      } catch (...) {
        failed = std::current_exception();
      }
#endif
      ended = true;
    };
    drive(std::move(root), has_ended, value, failure);
    while (!has_ended) {
      if (!turn()) {
        detail::misuse("a task waits, but no client of its loop is open");
      }
    }
    if (failure) {
      std::rethrow_exception(failure);
    }
    if constexpr (!std::is_void_v<T>) {
      return std::move(*value);
    }
  }

private:
  std::vector<const client *> clients_;
  std::vector<pollfd> fds_;
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
#endif
