/// How C++ types are laid out in messages: writing, checking and reading them.
///
/// `codec<T>` has these members. `thalweg gen` writes one for each named type of a package.
///
///   size, align     in a message, in bytes
///   is_direct       `T` has the same layout in memory, so that `get` returns a reference
///   is_value        a number, bool, char, enum or flags: a result of it owns no memory
///   is_trivial      every bit pattern is a value, so that there is nothing to check
///   handles(value)  the number of handles in it
///   put             writes it to offset `at`, which was reserved
///   check           checks the value at `at`, as the functions tw_check_.. do
///   get             reads it after it was checked
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "error.hpp"
#include "expected.hpp"
#include "thalweg_client.h"
#include "view.hpp"

/// The operators of an enum of flags. The argument is a type, which cannot be in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define THALWEG_FLAGS(type)                                                                        \
  constexpr type operator|(type left, type right) noexcept {                                       \
    return static_cast<type>(static_cast<std::uint32_t>(left) |                                    \
                             static_cast<std::uint32_t>(right));                                   \
  }                                                                                                \
  constexpr type operator&(type left, type right) noexcept {                                       \
    return static_cast<type>(static_cast<std::uint32_t>(left) &                                    \
                             static_cast<std::uint32_t>(right));                                   \
  }
// NOLINTEND(bugprone-macro-parentheses)

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {
namespace detail {

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t align) noexcept {
  return (value + align - 1) / align * align;
}

/// The C function that checks a `T`; NULL if there is nothing to check.
template <class T> constexpr tw_check check_function() noexcept {
  if constexpr (codec<T>::is_trivial) {
    return nullptr;
  } else {
    return [](tw_checker *checker, const void *place) {
      return codec<T>::check(checker, static_cast<const std::uint8_t *>(place));
    };
  }
}

/// A type whose values in messages have a layout of their own.
struct composite_codec {
  static constexpr bool is_direct = false;
  static constexpr bool is_value = false;
  static constexpr bool is_trivial = false;
  template <class T> static constexpr std::uint32_t handles(const T &) noexcept {
    return 0;
  }
};

/// A type that is copied as it is.
template <class T> struct number_codec {
  static constexpr std::uint32_t size = sizeof(T);
  static constexpr std::uint32_t align = alignof(T);
  static constexpr bool is_direct = true;
  static constexpr bool is_value = true;
  static constexpr bool is_trivial = true;
  static constexpr std::uint32_t handles(const T &) noexcept {
    return 0;
  }
  static void put(tw_writer *writer, std::uint32_t at, const T &value) noexcept {
    tw_put(writer, at, &value, sizeof(value));
  }
  static bool check(tw_checker *, const std::uint8_t *) noexcept {
    return true;
  }
  static const T &get(const source &, const std::uint8_t *at) noexcept {
    return *reinterpret_cast<const T *>(at);
  }
};

/// An enum with the cases 0 .. Count - 1.
template <class T, std::uint64_t Count> struct enum_codec : number_codec<T> {
  using number = std::underlying_type_t<T>;
  static constexpr bool is_trivial = Count > static_cast<std::uint64_t>(static_cast<number>(-1));
  static bool check(tw_checker *, const std::uint8_t *at) noexcept {
    number value;
    std::memcpy(&value, at, sizeof(value));
    return std::uint64_t{value} < Count;
  }
};

/// Flags: an enum whose values are combinations of the bits in `Mask`.
template <class T, std::uint64_t Mask> struct flags_codec : number_codec<T> {
  using number = std::underlying_type_t<T>;
  static constexpr bool is_trivial = static_cast<number>(Mask) == static_cast<number>(-1);
  static bool check(tw_checker *, const std::uint8_t *at) noexcept {
    number value;
    std::memcpy(&value, at, sizeof(value));
    return (value & static_cast<number>(~static_cast<number>(Mask))) == 0;
  }
};

/// The member of a record at this offset in messages.
template <auto Member, std::uint32_t Offset> struct field;
template <class T, class M, M T::*Member, std::uint32_t Offset> struct field<Member, Offset> {
  using type = M;
  static constexpr bool is_member = true;
  static constexpr std::uint32_t offset = Offset;
  static const M &of(const T &value) noexcept {
    return value.*Member;
  }
};

/// A record: a struct with these fields in this order.
template <class T, std::uint32_t Size, std::uint32_t Align, class... Fields> struct record_codec {
  static constexpr std::uint32_t size = Size;
  static constexpr std::uint32_t align = Align;
  static constexpr bool is_direct =
      ((Fields::is_member && codec<typename Fields::type>::is_direct) && ...);
  static constexpr bool is_value = false;
  static constexpr bool is_trivial = (codec<typename Fields::type>::is_trivial && ...);
  static std::uint32_t handles(const T &value) noexcept {
    return (0u + ... + codec<typename Fields::type>::handles(Fields::of(value)));
  }
  static void put(tw_writer *writer, std::uint32_t at, const T &value) {
    (codec<typename Fields::type>::put(writer, at + Fields::offset, Fields::of(value)), ...);
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) {
    return (codec<typename Fields::type>::check(checker, at + Fields::offset) && ...);
  }
  static std::conditional_t<is_direct, const T &, T> get(const source &from,
                                                         const std::uint8_t *at) {
    if constexpr (is_direct) {
      static_assert(sizeof(T) == Size && alignof(T) == Align);
      return *reinterpret_cast<const T *>(at);
    } else {
      return T{codec<typename Fields::type>::get(from, at + Fields::offset)...};
    }
  }
};

/// A case without a payload has no member `value`.
template <class Case>
concept has_payload = requires(Case value) {
  value.value;
};

template <class Case> struct payload_of { using type = none; };
template <has_payload Case> struct payload_of<Case> { using type = decltype(Case::value); };

/// A variant: a struct whose member `value` is a `std::variant` of these cases.
template <class T, std::uint32_t TagSize, std::uint32_t PayloadOffset, std::uint32_t Size,
          std::uint32_t Align, class... Cases>
struct variant_codec : composite_codec {
  static constexpr std::uint32_t size = Size;
  static constexpr std::uint32_t align = Align;

  static std::uint32_t handles(const T &value) noexcept {
    return std::visit(
        []<class Case>([[maybe_unused]] const Case &one) -> std::uint32_t {
          if constexpr (has_payload<Case>) {
            return codec<typename payload_of<Case>::type>::handles(one.value);
          } else {
            return 0;
          }
        },
        value.value);
  }
  static void put(tw_writer *writer, std::uint32_t at, const T &value) {
    const auto tag = static_cast<std::uint32_t>(value.value.index());
    tw_put(writer, at, &tag, TagSize); // little-endian, as thalweg_message.h requires
    std::visit(
        [=]<class Case>([[maybe_unused]] const Case &one) {
          if constexpr (has_payload<Case>) {
            codec<typename payload_of<Case>::type>::put(writer, at + PayloadOffset, one.value);
          }
        },
        value.value);
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) {
    const std::uint32_t tag = tag_at(at);
    std::uint32_t index = 0;
    bool is_valid = false;
    static_cast<void>(
        ((tag == index++ &&
          (is_valid = codec<typename payload_of<Cases>::type>::check(checker, at + PayloadOffset),
           true)) ||
         ...));
    return is_valid;
  }
  static T get(const source &from, const std::uint8_t *at) {
    return get_case<0, Cases...>(from, tag_at(at), at + PayloadOffset);
  }

private:
  static std::uint32_t tag_at(const std::uint8_t *at) noexcept {
    std::uint32_t tag = 0;
    std::memcpy(&tag, at, TagSize);
    return tag;
  }
  template <std::uint32_t Index, class Case, class... Rest>
  static T get_case(const source &from, std::uint32_t tag, const std::uint8_t *at) {
    if constexpr (sizeof...(Rest) > 0) {
      if (tag != Index) {
        return get_case<Index + 1, Rest...>(from, tag, at);
      }
    }
    if (tag != Index) [[unlikely]] {
      misuse("the library sent a variant with an unknown case");
    }
    if constexpr (has_payload<Case>) {
      return T{Case{codec<typename payload_of<Case>::type>::get(from, at)}};
    } else {
      return T{Case{}};
    }
  }
};

inline tw_slice slice_at(const std::uint8_t *at) noexcept {
  return *reinterpret_cast<const tw_slice *>(at);
}

} // namespace detail

