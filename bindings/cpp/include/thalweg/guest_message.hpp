/// The messages of guests: arguments, results, elements of streams and answers of the host. guest.hpp
/// uses this file.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "codec.hpp"
#include "error.hpp"
#include "thalweg_serve.h"
#include "view.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// A result that is a resource: an object of class `T`, which is the package's resource number
/// `Type`.
template <class T, std::uint32_t Type> struct object {};

/// A result that is a stream or a future with elements of type `T`.
template <class T> struct streamed {};

namespace detail {

/// The kinds of results. `given` is the parameter of the functions that answer.
enum class answering { nothing, value, object, stream };
template <class T> struct answer_of {
  static constexpr answering kind = answering::value;
  using given = T;
};
template <> struct answer_of<void> {
  static constexpr answering kind = answering::nothing;
  using given = none;
};
template <class T, std::uint32_t Type> struct answer_of<object<T, Type>> {
  static constexpr answering kind = answering::object;
  static constexpr std::uint32_t type = Type;
  using given = std::shared_ptr<T>;
};
template <class T> struct answer_of<streamed<T>> {
  static constexpr answering kind = answering::stream;
  using given = T;
};

/// Where the arguments of a call are read, and the objects of their resources found.
struct argument_source : source {
  const tw_incoming &call;
  bool &is_valid; // false: a resource or stream cannot be used, and the call has ended

  /// The object of the resource at `at`; NULL if it cannot be used. `is_own`: the guest owns it again.
  [[nodiscard]] void *object(const std::uint8_t *at, std::uint32_t type, bool is_own) const {
    void *found = nullptr;
    is_valid = is_valid && tw_incoming_object(&call, at, type, is_own, &found);
    return found;
  }
};

/// A message that a guest writes during `call`, to whose state the resources in it belong.
struct call_message : tw_writer {
  explicit call_message(const tw_incoming &of) noexcept : call(of) {
  }
  tw_incoming call;
};

/// A resource in a value: a share of an object of class `T`, which is the package's resource number
/// `Type`. It is read from an `argument_source`, and written to a `call_message`.
template <class T, std::uint32_t Type> struct object_codec : composite_codec {
  using share = std::shared_ptr<T>;
  static constexpr std::uint32_t size = sizeof(tw_handle_ref);
  static constexpr std::uint32_t align = alignof(tw_handle_ref);
  static std::uint32_t handles(const share &) noexcept {
    return 1;
  }
  static void put(tw_writer *writer, std::uint32_t at, const share &object) {
    if (!tw_writer_require(writer, object.get()) || writer->status != TW_OK) {
      return;
    }
    auto given = std::make_unique<share>(object);
    const tw_incoming &call = static_cast<call_message *>(writer)->call;
    tw_resource made;
    if (tw_incoming_new_resource(&call, Type, given.get(), &made, nullptr) == TW_OK) {
      static_cast<void>(given.release()); // `drop` deletes it
    }
    // Otherwise the call has ended, and with the handle 0 the answer closes those before it.
    tw_put_handle(writer, at, made.handle);
  }
  static share get(const source &from, const std::uint8_t *at) {
    const auto &arguments = static_cast<const argument_source &>(from);
    const std::unique_ptr<share> given(static_cast<share *>(arguments.object(at, Type, true)));
    return given ? std::move(*given) : nullptr;
  }
};

/// Writes a value of type `T` as a message; `void` and `none` have none.
template <class T, class Value>
void write_message(call_message *message, std::uint64_t hash, const Value &value) {
  if constexpr (std::is_void_v<T> || std::is_same_v<T, none>) {
    tw_writer_begin(message, hash, 0, 0);
  } else {
    const std::uint32_t root =
        tw_writer_begin(message, hash, codec<T>::handles(value), codec<T>::size);
    codec<T>::put(message, root, value);
  }
}

/// The value of a message that the guest has received. `life` becomes that of its views.
template <class T> T read_message(const tw_guest_message &message, memory_life &life) {
  const std::uint8_t *const base = life.guard(message.data, message.size);
  const auto *root = static_cast<const std::uint8_t *>(tw_guest_message_root(&message));
  return codec<T>::get(source{base, nullptr, nullptr, life}, base + (root - message.data));
}

} // namespace detail
} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
