/// Coroutines on a loop over `poll`: calls, streams, cancellation, destruction, host imports.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

using namespace std::chrono_literals;

void call_returns_its_value() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  const auto sum = [&]() -> thalweg::task<int> {
    const auto left = require(co_await client.echo_u8(20));
    const auto right = require(co_await client.twice(11)); // inline: does not suspend
    co_return static_cast<int>(left) + static_cast<int>(right);
  };
  CHECK(loop.run(sum()) == 42);
  CHECK(client.waiting() == 0);
}

void errors_and_text_are_returned() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  loop.run([&]() -> thalweg::task<> {
    const auto text = require(co_await client.echo_string("in a coroutine"));
    CHECK(*text == "in a coroutine");
    const auto failed = co_await client.fail(conformance::failure{conformance::failure::code{5}});
    CHECK_FAILS(failed, error);
    CHECK(failed.error().payload()->get_if<conformance::failure::code>()->value == 5);
    CHECK_FAILS(co_await client.never(10ms), timed_out);
    const auto counter = require(co_await client.counter(4));
    CHECK(require(co_await counter.value_later()) == 4);
  }());
}

thalweg::task<> sleep_and_count(const conformance::client &client, std::uint32_t ms, int &order,
                                int &place) {
  require_ok(co_await client.sleep(ms));
  place = ++order;
}

void calls_run_at_the_same_time() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  int order = 0;
  int later = 0;
  int sooner = 0;
  thalweg::spawn(sleep_and_count(client, 80, order, later));
  thalweg::spawn(sleep_and_count(client, 1, order, sooner));
  CHECK(client.waiting() == 2);
  while (client.waiting() > 0) {
    loop.turn();
  }
  CHECK(sooner == 1 && later == 2);
}

thalweg::task<> wait_forever(const conformance::client &client, std::stop_token stop,
                             thalweg::outcome &ended) {
  const auto result = co_await client.never(stop);
  ended = result ? thalweg::outcome::ok : result.error().code();
}

void stop_token_cancels_a_waiting_call() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  std::stop_source source;
  thalweg::outcome ended{};
  thalweg::spawn(wait_forever(client, source.get_token(), ended));
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    source.request_stop();
  });
  while (client.waiting() > 0) {
    loop.turn();
  }
  other.join();
  CHECK(ended == thalweg::outcome::cancelled);
}

/// A coroutine that the test destroys while it waits.
struct held {
  struct promise_type {
    held get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() noexcept {
      return {};
    }
    std::suspend_always final_suspend() noexcept {
      return {};
    }
    void return_void() {
    }
    void unhandled_exception() {
      std::terminate();
    }
  };
  std::coroutine_handle<promise_type> handle;
};

void coroutine_destroyed_in_a_call_cancels_it() {
  const auto client = open_client();
  const auto other = require(client.attach());
  held waiting = [](const conformance::client &of) -> held {
    static_cast<void>(co_await of.never());
    CHECK(false); // it never resumes
  }(client);
  CHECK(client.waiting() == 1);
  while (require(other.waiting_().get()) != 1) {
    std::this_thread::sleep_for(1ms);
  }
  waiting.handle.destroy();
  CHECK(client.waiting() == 0);
  while (require(other.waiting_().get()) != 0) {
    std::this_thread::sleep_for(1ms);
  }
  // The completion arrives later, and finds nobody.
  thalweg::poll_loop loop;
  loop.add(client);
  loop.turn(1000);
  CHECK(loop.run(
            [&]() -> thalweg::task<int> { co_return require(co_await client.echo_u8(3)); }()) == 3);
}

void coroutine_destroyed_in_a_stream_leaves_the_stream() {
  const auto client = open_client();
  const auto other = require(client.attach());
  auto stream = require(client.ticks().get());
  held waiting = [](thalweg::stream<std::uint64_t> &of) -> held {
    const auto batch = co_await of.next();
    CHECK(false); // it never resumes
  }(stream);
  waiting.handle.destroy();
  CHECK(client.waiting() == 0);
  require_ok(other.tick(2).get());
  CHECK(stream.next().get(1min).size() >= 1);
}

