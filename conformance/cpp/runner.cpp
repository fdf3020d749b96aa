/// The conformance runner in C++: runner LIBRARY SCENARIOS REPORT [coroutines].
/// conformance/README.md describes the steps. With `coroutines`, calls and streams are awaited on a
/// loop over `poll`; otherwise they block.
#include <stdexcept>
#include <thread>

#include "../c/report.h"
#include "conformance_json.hpp"

namespace {

using thalweg::outcome;

bool is_async = false;
const char *library = nullptr;

const char *text_at(const json_t *step, const char *key) {
  return json_string_value(json_object_get(step, key));
}

/// The host of every client: conformance/README.md describes its answers.
struct oracle {
  thalweg::expected<std::string, std::uint64_t> look_up(std::uint64_t key) {
    if (key == 101) {
      throw std::runtime_error("at 101, on purpose");
    }
    if (key % 2 == 0) {
      return "number " + std::to_string(key);
    }
    return thalweg::unexpected(key);
  }
  std::uint64_t tell(const thalweg::list<thalweg::text> &words, std::optional<std::uint32_t> at) {
    std::uint64_t bytes = at.value_or(0);
    for (const thalweg::text &word : words) {
      bytes += word.size();
    }
    return bytes;
  }
  void nod() {
  }
};

oracle book;
std::unique_ptr<conformance::client> client;
std::unique_ptr<conformance::client> other;

void open_client() {
  auto opened = conformance::client::open(library);
  if (!opened || !opened->set_host(book)) {
    fail("no client", library);
    std::exit(1);
  }
  client = std::make_unique<conformance::client>(std::move(*opened));
}

/// Runs a task to its end: on a loop, or at once because nothing suspends.
template <class T> T run(thalweg::task<T> task) {
  thalweg::poll_loop loop;
  for (const auto *const each : {client.get(), other.get()}) {
    if (each != nullptr) {
      loop.add(*each);
    }
  }
  return loop.run(std::move(task));
}

template <class Operation>
auto finish(Operation operation) -> thalweg::task<decltype(operation().get())> {
  if (is_async) {
    co_return co_await operation();
  }
  co_return operation().get();
}

/// Checks how a call or stream ended. Whether the error is the expected one.
template <class E> bool check_end(const thalweg::typed_error<E> &ended, const json_t *step) {
  check_outcome(step, static_cast<std::uint32_t>(ended.code()), TW_OK, ended.message().data());
  const json_t *const error = json_object_get(step, "error");
  if constexpr (!std::is_void_v<E>) {
    if (error != nullptr && ended.code() == outcome::error) {
      return ended.payload() != nullptr && is(*ended.payload(), error);
    }
  }
  return true;
}

/// Reads a stream. Whether it is what a step expects.
template <class T, class E>
thalweg::task<bool> check_stream(thalweg::stream<T, E> &stream, const json_t *wanted) {
  const json_t *const first = json_object_get(wanted, "first");
  const json_t *const last = json_object_get(wanted, "last");
  const std::uint64_t take = number(wanted, "take", UINT64_MAX);
  record_counts counts{};
  bool is_equal = true;
  bool is_last = last == nullptr;
  while (counts.elements < take) {
    const auto most =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(take - counts.elements, 256));
    const auto batch = co_await finish([&] { return stream.next(most); });
    count_lost(&counts, batch.lost_before(), batch.gap_reason());
    if (!batch) {
      break;
    }
    const json_t *const all = json_object_get(wanted, batch.is_control() ? "controls" : "elements");
    std::uint64_t &count = batch.is_control() ? counts.controls : counts.elements;
    for (std::size_t index = 0; index < batch.size(); ++index, ++count) {
      const T element = batch[index];
      const json_t *const same = json_array_get(all, count);
      is_equal = is_equal && (same == nullptr || is(element, same));
      if (!batch.is_control()) {
        is_equal = is_equal && (first == nullptr || count != 0 || is(element, first));
        is_last = last == nullptr || is(element, last);
      }
    }
  }
  is_equal = is_equal && is_last && counts_are(wanted, &counts);
  const auto status = stream.status();
  if (!status && counts.elements < take) {
    co_return check_end(status.error(), wanted) && is_equal;
  }
  check_outcome(wanted, TW_OK, TW_OK, "");
  co_return is_equal;
}

/// A named stream, without its type.
struct named_stream : named {
  virtual thalweg::task<bool> check(const json_t *wanted) = 0;
  virtual std::unique_ptr<named> tee() = 0;
  virtual tw_stats stats() = 0;
};
template <class T, class E> struct bound_stream : named_stream {
  explicit bound_stream(thalweg::stream<T, E> of) : value(std::move(of)) {
  }
  thalweg::task<bool> check(const json_t *wanted) override {
    return check_stream(value, wanted);
  }
  std::unique_ptr<named> tee() override {
    return std::make_unique<bound_stream>(value.tee().value());
  }
  tw_stats stats() override {
    return value.stats().value();
  }
  thalweg::stream<T, E> value;
};

