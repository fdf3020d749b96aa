/* Resources, streams and futures inside values: taken out of a reply, put into arguments, and
 * closed if they are not taken. */
#include "host.h"

static conformance_client client;

/* Whether the number of counters in the service becomes `wanted` within a minute. */
static bool counters_become(uint32_t wanted) {
  const uint64_t until = library.table->now() + 60000 * MILLISECOND;
  conformance_counters_result result;
  tw_error error;
  do {
    REQUIRE_OK(conformance_counters(&client, TW_FOREVER, &result, &error), error);
  } while (result.ok != wanted && library.table->now() < until);
  return result.ok == wanted;
}

static uint64_t value_of(conformance_counter counter) {
  conformance_counter_value_result result;
  tw_error error;
  REQUIRE_OK(conformance_counter_value(&client, counter, TW_FOREVER, &result, &error), error);
  return result.ok;
}

static conformance_give_counters_result given(uint64_t start, uint32_t count) {
  conformance_give_counters_result result;
  tw_error error;
  REQUIRE_OK(conformance_give_counters(&client, start, count, TW_FOREVER, &result, &error), error);
  return result;
}

static void release_closes_resources_of_a_list_that_were_not_taken(void) {
  conformance_give_counters_result result = given(10, 3);
  conformance_counter counter;
  conformance_counter again;
  tw_error error;
  CHECK(result.ok.count == 3);
  CHECK_CODE(conformance_counter_take(&result.reply, result.ok.items[1], &counter, &error), TW_OK);
  CHECK_CODE(conformance_counter_take(&result.reply, result.ok.items[1], &again, &error),
             TW_ARGUMENT);
  CHECK(again.tw.handle == 0);
  CHECK(counters_become(3));
  tw_reply_release(&result.reply);
  CHECK(counters_become(1));
  CHECK(value_of(counter) == 11);
  CHECK_CODE(conformance_counter_close(&counter, &error), TW_OK);
  CHECK(counters_become(0));
}

static void resources_in_a_record_and_an_option_are_passed_both_ways(void) {
  conformance_give_counters_result three = given(1, 2);
  conformance_counter left;
  conformance_counter right;
  conformance_pair_in pair;
  conformance_swap_result result;
  tw_handle_ref ref = {0};
  tw_error error;
  REQUIRE_OK(conformance_counter_take(&three.reply, three.ok.items[0], &left, &error), error);
  REQUIRE_OK(conformance_counter_take(&three.reply, three.ok.items[1], &right, &error), error);
  tw_reply_release(&three.reply);
  memset(&pair, 0, sizeof(pair));
  pair.name = tw_text_of("pair");
  pair.left = left.tw;
  pair.right.some = true;
  pair.right.value = right.tw;
  CHECK_CODE(conformance_swap(&client, &pair, TW_FOREVER, &result, &error), TW_OK);
  CHECK(conformance_pair_right(result.reply.base, result.ok, &ref));
  CHECK_CODE(conformance_counter_take(&result.reply, ref, &right, &error), TW_OK);
  CHECK_CODE(conformance_counter_take(&result.reply, result.ok->left, &left, &error), TW_OK);
  CHECK(value_of(left) == 2 && value_of(right) == 1);
  tw_reply_release(&result.reply);
  /* Without `right` the result is an error, which contains `left`. */
  pair.left = left.tw;
  pair.right.some = false;
  CHECK_CODE(conformance_swap(&client, &pair, TW_FOREVER, &result, &error), TW_ERROR);
  CHECK(conformance_maybe_counter_one(result.reply.base, result.error, &ref));
  CHECK_CODE(conformance_counter_take(&result.reply, ref, &left, &error), TW_OK);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_counter_close(&left, &error), TW_OK);
  CHECK_CODE(conformance_counter_close(&right, &error), TW_OK);
  CHECK(counters_become(0));
}

static void list_with_null_items_is_refused(void) {
  conformance_list_counter_in list = {NULL, 3};
  conformance_total_result result;
  tw_error error;
  CHECK_CODE(conformance_total(&client, list, TW_FOREVER, &result, &error), TW_ARGUMENT);
}

static void take_after_release_is_refused(void) {
  conformance_give_counters_result result = given(1, 1);
  tw_handle_ref ref = result.ok.items[0];
  conformance_counter counter;
  tw_error error;
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_counter_take(&result.reply, ref, &counter, &error), TW_ARGUMENT);
  CHECK(counters_become(0));
}

