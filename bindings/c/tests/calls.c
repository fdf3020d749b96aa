/* Calls of the conformance library, with every outcome. */
#include <signal.h>
#include <sys/time.h>

#include "host.h"

static conformance_client client;

/* ---- Results --------------------------------------------------------------------------------- */

static void call_returns_its_result(void) {
  conformance_echo_string_result result;
  tw_error error;
  CHECK_CODE(conformance_echo_string(&client, tw_text_of("gr\xc3\xbc\xc3\x9f dich"), TW_FOREVER,
                                     &result, &error),
             TW_OK);
  CHECK(tw_text_equal(result.ok, tw_text_of("gr\xc3\xbc\xc3\x9f dich")));
  tw_reply_release(&result.reply);
  tw_reply_release(&result.reply);
}

static void call_without_result_ends_as_ok(void) {
  conformance_nothing_result result;
  tw_error error;
  CHECK_CODE(conformance_nothing(&client, TW_FOREVER, &result, &error), TW_OK);
  tw_reply_release(&result.reply);
}

static conformance_option_failure_in how(uint8_t tag) {
  conformance_option_failure_in failure;
  memset(&failure, 0, sizeof(failure));
  failure.some = true;
  failure.value.tag = tag;
  return failure;
}

static void typed_error_has_its_payload(void) {
  conformance_option_failure_in code = how(CONFORMANCE_FAILURE_CODE);
  conformance_option_failure_in at = how(CONFORMANCE_FAILURE_AT);
  conformance_option_failure_in none;
  const conformance_tuple2_string_point *place;
  conformance_fail_result result;
  conformance_fail_later_result later;
  tw_error error;
  uint32_t number = 0;
  code.value.value.code = 4711;
  at.value.value.at.f0 = tw_text_of("here");
  at.value.value.at.f1.y = -3;
  memset(&none, 0, sizeof(none));
  CHECK_CODE(conformance_fail(&client, &none, TW_FOREVER, &result, &error), TW_OK);
  CHECK(result.ok == 7);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_fail(&client, &code, TW_FOREVER, &result, &error), TW_ERROR);
  CHECK(error.code == TW_ERROR && error.retryable == 0);
  CHECK(conformance_failure_code(result.reply.base, result.error, &number) && number == 4711);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_fail_later(&client, &at, TW_FOREVER, &later, &error), TW_ERROR);
  CHECK(conformance_failure_at(later.reply.base, later.error, &place) && place->f1.y == -3 &&
        tw_text_equal(conformance_tuple2_string_point_f0(later.reply.base, place),
                      tw_text_of("here")));
  tw_reply_release(&later.reply);
}

static void error_without_payload_ends_as_error(void) {
  conformance_fail_bare_result result;
  tw_error error;
  CHECK_CODE(conformance_fail_bare(&client, false, TW_FOREVER, &result, &error), TW_OK);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_fail_bare(&client, true, TW_FOREVER, &result, &error), TW_ERROR);
  tw_reply_release(&result.reply);
}

static void each_call_of_a_batch_completes_once(void) {
  enum { COUNT = 3 };
  tw_request requests[COUNT];
  tw_submission batch[COUNT];
  tw_error error;
  uint32_t accepted = 0;
  unsigned seen = 0;
  int i;
  for (i = 0; i < COUNT; i++) {
    REQUIRE_OK(tw_request_end(conformance_echo_u64_prepare(&client, (uint64_t)i * 10, &requests[i]),
                              &error),
               error);
    batch[i] = requests[i].submission;
    batch[i].token = (uint64_t)i;
  }
  CHECK_CODE(client.tw.table->submit(client.tw.port, batch, COUNT, &accepted, &error), TW_OK);
  CHECK(accepted == COUNT);
  for (i = 0; i < COUNT; i++) {
    tw_request_free(&requests[i]);
  }
  for (i = 0; i < COUNT; i++) {
    tw_completion completion = next_completion(&client);
    conformance_echo_u64_result result;
    uint64_t token = completion.token;
    CHECK(token < COUNT && completion.call == batch[token].call);
    seen |= 1u << token;
    CHECK_CODE(conformance_echo_u64_read(&client, &completion, &result, &error), TW_OK);
    CHECK(result.ok == token * 10);
  }
  CHECK(seen == 7);
}

