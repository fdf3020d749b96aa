/* Tests for guests in Go only: calls ADDRESS. bindings/c/tests/guests.c has the tests of all guests. */
#include "check.h"
#include "probe.h"

#define MS UINT64_C(1000000)

static probe_library library;

static probe_client open_client(uint32_t capacity) {
  probe_client client;
  tw_error error;
  REQUIRE_OK(probe_client_open(&library, capacity, &client, &error), error);
  return client;
}

static void close_client(probe_client *client) {
  tw_error error;
  REQUIRE_OK(probe_client_close(client, &error), error);
}

/* Reaps `count` completions and calls `ended` for each. */
static void reap(const probe_client *client, uint32_t count,
                 void (*ended)(const probe_client *client, tw_completion *completion)) {
  const tw_table *table = client->tw.table;
  tw_completion completions[64];
  tw_error error;
  while (count > 0) {
    uint32_t got = 0;
    uint32_t i;
    REQUIRE_OK(table->port_wait(client->tw.port, TW_FOREVER, &error), error);
    REQUIRE_OK(table->port_reap(client->tw.port, completions, 64, &got, &error), error);
    for (i = 0; i < got; i++) {
      ended(client, &completions[i]);
    }
    count -= got;
  }
}

static void later_has_ended(const probe_client *client, tw_completion *completion) {
  const uint64_t number = completion->token;
  probe_later_result result;
  tw_error error;
  CHECK_CODE(probe_later_read(client, completion, &result, &error), TW_OK);
  CHECK(result.ok == number);
  tw_reply_release(&result.reply);
}

static void async_calls_run_at_the_same_time(void) {
  probe_client client = open_client(64);
  tw_error error;
  tw_request request;
  uint64_t began = client.tw.table->now();
  uint64_t number;
  for (number = 0; number < 64; number++) {
    REQUIRE_OK(tw_request_submit(probe_later_prepare(&client, 100, number, &request), TW_FOREVER,
                                 number, NULL, &error),
               error);
  }
  reap(&client, 64, later_has_ended);
  CHECK(client.tw.table->now() - began < 6400 * MS / 2);
  close_client(&client);
}

static uint64_t sum_before;

static void add_has_ended(const probe_client *client, tw_completion *completion) {
  const uint64_t number = completion->token;
  probe_add_result result;
  tw_error error;
  CHECK_CODE(probe_add_read(client, completion, &result, &error), TW_OK);
  CHECK(result.ok == sum_before + number);
  sum_before = result.ok;
  tw_reply_release(&result.reply);
}

static void other_calls_are_served_in_order(void) {
  probe_client client = open_client(64);
  tw_error error;
  tw_request request;
  int round;
  sum_before = 0;
  for (round = 0; round < 100; round++) {
    uint64_t number;
    for (number = 1; number <= 64; number++) {
      REQUIRE_OK(tw_request_submit(probe_add_prepare(&client, number, &request), TW_FOREVER, number,
                                   NULL, &error),
                 error);
    }
    reap(&client, 64, add_has_ended);
  }
  close_client(&client);
}

static uint32_t overloaded, served;

static void any_has_ended(const probe_client *client, tw_completion *completion) {
  const bool is_blocker = completion->token == 0;
  probe_add_result result;
  tw_error error;
  uint32_t code = probe_add_read(client, completion, &result, &error);
  if (is_blocker) {
    CHECK_CODE(code, TW_TIMED_OUT);
  } else if (code == TW_OVERLOADED) {
    overloaded++;
  } else {
    CHECK_CODE(code, TW_OK);
    served++;
  }
  tw_reply_release(&result.reply);
}

/* The limit of the package is 4,096 calls. */
static void too_many_waiting_calls_are_refused(void) {
  probe_client client = open_client(8192);
  tw_error error;
  tw_request request;
  uint32_t count = 0;
  uint32_t refused = 0;
  uint32_t number;
  REQUIRE_OK(tw_request_submit(probe_misbehave_prepare(&client, 4, &request),
                               client.tw.table->now() + 1000 * MS, 0, NULL, &error),
             error);
  for (number = 1; number <= 6000; number++) {
    uint32_t code = tw_request_submit(probe_add_prepare(&client, 1, &request), TW_FOREVER, number,
                                      NULL, &error);
    if (code == TW_OVERLOADED) {
      refused++; /* by the core */
    } else {
      CHECK_CODE(code, TW_OK);
      count++;
    }
  }
  reap(&client, count + 1, any_has_ended);
  CHECK(served >= 4096);
  CHECK(served < 6000);
  CHECK(served + overloaded + refused == 6000);
  close_client(&client);
}

static void wrong_ends_of_a_call_end_only_it(void) {
  probe_client client = open_client(8);
  probe_misbehave_result result;
  probe_add_result added;
  tw_error error;
  REQUIRE_OK(probe_add(&client, 5, TW_FOREVER, &added, &error), error);
  tw_reply_release(&added.reply);
  CHECK_CODE(probe_misbehave(&client, 13, TW_FOREVER, &result, &error), TW_GUEST_LOST);
  CHECK(strstr(error.message, "probe.misbehave") && strstr(error.message, "without an answer"));
  tw_reply_release(&result.reply);
  CHECK_CODE(probe_misbehave(&client, 15, TW_FOREVER, &result, &error), TW_GUEST_LOST);
  CHECK(strcmp(error.message, "something was closed") == 0);
  tw_reply_release(&result.reply);
  REQUIRE_OK(probe_add(&client, 1, TW_FOREVER, &added, &error), error);
  CHECK(added.ok == 6);
  tw_reply_release(&added.reply);
  close_client(&client);
}

