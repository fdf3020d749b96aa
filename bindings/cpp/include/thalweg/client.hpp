/// Clients, calls and resources.
///
/// A function of a service returns a `call`. Run it once, in one of two ways:
///
///   result = client.count("fn ", ".").get();            blocks this thread
///   result = co_await client.count("fn ", ".");         suspends this coroutine
///
/// A coroutine resumes in `client::dispatch`, which the caller's event loop calls when `client::fd`
/// is readable. No other thread is involved.
#pragma once

#include <array>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <stop_token>

#include "codec.hpp"
#include "error.hpp"
#include "session.hpp"
#include "thalweg_client.h"
#include "view.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// An absolute time, or none. Converts from a duration from now, and from a time of `steady_clock`.
class deadline {
public:
  /// No deadline.
  constexpr deadline() noexcept = default;
  /// The time that is `timeout` from now. A duration that is not positive has passed already.
  template <class Rep, class Period> deadline(std::chrono::duration<Rep, Period> timeout) noexcept {
    const auto now = static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
    const double nanoseconds = std::chrono::duration<double, std::nano>(timeout).count();
    if (!(nanoseconds > 0)) {
      ns_ = now;
    } else if (nanoseconds < static_cast<double>(TW_FOREVER - now)) {
      ns_ = now + static_cast<std::uint64_t>(nanoseconds);
    }
  }
  template <class Duration>
  deadline(std::chrono::time_point<std::chrono::steady_clock, Duration> time) noexcept {
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
    ns_ = since.count() > 0 ? static_cast<std::uint64_t>(since.count()) : 1; // 0 means none
  }
  /// Nanoseconds on the clock of `steady_clock`, which is that of the library; `TW_FOREVER`: none.
  [[nodiscard]] constexpr std::uint64_t ns() const noexcept {
    return ns_;
  }

private:
  std::uint64_t ns_ = TW_FOREVER;
};

/// Receives progress notices: the service is still running a call. `function` may request that a
/// stop token's source stops.
struct notice_handler {
  void (*function)(void *context, std::chrono::nanoseconds since_submission) = nullptr;
  void *context = nullptr;
};

/// How a call or the wait for a stream runs: a deadline, a stop token that cancels it, or both.
struct call_options {
  deadline until;
  std::stop_token stop;
  /// For methods with a `notice_interval` in the policy file. A call with a handler uses two slots of
  /// the client's port.
  notice_handler on_notice;

  call_options() noexcept = default;
  template <class D>
  requires std::convertible_to<D, deadline> call_options(D time)
  noexcept : until(time) {
  }
  call_options(std::stop_token token) noexcept : stop(std::move(token)) {
  }
  call_options(deadline time, std::stop_token token, notice_handler notices = {}) noexcept
      : until(time), stop(std::move(token)), on_notice(notices) {
  }
};

/// An object in the service that belongs to this object. Generated packages derive a class for each
/// resource.
class resource {
public:
  resource() noexcept = default;
  resource(detail::session_ref session, tw_handle handle) noexcept
      : session_(std::move(session)), handle_(handle) {
  }
  resource(resource &&other) noexcept
      : session_(std::move(other.session_)), handle_(other.release()) {
  }
  resource &operator=(resource &&other) noexcept {
    if (this != &other) {
      static_cast<void>(close());
      session_ = std::move(other.session_);
      handle_ = other.release();
    }
    return *this;
  }
  ~resource() {
    static_cast<void>(close());
  }
  /// Whether there is an object: it was neither moved, nor passed to the service, nor closed.
  explicit operator bool() const noexcept {
    return handle_ != 0;
  }
  /// Drops the object in the service. A second call has no effect.
  result<void> close() {
    tw_error error;
    tw_resource closed{session_->tw.table, release()};
    return detail::as_result(tw_resource_close(&closed, &error), error);
  }
  [[nodiscard]] tw_handle handle() const noexcept {
    return handle_;
  }
  /// Gives the handle away.
  tw_handle release() noexcept {
    return std::exchange(handle_, 0);
  }

protected:
  [[nodiscard]] const detail::session_ref &session() const noexcept {
    return session_;
  }

private:
  detail::session_ref session_;
  tw_handle handle_ = 0;
};

template <class T, class E> class stream;
template <class T, class E> class future;

/// A method of a package: number `Number` of `Package::methods()`. `Size` is that of the record of
/// its parameters, `Shared` the number of parameters that are borrowed resources. `Owns`: the call
/// takes resources or streams over.
template <class Package, std::uint32_t Number, std::uint32_t Size, std::uint32_t Shared, bool Owns,
          bool Inline, class Ok, class Error>