/* ---- Refused --------------------------------------------------------------------------------- */

static void text_that_is_not_utf8_is_refused(void) {
  conformance_echo_string_result result;
  tw_error error;
  CHECK_CODE(conformance_echo_string(&client, tw_text_of("a\xff\x62"), TW_FOREVER, &result, &error),
             TW_ARGUMENT);
  CHECK(error.message[0] != '\0');
  tw_reply_release(&result.reply);
}

static void invalid_value_of_a_type_is_refused(void) {
  conformance_echo_char_result character;
  conformance_echo_color_result color;
  conformance_echo_rights_result rights;
  conformance_echo_shape_result shape;
  conformance_shape_in wrong;
  tw_error error;
  CHECK_CODE(conformance_echo_char(&client, 0xd800, TW_FOREVER, &character, &error), TW_ARGUMENT);
  tw_reply_release(&character.reply);
  CHECK_CODE(conformance_echo_color(&client, 3, TW_FOREVER, &color, &error), TW_ARGUMENT);
  tw_reply_release(&color.reply);
  CHECK_CODE(conformance_echo_rights(&client, 0x80, TW_FOREVER, &rights, &error), TW_ARGUMENT);
  tw_reply_release(&rights.reply);
  memset(&wrong, 0, sizeof(wrong));
  wrong.tag = 200;
  CHECK_CODE(conformance_echo_shape(&client, &wrong, TW_FOREVER, &shape, &error), TW_ARGUMENT);
  tw_reply_release(&shape.reply);
}

static void malformed_arguments_are_refused(void) {
  static const uint8_t garbage[] = {1, 2, 3, 4, 5};
  tw_submission submission;
  tw_completion completion;
  tw_error error;
  memset(&submission, 0, sizeof(submission));
  submission.client = client.tw.instance;
  submission.method = CONFORMANCE_METHOD_ECHO_U8;
  submission.args = garbage;
  submission.args_size = sizeof(garbage);
  REQUIRE_OK(tw_call(&client.tw, &submission, &completion, &error), error);
  CHECK_CODE(completion.code, TW_ARGUMENT);
  CHECK(completion.data == NULL);
  client.tw.table->release(&completion);
}

static void unknown_method_is_refused(void) {
  tw_request request;
  tw_error error;
  uint32_t accepted = 7;
  REQUIRE_OK(tw_request_end(conformance_nothing_prepare(&client, &request), &error), error);
  request.submission.method = 9999;
  CHECK_CODE(client.tw.table->submit(client.tw.port, &request.submission, 1, &accepted, &error),
             TW_ARGUMENT);
  CHECK(accepted == 0 && strstr(error.message, "9999") != NULL);
  tw_request_free(&request);
}

/* ---- Deadlines, cancellation and panics ------------------------------------------------------ */

static void call_past_its_deadline_is_timed_out(void) {
  conformance_never_result result;
  tw_error error;
  uint64_t began = client.tw.table->now();
  CHECK_CODE(
      conformance_never(&client, tw_deadline_after(&client.tw, 30 * MILLISECOND), &result, &error),
      TW_TIMED_OUT);
  CHECK(client.tw.table->now() - began >= 30 * MILLISECOND);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_never(&client, 1, &result, &error), TW_TIMED_OUT);
  tw_reply_release(&result.reply);
  CHECK(tw_deadline_after(&client.tw, UINT64_MAX) == TW_FOREVER);
}

static void call_that_ends_before_its_deadline_is_ok(void) {
  conformance_sleep_result result;
  tw_error error;
  CHECK_CODE(conformance_sleep(&client, 20, tw_deadline_after(&client.tw, 5000 * MILLISECOND),
                               &result, &error),
             TW_OK);
  CHECK(result.ok == 20);
  tw_reply_release(&result.reply);
}

