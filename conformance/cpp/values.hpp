/// Values in the JSON form that conformance/README.md describes. The generated tables specialise
/// `described` for each named type.
#ifndef VALUES_HPP
#define VALUES_HPP

#include <cstring>
#include <deque>
#include <jansson.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "conformance.hpp"

/// The call cannot be made: its types do not allow it.
struct refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Memory that views in arguments point to, until the scenario ends.
inline std::deque<std::shared_ptr<void>> arena;

template <class T> T *allocate(std::size_t count) {
  auto memory = std::shared_ptr<T[]>(new T[count]{});
  T *const first = memory.get();
  arena.push_back(std::move(memory));
  return first;
}

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
    throw refused("another resource");
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

template <class T> struct json_codec;
template <class T> T from(const json_t *json) {
  return json_codec<T>::from(json);
}
template <class T> bool is(T &value, const json_t *json) {
  return json_codec<std::remove_const_t<T>>::is(const_cast<std::remove_const_t<T> &>(value), json);
}

// ---- Numbers, text and bytes ----

template <class T>
requires std::is_arithmetic_v<T>
struct json_codec<T> {
  static T from(const json_t *json) {
    if constexpr (std::is_same_v<T, bool>) {
      return json_is_true(json);
    } else if (json_is_string(json)) { // too wide for JSON, or the bits of a float
      const unsigned long long bits =
          std::is_signed_v<T> && !std::is_floating_point_v<T>
              ? static_cast<unsigned long long>(std::strtoll(json_string_value(json), nullptr, 0))
              : std::strtoull(json_string_value(json), nullptr, 0);
      T value;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    const auto value = static_cast<T>(json_integer_value(json));
    if (static_cast<json_int_t>(value) != json_integer_value(json)) {
      throw refused("a number out of range");
    }
    return value;
  }
  static bool is(const T &value, const json_t *json) {
    const T wanted = from(json);
    return std::memcmp(&value, &wanted, sizeof(value)) == 0;
  }
};

inline std::size_t count_of(const json_t *json) {
  return json_is_object(json)
             ? static_cast<std::size_t>(json_integer_value(json_object_get(json, "count")))
             : json_array_size(json);
}
inline const json_t *item_of(const json_t *json, std::size_t index) {
  return json_is_object(json) ? json_object_get(json, "repeat") : json_array_get(json, index);
}

inline std::string string_of(const json_t *json) {
  const json_t *const piece = json_is_object(json) ? json_object_get(json, "repeat") : json;
  const std::string one(json_string_value(piece), json_string_length(piece));
  std::string all;
  for (std::size_t left = json_is_object(json) ? count_of(json) : 1; left > 0; --left) {
    all += one;
  }
  return all;
}
inline std::string unhex(const json_t *json) {
  const std::string hex = string_of(json);
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

template <> struct json_codec<thalweg::text> {
  static thalweg::text from(const json_t *json) {
    std::string *const kept = allocate<std::string>(1);
    *kept = string_of(json);
    return *kept;
  }
  static bool is(const thalweg::text &value, const json_t *json) {
    return json_is_string(json) || json_is_object(json) ? value == string_of(json) : false;
  }
};
template <> struct json_codec<thalweg::bytes> {
  static thalweg::bytes from(const json_t *json) {
    const std::string bytes = unhex(json);
    auto *const kept = allocate<std::uint8_t>(bytes.size());
    std::memcpy(kept, bytes.data(), bytes.size());
    return {kept, bytes.size()};
  }
  static bool is(const thalweg::bytes &value, const json_t *json) {
    return value == from(json);
  }
};
template <> struct json_codec<char32_t> {
  static char32_t from(const json_t *json) {
    const std::string text = string_of(json);
    const unsigned char masks[] = {0x7f, 0x7f, 0x1f, 0x0f, 0x07};
    char32_t value = static_cast<unsigned char>(text.at(0)) & masks[text.size()];
    for (std::size_t at = 1; at < text.size(); ++at) {
      value = value << 6 | (static_cast<unsigned char>(text[at]) & 0x3f);
    }
    return value;
  }
  static bool is(char32_t value, const json_t *json) {
    return value == from(json);
  }
};
template <> struct json_codec<thalweg::none> {
  static thalweg::none from(const json_t *) {
    return {};
  }
  static bool is(const thalweg::none &, const json_t *json) {
    return json_is_null(json);
  }
};

// ---- Composed types ----

template <class T> struct json_codec<thalweg::list<T>> {
  static thalweg::list<T> from(const json_t *json) {
    T *const items = allocate<T>(count_of(json));
    for (std::size_t index = 0; index < count_of(json); ++index) {
      items[index] = ::from<T>(item_of(json, index));
    }
    return std::span<const T>(items, count_of(json));
  }
  static bool is(const thalweg::list<T> &value, const json_t *json) {
    bool is_equal = value.size() == count_of(json);
    for (std::size_t index = 0; is_equal && index < value.size(); ++index) {
      const T item = value[index];
      is_equal = ::is(item, item_of(json, index));
    }
    return is_equal;
  }
};
template <class T> struct json_codec<std::vector<T>> {
  static std::vector<T> from(const json_t *json) {
    std::vector<T> items;
    for (std::size_t index = 0; index < count_of(json); ++index) {
      items.push_back(::from<T>(item_of(json, index)));
    }
    return items;
  }
  static bool is(std::vector<T> &value, const json_t *json) {
    bool is_equal = value.size() == count_of(json);
    for (std::size_t index = 0; is_equal && index < value.size(); ++index) {
      is_equal = ::is(value[index], item_of(json, index));
    }
    return is_equal;
  }
};
template <class T, std::size_t N> struct json_codec<std::array<T, N>> {
  static std::array<T, N> from(const json_t *json) {
    std::array<T, N> value{};
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      const std::string bytes = unhex(json);
      std::memcpy(value.data(), bytes.data(), bytes.size() < N ? bytes.size() : N);
    } else {
      for (std::size_t index = 0; index < N; ++index) {
        value[index] = ::from<T>(item_of(json, index));
      }
    }
    return value;
  }
  static bool is(const std::array<T, N> &value, const json_t *json) {
    return value == from(json);
  }
};
template <class T> struct json_codec<std::optional<T>> {
  static std::optional<T> from(const json_t *json) {
    if (json_is_null(json)) {
      return std::nullopt;
    }
    return std::optional<T>(std::in_place, ::from<T>(json_object_get(json, "some")));
  }
  static bool is(std::optional<T> &value, const json_t *json) {
    const json_t *const some = json_object_get(json, "some");
    // A future inside a result is its value.
    return value ? !json_is_null(json) && ::is(*value, some != nullptr ? some : json)
                 : json_is_null(json);
  }
};
template <class T, class E> struct json_codec<thalweg::expected<T, E>> {
  static thalweg::expected<T, E> from(const json_t *json) {
    if (const json_t *const ok = json_object_get(json, "ok")) {
      return ::from<T>(ok);
    }
    return thalweg::unexpected<E>(::from<E>(json_object_get(json, "error")));
  }
  static bool is(thalweg::expected<T, E> &value, const json_t *json) {
    const json_t *const side = json_object_get(json, value ? "ok" : "error");
    return side != nullptr && (value ? ::is(*value, side) : ::is(value.error(), side));
  }
};
template <class... Ts> struct json_codec<std::tuple<Ts...>> {
  static std::tuple<Ts...> from(const json_t *json) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<Ts...>{::from<Ts>(json_array_get(json, I))...};
    }
    (std::index_sequence_for<Ts...>());
  }
  static bool is(std::tuple<Ts...> &value, const json_t *json) {
    std::size_t index = 0;
    return std::apply(
        [&](auto &...each) { return (::is(each, json_array_get(json, index++)) && ...); }, value);
  }
};

