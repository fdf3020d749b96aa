/// Views of text, bytes and lists: arguments that borrow the caller's memory, and values in results
/// and batches.
///
/// A view is valid as long as the memory that it points to. A view into a reply or a batch that is
/// used after the reply or batch was released ends the program with a message, in builds that check
/// it. Builds without NDEBUG check it, and builds that define THALWEG_CHECK_VIEWS to 1. In all
/// others, a view has no additional member and no check.
///
/// A `std::string_view`, `std::span` or reference that was taken from a view has no check. In builds
/// that check, batches and replies are therefore copies in pages of their own, which become
/// inaccessible at the release: the program ends with SIGSEGV.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/mman.h>
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

/// Pages with a copy of a message. They are inaccessible after `hide`, and their addresses stay
/// reserved until 256 other copies were hidden.
struct guarded_pages {
  void *at = nullptr;
  std::size_t size = 0;

  /// The address of the copy. Without memory for it, `data` itself, which is not guarded.
  const std::uint8_t *copy(const std::uint8_t *data, std::size_t length) noexcept {
    if (length == 0) {
      return data;
    }
    void *const pages =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
      return data;
    }
    hide();
    at = pages;
    size = length;
    std::memcpy(at, data, length);
    return static_cast<const std::uint8_t *>(at);
  }
  void hide() noexcept {
    static std::mutex mutex;
    static std::array<guarded_pages, 256> hidden;
    static std::size_t next = 0;
    if (at == nullptr) {
      return;
    }
    // A new mapping, so that the memory of the copy is freed. If it fails, the copy stays readable.
    [[maybe_unused]] const void *const mapped =
        ::mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    const std::lock_guard<std::mutex> lock(mutex);
    guarded_pages &oldest = hidden[next++ % hidden.size()];
    if (oldest.at != nullptr) {
      ::munmap(oldest.at, oldest.size);
    }
    oldest = *this;
    at = nullptr;
  }
};

/// The life of the memory of a reply or a batch, shared by its owner and its views.
class view_life {
public:
  /// Ends the program if the memory was released.
  void check() const noexcept {
    if (state_ != nullptr && state_->has_ended.load(std::memory_order_acquire)) {
      misuse("a view was used after its batch or reply was released");
    }
  }
  /// The memory is released, unless it was already.
  void end() const noexcept {
    if (state_ != nullptr && !state_->has_ended.exchange(true)) {
      state_->pages.hide();
    }
  }

protected:
  struct state {
    std::atomic<bool> has_ended{false};
    guarded_pages pages;
  };
  std::shared_ptr<state> state_;
};

/// The owner's part: it ends the life that it began last.
class memory_life : public view_life {
public:
  memory_life() noexcept = default;
  memory_life(memory_life &&) noexcept = default;
  memory_life &operator=(memory_life &&other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~memory_life() {
    end();
  }
  /// Begins a life: that of a copy of this memory, whose address is the result.
  [[nodiscard]] const std::uint8_t *guard(const std::uint8_t *data, std::size_t size) noexcept {
    end();
    state_ = std::make_shared<state>();
    return state_->pages.copy(data, size);
  }
  /// The life of memory that is not guarded.
  [[nodiscard]] const view_life &unguarded() noexcept {
    if (state_ == nullptr || state_->has_ended) {
      state_ = std::make_shared<state>();
    }
    return *this;
  }
};

#else

class view_life {
public:
  void check() const noexcept {
  }
  void end() const noexcept {
  }
};

class memory_life : public view_life {
public:
  [[nodiscard]] const std::uint8_t *guard(const std::uint8_t *data, std::size_t) const noexcept {
    return data;
  }
  [[nodiscard]] const view_life &unguarded() const noexcept {
    return *this;
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
  text() noexcept = default;
  template <class S>
  requires(!std::same_as<S, text> && std::convertible_to<const S &, std::string_view>)
      text(const S &string)
  noexcept : text(std::string_view(string), {}) {
  }
  text(std::nullptr_t) = delete;
  text(std::string_view string, const detail::view_life &life) noexcept
      : data_(string.data()), size_(string.size()), life_(life) {
  }

  [[nodiscard]] std::string_view view() const noexcept {
    life_.check();
    return {data_, size_};
  }
  operator std::string_view() const noexcept {
    return view();
  }
  /// A copy.
  [[nodiscard]] std::string str() const {
    return std::string(view());
  }
  [[nodiscard]] const char *data() const noexcept {
    return view().data();
  }
  /// In bytes.
  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }
  [[nodiscard]] bool empty() const noexcept {
    return size_ == 0;
  }

