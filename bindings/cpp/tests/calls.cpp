/// Blocking calls: values, errors, deadlines, stop tokens, resources, and misuse that is an error.
/// Also compiled without exceptions.
#include <atomic>
#include <chrono>
#include <csignal>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

using namespace std::chrono_literals;

void number_is_returned_by_value() {
  const auto client = open_client();
  CHECK(require(client.echo_u8(200).get()) == 200);
  CHECK(require(client.echo_s64(-5).get()) == -5);
  CHECK(require(client.echo_bool(true).get()));
  CHECK(require(client.echo_char(U'ß').get()) == U'ß');
  CHECK(require(client.echo_f64(1.5).get()) == 1.5);
  CHECK(require(client.echo_color(conformance::color::green).get()) == conformance::color::green);
  using conformance::rights;
  CHECK(require(client.echo_rights(rights::read | rights::record).get()) ==
        (rights::read | rights::record));
}

void text_is_a_view_that_its_reply_owns() {
  const auto client = open_client();
  const std::string given = "längs des Talwegs";
  auto reply = require(client.echo_string(given).get());
  CHECK(*reply == given);
  const auto moved = std::move(reply);
  CHECK(*moved == given);
  CHECK(std::string(*moved) == given);
  CHECK(require(client.echo_string("").get())->empty());
}

void values_of_every_kind_come_back_equal() {
  const auto client = open_client();
  const std::vector<thalweg::text> words = {"a", "", "ccc"};
  const std::vector<std::int32_t> row = {1, -2, 3};
  const std::vector<thalweg::list<std::int32_t>> grid = {row, {}, row};
  const std::vector<std::uint8_t> raw = {0, 1, 255};
  const conformance::point corners[] = {{1, -2}, {3, 4}};
  using outcome = thalweg::expected<conformance::point, thalweg::text>;
  const std::vector<outcome> outcomes = {conformance::point{1, 2},
                                         thalweg::unexpected(thalweg::text("no"))};
  using pair = std::tuple<thalweg::text, std::optional<thalweg::bytes>>;
  const std::vector<pair> pairs = {{"x", thalweg::bytes(raw)}, {"y", std::nullopt}};
  const std::vector<conformance::shape> shapes = {
      {conformance::shape::circle{1.5}},   {conformance::shape::line{{corners[0], corners[1]}}},
      {conformance::shape::label{"word"}}, {conformance::shape::polygon{corners}},
      {conformance::shape::nothing{}},     {conformance::shape::static_{7}}};
  const conformance::nested nested{.text = "t",
                                   .bytes = raw,
                                   .names = words,
                                   .grid = grid,
                                   .maybe = "m",
                                   .twice = std::optional<std::uint32_t>(),
                                   .outcomes = outcomes,
                                   .pairs = pairs,
                                   .shapes = shapes,
                                   .color = conformance::color::bool_,
                                   .rights = conformance::rights::write,
                                   .aliased = words};
  const auto reply = require(client.echo_nested(nested).get());
  CHECK(*reply == nested);
  // A value of a reply can be an argument again.
  CHECK(*require(client.echo_nested(*reply).get()) == nested);
  CHECK(*require(client.echo_points(corners).get()) == thalweg::list<conformance::point>(corners));
  CHECK(require(client.echo_points(corners).get())->span()[1].y == 4);
  conformance::scalars scalars;
  scalars.a_bool = true;
  scalars.a_u8 = 9;
  scalars.a_f64 = -0.5;
  scalars.a_char = U'x';
  CHECK(*require(client.echo_scalars(scalars).get()) == scalars);
  const std::array<std::int64_t, 3> three = {1, -2, 3};
  CHECK(*require(client.echo_three(three).get()) == three);
  CHECK(!require(client.echo_option(std::nullopt).get())->has_value());
  CHECK(**require(client.echo_option("x").get()) == "x");
}

void errors_are_typed() {
  const auto client = open_client();
  CHECK(require(client.fail(std::nullopt).get()) == 7);
  using conformance::failure;
  const failure at{failure::at{{"here", conformance::point{1, 2}}}};
  const auto failed = client.fail(at).get();
  CHECK_FAILS(failed, error);
  CHECK(failed.error().payload() != nullptr && *failed.error().payload() == at);
  CHECK(!failed.error().retryable());
  const auto bare = client.fail_bare(true).get();
  CHECK_FAILS(bare, error);
  CHECK(bare.error().payload() != nullptr);
  CHECK(client.fail_bare(false).get().has_value());
  const auto panicked = client.panic("on purpose").get();
  CHECK_FAILS(panicked, guest_panicked);
  CHECK(panicked.error().message().find("on purpose") != std::string_view::npos);
  CHECK(std::string_view(panicked.error().name()) == "guest_panicked");
}