thalweg::task<> read_all(thalweg::stream<std::uint64_t> stream, std::uint64_t &count,
                         thalweg::outcome &ended) {
  while (const auto batch = co_await stream.next()) {
    count += batch.size();
  }
  const auto status = stream.status();
  ended = status ? thalweg::outcome::ok : status.error().code();
}

void stream_is_read_to_its_end() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  std::uint64_t count = 0;
  thalweg::outcome ended = thalweg::outcome::stale;
  loop.run([&]() -> thalweg::task<> {
    co_await read_all(require(co_await client.count(0, 5000)), count, ended);
  }());
  CHECK(count == 5000 && ended == thalweg::outcome::ok);
}

void stream_wakes_its_reader_for_each_tick() {
  const auto client = open_client();
  const auto other = require(client.attach());
  thalweg::poll_loop loop;
  loop.add(client);
  std::uint64_t count = 0;
  thalweg::outcome ended = thalweg::outcome::stale;
  thalweg::spawn(read_all(require(client.ticks().get()), count, ended));
  for (int round = 1; round <= 5; ++round) {
    require_ok(other.tick(1).get());
    while (count < static_cast<std::uint64_t>(round)) {
      loop.turn(1000);
    }
  }
  require_ok(other.end_ticks().get());
  while (client.waiting() > 0) {
    loop.turn(1000);
  }
  CHECK(count == 5 && ended == thalweg::outcome::ok);
}

/// Reads one batch with these options. Returns its size and how the wait ended.
thalweg::task<> read_once(thalweg::stream<std::uint64_t> &stream, thalweg::call_options options,
                          std::size_t &size, thalweg::outcome &ended) {
  const auto batch = co_await stream.next(options);
  size = batch.size();
  const auto status = stream.status();
  ended = status ? thalweg::outcome::ok : status.error().code();
}

void stop_token_ends_the_wait_for_a_stream() {
  const auto client = open_client();
  const auto other = require(client.attach());
  auto stream = require(client.ticks().get());
  thalweg::poll_loop loop;
  loop.add(client);
  std::size_t size = 1;
  thalweg::outcome ended{};
  std::stop_source during;
  std::thread stopper([&] {
    std::this_thread::sleep_for(20ms);
    during.request_stop();
  });
  loop.run(read_once(stream, during.get_token(), size, ended));
  stopper.join();
  CHECK(size == 0 && ended == thalweg::outcome::cancelled && client.waiting() == 0);
  // A stop before the wait ends it, even if there are records.
  require_ok(other.tick(1).get());
  loop.run(read_once(stream, during.get_token(), size, ended));
  CHECK(size == 0 && ended == thalweg::outcome::cancelled);
  // The stream continues, and a stop after the wait has no effect.
  std::stop_source after;
  loop.run(read_once(stream, after.get_token(), size, ended));
  CHECK(size == 1 && ended == thalweg::outcome::ok);
  after.request_stop();
  require_ok(other.tick(1).get());
  loop.run(read_once(stream, {}, size, ended));
  CHECK(size == 1 && ended == thalweg::outcome::ok);
}

void stop_token_ends_a_blocking_read() {
  const auto client = open_client();
  auto stream = require(client.ticks().get());
  std::stop_source source;
  std::thread stopper([&] {
    std::this_thread::sleep_for(20ms);
    source.request_stop();
  });
  CHECK(!stream.next(source.get_token()).get());
  stopper.join();
  CHECK_FAILS(stream.status(), cancelled);
  std::stop_source never;
  CHECK(!stream.next(never.get_token()).get(5ms));
  CHECK_FAILS(stream.status(), timed_out);
  // It would dispatch the coroutines that wait.
  std::size_t size = 1;
  thalweg::outcome ended{};
  auto second = require(stream.tee());
  thalweg::spawn(read_once(second, {}, size, ended));
  CHECK(!stream.next(never.get_token()).get());
  CHECK_FAILS(stream.status(), argument);
  second.close();
}

