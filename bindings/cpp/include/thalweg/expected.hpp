/// `thalweg::expected`: `std::expected` where the standard library has it (C++23), otherwise a type
/// with the part of its interface that results need.
#ifndef THALWEG_EXPECTED_HPP
#define THALWEG_EXPECTED_HPP

#include <version>

#if defined(__cpp_lib_expected)
#include <expected>

namespace thalweg {
using std::expected;
using std::unexpected;
} // namespace thalweg

#else
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

namespace thalweg {

/// The error of an `expected`, for its constructor.
template <class E> class unexpected {
public:
  template <class G = E>
  requires(
      std::constructible_from<E, G> &&
      !std::same_as<std::remove_cvref_t<G>, unexpected>) constexpr explicit unexpected(G &&error)
      : error_(std::forward<G>(error)) {
  }
  [[nodiscard]] constexpr const E &error() const &noexcept {
    return error_;
  }
  [[nodiscard]] constexpr E &error() &noexcept {
    return error_;
  }
  [[nodiscard]] constexpr E &&error() &&noexcept {
    return std::move(error_);
  }

private:
  E error_;
};

template <class E> unexpected(E) -> unexpected<E>;

#if defined(__cpp_exceptions)
/// Thrown by `expected::value` if there is an error.
template <class E> class bad_expected_access : public std::exception {
public:
  explicit bad_expected_access(E error) : error_(std::move(error)) {
  }
  [[nodiscard]] const E &error() const noexcept {
    return error_;
  }
  [[nodiscard]] const char *what() const noexcept override {
    return "thalweg: there is an error and no value";
  }

private:
  E error_;
};
#endif

namespace expected_detail {
template <class T> inline constexpr bool is_unexpected = false;
template <class E> inline constexpr bool is_unexpected<unexpected<E>> = true;
} // namespace expected_detail

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
           !std::derived_from<std::remove_cvref_t<U>, expected> &&
           !expected_detail::is_unexpected<std::remove_cvref_t<U>>) constexpr expected(U &&value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {
  }
  template <class G>
  requires std::constructible_from<E, G>
  constexpr expected(unexpected<G> error)
      : state_(std::in_place_index<1>, E(std::move(error).error())) {
  }

  [[nodiscard]] constexpr bool has_value() const noexcept {
    return state_.index() == 0;
  }
  constexpr explicit operator bool() const noexcept {
    return has_value();
  }
  constexpr const stored &operator*() const &noexcept requires(!std::is_void_v<T>) {
    return *std::get_if<0>(&state_);
  }
  constexpr stored &operator*() &noexcept requires(!std::is_void_v<T>) {
    return *std::get_if<0>(&state_);
  }
  constexpr stored &&operator*() &&noexcept requires(!std::is_void_v<T>) {
    return std::move(*std::get_if<0>(&state_));
  }
  constexpr const stored *operator->() const noexcept requires(!std::is_void_v<T>) {
    return std::get_if<0>(&state_);
  }
  constexpr stored *operator->() noexcept requires(!std::is_void_v<T>) {
    return std::get_if<0>(&state_);
  }
  /// The value. Throws `bad_expected_access` if there is an error; without exceptions, the program
  /// ends.
  constexpr const stored &value() const & {
    require();
    return *std::get_if<0>(&state_);
  }
  constexpr stored &value() & {
    require();
    return *std::get_if<0>(&state_);
  }
  constexpr stored &&value() && {
    require();
    return std::move(*std::get_if<0>(&state_));
  }
  [[nodiscard]] constexpr const E &error() const &noexcept {
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] constexpr E &error() &noexcept {
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] constexpr E &&error() &&noexcept {
    return std::move(*std::get_if<1>(&state_));
  }

  friend constexpr bool operator==(const expected &left, const expected &right) {
    return left.state_ == right.state_;
  }

private:
  constexpr void require() const {
    if (!has_value()) {
#if defined(__cpp_exceptions)
      if constexpr (std::copy_constructible<E>) {
        throw bad_expected_access<E>(error());
      }
#endif
      std::fputs("thalweg: there is an error and no value\n", stderr);
      std::abort();
    }
  }

  std::variant<stored, E> state_;
};

} // namespace thalweg
#endif
#endif
