/// Streams and futures: reading those that the service writes, and writing those that are parameters.
///
///   for (auto batch : stream) { for (const auto &record : batch) { .. } }     blocks
///   while (auto batch = co_await stream.next()) { .. }                        suspends
///   stream.status()                                                           how it ended
///
/// Both loops end with the stream, however it ended. Check `status` after them: only a stream whose
/// status is a value is complete.
#ifndef THALWEG_STREAM_HPP
#define THALWEG_STREAM_HPP

#include <coroutine>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
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

  batch() noexcept = default;
  batch(const tw_stream &stream, const tw_batch &tw, detail::view_life life) noexcept
      : stream_(stream), tw_(tw), life_(life) {
  }
  batch(batch &&other) noexcept : stream_(other.stream_), tw_(other.tw_), life_(other.life_) {
    other.tw_.count = 0;
  }
  batch &operator=(batch &&other) noexcept {
    if (this != &other) {
      release();
      stream_ = other.stream_;
      tw_ = other.tw_;
      life_ = other.life_;
      other.tw_.count = 0;
    }
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
    return *iterator(this, tw_.slots + index * tw_.stride, 1);
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

  class iterator {
  public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    iterator() noexcept = default;
    iterator(const batch *of, const std::uint8_t *at, std::uint32_t left) noexcept
        : left_(left), at_(at), base_(of->tw_.base), stride_(of->tw_.stride), life_(of->life_) {
    }
    decltype(auto) operator*() const {
      life_.check();
      return codec<T>::get(detail::source{base_, nullptr, nullptr, life_}, at_);
    }
    iterator &operator++() noexcept {
      at_ += stride_;
      --left_;
      return *this;
    }
    iterator operator++(int) noexcept {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator &left, const iterator &right) noexcept {
      return left.left_ == right.left_;
    }

  private:
    std::uint32_t left_ = 0; // an element may have no bytes, so that pointers do not tell
    const std::uint8_t *at_ = nullptr;
    const std::uint8_t *base_ = nullptr;
    std::size_t stride_ = 0;
    [[no_unique_address]] detail::view_life life_;
  };
  [[nodiscard]] iterator begin() const noexcept {
    return {this, tw_.slots, tw_.count};
  }
  [[nodiscard]] iterator end() const noexcept {
    return {this, nullptr, 0};
  }

private:
  tw_stream stream_{};
  tw_batch tw_{};
  [[no_unique_address]] detail::view_life life_;
};

namespace detail {

class armed_end;

/// A coroutine's wait for a stream or a stream writer.
class armed : protected operation {
protected:
  armed(armed_end &end, void (*finish)(operation *, tw_completion *) noexcept) noexcept
      : operation{finish}, end_(&end) {
  }
  armed(const armed &) = delete;
  armed &operator=(const armed &) = delete;
  ~armed();

  /// Waits until `handle` is ready. `*ready`: it is now.
  std::uint32_t arm(tw_handle handle, std::uint32_t *ready, tw_error *error) noexcept;
  /// The wait is over.
  void disarm() noexcept;

