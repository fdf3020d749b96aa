/// Resources inside of the values of a guest in C++, guests/boxes.cpp.
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "boxes.hpp"
#include "check.hpp"

namespace {

using namespace std::chrono_literals;

const tw_table *table = nullptr;

boxes::client open_boxes() {
  return require(boxes::client::open(table));
}

/// Whether soon there are this many boxes.
bool has_living(const boxes::client &client, std::uint32_t count) {
  for (int tries = 0; tries < 6000; tries++) {
    if (require(client.living().get()) == count) {
      return true;
    }
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

void resources_in_results_are_owned_by_the_program() {
  const auto client = open_boxes();
  {
    const auto made = require(client.make(3).get());
    CHECK(made->size() == 3);
    CHECK(require((*made)[2].number().get()) == 3);
    CHECK(require(client.living().get()) == 3);
  }
  CHECK(has_living(client, 0));
  CHECK(require(client.make(0).get())->empty());
}

void resources_in_arguments_are_destroyed() {
  const auto client = open_boxes();
  CHECK(require(client.sum({boxes::load::unknown{}}).get()) == 0);
  CHECK(require(client.sum({boxes::load::one{require(client.box(5).get())}}).get()) == 5);
  CHECK(require(client
                    .sum({boxes::load::pair{
                        {require(client.box(5).get()), require(client.box(6).get())}}})
                    .get()) == 11);
  CHECK(require(
            client.sum({boxes::load::pair{{require(client.box(7).get()), std::nullopt}}}).get()) ==
        7);
  auto several = require(client.make(4).get());
  CHECK(require(client.sum({boxes::load::several{std::move(*several)}}).get()) == 10);
  CHECK(has_living(client, 0));
}

void resources_are_passed_back() {
  const auto client = open_boxes();
  auto several = require(client.make(3).get());
  {
    const auto passed = require(client.pass({boxes::load::several{std::move(*several)}}).get());
    const auto *const back = passed->get_if<boxes::load::several>();
    CHECK(back != nullptr && back->value.size() == 3);
    CHECK(require(back->value[1].number().get()) == 2);
    const auto failed = client.pass({boxes::load::one{require(client.box(8).get())}}).get();
    CHECK_FAILS(failed, error);
    const auto *const one = failed.error().payload()->get_if<boxes::load::one>();
    CHECK(one != nullptr && require(one->value.number().get()) == 8);
    CHECK(require(client.living().get()) == 4);
  }
  CHECK(has_living(client, 0));
}

void null_pointer_in_a_result_fails_the_call() {
  const auto client = open_boxes();
  const auto spoiled = client.spoil(1).get();
  CHECK_FAILS(spoiled, guest_lost);
  CHECK(spoiled.error().message().find("null pointer") != std::string_view::npos);
  const auto none = client.box(0).get();
  CHECK_FAILS(none, guest_lost);
  CHECK(none.error().message().find("null pointer") != std::string_view::npos);
  CHECK(has_living(client, 0));
}

void resources_of_a_late_result_are_destroyed() {
  const auto client = open_boxes();
  CHECK_FAILS(client.make_late(200, 3, 10ms).get(), timed_out);
  std::this_thread::sleep_for(300ms);
  CHECK(has_living(client, 0));
  CHECK(require(client.make_late(1, 2).get())->size() == 2);
  CHECK(has_living(client, 0));
}

void boxes_end_with_their_client() {
  const auto other = open_boxes();
  {
    const auto client = open_boxes();
    const auto made = require(client.make(3).get());
    CHECK(require(other.living().get()) == 3);
  }
  CHECK(has_living(other, 0));
}

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  tw_error error;
  if (tw_open(library, ::boxes_expected(), &table, &error) != TW_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  RUN(resources_in_results_are_owned_by_the_program);
  RUN(resources_in_arguments_are_destroyed);
  RUN(resources_are_passed_back);
  RUN(null_pointer_in_a_result_fails_the_call);
  RUN(resources_of_a_late_result_are_destroyed);
  RUN(boxes_end_with_their_client);
  CHECK(tw_close(table, &error) == TW_OK);
  return done("guest_boxes");
}
