/// The conformance runner in C++: runner LIBRARY SCENARIOS REPORT [coroutines].
/// conformance/README.md describes the steps. With `coroutines`, calls and streams are awaited on a
/// loop over `poll`; otherwise they block.
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "conformance_json.hpp"
#include "values.hpp"

namespace {

using namespace std::chrono_literals;
using thalweg::outcome;

bool is_async = false;
const char *library = nullptr;
std::string scenario;
int failures = 0;

void fail(const std::string &what) {
  std::fprintf(stderr, "%s: %s\n", scenario.c_str(), what.c_str());
  failures++;
}

const char *text_at(const json_t *step, const char *key) {
  return json_string_value(json_object_get(step, key));
}
std::uint64_t number_at(const json_t *step, const char *key, std::uint64_t otherwise) {
  const json_t *const json = json_object_get(step, key);
  return json != nullptr ? static_cast<std::uint64_t>(json_integer_value(json)) : otherwise;
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
    fail("no client");
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
auto finish(Operation operation, bool awaits = is_async)
    -> thalweg::task<decltype(operation().get())> {
  if (awaits) {
    co_return co_await operation();
  }
  co_return operation().get();
}

bool is_name(const json_t *json, const char *name) {
  return json_is_string(json) && std::strcmp(json_string_value(json), name) == 0;
}

/// The difference between an outcome and the expected one; empty if there is none.
std::string check_outcome(const json_t *step, outcome code, std::string_view message) {
  const json_t *const wanted = json_object_get(step, "ends");
  const char *const name = tw_code_name(static_cast<std::uint32_t>(code));
  bool is_wanted = wanted == nullptr ? code == outcome::ok : is_name(wanted, name);
  for (std::size_t index = 0; index < json_array_size(wanted); ++index) {
    is_wanted = is_wanted || is_name(json_array_get(wanted, index), name);
  }
  const char *const part = text_at(step, "message");
  if (!is_wanted) {
    return std::string("another outcome: ") + name + ": " + std::string(message);
  }
  return part == nullptr || message.find(part) != std::string_view::npos
             ? ""
             : "another message: " + std::string(message);
}

/// Reads a stream and compares it with what a step expects.
template <class T, class E>
thalweg::task<std::string> check_stream(thalweg::stream<T, E> &stream, const json_t *wanted) {
  const json_t *const first = json_object_get(wanted, "first");
  const json_t *const last = json_object_get(wanted, "last");
  const std::uint64_t take = number_at(wanted, "take", UINT64_MAX);
  std::uint64_t counts[2] = {0, 0}; // elements, controls
  std::uint64_t lost = 0;
  std::uint64_t gap = 0;
  bool is_equal = true;
  bool is_last = last == nullptr;
  while (counts[0] < take) {
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(take - counts[0], 256));
    const auto batch = co_await finish([&] { return stream.next(most); });
    lost += batch.lost_before();
    gap = batch.lost_before() != 0 ? batch.gap_reason() : gap;
    if (!batch) {
      break;
    }
    const json_t *const all = json_object_get(wanted, batch.is_control() ? "controls" : "elements");
    for (std::size_t index = 0; index < batch.size(); ++index) {
      const T element = batch[index];
      const json_t *const same = json_array_get(all, counts[batch.is_control()]);
      is_equal = is_equal && (same == nullptr || is(element, same));
      if (!batch.is_control()) {
        is_equal = is_equal && (first == nullptr || counts[0] != 0 || is(element, first));
        is_last = last == nullptr || is(element, last);
      }
      counts[batch.is_control()]++;
    }
  }
  const json_t *const elements = json_object_get(wanted, "elements");
  const json_t *const controls = json_object_get(wanted, "controls");
  is_equal = is_equal && is_last &&
             (elements == nullptr || counts[0] == json_array_size(elements)) &&
             (controls == nullptr || counts[1] == json_array_size(controls)) &&
             counts[0] == number_at(wanted, "count", counts[0]) &&
             counts[0] + lost == number_at(wanted, "total", counts[0] + lost) &&
             gap == number_at(wanted, "gap", gap);
  if (!is_equal) {
    co_return "other elements, or another number of them";
  }
  auto status = stream.status();
  if (status || counts[0] >= take) {
    co_return check_outcome(wanted, outcome::ok, "");
  }
  const json_t *const error = json_object_get(wanted, "error");
  if constexpr (!std::is_void_v<E>) {
    auto *const payload = const_cast<E *>(status.error().payload());
    if (error != nullptr && (payload == nullptr || !is(*payload, error))) {
      co_return "another error";
    }
  }
  co_return check_outcome(wanted, status.error().code(), status.error().message());
}

/// The same for a future: a stream with one element.
template <class T, class E>
thalweg::task<std::string> check_stream(thalweg::future<T, E> &future, const json_t *wanted) {
  const json_t *const elements = json_object_get(wanted, "elements");
  auto value = co_await finish([&] { return future.wait(); });
  if (value) {
    co_return elements == nullptr || is(*value, json_array_get(elements, 0))
        ? check_outcome(wanted, outcome::ok, "")
        : "another value";
  }
  const json_t *const error = json_object_get(wanted, "error");
  if constexpr (!std::is_void_v<E>) {
    auto *const payload = const_cast<E *>(value.error().payload());
    if (error != nullptr && (payload == nullptr || !is(*payload, error))) {
      co_return "another error";
    }
  }
  co_return check_outcome(wanted, value.error().code(), value.error().message());
}

/// A named stream, without its type.
struct named_stream {
  virtual ~named_stream() = default;
  virtual thalweg::task<std::string> check(const json_t *wanted) = 0;
  virtual std::unique_ptr<named> tee() = 0;
  virtual tw_stats stats() = 0;
};
template <class T, class E> struct bound_stream : named, named_stream {
  explicit bound_stream(thalweg::stream<T, E> of) : value(std::move(of)) {
  }
  thalweg::task<std::string> check(const json_t *wanted) override {
    return check_stream(value, wanted);
  }
  std::unique_ptr<named> tee() override {
    return std::make_unique<bound_stream>(std::move(value.tee().value()));
  }
  tw_stats stats() override {
    return value.stats().value();
  }
  thalweg::stream<T, E> value;
};

template <class T> inline constexpr bool is_reply = false;
template <class T> inline constexpr bool is_reply<thalweg::reply<T>> = true;
template <class T> inline constexpr bool is_stream = false;
template <class T, class E> inline constexpr bool is_stream<thalweg::stream<T, E>> = true;
template <class T> inline constexpr bool is_future = false;
template <class T, class E> inline constexpr bool is_future<thalweg::future<T, E>> = true;

/// The difference between a result and what its step expects; empty if there is none.
template <class T, class E>
thalweg::task<std::string> check(thalweg::result<T, E> result, const json_t *step) {
  const json_t *const ok = json_object_get(step, "ok");
  const char *const name = text_at(step, "bind");
  if (!result) {
    const json_t *const error = json_object_get(step, "error");
    if constexpr (!std::is_void_v<E>) {
      auto *const payload = const_cast<E *>(result.error().payload());
      if (error != nullptr && payload != nullptr && !is(*payload, error)) {
        co_return "another error";
      }
    }
    co_return check_outcome(step, result.error().code(), result.error().message());
  }
  if constexpr (is_stream<T> || is_future<T>) {
    if (const json_t *const wanted = json_object_get(step, "stream")) {
      co_return co_await check_stream(*result, wanted);
    }
  }
  if constexpr (is_stream<T>) {
    if (name != nullptr) {
      bound[name] =
          std::make_unique<bound_stream<typename decltype(result->next().get())::element, E>>(
              std::move(*result));
    }
  } else if constexpr (is_reply<T>) {
    if (ok != nullptr && !is(**result, ok)) {
      co_return "another value";
    }
  } else if constexpr (std::derived_from<T, thalweg::resource>) {
    if (name != nullptr) {
      bound[name] = std::make_unique<named_value<T>>(std::move(*result));
    }
  } else if constexpr (!std::is_void_v<T> && !is_future<T>) {
    if (ok != nullptr && !is(*result, ok)) {
      co_return "another value";
    }
  }
  co_return check_outcome(step, outcome::ok, "");
}

/// What a call of a step may do while it runs.
struct supervision {
  std::stop_source source;
  std::uint64_t notices_left;
  std::thread timer;