template <class T>
requires std::is_arithmetic_v<T>
struct codec<T> : detail::number_codec<T> {
};

template <> struct codec<bool> : detail::number_codec<bool> {
  static constexpr bool is_trivial = false;
  static bool check(tw_checker *checker, const std::uint8_t *at) noexcept {
    return tw_check_bool(checker, at);
  }
};

/// `char` in WIT: a Unicode scalar value.
template <> struct codec<char32_t> : detail::number_codec<char32_t> {
  static constexpr bool is_trivial = false;
  static bool check(tw_checker *checker, const std::uint8_t *at) noexcept {
    return tw_check_char(checker, at);
  }
};

template <> struct codec<none> : detail::composite_codec {
  static constexpr std::uint32_t size = 0;
  static constexpr std::uint32_t align = 1;
  static constexpr bool is_trivial = true;
  static void put(tw_writer *, std::uint32_t, none) noexcept {
  }
  static bool check(tw_checker *, const std::uint8_t *) noexcept {
    return true;
  }
  static none get(const detail::source &, const std::uint8_t *) noexcept {
    return {};
  }
};

namespace detail {
/// A string, list or `list<u8>`: a slice of the message.
struct slice_codec : composite_codec {
  static constexpr std::uint32_t size = sizeof(tw_slice);
  static constexpr std::uint32_t align = alignof(tw_slice);
};
} // namespace detail

