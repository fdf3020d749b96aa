/* Where a client has no room for a call. */
#include <pthread.h>

#include "host.h"

/* Of a client, where nothing else is said. */
#define CALLS 4096

/* The service reads what is sent to it by `block`, and has room for nothing more. */
typedef struct crowd {
  conformance_client client;
  conformance_item_stream_writer block;
  uint32_t waiting;
} crowd;

/* Submits `nothing` once; the code. */
static uint32_t submit(const crowd *it, uint64_t token, uint32_t flags, uint64_t deadline_ns) {
  tw_request request;
  tw_error error;
  uint32_t accepted = 0;
  uint32_t code;
  REQUIRE_OK(tw_request_end(conformance_nothing_prepare(&it->client, &request), &error), error);
  request.submission.token = token;
  request.submission.flags = flags;
  request.submission.deadline_ns = deadline_ns;
  code = it->client.tw.table->submit(it->client.tw.port, &request.submission, 1, &accepted, &error);
  CHECK(accepted == (code == TW_OK));
  tw_request_free(&request);
  return code;
}

static crowd crowded(void) {
  tw_request request;
  crowd it;
  tw_error error;
  it.client = open_client(2 * CALLS);
  it.waiting = 0;
  REQUIRE_OK(conformance_names_of_items_open(&it.client, &it.block, &error), error);
  REQUIRE_OK(submit_request(conformance_names_of_prepare(&it.client, &it.block, &request), 0, NULL,
                            &error),
             error);
  /* A turn may have taken some of them out of the way. */
  while (submit(&it, 1, 0, TW_FOREVER) == TW_OK) {
    it.waiting += 1;
  }
  CHECK(it.waiting >= CALLS - 1 && it.waiting <= CALLS + 64);
  return it;
}

/* Lets the service go on. */
static void let_go(crowd *it) {
  tw_error error;
  REQUIRE_OK(conformance_item_stream_writer_finish(&it->block, &error), error);
  REQUIRE_OK(conformance_item_stream_writer_close(&it->block, &error), error);
}

/* Reaps `count` completions, all of which are TW_OK. */
static void reap_all(crowd *it, uint32_t count) {
  while (count > 0) {
    tw_completion completion = next_completion(&it->client);
    CHECK(completion.code == TW_OK);
    it->client.tw.table->release(&completion);
    count -= 1;
  }
}

static void without_the_flag_a_call_is_refused_where_the_policy_is_to_wait(void) {
  crowd it = crowded();
  const tw_method *method = &it.client.tw.table->methods[CONFORMANCE_METHOD_NOTHING];
  CHECK(method->flags & TW_METHOD_CAN_BLOCK);
  CHECK(submit(&it, 2, 0, TW_FOREVER) == TW_OVERLOADED);
  let_go(&it);
  reap_all(&it, it.waiting + 1);
  close_client(&it.client);
}

static void who_waits_until_the_deadline_has_a_call_that_timed_out(void) {
  crowd it = crowded();
  const tw_table *table = it.client.tw.table;
  tw_completion completion;
  CHECK(submit(&it, 2, TW_SUBMIT_BLOCK, table->now() + 20 * MILLISECOND) == TW_OK);
  completion = next_completion(&it.client);
  CHECK(completion.token == 2 && completion.code == TW_TIMED_OUT);
  table->release(&completion);
  let_go(&it);
  reap_all(&it, it.waiting + 1);
  close_client(&it.client);
}

static void *lets_go_soon(void *of) {
  sleep_ms(20);
  let_go((crowd *)of);
  return NULL;
}

static void who_waits_goes_on_when_there_is_room(void) {
  crowd it = crowded();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, lets_go_soon, &it) == 0);
  CHECK(submit(&it, 2, TW_SUBMIT_BLOCK, TW_FOREVER) == TW_OK);
  pthread_join(thread, NULL);
  reap_all(&it, it.waiting + 2);
  close_client(&it.client);
}

/* A blocking call sets the flag itself. */
static void a_blocking_call_waits_for_room(void) {
  crowd it = crowded();
  conformance_client other;
  conformance_nothing_result result;
  pthread_t thread;
  tw_error error;
  REQUIRE_OK(conformance_client_attach(&it.client, 1, &other, &error), error);
  CHECK(pthread_create(&thread, NULL, lets_go_soon, &it) == 0);
  REQUIRE_OK(conformance_nothing(&other, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  pthread_join(thread, NULL);
  reap_all(&it, it.waiting + 1);
  close_client(&other);
  close_client(&it.client);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  RUN(without_the_flag_a_call_is_refused_where_the_policy_is_to_wait);
  RUN(who_waits_until_the_deadline_has_a_call_that_timed_out);
  RUN(who_waits_goes_on_when_there_is_room);
  RUN(a_blocking_call_waits_for_room);
  return done("waits");
}
