/// An event loop over `poll`: the smallest one that runs coroutines. It shows what another loop must
/// do for each client: `arm`, wait for `fd` or `timeout_ms`, `dispatch`.
#pragma once

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
    int wait_ms = timeout_ms;
    for (const client *const watched : clients_) {
      if (!watched->arm()) {
        watched->dispatch();
        was_ready = true;
      }
      const int fd = watched->fd();
      is_open = is_open || fd >= 0;
      fds_.push_back({fd, POLLIN, 0}); // poll ignores -1
      const int until_deadline = watched->timeout_ms();
      if (until_deadline >= 0 && (wait_ms < 0 || until_deadline < wait_ms)) {
        wait_ms = until_deadline;
      }
    }
    if (was_ready) {
      return true;
    }
    if (!is_open) {
      return false;
    }
    int ready = 0;
    do {
      ready = ::poll(fds_.data(), static_cast<nfds_t>(fds_.size()), wait_ms);
    } while (ready < 0 && errno == EINTR);
    for (std::size_t index = 0; index < fds_.size(); ++index) {
      if (fds_[index].revents != 0 || clients_[index]->timeout_ms() == 0) {
        clients_[index]->dispatch();
        was_ready = true;
      }
    }
    return was_ready || wait_ms != timeout_ms;
  }

  /// Runs a task to its end and returns its value. Ends the program if the task waits for something
  /// that no client of this loop can deliver.
  template <class T> T run(task<T> root) {
    bool has_ended = false;
    [](task<T> &running, bool &ended) -> detail::detached {
      co_await detail::until_done<T>{running};
      ended = true;
    }(root, has_ended);
    while (!has_ended) {
      if (!turn()) {
        detail::misuse("a task waits, but no client of its loop is open");
      }
    }
    return root.await_resume();
  }

private:
  std::vector<const client *> clients_;
  std::vector<pollfd> fds_;
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