/* Whether the number of feeds that are being written becomes `wanted` within a minute. */
static bool running_become(uint32_t wanted) {
  const uint64_t until = library.table->now() + 60000 * MILLISECOND;
  conformance_running_result result;
  tw_error error;
  do {
    REQUIRE_OK(conformance_running(&client, TW_FOREVER, &result, &error), error);
  } while (result.ok != wanted && library.table->now() < until);
  return result.ok == wanted;
}

static void taken_stream_outlives_its_reply(void) {
  conformance_endless_feed_result result;
  conformance_u64_stream numbers;
  conformance_u64_batch batch;
  tw_handle_ref ref;
  tw_error error;
  REQUIRE_OK(conformance_endless_feed(&client, TW_FOREVER, &result, &error), error);
  ref = result.ok->numbers;
  CHECK_CODE(conformance_u64_stream_take(&result.reply, ref, &numbers, &error), TW_OK);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_u64_stream_acquire(&numbers, 1, TW_FOREVER, &batch, &error), TW_OK);
  CHECK(*conformance_u64_batch_at(&batch, 0) == 0);
  CHECK(running_become(1));
  CHECK_CODE(conformance_u64_stream_close(&numbers, &error), TW_OK);
  CHECK(running_become(0));
}

static void stream_is_taken_once_and_closed_if_not_taken(void) {
  conformance_endless_feed_result result;
  conformance_u64_stream numbers;
  conformance_u64_stream again;
  tw_handle_ref ref;
  tw_error error;
  REQUIRE_OK(conformance_endless_feed(&client, TW_FOREVER, &result, &error), error);
  ref = result.ok->numbers;
  CHECK(running_become(1));
  tw_reply_release(&result.reply);
  CHECK(running_become(0));
  CHECK_CODE(conformance_u64_stream_take(&result.reply, ref, &again, &error), TW_ARGUMENT);
  CHECK(again.tw.handle == 0);
  REQUIRE_OK(conformance_endless_feed(&client, TW_FOREVER, &result, &error), error);
  ref = result.ok->numbers;
  CHECK_CODE(conformance_u64_stream_take(&result.reply, ref, &numbers, &error), TW_OK);
  CHECK_CODE(conformance_u64_stream_take(&result.reply, ref, &again, &error), TW_ARGUMENT);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_u64_stream_close(&numbers, &error), TW_OK);
  CHECK(running_become(0));
}

static void futures_and_streams_of_an_error_can_be_taken(void) {
  conformance_mixed_result result;
  conformance_void_stream nothing;
  conformance_point_future future;
  conformance_u64_stream numbers;
  conformance_u64_batch batch;
  tw_batch value;
  const conformance_point *point;
  tw_error error;
  REQUIRE_OK(conformance_mixed(&client, 3, TW_FOREVER, &result, &error), error);
  CHECK_CODE(conformance_point_future_take(&result.reply, result.ok->f1, &future, &error), TW_OK);
  CHECK_CODE(conformance_void_stream_take(&result.reply, result.ok->f0, &nothing, &error), TW_OK);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_point_future_wait(&future, TW_FOREVER, &value, &point, &error), TW_OK);
  CHECK(point && point->x == 3 && point->y == 0);
  CHECK_CODE(conformance_point_future_close(&future, &error), TW_OK);
  CHECK_CODE(conformance_void_stream_close(&nothing, &error), TW_OK);

  CHECK_CODE(conformance_mixed(&client, 0, TW_FOREVER, &result, &error), TW_ERROR);
  CHECK_CODE(conformance_u64_stream_take(&result.reply, result.error->numbers, &numbers, &error),
             TW_OK);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_u64_stream_acquire(&numbers, 1, TW_FOREVER, &batch, &error), TW_OK);
  CHECK(*conformance_u64_batch_at(&batch, 0) == 0);
  CHECK_CODE(conformance_u64_stream_close(&numbers, &error), TW_OK);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  client = open_client(16);
  RUN(release_closes_resources_of_a_list_that_were_not_taken);
  RUN(resources_in_a_record_and_an_option_are_passed_both_ways);
  RUN(list_with_null_items_is_refused);
  RUN(take_after_release_is_refused);
  RUN(taken_stream_outlives_its_reply);
  RUN(stream_is_taken_once_and_closed_if_not_taken);
  RUN(futures_and_streams_of_an_error_can_be_taken);
  close_client(&client);
  return done("handles");
}
