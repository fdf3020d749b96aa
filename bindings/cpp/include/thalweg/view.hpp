/// Views of text, bytes and lists: arguments that borrow the caller's memory, and values in results
/// and batches.
///
/// A view is valid as long as the memory that it points to. A view into a reply or a batch that is
/// used after the reply or batch was released ends the program with a message, in builds that check
/// it. Builds without NDEBUG check it, and builds that define THALWEG_CHECK_VIEWS to 1. In all
/// others, a view has no additional member and no check.
#ifndef THALWEG_VIEW_HPP
#define THALWEG_VIEW_HPP

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iosfwd>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "thalweg_client.h"

#if !defined(THALWEG_CHECK_VIEWS)
#if defined(NDEBUG)
#define THALWEG_CHECK_VIEWS 0
#else
#define THALWEG_CHECK_VIEWS 1
#endif
#endif

// Both kinds of builds have types of their own, so that the linker refuses to mix them.
#if THALWEG_CHECK_VIEWS
#define THALWEG_VIEW_MODE checked_views
#include <atomic>
#include <mutex>
#else
#define THALWEG_VIEW_MODE unchecked_views
#endif

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// How a type is laid out in a message: see codec.hpp.
template <class T> struct codec;

namespace detail {

/// Ends the program: it used a view or a handle in a way that would be undefined.
[[noreturn]] inline void misuse(const char *what) noexcept {
  std::fprintf(stderr, "thalweg: %s\n", what);
  std::abort();
}

#if THALWEG_CHECK_VIEWS

/// Counts how often the memory of a reply or a batch was released. Cells are reused but never
/// freed, so that a view can always read its cell.
struct life_cell {
  std::atomic<std::uint64_t> generation{0};
  life_cell *next = nullptr;
};

struct life_cells {
  std::mutex mutex;
  life_cell *free = nullptr;

  static life_cells &all() noexcept {
    static life_cells *const cells = new life_cells;
    return *cells;
  }
  static life_cell *take() noexcept {
    life_cells &cells = all();
    const std::lock_guard<std::mutex> lock(cells.mutex);
    life_cell *cell = cells.free;
    if (cell == nullptr) {
      return new life_cell;
    }
    cells.free = cell->next;
    return cell;
  }
  static void give_back(life_cell *cell) noexcept {
    life_cells &cells = all();
    const std::lock_guard<std::mutex> lock(cells.mutex);
    cell->next = cells.free;
    cells.free = cell;
  }
};

/// What a view knows about the memory that it points to.
class view_life {
public:
  constexpr view_life() noexcept = default;
  view_life(life_cell *cell, std::uint64_t generation) noexcept
      : cell_(cell), generation_(generation) {
  }
  constexpr void check() const noexcept {
    if (cell_ != nullptr && cell_->generation.load(std::memory_order_acquire) != generation_) {
      misuse("a view was used after its batch or reply was released");
    }
  }
  /// The memory is released, unless it was already.
  void end() const noexcept {
    std::uint64_t expected = generation_;
    if (cell_ != nullptr) {
      cell_->generation.compare_exchange_strong(expected, expected + 1);
    }
  }

private:
  life_cell *cell_ = nullptr;
  std::uint64_t generation_ = 0;
};

/// Belongs to the owner of the memory.
class memory_life {
public:
  memory_life() noexcept = default;
  memory_life(memory_life &&other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {
  }
  memory_life &operator=(memory_life &&other) noexcept {
    if (this != &other) {
      end();
      cell_ = std::exchange(other.cell_, nullptr);
    }
    return *this;
  }
  ~memory_life() {
    end();
  }
  [[nodiscard]] view_life view() noexcept {
    if (cell_ == nullptr) {
      cell_ = life_cells::take();
    }
    return {cell_, cell_->generation.load(std::memory_order_acquire)};
  }
  void end() noexcept {
    if (cell_ != nullptr) {
      cell_->generation.fetch_add(1);
      life_cells::give_back(cell_);
      cell_ = nullptr;
    }
  }

private:
  life_cell *cell_ = nullptr;
};

#else

class view_life {
public:
  constexpr void check() const noexcept {
  }
  constexpr void end() const noexcept {
  }
};

class memory_life {
public:
  constexpr memory_life() noexcept = default;
  constexpr memory_life(memory_life &&) noexcept {
  }
  constexpr memory_life &operator=(memory_life &&) noexcept {
    return *this;
  }
  [[nodiscard]] constexpr view_life view() const noexcept {
    return {};
  }
  constexpr void end() noexcept {
  }
};

#endif

struct session;

/// Where a value is read: a message or a batch that begins at `base`.
struct source {
  const std::uint8_t *base;
  tw_reply *reply; // for handles in the value; or NULL
  session *owner;  // for handles in the value; or NULL
  [[no_unique_address]] view_life life;
};

} // namespace detail

/// UTF-8 text that belongs to somebody else: a `std::string_view` with a check.
class text {
public:
  constexpr text() noexcept = default;
  template <class S>
  requires(
      !std::same_as<S, text> &&
      std::convertible_to<const S &, std::string_view>) constexpr text(const S &string) noexcept
      : text(std::string_view(string), {}) {
  }
  text(std::nullptr_t) = delete;
  constexpr text(std::string_view string, detail::view_life life) noexcept
      : data_(string.data()), size_(string.size()), life_(life) {
  }

  [[nodiscard]] constexpr std::string_view view() const noexcept {
    life_.check();
    return {data_, size_};
  }
  constexpr operator std::string_view() const noexcept {
    return view();
  }
  /// A copy.
  [[nodiscard]] std::string str() const {
    return std::string(view());
  }
  [[nodiscard]] constexpr const char *data() const noexcept {
    return view().data();
  }
  /// In bytes.
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return size_;
  }
  [[nodiscard]] constexpr bool empty() const noexcept {
    return size_ == 0;
  }