template <> struct codec<text> : detail::slice_codec {
  static void put(tw_writer *writer, std::uint32_t at, const text &value) noexcept {
    tw_put_text(writer, at, tw_text{value.data(), value.size()});
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) noexcept {
    return tw_check_text(checker, at);
  }
  static text get(const detail::source &from, const std::uint8_t *at) noexcept {
    const tw_text view = tw_text_view(from.base, detail::slice_at(at));
    return {std::string_view(view.data, view.size), from.life};
  }
};

namespace detail {

/// A list with elements of type `T`.
template <class T> struct list_codec : slice_codec {
  template <class List> static void put(tw_writer *writer, std::uint32_t at, const List &items) {
    std::uint32_t place =
        tw_put_list(writer, at, &items, items.size(), codec<T>::size, codec<T>::align);
    for (std::size_t index = 0; index < items.size() && writer->status == TW_OK; ++index) {
      codec<T>::put(writer, place, items[index]);
      place += codec<T>::size;
    }
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) {
    const tw_slice slice = slice_at(at);
    const auto *item = static_cast<const std::uint8_t *>(
        tw_check_list(checker, slice, codec<T>::size, codec<T>::align));
    if constexpr (!codec<T>::is_trivial) {
      for (std::uint32_t left = slice.length; item != nullptr && left > 0; --left) {
        item = codec<T>::check(checker, item) ? item + codec<T>::size : nullptr;
      }
    }
    return item != nullptr;
  }
};

/// The number of handles in the elements of an array or vector.
template <class T, class Items> std::uint32_t handles_of(const Items &items) noexcept {
  std::uint32_t count = 0;
  for (const T &item : items) {
    count += codec<T>::handles(item);
  }
  return count;
}

} // namespace detail

template <class T> struct codec<list<T>> : detail::list_codec<T> {
  static void put(tw_writer *writer, std::uint32_t at, const list<T> &value) {
    if constexpr (codec<T>::is_direct && codec<T>::is_value) {
      const auto items = value.span();
      tw_put_items(writer, at, items.data(), items.size(), codec<T>::size, codec<T>::size);
    } else {
      detail::list_codec<T>::put(writer, at, value);
    }
  }
  static list<T> get(const detail::source &from, const std::uint8_t *at) noexcept {
    const tw_slice slice = detail::slice_at(at);
    return {from.base, from.base + slice.offset, slice.length, from.life};
  }
};

/// A list whose elements contain handles. Each handle has one owner, so that the list is no view.
template <class T> struct codec<std::vector<T>> : detail::list_codec<T> {
  static std::uint32_t handles(const std::vector<T> &value) noexcept {
    return detail::handles_of<T>(value);
  }
  static std::vector<T> get(const detail::source &from, const std::uint8_t *at) {
    const tw_slice slice = detail::slice_at(at);
    std::vector<T> elements;
    elements.reserve(slice.length);
    for (std::uint32_t index = 0; index < slice.length; ++index) {
      elements.push_back(
          codec<T>::get(from, from.base + slice.offset + std::size_t{index} * codec<T>::size));
    }
    return elements;
  }
};

template <class T> struct codec<std::optional<T>> : detail::composite_codec {
  static constexpr std::uint32_t align = codec<T>::align;
  static constexpr std::uint32_t size = detail::round_up(align + codec<T>::size, align);
  static std::uint32_t handles(const std::optional<T> &value) noexcept {
    return value ? codec<T>::handles(*value) : 0;
  }
  static void put(tw_writer *writer, std::uint32_t at, const std::optional<T> &value) {
    if (value) {
      const bool some = true;
      tw_put(writer, at, &some, 1);
      codec<T>::put(writer, at + align, *value);
    }
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) {
    return *at == 0 || (*at == 1 && codec<T>::check(checker, at + align));
  }
  static std::optional<T> get(const detail::source &from, const std::uint8_t *at) {
    if (*at == 0) {
      return std::nullopt;
    }
    return std::optional<T>(std::in_place, codec<T>::get(from, at + align));
  }
};