/// Resources: JSON refers to those of arguments by a name, and cannot describe those in results.
template <std::derived_from<thalweg::resource> R> struct json_codec<R> {
  static R from(const json_t *json) {
    return std::move(resource_of<R>(json));
  }
  static bool is(const R &value, const json_t *) {
    return static_cast<bool>(value);
  }
};
template <class T, class E> struct json_codec<thalweg::stream<T, E>> {
  static bool is(thalweg::stream<T, E> &value, const json_t *json) {
    std::size_t count = 0;
    bool is_equal = true;
    for (const auto batch : value) {
      for (std::size_t index = 0; index < batch.size(); ++index) {
        const T element = batch[index];
        is_equal = is_equal && ::is(element, json_array_get(json, count++));
      }
    }
    return is_equal && count == json_array_size(json) && value.status().has_value();
  }
};
template <class T, class E> struct json_codec<thalweg::future<T, E>> {
  static bool is(thalweg::future<T, E> &value, const json_t *json) {
    auto result = value.wait().get();
    return result && ::is(*result, json);
  }
};

// ---- Named types, which the tables describe ----

template <class T>
concept has_members = requires {
  described<T>::members;
};
template <class T>
concept has_cases = requires {
  described<T>::cases;
};
template <class T>
concept has_labels = requires {
  described<T>::labels;
};