void inline_function_runs_without_a_port() {
  const auto client = open_client();
  CHECK(require(client.twice(21).get()) == 42);
  CHECK_FAILS(client.fail_here(conformance::failure{conformance::failure::code{9}}).get(), error);
}

void deadline_ends_a_call() {
  const auto client = open_client();
  const auto before = std::chrono::steady_clock::now();
  CHECK_FAILS(client.never(20ms).get(), timed_out);
  CHECK(std::chrono::steady_clock::now() - before >= 20ms);
  CHECK_FAILS(client.never(std::chrono::steady_clock::now() + 1ms).get(), timed_out);
  CHECK_FAILS(client.never(0ms).get(), timed_out);
  CHECK_FAILS(client.never(-1h).get(), timed_out);
  CHECK(require(client.echo_u8(1, std::chrono::hours::max()).get()) == 1);
  CHECK(thalweg::deadline(std::chrono::hours::max()).ns() == TW_FOREVER);
  CHECK(thalweg::deadline(std::chrono::steady_clock::time_point()).ns() == 1);
}

void stop_token_cancels_a_call() {
  const auto client = open_client();
  std::stop_source before;
  before.request_stop();
  CHECK_FAILS(client.never(before.get_token()).get(), cancelled);
  std::stop_source source;
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    source.request_stop();
  });
  CHECK_FAILS(client.never({1min, source.get_token()}).get(), cancelled);
  other.join();
  std::stop_source unused;
  CHECK(require(client.echo_u8(5, unused.get_token()).get()) == 5);
  unused.request_stop();
  CHECK(require(client.echo_u8(6).get()) == 6);
}

std::atomic<bool> has_signalled{false};

void signal_interrupts_a_call() {
  const auto client = open_client();
  struct sigaction action {};
  action.sa_handler = [](int) { has_signalled = true; };
  sigaction(SIGUSR1, &action, nullptr);
  const pthread_t self = pthread_self();
  std::thread other([self] {
    std::this_thread::sleep_for(20ms);
    pthread_kill(self, SIGUSR1);
  });
  CHECK_FAILS(client.never(1min).get(), interrupted);
  CHECK(has_signalled);
  other.join();
}

void notices_arrive_during_a_call() {
  const auto client = open_client();
  std::stop_source source;
  thalweg::notice_handler handler{[](void *context, std::chrono::nanoseconds) {
                                    static_cast<std::stop_source *>(context)->request_stop();
                                  },
                                  &source};
  CHECK_FAILS(client.never({1min, source.get_token(), handler}).get(), cancelled);
  CHECK(source.stop_requested());
}

void resource_is_dropped_by_its_destructor() {
  const auto client = open_client();
  {
    auto counter = require(client.counter(5).get());
    CHECK(counter);
    CHECK(require(counter.add(3).get()) == 8);
    conformance::counter moved = std::move(counter);
    CHECK(!counter); // NOLINT(bugprone-use-after-move)
    CHECK(require(moved.value().get()) == 8);
    // Use after move is an error.
    CHECK(!counter.value().get().has_value());
    CHECK(require(client.counters().get()) == 1);
    CHECK(moved.close().has_value());
    CHECK(moved.close().has_value());
    CHECK(!moved.value().get().has_value());
  }
  for (int tries = 0; tries < 6000 && require(client.counters().get()) != 0; tries++) {
    std::this_thread::sleep_for(10ms);
  }
  CHECK(require(client.counters().get()) == 0);
}

void resource_is_passed_to_the_service() {
  const auto client = open_client();
  auto counter = require(client.counter(9).get());
  const auto other = require(client.counter(1).get());
  CHECK(require(require(client.counter_sum(counter, other).get()).value().get()) == 10);
  CHECK(require(client.counter_finish(std::move(counter)).get()) == 9);
  CHECK(!counter); // NOLINT(bugprone-use-after-move)
  // A call that is never made closes its arguments.
  { const auto unused = client.counter_finish(require(client.counter(2).get())); }
  for (int tries = 0; tries < 6000 && require(client.counters().get()) != 1; tries++) {
    std::this_thread::sleep_for(10ms);
  }
  CHECK(require(client.counters().get()) == 1);
}

void resources_inside_values_have_one_owner() {
  const auto client = open_client();
  auto given = require(client.give_counters(10, 3).get());
  CHECK(given->size() == 3);
  CHECK(require((*given)[2].value().get()) == 12);
  CHECK(require(client.total(std::move(*given)).get()) == 33);
  conformance::pair pair;
  pair.name = "p";
  pair.left = require(client.counter(1).get());
  pair.right = require(client.counter(2).get());
  auto swapped = require(client.swap(std::move(pair)).get());
  CHECK(swapped->name == "p");
  CHECK(require(swapped->left.value().get()) == 2);
  CHECK(require(swapped->right->value().get()) == 1);
  auto refused = client
                     .refuse(conformance::maybe_counter{
                         conformance::maybe_counter::one{require(client.counter(7).get())}})
                     .get();
  CHECK_FAILS(refused, error);
  const auto *one = refused.error().payload()->get_if<conformance::maybe_counter::one>();
  CHECK(one != nullptr && require(one->value.value().get()) == 7);
  CHECK(require(client.first_of(std::nullopt).get())->has_value() == false);
}

