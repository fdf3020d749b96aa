/* Ports, and handles that are closed, stale, zero or of another kind. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* ---- Capacity -------------------------------------------------------------------------------- */

static void full_port_is_overloaded_until_a_completion_is_reaped(void) {
  tw_request request;
  conformance_client client = open_client(2);
  const tw_table *table = client.tw.table;
  tw_completion completion;
  tw_error error;
  tw_handle first = 0;
  tw_handle second = 0;
  tw_handle third = 0;
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 1, &first, &error),
             error);
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 2, &second, &error),
             error);
  CHECK_CODE(submit_request(conformance_never_prepare(&client, &request), 3, &third, &error),
             TW_OVERLOADED);
  CHECK(error.retryable == 1);
  REQUIRE_OK(table->cancel(first, &error), error);
  /* The slot is in use until the completion is reaped. */
  CHECK_CODE(submit_request(conformance_never_prepare(&client, &request), 3, &third, &error),
             TW_OVERLOADED);
  completion = next_completion(&client);
  CHECK(completion.token == 1);
  table->release(&completion);
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 3, &third, &error),
             error);
  close_client(&client);
}

static void batch_beyond_the_capacity_is_accepted_in_part(void) {
  conformance_client client = open_client(2);
  const tw_table *table = client.tw.table;
  tw_request requests[3];
  tw_submission batch[3];
  tw_completion completions[4];
  tw_error error;
  uint32_t accepted = 0;
  uint32_t count = 0;
  uint32_t reaped = 0;
  int i;
  for (i = 0; i < 3; i++) {
    REQUIRE_OK(tw_request_end(conformance_nothing_prepare(&client, &requests[i]), &error), error);
    batch[i] = requests[i].submission;
  }
  CHECK_CODE(table->submit(client.tw.port, batch, 3, &accepted, &error), TW_OVERLOADED);
  CHECK(accepted == 2);
  while (reaped < 2) {
    REQUIRE_OK(table->port_wait(client.tw.port, table->now() + 60000 * MILLISECOND, &error), error);
    REQUIRE_OK(table->port_reap(client.tw.port, completions, 4, &count, &error), error);
    CHECK(count >= 1);
    reaped += count;
    while (count > 0) {
      table->release(&completions[--count]);
    }
  }
  CHECK(reaped == 2);
  CHECK_CODE(table->port_wait(client.tw.port, 0, &error), TW_TIMED_OUT);
  for (i = 0; i < 3; i++) {
    tw_request_free(&requests[i]);
  }
  close_client(&client);
}

static void unknown_flag_is_refused(void) {
  conformance_client client = open_client(3);
  const tw_table *table = client.tw.table;
  tw_request requests[2];
  tw_submission batch[2];
  tw_completion completion;
  tw_error error;
  uint32_t accepted = 7;
  uint32_t bit;
  int i;
  for (i = 0; i < 2; i++) {
    REQUIRE_OK(tw_request_end(conformance_nothing_prepare(&client, &requests[i]), &error), error);
    batch[i] = requests[i].submission;
    batch[i].token = (uint64_t)i;
  }
  for (bit = 3; bit < 32; bit++) { /* the first are the three TW_SUBMIT_* */
    batch[0].flags = UINT32_C(1) << bit;
    CHECK_CODE(table->submit(client.tw.port, batch, 1, &accepted, &error), TW_ARGUMENT);
    CHECK(accepted == 0 && strstr(error.message, "flags") != NULL);
  }
  /* The earlier calls of the batch are accepted. */
  batch[0].flags = 0;
  batch[1].flags = 77;
  CHECK_CODE(table->submit(client.tw.port, batch, 2, &accepted, &error), TW_ARGUMENT);
  CHECK(accepted == 1);
  completion = next_completion(&client);
  CHECK(completion.token == 0);
  table->release(&completion);
  CHECK_CODE(table->port_wait(client.tw.port, 0, &error), TW_TIMED_OUT);
  for (i = 0; i < 2; i++) {
    tw_request_free(&requests[i]);
  }
  close_client(&client);
}

