/// What a guest receives besides arguments: the elements of streams and futures that are parameters,
/// and the answers of its host. guest.hpp uses this file.
///
/// Both block the thread until there is something. It must be a thread of the guest: a function of
/// the guest must not wait, and gets `outcome::would_park`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "codec.hpp"
#include "error.hpp"
#include "guest_message.hpp"
#include "thalweg_serve.h"
#include "view.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// The reading end of a stream that is a parameter, for one thread at a time. It may be read after the
/// call was answered.
///
///   while (const auto number = numbers.next()) { sum += *number; }
///   numbers.status()                                                  how it ended
template <class T> class stream_reader {
public:
  stream_reader() noexcept {
    close();
  }
  /// Takes over a reader that was opened.
  explicit stream_reader(const tw_element_reader &opened) noexcept : tw_(opened) {
  }
  stream_reader(stream_reader &&other) noexcept : stream_reader() {
    *this = std::move(other);
  }
  stream_reader &operator=(stream_reader &&other) noexcept {
    std::swap(tw_, other.tw_);
    std::swap(code_, other.code_);
    std::swap(why_, other.why_);
    std::swap(life_, other.life_);
    return *this;
  }
  ~stream_reader() {
    close();
  }

  /// Waits for the next element until `deadline_ns` of CLOCK_MONOTONIC; 0 does not wait. Nothing:
  /// there is none, and `status` is the reason. Views in an element are valid until the next call of
  /// this function.
  std::optional<T> next(std::uint64_t deadline_ns = TW_FOREVER) {
    life_.end();
    if (tw_.core == nullptr) {
      return std::nullopt;
    }
    code_ = tw_element_reader_receive(&tw_, deadline_ns, &why_);
    if (code_ != TW_OK) {
      return std::nullopt;
    }
    if constexpr (std::is_same_v<T, none>) {
      return none{};
    } else {
      return detail::read_message<T>(tw_.element, life_);
    }
  }
  /// How the last `next` has ended. A value: there was an element, or the stream is complete.
  /// `outcome::timed_out`: nothing arrived until the deadline. Every other error is the outcome of the
  /// stream: `outcome::cancelled` if its writer has left before the end.
  [[nodiscard]] result<void> status() const {
    return code_ == TW_CLOSED ? result<void>() : detail::as_result(code_, why_);
  }
  /// Closes the stream: its writer gets `outcome::closed`. The destructor does the same.
  void close() noexcept {
    life_.end();
    if (tw_.core != nullptr) {
      tw_element_reader_close(&tw_);
      tw_ = {};
    }
    code_ = tw_fail(&why_, TW_STALE, "the stream was closed or moved from");
  }

private:
  tw_element_reader tw_{};
  std::uint32_t code_ = TW_OK; // of the last `next`
  tw_error why_{};
  [[no_unique_address]] detail::memory_life life_; // of the last element
};

/// The reading end of a future that is a parameter, for one thread at a time.
template <class T> class future_reader {
public:
  future_reader() noexcept = default;
  /// Takes over a reader that was opened.
  explicit future_reader(const tw_element_reader &opened) noexcept : stream_(opened) {
  }

  /// Waits for the value, once, until `deadline_ns` of CLOCK_MONOTONIC; 0 does not wait. Views in it are
  /// valid until the next call of this function. `outcome::timed_out`: there was none until the
  /// deadline. `outcome::cancelled`: the writer has left without a value.
  result<T> get(std::uint64_t deadline_ns = TW_FOREVER) {
    if (std::optional<T> value = stream_.next(deadline_ns)) {
      return *std::move(value);
    }
    result<void> status = stream_.status();
    if (!status) {
      return unexpected(std::move(status.error()));
    }
    return unexpected(typed_error<void>(error(outcome::cancelled, "the future has no value")));
  }
  /// Closes the future. The destructor does the same.
  void close() noexcept {
    stream_.close();
  }

private:
  stream_reader<T> stream_;
};

namespace detail {

/// The memory of an answer of the host. Views into it end with it.
class message_memory {
public:
  explicit message_memory(const tw_guest_core *core) noexcept : core_(core) {
  }
  message_memory(message_memory &&other) noexcept
      : core_(other.core_), tw_(std::exchange(other.tw_, {})), life_(std::move(other.life_)) {
  }
  message_memory &operator=(message_memory &&other) noexcept {
    std::swap(core_, other.core_);
    std::swap(tw_, other.tw_);
    life_ = std::move(other.life_);
    return *this;
  }
  ~message_memory() {
    life_.end();
    core_->message_release(&tw_);
  }
  [[nodiscard]] tw_guest_message *message() noexcept {
    return &tw_;
  }
  template <class T> [[nodiscard]] T read() {
    return read_message<T>(tw_, life_);
  }

private:
  const tw_guest_core *core_;
  tw_guest_message tw_{};
  [[no_unique_address]] memory_life life_;
};

/// A value that owns the memory of its views, unless it has none.
template <class T> struct received_value { using type = reply<T, message_memory>; };
template <> struct received_value<void> { using type = void; };
template <class T>
requires(codec<T>::is_value) struct received_value<T> {
  using type = T;
};

/// The error of a host import. Takes the message over.
template <class E> typed_error<E> import_error(const tw_error &why, message_memory answer) {
  const error base(why);
  if constexpr (!std::is_void_v<E>) {
    if (base.code() == outcome::error) {
      if constexpr (std::is_same_v<E, none>) {
        return typed_error<E>(base, std::make_shared<E>());
      } else {
        E payload = answer.read<E>();
        const auto kept = std::make_shared<reply<E, message_memory>>(std::move(answer), payload);
        return typed_error<E>(base, std::shared_ptr<const E>(kept, &**kept));
      }
    }
  }
  return typed_error<E>(base);
}

} // namespace detail

/// What a call of the import `I` returns.
template <class I>
using import_result =
    result<typename detail::received_value<typename I::ok>::type, typename I::error>;

template <class Method> class incoming;

/// The host of a call: the program that has made it. Generated packages derive a class `host` with a
/// function for each host import. They block the thread until the host has answered, and only work
/// until the call was answered. `outcome::closed`: the program has not set a host.
class host_of_call {
public:
  template <class Method>
  explicit host_of_call(const incoming<Method> &call) noexcept : call_(call.tw_) {
  }

protected:
  template <class I, class... Values>
  [[nodiscard]] import_result<I> call(const Values &...values) const {
    return call_with<I>(typename I::params(), values...);
  }

private:
  template <class I, class... Ps, class... Values>
  [[nodiscard]] import_result<I> call_with(parameters<Ps...>, const Values &...values) const {
    using T = typename I::ok;
    tw_error why;
    if (call_.core == nullptr) {
      tw_fail(&why, TW_STALE, "the call was answered");
      return unexpected(typed_error<typename I::error>(error(why)));
    }
    tw_writer arguments;
    [[maybe_unused]] const std::uint32_t root =
        tw_writer_begin(&arguments, I::method_entry()->params, 0, I::size);
    (codec<typename Ps::type>::put(&arguments, root + Ps::offset, values), ...);
    detail::message_memory answer(call_.core);
    if (tw_incoming_import(&call_, I::number, &arguments, answer.message(), &why) != TW_OK) {
      return unexpected(detail::import_error<typename I::error>(why, std::move(answer)));
    }
    if constexpr (std::is_void_v<T>) {
      return {};
    } else if constexpr (codec<T>::is_value) {
      return answer.read<T>();
    } else {
      T value = answer.read<T>();
      return reply<T, detail::message_memory>(std::move(answer), std::move(value));
    }
  }

  tw_incoming call_;
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
