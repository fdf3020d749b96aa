/// Streams, futures and parameters that the caller writes, in code that blocks.
#include <chrono>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

using namespace std::chrono_literals;

bool running_becomes(const conformance::client &client, std::uint32_t wanted) {
  for (int tries = 0; tries < 6000; tries++) {
    if (require(client.running().get()) == wanted) {
      return true;
    }
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

/// Reads batches until there are at least `wanted` records, or the stream ends.
template <class S> std::size_t read(S &stream, std::size_t wanted) {
  std::size_t count = 0;
  while (count < wanted) {
    const auto batch = stream.next().get(1min);
    if (!batch) {
      break;
    }
    count += batch.size();
  }
  return count;
}

void all_records_are_read_in_order() {
  const auto client = open_client();
  auto stream = require(client.count(5, 1000).get());
  std::uint64_t next = 5;
  for (const auto batch : stream) {
    CHECK(batch.first_seq() == next - 5);
    CHECK(batch.lost_before() == 0 && batch.gap_reason() == 0 && !batch.is_control());
    for (const std::uint64_t number : batch) {
      CHECK(number == next++);
    }
  }
  CHECK(next == 1005);
  CHECK(stream.status().has_value());
  CHECK(!stream.next().get());
  CHECK(stream.status().has_value());
}

void records_with_text_are_views() {
  const auto client = open_client();
  auto stream = require(client.items(10).get());
  std::uint64_t count = 0;
  while (const auto batch = stream.next(4).get()) {
    CHECK(batch.size() <= 4);
    for (std::size_t index = 0; index < batch.size(); ++index) {
      const conformance::item item = batch[index];
      CHECK(item.number == count);
      CHECK(item.name == "item " + std::to_string(count));
      CHECK(item.tags.size() == count % 3);
      CHECK(item.blob.has_value() == (count % 2 == 0));
      count++;
    }
  }
  CHECK(count == 10);
  CHECK(stream.status().has_value());
}

void plain_records_are_references_into_the_batch() {
  const auto client = open_client();
  auto stream = require(client.shapes(6).get());
  std::size_t count = 0;
  for (const auto batch : stream) {
    for (const conformance::shape &shape : batch) {
      count += shape.value.valueless_by_exception() ? 0u : 1u;
    }
  }
  CHECK(count == 6);
  auto numbers = require(client.drops_newest(4).get());
  const auto batch = numbers.next().get();
  static_assert(std::is_same_v<decltype(batch[0]), const std::uint64_t &>);
  for (std::size_t index = 1; index < batch.size(); ++index) {
    CHECK(&batch[index] == &batch[index - 1] + 1);
  }
}

void stream_that_is_abandoned_half_read_ends_its_writer() {
  const auto client = open_client();
  {
    auto stream = require(client.endless().get());
    CHECK(stream.next().get());
    CHECK(running_becomes(client, 1));
  }
  CHECK(running_becomes(client, 0));
  auto stream = require(client.endless().get());
  auto open = stream.next().get();
  CHECK(open);
  stream.close();
  stream.close();
  CHECK(!stream);
  open.release(); // the batch of a closed stream: no effect
  CHECK(!stream.next().get());
  CHECK_FAILS(stream.status(), stale);
  CHECK_FAILS(stream.tee(), stale);
  CHECK(running_becomes(client, 0));
}

void moved_stream_is_empty() {
  const auto client = open_client();
  auto stream = require(client.drops_newest(3).get());
  auto moved = std::move(stream);
  CHECK(!stream.next().get()); // NOLINT(bugprone-use-after-move)
  CHECK_FAILS(stream.status(), stale);
  CHECK(read(moved, 3) == 3);
  stream = std::move(moved);
  CHECK(!stream.next().get());
  CHECK(stream.status().has_value());
  thalweg::stream<std::uint64_t> closed;
  CHECK(!closed.next().get());
  CHECK_FAILS(closed.status(), stale);
}

void wait_with_a_deadline_times_out_and_the_stream_continues() {
  const auto client = open_client();
  const auto other = require(client.attach());
  auto stream = require(client.ticks().get());
  CHECK(!stream.next().get(20ms));
  CHECK_FAILS(stream.status(), timed_out);
  require_ok(other.tick(2).get());
  CHECK(read(stream, 2) == 2);
  require_ok(other.mark(7).get());
  const auto control = stream.next().get(1min);
  CHECK(control.is_control() && control[0] == 7);
}

void end_of_a_stream_has_its_error() {
  const auto client = open_client();
  auto broken = require(client.breaks(20000).get());
  for (const auto batch : broken) {
    CHECK(batch);
  }
  CHECK_FAILS(broken.status(), guest_panicked);
  const auto again = open_client();
  auto failed = require(again.stops(4, "fail").get());
  for (const auto batch : failed) {
    CHECK(batch);
  }
  const auto status = failed.status();
  CHECK_FAILS(status, error);
  CHECK(status.error().payload() != nullptr &&
        status.error().payload()->get_if<conformance::failure::code>()->value == 4);
  auto dropped = require(again.stops(4, "drop").get());
  for (const auto batch : dropped) {
    CHECK(batch);
  }
  CHECK_FAILS(dropped.status(), guest_lost);
}

void lost_records_are_counted() {
  const auto client = open_client();
  auto stream = require(client.drops_oldest(1000).get());
  std::uint64_t seen = 0;
  std::uint64_t lost = 0;
  for (const auto batch : stream) {
    lost += batch.lost_before();
    seen += batch.size();
    if (batch.lost_before() != 0) {
      CHECK(batch.gap_reason() == TW_GAP_DROPPED_OLDEST);
    }
  }
  CHECK(seen + lost == 1000 && lost > 0);
  CHECK(require(stream.stats()).published == 1000);
}

void tee_reads_independently() {
  const auto client = open_client();
  const auto other = require(client.attach());
  auto stream = require(client.ticks().get());
  auto second = require(stream.tee());
  require_ok(other.tick(3).get());
  stream.close();
  CHECK(read(second, 3) == 3);
}

void future_returns_its_value() {
  const auto client = open_client();
  auto text = require(client.later(1, "soon").get());
  CHECK(require(text.wait().get()) == "soon");
  CHECK(require(text.wait().get()) == "soon");
  auto signal = require(client.signal(1).get());
  CHECK(signal.wait().get().has_value());
  auto never = require(client.never_comes(std::nullopt).get());
  CHECK_FAILS(never.wait().get(), guest_lost);
  auto failed = require(client.fails_to_come(8).get());
  const auto why = failed.wait().get();
  CHECK_FAILS(why, error);
  CHECK(why.error().payload()->get_if<conformance::failure::code>()->value == 8);
}

void streams_inside_values_are_taken_out() {
  const auto client = open_client();
  auto feeds = require(client.feeds(4).get());
  CHECK(feeds->size() == 4);
  for (std::size_t index = 0; index < feeds->size(); ++index) {
    conformance::feed &feed = (*feeds)[index];
    std::size_t count = 0;
    for (const auto batch : feed.numbers) {
      count += batch.size();
    }
    CHECK(count == index && feed.numbers.status().has_value());
    CHECK(feed.last.has_value() == (index % 2 == 1));
    if (feed.last) {
      CHECK(require(feed.last->wait().get()) == feed.name);
    }
  }
}

void caller_writes_a_stream() {
  const auto client = open_client();
  auto numbers = require(client.sum_of_numbers());
  for (std::uint64_t number = 1; number <= 100; ++number) {
    require_ok(numbers.send(number).get());
  }
  require_ok(numbers.finish());
  const auto sum = require(client.sum_of(numbers).get());
  CHECK(*sum == std::make_tuple(std::uint64_t{100}, std::uint64_t{5050}));
  // The service stopped reading, so a further element is refused.
  CHECK(!numbers.send(1).get().has_value());
  numbers.close();
  CHECK_FAILS(numbers.send(1).get(), stale);
  CHECK_FAILS(numbers.finish(), stale);

  auto full = require(client.sum_of_numbers());
  thalweg::result<void> sent;
  for (int tries = 0; tries < 100000 && sent; ++tries) {
    sent = full.send(1).get(1ms);
  }
  CHECK_FAILS(sent, timed_out);
  auto unfinished = require(client.sum_of_numbers());
  require_ok(unfinished.send(1).get());
  auto call = client.sum_of(unfinished);
  unfinished.close();
  const auto cancelled = call.get();
  CHECK_FAILS(cancelled, error);
  CHECK(cancelled.error().payload() != nullptr && *cancelled.error().payload() == TW_CANCELLED);
}

void caller_sets_a_future() {
  const auto client = open_client();
  auto text = require(client.hear_text());
  require_ok(text.send("heard").get());
  CHECK(*require(client.hear(text).get()) == "heard");
  auto signal = require(client.comes_signal());
  require_ok(signal.send({}).get());
  CHECK(client.comes(signal).get().has_value());
}

void stream_outlives_its_client() {
  auto client = open_client();
  auto stream = require(client.endless().get());
  CHECK(stream.next().get());
  require_ok(client.close());
  while (stream.next().get()) {
  }
  CHECK_FAILS(stream.status(), cancelled);
}

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  RUN(all_records_are_read_in_order);
  RUN(records_with_text_are_views);
  RUN(plain_records_are_references_into_the_batch);
  RUN(stream_that_is_abandoned_half_read_ends_its_writer);
  RUN(moved_stream_is_empty);
  RUN(wait_with_a_deadline_times_out_and_the_stream_continues);
  RUN(end_of_a_stream_has_its_error);
  RUN(lost_records_are_counted);
  RUN(tee_reads_independently);
  RUN(future_returns_its_value);
  RUN(streams_inside_values_are_taken_out);
  RUN(caller_writes_a_stream);
  RUN(caller_sets_a_future);
  RUN(stream_outlives_its_client);
  return done("streams");
}