  armed_end *end_; // NULL: it was closed
  std::coroutine_handle<> waiter_;

private:
  friend class armed_end;
  std::uint64_t token_ = 0;
};

/// The end of a stream that a coroutine may wait for. It may be moved and closed meanwhile.
class armed_end {
public:
  armed_end() noexcept = default;
  explicit armed_end(session_ref session) noexcept : session_(std::move(session)) {
  }
  armed_end(armed_end &&other) noexcept
      : session_(std::move(other.session_)), waiting_(std::exchange(other.waiting_, nullptr)) {
    if (waiting_ != nullptr) {
      waiting_->end_ = this;
    }
  }
  armed_end &operator=(armed_end &&) = delete;
  [[nodiscard]] session &owner() const noexcept {
    return *session_;
  }
  [[nodiscard]] const session_ref &shared() const noexcept {
    return session_;
  }

protected:
  ~armed_end() = default;
  /// The end was closed: the coroutine resumes inside this function.
  void end_wait() noexcept {
    armed *const ended = std::exchange(waiting_, nullptr);
    if (ended != nullptr) {
      const session_ref keep = session_;
      keep->abandon(std::exchange(ended->token_, 0));
      ended->end_ = nullptr;
      ended->waiter_.resume();
    }
  }

private:
  friend class armed;
  session_ref session_;
  armed *waiting_ = nullptr;
};

inline armed::~armed() {
  if (token_ != 0 && end_ != nullptr) {
    end_->session_->abandon(token_);
    end_->waiting_ = nullptr;
  }
}

inline std::uint32_t armed::arm(tw_handle handle, std::uint32_t *ready, tw_error *error) noexcept {
  if (end_->waiting_ != nullptr) {
    return tw_fail(error, TW_ARGUMENT, "another coroutine waits for this stream");
  }
  const std::uint32_t code = end_->session_->arm(handle, this, &token_, ready, error);
  if (code == TW_OK && *ready == 0) {
    end_->waiting_ = this;
  }
  return code;
}

inline void armed::disarm() noexcept {
  token_ = 0;
  if (end_ != nullptr) {
    end_->waiting_ = nullptr;
  }
}

/// The reading end of a stream, without its types.
class reader : public armed_end {
public:
  reader() noexcept {
    tw_fail(&error_, TW_STALE, "the stream was closed");
  }
  reader(session_ref session, tw_handle handle) noexcept
      : armed_end(std::move(session)), tw_{owner().tw.table, handle} {
    code_ = TW_OK;
  }
  reader(reader &&other) noexcept
      : armed_end(std::move(other)), tw_(other.tw_), code_(other.code_), error_(other.error_),
        life_(std::move(other.life_)) {
    other.tw_.handle = 0;
    other.code_ = tw_fail(&other.error_, TW_STALE, "the stream was moved from");
  }
  ~reader() {
    close(nullptr);
  }

  std::uint32_t close(tw_error *error) noexcept {
    life_.end();
    std::uint32_t code = TW_OK;
    if (tw_.handle != 0) {
      code = tw_stream_close(&tw_, error);
      code_ = tw_fail(&error_, TW_STALE, "the stream was closed");
    }
    end_wait();
    return code;
  }
  /// Reads a batch. Blocks until `deadline_ns`; with 0, it does not wait.
  std::uint32_t acquire(std::uint32_t max, std::uint64_t deadline_ns, std::uint32_t size,
                        tw_batch *batch) noexcept {
    if (tw_.handle == 0) {
      std::memset(batch, 0, sizeof(*batch));
      return code_;
    }
    code_ = tw_stream_acquire_serving(&tw_, &owner().tw, max, deadline_ns, size, batch, &error_);
    if (code_ != TW_OK) {
      batch->count = 0;
    }
    return code_;
  }
  std::uint32_t fail(std::uint32_t code, const char *why) noexcept {
    code_ = tw_fail(&error_, code, "%s", why);
    return code_;
  }
  [[nodiscard]] view_life view() noexcept {
    return life_.view();
  }

  tw_stream tw_{};
  std::uint32_t code_ = TW_STALE; // of the last operation
  tw_error error_{};

private:
  [[no_unique_address]] memory_life life_;
};

} // namespace detail

