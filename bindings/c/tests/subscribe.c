/* Streams with a typed callback. */
#include "host.h"

static conformance_client client;

/* The ctx of a callback, with counts of its calls and records. The test reads it after the join. */
typedef struct received {
  uint64_t calls;
  uint64_t next; /* the expected number of the next record */
  uint64_t controls;
  uint64_t control; /* the last control record */
  uint64_t lost;
  uint32_t reason;
  uint32_t ended;   /* the outcome; 0: not ended */
  uint32_t after;   /* calls after the end, or after the drop */
  uint32_t dropped; /* number of calls of drop_ctx */
  uint64_t stop_at; /* stops when `next` reaches it; 0: never */
  tw_stream closes; /* closed in the first call, if it has a table */
  uint32_t closed_in_it;
} received;

static void drop(void *ctx) {
  ((received *)ctx)->dropped++;
}

static bool is_over(received *mine, const tw_batch *batch, const tw_error *outcome) {
  mine->calls++;
  mine->after += mine->ended != 0 || mine->dropped != 0;
  mine->lost += batch->lost_before;
  mine->reason = batch->lost_before ? batch->gap_reason : mine->reason;
  if (outcome) {
    CHECK(batch->count == 0 && batch->flags == TW_BATCH_END);
    mine->ended = outcome->code;
  }
  return outcome != NULL;
}

static uint32_t take_items(void *ctx, const conformance_item_batch *batch,
                           const tw_error *outcome) {
  received *mine = (received *)ctx;
  uint32_t i;
  if (is_over(mine, &batch->tw, outcome)) {
    return 0;
  }
  for (i = 0; i < batch->tw.count; i++, mine->next++) {
    const conformance_item *item = conformance_item_batch_at(batch, i);
    char name[32];
    snprintf(name, sizeof(name), "item %" PRIu64, mine->next);
    CHECK(item->number == mine->next);
    CHECK(tw_text_equal(conformance_item_name(batch->tw.base, item), tw_text_of(name)));
    CHECK(conformance_item_tags(batch->tw.base, item).count == mine->next % 3);
  }
  return mine->stop_at != 0 && mine->next >= mine->stop_at;
}

static uint32_t take_numbers(void *ctx, const conformance_u64_batch *batch,
                             const tw_error *outcome) {
  received *mine = (received *)ctx;
  uint32_t i;
  if (mine->closes.table) {
    mine->closed_in_it = tw_stream_close(&mine->closes, NULL);
  }
  if (is_over(mine, &batch->tw, outcome)) {
    return 0;
  }
  for (i = 0; i < batch->tw.count; i++) {
    uint64_t number = *conformance_u64_batch_at(batch, i);
    if (batch->tw.flags & TW_BATCH_CONTROL) {
      mine->controls++;
      mine->control = number;
    } else {
      CHECK(number == mine->next);
      mine->next = number + 1;
    }
  }
  return mine->stop_at != 0 && mine->next >= mine->stop_at;
}

