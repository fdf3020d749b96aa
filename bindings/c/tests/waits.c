/* Calls to a client without capacity. */
#include <pthread.h>

#include "host.h"

/* The default limit of a client's calls. */
#define CALLS 4096

/* A client without capacity: its service reads the stream `block`, and all calls wait for that. */
typedef struct full_client {
  conformance_client client;
  conformance_item_stream_writer block;
  uint32_t waiting;
} full_client;

/* Submits a call of `nothing`. */
static uint32_t submit(const full_client *it, uint64_t token, uint32_t flags,
                       uint64_t deadline_ns) {
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

static full_client fill_client(void) {
  tw_request request;
  full_client it;
  tw_error error;
  it.client = open_client(2 * CALLS);
  it.waiting = 0;
  REQUIRE_OK(conformance_names_of_items_open(&it.client, &it.block, &error), error);
  REQUIRE_OK(submit_request(conformance_names_of_prepare(&it.client, &it.block, &request), 0, NULL,
                            &error),
             error);
  /* The service may have taken some calls out of the queue. */
  while (submit(&it, 1, 0, TW_FOREVER) == TW_OK) {
    it.waiting += 1;
  }
  CHECK(it.waiting >= CALLS - 1 && it.waiting <= CALLS + 64);
  return it;
}

/* Ends the stream, so that the service continues. */
static void let_continue(full_client *it) {
  tw_error error;
  REQUIRE_OK(conformance_item_stream_writer_finish(&it->block, &error), error);
  REQUIRE_OK(conformance_item_stream_writer_close(&it->block, &error), error);
}

/* Reaps `count` completions and checks that they are TW_OK. */
static void reap_all(full_client *it, uint32_t count) {
  while (count > 0) {
    tw_completion completion = next_completion(&it->client);
    CHECK(completion.code == TW_OK);
    it->client.tw.table->release(&completion);
    count -= 1;
  }
}

static void call_without_block_flag_is_overloaded(void) {
  full_client it = fill_client();
  const tw_method *method = &it.client.tw.table->methods[CONFORMANCE_METHOD_NOTHING];
  CHECK(method->flags & TW_METHOD_CAN_BLOCK);
  CHECK(submit(&it, 2, 0, TW_FOREVER) == TW_OVERLOADED);
  let_continue(&it);
  reap_all(&it, it.waiting + 1);
  close_client(&it.client);
}

static void blocked_call_times_out_at_its_deadline(void) {
  full_client it = fill_client();
  const tw_table *table = it.client.tw.table;
  tw_completion completion;
  CHECK(submit(&it, 2, TW_SUBMIT_BLOCK, table->now() + 20 * MILLISECOND) == TW_OK);
  completion = next_completion(&it.client);
  CHECK(completion.token == 2 && completion.code == TW_TIMED_OUT);
  table->release(&completion);
  let_continue(&it);
  reap_all(&it, it.waiting + 1);
  close_client(&it.client);
}

static void *lets_go_soon(void *of) {
  sleep_ms(20);
  let_continue((full_client *)of);
  return NULL;
}

static void blocked_submission_continues_when_there_is_capacity(void) {
  full_client it = fill_client();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, lets_go_soon, &it) == 0);
  CHECK(submit(&it, 2, TW_SUBMIT_BLOCK, TW_FOREVER) == TW_OK);
  pthread_join(thread, NULL);
  reap_all(&it, it.waiting + 2);
  close_client(&it.client);
}

/* A blocking call sets TW_SUBMIT_BLOCK. */
static void blocking_call_waits_for_capacity(void) {
  full_client it = fill_client();
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
  RUN(call_without_block_flag_is_overloaded);
  RUN(blocked_call_times_out_at_its_deadline);
  RUN(blocked_submission_continues_when_there_is_capacity);
  RUN(blocking_call_waits_for_capacity);
  return done("waits");
}