  template <class S>
  requires std::convertible_to<const S &, std::string_view>
  friend constexpr bool operator==(const text &left, const S &right) noexcept {
    return left.view() == std::string_view(right);
  }
  template <class Traits>
  friend std::basic_ostream<char, Traits> &operator<<(std::basic_ostream<char, Traits> &out,
                                                      const text &value) {
    return out << value.view();
  }

private:
  const char *data_ = nullptr;
  std::size_t size_ = 0;
  [[no_unique_address]] detail::view_life life_;
};

/// A range whose elements may be viewed: it is not a temporary object that owns them.
template <class R, class T>
concept viewable = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::same_as<std::remove_cv_t<std::ranges::range_value_t<R>>, T> &&
    (std::is_lvalue_reference_v<R> || std::ranges::borrowed_range<R>);

/// A `list<u8>` that belongs to somebody else: a `std::span<const std::uint8_t>` with a check.
class bytes {
public:
  constexpr bytes() noexcept = default;
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, bytes> &&
           viewable<R, std::uint8_t>) constexpr bytes(R &&range) noexcept
      : data_(std::ranges::data(range)), size_(std::ranges::size(range)) {
  }
  constexpr bytes(const std::uint8_t *data, std::size_t size, detail::view_life life = {}) noexcept
      : data_(data), size_(size), life_(life) {
  }

  [[nodiscard]] constexpr std::span<const std::uint8_t> span() const noexcept {
    life_.check();
    return {data_, size_};
  }
  constexpr operator std::span<const std::uint8_t>() const noexcept {
    return span();
  }
  [[nodiscard]] constexpr const std::uint8_t *data() const noexcept {
    return span().data();
  }
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return size_;
  }
  [[nodiscard]] constexpr bool empty() const noexcept {
    return size_ == 0;
  }
  [[nodiscard]] constexpr const std::uint8_t *begin() const noexcept {
    return data();
  }
  [[nodiscard]] constexpr const std::uint8_t *end() const noexcept {
    return data() + size_;
  }
  friend constexpr bool operator==(const bytes &left, const bytes &right) noexcept {
    return std::ranges::equal(left.span(), right.span());
  }

private:
  const std::uint8_t *data_ = nullptr;
  std::size_t size_ = 0;
  [[no_unique_address]] detail::view_life life_;
};

/// A list that belongs to somebody else. As an argument, it views an array of `T`. In a result or a
/// batch, it views the message, and decodes an element where it is accessed.
template <class T> class list {
public:
  constexpr list() noexcept = default;
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, list> &&
           viewable<R, T>) constexpr list(R &&range) noexcept
      : native_(std::ranges::data(range)), count_(std::ranges::size(range)) {
  }
  /// A list in a message that begins at `base`.
  list(const std::uint8_t *base, const std::uint8_t *items, std::size_t count,
       detail::view_life life) noexcept
      : base_(base), items_(items), count_(count), life_(life) {
  }

  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return count_;
  }
  [[nodiscard]] constexpr bool empty() const noexcept {
    return count_ == 0;
  }
  /// A reference if `T` has the same layout in messages, otherwise a value. `index` must be less
  /// than `size()`: every other index ends the program.
  decltype(auto) operator[](std::size_t index) const {
    using element = decltype(codec<T>::get(std::declval<const detail::source &>(),
                                           static_cast<const std::uint8_t *>(nullptr)));
    life_.check();
    if (index >= count_) [[unlikely]] {
      detail::misuse("an index is not less than the size of its list");
    }
    return at<element>(index);
  }
  /// All elements. Only for elements that have the same layout in messages.
  [[nodiscard]] std::span<const T> span() const noexcept requires(codec<T>::is_direct) {
    life_.check();
    return {base_ != nullptr ? reinterpret_cast<const T *>(items_) : native_, count_};
  }

  class iterator {
  public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    iterator() noexcept = default;
    iterator(const list *of, std::size_t index) noexcept : of_(of), index_(index) {
    }
    decltype(auto) operator*() const {
      return (*of_)[index_];
    }
    iterator &operator++() noexcept {
      ++index_;
      return *this;
    }
    iterator operator++(int) noexcept {
      return {of_, index_++};
    }
    friend bool operator==(const iterator &left, const iterator &right) noexcept {
      return left.index_ == right.index_;
    }

  private:
    const list *of_ = nullptr;
    std::size_t index_ = 0;
  };
  [[nodiscard]] iterator begin() const noexcept {
    return {this, 0};
  }
  [[nodiscard]] iterator end() const noexcept {
    return {this, count_};
  }

private:
  template <class Element> Element at(std::size_t index) const {
    if (base_ == nullptr) {
      return native_[index];
    }
    return codec<T>::get(detail::source{base_, nullptr, nullptr, life_},
                         items_ + index * codec<T>::size);
  }

  const T *native_ = nullptr;
  const std::uint8_t *base_ = nullptr; // NULL: the elements are at `native_`
  const std::uint8_t *items_ = nullptr;
  std::size_t count_ = 0;
  [[no_unique_address]] detail::view_life life_;
};

template <class T> bool operator==(const list<T> &left, const list<T> &right) {
  if (left.size() != right.size()) {
    return false;
  }
  for (std::size_t index = 0; index < left.size(); ++index) {
    if (!(left[index] == right[index])) {
      return false;
    }
  }
  return true;
}

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
#endif