template <has_members T> struct json_codec<T> {
  static T from(const json_t *json) {
    T value{};
    std::apply(
        [&]<class... M>(const member<M, T> &...each) {
          ((value.*each.place = ::from<M>(json_object_get(json, each.name))), ...);
        },
        described<T>::members);
    return value;
  }
  static bool is(T &value, const json_t *json) {
    return std::apply(
        [&](const auto &...each) {
          return (::is(value.*each.place, json_object_get(json, each.name)) && ...);
        },
        described<T>::members);
  }
};
template <has_cases T> struct json_codec<T> {
  using all = decltype(T::value);
  static T from(const json_t *json) {
    return find<0>(json);
  }
  static bool is(T &value, const json_t *json) {
    const char *const name = json_string_value(json_object_get(json, "case"));
    return name != nullptr && std::strcmp(name, described<T>::cases[value.value.index()]) == 0 &&
           std::visit(
               [&](auto &one) {
                 if constexpr (requires { one.value; }) {
                   return ::is(one.value, json_object_get(json, "value"));
                 } else {
                   return true;
                 }
               },
               value.value);
  }

private:
  template <std::size_t Index> static T find(const json_t *json) {
    if constexpr (Index == std::variant_size_v<all>) {
      throw refused("no such case");
    } else {
      using one = std::variant_alternative_t<Index, all>;
      const char *const name = json_string_value(json_object_get(json, "case"));
      if (name == nullptr || std::strcmp(name, described<T>::cases[Index]) != 0) {
        return find<Index + 1>(json);
      }
      if constexpr (requires(one of) { of.value; }) {
        return T{one{::from<decltype(one::value)>(json_object_get(json, "value"))}};
      } else {
        return T{one{}};
      }
    }
  }
};
template <has_labels T> struct json_codec<T> {
  static std::uint32_t label(const json_t *json) {
    std::uint32_t index = 0;
    for (const char *const name : described<T>::labels) {
      if (json_is_string(json) && std::strcmp(name, json_string_value(json)) == 0) {
        return index;
      }
      index++;
    }
    throw refused("no such label");
  }
  static T from(const json_t *json) {
    if (!json_is_array(json)) {
      return static_cast<T>(label(json));
    }
    std::uint32_t bits = 0;
    for (std::size_t index = 0; index < json_array_size(json); ++index) {
      bits |= std::uint32_t{1} << label(json_array_get(json, index));
    }
    return static_cast<T>(bits);
  }
  static bool is(const T &value, const json_t *json) {
    return value == from(json);
  }
};

/// Sends all elements of a stream that is a parameter, and closes it; or sets a future, or not.
template <class T>
thalweg::stream_writer<T> written(thalweg::result<thalweg::stream_writer<T>> opened,
                                  const json_t *json) {
  if (!opened) {
    return {{}, {}, 0};
  }
  if (json_is_array(json) || json_object_get(json, "repeat") != nullptr) {
    for (std::size_t index = 0; index < count_of(json); ++index) {
      static_cast<void>(opened->send(from<T>(item_of(json, index))).get());
    }
    static_cast<void>(opened->finish());
  } else if (const json_t *const some = json_object_get(json, "some")) {
    static_cast<void>(opened->send(from<T>(some)).get());
  }
  return std::move(*opened);
}

#endif
