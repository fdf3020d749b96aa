/// Streams and futures: reading those that the service writes, and writing those that are parameters.
///
///   for (auto batch : stream) { for (const auto &record : batch) { .. } }     blocks
///   while (auto batch = co_await stream.next()) { .. }                        suspends
///   stream.status()                                                           how it ended
///
/// Both loops end with the stream, however it ended. Check `status` after them: only a stream whose
/// status is a value is complete.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <iterator>
#include <utility>

#include "client.hpp"
#include "codec.hpp"
#include "error.hpp"
#include "session.hpp"
#include "thalweg_stream.h"
#include "view.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// A run of records that are read in place. It is released by its destructor. A stream has one open
/// batch at a time. The records are views: they are valid as long as the batch, and as the stream is
/// not closed.
template <class T> class batch {
public:
  using element = T;
  using iterator = detail::element_iterator<T, false>;

  batch() noexcept = default;
  batch(const tw_stream &stream, const tw_batch &tw, const detail::view_life &life) noexcept
      : stream_(stream), tw_(tw), life_(life) {
  }
  batch(batch &&other) noexcept : stream_(other.stream_), tw_(other.tw_), life_(other.life_) {
    other.tw_.count = 0;
  }
  batch &operator=(batch &&other) noexcept {
    release();
    std::swap(stream_, other.stream_);
    std::swap(tw_, other.tw_);
    std::swap(life_, other.life_);
    return *this;
  }
  ~batch() {
    release();
  }

  /// False: the stream has ended, or the wait has; see `stream::status`.
  explicit operator bool() const noexcept {
    return tw_.count != 0;
  }
  [[nodiscard]] std::size_t size() const noexcept {
    return tw_.count;
  }
  [[nodiscard]] bool empty() const noexcept {
    return tw_.count == 0;
  }
  /// A record: a reference for types that have the same layout in messages, otherwise a value whose
  /// members are views. `index` must be less than `size()`: every other index ends the program.
  decltype(auto) operator[](std::size_t index) const {
    if (index >= tw_.count) [[unlikely]] {
      detail::misuse("an index is not less than the size of its batch");
    }
    return *iterator(tw_.base, tw_.slots + index * tw_.stride, 0, 1, life_);
  }
  /// Number of the first record, counted from 0.
  [[nodiscard]] std::uint64_t first_seq() const noexcept {
    return tw_.first_seq;
  }
  /// The records that are missing directly before the first one; in an empty batch, after the last.
  [[nodiscard]] std::uint64_t lost_before() const noexcept {
    return tw_.lost_before;
  }
  /// TW_GAP_..; 0 if nothing is missing.
  [[nodiscard]] std::uint32_t gap_reason() const noexcept {
    return tw_.gap_reason;
  }
  /// The records are of the control lane.
  [[nodiscard]] bool is_control() const noexcept {
    return (tw_.flags & TW_BATCH_CONTROL) != 0;
  }
  /// Releases the records. The destructor does the same.
  void release() noexcept {
    if (tw_.count != 0) {
      life_.end();
      tw_stream_release(&stream_, tw_.count, nullptr);
      tw_.count = 0;
    }
  }

  [[nodiscard]] iterator begin() const noexcept {
    return {tw_.base, tw_.slots, tw_.stride, tw_.count, life_};
  }
  [[nodiscard]] iterator end() const noexcept {
    return {};
  }

private:
  tw_stream stream_{};
  tw_batch tw_{};
  [[no_unique_address]] detail::view_life life_;
};

namespace detail {

class stream_end;

/// The wait for a stream or a stream writer: an awaiter.
class wait_for_end : protected operation {
public:
  [[nodiscard]] bool await_ready() noexcept {
    return has_stopped() || attempt(0);
  }
  bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
    waiter = awaiting;
    return is_armed();
  }

protected:
  wait_for_end(stream_end &end, const call_options &options) noexcept
      : operation(options.until.ns(), options.stop), end_(&end) {
  }
  ~wait_for_end();
  /// Blocks this thread until the operation is done, or the wait is over, as `co_await` does.
  void block();
  /// Tries the operation until `until_ns` and sets the status of the end. False: it is `would_park`.
  virtual bool attempt(std::uint64_t until_ns) noexcept = 0;
  /// The stream to wait for.
  [[nodiscard]] virtual tw_handle handle() const noexcept = 0;