static void cancelled_call_ends_as_cancelled_and_its_handle_is_stale(void) {
  tw_request request;
  conformance_never_result result;
  tw_completion completion;
  tw_error error;
  tw_handle call = 0;
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 42, &call, &error),
             error);
  CHECK_CODE(client.tw.table->cancel(call, &error), TW_OK);
  completion = next_completion(&client);
  CHECK(completion.token == 42 && completion.call == call);
  CHECK_CODE(conformance_never_read(&client, &completion, &result, &error), TW_CANCELLED);
  tw_reply_release(&result.reply);
  CHECK_CODE(client.tw.table->cancel(call, &error), TW_STALE);
}

static void panic_ends_its_call_and_a_new_instance_serves_the_next(void) {
  conformance_panic_result result;
  conformance_panic_later_result later;
  tw_error error;
  CHECK_CODE(conformance_panic(&client, tw_text_of("oh no"), TW_FOREVER, &result, &error),
             TW_GUEST_PANICKED);
  CHECK(strstr(error.message, "oh no") != NULL);
  tw_reply_release(&result.reply);
  call_returns_its_result();
  CHECK_CODE(conformance_panic_later(&client, tw_text_of("later"), TW_FOREVER, &later, &error),
             TW_GUEST_PANICKED);
  CHECK(strstr(error.message, "later") != NULL);
  tw_reply_release(&later.reply);
  call_returns_its_result();
}

/* ---- Signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms = 0;

static void on_alarm(int signal_number) {
  (void)signal_number;
  alarms = 1;
}

/* Sends SIGALRM at this interval, because the first one may arrive before the wait begins. 0 stops
 * it. */