void closed_and_moved_clients_are_errors() {
  auto client = open_client();
  auto late = client.echo_u8(1);
  conformance::client moved = std::move(client);
  CHECK(!client); // NOLINT(bugprone-use-after-move)
  CHECK(client.fd() == -1);
  CHECK_FAILS(client.echo_u8(1).get(), closed);
  CHECK_FAILS(client.twice(1).get(), closed);
  CHECK_FAILS(client.attach(), closed);
  CHECK_FAILS(client.sum_of_numbers(), closed);
  CHECK(client.close().has_value());
  CHECK(require(moved.echo_u8(2).get()) == 2);
  auto counter = require(moved.counter(1).get());
  CHECK(moved.close().has_value());
  CHECK(moved.close().has_value());
  CHECK_FAILS(moved.echo_u8(2).get(), closed);
  CHECK_FAILS(counter.value().get(), closed);
  CHECK(!late.get().has_value()); // its client was closed
  moved = open_client();
  CHECK(require(moved.echo_u8(3).get()) == 3);
}

void call_is_made_once() {
  const auto client = open_client();
  auto call = client.echo_u8(4);
  CHECK(require(call.get()) == 4);
  CHECK_FAILS(call.get(), argument);
}

void other_thread_gets_an_error_while_a_call_runs() {
  const auto client = open_client();
  std::stop_source source;
  std::thread other([&] { CHECK_FAILS(client.never(source.get_token()).get(), cancelled); });
  const auto attached = require(client.attach());
  while (require(attached.waiting_().get()) == 0) {
    std::this_thread::sleep_for(1ms);
  }
  const auto refused = client.echo_u8(1).get();
  CHECK_FAILS(refused, argument);
  CHECK(refused.error().message().find("thread") != std::string_view::npos);
  CHECK(require(attached.echo_u8(1).get()) == 1);
  source.request_stop();
  other.join();
  CHECK(require(client.echo_u8(1).get()) == 1); // one thread after the other is allowed
}

void opening_fails_with_both_sides() {
  const auto missing = conformance::client::open("no/such/library.so");
  CHECK_FAILS(missing, argument);
  CHECK(missing.error().message().find("thalweg:conformance") != std::string_view::npos);
  CHECK_FAILS(conformance::client::open(library, 0), argument);
}

#if defined(__cpp_exceptions)
template <class Exception, class Run> bool throws(Run &&run) {
  try {
    run();
  } catch (const Exception &) {
    return true;
  } catch (...) {
  }
  return false;
}

void value_throws_the_exception_of_the_outcome() {
  const auto client = open_client();
  CHECK(client.echo_u8(3).get().value() == 3);
  CHECK(throws<thalweg::timed_out>([&] { client.never(1ms).get().value(); }));
  CHECK(throws<thalweg::guest_panicked>([&] { client.panic("x").get().value(); }));
  CHECK(throws<thalweg::service_error>([&] { client.fail_bare(true).get().value(); }));
  CHECK(throws<thalweg::exception>([&] { conformance::client::open("none").value(); }));
  try {
    const conformance::failure code{conformance::failure::code{3}};
    client.fail(code).get().value();
    CHECK(false);
  } catch (const thalweg::service_error_of<conformance::failure> &thrown) {
    const auto copy = thrown; // NOLINT(performance-unnecessary-copy-initialization)
    CHECK(copy.payload().get_if<conformance::failure::code>()->value == 3);
    CHECK(copy.code() == thalweg::outcome::error);
  }
}
#endif

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  RUN(number_is_returned_by_value);
  RUN(text_is_a_view_that_its_reply_owns);
  RUN(values_of_every_kind_come_back_equal);
  RUN(errors_are_typed);
  RUN(inline_function_runs_without_a_port);
  RUN(deadline_ends_a_call);
  RUN(stop_token_cancels_a_call);
  RUN(signal_interrupts_a_call);
  RUN(notices_arrive_during_a_call);
  RUN(resource_is_dropped_by_its_destructor);
  RUN(resource_is_passed_to_the_service);
  RUN(resources_inside_values_have_one_owner);
  RUN(closed_and_moved_clients_are_errors);
  RUN(call_is_made_once);
  RUN(other_thread_gets_an_error_while_a_call_runs);
  RUN(opening_fails_with_both_sides);
#if defined(__cpp_exceptions)
  RUN(value_throws_the_exception_of_the_outcome);
#endif
  return done("calls");
}