  stream_end *end_; // NULL: it was closed

private:
  friend class stream_end;
  /// Arms the end. False: the operation is done.
  bool is_armed() noexcept;
  /// Whether a stop was requested. Then it is the status of the end.
  bool has_stopped() noexcept;
  void finish(tw_completion *completion) noexcept override;
  [[nodiscard]] bool is_over(std::uint64_t now_ns) const noexcept override {
    return deadline_ns <= now_ns || stop.stop_requested();
  }
};

/// The end of a stream that a coroutine may wait for. It may be moved and closed meanwhile.
class stream_end {
public:
  stream_end() noexcept = default;
  explicit stream_end(session_ref session) noexcept : session_(std::move(session)) {
  }
  stream_end(stream_end &&other) noexcept {
    *this = std::move(other);
  }
  /// Requires that no coroutine waits for this end.
  stream_end &operator=(stream_end &&other) noexcept {
    code_ = other.code_;
    error_ = other.error_;
    session_ = std::move(other.session_);
    waiting_ = std::exchange(other.waiting_, nullptr);
    if (waiting_ != nullptr) {
      waiting_->end_ = this;
    }
    return *this;
  }
  [[nodiscard]] session &owner() const noexcept {
    return *session_;
  }
  [[nodiscard]] const session_ref &shared() const noexcept {
    return session_;
  }
  void set_status(std::uint32_t code, const char *why) noexcept {
    code_ = tw_fail(&error_, code, "%s", why);
  }

  std::uint32_t code_ = TW_OK; // of the last operation
  tw_error error_{};

protected:
  ~stream_end() = default;
  /// The end was closed: the coroutine resumes inside this function.
  void end_wait() noexcept {
    wait_for_end *const ended = std::exchange(waiting_, nullptr);
    if (ended != nullptr) {
      session_->abandon(*ended);
      ended->end_ = nullptr;
      ended->waiter.resume();
    }
  }

private:
  friend class wait_for_end;
  session_ref session_;
  wait_for_end *waiting_ = nullptr;
};

inline wait_for_end::~wait_for_end() {
  if (token != 0) {
    end_->session_->abandon(*this);
    end_->waiting_ = nullptr;
  }
}

inline bool wait_for_end::has_stopped() noexcept {
  const bool is_stopped = stop.stop_requested();
  if (is_stopped) [[unlikely]] {
    end_->set_status(TW_CANCELLED, "a stop was requested");
  }
  return is_stopped;
}

inline bool wait_for_end::is_armed() noexcept {
  if (end_->waiting_ != nullptr) {
    end_->set_status(TW_ARGUMENT, "another coroutine waits for this stream");
    return false;
  }
  for (;;) {
    std::uint32_t ready = 0;
    end_->code_ = end_->session_->arm(handle(), *this, &ready, &end_->error_);
    if (end_->code_ == TW_OK && ready == 0) {
      end_->waiting_ = this;
      return true;
    }
    if (end_->code_ != TW_OK || attempt(0)) {
      return false;
    }
  }
}

inline void wait_for_end::finish(tw_completion *completion) noexcept {
  end_->waiting_ = nullptr;
  if (!has_stopped() && !attempt(0)) {
    if (completion != nullptr) {
      if (is_armed()) {
        return;
      }
    } else if (deadline_ns <= end_->session_->tw.table->now()) {
      end_->set_status(TW_TIMED_OUT, "the deadline has passed");
    } else {
      end_->set_status(TW_CANCELLED, "the client was closed");
    }
  }
  waiter.resume();
}

inline void wait_for_end::block() {
  if (await_ready() || !await_suspend(std::noop_coroutine())) {
    return;
  }
  const session_ref keep = end_->session_;
  tw_error error;
  std::uint32_t code = TW_OK;
  if (keep->waiting > 1) {
    code = tw_fail(&error, TW_ARGUMENT, "a blocking wait, but coroutines wait for this client");
  }
  while (token != 0 && code == TW_OK) {
    code = keep->turn(&error);
  }
  if (token != 0) {
    keep->abandon(*this);
    end_->waiting_ = nullptr;
    end_->set_status(code, error.message);
  }
}

/// The reading end of a stream, without its types.
class reader : public stream_end {
public:
  reader() noexcept {
    set_status(TW_STALE, "the stream was closed");
  }
  reader(session_ref session, tw_handle handle) noexcept
      : stream_end(std::move(session)), tw_{owner().tw.table, handle} {
  }
  reader(reader &&other) noexcept {
    *this = std::move(other);
  }
  reader &operator=(reader &&other) noexcept {
    if (this != &other) {
      close();
      stream_end::operator=(static_cast<stream_end &&>(other));
      tw_ = std::exchange(other.tw_, tw_stream{});
      life_ = std::move(other.life_);
      other.set_status(TW_STALE, "the stream was moved from");
    }
    return *this;
  }
  ~reader() {
    close();
  }

