/// Values in the JSON form that conformance/README.md describes. The generated tables specialise
/// `described` for each named type.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "../c/json.h"
#include "conformance.hpp"

/// An object that the scenario refers to by a name.
struct named {
  virtual ~named() = default;
};
template <class T> struct named_value : named {
  explicit named_value(T of) : value(std::move(of)) {
  }
  T value;
};
inline std::map<std::string, std::unique_ptr<named>> bound;

template <class R> R &resource_of(const json_t *json) {
  const auto found = bound.find(json_string_value(json_object_get(json, "resource")));
  auto *const typed =
      found == bound.end() ? nullptr : dynamic_cast<named_value<R> *>(found->second.get());
  if (typed == nullptr) {
    not_a_value(json);
  }
  return typed->value;
}

template <class M, class T> struct member {
  const char *name;
  M T::*place;
};
template <class M, class T> member(const char *, M T::*) -> member<M, T>;

/// The names of the members, cases or labels of a type.
template <class T> struct described;

/// What to do with a value.
enum class mode { read, compare };

// `read_or_compare(mode, value, json)` reads a value from JSON, or compares it with JSON: whether it
// is equal then. The overloads find each other by the namespace of `mode`.

template <class T> T from(const json_t *json) {
  T value{};
  read_or_compare(mode::read, value, json);
  return value;
}
template <class T> bool is(const T &value, const json_t *json) {
  return read_or_compare(mode::compare, const_cast<T &>(value), json);
}
/// `read_or_compare` for a type whose value is known from the JSON.
template <class T> bool leaf(mode how, T &value, T wanted) {
  if (how == mode::read) {
    value = std::move(wanted);
    return true;
  }
  return value == wanted;
}
/// `read_or_compare` for the elements of a container.
template <class Items> bool items_of(mode how, Items &&items, const json_t *json) {
  bool is_equal = std::size(items) == item_count(json);
  for (std::size_t index = 0; is_equal && index < std::size(items); ++index) {
    is_equal = read_or_compare(how, items[index], item_at(json, index));
  }
  return is_equal;
}

template <class T>
requires std::is_arithmetic_v<T>
bool read_or_compare(mode how, T &value, const json_t *json) {
  T wanted = static_cast<T>(json_integer_value(json));
  if constexpr (std::is_same_v<T, bool>) {
    wanted = json_is_true(json);
  } else if (json_is_string(json)) { // too wide for JSON, or the bits of a float
    const auto bits =
        std::is_signed_v<T> && !std::is_floating_point_v<T>
            ? static_cast<unsigned long long>(std::strtoll(json_string_value(json), nullptr, 0))
            : std::strtoull(json_string_value(json), nullptr, 0);
    std::memcpy(&wanted, &bits, sizeof(wanted));
  } else if (static_cast<json_int_t>(wanted) != json_integer_value(json)) {
    not_a_value(json);
  }
  value = how == mode::read ? wanted : value;
  return std::memcmp(&value, &wanted, sizeof(value)) == 0;
}
inline bool read_or_compare(mode how, thalweg::text &value, const json_t *json) {
  tw_text wanted;
  text_from(json, &wanted);
  return leaf<thalweg::text>(how, value, std::string_view(wanted.data, wanted.size));
}
inline bool read_or_compare(mode how, thalweg::bytes &value, const json_t *json) {
  tw_bytes wanted;
  bytes_from(json, &wanted);
  return leaf<thalweg::bytes>(how, value, std::span(wanted.data, wanted.size));
}
inline bool read_or_compare(mode how, char32_t &value, const json_t *json) {
  std::uint32_t wanted = 0;
  char_from(json, &wanted);
  return leaf(how, value, static_cast<char32_t>(wanted));
}
inline bool read_or_compare(mode, thalweg::none &, const json_t *json) {
  return json_is_null(json);
}