/// The next batch of a stream: `get` or `co_await` it. Both return an empty batch at the end.
template <class T> class [[nodiscard]] next_batch : detail::armed {
public:
  next_batch(detail::reader &from, std::uint32_t max) noexcept
      : detail::armed(from, &next_batch::on_finish), max_(max) {
  }

  /// Blocks this thread until there are records, or until `until`.
  batch<T> get(deadline until = {}) {
    of().acquire(max_, until.ns(), codec<T>::size, &tw_);
    return taken();
  }

  // The awaiter.
  [[nodiscard]] bool await_ready() noexcept {
    return has_batch();
  }
  bool await_suspend(std::coroutine_handle<> waiter) noexcept {
    waiter_ = waiter;
    return !is_done();
  }
  batch<T> await_resume() noexcept {
    return end_ != nullptr ? taken() : batch<T>();
  }

private:
  detail::reader &of() const noexcept {
    return static_cast<detail::reader &>(*end_);
  }
  bool has_batch() noexcept {
    return of().acquire(max_, 0, codec<T>::size, &tw_) != TW_WOULD_PARK ||
           (tw_.flags & TW_BATCH_END) != 0;
  }
  /// False: the stream is armed.
  bool is_done() noexcept {
    for (;;) {
      std::uint32_t ready = 0;
      const std::uint32_t code = arm(of().tw_.handle, &ready, &of().error_);
      if (code != TW_OK) {
        of().code_ = code;
        return true;
      }
      if (ready == 0) {
        return false;
      }
      if (has_batch()) {
        return true;
      }
    }
  }
  batch<T> taken() noexcept {
    return {of().tw_, tw_, tw_.count != 0 ? of().view() : detail::view_life()};
  }
  static void on_finish(detail::operation *operation, tw_completion *completion) noexcept {
    next_batch &self = *static_cast<next_batch *>(static_cast<detail::armed *>(operation));
    self.disarm();
    if (!self.has_batch()) {
      if (completion == nullptr) {
        self.of().fail(TW_CANCELLED, "the client was closed");
      } else if (!self.is_done()) {
        return;
      }
    }
    self.waiter_.resume();
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
      : reader_(std::in_place, std::move(session), handle), method_(method) {
  }
  stream(stream &&other) noexcept = default;
  stream &operator=(stream &&other) noexcept {
    if (this != &other) {
      reader_.reset();
      method_ = other.method_;
      if (other.reader_) {
        reader_.emplace(std::move(*other.reader_));
      }
    }
    return *this;
  }

  /// The next batch, of at most `max` records.
  next_batch<T> next(std::uint32_t max = 256) noexcept {
    return {reader(), max};
  }
  /// How the last operation ended. A value: it succeeded, or the stream has ended and is complete.
  /// `outcome::timed_out` after a deadline of `get`; the stream continues. Every other error means
  /// that the stream is incomplete, and the service's own error is its payload. The error is valid
  /// until the stream is closed.
  [[nodiscard]] result<void, E> status() {
    detail::reader &from = reader();
    if (from.code_ == TW_OK || from.code_ == TW_CLOSED) {
      return {};
    }
    tw_reply reply;
    tw_reply_clear(&reply);
    const void *root = nullptr;
    if constexpr (detail::has_error_payload<E>) {
      tw_completion completion;
      if (from.code_ == TW_ERROR && method_ != nullptr &&
          tw_stream_error(&from.tw_, &completion, nullptr)->kind != TW_COMPLETION_NONE) {
        tw_error ignored;
        tw_decoder decoder = tw_decode_begin(&from.owner().tw, method_, &completion, &reply,
                                             sizeof(reply), &ignored);
        root = detail::decode_error<E>(&decoder);
      }
    }
    const detail::view_life life = from.view();
    return unexpected(
        detail::make_error<E>(from.owner(), from.code_, from.error_, reply, root, &life));
  }

  /// Iterates over the batches, and blocks this thread while there are none.
  class iterator {
  public:
    using value_type = batch<T>;
    using difference_type = std::ptrdiff_t;
    explicit iterator(stream *of) : of_(of), current_(of->next().get()), has_batch_(current_) {
    }
    batch<T> operator*() {
      return std::move(current_);
    }
    iterator &operator++() {
      current_ = batch<T>();
      current_ = of_->next().get();
      has_batch_ = static_cast<bool>(current_);
      return *this;
    }
    void operator++(int) {
      ++*this;
    }
    friend bool operator==(const iterator &left, std::default_sentinel_t) noexcept {
      return !left.has_batch_;
    }

  private:
    stream *of_;
    batch<T> current_;
    bool has_batch_;
  };
  [[nodiscard]] iterator begin() {
    return iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept {
    return {};
  }

  /// Adds a reader: an independent stream with its own capacity, gaps and sequence numbers.
  [[nodiscard]] result<stream> tee() {
    tw_error error;
    tw_stream added{};
    detail::reader &from = reader();
    if (from.tw_.handle == 0) {
      return unexpected(typed_error<void>(thalweg::error(from.error_)));
    }
    if (tw_stream_tee(&from.tw_, &added, &error) != TW_OK) {
      return unexpected(typed_error<void>(thalweg::error(error)));
    }
    return stream(from.shared(), added.handle, method_);
  }
  /// Counters of all streams of this stream's function and client.
  [[nodiscard]] result<tw_stats> stats() {
    tw_error error;
    tw_stats stats{};
    detail::reader &from = reader();
    if (from.tw_.handle == 0) {
      return unexpected(typed_error<void>(thalweg::error(from.error_)));
    }
    if (tw_stream_stats(&from.tw_, &stats, &error) != TW_OK) {
      return unexpected(typed_error<void>(thalweg::error(error)));
    }
    return stats;
  }
  /// Closes the stream: its writers see it and stop. An open batch becomes invalid. A coroutine that
  /// waits for the next batch resumes inside this function with an empty one. A second call has no
  /// effect. The destructor does the same.
  void close() noexcept {
    reader().close(nullptr);
  }
  explicit operator bool() const noexcept {
    return reader_ && reader_->tw_.handle != 0;
  }

private:
  detail::reader &reader() noexcept {
    if (!reader_) {
      reader_.emplace();
    }
    return *reader_;
  }

  std::optional<detail::reader> reader_;
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
    explicit wait_for_value(future &of) noexcept : of_(of), next_(of.stream_.next(1)) {
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
  wait_for_value wait() noexcept {
    return wait_for_value(*this);
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
      return unexpected(std::move(status).error());
    }
    return unexpected(typed_error<E>(
        error(outcome::guest_lost, "the service dropped the future without a value")));
  }

  stream<T, E> stream_;
  batch<T> value_; // released before the stream is closed
};

/// A stream inside a value belongs to the owner of the value.
template <class S>
requires(requires { typename S::is_stream; }) struct codec<S> {
  static constexpr std::uint32_t size = sizeof(tw_handle_ref);
  static constexpr std::uint32_t align = alignof(tw_handle_ref);
  static constexpr bool is_direct = false;
  static constexpr bool is_value = false;
  static constexpr bool is_trivial = false;
  static bool check(tw_checker *checker, const std::uint8_t *at) noexcept {
    return tw_check_handle(checker, at);
  }
  static S get(const detail::source &from, const std::uint8_t *at) noexcept {
    tw_resource taken{};
    if (from.reply != nullptr) {
      tw_reply_take_handle(from.reply, *reinterpret_cast<const tw_handle_ref *>(at), &taken,
                           nullptr);
    }
    return S(detail::session_ref(*from.owner), taken.handle);
  }
};

namespace detail {

/// The writing end of a parameter.
class writer : public armed_end {
public:
  writer() noexcept = default;
  writer(session_ref session, const tw_stream_writer &tw, std::uint64_t hash) noexcept
      : armed_end(std::move(session)), tw_(tw), hash_(hash) {
  }
  writer(writer &&other) noexcept
      : armed_end(std::move(other)), tw_(other.tw_), hash_(other.hash_) {
    other.tw_.writer = 0;
    other.tw_.reader = 0;
  }
  ~writer() {
    close();
  }
  void close() noexcept {
    tw_stream_writer_close(&tw_, nullptr);
    end_wait();
  }

  tw_stream_writer tw_{};
  std::uint64_t hash_ = 0;
};

inline result<void> as_result(std::uint32_t code, const tw_error &error) {
  if (code != TW_OK) {
    return unexpected(typed_error<void>(thalweg::error(error)));
  }
  return {};
}

} // namespace detail

/// The sending of an element, which was encoded: `get` or `co_await` it.
template <class T> class [[nodiscard]] send_element : detail::armed {
public:
  send_element(detail::writer &to, const T &value) : detail::armed(to, &send_element::on_finish) {
    const std::uint32_t root = tw_writer_begin(&message_, to.hash_, 0, codec<T>::size);
    codec<T>::put(&message_, root, value);
    if (tw_writer_end(&message_) != TW_OK) {
      code_ = tw_fail(&error_, message_.status, "no memory for the element, or it is too large");
    } else if (to.tw_.writer == 0) {
      code_ = tw_fail(&error_, TW_STALE, "the stream was closed or moved from");
    }
  }
  ~send_element() {
    tw_writer_free(&message_);
  }

  /// Blocks this thread until the stream has capacity, or until `until`.
  result<void> get(deadline until = {}) {
    if (code_ == TW_OK) {
      send(until.ns());
    }
    return detail::as_result(code_, error_);
  }

  // The awaiter.
  [[nodiscard]] bool await_ready() noexcept {
    return code_ != TW_OK || send(0) != TW_WOULD_PARK;
  }
  bool await_suspend(std::coroutine_handle<> waiter) noexcept {
    waiter_ = waiter;
    return !is_done();
  }
  result<void> await_resume() {
    if (end_ == nullptr) {
      code_ = tw_fail(&error_, TW_STALE, "the stream was closed");
    }
    return detail::as_result(code_, error_);
  }

private:
  detail::writer &to() const noexcept {
    return static_cast<detail::writer &>(*end_);
  }
  std::uint32_t send(std::uint64_t deadline_ns) noexcept {
    code_ = to().tw_.table->stream_send(to().tw_.writer, message_.data, message_.size, deadline_ns,
                                        &error_);
    return code_;
  }
  bool is_done() noexcept {
    for (;;) {
      std::uint32_t ready = 0;
      code_ = arm(to().tw_.writer, &ready, &error_);
      if (code_ != TW_OK) {
        return true;
      }
      if (ready == 0) {
        return false;
      }
      if (send(0) != TW_WOULD_PARK) {
        return true;
      }
    }
  }
  static void on_finish(detail::operation *operation, tw_completion *completion) noexcept {
    send_element &self = *static_cast<send_element *>(static_cast<detail::armed *>(operation));
    self.disarm();
    if (self.send(0) == TW_WOULD_PARK) {
      if (completion == nullptr) {
        self.code_ = tw_fail(&self.error_, TW_CANCELLED, "the client was closed");
      } else if (!self.is_done()) {
        return;
      }
    }
    self.waiter_.resume();
  }

  std::uint32_t code_ = TW_OK;
  tw_error error_;
  tw_writer message_;
};

/// A stream that is a parameter: the caller writes it. Create it with the client's function
/// FUNCTION_PARAMETER, and pass it to one call of FUNCTION. Elements may be sent before the call.
template <class T> class stream_writer {
public:
  stream_writer(detail::session_ref session, const tw_stream_writer &tw,
                std::uint64_t hash) noexcept
      : writer_(std::move(session), tw, hash) {
  }
  stream_writer(stream_writer &&) noexcept = default;

  /// Sends an element. `outcome::closed`: the service stopped reading. `outcome::timed_out`: there
  /// was no capacity; 256 elements or 1 MiB may be unread.
  send_element<T> send(const T &value) {
    return {writer_, value};
  }
  /// Ends the stream regularly, after the elements that were sent. For a future: has no effect.
  result<void> finish() {
    tw_error error;
    if (writer_.tw_.writer == 0) {
      return unexpected(
          typed_error<void>(thalweg::error(outcome::stale, "the stream was closed or moved from")));
    }
    return detail::as_result(tw_stream_writer_finish(&writer_.tw_, &error), error);
  }
  /// Closes the stream. If it was not finished, the service reads `outcome::cancelled`. The
  /// destructor does the same.
  void close() noexcept {
    writer_.close();
  }
  /// Gives the reading end to a call.
  tw_handle release_reader() noexcept {
    return std::exchange(writer_.tw_.reader, 0);
  }

private:
  detail::writer writer_;
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
  std::uint32_t code = TW_CLOSED;
  if (owner->tw.instance == 0) {
    tw_fail(&error, code, "the client is closed");
  } else {
    code = tw_stream_writer_open(&owner->tw, method, parameter, &opened, &error);
  }
  if (code != TW_OK) {
    return unexpected(typed_error<void>(thalweg::error(error)));
  }
  return stream_writer<T>(owner, opened, hash);
}
} // namespace detail

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
#endif