  void close() noexcept {
    life_.end();
    if (tw_.handle != 0) {
      tw_stream_close(&tw_, nullptr);
      set_status(TW_STALE, "the stream was closed");
    }
    end_wait();
  }
  /// Reads a batch. Blocks until `deadline_ns`; with 0, it does not wait.
  std::uint32_t acquire(std::uint32_t max, std::uint64_t until_ns, std::uint32_t size,
                        tw_batch *batch) noexcept {
    if (tw_.handle == 0) {
      *batch = {};
      return code_;
    }
    code_ = tw_stream_acquire_serving(&tw_, &owner().tw, max, until_ns, size, batch, &error_);
    if (code_ != TW_OK) {
      batch->count = 0;
    }
    return code_;
  }
  template <class T> batch<T> guarded(tw_batch tw) noexcept {
    const std::ptrdiff_t first = tw.slots - tw.base;
    tw.base = life_.guard(tw.base, static_cast<std::size_t>(tw.size));
    tw.slots = tw.base + first;
    return {tw_, tw, life_};
  }

  tw_stream tw_{};
  [[no_unique_address]] memory_life life_; // of the open batch, or of the error
};

} // namespace detail

/// The next batch of a stream: `get` or `co_await` it. Both return an empty batch at the end.
template <class T> class [[nodiscard]] next_batch final : public detail::wait_for_end {
public:
  next_batch(detail::reader &from, std::uint32_t max, const call_options &options) noexcept
      : wait_for_end(from, options), max_(max) {
  }
  /// Blocks this thread until there are records, or until `until`, or as the options say. With a
  /// stop token, the client must have no waiting coroutines.
  batch<T> get(deadline until = {}) {
    deadline_ns = std::min(deadline_ns, until.ns());
    if (!stop.stop_possible()) [[likely]] {
      attempt(deadline_ns);
    } else {
      block();
    }
    return await_resume();
  }
  batch<T> await_resume() noexcept {
    if (end_ == nullptr || tw_.count == 0) {
      return {{}, tw_, {}};
    }
    return from().template guarded<T>(tw_);
  }

private:
  [[nodiscard]] detail::reader &from() const noexcept {
    return static_cast<detail::reader &>(*end_);
  }
  [[nodiscard]] tw_handle handle() const noexcept override {
    return from().tw_.handle;
  }
  bool attempt(std::uint64_t until_ns) noexcept override {
    return from().acquire(max_, until_ns, codec<T>::size, &tw_) != TW_WOULD_PARK ||
           (tw_.flags & TW_BATCH_END) != 0;
  }

  std::uint32_t max_;
  tw_batch tw_{};
};

