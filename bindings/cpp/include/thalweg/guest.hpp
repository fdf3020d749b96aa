/// Services in C++: shared libraries that programs open as "thread:PATH". The header that
/// `thalweg gen --guest cpp` writes for a package uses this file.
///
/// A service is a class that derives from the generated class `service`, and a resource one that
/// derives from the generated class of its name. Each call arrives as an `incoming`, which the
/// function answers, or moves elsewhere and answers later, on any thread. The functions of one
/// service are called one at a time, return soon and never wait. The function of an `async func` is a
/// coroutine, which may wait for whatever resumes it; its arguments, its service and its resource are
/// kept until it ends.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "codec.hpp"
#include "error.hpp"
#include "guest_input.hpp"
#include "guest_message.hpp"
#include "guest_writer.hpp"
#include "task.hpp"
#include "thalweg_serve.h"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// A parameter that is a resource of the caller's.
template <class T, std::uint32_t Type, std::uint32_t Offset> struct borrowed_parameter {};

/// A parameter that is a stream or a future, which a `Reader` reads.
template <class Reader, std::uint32_t Offset> struct stream_parameter {};

/// A method of a package: number `Number` of `Package::methods()`.
template <class Package, std::uint32_t Number, bool IsAsync, class Parameters, class Ok,
          class Error>
struct served_method {
  using params = Parameters;
  using ok = Ok;
  using error = Error;
  static constexpr bool is_async = IsAsync;
  static const tw_method *entry() noexcept {
    return Package::methods() + Number;
  }
};

/// A call that the service answers, once. If it is destroyed without an answer, the call ends as
/// `outcome::guest_lost`. The functions that end it return `outcome::stale` if it had ended before:
/// at its deadline, or cancelled.
template <class Method> class incoming {
  static constexpr detail::answering kind = detail::answer_of<typename Method::ok>::kind;

public:
  /// The result: a value, or the share of an object.
  using given = typename detail::answer_of<typename Method::ok>::given;
  using error = typename detail::answer_of<typename Method::error>::given;

  explicit incoming(const tw_incoming &tw) noexcept : tw_(tw) {
  }
  incoming(incoming &&other) noexcept : tw_(std::exchange(other.tw_, {})) {
  }
  incoming &operator=(incoming &&other) noexcept {
    std::swap(tw_, other.tw_);
    return *this;
  }
  ~incoming() {
    end(outcome::guest_lost, "the guest has dropped the call without an answer");
  }

  /// The number of the call, for `service::cancelled`.
  [[nodiscard]] tw_handle id() const noexcept {
    return tw_.call;
  }
  /// In nanoseconds of CLOCK_MONOTONIC; TW_FOREVER: none.
  [[nodiscard]] std::uint64_t deadline_ns() const noexcept {
    return tw_.deadline_ns;
  }
  /// `outcome::ok`: go on with the call. Otherwise why to stop. A long function calls it from time to
  /// time.
  [[nodiscard]] outcome check() const noexcept {
    return tw_.core == nullptr ? outcome::stale
                               : static_cast<outcome>(tw_incoming_check(&tw_, nullptr));
  }

  /// Ends the call with its result.
  outcome answer(const given &result) requires(kind == detail::answering::value) {
    return finish<given>(TW_OK, Method::entry()->ok, result);
  }
  outcome answer() requires(kind == detail::answering::nothing) {
    return finish<void>(TW_OK, Method::entry()->ok, none{});
  }
  /// The same for a resource. The program has a share of the object until it closes the resource.
  outcome answer(given object) requires(kind == detail::answering::object) {
    if (tw_.core == nullptr) {
      return outcome::stale;
    }
    if (object == nullptr) {
      end(outcome::guest_lost, "the guest answered with a null pointer");
      return outcome::argument;
    }
    auto share = std::make_unique<given>(std::move(object));
    const tw_incoming tw = std::exchange(tw_, {});
    const std::uint32_t code = tw_incoming_answer_object(
        &tw, detail::answer_of<typename Method::ok>::type, share.get(), nullptr);
    if (code == TW_OK) {
      static_cast<void>(share.release()); // `drop` deletes it
    }
    return static_cast<outcome>(code);
  }
  /// The same for a stream or a future, which `writer` then writes.
  outcome answer(record_writer<Method> &writer) requires(kind == detail::answering::stream) {
    if (tw_.core == nullptr) {
      return outcome::stale;
    }
    const tw_incoming tw = std::exchange(tw_, {});
    record_writer<Method> opened;
    const std::uint32_t code = tw_incoming_answer_stream(&tw, &opened.tw_, nullptr);
    if (code != TW_OK) {
      opened.tw_ = {};
    }
    writer = std::move(opened);
    return static_cast<outcome>(code);
  }

  /// Ends the call with the error of its function.
  outcome fail(const error &why) requires(!std::is_void_v<typename Method::error>) {
    return finish<error>(TW_ERROR, Method::entry()->error, why);
  }
  /// Ends the call with another outcome than `ok` and `error`, and a reason. As `outcome::guest_lost`
  /// if a guest cannot cause that outcome.
  outcome end(outcome why, std::string_view reason) noexcept {
    if (tw_.core == nullptr) {
      return outcome::stale;
    }
    const tw_incoming tw = std::exchange(tw_, {});
    const auto fail = [&](outcome code) {
      return static_cast<outcome>(tw.core->fail(tw.call, static_cast<std::uint32_t>(code),
                                                reason.data(), reason.size(), nullptr));
    };
    const outcome ended = fail(why);
    return ended == outcome::argument ? fail(outcome::guest_lost) : ended;
  }
  /// The same with the failure of something that the call needed: a stream, or its host.
  outcome end(const thalweg::error &why) noexcept {
    return end(why.code(), why.message());
  }

private:
  friend class host_of_call;

  template <class T, class Value>
  outcome finish(std::uint32_t code, std::uint64_t hash, const Value &value) {
    if (tw_.core == nullptr) {
      return outcome::stale;
    }
    detail::call_message message(tw_);
    detail::write_message<T>(&message, hash, value);
    const tw_incoming tw = std::exchange(tw_, {});
    return static_cast<outcome>(tw_incoming_answer(&tw, &message, code, nullptr));
  }

  tw_incoming tw_;
};