static void start_alarms(uint32_t milliseconds) {
  struct itimerval timer;
  memset(&timer, 0, sizeof(timer));
  timer.it_value.tv_usec = (suseconds_t)milliseconds * 1000;
  timer.it_interval = timer.it_value;
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void port_wait_returns_interrupted_after_a_signal(void) {
  tw_error error;
  alarms = 0;
  start_alarms(30);
  CHECK_CODE(client.tw.table->port_wait(client.tw.port, TW_FOREVER, &error), TW_INTERRUPTED);
  start_alarms(0);
  CHECK(alarms == 1);
}

static void blocking_call_has_ended_after_a_signal(void) {
  conformance_never_result result;
  tw_error error;
  uint32_t ready = 7;
  alarms = 0;
  start_alarms(30);
  CHECK_CODE(conformance_never(&client, TW_FOREVER, &result, &error), TW_INTERRUPTED);
  start_alarms(0);
  CHECK(alarms == 1 && error.code == TW_INTERRUPTED);
  tw_reply_release(&result.reply);
  CHECK_CODE(client.tw.table->port_arm(client.tw.port, &ready, &error), TW_OK);
  CHECK(ready == 0); /* the port has no completion of the call */
  call_returns_its_result();
}

/* ---- Resources ------------------------------------------------------------------------------- */

static conformance_counter counter_of(const conformance_client *of, uint64_t start) {
  conformance_counter_new_result result;
  tw_error error;
  REQUIRE_OK(conformance_counter_new(of, start, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok;
}

static void resource_is_used_passed_and_closed(void) {
  conformance_counter left = counter_of(&client, 40);
  conformance_counter right = counter_of(&client, 1);
  conformance_counter sum;
  conformance_counter_add_result added;
  conformance_counter_sum_result summed;
  conformance_counter_finish_result finished;
  conformance_counter_value_result value;
  tw_error error;
  CHECK_CODE(conformance_counter_add(&client, right, 1, TW_FOREVER, &added, &error), TW_OK);
  CHECK(added.ok == 2);
  CHECK_CODE(conformance_counter_sum(&client, left, right, TW_FOREVER, &summed, &error), TW_OK);
  sum = summed.ok;
  CHECK_CODE(conformance_counter_finish(&client, sum, TW_FOREVER, &finished, &error), TW_OK);
  CHECK(finished.ok == 42);
  /* The resource was passed to the service, so the handle is stale. */
  CHECK_CODE(conformance_counter_value(&client, sum, TW_FOREVER, &value, &error), TW_STALE);
  tw_reply_release(&value.reply);
  CHECK_CODE(conformance_counter_close(&sum, &error), TW_STALE);
  CHECK_CODE(conformance_counter_close(&left, &error), TW_OK);
  CHECK_CODE(conformance_counter_close(&left, &error), TW_OK);
  CHECK_CODE(conformance_counter_close(&right, &error), TW_OK);
}

static void handle_of_another_kind_is_refused(void) {
  conformance_client other = open_client(1);
  conformance_counter theirs = counter_of(&other, 1);
  conformance_counter not_one;
  conformance_counter_value_result value;
  tw_error error;
  not_one.tw.table = library.table;
  not_one.tw.handle = client.tw.port;
  CHECK_CODE(conformance_counter_value(&client, not_one, TW_FOREVER, &value, &error), TW_ARGUMENT);
  tw_reply_release(&value.reply);
  CHECK_CODE(conformance_counter_value(&client, theirs, TW_FOREVER, &value, &error), TW_ARGUMENT);
  tw_reply_release(&value.reply);
  CHECK_CODE(conformance_counter_close(&theirs, &error), TW_OK);
  close_client(&other);
}

static void resource_from_before_a_panic_is_stale(void) {
  conformance_counter counter = counter_of(&client, 1);
  conformance_panic_result panicked;
  conformance_counter_value_result value;
  tw_error error;
  CHECK_CODE(conformance_panic(&client, tw_text_of("x"), TW_FOREVER, &panicked, &error),
             TW_GUEST_PANICKED);
  tw_reply_release(&panicked.reply);
  CHECK_CODE(conformance_counter_value(&client, counter, TW_FOREVER, &value, &error), TW_STALE);
  tw_reply_release(&value.reply);
  CHECK_CODE(conformance_counter_close(&counter, &error), TW_OK);
}

static void release_closes_a_handle_that_was_not_taken(void) {
  tw_request request;
  conformance_counters_result before;
  conformance_counters_result after;
  tw_completion completion;
  tw_error error;
  REQUIRE_OK(conformance_counters(&client, TW_FOREVER, &before, &error), error);
  REQUIRE_OK(submit_request(conformance_counter_new_prepare(&client, 1, &request), 0, NULL, &error),
             error);
  completion = next_completion(&client);
  CHECK_CODE(completion.code, TW_OK);
  client.tw.table->release(&completion);
  REQUIRE_OK(conformance_counters(&client, TW_FOREVER, &after, &error), error);
  CHECK(after.ok == before.ok);
}

static void second_release_of_a_copy_has_no_effect(void) {
  tw_request request;
  const tw_table *table = client.tw.table;
  conformance_counters_result before;
  conformance_counters_result after;
  tw_completion first;
  tw_completion copy;
  tw_completion next;
  tw_handle counter = 0;
  tw_error error;
  int i;
  REQUIRE_OK(conformance_counters(&client, TW_FOREVER, &before, &error), error);
  REQUIRE_OK(submit_request(conformance_counter_new_prepare(&client, 1, &request), 0, NULL, &error),
             error);
  first = next_completion(&client);
  copy = first;
  table->release(&first);
  CHECK_CODE(table->take_handle(&copy, 0, &counter, &error), TW_STALE);
  /* The next call reuses the memory. Releasing the old copy must not release the new completion. */
  REQUIRE_OK(submit_request(conformance_counter_new_prepare(&client, 2, &request), 0, NULL, &error),
             error);
  next = next_completion(&client);
  CHECK_CODE(next.code, TW_OK);
  for (i = 0; i < 2; i++) {
    tw_completion again = copy;
    CHECK_CODE(table->take_handle(&again, 0, &counter, &error), TW_STALE);
    table->release(&again);
    CHECK(again.data == NULL);
  }
  REQUIRE_OK(table->take_handle(&next, 0, &counter, &error), error);
  copy = next;
  /* A handle can be taken once, also through a copy. */
  CHECK_CODE(table->take_handle(&copy, 0, &first.call, &error), TW_ARGUMENT);
  table->release(&next);
  table->release(&copy);
  REQUIRE_OK(table->resource_drop(counter, &error), error);
  REQUIRE_OK(conformance_counters(&client, TW_FOREVER, &after, &error), error);
  CHECK(after.ok == before.ok);
}

/* The FNV-1a 64 hash of the line at `at`, which is then after the line. 0 for an empty line. */
static uint64_t hash_of_line(const uint8_t **at, const uint8_t *end) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  const uint8_t *from = *at;
  for (; *at < end && **at != '\n'; ++*at) {
    hash = (hash ^ **at) * UINT64_C(0x100000001b3);
  }
  if (*at == from) {
    hash = 0;
  }
  *at += *at < end;
  return hash;
}

static void table_and_header_describe_each_method_equally(void) {
  const tw_expected *expected = conformance_expected();
  const tw_method *methods = library.table->methods;
  uint32_t i;
  CHECK(library.table->method_count == expected->method_count);
  for (i = 0; i < expected->method_count; i++) {
    CHECK(methods[i].flags == expected->methods[i].flags);
    {
      const uint8_t *at = methods[i].description;
      const uint8_t *end = at + methods[i].description_size;
      CHECK(hash_of_line(&at, end) == methods[i].params);
      CHECK(hash_of_line(&at, end) == methods[i].ok);
      CHECK(hash_of_line(&at, end) == methods[i].error);
      CHECK(hash_of_line(&at, end) == methods[i].element);
      CHECK(at == end);
    }
  }
  CHECK(methods[CONFORMANCE_METHOD_NEVER].flags ==
        (TW_METHOD_ASYNC | TW_METHOD_NOTICES | TW_METHOD_CAN_BLOCK));
  CHECK(methods[CONFORMANCE_METHOD_ECHO_BOOL].flags == TW_METHOD_CAN_BLOCK);
  CHECK(methods[CONFORMANCE_METHOD_TWICE].flags ==
        (TW_METHOD_INLINE | TW_METHOD_CAN_BLOCK | TW_METHOD_CBOR));
  CHECK(methods[CONFORMANCE_METHOD_PANIC_LATER].flags ==
        (TW_METHOD_ASYNC | TW_METHOD_IDEMPOTENT | TW_METHOD_CAN_BLOCK));
}

/* A header without the last five functions. */
static void program_with_fewer_functions_calls_them(void) {
  tw_expected expected = *conformance_expected();
  conformance_client mine;
  conformance_echo_u32_result result;
  tw_error error;
  expected.layout ^= 1;
  CHECK_CODE(tw_table_check(library.table, &expected, &error), TW_VERSION);
  expected.method_count -= 5;
  REQUIRE_OK(tw_table_check(library.table, &expected, &error), error);
  mine = open_client(1);
  REQUIRE_OK(conformance_echo_u32(&mine, 7, TW_FOREVER, &result, &error), error);
  CHECK(result.ok == 7);
  tw_reply_release(&result.reply);
  expected.imports_layout ^= 1;
  expected.imports = NULL; /* unknown */
  CHECK_CODE(tw_table_check(library.table, &expected, &error), TW_VERSION);
  CHECK(strstr(error.message, "its host imports") != NULL);
  close_client(&mine);
}

/* ---- Inline methods -------------------------------------------------------------------------- */

static void inline_call_returns_its_result_without_a_port(void) {
  conformance_client instance = client;
  conformance_option_failure_in code = how(CONFORMANCE_FAILURE_CODE);
  conformance_twice_result result;
  conformance_fail_here_result failed;
  tw_error error;
  uint32_t number = 0;
  instance.tw.port = 0;
  CHECK_CODE(conformance_twice(&instance, UINT32_MAX, TW_FOREVER, &result, &error), TW_OK);
  CHECK(result.ok == UINT64_C(2) * UINT32_MAX);
  tw_reply_release(&result.reply);
  code.value.value.code = 4711;
  CHECK_CODE(conformance_fail_here(&instance, &code, TW_FOREVER, &failed, &error), TW_ERROR);
  CHECK(conformance_failure_code(failed.reply.base, failed.error, &number) && number == 4711);
  tw_reply_release(&failed.reply);
  tw_reply_release(&failed.reply);
}

static void inline_call_past_its_deadline_does_not_run(void) {
  conformance_panic_here_result result;
  tw_error error;
  CHECK_CODE(conformance_panic_here(&client, tw_text_of("begun"), 1, &result, &error),
             TW_TIMED_OUT);
  tw_reply_release(&result.reply);
}

static void panic_in_inline_call_keeps_the_instance(void) {
  conformance_counter counter = counter_of(&client, 5);
  conformance_counter_value_result value;
  conformance_panic_here_result result;
  tw_error error;
  CHECK_CODE(conformance_panic_here(&client, tw_text_of("not today"), TW_FOREVER, &result, &error),
             TW_GUEST_PANICKED);
  CHECK(strstr(error.message, "not today") != NULL);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_counter_value(&client, counter, TW_FOREVER, &value, &error), TW_OK);
  CHECK(value.ok == 5);
  tw_reply_release(&value.reply);
  CHECK_CODE(conformance_counter_close(&counter, &error), TW_OK);
}

static void inline_method_can_be_submitted_and_others_cannot_be_called_inline(void) {
  tw_request request;
  conformance_twice_result result;
  tw_completion completion;
  tw_error error;
  REQUIRE_OK(submit_request(conformance_twice_prepare(&client, 21, &request), 3, NULL, &error),
             error);
  completion = next_completion(&client);
  CHECK(completion.token == 3);
  CHECK_CODE(conformance_twice_read(&client, &completion, &result, &error), TW_OK);
  CHECK(result.ok == 42);
  tw_reply_release(&result.reply);
  REQUIRE_OK(tw_request_end(conformance_nothing_prepare(&client, &request), &error), error);
  CHECK_CODE(tw_call_inline(&client.tw, &request.submission, &completion, &error), TW_ARGUMENT);
  CHECK(strstr(error.message, "inline") != NULL);
  tw_request_free(&request);
}

static void retryable_depends_on_the_method(void) {
  conformance_panic_result once;
  conformance_panic_later_result again;
  tw_error error;
  CHECK_CODE(conformance_panic(&client, tw_text_of("x"), TW_FOREVER, &once, &error),
             TW_GUEST_PANICKED);
  CHECK(error.retryable == 0);
  tw_reply_release(&once.reply);
  CHECK_CODE(conformance_panic_later(&client, tw_text_of("x"), TW_FOREVER, &again, &error),
             TW_GUEST_PANICKED);
  CHECK(error.retryable == 1);
  tw_reply_release(&again.reply);
}

/* ---- Progress notices ------------------------------------------------------------------------ */

static tw_submission never_with_notices(void) {
  tw_request request;
  tw_error error;
  uint32_t accepted = 0;
  REQUIRE_OK(tw_request_end(conformance_never_prepare(&client, &request), &error), error);
  request.submission.token = 17;
  request.submission.flags = TW_SUBMIT_NOTICES;
  REQUIRE_OK(client.tw.table->submit(client.tw.port, &request.submission, 1, &accepted, &error),
             error);
  tw_request_free(&request);
  return request.submission;
}

static void long_call_sends_notices_and_ends_once(void) {
  const tw_table *table = client.tw.table;
  tw_submission submission = never_with_notices();
  tw_completion completion;
  uint64_t elapsed = 0;
  int i;
  for (i = 0; i < 3; i++) {
    uint64_t before = elapsed;
    completion = next_completion(&client);
    CHECK(completion.kind == TW_COMPLETION_NOTICE && completion.code == TW_OK);
    CHECK(completion.token == 17 && completion.call == submission.call);
    CHECK(completion.data_size == sizeof(elapsed));
    memcpy(&elapsed, completion.data, sizeof(elapsed));
    CHECK(elapsed > before && elapsed >= MILLISECOND);
    table->release(&completion);
  }
  CHECK(table->cancel(submission.call, NULL) == TW_OK);
  completion = next_completion(&client);
  if (completion.kind == TW_COMPLETION_NOTICE) {
    table->release(&completion);
    completion = next_completion(&client);
  }
  CHECK(completion.kind == TW_COMPLETION_CALL && completion.code == TW_CANCELLED);
  table->release(&completion);
}

static void notices_of_other_methods_and_unknown_flags_are_refused(void) {
  tw_request request;
  tw_error error;
  REQUIRE_OK(tw_request_end(conformance_nothing_prepare(&client, &request), &error), error);
  request.submission.flags = TW_SUBMIT_NOTICES;
  CHECK_CODE(tw_submit(&client.tw, &request.submission, &error), TW_ARGUMENT);
  CHECK(strstr(error.message, "notice") != NULL);
  request.submission.flags = 4;
  CHECK_CODE(tw_submit(&client.tw, &request.submission, &error), TW_ARGUMENT);
  tw_request_free(&request);
}

static void count_and_cancel(void *ctx, const tw_client *from, tw_handle call,
                             uint64_t elapsed_ns) {
  uint32_t *count = ctx;
  CHECK(elapsed_ns >= MILLISECOND);
  if (++*count == 3) {
    CHECK(from->table->cancel(call, NULL) == TW_OK);
  }
}

static void blocking_call_continues_after_a_notice(void) {
  conformance_never_result result;
  tw_error error;
  uint32_t count = 0;
  client.tw.on_notice = count_and_cancel;
  client.tw.notice_ctx = &count;
  CHECK_CODE(conformance_never(&client, TW_FOREVER, &result, &error), TW_CANCELLED);
  CHECK(count >= 3);
  tw_reply_release(&result.reply);
  client.tw.on_notice = NULL;
}

int main(int argc, char **argv) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_alarm; /* without SA_RESTART */
  sigaction(SIGALRM, &action, NULL);
  open_library(argc, argv);
  client = open_client(16);
  RUN(table_and_header_describe_each_method_equally);
  RUN(program_with_fewer_functions_calls_them);
  RUN(call_returns_its_result);
  RUN(call_without_result_ends_as_ok);
  RUN(typed_error_has_its_payload);
  RUN(error_without_payload_ends_as_error);
  RUN(each_call_of_a_batch_completes_once);
  RUN(text_that_is_not_utf8_is_refused);
  RUN(invalid_value_of_a_type_is_refused);
  RUN(malformed_arguments_are_refused);
  RUN(unknown_method_is_refused);
  RUN(call_past_its_deadline_is_timed_out);
  RUN(call_that_ends_before_its_deadline_is_ok);
  RUN(cancelled_call_ends_as_cancelled_and_its_handle_is_stale);
  RUN(panic_ends_its_call_and_a_new_instance_serves_the_next);
  RUN(port_wait_returns_interrupted_after_a_signal);
  RUN(blocking_call_has_ended_after_a_signal);
  RUN(resource_is_used_passed_and_closed);
  RUN(handle_of_another_kind_is_refused);
  RUN(resource_from_before_a_panic_is_stale);
  RUN(release_closes_a_handle_that_was_not_taken);
  RUN(second_release_of_a_copy_has_no_effect);
  RUN(retryable_depends_on_the_method);
  RUN(inline_call_returns_its_result_without_a_port);
  RUN(inline_call_past_its_deadline_does_not_run);
  RUN(panic_in_inline_call_keeps_the_instance);
  RUN(inline_method_can_be_submitted_and_others_cannot_be_called_inline);
  RUN(long_call_sends_notices_and_ends_once);
  RUN(notices_of_other_methods_and_unknown_flags_are_refused);
  RUN(blocking_call_continues_after_a_notice);
  close_client(&client);
  return done("calls");
}