static uint32_t add(const probe_client *client, uint64_t number, uint64_t *sum) {
  probe_add_result result;
  tw_error error;
  uint32_t code = probe_add(client, number, TW_FOREVER, &result, &error);
  *sum = code == TW_OK ? result.ok : 0;
  tw_reply_release(&result.reply);
  return code;
}

/* `add` is brief, so that it runs on the goroutine that takes the calls of all clients. */
static void brief_method_that_fails_ends_only_its_call(void) {
  probe_client client = open_client(8);
  probe_client other = open_client(8);
  uint64_t sum;
  CHECK_CODE(add(&other, 1, &sum), TW_OK);
  CHECK_CODE(add(&client, 5, &sum), TW_OK);
  CHECK_CODE(add(&client, UINT64_MAX, &sum), TW_GUEST_LOST);
  CHECK_CODE(add(&client, 1, &sum), TW_OK);
  CHECK(sum == 6);
  CHECK_CODE(add(&client, UINT64_MAX - 1, &sum), TW_GUEST_PANICKED);
  CHECK_CODE(add(&client, 1, &sum), TW_OK);
  CHECK(sum == 1);
  CHECK_CODE(add(&other, 1, &sum), TW_OK);
  CHECK(sum == 2);
  close_client(&client);
  close_client(&other);
}

/* Answers of short calls are sent together. */
#define TOGETHER 20

static uint32_t ended_well;

static void short_call_has_ended(const probe_client *client, tw_completion *completion) {
  const bool is_last = completion->token == TOGETHER;
  probe_nothing_result result;
  tw_error error;
  uint32_t code = probe_nothing_read(client, completion, &result, &error);
  CHECK_CODE(code, is_last ? TW_GUEST_PANICKED : TW_OK);
  ended_well += code == TW_OK;
  tw_reply_release(&result.reply);
}

static void submit_short_calls(const probe_client *client, bool is_brief) {
  tw_error error;
  tw_request request;
  uint64_t number;
  ended_well = 0;
  for (number = 0; number < TOGETHER; number++) {
    tw_request *prepared =
        is_brief ? probe_add_prepare(client, 1, &request) : probe_nothing_prepare(client, &request);
    REQUIRE_OK(tw_request_submit(prepared, TW_FOREVER, number, NULL, &error), error);
  }
}

static void panic_ends_no_call_before_it(void) {
  int round;
  for (round = 0; round < 200; round++) {
    const bool is_brief = round % 2 == 0;
    probe_client client = open_client(64);
    tw_error error;
    tw_request request;
    uint64_t sum;
    CHECK_CODE(add(&client, 1, &sum), TW_OK);
    submit_short_calls(&client, is_brief);
    REQUIRE_OK(tw_request_submit(is_brief ? probe_add_prepare(&client, UINT64_MAX - 1, &request)
                                          : probe_misbehave_prepare(&client, 5, &request),
                                 TW_FOREVER, TOGETHER, NULL, &error),
               error);
    reap(&client, TOGETHER + 1, short_call_has_ended);
    CHECK(ended_well == TOGETHER);
    close_client(&client);
  }
}

static void no_answer_waits_for_the_next_call(void) {
  probe_client client = open_client(64);
  tw_error error;
  tw_request request;
  uint64_t began = client.tw.table->now();
  submit_short_calls(&client, false);
  REQUIRE_OK(tw_request_submit(probe_misbehave_prepare(&client, 4, &request), began + 2000 * MS,
                               TOGETHER, NULL, &error),
             error);
  reap(&client, TOGETHER, short_call_has_ended);
  CHECK(client.tw.table->now() - began < 1000 * MS);
  close_client(&client);
}

static char letters[8192];

/* Its token is the size of the text. */
static void echo_has_ended(const probe_client *client, tw_completion *completion) {
  const size_t size = (size_t)completion->token;
  probe_echo_result result;
  tw_error error;
  CHECK_CODE(probe_echo_read(client, completion, &result, &error), TW_OK);
  CHECK(result.ok.size == size && memcmp(result.ok.data, letters + size, size) == 0);
  tw_reply_release(&result.reply);
}

static void answers_of_all_sizes_are_sent(void) {
  probe_client client = open_client(64);
  tw_error error;
  tw_request request;
  uint64_t size = 0;
  int round;
  for (round = 0; round < (int)sizeof(letters); round++) {
    letters[round] = (char)('a' + round % 23);
  }
  for (round = 0; round < 100; round++) {
    int number;
    for (number = 0; number < 64; number++) {
      tw_text text;
      size = size < 4090 ? (size * 2 + 1) % 4096 : (size + 1) % 4100;
      text.data = letters + size;
      text.size = (size_t)size;
      REQUIRE_OK(tw_request_submit(probe_echo_prepare(&client, text, &request), TW_FOREVER, size,
                                   NULL, &error),
                 error);
    }
    reap(&client, 64, echo_has_ended);
  }
  close_client(&client);
}

int main(int argc, char **argv) {
  tw_error error;
  if (argc != 2) {
    fputs("usage: calls ADDRESS\n", stderr);
    return 2;
  }
  REQUIRE_OK(probe_open(argv[1], &library, &error), error);
  RUN(async_calls_run_at_the_same_time);
  RUN(other_calls_are_served_in_order);
  RUN(too_many_waiting_calls_are_refused);
  RUN(wrong_ends_of_a_call_end_only_it);
  RUN(brief_method_that_fails_ends_only_its_call);
  RUN(panic_ends_no_call_before_it);
  RUN(no_answer_waits_for_the_next_call);
  RUN(answers_of_all_sizes_are_sent);
  CHECK_CODE(tw_close(library.table, &error), TW_OK);
  return done("calls");
}