namespace detail {

/// How an argument is read. If it cannot be used, `is_valid` of the source is false.
template <class Parameter> struct argument_reader;
template <class T, std::uint32_t Offset> struct argument_reader<parameter<T, Offset>> {
  static decltype(auto) get(const argument_source &from, const std::uint8_t *root) {
    return codec<T>::get(from, root + Offset);
  }
};
template <class T, std::uint32_t Type, std::uint32_t Offset>
struct argument_reader<borrowed_parameter<T, Type, Offset>> {
  static std::shared_ptr<T> get(const argument_source &from, const std::uint8_t *root) {
    const void *const share = from.object(root + Offset, Type, false);
    return share != nullptr ? *static_cast<const std::shared_ptr<T> *>(share) : nullptr;
  }
};
template <class Reader, std::uint32_t Offset>
struct argument_reader<stream_parameter<Reader, Offset>> {
  static Reader get(const argument_source &from, const std::uint8_t *root) {
    tw_element_reader opened;
    from.is_valid = from.is_valid && tw_incoming_reader(&from.call, root + Offset, &opened);
    return from.is_valid ? Reader(opened) : Reader();
  }
};
template <class Parameter>
using argument_type =
    decltype(argument_reader<Parameter>::get(std::declval<const argument_source &>(), nullptr));

/// Runs a function; an exception that leaves it ends the call as `outcome::guest_panicked`.
template <class Call, class Run> void run_or_panic([[maybe_unused]] Call &call, Run &&run) {
#if defined(__cpp_exceptions)
  try {
    run();
  } catch (const std::exception &thrown) {
    call.end(outcome::guest_panicked, thrown.what());
  } catch (...) {
    call.end(outcome::guest_panicked, "the guest threw an exception");
  }
#else
  run();
#endif
}

template <class... Ps>
std::optional<std::tuple<argument_type<Ps>...>> arguments_of(parameters<Ps...>,
                                                             const tw_incoming &call) {
  bool is_valid = true;
  [[maybe_unused]] const std::uint8_t *root = nullptr;
  if constexpr (sizeof...(Ps) > 0) {
    root = static_cast<const std::uint8_t *>(tw_incoming_root(&call));
  }
  [[maybe_unused]] const argument_source from{{call.base, nullptr, nullptr, {}}, call, is_valid};
  std::tuple<argument_type<Ps>...> given{argument_reader<Ps>::get(from, root)...};
  return is_valid ? std::optional<std::tuple<argument_type<Ps>...>>(std::move(given))
                  : std::nullopt;
}

/// Runs the coroutine of an `async func` with a copy of its arguments, and keeps its service.
template <class Method, class Service, class Function>
detached serve_later(std::shared_ptr<Service> service, tw_incoming tw, const tw_guest_call *message,
                     Function function) {
  std::vector<std::uint64_t> copy; // aligned as messages are
  incoming<Method> call(tw);
  decltype(arguments_of(typename Method::params(), tw)) given;
  std::optional<task<>> running;
  run_or_panic(call, [&] {
    copy.resize((message->args_size + 7) / 8);
    std::memcpy(copy.data(), message->args, message->args_size);
    tw.base = reinterpret_cast<const std::uint8_t *>(copy.data());
    if (auto read = arguments_of(typename Method::params(), tw)) {
      given.emplace(std::move(*read));
      std::apply([&](auto &...each) { running.emplace(function(*service, call, each...)); },
                 *given);
    }
  });
  if (running) {
    co_await until_done<void>{*running};
    run_or_panic(call, [&] { running->await_resume(); });
  }
}

/// A guest: the functions of `tw_guest_functions` for a class of services.
template <class Service> class guest_library {
  using package = typename Service::package;
  using share = std::shared_ptr<typename package::service>;

public:
  static std::uint32_t serve(std::uint32_t abi, const tw_guest_core *core, std::uint64_t opening,
                             tw_error *error) noexcept {
    std::uint32_t code = tw_guest_core_check(abi, core, error);
    if (code != TW_OK) {
      return code;
    }
    tw_guest_functions functions{};
    functions.size = sizeof(functions);
    functions.open = open;
    functions.call = call;
    functions.cancel = cancel;
    functions.drop = drop;
    functions.close = close;
    functions.unload = unload;
    if constexpr (requires { Service::load(); }) {
      code = or_error(error, [] { Service::load(); });
    }
    if (code == TW_OK) {
      code = core->serve(opening, &package::description(), &functions,
                         const_cast<tw_guest_core *>(core), error);
      if (code != TW_OK) {
        unload(nullptr);
      }
    }
    return code;
  }

private:
  /// Runs a function; an exception that leaves it is the reason to fail.
  template <class Run> static std::uint32_t or_error([[maybe_unused]] tw_error *error, Run &&run) {
#if defined(__cpp_exceptions)
    try {
      run();
    } catch (const std::exception &thrown) {
      return tw_fail(error, TW_GUEST_LOST, "%s", thrown.what());
    } catch (...) {
      return tw_fail(error, TW_GUEST_LOST, "the guest threw an exception");
    }
#else
    run();
#endif
    return TW_OK;
  }
  static share *of(std::uint64_t state) noexcept {
    return std::bit_cast<share *>(static_cast<std::uintptr_t>(state));
  }

  static std::uint32_t open(void *, std::uint64_t *state, tw_error *error) noexcept {
    return or_error(error, [state] {
      *state = reinterpret_cast<std::uintptr_t>(new share(std::make_shared<Service>()));
    });
  }
  static void call(void *core, std::uint64_t state, const tw_guest_call *message) noexcept {
    const tw_incoming tw = tw_incoming_of(static_cast<const tw_guest_core *>(core), message);
    package::call(*of(state), tw, message);
  }
  static void cancel(void *, std::uint64_t state, tw_handle call) noexcept {
    (*of(state))->cancelled(call);
  }
  static void drop(void *, std::uint64_t, std::uint32_t type, std::uint64_t object) noexcept {
    package::drop(type, std::bit_cast<void *>(static_cast<std::uintptr_t>(object)));
  }
  static void close(void *, std::uint64_t state) noexcept {
    delete of(state);
  }
  static void unload(void *) noexcept {
    if constexpr (requires { Service::unload(); }) {
      Service::unload();
    }
  }
};

} // namespace detail