static void capacity_out_of_range_is_refused(void) {
  tw_handle port = 0;
  tw_error error;
  CHECK_CODE(library.table->port_open(0, &port, &error), TW_ARGUMENT);
  CHECK_CODE(library.table->port_open(65537, &port, &error), TW_ARGUMENT);
  CHECK_CODE(library.table->port_open(65536, &port, &error), TW_OK);
  CHECK_CODE(library.table->port_close(port, &error), TW_OK);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static void armed_eventfd_is_readable_after_a_completion(void) {
  tw_request request;
  conformance_client client = open_client(4);
  const tw_table *table = client.tw.table;
  struct pollfd watched;
  tw_completion completion;
  tw_error error;
  uint32_t ready = 7;
  int round;
  watched.events = POLLIN;
  watched.fd = -1;
  REQUIRE_OK(table->port_fd(client.tw.port, &watched.fd, &error), error);
  for (round = 0; round < 20; round++) {
    REQUIRE_OK(table->port_arm(client.tw.port, &ready, &error), error);
    CHECK(ready == 0);
    CHECK(poll(&watched, 1, 0) == 0);
    REQUIRE_OK(submit_request(conformance_sleep_prepare(&client, 1, &request), 5, NULL, &error),
               error);
    CHECK(poll(&watched, 1, 60000) == 1);
    completion = next_completion(&client);
    CHECK(completion.token == 5);
    table->release(&completion);
  }
  /* If a completion is available, nothing is armed. */
  REQUIRE_OK(submit_request(conformance_nothing_prepare(&client, &request), 6, NULL, &error),
             error);
  REQUIRE_OK(table->port_wait(client.tw.port, TW_FOREVER, &error), error);
  REQUIRE_OK(table->port_arm(client.tw.port, &ready, &error), error);
  CHECK(ready == 1);
  close_client(&client);
}

static void port_wait_ends_at_its_deadline(void) {
  conformance_client client = open_client(1);
  const tw_table *table = client.tw.table;
  tw_error error;
  uint64_t began = table->now();
  CHECK_CODE(table->port_wait(client.tw.port, began + 20 * MILLISECOND, &error), TW_TIMED_OUT);
  CHECK(table->now() - began >= 20 * MILLISECOND);
  CHECK_CODE(table->port_wait(client.tw.port, 0, &error), TW_TIMED_OUT);
  close_client(&client);
}

static void blocking_call_with_other_outstanding_calls_is_refused(void) {
  tw_request request;
  conformance_client client = open_client(4);
  conformance_sleep_result result;
  tw_error error;
  REQUIRE_OK(submit_request(conformance_nothing_prepare(&client, &request), 1, NULL, &error),
             error);
  CHECK_CODE(conformance_sleep(&client, 20, TW_FOREVER, &result, &error), TW_ARGUMENT);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_sleep(&client, 1, TW_FOREVER, &result, &error), TW_OK);
  tw_reply_release(&result.reply);
  close_client(&client);
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void *close_later(void *argument) {
  sleep_ms(20);
  CHECK_CODE(library.table->port_close(*(const tw_handle *)argument, NULL), TW_OK);
  return NULL;
}

static void closing_a_port_wakes_its_waiter(void) {
  tw_request request;
  conformance_client client = open_client(4);
  pthread_t thread;
  tw_error error;
  uint32_t count = 0;
  tw_completion completion;
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 1, NULL, &error), error);
  pthread_create(&thread, NULL, close_later, &client.tw.port);
  CHECK_CODE(library.table->port_wait(client.tw.port, TW_FOREVER, &error), TW_CLOSED);
  pthread_join(thread, NULL);
  CHECK_CODE(library.table->port_wait(client.tw.port, TW_FOREVER, &error), TW_STALE);
  CHECK_CODE(library.table->port_reap(client.tw.port, &completion, 1, &count, &error), TW_STALE);
  CHECK_CODE(submit_request(conformance_never_prepare(&client, &request), 2, NULL, &error),
             TW_STALE);
  CHECK_CODE(conformance_client_close(&client, &error), TW_STALE);
}

static void closing_a_client_ends_its_calls_as_cancelled(void) {
  tw_request request;
  conformance_client client = open_client(4);
  tw_completion completion;
  tw_error error;
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 9, NULL, &error), error);
  REQUIRE_OK(library.table->client_close(client.tw.instance, &error), error);
  completion = next_completion(&client);
  CHECK(completion.token == 9);
  CHECK_CODE(completion.code, TW_CANCELLED);
  library.table->release(&completion);
  CHECK_CODE(library.table->client_close(client.tw.instance, &error), TW_STALE);
  CHECK_CODE(submit_request(conformance_nothing_prepare(&client, &request), 1, NULL, &error),
             TW_STALE);
  CHECK_CODE(library.table->port_close(client.tw.port, &error), TW_OK);
}