  template <class S>
  requires std::convertible_to<const S &, std::string_view>
  friend bool operator==(const text &left, const S &right) noexcept {
    return left.view() == std::string_view(right);
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

namespace detail {

/// Iterates over a list or a batch. A list `MayBeNative`: an array of `T`, if `base` is NULL.
template <class T, bool MayBeNative> class element_iterator {
public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  /// What `codec<T>::get` returns: a reference if `T` has the same layout in messages.
  using element = decltype(codec<T>::get(std::declval<const source &>(),
                                         static_cast<const std::uint8_t *>(nullptr)));

  element_iterator() noexcept = default;
  element_iterator(const std::uint8_t *base, const void *at, std::size_t stride, std::size_t left,
                   const view_life &life) noexcept
      : left_(left), at_(static_cast<const std::uint8_t *>(at)), base_(base), stride_(stride),
        life_(life) {
  }
  element operator*() const {
    life_.check();
    if constexpr (MayBeNative && !codec<T>::is_direct) {
      if (base_ == nullptr) {
        return *reinterpret_cast<const T *>(at_);
      }
    }
    return codec<T>::get(source{base_, nullptr, nullptr, life_}, at_);
  }
  element_iterator &operator++() noexcept {
    at_ += stride_;
    --left_;
    return *this;
  }
  element_iterator operator++(int) noexcept {
    element_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const element_iterator &left, const element_iterator &right) noexcept {
    return left.left_ == right.left_;
  }

private:
  std::size_t left_ = 0; // an element may have no bytes, so that pointers do not tell
  const std::uint8_t *at_ = nullptr;
  const std::uint8_t *base_ = nullptr; // of the message
  std::size_t stride_ = 0;
  [[no_unique_address]] view_life life_;
};

} // namespace detail

/// A list that belongs to somebody else. As an argument, it views an array of `T`. In a result or a
/// batch, it views the message, and decodes an element where it is accessed.
template <class T> class list {
public:
  using iterator = detail::element_iterator<T, true>;

  list() noexcept = default;
  template <class R>
  requires(!std::same_as<std::remove_cvref_t<R>, list> && viewable<R, T>) list(R &&range)
  noexcept : items_(std::ranges::data(range)), count_(std::ranges::size(range)) {
  }
  /// A list in a message that begins at `base`.
  list(const std::uint8_t *base, const std::uint8_t *items, std::size_t count,
       const detail::view_life &life) noexcept
      : base_(base), items_(items), count_(count), life_(life) {
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return count_;
  }
  [[nodiscard]] bool empty() const noexcept {
    return count_ == 0;
  }
  /// A reference if `T` has the same layout in messages, otherwise a value. `index` must be less
  /// than `size()`: every other index ends the program.
  decltype(auto) operator[](std::size_t index) const {
    if (index >= count_) [[unlikely]] {
      detail::misuse("an index is not less than the size of its list");
    }
    return *iterator(base_, static_cast<const std::uint8_t *>(items_) + index * stride(), 0, 1,
                     life_);
  }
  /// All elements. Only for elements that have the same layout in messages.
  [[nodiscard]] std::span<const T> span() const noexcept requires(codec<T>::is_direct) {
    life_.check();
    return {static_cast<const T *>(items_), count_};
  }
  operator std::span<const T>() const noexcept requires(codec<T>::is_direct) {
    return span();
  }
  [[nodiscard]] const T *data() const noexcept requires(codec<T>::is_direct) {
    return span().data();
  }
  [[nodiscard]] iterator begin() const noexcept {
    return {base_, items_, stride(), count_, life_};
  }
  [[nodiscard]] iterator end() const noexcept {
    return {};
  }
  friend bool operator==(const list &left, const list &right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
  }

private:
  [[nodiscard]] std::size_t stride() const noexcept {
    return base_ != nullptr ? codec<T>::size : sizeof(T);
  }

  const std::uint8_t *base_ = nullptr; // of the message; NULL: the elements are `T`s
  const void *items_ = nullptr;
  std::size_t count_ = 0;
  [[no_unique_address]] detail::view_life life_;
};

/// A `list<u8>`.
using bytes = list<std::uint8_t>;

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