/// Checks the value of a call, and gives it the name that the step wants. Whether it is equal to
/// what the step expects.
template <class T, class E>
thalweg::task<bool> check_value(thalweg::stream<T, E> &value, const json_t *step) {
  const json_t *const wanted = json_object_get(step, "stream");
  const bool is_equal = wanted == nullptr || co_await check_stream(value, wanted);
  if (const char *const name = text_at(step, "bind")) {
    bound[name] = std::make_unique<bound_stream<T, E>>(std::move(value));
  }
  co_return is_equal;
}
template <class T, class E>
thalweg::task<bool> check_value(thalweg::future<T, E> &future, const json_t *step) {
  const json_t *const wanted = json_object_get(step, "stream");
  if (wanted == nullptr) {
    co_return true;
  }
  const auto value = co_await finish([&] { return future.wait(); });
  if (!value) {
    co_return check_end(value.error(), wanted);
  }
  check_outcome(wanted, TW_OK, TW_OK, "");
  const json_t *const elements = json_object_get(wanted, "elements");
  co_return elements == nullptr || is(*value, json_array_get(elements, 0));
}
template <std::derived_from<thalweg::resource> T>
thalweg::task<bool> check_value(T &value, const json_t *step) {
  if (const char *const name = text_at(step, "bind")) {
    bound[name] = std::make_unique<named_value<T>>(std::move(value));
  }
  co_return true;
}
template <class T> thalweg::task<bool> check_value(T &value, const json_t *step) {
  const json_t *const ok = json_object_get(step, "ok");
  co_return ok == nullptr || is(value, ok);
}
template <class T> thalweg::task<bool> check_value(thalweg::reply<T> &value, const json_t *step) {
  return check_value(*value, step);
}

/// Checks the result of a call. Whether its value is what its step expects.
template <class T, class E>
thalweg::task<bool> check(thalweg::result<T, E> result, const json_t *step) {
  if (!result) {
    co_return check_end(result.error(), step);
  }
  check_outcome(step, TW_OK, TW_OK, "");
  if constexpr (!std::is_void_v<T>) {
    co_return co_await check_value(*result, step);
  }
  co_return true;
}

/// Requests a stop after this many progress notices.
struct notice_counter {
  std::stop_source source;
  std::uint64_t left;
  static void count(void *context, std::chrono::nanoseconds) {
    auto *const self = static_cast<notice_counter *>(context);
    if (--self->left == 0) {
      self->source.request_stop();
    }
  }
};

/// Makes the call of a step, with one of the table's functions. Whether its value is as expected.
using method = thalweg::task<bool> (*)(const conformance::client &by, const json_t *step,
                                       const thalweg::call_options &, bool awaits);
template <class Make>
thalweg::task<bool> make_call(const conformance::client &by, const json_t *step,
                              const thalweg::call_options &options, bool awaits) {
  auto call = Make()(by, json_object_get(step, "params"), options);
  const auto encoded = call.encoded();
  if (by && !bytes_are(step, "arguments", encoded.data(), encoded.size())) {
    fail("other arguments than expected", text_at(step, "call"));
  }
  if (awaits) {
    co_return co_await check(co_await call, step);
  }
  co_return co_await check(call.get(), step);
}

/// Makes a call with the options that its step asks for.
thalweg::task<bool> perform(const conformance::client &by, const json_t *step, method make,
                            bool awaits = is_async) {
  thalweg::call_options options;
  if (const std::uint64_t timeout = number(step, "timeout_ms", 0)) {
    options.until = std::chrono::milliseconds(timeout);
  }
  notice_counter notices{{}, number(step, "cancel_after_notices", 0)};
  if (notices.left != 0) {
    options.stop = notices.source.get_token();
    options.on_notice = {&notice_counter::count, &notices};
  }
  std::jthread timer;
  if (const std::uint64_t after = number(step, "cancel_after_ms", 0)) {
    options.stop = notices.source.get_token();
    timer = std::jthread([after, stop = notices.source]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(after));
      stop.request_stop();
    });
  }
  co_return co_await make(by, step, options, awaits);
}

/// A call that was started and not awaited. It is always made by a coroutine, which submits it at
/// once; beside blocking calls it has an attached client.
struct started {
  bool is_equal = false;
  bool has_ended = false;
  std::optional<conformance::client> attached; // closed first, which ends the call
};
std::map<std::string, std::vector<std::unique_ptr<started>>> outstanding;

