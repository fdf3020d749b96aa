/// Outcomes, errors, exceptions and results.
///
/// Every operation that can fail returns a `result`. Nothing throws except `result::value`, so a
/// program may be compiled with `-fno-exceptions`.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "expected.hpp"
#include "thalweg_client.h"
#include "view.hpp"

namespace thalweg {

/// How a call or a stream ended. The numbers are those of `enum tw_code` and never change.
enum class outcome : std::uint32_t {
  ok = TW_OK,
  error = TW_ERROR,
  cancelled = TW_CANCELLED,
  timed_out = TW_TIMED_OUT,
  guest_lost = TW_GUEST_LOST,
  guest_panicked = TW_GUEST_PANICKED,
  overloaded = TW_OVERLOADED,
  shut_down = TW_SHUT_DOWN,
  closed = TW_CLOSED,
  stale = TW_STALE,
  argument = TW_ARGUMENT,
  version = TW_VERSION,
  forked = TW_FORKED,
  interrupted = TW_INTERRUPTED,
  would_park = TW_WOULD_PARK
};

/// No value: the error of a function that fails without a payload, and the element of a stream that
/// carries nothing.
struct none {
  friend constexpr bool operator==(none, none) noexcept = default;
};

inline namespace THALWEG_VIEW_MODE {

/// Why an operation failed.
class error {
public:
  explicit error(const tw_error &tw) noexcept : tw_(tw) {
  }
  /// `message` is truncated to 247 bytes.
  error(thalweg::outcome code, std::string_view message, bool retryable = false) noexcept {
    tw_fail_with(&tw_, static_cast<std::uint32_t>(code), retryable, message.data(), message.size());
  }

  [[nodiscard]] outcome code() const noexcept {
    return static_cast<outcome>(tw_.code);
  }
  /// The name of the code, such as "timed_out".
  [[nodiscard]] const char *name() const noexcept {
    return tw_code_name(tw_.code);
  }
  /// Whether the same call may succeed later, and repeating it does no harm.
  [[nodiscard]] bool retryable() const noexcept {
    return tw_.retryable != 0;
  }
  /// UTF-8, NUL-terminated, valid as long as the error.
  [[nodiscard]] std::string_view message() const noexcept {
    return tw_.message;
  }

private:
  tw_error tw_;
};

namespace detail {

/// The memory of a reply. Views into it end with it.
class reply_memory {
public:
  explicit reply_memory(const tw_reply &tw) noexcept : tw_(tw) {
  }
  reply_memory(reply_memory &&other) noexcept
      : tw_(std::exchange(other.tw_, tw_reply{})), life_(std::move(other.life_)) {
  }
  reply_memory &operator=(reply_memory &&other) noexcept {
    std::swap(tw_, other.tw_);
    life_ = std::move(other.life_);
    return *this;
  }
  ~reply_memory() {
    life_.end();
    tw_reply_release(&tw_);
  }
  /// Where the value at `*root` is read, which is moved into the guarded copy of the message.
  [[nodiscard]] source guard(const void **root, session *owner) noexcept {
    const std::uint8_t *const base = life_.guard(tw_.base, tw_.completion.data_size);
    *root = base + (static_cast<const std::uint8_t *>(*root) - tw_.base);
    return {base, &tw_, owner, life_};
  }
  /// The same for a message that belongs to somebody else, with this life.
  [[nodiscard]] source borrow(session *owner, const view_life &life) noexcept {
    return {tw_.base, &tw_, owner, life};
  }

private:
  tw_reply tw_;
  [[no_unique_address]] memory_life life_;
};

} // namespace detail

/// Why a function with an error type failed. If the outcome is `outcome::error`, it has the value
/// that the service sent. `E` may be `void`: the function has no error of its own.
template <class E> class typed_error : public error {
public:
  explicit typed_error(const error &base, std::shared_ptr<const E> payload = nullptr) noexcept
      : error(base), payload_(std::move(payload)) {
  }
  /// The service's error; NULL for every other outcome. Valid as long as a copy of this error.
  [[nodiscard]] const E *payload() const noexcept {
    return payload_.get();
  }

private:
  std::shared_ptr<const E> payload_;
};

#if defined(__cpp_exceptions)

/// Base of all exceptions of Thalweg.
class exception : public std::exception {
public:
  explicit exception(const error &cause) noexcept : cause_(cause) {
  }
  [[nodiscard]] outcome code() const noexcept {
    return cause_.code();
  }
  [[nodiscard]] bool retryable() const noexcept {
    return cause_.retryable();
  }
  [[nodiscard]] const char *what() const noexcept override {
    return cause_.message().data();
  }

private:
  error cause_;
};

/// The exception of one outcome.
template <outcome Code> class exception_of : public exception {
public:
  using exception::exception;
};

using service_error = exception_of<outcome::error>;
using cancelled = exception_of<outcome::cancelled>;
using timed_out = exception_of<outcome::timed_out>;
using guest_lost = exception_of<outcome::guest_lost>;
using guest_panicked = exception_of<outcome::guest_panicked>;
using overloaded = exception_of<outcome::overloaded>;
using shut_down = exception_of<outcome::shut_down>;
using closed = exception_of<outcome::closed>;
using stale = exception_of<outcome::stale>;
using bad_argument = exception_of<outcome::argument>;
using version_mismatch = exception_of<outcome::version>;
using forked = exception_of<outcome::forked>;
using interrupted = exception_of<outcome::interrupted>;
using would_park = exception_of<outcome::would_park>;

/// A service's own error, with its value. Also a `service_error`.
template <class E> class service_error_of : public service_error {
public:
  explicit service_error_of(const typed_error<E> &cause) noexcept
      : service_error(cause), cause_(cause) {
  }
  /// Valid as long as a copy of this exception.
  [[nodiscard]] const E &payload() const noexcept {
    return *cause_.payload();
  }

private:
  typed_error<E> cause_;
};

#endif

namespace detail {

#if defined(__cpp_exceptions)
template <std::uint32_t Code = 1> [[noreturn]] void throw_code(const error &cause) {
  if constexpr (Code > static_cast<std::uint32_t>(outcome::would_park)) {
    throw exception(cause); // a code of a newer library
  } else {
    if (cause.code() == static_cast<outcome>(Code)) {
      throw exception_of<static_cast<outcome>(Code)>(cause);
    }
    throw_code<Code + 1>(cause);
  }
}
#endif

template <class E> [[noreturn]] void raise(const typed_error<E> &cause) {
#if defined(__cpp_exceptions)
  if constexpr (!std::is_void_v<E>) {
    if (cause.payload() != nullptr) {
      throw service_error_of<E>(cause);
    }
  }
  throw_code(cause);
#else
  std::fprintf(stderr, "thalweg: %s: %s\n", cause.name(), cause.message().data());
  std::abort();
#endif
}

} // namespace detail

/// The result of a call: an `expected` whose error is a `typed_error<E>`.
template <class T, class E = void> class [[nodiscard]] result : public expected<T, typed_error<E>> {
  using base = expected<T, typed_error<E>>;

public:
  using base::base;

  /// The value. Throws the exception of the outcome, such as `timed_out`, or for the service's own
  /// error a `service_error_of<E>`. Without exceptions, an error ends the program.
  decltype(auto) value() & {
    return value_of(*this);
  }
  decltype(auto) value() const & {
    return value_of(*this);
  }
  T value() && {
    if constexpr (std::is_void_v<T>) {
      value_of(*this);
    } else {
      return std::move(value_of(*this));
    }
  }

private:
  template <class Self> static decltype(auto) value_of(Self &self) {
    if (!self.has_value()) {
      detail::raise(self.error());
    }
    if constexpr (!std::is_void_v<T>) {
      return *self;
    }
  }
};

namespace detail {
/// An error without a payload, as a result.
inline unexpected<typed_error<void>> failed(const tw_error &why) {
  return unexpected(typed_error<void>(error(why)));
}
inline result<void> as_result(std::uint32_t code, const tw_error &why) {
  if (code != TW_OK) {
    return failed(why);
  }
  return {};
}
} // namespace detail

/// A value of a result that is more than a number. It owns the memory that the views in the value
/// point to.
template <class T, class Memory = detail::reply_memory> class reply {
public:
  reply(Memory memory, T value) : memory_(std::move(memory)), value_(std::move(value)) {
  }
  [[nodiscard]] const T &operator*() const &noexcept {
    return value_;
  }
  [[nodiscard]] T &operator*() &noexcept {
    return value_;
  }
  [[nodiscard]] const T *operator->() const noexcept {
    return &value_;
  }
  [[nodiscard]] T *operator->() noexcept {
    return &value_;
  }

private:
  Memory memory_;
  T value_;
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
