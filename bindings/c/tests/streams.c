/* Streams of the conformance library, read as batch views. */
#include <pthread.h>

#include "host.h"

static conformance_client client;

static conformance_u64_stream numbers(uint64_t first, uint64_t count, uint64_t deadline_ns) {
  conformance_count_result result;
  tw_error error;
  REQUIRE_OK(conformance_count(&client, first, count, deadline_ns, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok;
}

static conformance_u64_stream endless(void) {
  conformance_endless_result result;
  tw_error error;
  REQUIRE_OK(conformance_endless(&client, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void numbers_are_read_in_order_until_closed(void) {
  conformance_u64_stream stream = numbers(5, 20000, TW_FOREVER);
  conformance_u64_batch batch;
  tw_error error;
  uint64_t next = 5;
  uint32_t code;
  uint32_t i;
  while ((code = conformance_u64_stream_acquire(&stream, 100, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    CHECK(batch.tw.count >= 1 && batch.tw.count <= 100);
    CHECK(batch.tw.first_seq == next - 5 && batch.tw.lost_before == 0 && batch.tw.gap_reason == 0);
    for (i = 0; i < batch.tw.count; i++) {
      CHECK(*conformance_u64_batch_at(&batch, i) == next);
      next++;
    }
    CHECK_CODE(conformance_u64_stream_release(&stream, batch.tw.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(batch.tw.flags == TW_BATCH_END && next == 20005);
  /* The end is reported again. */
  CHECK_CODE(conformance_u64_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error), TW_CLOSED);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
}

static void records_have_text_and_lists_in_place(void) {
  conformance_items_result result;
  conformance_item_batch batch;
  tw_error error;
  uint64_t next = 0;
  uint32_t code;
  uint32_t i;
  REQUIRE_OK(conformance_items(&client, 1000, TW_FOREVER, &result, &error), error);
  while ((code = conformance_item_stream_acquire(&result.ok, 64, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    for (i = 0; i < batch.tw.count; i++, next++) {
      const conformance_item *item = conformance_item_batch_at(&batch, i);
      char name[32];
      tw_bytes blob;
      snprintf(name, sizeof(name), "item %u", (unsigned)next);
      CHECK(item->number == next);
      CHECK(tw_text_equal(conformance_item_name(batch.tw.base, item), tw_text_of(name)));
      CHECK(conformance_item_tags(batch.tw.base, item).count == next % 3);
      CHECK(conformance_item_blob(batch.tw.base, item, &blob) == (next % 2 == 0));
    }
    CHECK(batch.tw.size >= (uint64_t)batch.tw.count * batch.tw.stride);
    CHECK_CODE(conformance_item_stream_release(&result.ok, batch.tw.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(next == 1000);
  CHECK_CODE(conformance_item_stream_close(&result.ok, &error), TW_OK);
}

static void retained_batch_outlives_release_and_close(void) {
  conformance_u64_stream stream = numbers(0, 100000, TW_FOREVER);
  conformance_u64_batch batch;
  conformance_u64_batch kept;
  tw_error error;
  tw_handle memory = 0;
  tw_handle again = 0;
  uint32_t i;
  int turn;
  CHECK_CODE(client.tw.table->stream_retain_batch(stream.tw.handle, &memory, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_acquire(&stream, 100, TW_FOREVER, &kept, &error), TW_OK);
  CHECK_CODE(client.tw.table->stream_retain_batch(stream.tw.handle, &memory, &error), TW_OK);
  CHECK_CODE(client.tw.table->stream_retain_batch(stream.tw.handle, &again, &error), TW_OK);
  CHECK(memory != again);
  CHECK_CODE(client.tw.table->stream_release(memory, 1, &error), TW_ARGUMENT);
  CHECK_CODE(client.tw.table->retained_batch_release(stream.tw.handle, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_release(&stream, kept.tw.count, &error), TW_OK);
  for (turn = 0; turn < 200; turn++) {
    CHECK_CODE(conformance_u64_stream_acquire(&stream, 256, TW_FOREVER, &batch, &error), TW_OK);
    CHECK_CODE(conformance_u64_stream_release(&stream, batch.tw.count, &error), TW_OK);
  }
  CHECK_CODE(client.tw.table->retained_batch_release(memory, &error), TW_OK);
  CHECK_CODE(client.tw.table->retained_batch_release(memory, &error), TW_STALE);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
  for (i = 0; i < kept.tw.count; i++) {
    CHECK(*conformance_u64_batch_at(&kept, i) == i);
  }
  CHECK_CODE(client.tw.table->retained_batch_release(again, &error), TW_OK);
}

static void batch_is_released_in_parts(void) {
  conformance_u64_stream stream = numbers(0, 1000, TW_FOREVER);
  conformance_u64_batch batch;
  conformance_u64_batch other;
  tw_error error;
  tw_stats stats;
  uint64_t first;
  do {
    CHECK_CODE(tw_stream_stats(&stream.tw, &stats, &error), TW_OK);
  } while (stats.occupancy < 1000);
  REQUIRE_OK(conformance_u64_stream_acquire(&stream, 10, TW_FOREVER, &batch, &error), error);
  CHECK(batch.tw.count == 10);
  CHECK_CODE(conformance_u64_stream_release(&stream, 4, &error), TW_OK);
  CHECK(*conformance_u64_batch_at(&batch, 9) == 9);
  /* A debug build overwrites released records. */
  CHECK(*conformance_u64_batch_at(&batch, 3) == UINT64_C(0xdbdbdbdbdbdbdbdb));
  /* Only one batch can be open, and no more than its records can be released. */
  CHECK_CODE(conformance_u64_stream_acquire(&stream, 1, TW_FOREVER, &other, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_release(&stream, 7, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_release(&stream, 6, &error), TW_OK);
  CHECK_CODE(conformance_u64_stream_release(&stream, 1, &error), TW_ARGUMENT);
  REQUIRE_OK(conformance_u64_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error), error);
  first = *conformance_u64_batch_at(&batch, 0);
  CHECK(first == 10 && batch.tw.first_seq == 10);
  CHECK_CODE(conformance_u64_stream_acquire(&stream, 0, 0, &other, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
}

static void latest_policy_delivers_the_newest_and_counts_the_rest(void) {
  conformance_latest_result result;
  conformance_u64_batch batch;
  tw_error error;
  uint64_t delivered = 0;
  uint64_t lost = 0;
  uint64_t last = 0;
  uint32_t code;
  REQUIRE_OK(conformance_latest(&client, 10000, TW_FOREVER, &result, &error), error);
  sleep_ms(20);
  while ((code = conformance_u64_stream_acquire(&result.ok, 8, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    CHECK((batch.tw.gap_reason == TW_GAP_CONFLATED) == (batch.tw.lost_before > 0));
    CHECK(batch.tw.first_seq == delivered + lost + batch.tw.lost_before);
    lost += batch.tw.lost_before;
    delivered += batch.tw.count;
    last = *conformance_u64_batch_at(&batch, batch.tw.count - 1);
    CHECK_CODE(conformance_u64_stream_release(&result.ok, batch.tw.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(last == 9999 && delivered + lost == 10000);
  CHECK_CODE(conformance_u64_stream_close(&result.ok, &error), TW_OK);
}

/* ---- Closing a stream ------------------------------------------------------------------------ */

static void closing_a_stream_stops_its_writer(void) {
  conformance_u64_stream stream = endless();
  conformance_u64_stream copy = stream;
  conformance_u64_batch batch;
  tw_error error;
  CHECK(running_becomes(&client, 1));
  REQUIRE_OK(conformance_u64_stream_acquire(&stream, 7, TW_FOREVER, &batch, &error), error);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK); /* with an open batch */
  CHECK(running_becomes(&client, 0));
  CHECK_CODE(conformance_u64_stream_release(&copy, 1, &error), TW_STALE);
  CHECK_CODE(conformance_u64_stream_acquire(&copy, 1, TW_FOREVER, &batch, &error), TW_STALE);
  CHECK_CODE(conformance_u64_stream_close(&copy, &error), TW_STALE);
}

static void release_closes_a_stream_that_was_not_taken(void) {
  tw_request request;
  tw_completion completion;
  tw_error error;
  REQUIRE_OK(submit_request(conformance_endless_prepare(&client, &request), 0, NULL, &error),
             error);
  completion = next_completion(&client);
  CHECK_CODE(completion.code, TW_OK);
  CHECK(running_becomes(&client, 1));
  client.tw.table->release(&completion);
  CHECK(running_becomes(&client, 0));
}

/* Reads to the end. Returns the outcome and the number of records. */
static uint32_t drain(conformance_u64_stream *stream, uint64_t *count, tw_error *error) {
  conformance_u64_batch batch;
  uint32_t code;
  *count = 0;
  while ((code = conformance_u64_stream_acquire(stream, 256, TW_FOREVER, &batch, error)) == TW_OK) {
    *count += batch.tw.count;
    REQUIRE_OK(conformance_u64_stream_release(stream, batch.tw.count, error), *error);
  }
  CHECK(batch.tw.flags == TW_BATCH_END);
  return code;
}

static void panic_is_reported_after_the_written_records(void) {
  conformance_breaks_result result;
  tw_error error;
  uint64_t count;
  /* More records than the capacity, so that the panic is after the result. */
  REQUIRE_OK(conformance_breaks(&client, 20000, TW_FOREVER, &result, &error), error);
  CHECK_CODE(drain(&result.ok, &count, &error), TW_GUEST_PANICKED);
  CHECK(count == 20000);
  CHECK_CODE(conformance_u64_stream_close(&result.ok, &error), TW_OK);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void stream_with_an_oversized_record_ends_as_guest_lost(void) {
  conformance_rows_of_result result;
  conformance_string_batch batch;
  tw_error error;
  uint32_t count = 0;
  uint32_t code;
  REQUIRE_OK(conformance_rows_of(&client, 6, 70000, TW_FOREVER, &result, &error), error);
  while ((code = conformance_string_stream_acquire(&result.ok, 100, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    count += batch.tw.count;
    CHECK_CODE(conformance_string_stream_release(&result.ok, batch.tw.count, &error), TW_OK);
  }
  CHECK(count == 6);
  CHECK_CODE(code, TW_GUEST_LOST);
  CHECK(strstr(error.message, "the record has 70,008 bytes, the limit is 65,536") != NULL);
  CHECK_CODE(conformance_string_stream_close(&result.ok, &error), TW_OK);
}

/* A stream of `count` numbers from two writers, which end as `how` says. */
static conformance_u64_stream stopped(uint64_t count, const char *how) {
  conformance_stops_result result;
  tw_error error;
  REQUIRE_OK(conformance_stops(&client, count, tw_text_of(how), TW_FOREVER, &result, &error),
             error);
  tw_reply_release(&result.reply);
  return result.ok;
}

static void stream_ends_with_the_error_of_its_function(void) {
  conformance_u64_stream stream = stopped(3, "fail");
  conformance_stops_result result;
  conformance_u64_batch batch;
  tw_error error;
  uint32_t number = 0;
  CHECK_CODE(conformance_u64_stream_acquire(&stream, 100, TW_FOREVER, &batch, &error), TW_OK);
  CHECK(batch.tw.count == 3);
  CHECK_CODE(conformance_u64_stream_release(&stream, 3, &error), TW_OK);
  CHECK_CODE(conformance_u64_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error), TW_ERROR);
  CHECK(batch.tw.flags == TW_BATCH_END);
  CHECK_CODE(conformance_stops_stream_error(&client, &stream, &result, &error), TW_ERROR);
  CHECK(conformance_failure_code(result.reply.base, result.error, &number) && number == 3);
  /* The reply may be released, and the error read again. */
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_stops_stream_error(&client, &stream, &result, &error), TW_ERROR);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(conformance_stops_stream_error(&client, &stream, &result, &error), TW_ARGUMENT);
}

static void stream_without_failure_has_no_error(void) {
  conformance_u64_stream stream = stopped(3, "drop");
  conformance_stops_result result;
  tw_error error;
  CHECK_CODE(conformance_stops_stream_error(&client, &stream, &result, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
}

static uint32_t look_at_the_error(void *ctx, const conformance_u64_batch *batch,
                                  const tw_error *ending) {
  conformance_stops_result result;
  uint32_t number = 0;
  (void)batch;
  if (ending) {
    CHECK_CODE(ending->code, TW_ERROR);
    CHECK_CODE(
        conformance_stops_stream_error(&client, (conformance_u64_stream *)ctx, &result, NULL),
        TW_ERROR);
    CHECK(conformance_failure_code(result.reply.base, result.error, &number) && number == 3);
  }
  return 0;
}

static void callback_can_read_the_error_at_the_end(void) {
  conformance_u64_stream stream = stopped(3, "fail");
  tw_error error;
  CHECK_CODE(conformance_u64_stream_subscribe(&stream, look_at_the_error, &stream, NULL, &error),
             TW_OK);
  CHECK_CODE(tw_stream_join(&stream.tw, TW_FOREVER, &error), TW_OK);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
}

static void deadline_of_a_call_applies_to_its_stream(void) {
  conformance_endless_result result;
  tw_error error;
  uint64_t count = 0;
  uint64_t time;
  /* On a busy machine, a short deadline may pass before the first number is written. */
  for (time = 50; count == 0 && time < 100000; time *= 10) {
    uint64_t deadline = tw_deadline_after(&client.tw, time * MILLISECOND);
    uint32_t code = conformance_endless(&client, deadline, &result, &error);
    if (code == TW_OK) {
      CHECK_CODE(drain(&result.ok, &count, &error), TW_TIMED_OUT);
      CHECK(client.tw.table->now() >= deadline);
      CHECK_CODE(conformance_u64_stream_close(&result.ok, &error), TW_OK);
    } else {
      CHECK_CODE(code, TW_TIMED_OUT);
      tw_reply_release(&result.reply);
    }
  }
  CHECK(count > 0);
  CHECK(running_becomes(&client, 0));
}

static void closing_the_client_ends_its_stream_and_keeps_the_batch(void) {
  conformance_client other = open_client(1);
  conformance_endless_result result;
  conformance_u64_batch batch;
  tw_error error;
  uint64_t count;
  REQUIRE_OK(conformance_endless(&other, TW_FOREVER, &result, &error), error);
  REQUIRE_OK(conformance_u64_stream_acquire(&result.ok, 5, TW_FOREVER, &batch, &error), error);
  close_client(&other);
  CHECK(*conformance_u64_batch_at(&batch, 0) == 0);
  CHECK_CODE(conformance_u64_stream_release(&result.ok, batch.tw.count, &error), TW_OK);
  CHECK_CODE(drain(&result.ok, &count, &error), TW_CANCELLED);
  CHECK_CODE(conformance_u64_stream_close(&result.ok, &error), TW_OK);
}

static void *count_the_rest(void *ctx) {
  conformance_u64_stream *stream = (conformance_u64_stream *)ctx;
  conformance_u64_batch batch;
  tw_error error;
  uint64_t next = 0;
  uint64_t count = 0;
  uint32_t i;
  while (conformance_u64_stream_acquire(stream, 64, TW_FOREVER, &batch, &error) == TW_OK) {
    for (i = 0; i < batch.tw.count; i++, count++) {
      uint64_t number = *conformance_u64_batch_at(&batch, i);
      CHECK(batch.tw.lost_before == 0 && (count == 0 || number == next));
      next = number + 1;
    }
    CHECK_CODE(conformance_u64_stream_release(stream, batch.tw.count, &error), TW_OK);
  }
  CHECK(next == 50000);
  CHECK_CODE(conformance_u64_stream_close(stream, &error), TW_OK);
  return NULL;
}

static void several_readers_on_threads_read_the_same_records(void) {
  conformance_u64_stream readers[3];
  conformance_u64_stream gone;
  pthread_t threads[3];
  tw_error error;
  int i;
  readers[0] = numbers(0, 50000, TW_FOREVER);
  CHECK_CODE(tw_stream_tee(&readers[0].tw, &gone.tw, &error), TW_OK);
  CHECK_CODE(tw_stream_tee(&readers[0].tw, &readers[1].tw, &error), TW_OK);
  CHECK_CODE(tw_stream_tee(&gone.tw, &readers[2].tw, &error), TW_OK);
  for (i = 0; i < 3; i++) {
    CHECK(pthread_create(&threads[i], NULL, count_the_rest, &readers[i]) == 0);
  }
  /* The slowest reader blocks all others until it is closed. */
  CHECK_CODE(conformance_u64_stream_close(&gone, &error), TW_OK);
  for (i = 0; i < 3; i++) {
    pthread_join(threads[i], NULL);
  }
  CHECK_CODE(tw_stream_tee(&gone.tw, &readers[0].tw, &error), TW_ARGUMENT);
}

static void counters_of_a_method_outlive_its_streams(void) {
  conformance_client other = open_client(1);
  conformance_count_result result;
  tw_stats stats;
  tw_stats earlier;
  tw_error error;
  uint64_t count;
  int i;
  for (i = 1; i <= 3; i++) {
    REQUIRE_OK(conformance_count(&other, 0, 1000, TW_FOREVER, &result, &error), error);
    CHECK_CODE(drain(&result.ok, &count, &error), TW_CLOSED);
    CHECK_CODE(tw_stream_stats(&result.ok.tw, &stats, &error), TW_OK);
    CHECK(stats.streams == (uint64_t)i && stats.delivered == 1000u * (uint64_t)i);
    CHECK(stats.published == stats.delivered && stats.occupancy == 0 && stats.faults == 0);
    CHECK(stats.lost[TW_GAP_CONFLATED] == 0 && stats.high_water > 0);
    CHECK_CODE(conformance_u64_stream_close(&result.ok, &error), TW_OK);
  }
  /* With the client's handle, and with a smaller struct. */
  for (i = 0; i < (int)library.table->method_count; i++) {
    if (strcmp(library.table->methods[i].name, "conformance.count") == 0) {
      break;
    }
  }
  memset(&earlier, 0xff, sizeof(earlier));
  CHECK_CODE(library.table->stream_stats(other.tw.instance, (uint32_t)i, &earlier, 24, &error),
             TW_OK);
  CHECK(earlier.streams == 3 && earlier.delivered == 3000 && earlier.undelivered == UINT64_MAX);
  CHECK_CODE(library.table->stream_stats(other.tw.instance, 9999, &stats, sizeof(stats), &error),
             TW_ARGUMENT);
  close_client(&other);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  client = open_client(16);
  RUN(numbers_are_read_in_order_until_closed);
  RUN(records_have_text_and_lists_in_place);
  RUN(retained_batch_outlives_release_and_close);
  RUN(batch_is_released_in_parts);
  RUN(latest_policy_delivers_the_newest_and_counts_the_rest);
  RUN(closing_a_stream_stops_its_writer);
  RUN(release_closes_a_stream_that_was_not_taken);
  RUN(panic_is_reported_after_the_written_records);
  RUN(stream_with_an_oversized_record_ends_as_guest_lost);
  RUN(stream_ends_with_the_error_of_its_function);
  RUN(stream_without_failure_has_no_error);
  RUN(callback_can_read_the_error_at_the_end);
  RUN(deadline_of_a_call_applies_to_its_stream);
  RUN(closing_the_client_ends_its_stream_and_keeps_the_batch);
  RUN(several_readers_on_threads_read_the_same_records);
  RUN(counters_of_a_method_outlive_its_streams);
  close_client(&client);
  return done("streams");
}