static void closed_client_refuses_calls_and_closes_twice(void) {
  conformance_client client = open_client(1);
  conformance_nothing_result result;
  tw_error error;
  close_client(&client);
  CHECK_CODE(conformance_nothing(&client, TW_FOREVER, &result, &error), TW_CLOSED);
  tw_reply_release(&result.reply);
  close_client(&client);
}

/* Submits `count` calls that return a counter each, and reaps their completions. */
static void reap_counters(const conformance_client *client, tw_completion *completions,
                          uint32_t count) {
  const tw_table *table = client->tw.table;
  tw_request request;
  tw_error error;
  uint32_t i;
  for (i = 0; i < count; i++) {
    REQUIRE_OK(
        submit_request(conformance_counter_new_prepare(client, i, &request), i, NULL, &error),
        error);
  }
  for (i = 0; i < count; i++) {
    completions[i] = next_completion(client);
    CHECK_CODE(completions[i].code, TW_OK);
    CHECK(completions[i].data != NULL);
  }
  CHECK_CODE(table->port_wait(client->tw.port, 0, &error), TW_TIMED_OUT);
}

static uint64_t open_resources(void) {
  tw_counters counters;
  tw_error error;
  REQUIRE_OK(library.table->counters(&counters, sizeof(counters), &error), error);
  return counters.resources;
}

static void release_all_releases_each_completion_once(void) {
  conformance_client client = open_client(8);
  const tw_table *table = client.tw.table;
  const uint64_t before = open_resources();
  tw_completion completions[8];
  tw_completion copy;
  tw_completion replaced;
  tw_handle taken = 0;
  tw_handle none = 0;
  tw_error error;
  uint32_t i;
  reap_counters(&client, completions, 8);
  CHECK(open_resources() == before + 8);
  REQUIRE_OK(table->take_handle(&completions[2], 0, &taken, &error), error);
  copy = completions[3];
  table->release_all(completions, 0);
  CHECK(completions[0].data != NULL);
  /* One is released already, and one twice in the same array. */
  table->release(&completions[1]);
  replaced = completions[5];
  completions[5] = completions[4];
  table->release_all(completions, 7);
  for (i = 0; i < 7; i++) {
    CHECK(completions[i].data == NULL && completions[i].data_size == 0);
    CHECK(completions[i].message == NULL && completions[i].owner == 0);
  }
  CHECK(completions[7].data != NULL);
  CHECK_CODE(table->take_handle(&copy, 0, &none, &error), TW_STALE);
  table->release_all(&copy, 1);
  CHECK(copy.data == NULL);
  /* Left: the one that was taken, the one that was replaced in the array, and the last. */
  CHECK(open_resources() == before + 3);
  table->release_all(completions, 8);
  table->release_all(completions, 8);
  table->release_all(&replaced, 1);
  CHECK(open_resources() == before + 1);
  CHECK_CODE(table->resource_drop(taken, &error), TW_OK);
  close_client(&client);
}

static void completion_outlives_its_port(void) {
  conformance_client client = open_client(4);
  conformance_echo_string_result result;
  tw_error error;
  REQUIRE_OK(
      conformance_echo_string(&client, tw_text_of("still here"), TW_FOREVER, &result, &error),
      error);
  close_client(&client);
  CHECK(tw_text_equal(result.ok, tw_text_of("still here")));
  tw_reply_release(&result.reply);
}

/* ---- Invalid handles and pointers ------------------------------------------------------------ */

static uint32_t callback(void *ctx, const tw_batch *batch, const tw_error *ending) {
  (void)ctx;
  (void)batch;
  (void)ending;
  return 0;
}

