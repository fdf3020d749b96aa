/// Host imports: the functions that a service calls on its host. Generated packages use this file.
///
/// A host is an object with a function for each import. A function returns the value, an `expected`
/// if the import has an error type, or a `task` of either: a coroutine, which may use the client
/// whose service waits. An exception that leaves it fails the import as `outcome::guest_panicked`.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>

#include "client.hpp"
#include "codec.hpp"
#include "task.hpp"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

namespace detail {

template <class T> inline constexpr bool is_task = false;
template <class T> inline constexpr bool is_task<task<T>> = true;
template <class T> inline constexpr bool is_expected = false;
template <class T, class E> inline constexpr bool is_expected<expected<T, E>> = true;

/// Answers a host call with a value of type `T`; `void` and `none` have none.
template <class T, class Value>
void answer_with(const tw_host_call &call, std::uint32_t code, std::uint64_t hash,
                 const Value &value) {
  tw_writer writer;
  if constexpr (std::is_void_v<T> || std::is_same_v<T, none>) {
    tw_writer_begin(&writer, hash, 0, 0);
  } else {
    const std::uint32_t root = tw_writer_begin(&writer, hash, 0, codec<T>::size);
    codec<T>::put(&writer, root, T(value));
  }
  tw_host_call_answer(&call, &writer, code, nullptr);
}

/// Answers a host call of the import `I` with what the host's function returned.
template <class I, class Value> void answer(const tw_host_call &call, const Value &value) {
  if constexpr (is_expected<Value>) {
    if (!value.has_value()) {
      answer_with<typename I::error>(call, TW_ERROR, I::method_entry()->error, value.error());
    } else if constexpr (std::is_void_v<typename Value::value_type>) {
      answer_with<void>(call, TW_OK, I::method_entry()->ok, none{});
    } else {
      answer_with<typename I::ok>(call, TW_OK, I::method_entry()->ok, *value);
    }
  } else {
    answer_with<typename I::ok>(call, TW_OK, I::method_entry()->ok, value);
  }
}

/// The same with what `run` returns, or nothing.
template <class I, class Run> void answer_result_of(const tw_host_call &call, Run &&run) {
  if constexpr (std::is_void_v<decltype(run())>) {
    run();
    answer<I>(call, none{});
  } else {
    answer<I>(call, run());
  }
}

/// Runs a function that may throw; an exception fails the host call.
template <class Run> void run_or_fail([[maybe_unused]] const tw_host_call &call, Run &&run) {
#if defined(__cpp_exceptions)
  try {
    run();
  } catch (const std::exception &thrown) {
    tw_host_call_fail(&call, TW_GUEST_PANICKED, thrown.what(), nullptr);
  } catch (...) {
    tw_host_call_fail(&call, TW_GUEST_PANICKED, "the host threw an exception", nullptr);
  }
#else
  run();
#endif
}

/// Waits for a host's coroutine and answers. The arguments stay valid until then.
template <class I, class T>
detached answer_later(tw_host_call call, tw_completion arguments, task<T> running) {
  co_await until_done<T>{running};
  run_or_fail(call, [&] { answer_result_of<I>(call, [&] { return running.await_resume(); }); });
  call.table->release(&arguments);
}

template <class I, class Function, class... Ps>
void serve_with(parameters<Ps...>, const tw_host_call *call, const tw_completion *completion,
                Function &&function) {
  tw_checker checker;
  const auto *root = static_cast<const std::uint8_t *>(tw_check_root(
      &checker, completion->data, completion->data_size, I::method_entry()->params, I::size));
  if (root == nullptr || !(codec<typename Ps::type>::check(&checker, root + Ps::offset) && ...)) {
    tw_host_call_fail(call, TW_ARGUMENT, "the library's message is malformed", nullptr);
    return;
  }
  [[maybe_unused]] const source from{completion->data, nullptr, nullptr, {}};
  const auto invoke = [&]() -> decltype(auto) {
    return function(codec<typename Ps::type>::get(from, root + Ps::offset)...);
  };
  run_or_fail(*call, [&] {
    if constexpr (is_task<decltype(invoke())>) {
      auto running = invoke();
      tw_completion arguments = *completion; // released when the coroutine has ended
      std::memset(const_cast<tw_completion *>(completion), 0, sizeof(*completion));
      answer_later<I>(*call, arguments, std::move(running));
    } else {
      answer_result_of<I>(*call, invoke);
    }
  });
}

} // namespace detail

/// Serves a host call of the import `I` with `function`.
template <class I, class Function>
void serve(const tw_host_call *call, const tw_completion *completion, Function &&function) {
  detail::serve_with<I>(typename I::params(), call, completion, std::forward<Function>(function));
}

/// The host of a client.
template <class Host> Host &host_of(tw_host *tw) noexcept {
  return *static_cast<Host *>(reinterpret_cast<detail::host_binding *>(tw)->object);
}

namespace detail {
/// Sets the host of a client.
inline result<void> set_host(const session_ref &owner, void *object,
                             void (*serve)(tw_host *, const tw_host_call *,
                                           const tw_completion *)) {
  tw_error error;
  if (owner->tw.instance == 0) {
    return unexpected(typed_error<void>(thalweg::error(outcome::closed, "the client is closed")));
  }
  owner->host.tw.serve = serve;
  owner->host.object = object;
  return as_result(tw_client_set_host(&owner->tw, &owner->host.tw, &error), error);
}
} // namespace detail

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
