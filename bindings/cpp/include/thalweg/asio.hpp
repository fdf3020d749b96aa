/// Runs the coroutines of a client on an executor of Asio (standalone). Include it only if you use
/// Asio; compile with ASIO_STANDALONE.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/error.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <memory>

#include "client.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// Dispatches a client on an executor: its coroutines resume there. For an executor with several
/// threads, pass a strand, and use the client on that strand only.
///
/// While it exists, `io_context::run` does not return; `stop` it when the work is done. Stop it
/// before you close the client. The client must not be moved meanwhile.
class asio_port {
public:
  asio_port(const asio::any_io_executor &executor, const client &watched)
      : state_(std::make_shared<state>(executor, watched)) {
    state::wait(state_);
  }
  asio_port(const asio_port &) = delete;
  asio_port &operator=(const asio_port &) = delete;
  ~asio_port() {
    stop();
  }
  /// Dispatches no more. A second call has no effect.
  void stop() {
    if (!state_->is_stopped) {
      state_->is_stopped = true;
      state_->descriptor.release(); // the descriptor belongs to the client
      state_->timer.cancel();
    }
  }

private:
  struct state {
    state(const asio::any_io_executor &executor, const client &of)
        : watched(of), descriptor(executor, of.fd()), timer(executor) {
    }
    static void wait(const std::shared_ptr<state> &self) {
      if (self->is_stopped) {
        return;
      }
      if (!self->watched.arm()) {
        asio::post(self->descriptor.get_executor(), [self] { turn(self); });
        return;
      }
      const int timeout_ms = self->watched.timeout_ms();
      if (timeout_ms >= 0) {
        // The timer ends the wait for the descriptor, whose handler then dispatches.
        self->timer.expires_after(std::chrono::milliseconds(timeout_ms));
        self->timer.async_wait([self](const asio::error_code &failed) {
          if (!failed && !self->is_stopped) {
            self->descriptor.cancel();
          }
        });
      }
      self->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                  [self](const asio::error_code &failed) {
                                    if (!failed || failed == asio::error::operation_aborted) {
                                      turn(self);
                                    }
                                  });
    }
    static void turn(const std::shared_ptr<state> &self) {
      if (!self->is_stopped) {
        self->watched.dispatch();
        wait(self);
      }
    }

    const client &watched;
    asio::posix::stream_descriptor descriptor;
    asio::steady_timer timer; // for the deadlines of streams
    bool is_stopped = false;
  };

  std::shared_ptr<state> state_;
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
