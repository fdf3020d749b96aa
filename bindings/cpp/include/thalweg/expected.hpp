/// `thalweg::expected`: `std::expected` where the standard library has it (C++23), otherwise a type
/// with the part of its interface that results need.
#pragma once

#include <version>

#if defined(__cpp_lib_expected)
#include <expected>

namespace thalweg {
using std::expected;
using std::unexpected;
} // namespace thalweg

#else
#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

namespace thalweg {

/// The error of an `expected`, for its constructor.
template <class E> class unexpected {
public:
  constexpr explicit unexpected(E error) : error_(std::move(error)) {
  }
  [[nodiscard]] constexpr const E &error() const noexcept {
    return error_;
  }
  [[nodiscard]] constexpr E &error() noexcept {
    return error_;
  }

private:
  E error_;
};

/// A value or an error. `*` and `->` require a value, `error()` requires an error.
template <class T, class E> class expected {
  using stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

public:
  using value_type = T;
  using error_type = E;

  constexpr expected() requires std::default_initializable<stored>
  = default;
  template <class U = T>
  requires(!std::is_void_v<T> && std::constructible_from<stored, U> &&
           !std::derived_from<std::remove_cvref_t<U>, expected>) constexpr expected(U &&value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {
  }
  template <class G>
  requires std::constructible_from<E, G>
  constexpr expected(unexpected<G> error)
      : state_(std::in_place_index<1>, std::move(error.error())) {
  }

  [[nodiscard]] constexpr bool has_value() const noexcept {
    return state_.index() == 0;
  }
  constexpr explicit operator bool() const noexcept {
    return has_value();
  }
  constexpr const stored &operator*() const &noexcept {
    return *std::get_if<0>(&state_);
  }
  constexpr stored &operator*() &noexcept {
    return *std::get_if<0>(&state_);
  }
  constexpr stored &&operator*() &&noexcept {
    return std::move(*std::get_if<0>(&state_));
  }
  constexpr const stored *operator->() const noexcept {
    return std::get_if<0>(&state_);
  }
  constexpr stored *operator->() noexcept {
    return std::get_if<0>(&state_);
  }
  [[nodiscard]] constexpr const E &error() const noexcept {
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] constexpr E &error() noexcept {
    return *std::get_if<1>(&state_);
  }
  friend constexpr bool operator==(const expected &left, const expected &right) {
    return left.state_ == right.state_;
  }

private:
  std::variant<stored, E> state_;
};

} // namespace thalweg
#endif