struct method {
  using ok = Ok;
  using error = Error;
  static constexpr std::uint32_t number = Number;
  static constexpr std::uint32_t size = Size;
  static constexpr std::uint32_t shared_handles = Shared;
  static constexpr bool owns_handles = Owns;
  static constexpr bool is_inline = Inline;
  static const tw_method *methods() noexcept {
    return Package::methods();
  }
  static const tw_method *method_entry() noexcept {
    return methods() + Number;
  }
};

namespace detail {

/// A stream or future: see stream.hpp.
template <class T>
concept handle_type = std::derived_from<T, resource> || requires {
  typename T::is_stream;
};

} // namespace detail

/// A resource or stream inside a value belongs to the owner of the value. `put` gives a resource to
/// the message.
template <detail::handle_type T> struct codec<T> : detail::composite_codec {
  static constexpr std::uint32_t size = sizeof(tw_handle_ref);
  static constexpr std::uint32_t align = alignof(tw_handle_ref);
  static constexpr std::uint32_t handles(const T &) noexcept {
    return 1;
  }
  static void put(tw_writer *writer, std::uint32_t at, const T &value) noexcept {
    // Values with handles are parameters by value, so the object is not const.
    tw_put_handle(writer, at, const_cast<T &>(value).release());
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) noexcept {
    return tw_check_handle(checker, at);
  }
  static T get(const detail::source &from, const std::uint8_t *at) noexcept {
    tw_resource taken{};
    if (from.reply != nullptr) {
      tw_reply_take_handle(from.reply, *reinterpret_cast<const tw_handle_ref *>(at), &taken,
                           nullptr);
    }
    return T(detail::session_ref(*from.owner), taken.handle);
  }
};

namespace detail {

/// How a call returns a `T`.
enum class kind_of_result { nothing, value, handle, reply };
template <class T> constexpr kind_of_result kind_of() {
  if constexpr (std::is_void_v<T>) {
    return kind_of_result::nothing;
  } else if constexpr (handle_type<T>) {
    return kind_of_result::handle;
  } else {
    return codec<T>::is_value ? kind_of_result::value : kind_of_result::reply;
  }
}

/// What a call of the method `M` returns.
template <class M, class T = typename M::ok>
using result_of = result<std::conditional_t<kind_of<T>() == kind_of_result::reply, reply<T>, T>,
                         typename M::error>;

/// Whether an error type has a payload in messages.
template <class E>
inline constexpr bool has_error_payload = !std::is_void_v<E> && !std::is_same_v<E, none>;

/// The root of the error payload; NULL unless the outcome is TW_ERROR.
template <class E> const void *decode_error(tw_decoder *decoder) {
  if constexpr (has_error_payload<E>) {
    return tw_decode_root(decoder, TW_ERROR, codec<E>::size, check_function<E>());
  } else {
    return nullptr;
  }
}

/// The error of a call or stream. Takes the reply over. `life`: of its memory, if that is not the
/// reply's own.
template <class E>
typed_error<E> make_error(session &owner, std::uint32_t code, const tw_error &why,
                          const tw_reply &reply, const void *root,
                          const view_life *life = nullptr) {
  const thalweg::error base(why);
  [[maybe_unused]] reply_memory memory(reply);
  if constexpr (has_error_payload<E>) {
    if (root != nullptr && code == TW_ERROR) {
      // Views into a stream's error outlive this object.
      const source from =
          life != nullptr ? memory.borrow(&owner, *life) : memory.guard(&root, &owner);
      E payload = codec<E>::get(from, static_cast<const std::uint8_t *>(root));
      const auto kept = std::make_shared<thalweg::reply<E>>(std::move(memory), std::move(payload));
      return typed_error<E>(base, std::shared_ptr<const E>(kept, &**kept));
    }
  } else if constexpr (std::is_same_v<E, none>) {
    if (code == TW_ERROR) {
      return typed_error<E>(base, std::make_shared<E>());
    }
  }
  return typed_error<E>(base);
}

/// Decodes a completion of the method `M`, which it takes over. `why` was filled in if there is no
/// completion.
template <class M> result_of<M> read(session &owner, tw_completion *completion, tw_error *why) {
  using T = typename M::ok;
  using E = typename M::error;
  constexpr kind_of_result kind = kind_of<T>();
  tw_reply reply;
  tw_decoder decoder =
      tw_decode_begin(&owner.tw, M::method_entry(), completion, &reply, sizeof(reply), why);
  [[maybe_unused]] std::conditional_t<kind == kind_of_result::value, T, none> value{};
  [[maybe_unused]] tw_resource taken{};
  [[maybe_unused]] const void *root = nullptr;
  if constexpr (kind == kind_of_result::value) {
    tw_decode_value(&decoder, TW_OK, &value, codec<T>::size, check_function<T>());
  } else if constexpr (kind == kind_of_result::handle) {
    tw_decode_resource(&decoder, &taken);
  } else if constexpr (kind == kind_of_result::reply) {
    root = tw_decode_root(&decoder, TW_OK, codec<T>::size, check_function<T>());
  }
  const void *const failure = decode_error<E>(&decoder);
  const std::uint32_t code = tw_decode_end(&decoder);
  if (code != TW_OK) [[unlikely]] {
    return unexpected(make_error<E>(owner, code, *why, reply, failure));
  }
  if constexpr (kind == kind_of_result::nothing) {
    return {};
  } else if constexpr (kind == kind_of_result::value) {
    return value;
  } else if constexpr (std::derived_from<T, resource>) {
    return T(session_ref(owner), taken.handle);
  } else if constexpr (kind == kind_of_result::handle) {
    return T(session_ref(owner), taken.handle, M::method_entry());
  } else {
    reply_memory memory(reply);
    const source from = memory.guard(&root, &owner);
    T decoded = codec<T>::get(from, static_cast<const std::uint8_t *>(root));
    return thalweg::reply<T>(std::move(memory), std::move(decoded));
  }
}

/// The argument at this offset of the root.
template <std::uint32_t Offset, class T> struct value_argument {
  static constexpr bool is_shared = false;
  const T &value;
  [[nodiscard]] std::uint32_t handles() const noexcept {
    return codec<T>::handles(value);
  }
  void put(tw_request *request, std::uint32_t root) const {
    codec<T>::put(&request->writer, root + Offset, value);
  }
};

/// A resource that stays the caller's, or the reading end of a stream that the caller writes: from
/// now on, that one belongs to the message.
template <std::uint32_t Offset, class T> struct handle_argument {
  static constexpr bool is_shared = std::derived_from<T, const resource>;
  T &value;
  [[nodiscard]] std::uint32_t handles() const noexcept {
    return 1;
  }
  void put(tw_request *request, std::uint32_t root) const noexcept {
    if constexpr (is_shared) {
      tw_put_handle(&request->writer, root + Offset, value.handle());
    } else {
      tw_put_handle(&request->writer, root + Offset, value.release_reader());
    }
  }
};

} // namespace detail