static void handle_of_another_kind_is_refused_by_every_function(void) {
  conformance_client client = open_client(1);
  const tw_table *table = client.tw.table;
  const tw_handle wrong[] = {0, UINT64_C(0x00ffffff), client.tw.instance};
  const tw_handle not_a_client = client.tw.port;
  tw_completion completion;
  tw_batch batch;
  tw_error error;
  uint32_t number = 0;
  int fd = -1;
  tw_stats stats;
  tw_handle reader = 0;
  size_t i;
  for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    CHECK_CODE(table->port_close(wrong[i], &error), TW_ARGUMENT);
    CHECK_CODE(table->port_fd(wrong[i], &fd, &error), TW_ARGUMENT);
    CHECK_CODE(table->port_arm(wrong[i], &number, &error), TW_ARGUMENT);
    CHECK_CODE(table->port_wait(wrong[i], 0, &error), TW_ARGUMENT);
    CHECK_CODE(table->port_wake(wrong[i], -1, &error), TW_ARGUMENT);
    CHECK_CODE(table->port_reap(wrong[i], &completion, 1, &number, &error), TW_ARGUMENT);
    CHECK_CODE(table->cancel(wrong[i], &error), TW_ARGUMENT);
    CHECK_CODE(table->resource_drop(wrong[i], &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_acquire(wrong[i], 1, 0, &batch, &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_release(wrong[i], 1, &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_arm(wrong[i], client.tw.port, 0, &number, &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_close(wrong[i], &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_subscribe(wrong[i], callback, NULL, NULL, 0, &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_join(wrong[i], 0, &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_fd(wrong[i], &fd, &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_tee(wrong[i], &reader, &error), TW_ARGUMENT);
    CHECK_CODE(table->stream_stats(wrong[i], 9999, &stats, sizeof(stats), &error), TW_ARGUMENT);
  }
  CHECK_CODE(table->client_close(not_a_client, &error), TW_ARGUMENT);
  CHECK_CODE(table->client_close(0, &error), TW_ARGUMENT);
  close_client(&client);
}

static void null_pointer_is_refused_by_every_function(void) {
  conformance_client client = open_client(1);
  const tw_table *table = client.tw.table;
  conformance_count_result stream;
  tw_submission submission;
  tw_completion completion;
  tw_error error;
  uint32_t number = 0;
  uint64_t size = 0;
  uint8_t byte = 'u';
  tw_handle handle = 0;
  memset(&submission, 0, sizeof(submission));
  memset(&completion, 0, sizeof(completion));
  submission.client = client.tw.instance;
  REQUIRE_OK(conformance_count(&client, 0, 1, TW_FOREVER, &stream, &error), error);
  CHECK_CODE(table->client_open(NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->port_open(1, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->port_fd(client.tw.port, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->port_arm(client.tw.port, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->port_reap(client.tw.port, NULL, 1, &number, &error), TW_ARGUMENT);
  CHECK_CODE(table->port_reap(client.tw.port, &completion, 1, NULL, &error), TW_ARGUMENT);
  table->release(NULL);
  table->release_all(NULL, 0);
  table->release_all(NULL, 7);
  CHECK_CODE(table->submit(client.tw.port, NULL, 1, &number, &error), TW_ARGUMENT);
  CHECK_CODE(table->submit(client.tw.port, &submission, 1, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->submit(client.tw.port, &submission, 1, &number, &error),
             TW_ARGUMENT); /* args */
  CHECK_CODE(table->take_handle(NULL, 0, &handle, &error), TW_ARGUMENT);
  CHECK_CODE(table->take_handle(&completion, 0, &handle, &error), TW_ARGUMENT);
  CHECK_CODE(table->take_handle(&completion, 0, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_acquire(stream.ok.tw.handle, 1, 0, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_arm(stream.ok.tw.handle, client.tw.port, 0, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_subscribe(stream.ok.tw.handle, NULL, NULL, NULL, 0, &error),
             TW_ARGUMENT);
  CHECK_CODE(table->stream_fd(stream.ok.tw.handle, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_tee(stream.ok.tw.handle, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_error(stream.ok.tw.handle, NULL, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_stats(stream.ok.tw.handle, 0, NULL, 8, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_retain_batch(stream.ok.tw.handle, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->transcode(NULL, 0, TW_CBOR, &byte, 1, &byte, 1, &size, &error), TW_ARGUMENT);
  CHECK_CODE(table->transcode(&byte, 1, TW_CBOR, NULL, 0, &byte, 1, &size, &error), TW_ARGUMENT);
  CHECK_CODE(table->transcode(&byte, 1, TW_CBOR, &byte, 1, NULL, 0, &size, &error), TW_ARGUMENT);
  CHECK_CODE(table->transcode(&byte, 1, TW_CBOR, &byte, 1, &byte, 1, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->call_inline(client.tw.instance, 0, NULL, 0, 0, &completion, &error),
             TW_ARGUMENT);
  CHECK_CODE(table->call_inline(client.tw.instance, 0, &byte, 1, 0, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->host_call_answer(0, TW_OK, NULL, 1, &error), TW_ARGUMENT);
  CHECK_CODE(table->client_set_layouts(0, NULL, 1, NULL, 0, &error), TW_ARGUMENT);
  CHECK_CODE(table->client_set_layouts(0, NULL, 0, NULL, 1, &error), TW_ARGUMENT);
  CHECK_CODE(table->host_call_deadline(client.tw.instance, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->counters(NULL, 8, &error), TW_ARGUMENT);
  CHECK_CODE(table->log_set_sink(NULL, NULL, NULL, 0, &error), TW_OK);
  CHECK_CODE(table->port_spin(client.tw.port, 0, NULL, &error), TW_ARGUMENT);
  /* `error` may always be NULL. */
  CHECK_CODE(table->client_open(NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->client_close(0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->client_set_format(0, TW_CBOR, NULL), TW_ARGUMENT);
  CHECK_CODE(table->port_open(0, &handle, NULL), TW_ARGUMENT);
  CHECK_CODE(table->port_close(0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->port_fd(0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->port_arm(0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->port_wait(0, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->port_wake(0, -1, NULL), TW_ARGUMENT);
  CHECK_CODE(table->counters(NULL, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->log_set_port(client.tw.instance, 0, TW_LOG_INFO, NULL), TW_ARGUMENT);
  CHECK_CODE(table->port_reap(0, NULL, 0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->submit(0, NULL, 0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->cancel(0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->take_handle(NULL, 0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->resource_drop(0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_acquire(0, 0, 0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_release(0, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_arm(0, 0, 0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_close(0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_subscribe(0, NULL, NULL, NULL, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_join(0, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_fd(0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->call_inline(0, 0, NULL, 0, 0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->client_set_host(0, 0, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->host_call_answer(0, 0, NULL, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->host_call_deadline(0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_tee(0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_error(0, NULL, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_stats(0, 0, NULL, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_retain_batch(0, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->retained_batch_release(0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_new(client.tw.instance, 0, 0, NULL, NULL, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_send(0, NULL, 0, 0, NULL), TW_ARGUMENT);
  CHECK_CODE(table->stream_finish(0, NULL), TW_ARGUMENT);
  CHECK_CODE(conformance_u64_stream_close(&stream.ok, &error), TW_OK);
  close_client(&client);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* In the child: the parent's client is refused, and a new one works. */
static void use_in_the_child(conformance_client *parents) {
  const tw_table *table = parents->tw.table;
  conformance_echo_u8_result result;
  conformance_client own;
  tw_error error;
  uint32_t number = 0;
  CHECK_CODE(conformance_echo_u8(parents, 1, TW_FOREVER, &result, &error), TW_FORKED);
  CHECK_CODE(table->port_wait(parents->tw.port, 0, &error), TW_FORKED);
  CHECK_CODE(table->port_arm(parents->tw.port, &number, &error), TW_FORKED);
  CHECK_CODE(conformance_client_close(parents, &error), TW_FORKED);
  own = open_client(1);
  CHECK_CODE(conformance_echo_u8(&own, 7, TW_FOREVER, &result, &error), TW_OK);
  CHECK(result.ok == 7);
  tw_reply_release(&result.reply);
  close_client(&own);
}

static void child_after_fork_gets_forked_and_can_open_its_own_client(void) {
  conformance_client client = open_client(1);
  conformance_echo_u8_result result;
  tw_error error;
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    use_in_the_child(&client);
    _exit(checks_failed == 0 ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_CODE(conformance_echo_u8(&client, 8, TW_FOREVER, &result, &error), TW_OK);
  tw_reply_release(&result.reply);
  close_client(&client);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *call_many_times(void *argument) {
  const conformance_client *instance = (const conformance_client *)argument;
  conformance_client mine;
  conformance_echo_u64_result result;
  tw_error error;
  uint64_t i;
  REQUIRE_OK(conformance_client_attach(instance, 1, &mine, &error), error);
  for (i = 0; i < 2000; i++) {
    REQUIRE_OK(conformance_echo_u64(&mine, i, TW_FOREVER, &result, &error), error);
    CHECK(result.ok == i);
  }
  close_client(&mine);
  return NULL;
}

static void two_threads_call_one_instance_through_a_port_each(void) {
  conformance_client instance = open_client(1);
  pthread_t threads[2];
  conformance_counters_result result;
  tw_error error;
  int i;
  for (i = 0; i < 2; i++) {
    pthread_create(&threads[i], NULL, call_many_times, &instance);
  }
  for (i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
  /* Closing an attached client does not close the instance. */
  CHECK_CODE(conformance_counters(&instance, TW_FOREVER, &result, &error), TW_OK);
  close_client(&instance);
}

static void *submit_many_times(void *argument) {
  tw_request request;
  const conformance_client *client = (const conformance_client *)argument;
  tw_error error;
  uint64_t i;
  for (i = 0; i < 500; i++) {
    REQUIRE_OK(submit_request(conformance_echo_u64_prepare(client, i, &request), i, NULL, &error),
               error);
  }
  return NULL;
}

static void two_threads_submit_on_one_port_that_a_third_reaps(void) {
  conformance_client client = open_client(1000);
  pthread_t threads[2];
  uint64_t sum = 0;
  tw_error error;
  int i;
  for (i = 0; i < 2; i++) {
    pthread_create(&threads[i], NULL, submit_many_times, &client);
  }
  for (i = 0; i < 1000; i++) {
    tw_completion completion = next_completion(&client);
    conformance_echo_u64_result result;
    uint64_t token = completion.token;
    CHECK_CODE(conformance_echo_u64_read(&client, &completion, &result, &error), TW_OK);
    CHECK(result.ok == token);
    sum += token;
  }
  CHECK(sum == 2 * (499 * 500 / 2));
  for (i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
  close_client(&client);
}

/* Two threads reap one port at the same time, which is not allowed. Each reap succeeds or is
 * refused, and no completion is lost or returned twice. */
static struct {
  pthread_mutex_t lock;
  tw_handle port;
  uint32_t left;
  uint32_t times[1000];
} reaped = {PTHREAD_MUTEX_INITIALIZER, 0, 1000, {0}};

static void *reap_what_comes(void *unused) {
  const tw_table *table = library.table;
  tw_completion completions[8];
  bool more = true;
  (void)unused;
  while (more) {
    tw_error error;
    uint32_t count = 0;
    uint32_t i;
    uint32_t code = table->port_reap(reaped.port, completions, 8, &count, &error);
    CHECK(code == TW_OK || (code == TW_ARGUMENT && count == 0));
    pthread_mutex_lock(&reaped.lock);
    for (i = 0; i < count; i++) {
      reaped.times[completions[i].token]++;
      table->release(&completions[i]);
    }
    reaped.left -= count;
    more = reaped.left > 0;
    pthread_mutex_unlock(&reaped.lock);
    sched_yield();
  }
  return NULL;
}

static void two_threads_that_reap_one_port_lose_nothing(void) {
  tw_request request;
  conformance_client client = open_client(1000);
  pthread_t threads[2];
  tw_error error;
  uint64_t token;
  int i;
  reaped.port = client.tw.port;
  for (i = 0; i < 2; i++) {
    pthread_create(&threads[i], NULL, reap_what_comes, NULL);
  }
  for (token = 0; token < 1000; token++) {
    REQUIRE_OK(submit_request(conformance_nothing_prepare(&client, &request), token, NULL, &error),
               error);
  }
  for (i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
  for (token = 0; token < 1000; token++) {
    CHECK(reaped.times[token] == 1);
  }
  CHECK_CODE(library.table->port_wait(client.tw.port, 0, &error), TW_TIMED_OUT);
  close_client(&client);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  RUN(full_port_is_overloaded_until_a_completion_is_reaped);
  RUN(batch_beyond_the_capacity_is_accepted_in_part);
  RUN(unknown_flag_is_refused);
  RUN(capacity_out_of_range_is_refused);
  RUN(armed_eventfd_is_readable_after_a_completion);
  RUN(port_wait_ends_at_its_deadline);
  RUN(blocking_call_with_other_outstanding_calls_is_refused);
  RUN(closing_a_port_wakes_its_waiter);
  RUN(closing_a_client_ends_its_calls_as_cancelled);
  RUN(closed_client_refuses_calls_and_closes_twice);
  RUN(release_all_releases_each_completion_once);
  RUN(completion_outlives_its_port);
  RUN(handle_of_another_kind_is_refused_by_every_function);
  RUN(null_pointer_is_refused_by_every_function);
  RUN(child_after_fork_gets_forked_and_can_open_its_own_client);
  RUN(two_threads_call_one_instance_through_a_port_each);
  RUN(two_threads_submit_on_one_port_that_a_third_reaps);
  RUN(two_threads_that_reap_one_port_lose_nothing);
  return done("ports");
}