static conformance_item_stream items(uint64_t count) {
  conformance_items_result result;
  tw_error error;
  REQUIRE_OK(conformance_items(&client, count, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok;
}

static void callback_receives_records_then_the_outcome_then_drop(void) {
  conformance_item_stream stream = items(5000);
  received mine = {0};
  tw_error error;
  REQUIRE_OK(conformance_item_stream_subscribe(&stream, take_items, &mine, drop, &error), error);
  REQUIRE_OK(tw_stream_join(&stream.tw, TW_FOREVER, &error), error);
  CHECK(mine.next == 5000 && mine.lost == 0);
  CHECK_CODE(mine.ended, TW_CLOSED);
  CHECK(mine.dropped == 1 && mine.after == 0);
  CHECK_CODE(conformance_item_stream_close(&stream, &error), TW_OK);
}

static void callback_that_returns_nonzero_is_not_called_again(void) {
  conformance_item_stream stream = items(UINT64_MAX);
  received mine = {0};
  tw_error error;
  mine.stop_at = 1000;
  REQUIRE_OK(conformance_item_stream_subscribe(&stream, take_items, &mine, drop, &error), error);
  REQUIRE_OK(tw_stream_join(&stream.tw, TW_FOREVER, &error), error);
  CHECK(mine.next >= 1000 && mine.ended == 0 && mine.dropped == 1 && mine.after == 0);
  CHECK_CODE(conformance_item_stream_close(&stream, &error), TW_OK);
}

static conformance_u64_stream ticks(void) {
  conformance_ticks_result result;
  tw_error error;
  REQUIRE_OK(conformance_ticks(&client, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok;
}

static void tick(uint32_t count) {
  conformance_tick_result result;
  tw_error error;
  REQUIRE_OK(conformance_tick(&client, count, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
}

static void mark(uint64_t number) {
  conformance_mark_result result;
  tw_error error;
  REQUIRE_OK(conformance_mark(&client, number, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
}

static void end_ticks(void) {
  conformance_end_ticks_result result;
  tw_error error;
  REQUIRE_OK(conformance_end_ticks(&client, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
}

static void control_records_are_flagged_and_a_second_reader_continues(void) {
  conformance_u64_stream stream = ticks();
  conformance_u64_stream second;
  conformance_u64_batch batch;
  received mine = {0};
  tw_error error;
  uint64_t read = 0;
  REQUIRE_OK(tw_stream_tee(&stream.tw, &second.tw, &error), error);
  REQUIRE_OK(conformance_u64_stream_subscribe(&stream, take_numbers, &mine, drop, &error), error);
  tick(10);
  mark(7);
  tick(20);
  end_ticks();
  REQUIRE_OK(tw_stream_join(&stream.tw, TW_FOREVER, &error), error);
  CHECK(mine.next == 30 && mine.controls == 1 && mine.control == 7);
  CHECK(mine.dropped == 1 && mine.after == 0);
  while (conformance_u64_stream_acquire(&second, 8, TW_FOREVER, &batch, &error) == TW_OK) {
    read += batch.tw.flags & TW_BATCH_CONTROL ? 0 : batch.tw.count;
    conformance_u64_stream_release(&second, batch.tw.count, NULL);
  }
  CHECK(read == 30);
  CHECK_CODE(conformance_u64_stream_close(&second, &error), TW_OK);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
}

static void lost_records_are_reported_with_their_reason(void) {
  conformance_drops_newest_result result;
  received mine = {0};
  tw_error error;
  REQUIRE_OK(conformance_drops_newest(&client, 1000, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  REQUIRE_OK(conformance_u64_stream_subscribe(&result.ok, take_numbers, &mine, drop, &error),
             error);
  REQUIRE_OK(tw_stream_join(&result.ok.tw, TW_FOREVER, &error), error);
  CHECK(mine.lost > 0 && mine.next + mine.lost == 1000);
  CHECK(mine.reason == TW_GAP_DROPPED_NEWEST);
  CHECK_CODE(conformance_u64_stream_close(&result.ok, &error), TW_OK);
}

static void callback_that_closes_its_stream_is_not_called_again(void) {
  conformance_u64_stream stream = ticks();
  received mine = {0};
  tw_error error;
  mine.closes = stream.tw;
  REQUIRE_OK(conformance_u64_stream_subscribe(&stream, take_numbers, &mine, drop, &error), error);
  /* Two writes, so that the callback would be called twice. */
  tick(1);
  tick(1);
  CHECK_CODE(mine.closed_in_it, TW_OK);
  CHECK(mine.calls == 1 && mine.ended == 0 && mine.dropped == 1);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_STALE);
}

static void refused_subscription_leaves_ctx_with_the_caller(void) {
  conformance_u64_stream stream = ticks();
  conformance_u64_stream copy = stream;
  received mine = {0};
  tw_error error;
  CHECK_CODE(conformance_u64_stream_subscribe(&stream, NULL, &mine, drop, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(conformance_u64_stream_subscribe(&copy, take_numbers, &mine, drop, &error), TW_STALE);
  CHECK(mine.dropped == 0 && mine.calls == 0);
  end_ticks();
}

/* The records are smaller than those that this program was built for. */
static void too_small_records_end_the_stream(void) {
  received mine = {0};
  tw_subscriber to = {(void (*)(void))take_numbers, NULL, NULL};
  tw_batch batch = {0};
  to.ctx = &mine;
  batch.count = 3;
  batch.stride = 4;
  CHECK(conformance_u64_stream_deliver(&to, &batch, NULL) != 0);
  CHECK_CODE(mine.ended, TW_VERSION);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  client = open_client(4);
  RUN(callback_receives_records_then_the_outcome_then_drop);
  RUN(callback_that_returns_nonzero_is_not_called_again);
  RUN(control_records_are_flagged_and_a_second_reader_continues);
  RUN(lost_records_are_reported_with_their_reason);
  RUN(callback_that_closes_its_stream_is_not_called_again);
  RUN(refused_subscription_leaves_ctx_with_the_caller);
  RUN(too_small_records_end_the_stream);
  close_client(&client);
  return done("subscribe");
}