template <std::uint32_t Offset, class T>
detail::value_argument<Offset, T> argument(const T &value) noexcept {
  return {value};
}
template <std::uint32_t Offset>
detail::handle_argument<Offset, const resource> borrowed(const resource &value) noexcept {
  return {value};
}
template <std::uint32_t Offset, class W>
detail::handle_argument<Offset, W> written(W &writer) noexcept {
  return {writer};
}

/// A call of the method `M` whose arguments were encoded, so that they may be freed. It is made by
/// `get` or `co_await`, at most once. A call that is destroyed before closes the resources that were
/// passed to it. A coroutine that is destroyed while it waits cancels its call.
template <class M> class [[nodiscard]] call final : detail::operation {
public:
  using result_type = detail::result_of<M>;

  template <class... Arguments>
  call(const detail::session_ref &session, const call_options &options,
       const Arguments &...arguments)
      : operation(TW_FOREVER, options.stop), session_(session), on_notice_(options.on_notice) {
    [[maybe_unused]] const std::uint32_t root =
        tw_request_begin(&request_, &session_->tw, M::methods(), M::number,
                         (0u + ... + arguments.handles()), M::size);
    request_.submission.deadline_ns = options.until.ns();
    (put(arguments, root), ...);
  }
  ~call() {
    if (token != 0) {
      session_->abandon(*this);
      session_->tw.table->cancel(request_.submission.call, nullptr);
    }
    if (!was_run_) {
      drop_owned();
    }
    tw_request_free(&request_);
  }

  /// Makes the call and blocks this thread until it has ended. The client must have no waiting
  /// coroutines: then the result is `outcome::argument`. A signal cancels the call:
  /// `outcome::interrupted`.
  result_type get() {
    std::uint32_t code = begin();
    if (code == TW_OK) {
      code = block();
    }
    end(code);
    return await_resume();
  }

  /// The message of the arguments, for tests and logs. Empty after the call was made.
  [[nodiscard]] std::span<const std::uint8_t> encoded() noexcept {
    if (was_run_ || tw_writer_end(&request_.writer) != TW_OK) {
      return {};
    }
    return {request_.writer.data, request_.writer.size};
  }

  // The awaiter.
  [[nodiscard]] bool await_ready() noexcept {
    if constexpr (M::is_inline) {
      const std::uint32_t code = begin();
      end(code == TW_OK ? block() : code);
      return true;
    }
    if (!is_brief() || was_run_) {
      return false;
    }
    begun_ = begin();
    if (begun_ != TW_OK || !run_if_idle()) {
      return false;
    }
    end(TW_OK);
    return true;
  }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    waiter = awaiting;
    std::uint32_t code = begun_ ? *begun_ : begin();
    if (code == TW_OK) {
      if (on_notice_.function != nullptr && (M::method_entry()->flags & TW_METHOD_NOTICES) != 0) {
        request_.submission.flags |= TW_SUBMIT_NOTICES;
      }
      code = session_->submit(&request_, *this, &error_);
    }
    if (code != TW_OK) {
      end(code);
      return false;
    }
    tw_request_accepted(&request_);
    tw_request_free(&request_);
    return true;
  }
  result_type await_resume() {
    return detail::read<M>(*session_, &request_.completion, &error_);
  }