void deadline_ends_the_wait_for_a_stream() {
  const auto client = open_client();
  const auto other = require(client.attach());
  auto stream = require(client.ticks().get());
  thalweg::poll_loop loop;
  loop.add(client);
  CHECK(client.timeout_ms() == -1);
  std::size_t size = 1;
  thalweg::outcome ended{};
  const auto begin = std::chrono::steady_clock::now();
  loop.run(read_once(stream, 20ms, size, ended));
  CHECK(size == 0 && ended == thalweg::outcome::timed_out);
  CHECK(std::chrono::steady_clock::now() - begin >= 20ms);
  CHECK(client.waiting() == 0 && client.timeout_ms() == -1);
  // The stream continues. Records that are there are read after the deadline, too.
  require_ok(other.tick(1).get());
  loop.run(read_once(stream, 1min, size, ended));
  CHECK(size == 1 && ended == thalweg::outcome::ok);
  require_ok(other.tick(1).get());
  loop.run(read_once(stream, 0ms, size, ended));
  CHECK(size == 1 && ended == thalweg::outcome::ok);
  // The earliest of several deadlines wakes the loop.
  auto second = require(stream.tee());
  std::size_t later_size = 1;
  thalweg::outcome later{};
  thalweg::spawn(read_once(second, 1h, later_size, later));
  loop.run(read_once(stream, 5ms, size, ended));
  CHECK(size == 0 && ended == thalweg::outcome::timed_out && client.waiting() == 1);
  second.close();
  CHECK(later == thalweg::outcome::stale && client.waiting() == 0);
}

void coroutine_destroyed_with_a_stop_token_leaves_the_stream() {
  const auto client = open_client();
  const auto other = require(client.attach());
  auto stream = require(client.ticks().get());
  std::stop_source source;
  held waiting = [](thalweg::stream<std::uint64_t> &of, std::stop_token stop) -> held {
    const auto batch = co_await of.next({thalweg::deadline(5ms), std::move(stop)});
    CHECK(false); // it never resumes
  }(stream, source.get_token());
  CHECK(client.waiting() == 1);
  waiting.handle.destroy();
  CHECK(client.waiting() == 0);
  source.request_stop();
  std::this_thread::sleep_for(6ms);
  client.dispatch();
  require_ok(other.tick(1).get());
  CHECK(stream.next().get(1min).size() == 1);
}

void stop_token_and_deadline_end_a_send() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  auto numbers = require(client.sum_of_numbers());
  const auto fill = [&](thalweg::call_options options) -> thalweg::task<thalweg::outcome> {
    for (;;) {
      const auto sent = co_await numbers.send(1, options);
      if (!sent) {
        co_return sent.error().code();
      }
    }
  };
  CHECK(loop.run(fill(5ms)) == thalweg::outcome::timed_out);
  std::stop_source source;
  std::thread stopper([&] {
    std::this_thread::sleep_for(5ms);
    source.request_stop();
  });
  CHECK(loop.run(fill(source.get_token())) == thalweg::outcome::cancelled);
  stopper.join();
  CHECK_FAILS(numbers.send(1, source.get_token()).get(), cancelled);
}

void closing_a_stream_ends_the_wait_of_its_reader() {
  const auto client = open_client();
  auto stream = require(client.ticks().get());
  bool has_ended = false;
  held waiting = [](thalweg::stream<std::uint64_t> &of, bool &ended) -> held {
    const auto batch = co_await of.next();
    CHECK(!batch);
    ended = true;
  }(stream, has_ended);
  CHECK(!has_ended);
  stream.close();
  CHECK(has_ended && client.waiting() == 0);
  waiting.handle.destroy();
}

void stream_may_be_moved_while_a_coroutine_waits() {
  const auto client = open_client();
  const auto other = require(client.attach());
  thalweg::poll_loop loop;
  loop.add(client);
  auto stream = require(client.ticks().get());
  std::size_t size = 0;
  held waiting = [](thalweg::stream<std::uint64_t> &of, std::size_t &read) -> held {
    const auto batch = co_await of.next();
    read = batch.size();
  }(stream, size);
  const auto moved = std::move(stream);
  require_ok(other.tick(2).get());
  while (size == 0) {
    loop.turn(1000);
  }
  CHECK(size >= 1);
  waiting.handle.destroy();
}