/// `result<T, E>` inside a value. A side without a payload is `none`.
template <class T, class E> struct codec<expected<T, E>> : detail::composite_codec {
  static constexpr std::uint32_t align = std::max(codec<T>::align, codec<E>::align);
  static constexpr std::uint32_t size =
      detail::round_up(align + std::max(codec<T>::size, codec<E>::size), align);
  static std::uint32_t handles(const expected<T, E> &value) noexcept {
    return value ? codec<T>::handles(*value) : codec<E>::handles(value.error());
  }
  static void put(tw_writer *writer, std::uint32_t at, const expected<T, E> &value) {
    const std::uint8_t tag = value ? 0 : 1;
    tw_put(writer, at, &tag, 1);
    if (value) {
      codec<T>::put(writer, at + align, *value);
    } else {
      codec<E>::put(writer, at + align, value.error());
    }
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) {
    return *at == 0 ? codec<T>::check(checker, at + align)
                    : *at == 1 && codec<E>::check(checker, at + align);
  }
  static expected<T, E> get(const detail::source &from, const std::uint8_t *at) {
    if (*at == 0) {
      return expected<T, E>(codec<T>::get(from, at + align));
    }
    return expected<T, E>(unexpected<E>(codec<E>::get(from, at + align)));
  }
};

namespace detail {

/// The layout of a tuple of these types.
template <class... Ts> struct tuple_layout {
  static constexpr std::uint32_t align = std::max({std::uint32_t{1}, codec<Ts>::align...});
  std::array<std::uint32_t, sizeof...(Ts)> offsets{};
  std::uint32_t size = 0;

  constexpr tuple_layout() noexcept {
    std::size_t index = 0;
    ((offsets[index] = round_up(size, codec<Ts>::align), size = offsets[index++] + codec<Ts>::size),
     ...);
    size = round_up(size, align);
  }
};

/// The standard does not define the layout of a `std::tuple`, so its elements are no members.
template <std::size_t Index, class... Ts> struct tuple_field {
  using type = std::tuple_element_t<Index, std::tuple<Ts...>>;
  static constexpr bool is_member = false;
  static constexpr std::uint32_t offset = tuple_layout<Ts...>().offsets[Index];
  static const type &of(const std::tuple<Ts...> &value) noexcept {
    return std::get<Index>(value);
  }
};

template <class... Ts, std::size_t... I>
record_codec<std::tuple<Ts...>, tuple_layout<Ts...>().size, tuple_layout<Ts...>::align,
             tuple_field<I, Ts...>...>
    tuple_codec(std::index_sequence<I...>);

} // namespace detail

/// A tuple: a record without names.
template <class... Ts>
struct codec<std::tuple<Ts...>>
    : decltype(detail::tuple_codec<Ts...>(std::index_sequence_for<Ts...>())) {};

/// A list of a fixed length.
template <class T, std::size_t N> struct codec<std::array<T, N>> {
  using array = std::array<T, N>;
  static constexpr std::uint32_t size = N * codec<T>::size;
  static constexpr std::uint32_t align = codec<T>::align;
  static constexpr bool is_direct = codec<T>::is_direct;
  static constexpr bool is_value = false;
  static constexpr bool is_trivial = codec<T>::is_trivial;
  static std::uint32_t handles(const array &value) noexcept {
    return detail::handles_of<T>(value);
  }
  static void put(tw_writer *writer, std::uint32_t at, const array &value) {
    for (const T &element : value) {
      codec<T>::put(writer, at, element);
      at += codec<T>::size;
    }
  }
  static bool check(tw_checker *checker, const std::uint8_t *at) {
    for (std::size_t index = 0; !is_trivial && index < N; ++index) {
      if (!codec<T>::check(checker, at + index * codec<T>::size)) {
        return false;
      }
    }
    return true;
  }
  static std::conditional_t<is_direct, const array &, array> get(const detail::source &from,
                                                                 const std::uint8_t *at) {
    if constexpr (is_direct) {
      return *reinterpret_cast<const array *>(at);
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return array{{codec<T>::get(from, at + I * codec<T>::size)...}};
      }
      (std::make_index_sequence<N>());
    }
  }
};

/// A parameter of a function that the program or a guest serves, at this offset of the root.
template <class T, std::uint32_t Offset> struct parameter {
  using type = T;
  static constexpr std::uint32_t offset = Offset;
};
template <class... Parameters> struct parameters {};

/// A host import of a package: number `Number` of `Package::imports()`.
template <class Package, std::uint32_t Number, std::uint32_t Size, class Parameters, class Ok,
          class Error>
struct host_import {
  using params = Parameters;
  using ok = Ok;
  using error = Error;
  static constexpr std::uint32_t number = Number;
  static constexpr std::uint32_t size = Size;
  static const tw_method *method_entry() noexcept {
    return Package::imports() + Number;
  }
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