private:
  template <class Argument> void put(const Argument &argument, std::uint32_t root) {
    if constexpr (M::owns_handles && Argument::is_shared) {
      shared_[shared_count_++] = request_.writer.handles_put;
    }
    argument.put(&request_, root);
  }

  /// Completes the submission.
  std::uint32_t begin() noexcept {
    if (was_run_) {
      return tw_fail(&error_, TW_ARGUMENT, "%s: a call is made at most once",
                     M::method_entry()->name);
    }
    was_run_ = true;
    return tw_request_end(&request_, &error_);
  }
  /// A method that runs on this thread if its service is idle.
  static bool is_brief() noexcept {
    return (M::method_entry()->flags & TW_METHOD_BRIEF) != 0;
  }
  bool run_if_idle() noexcept {
    return tw_call_inline(&session_->tw, &request_.submission, &request_.completion, &error_) ==
           TW_OK;
  }
  /// The call has ended, or was not made.
  void end(std::uint32_t code) noexcept {
    if (code != TW_OK) {
      drop_owned();
    }
    tw_request_result(&request_, code);
  }

  std::uint32_t block() {
    tw_client &by = session_->tw;
    tw_submission *const submission = &request_.submission;
    if constexpr (M::is_inline) {
      return tw_call_inline(&by, submission, &request_.completion, &error_);
    }
    if (is_brief() && run_if_idle()) {
      return TW_OK;
    }
    std::uint32_t code = session_->enter(&error_);
    if (code != TW_OK) {
      return code;
    }
    const std::lock_guard<detail::session> use(*session_, std::adopt_lock);
    if (session_->waiting != 0) {
      return tw_fail(&error_, TW_ARGUMENT,
                     "%s: a blocking call, but coroutines wait for calls of this client",
                     M::method_entry()->name);
    }
    if (on_notice_.function != nullptr) [[unlikely]] {
      by.on_notice = [](void *self, const tw_client *, tw_handle, std::uint64_t elapsed_ns) {
        static_cast<call *>(self)->notice(elapsed_ns);
      };
      by.notice_ctx = this;
    }
    if (!stop.stop_possible()) [[likely]] {
      code = tw_call(&by, submission, &request_.completion, &error_);
    } else {
      code = tw_call_submit(&by, submission, &error_);
      if (code == TW_OK) {
        watch_stop(*session_, submission->call);
        code = tw_call_wait(&by, submission, &request_.completion, &error_);
        on_stop.reset();
      }
    }
    by.on_notice = nullptr;
    return code;
  }

  /// Closes the resources and streams in a message that the service did not accept.
  void drop_owned() noexcept {
    if constexpr (M::owns_handles) {
      const tw_writer &writer = request_.writer;
      std::uint32_t next_shared = 0;
      for (std::uint32_t index = 0; request_.submission.call == 0 && index < writer.handles_put;
           ++index) {
        if (next_shared < shared_count_ && shared_[next_shared] == index) {
          ++next_shared;
          continue;
        }
        tw_handle owned = 0;
        std::memcpy(&owned, writer.data + sizeof(tw_message) + 8 * std::size_t{index},
                    sizeof(owned));
        if (owned != 0 && session_->tw.table->resource_drop(owned, nullptr) != TW_OK) {
          session_->tw.table->stream_close(owned, nullptr);
        }
      }
    }
  }

  void finish(tw_completion *completion) noexcept override {
    if (completion != nullptr) {
      request_.completion = std::exchange(*completion, tw_completion{});
    } else {
      tw_request_result(&request_, tw_fail(&error_, TW_CANCELLED, "%s: the client was closed",
                                           M::method_entry()->name));
    }
    waiter.resume();
  }
  void notice(std::uint64_t elapsed_ns) noexcept override {
    on_notice_.function(on_notice_.context, std::chrono::nanoseconds(elapsed_ns));
  }

  detail::session_ref session_;
  notice_handler on_notice_;
  bool was_run_ = false;
  std::optional<std::uint32_t> begun_; // by await_ready, for await_suspend
  std::uint32_t shared_count_ = 0;
  std::array<std::uint32_t, M::shared_handles> shared_; // their indexes, if `owns_handles`
  tw_error error_;
  tw_request request_;
};