/// A stream of records. `E` is the error type of the function that returned it. One thread at a time
/// reads a stream; for another one, use `tee`.
template <class T, class E = void> class stream {
public:
  using is_stream = void;

  /// A closed stream.
  stream() noexcept = default;
  stream(detail::session_ref session, tw_handle handle, const tw_method *method = nullptr) noexcept
      : reader_(std::move(session), handle), method_(method) {
  }

  /// The next batch, of at most `max` records. A stop that was requested ends the wait, even if
  /// there are records; a deadline ends it only if there are none.
  next_batch<T> next(std::uint32_t max = 256, const call_options &options = {}) noexcept {
    return {reader_, max, options};
  }
  next_batch<T> next(const call_options &options) noexcept {
    return next(256, options);
  }
  /// How the last operation ended. A value: it succeeded, or the stream has ended and is complete.
  /// `outcome::timed_out` after a deadline, and `outcome::cancelled` with the message "a stop was
  /// requested" after a stop: the stream continues. Every other error means that the stream is
  /// incomplete, and the service's own error is its payload. The error is valid until the stream is
  /// closed.
  [[nodiscard]] result<void, E> status() {
    if (reader_.code_ == TW_OK || reader_.code_ == TW_CLOSED) {
      return {};
    }
    detail::session &owner = reader_.owner();
    tw_reply reply{};
    const void *root = nullptr;
    if constexpr (detail::has_error_payload<E>) {
      tw_completion completion;
      if (reader_.code_ == TW_ERROR && method_ != nullptr &&
          tw_stream_error(&reader_.tw_, &completion, nullptr)->kind != TW_COMPLETION_NONE) {
        tw_error ignored;
        tw_decoder decoder =
            tw_decode_begin(&owner.tw, method_, &completion, &reply, sizeof(reply), &ignored);
        root = detail::decode_error<E>(&decoder);
      }
    }
    return unexpected(detail::make_error<E>(owner, reader_.code_, reader_.error_, reply, root,
                                            &reader_.life_.unguarded()));
  }

  /// Iterates over the batches, and blocks this thread while there are none.
  class iterator {
  public:
    explicit iterator(stream *of) : of_(of) {
      ++*this;
    }
    batch<T> operator*() {
      return std::move(current_);
    }
    iterator &operator++() {
      current_.release();
      current_ = of_->next().get();
      has_batch_ = static_cast<bool>(current_);
      return *this;
    }
    friend bool operator==(const iterator &left, std::default_sentinel_t) noexcept {
      return !left.has_batch_;
    }

  private:
    stream *of_;
    batch<T> current_;
    bool has_batch_ = false; // `current_` may have been moved out
  };
  [[nodiscard]] iterator begin() {
    return iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept {
    return {};
  }

  /// Adds a reader: an independent stream with its own capacity, gaps and sequence numbers.
  [[nodiscard]] result<stream> tee() {
    tw_error error = reader_.error_;
    tw_stream added{};
    if (reader_.tw_.handle == 0 || tw_stream_tee(&reader_.tw_, &added, &error) != TW_OK) {
      return detail::failed(error);
    }
    return stream(reader_.shared(), added.handle, method_);
  }
  /// Counters of all streams of this stream's function and client.
  [[nodiscard]] result<tw_stats> stats() {
    tw_error error = reader_.error_;
    tw_stats stats{};
    if (reader_.tw_.handle == 0 || tw_stream_stats(&reader_.tw_, &stats, &error) != TW_OK) {
      return detail::failed(error);
    }
    return stats;
  }
  /// Closes the stream: its writers see it and stop. An open batch becomes invalid. A coroutine that
  /// waits for the next batch resumes inside this function with an empty one. A second call has no
  /// effect. The destructor does the same.
  void close() noexcept {
    reader_.close();
  }
  explicit operator bool() const noexcept {
    return reader_.tw_.handle != 0;
  }

private:
  detail::reader reader_;
  const tw_method *method_ = nullptr;
};

/// A value that the service sends later.
template <class T, class E = void> class future {
public:
  using is_stream = void;

  future() noexcept = default;
  future(detail::session_ref session, tw_handle handle, const tw_method *method = nullptr) noexcept
      : stream_(std::move(session), handle, method) {
  }

  /// The wait for the value: `get` or `co_await` it.
  class [[nodiscard]] wait_for_value {
  public:
    wait_for_value(future &of, const call_options &options) noexcept
        : of_(of), next_(of.stream_.next(1, options)) {
    }
    result<T, E> get(deadline until = {}) {
      if (!of_.value_) {
        of_.value_ = next_.get(until);
      }
      return of_.read();
    }
    [[nodiscard]] bool await_ready() noexcept {
      return of_.value_ || next_.await_ready();
    }
    bool await_suspend(std::coroutine_handle<> waiter) noexcept {
      return next_.await_suspend(waiter);
    }
    result<T, E> await_resume() {
      if (!of_.value_) {
        of_.value_ = next_.await_resume();
      }
      return of_.read();
    }

  private:
    future &of_;
    next_batch<T> next_;
  };
  /// The value; views in it are valid until the future is closed. `outcome::guest_lost`: the service
  /// dropped the future without a value. Do not move a future that a coroutine waits for.
  wait_for_value wait(const call_options &options = {}) noexcept {
    return {*this, options};
  }
  void close() noexcept {
    value_.release();
    stream_.close();
  }
  explicit operator bool() const noexcept {
    return static_cast<bool>(stream_);
  }

private:
  result<T, E> read() {
    if (value_) {
      return T(value_[0]);
    }
    result<void, E> status = stream_.status();
    if (!status) {
      return unexpected(std::move(status.error()));
    }
    return unexpected(typed_error<E>(
        error(outcome::guest_lost, "the service dropped the future without a value")));
  }

  stream<T, E> stream_;
  batch<T> value_; // released before the stream is closed
};

namespace detail {

/// The writing end of a parameter.
class writer : public stream_end {
public:
  writer(session_ref session, const tw_stream_writer &tw, std::uint64_t hash) noexcept
      : stream_end(std::move(session)), tw_(tw), hash_(hash) {
  }
  writer(writer &&other) noexcept
      : stream_end(static_cast<stream_end &&>(other)),
        tw_(std::exchange(other.tw_, tw_stream_writer{})), hash_(other.hash_) {
  }
  ~writer() {
    close();
  }
  void close() noexcept {
    tw_stream_writer_close(&tw_, nullptr);
    end_wait();
  }

  tw_stream_writer tw_;
  std::uint64_t hash_;
};

} // namespace detail

/// The sending of an element, which was encoded: `get` or `co_await` it.
template <class T> class [[nodiscard]] send_element final : public detail::wait_for_end {
public:
  send_element(detail::writer &to, const T &value, const call_options &options)
      : wait_for_end(to, options) {
    const std::uint32_t root = tw_writer_begin(&message_, to.hash_, 0, codec<T>::size);
    codec<T>::put(&message_, root, value);
    status_ = tw_writer_end(&message_);
  }
  ~send_element() {
    tw_writer_free(&message_);
  }
  /// Blocks this thread until there is capacity, as `next_batch::get` does.
  result<void> get(deadline until = {}) {
    deadline_ns = std::min(deadline_ns, until.ns());
    if (!stop.stop_possible()) [[likely]] {
      attempt(deadline_ns);
    } else {
      block();
    }
    return await_resume();
  }
  result<void> await_resume() {
    if (end_ == nullptr) {
      return unexpected(typed_error<void>(error(outcome::stale, "the stream was closed")));
    }
    return detail::as_result(end_->code_, end_->error_);
  }

private:
  [[nodiscard]] tw_handle handle() const noexcept override {
    return static_cast<detail::writer &>(*end_).tw_.writer;
  }
  bool attempt(std::uint64_t until_ns) noexcept override {
    if (status_ != TW_OK) {
      end_->set_status(status_, "no memory for the element, or it is too large");
    } else if (handle() == 0) {
      end_->set_status(TW_STALE, "the stream was closed or moved from");
    } else {
      end_->code_ = end_->owner().tw.table->stream_send(handle(), message_.data, message_.size,
                                                        until_ns, &end_->error_);
    }
    return end_->code_ != TW_WOULD_PARK;
  }

  std::uint32_t status_; // of the message
  tw_writer message_;
};

/// A stream that is a parameter: the caller writes it. Create it with the client's function
/// FUNCTION_PARAMETER, and pass it to one call of FUNCTION. Elements may be sent before the call.
template <class T> class stream_writer : detail::writer {
public:
  using detail::writer::writer;

  /// Sends an element. `outcome::closed`: the service stopped reading. `outcome::timed_out`: there
  /// was no capacity; 256 elements or 1 MiB may be unread.
  send_element<T> send(const T &value, const call_options &options = {}) {
    return {*this, value, options};
  }
  /// Ends the stream regularly, after the elements that were sent. For a future: has no effect.
  result<void> finish() {
    tw_error error;
    if (tw_.writer == 0) {
      return unexpected(
          typed_error<void>(thalweg::error(outcome::stale, "the stream was closed or moved from")));
    }
    return detail::as_result(tw_stream_writer_finish(&tw_, &error), error);
  }
  /// Closes the stream. If it was not finished, the service reads `outcome::cancelled`. The
  /// destructor does the same.
  using detail::writer::close;
  /// Gives the reading end to a call.
  tw_handle release_reader() noexcept {
    return std::exchange(tw_.reader, 0);
  }
};

/// A future that is a parameter: `send` its value once, or close it without one.
template <class T> using future_writer = stream_writer<T>;

namespace detail {
/// Creates the stream for parameter number `parameter` of a method.
template <class T>
result<stream_writer<T>> open_writer(const session_ref &owner, std::uint32_t method,
                                     std::uint32_t parameter, std::uint64_t hash) {
  tw_error error;
  tw_stream_writer opened{};
  const std::uint32_t code =
      owner->tw.instance == 0
          ? tw_fail(&error, TW_CLOSED, "the client is closed")
          : tw_stream_writer_open(&owner->tw, method, parameter, &opened, &error);
  if (code != TW_OK) {
    return detail::failed(error);
  }
  return stream_writer<T>(owner, opened, hash);
}
} // namespace detail

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