template <class T> bool read_or_compare(mode how, thalweg::list<T> &value, const json_t *json) {
  if (how == mode::read) {
    const std::size_t count = item_count(json);
    auto *const items = static_cast<T *>(allocate(count * sizeof(T)));
    std::uninitialized_value_construct_n(items, count);
    value = std::span<const T>(items, count);
    return items_of(how, std::span(items, count), json);
  }
  return items_of(how, std::deque<T>(value.begin(), value.end()), json);
}
template <class T> bool read_or_compare(mode how, std::vector<T> &value, const json_t *json) {
  if (how == mode::read) {
    value.resize(item_count(json));
  }
  return items_of(how, value, json);
}
template <class T, std::size_t N>
bool read_or_compare(mode how, std::array<T, N> &value, const json_t *json) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    std::array<T, N> wanted;
    std::ranges::copy(from<thalweg::bytes>(json).span().template first<N>(), wanted.begin());
    return leaf(how, value, wanted);
  } else {
    return items_of(how, value, json);
  }
}
template <class T> bool read_or_compare(mode how, std::optional<T> &value, const json_t *json) {
  if (how == mode::read && !json_is_null(json)) {
    value.emplace();
  }
  if (!value || json_is_null(json)) {
    return !value && json_is_null(json);
  }
  // A future inside a result is its value.
  const json_t *const some = json_object_get(json, "some");
  return read_or_compare(how, *value, some != nullptr ? some : json);
}
template <class T, class E>
bool read_or_compare(mode how, thalweg::expected<T, E> &value, const json_t *json) {
  const json_t *const ok = json_object_get(json, "ok");
  if (how == mode::read && ok == nullptr) {
    value = thalweg::unexpected(E{});
  }
  if (value.has_value() != (ok != nullptr)) {
    return false;
  }
  return value ? read_or_compare(how, *value, ok)
               : read_or_compare(how, value.error(), json_object_get(json, "error"));
}
template <class... Ts>
bool read_or_compare(mode how, std::tuple<Ts...> &value, const json_t *json) {
  std::size_t index = 0;
  const auto each = [&](auto &item) {
    return read_or_compare(how, item, json_array_get(json, index++));
  };
  return std::apply([&](auto &...items) { return (each(items) && ...); }, value);
}

/// Resources: JSON refers to those of arguments by a name, and cannot describe those in results.
template <std::derived_from<thalweg::resource> R>
bool read_or_compare(mode how, R &value, const json_t *json) {
  if (how == mode::read) {
    value = std::move(resource_of<R>(json));
  }
  return static_cast<bool>(value);
}
template <class T, class E>
bool read_or_compare(mode, thalweg::stream<T, E> &value, const json_t *json) {
  std::size_t count = 0;
  bool is_equal = true;
  for (const auto batch : value) {
    for (std::size_t index = 0; index < batch.size(); ++index) {
      is_equal = is_equal && is<T>(batch[index], json_array_get(json, count++));
    }
  }
  return is_equal && count == json_array_size(json) && value.status().has_value();
}
template <class T, class E>
bool read_or_compare(mode, thalweg::future<T, E> &value, const json_t *json) {
  const auto result = value.wait().get();
  return result && is(*result, json);
}

// Named types, which the tables describe.

template <class T>
requires requires {
  described<T>::members;
}
bool read_or_compare(mode how, T &value, const json_t *json) {
  const auto each = [&](const auto &one) {
    return read_or_compare(how, value.*one.place, json_object_get(json, one.name));
  };
  return std::apply([&](const auto &...all) { return (each(all) && ...); }, described<T>::members);
}
template <std::size_t Index = 0, class Variant> void emplace(Variant &into, std::size_t index) {
  if constexpr (Index < std::variant_size_v<Variant>) {
    if (index == Index) {
      into.template emplace<Index>();
    } else {
      emplace<Index + 1>(into, index);
    }
  }
}
template <class T>
requires requires {
  described<T>::cases;
}
bool read_or_compare(mode how, T &value, const json_t *json) {
  const auto &names = described<T>::cases;
  const std::size_t index = label_of(json_object_get(json, "case"), names, std::size(names));
  if (how == mode::read) {
    emplace(value.value, index);
  }
  const auto payload = [&](auto &one) {
    if constexpr (requires { one.value; }) {
      return read_or_compare(how, one.value, json_object_get(json, "value"));
    } else {
      return true;
    }
  };
  return value.value.index() == index && std::visit(payload, value.value);
}
template <class T>
requires requires {
  described<T>::labels;
}
bool read_or_compare(mode how, T &value, const json_t *json) {
  const auto &labels = described<T>::labels;
  const std::uint32_t wanted = json_is_array(json) ? flags_of(json, labels, std::size(labels))
                                                   : label_of(json, labels, std::size(labels));
  return leaf(how, value, static_cast<T>(wanted));
}

/// Sends all elements of a stream that is a parameter, and closes it; or sets a future, or not.
template <class T>
thalweg::stream_writer<T> written(thalweg::result<thalweg::stream_writer<T>> opened,
                                  const json_t *json) {
  if (!opened) {
    return {{}, {}, 0};
  }
  if (json_is_array(json) || json_object_get(json, "repeat") != nullptr) {
    for (std::size_t index = 0; index < item_count(json); ++index) {
      static_cast<void>(opened->send(from<T>(item_at(json, index))).get());
    }
    static_cast<void>(opened->finish());
  } else if (const json_t *const some = json_object_get(json, "some")) {
    static_cast<void>(opened->send(from<T>(some)).get());
  }
  return std::move(*opened);
}