/// An instance of a service, and the port that calls it. Generated packages derive a class.
///
/// One thread at a time uses a client; another one gets `outcome::argument`. For another thread or
/// event loop, attach a further client to the same instance.
class client {
public:
  client(client &&) noexcept = default;
  client &operator=(client &&other) noexcept {
    if (this != &other) {
      session_->close(nullptr);
      session_ = std::move(other.session_);
    }
    return *this;
  }
  ~client() {
    session_->close(nullptr);
  }

  /// Closes the port, and the instance unless this client is attached. Its calls and streams end as
  /// `outcome::cancelled`; coroutines that wait resume inside this function. A second call has no
  /// effect. The destructor does the same.
  result<void> close() {
    tw_error error;
    return detail::as_result(session_->close(&error), error);
  }
  explicit operator bool() const noexcept {
    return session_->tw.instance != 0;
  }

  // For event loops.

  /// The descriptor that becomes readable after `arm`. It belongs to the client: remove it from
  /// your event loop before you close the client. -1 if the client is closed.
  [[nodiscard]] int fd() const noexcept {
    return session_->fd();
  }
  /// Arms `fd` for one wake-up. False: call `dispatch` first, nothing was armed.
  [[nodiscard]] bool arm() const noexcept {
    return session_->arm_fd();
  }
  /// Call `dispatch` after this many milliseconds, even if `fd` is not readable: then the deadline
  /// of a waiting stream has passed. -1: never. It changes with each wait that begins.
  [[nodiscard]] int timeout_ms() const noexcept {
    return session_->timeout_ms();
  }
  /// Resumes the coroutines whose calls have ended or whose streams are ready, and answers host
  /// calls. Takes at most `budget` completions, and returns their number. Never waits.
  std::size_t dispatch(std::size_t budget = 256) const {
    return session_->dispatch(budget);
  }
  /// The number of waiting coroutines.
  [[nodiscard]] std::size_t waiting() const noexcept {
    return session_->waiting;
  }

protected:
  explicit client(detail::session_ref session) noexcept : session_(std::move(session)) {
  }
  [[nodiscard]] const detail::session_ref &session() const noexcept {
    return session_;
  }

  /// Opens a client of the class `C`.
  template <class C>
  static result<C> open_as(const tw_table *table, const tw_expected *expected,
                           std::uint32_t capacity) {
    return make<C>(capacity, [&](tw_client *out, tw_error *error) {
      return tw_client_open_as(table, expected, capacity, out, error);
    });
  }
  template <class C>
  static result<C> open_as(const char *path, const tw_expected *expected, std::uint32_t capacity) {
    const tw_table *table = nullptr;
    return make<C>(capacity, [&](tw_client *out, tw_error *error) {
      const std::uint32_t code = tw_open(path, expected, &table, error);
      return code == TW_OK ? tw_client_open_as(table, expected, capacity, out, error) : code;
    });
  }
  template <class C> [[nodiscard]] result<C> attach_as(std::uint32_t capacity) const {
    return make<C>(capacity, [&](tw_client *out, tw_error *error) {
      return *this ? tw_client_attach(&session_->tw, capacity, out, error)
                   : tw_fail(error, TW_CLOSED, "the client is closed");
    });
  }

private:
  template <class C, class Open> static result<C> make(std::uint32_t capacity, Open open) {
    tw_error error;
    auto *const created = new (std::nothrow) detail::session;
    if (created == nullptr) {
      tw_fail(&error, TW_OVERLOADED, "no memory for a client");
      return detail::failed(error);
    }
    detail::session_ref owner(created);
    owner->capacity = capacity;
    if (open(&owner->tw, &error) != TW_OK) {
      return detail::failed(error);
    }
    return C(std::move(owner));
  }

  detail::session_ref session_;
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