void start(const json_t *step, method make) {
  auto &one = *outstanding[text_at(step, "start")].emplace_back(std::make_unique<started>());
  if (!is_async) {
    auto attached = client->attach(8);
    if (!attached) {
      fail("no attached client", attached.error().message().data());
      return;
    }
    one.attached.emplace(std::move(*attached));
  }
  const auto drive = [](started &self, const json_t *of, method with) -> thalweg::task<> {
    self.is_equal = co_await perform(self.attached ? *self.attached : *client, of, with, true);
    self.has_ended = true;
  };
  thalweg::spawn(drive(one, step, make));
}

void wait_for(const char *name) {
  for (const auto &one : std::exchange(outstanding[name], {})) {
    thalweg::poll_loop loop;
    loop.add(one->attached ? *one->attached : *client);
    while (!one->has_ended && loop.turn(60000)) {
    }
    if (!one->is_equal) {
      fail(one->has_ended ? "another value" : "it does not end", name);
    }
  }
}

void call(const json_t *step) {
  const char *const name = text_at(step, "call");
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(number(step, "within_ms", 0));
  const int before = failures;
  method make = nullptr;
  with_method(name, [&]<class Make>(Make) { make = &make_call<Make>; });
  if (make == nullptr) {
    fail("no such method", name);
  } else if (json_object_get(step, "start") != nullptr) {
    for (std::uint64_t times = number(step, "times", 1); times > 0; --times) {
      start(step, make);
    }
  } else {
    while (!run(perform(*client, step, make)) && failures == before) {
      if (std::chrono::steady_clock::now() >= until) {
        fail("another value", name);
      }
    }
  }
}

/// A step that reads a named stream, or another operation on one. A callback is replaced by reading.
void stream_step(const json_t *step) {
  for (const char *const about : {"read", "tee", "subscribe", "stats"}) {
    const char *const name = text_at(step, about);
    if (name == nullptr) {
      continue;
    }
    auto *const stream = dynamic_cast<named_stream *>(bound[name].get());
    if (stream == nullptr) {
      fail("no such stream", name);
    } else if (is_name(json_object_get(step, "read"), name)) {
      if (!run(stream->check(json_object_get(step, "stream")))) {
        fail("another stream", name);
      }
      bound.erase(name);
    } else if (is_name(json_object_get(step, "tee"), name)) {
      bound[text_at(step, "bind")] = stream->tee();
    } else if (is_name(json_object_get(step, "stats"), name)) {
      const tw_stats stats = stream->stats();
      if (!stats_are(step, &stats)) {
        fail("other statistics", name);
      }
    }
  }
}

/// Runs the steps up to the first one that fails.
void run_steps(const json_t *steps) {
  const int before = failures;
  for (std::size_t index = 0; index < json_array_size(steps) && failures == before; ++index) {
    const json_t *const step = json_array_get(steps, index);
    if (json_object_get(step, "call") != nullptr) {
      call(step);
    } else if (const char *const dropped = text_at(step, "drop")) {
      bound.erase(dropped);
    } else if (const char *const awaited = text_at(step, "await")) {
      wait_for(awaited);
    } else if (json_object_get(step, "close") != nullptr) {
      static_cast<void>(client->close());
    } else if (json_object_get(step, "open") != nullptr) {
      static_cast<void>(client->close());
      open_client();
    } else if (json_object_get(step, "other") != nullptr) {
      std::swap(client, other);
      if (!client) {
        open_client();
      }
    } else if (json_object_get(step, "repeat") != nullptr) {
      for (std::uint64_t left = number(step, "repeat", 0); left > 0 && failures == before; --left) {
        run_steps(json_object_get(step, "steps"));
      }
    } else {
      stream_step(step);
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  json_t *const scenarios = argc >= 4 ? load_scenarios(argv[2]) : nullptr;
  if (scenarios == nullptr) {
    std::fputs("usage: runner LIBRARY SCENARIOS REPORT [coroutines]\n", stderr);
    return 2;
  }
  library = argv[1];
  is_async = argc > 4;
  for (std::size_t index = 0; index < json_array_size(scenarios); ++index) {
    const json_t *const one = json_array_get(scenarios, index);
    scenario = text_at(one, "name");
    open_client();
    run_steps(json_object_get(one, "steps"));
    static_cast<void>(client->close());
    outstanding.clear();
    bound.clear();
    client.reset();
    other.reset();
    free_all();
    report_scenario();
  }
  const int status = write_report(argv[3], is_async ? "C++ coroutines" : "C++",
                                  __cplusplus > 202002L ? "C++23" : "C++20");
  json_decref(scenarios);
  return status;
}