void closing_a_client_ends_its_calls() {
  auto client = std::make_unique<conformance::client>(open_client());
  auto ticks = require(client->ticks().get());
  std::uint64_t count = 0;
  thalweg::outcome third{};
  thalweg::outcome first{};
  thalweg::outcome second{};
  thalweg::spawn(wait_forever(*client, {}, first));
  thalweg::spawn(wait_forever(*client, {}, second));
  thalweg::spawn(read_all(std::move(ticks), count, third));
  CHECK(client->waiting() == 3);
  client.reset();
  CHECK(third == thalweg::outcome::cancelled);
  CHECK(first == thalweg::outcome::cancelled && second == thalweg::outcome::cancelled);
}

void blocking_call_beside_waiting_coroutines_is_refused() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  std::stop_source source;
  thalweg::outcome ended{};
  thalweg::spawn(wait_forever(client, source.get_token(), ended));
  CHECK_FAILS(client.echo_u8(1).get(), argument);
  source.request_stop();
  while (client.waiting() > 0) {
    loop.turn();
  }
  CHECK(require(client.echo_u8(1).get()) == 1);
}

void full_port_refuses_a_call() {
  const auto client = open_client(2);
  std::stop_source source;
  thalweg::outcome ended[3] = {};
  for (thalweg::outcome &one : ended) {
    thalweg::spawn(wait_forever(client, source.get_token(), one));
  }
  CHECK(ended[2] == thalweg::outcome::overloaded);
  thalweg::poll_loop loop;
  loop.add(client);
  source.request_stop();
  while (client.waiting() > 0) {
    loop.turn();
  }
  CHECK(ended[0] == thalweg::outcome::cancelled && ended[1] == thalweg::outcome::cancelled);
}

void caller_writes_a_stream_with_backpressure() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  loop.run([&]() -> thalweg::task<> {
    auto numbers = require(client.sum_of_numbers());
    std::uint64_t sum = 0;
    thalweg::spawn([](const conformance::client &of, thalweg::stream_writer<std::uint64_t> &from,
                      std::uint64_t &into) -> thalweg::task<> {
      into = std::get<1>(*require(co_await of.sum_of(from)));
    }(client, numbers, sum));
    for (std::uint64_t number = 1; number <= 2000; ++number) {
      require_ok(co_await numbers.send(number));
    }
    require_ok(numbers.finish());
    while (sum == 0) {
      require_ok(co_await client.sleep(1));
    }
    CHECK(sum == 2001000);
  }());
}

struct sync_host {
  int nods = 0;
  thalweg::expected<std::string, std::uint64_t> look_up(std::uint64_t key) {
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
    nods++;
  }
};

void service_calls_functions_of_its_host() {
  const auto client = open_client();
  sync_host host;
  require_ok(client.set_host(host));
  CHECK(*require(client.ask(4).get()) == "number 4");
  const auto refused = client.ask(5).get();
  CHECK_FAILS(refused, error);
  const std::vector<thalweg::text> words = {"ab", "cde"};
  CHECK(require(client.tell(words, 10).get()) == 15);
  thalweg::poll_loop loop;
  loop.add(client);
  loop.run(
      [&]() -> thalweg::task<> { CHECK(*require(co_await client.ask_later(6)) == "number 6"); }());
  auto looked_up = require(client.looked_up(3).get());
  std::size_t count = 0;
  for (const auto batch : looked_up) {
    count += batch.size();
  }
  CHECK(count == 3 && looked_up.status().has_value());
}

struct coroutine_host {
  const conformance::client &client;

