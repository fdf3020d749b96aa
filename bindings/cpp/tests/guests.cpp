/// Calls of the guest in C++, guests/probe.cpp.
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "probe.hpp"

namespace {

using namespace std::chrono_literals;

const tw_table *table = nullptr;

/// Whether the library of the guest is unloaded soon.
bool is_unloaded() {
  const char *const path = std::strchr(library, ':') + 1;
  for (int tries = 0; tries < 6000; tries++) {
    void *const loaded = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (loaded == nullptr) {
      return true;
    }
    dlclose(loaded);
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

probe::client open_probe() {
  return require(probe::client::open(table));
}

void each_client_has_its_own_state() {
  const auto client = open_probe();
  const auto other = open_probe();
  CHECK(require(client.add(3).get()) == 3);
  CHECK(require(client.add(4).get()) == 7);
  CHECK(require(other.add(1).get()) == 1);
}

void values_are_read_and_written() {
  const auto client = open_probe();
  CHECK(*require(client.echo("längs des Talwegs").get()) == "längs des Talwegs");
  const auto refused = client.echo(std::string(1001, 'x')).get();
  CHECK_FAILS(refused, error);
  CHECK(refused.error().payload()->get_if<probe::trouble::too_long>()->value == 1001);
  const std::vector<std::uint8_t> raw = {0, 1, 255};
  CHECK(*require(client.bytes(raw).get()) == thalweg::bytes(raw));
  CHECK(client.nothing().get().has_value());
  const std::vector<probe::point> points = {{"a", 1, 2}, {"bb", 3, 4}};
  const auto moved = require(client.move_all(points, {"", 10, 20}, probe::colors::red).get());
  CHECK(moved->size() == 2);
  CHECK((*moved)[0] == (probe::point{"bb", 13, 24}));
  CHECK((*moved)[1] == (probe::point{"a", 11, 22}));
}

void resources_are_shared_objects() {
  const auto client = open_probe();
  auto cell = require(client.cell(5).get());
  CHECK(require(cell.add(10).get()) == 15);
  CHECK(require(cell.get().get()) == 15);
  CHECK(require(client.cell_open(std::move(cell)).get()) == 15);
  const auto left = require(client.cell(6).get()); // dropped with its client
  CHECK(require(left.get().get()) == 6);
}

void coroutine_answers_later() {
  const auto client = open_probe();
  CHECK(require(client.later(1, 42).get()) == 42);
  const auto failed = client.later(1, 0).get();
  CHECK_FAILS(failed, guest_panicked);
  CHECK(failed.error().message().find("there is no number") != std::string_view::npos);
}

void coroutine_outlives_its_call_and_its_client() {
  const auto client = open_probe();
  CHECK(require(client.add(1).get()) == 1);
  CHECK_FAILS(client.later(3'600'000, 1, 10ms).get(), timed_out);
}

void streams_and_futures_are_written() {
  const auto client = open_probe();
  auto numbers = require(client.numbers(1000).get());
  std::uint64_t next = 0;
  for (const auto batch : numbers) {
    for (const std::uint64_t number : batch) {
      CHECK(number == next++);
    }
  }
  CHECK(next == 1000 && numbers.status().has_value());
  auto points = require(client.points(6, 0).get());
  std::size_t count = 0;
  for (const auto batch : points) {
    for (std::size_t index = 0; index < batch.size(); ++index) {
      CHECK(batch[index].name == "point " + std::to_string(++count));
    }
  }
  CHECK(count == 6 && points.status().has_value());
  auto failing = require(client.points(6, 3).get());
  count = 0;
  while (const auto batch = failing.next().get()) {
    count += batch.size();
  }
  CHECK(count == 2);
  CHECK_FAILS(failing.status(), error);
  auto dropped = require(client.points(1, 9).get());
  while (const auto batch = dropped.next().get()) {
  }
  CHECK_FAILS(dropped.status(), guest_lost);
  CHECK(require(require(client.soon(7).get()).wait().get()) == 7);
}

void reader_that_leaves_ends_the_writer() {
  const auto client = open_probe();
  const auto numbers = require(client.numbers(1'000'000'000).get());
}

void call_without_an_answer_is_lost() {
  const auto client = open_probe();
  for (const std::uint32_t how : {0u, 4u}) {
    const auto lost = client.misbehave(how).get();
    CHECK_FAILS(lost, guest_lost);
    CHECK(lost.error().message().find("without an answer") != std::string_view::npos);
  }
  CHECK(*require(client.misbehave(3).get()) == "once");
  CHECK(require(open_probe().add(1).get()) == 1);
  CHECK_FAILS(client.misbehave(6).get(), overloaded);
  CHECK(require(client.add(1).get()) == 1);
}

void exception_ends_the_call_and_the_state() {
  const auto client = open_probe();
  CHECK(require(client.add(1).get()) == 1);
  const auto panicked = client.misbehave(1).get();
  CHECK_FAILS(panicked, guest_panicked);
  CHECK(panicked.error().message().find("it went wrong") != std::string_view::npos);
  CHECK(require(client.add(1).get()) == 1);
  CHECK_FAILS(client.misbehave(2).get(), guest_panicked);
}

void service_that_does_not_start_fails_its_call() {
  const auto client = open_probe();
  CHECK(client.misbehave(5).get().has_value());
  const auto other = open_probe();
  const auto lost = other.add(1).get();
  CHECK_FAILS(lost, guest_lost);
  CHECK(lost.error().message().find("told not to start") != std::string_view::npos);
  CHECK(require(other.add(1).get()) == 1);
}

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  tw_error error;
  if (tw_open(library, ::probe_expected(), &table, &error) != TW_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  RUN(each_client_has_its_own_state);
  RUN(values_are_read_and_written);
  RUN(resources_are_shared_objects);
  RUN(coroutine_answers_later);
  RUN(coroutine_outlives_its_call_and_its_client);
  RUN(streams_and_futures_are_written);
  RUN(reader_that_leaves_ends_the_writer);
  RUN(call_without_an_answer_is_lost);
  RUN(exception_ends_the_call_and_the_state);
  RUN(service_that_does_not_start_fails_its_call);
  // Its threads and coroutines end, and it has no objects left.
  CHECK(tw_close(table, &error) == TW_OK);
  CHECK(is_unloaded());
  return done("guests");
}