  explicit supervision(const json_t *step)
      : notices_left(number_at(step, "cancel_after_notices", 0)) {
    if (const std::uint64_t after = number_at(step, "cancel_after_ms", 0)) {
      timer = std::thread([after, stop = source]() mutable {
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
        stop.request_stop();
      });
    }
  }
  ~supervision() {
    if (timer.joinable()) {
      timer.join();
    }
  }
  thalweg::call_options options(const json_t *step) {
    thalweg::call_options options;
    const std::uint64_t timeout = number_at(step, "timeout_ms", 0);
    if (timeout != 0) {
      options.until = std::chrono::milliseconds(timeout);
    }
    if (timer.joinable() || notices_left != 0) {
      options.stop = source.get_token();
    }
    if (notices_left != 0) {
      options.on_notice = {[](void *context, std::chrono::nanoseconds) {
                             auto *const self = static_cast<supervision *>(context);
                             if (--self->notices_left == 0) {
                               self->source.request_stop();
                             }
                           },
                           this};
    }
    return options;
  }
};

/// Makes the call of a step with one of the table's functions.
template <class Make>
thalweg::task<std::string> perform(const conformance::client &by, const json_t *step, Make make,
                                   bool awaits = is_async) {
  supervision during(step);
  const thalweg::call_options options = during.options(step);
  const json_t *const params = json_object_get(step, "params");
  if (const json_t *const bytes = json_object_get(step, "arguments")) {
    const std::string wanted = unhex(bytes);
    auto call = make(by, params, options);
    const auto encoded = call.encoded();
    if (by && std::string_view(reinterpret_cast<const char *>(encoded.data()), encoded.size()) !=
                  wanted) {
      co_return "other arguments than expected";
    }
  }
  co_return co_await check(co_await finish([&] { return make(by, params, options); }, awaits),
                           step);
}

/// A call that was started and not awaited. It is always made by a coroutine, which submits it at
/// once; beside blocking calls it has an attached client.
struct started {
  std::string problem;
  bool has_ended = false;
  std::optional<conformance::client> attached;
};
std::map<std::string, std::vector<std::shared_ptr<started>>> outstanding;

template <class Make> void start(const json_t *step, Make make) {
  auto one = std::make_shared<started>();
  outstanding[text_at(step, "start")].push_back(one);
  if (!is_async) {
    auto attached = client->attach(8);
    if (!attached) {
      one->problem = "no attached client";
      one->has_ended = true;
      return;
    }
    one->attached.emplace(std::move(*attached));
  }
  thalweg::spawn([](auto kept, const json_t *of, Make with) -> thalweg::task<> {
    const conformance::client &by = kept->attached ? *kept->attached : *client;
    kept->problem = co_await perform(by, of, with, true);
    kept->has_ended = true;
  }(one, step, make));
}

void wait_for(const char *name) {
  for (const auto &one : std::exchange(outstanding[name], {})) {
    while (!one->has_ended) {
      thalweg::poll_loop loop;
      loop.add(one->attached ? *one->attached : *client);
      if (!loop.turn(60000)) {
        one->problem = "it does not end";
        break;
      }
    }
    if (!one->problem.empty()) {
      fail(std::string(name) + ": " + one->problem);
    }
  }
}

void call(const json_t *step) {
  const char *const name = text_at(step, "call");
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(number_at(step, "within_ms", 0));
  const bool is_known = with_method(name, [&](auto make) {
    if (json_object_get(step, "start") != nullptr) {
      for (std::uint64_t times = number_at(step, "times", 1); times > 0; --times) {
        start(step, make);
      }
      return;
    }
    std::string problem;
    do {
      try {
        problem = run(perform(*client, step, make));
      } catch (const refused &why) {
        problem = check_outcome(step, outcome::argument, why.what());
      }
    } while (!problem.empty() && std::chrono::steady_clock::now() < until);
    if (!problem.empty()) {
      fail(std::string(name) + ": " + problem);
    }
  });
  if (!is_known) {
    fail(std::string("no such method: ") + name);
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
    std::string problem = stream == nullptr ? "no such stream" : "";
    if (stream != nullptr && std::strcmp(about, "read") == 0) {
      problem = run(stream->check(json_object_get(step, "stream")));
      bound.erase(name);
    } else if (stream != nullptr && std::strcmp(about, "tee") == 0) {
      bound[text_at(step, "bind")] = stream->tee();
    } else if (stream != nullptr && std::strcmp(about, "stats") == 0) {
      const tw_stats stats = stream->stats();
      std::uint64_t lost = 0;
      for (const std::uint64_t count : stats.lost) {
        lost += count;
      }
      const std::pair<const char *, std::uint64_t> all[] = {{"streams", stats.streams},
                                                            {"published", stats.published},
                                                            {"delivered", stats.delivered},
                                                            {"undelivered", stats.undelivered},
                                                            {"occupancy", stats.occupancy},
                                                            {"control", stats.control},
                                                            {"lost", lost}};
      for (const auto &[key, value] : all) {
        problem = number_at(step, key, value) == value ? problem : "other statistics";
      }
    }
    if (!problem.empty()) {
      fail(std::string(about) + ": " + problem);
    }
  }
}

void run_steps(const json_t *steps) {
  for (std::size_t index = 0; index < json_array_size(steps); ++index) {
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
      for (std::uint64_t left = number_at(step, "repeat", 0); left > 0; --left) {
        run_steps(json_object_get(step, "steps"));
      }
    } else {
      stream_step(step);
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  json_error_t where;
  json_t *const scenarios = argc >= 4 ? json_load_file(argv[2], JSON_ALLOW_NUL, &where) : nullptr;
  if (scenarios == nullptr) {
    std::fputs("usage: runner LIBRARY SCENARIOS REPORT [coroutines]\n", stderr);
    return 2;
  }
  library = argv[1];
  is_async = argc > 4;
  json_t *const verdicts = json_array();
  for (std::size_t index = 0; index < json_array_size(scenarios); ++index) {
    const json_t *const one = json_array_get(scenarios, index);
    const int before = failures;
    scenario = text_at(one, "name");
    open_client();
    run_steps(json_object_get(one, "steps"));
    static_cast<void>(client->close());
    for (const auto &[name, calls] : outstanding) {
      for (const auto &one : calls) {
        if (one->attached) {
          static_cast<void>(one->attached->close()); // ends a call that no step awaited
        }
      }
    }
    outstanding.clear();
    bound.clear();
    client.reset();
    other.reset();
    arena.clear();
    json_array_append_new(verdicts, json_pack("{s:s, s:s}", "name", scenario.c_str(), "verdict",
                                              failures == before ? "ok" : "failed"));
  }
  json_t *const report =
      json_pack("{s:s, s:s, s:o}", "language", is_async ? "C++ coroutines" : "C++", "version",
                __cplusplus > 202002L ? "C++23" : "C++20", "scenarios", verdicts);
  const bool was_written = json_dump_file(report, argv[3], JSON_INDENT(1)) == 0;
  std::printf("conformance: %zu scenarios, %d failures\n", json_array_size(scenarios), failures);
  json_decref(report);
  json_decref(scenarios);
  return was_written && failures == 0 ? 0 : 1;
}