  thalweg::task<thalweg::expected<std::string, std::uint64_t>> look_up(std::uint64_t key) {
    require_ok(co_await client.sleep(1)); // the service runs it beside the call that waits
    if (key == 100) {
      throw std::runtime_error("at 100, on purpose");
    }
    co_return "later " + std::to_string(key);
  }
  thalweg::task<std::uint64_t> tell(thalweg::list<thalweg::text> words,
                                    std::optional<std::uint32_t>) {
    require_ok(co_await client.sleep(1));
    co_return words.size();
  }
  thalweg::task<> nod() {
    co_return;
  }
};

void service_calls_coroutines_of_its_host() {
  const auto client = open_client();
  coroutine_host host{client};
  require_ok(client.set_host(host));
  thalweg::poll_loop loop;
  loop.add(client);
  loop.run([&]() -> thalweg::task<> {
    CHECK(*require(co_await client.ask_later(4)) == "later 4");
    const auto failed = co_await client.ask_later(100);
    CHECK_FAILS(failed, error);
    CHECK(*failed.error().payload() == TW_GUEST_PANICKED);
    const std::vector<thalweg::text> words = {"a", "b", "c"};
    CHECK(require(co_await client.tell(words, std::nullopt)) == 3);
  }());
}

struct calling_host : sync_host {
  const conformance::client *client = nullptr;
  thalweg::outcome refused{};
  thalweg::expected<std::string, std::uint64_t> look_up(std::uint64_t) {
    const auto result = client->echo_u8(1).get();
    refused = result ? thalweg::outcome::ok : result.error().code();
    return "x";
  }
};

void blocking_call_in_a_host_function_is_refused() {
  const auto client = open_client();
  calling_host host;
  host.client = &client;
  require_ok(client.set_host(host));
  CHECK(*require(client.ask(4).get()) == "x");
  CHECK(host.refused == thalweg::outcome::would_park);
}

void exception_leaves_a_task_where_it_is_awaited() {
  const auto client = open_client();
  thalweg::poll_loop loop;
  loop.add(client);
  bool was_thrown = false;
  try {
    loop.run([&]() -> thalweg::task<> { (co_await client.never(1ms)).value(); }());
  } catch (const thalweg::timed_out &) {
    was_thrown = true;
  }
  CHECK(was_thrown);
}

void flood_of_calls_is_dispatched_in_budgets() {
  const auto client = open_client(512);
  int order = 0;
  std::vector<int> places(300);
  for (int &place : places) {
    thalweg::spawn(sleep_and_count(client, 0, order, place));
  }
  std::size_t most = 0;
  while (client.waiting() > 0) {
    const std::size_t count = client.dispatch(10);
    most = count > most ? count : most;
  }
  CHECK(most <= 10 && order == 300);
}

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  RUN(call_returns_its_value);
  RUN(errors_and_text_are_returned);
  RUN(calls_run_at_the_same_time);
  RUN(stop_token_cancels_a_waiting_call);
  RUN(coroutine_destroyed_in_a_call_cancels_it);
  RUN(coroutine_destroyed_in_a_stream_leaves_the_stream);
  RUN(stream_is_read_to_its_end);
  RUN(stream_wakes_its_reader_for_each_tick);
  RUN(stop_token_ends_the_wait_for_a_stream);
  RUN(stop_token_ends_a_blocking_read);
  RUN(deadline_ends_the_wait_for_a_stream);
  RUN(coroutine_destroyed_with_a_stop_token_leaves_the_stream);
  RUN(stop_token_and_deadline_end_a_send);
  RUN(closing_a_stream_ends_the_wait_of_its_reader);
  RUN(stream_may_be_moved_while_a_coroutine_waits);
  RUN(closing_a_client_ends_its_calls);
  RUN(blocking_call_beside_waiting_coroutines_is_refused);
  RUN(full_port_refuses_a_call);
  RUN(caller_writes_a_stream_with_backpressure);
  RUN(service_calls_functions_of_its_host);
  RUN(service_calls_coroutines_of_its_host);
  RUN(blocking_call_in_a_host_function_is_refused);
  RUN(exception_leaves_a_task_where_it_is_awaited);
  RUN(flood_of_calls_is_dispatched_in_budgets);
  return done("coroutines");
}