/// Serves a call of `Method` with `function`, which gets the service, the call and the arguments.
template <class Method, class Service, class Function>
void serve_call(const std::shared_ptr<Service> &service, const tw_incoming &tw,
                const tw_guest_call *message, Function function) {
  if constexpr (Method::is_async) {
    detail::serve_later<Method>(service, tw, message, function);
  } else {
    incoming<Method> call(tw);
    detail::run_or_panic(call, [&] {
      auto given = detail::arguments_of(typename Method::params(), tw);
      if (given) {
        std::apply([&](auto &...each) { function(*service, call, each...); }, *given);
      }
    });
  }
}

/// Gives back the program's share of a resource of class `T`.
template <class T> void drop_object(void *share) noexcept {
  delete static_cast<std::shared_ptr<T> *>(share);
}

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg

/// Exports a guest, so that it can be opened as thread:PATH. Once in a library, outside of functions
/// and namespaces. `Service` is the class of its services: each client gets one of its own, by the
/// default constructor. If it has the static functions `load()` and `unload()`, they run when the
/// library was opened and when it is not used any more. An exception of `load` or of the constructor
/// refuses the library or the call. After `unload`, no thread and no coroutine of the library runs.
#define THALWEG_EXPORT_GUEST(Service)                                                              \
  TW_GUEST_SYMBOL std::uint32_t tw_guest(std::uint32_t abi, const tw_guest_core *core,             \
                                         std::uint64_t opening, tw_error *error) {                 \
    return ::thalweg::detail::guest_library<Service>::serve(abi, core, opening, error);            \
  }
