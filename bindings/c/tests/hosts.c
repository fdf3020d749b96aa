/* Host imports that are implemented in C. */
#include "host.h"

/* What the functions below have received. */
typedef struct received {
  conformance_client *client;
  uint32_t looks;
  uint32_t nods;
  uint32_t called_back;
  tw_host_call kept;
  uint64_t deadline;
} received;

enum { KEEP = 100, CALL_BACK = 102, BREAK = 104 };

static void look_up(void *context, const tw_host_call *call, uint64_t key) {
  received *what = (received *)context;
  conformance_nothing_result result;
  tw_error error;
  what->looks++;
  what->deadline = tw_host_call_deadline(call);
  if (key == KEEP) {
    what->kept = *call;
    return;
  }
  if (key == CALL_BACK) {
    what->called_back = conformance_nothing(what->client, TW_FOREVER, &result, &error);
  }
  if (key == BREAK) {
    CHECK_CODE(tw_host_call_fail(call, TW_GUEST_PANICKED, "on purpose", &error), TW_OK);
  } else if (key % 2 == 0) {
    CHECK_CODE(conformance_oracle_look_up_answer(call, tw_text_of("even"), &error), TW_OK);
  } else {
    CHECK_CODE(conformance_oracle_look_up_fail(call, key, &error), TW_OK);
  }
  if (key != KEEP) {
    CHECK_CODE(conformance_oracle_look_up_fail(call, key, &error), TW_STALE);
  }
}

static void tell(void *context, const tw_host_call *call, conformance_list_string words,
                 const conformance_option_u32 *at) {
  tw_error error;
  uint64_t bytes = at->some ? at->value : 0;
  uint32_t i;
  (void)context;
  for (i = 0; i < words.count; i++) {
    bytes += conformance_list_string_at(call->base, words, i).size;
  }
  CHECK_CODE(conformance_oracle_tell_answer(call, bytes, &error), TW_OK);
}

static void nod(void *context, const tw_host_call *call) {
  tw_error error;
  ((received *)context)->nods++;
  CHECK_CODE(conformance_oracle_nod_answer(call, &error), TW_OK);
}

static conformance_oracle oracle_of(received *what) {
  conformance_oracle oracle;
  memset(&oracle, 0, sizeof(oracle));
  oracle.context = what;
  oracle.look_up = look_up;
  oracle.tell = tell;
  oracle.nod = nod;
  return oracle;
}

static void check_ask(const conformance_client *client, uint64_t key, uint32_t wanted) {
  conformance_ask_result result;
  conformance_ask_later_result later;
  tw_error error;
  uint32_t code = conformance_ask(client, key, TW_FOREVER, &result, &error);
  if (wanted == TW_OK) {
    CHECK_CODE(code, TW_OK);
    CHECK(code == TW_OK && tw_text_equal(result.ok, tw_text_of("even")));
  } else {
    CHECK_CODE(code, TW_ERROR);
    CHECK(result.error == wanted);
  }
  tw_reply_release(&result.reply);
  code = conformance_ask_later(client, key, TW_FOREVER, &later, &error);
  CHECK_CODE(code, wanted == TW_OK ? TW_OK : TW_ERROR);
  tw_reply_release(&later.reply);
}

static void host_answers_during_a_blocking_call(void) {
  conformance_client client = open_client(4);
  received what;
  conformance_oracle oracle = oracle_of(&what);
  conformance_tell_result told;
  conformance_list_string_in words;
  conformance_option_u32 at;
  tw_text two[2];
  tw_error error;
  memset(&what, 0, sizeof(what));
  REQUIRE_OK(conformance_client_set_host(&client, &oracle, &error), error);
  check_ask(&client, 2, TW_OK);
  check_ask(&client, 7, TW_ERROR);
  check_ask(&client, BREAK, TW_GUEST_PANICKED);
  CHECK(what.looks == 6 && what.deadline == TW_FOREVER);
  two[0] = tw_text_of("four");
  two[1] = tw_text_of("fives");
  words.items = two;
  words.count = 2;
  at.some = true;
  at.value = 91;
  CHECK_CODE(conformance_tell(&client, words, &at, TW_FOREVER, &told, &error), TW_OK);
  CHECK(told.ok == 100 && what.nods == 1);
  tw_reply_release(&told.reply);
  close_client(&client);
}

static void host_answers_during_a_wait_for_a_stream(void) {
  conformance_client client = open_client(4);
  received what;
  conformance_oracle oracle = oracle_of(&what);
  conformance_looked_up_result result;
  conformance_ticks_result quiet;
  conformance_string_batch batch;
  conformance_u64_batch numbers;
  conformance_tick_result ticked;
  tw_error error;
  uint64_t read = 0;
  uint32_t code;
  memset(&what, 0, sizeof(what));
  REQUIRE_OK(conformance_client_set_host(&client, &oracle, &error), error);
  REQUIRE_OK(conformance_looked_up(&client, 40, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  while ((code = conformance_string_stream_acquire_serving(&result.ok, &client, 8, TW_FOREVER,
                                                           &batch, &error)) == TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++, read++) {
      tw_text text = tw_text_view(batch.tw.base, *conformance_string_batch_at(&batch, i));
      CHECK(tw_text_equal(text, tw_text_of("even")));
    }
    CHECK_CODE(conformance_string_stream_release(&result.ok, batch.tw.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(read == 40 && what.looks == 40);
  CHECK_CODE(conformance_string_stream_close(&result.ok, &error), TW_OK);
  /* After a wait that timed out, the port can be used for calls and further waits. */
  REQUIRE_OK(conformance_ticks(&client, TW_FOREVER, &quiet, &error), error);
  tw_reply_release(&quiet.reply);
  code = conformance_u64_stream_acquire_serving(&quiet.ok, &client, 8, 1, &numbers, &error);
  CHECK_CODE(code, TW_TIMED_OUT);
  REQUIRE_OK(conformance_tick(&client, 3, TW_FOREVER, &ticked, &error), error);
  tw_reply_release(&ticked.reply);
  check_ask(&client, 2, TW_OK);
  code =
      conformance_u64_stream_acquire_serving(&quiet.ok, &client, 8, TW_FOREVER, &numbers, &error);
  CHECK_CODE(code, TW_OK);
  CHECK(numbers.tw.count == 3);
  CHECK_CODE(conformance_u64_stream_close(&quiet.ok, &error), TW_OK);
  close_client(&client);
}

static void host_import_that_calls_its_client_would_park(void) {
  conformance_client client = open_client(4);
  received what;
  conformance_oracle oracle = oracle_of(&what);
  tw_error error;
  memset(&what, 0, sizeof(what));
  what.client = &client;
  REQUIRE_OK(conformance_client_set_host(&client, &oracle, &error), error);
  check_ask(&client, CALL_BACK, TW_OK);
  CHECK(what.called_back == TW_WOULD_PARK);
  close_client(&client);
}

static void host_call_can_be_answered_later_until_its_call_ends(void) {
  tw_request request;
  conformance_client client = open_client(4);
  const tw_table *table = client.tw.table;
  received what;
  conformance_oracle oracle = oracle_of(&what);
  conformance_ask_later_result result;
  tw_completion completion;
  tw_error error;
  tw_handle call = 0;
  int round;
  memset(&what, 0, sizeof(what));
  REQUIRE_OK(conformance_client_set_host(&client, &oracle, &error), error);
  for (round = 0; round < 2; round++) {
    REQUIRE_OK(
        submit_request(conformance_ask_later_prepare(&client, KEEP, &request), 5, &call, &error),
        error);
    completion = next_completion(&client);
    CHECK(completion.kind == TW_COMPLETION_HOST_CALL && completion.code == 0);
    tw_host_serve(client.tw.host, &completion);
    if (round == 0) {
      CHECK_CODE(conformance_oracle_look_up_answer(&what.kept, tw_text_of("later"), &error), TW_OK);
      completion = next_completion(&client);
      CHECK_CODE(conformance_ask_later_read(&client, &completion, &result, &error), TW_OK);
      CHECK(tw_text_equal(result.ok, tw_text_of("later")));
      tw_reply_release(&result.reply);
    } else {
      REQUIRE_OK(table->cancel(call, &error), error);
      completion = next_completion(&client);
      CHECK(completion.kind == TW_COMPLETION_CALL && completion.code == TW_CANCELLED);
      table->release(&completion);
      CHECK_CODE(conformance_oracle_look_up_answer(&what.kept, tw_text_of("later"), &error),
                 TW_STALE);
    }
  }
  close_client(&client);
}

static void host_call_without_host_or_function_is_closed(void) {
  conformance_client client = open_client(4);
  conformance_oracle oracle;
  tw_error error;
  check_ask(&client, 2, TW_CLOSED);
  memset(&oracle, 0, sizeof(oracle));
  REQUIRE_OK(conformance_client_set_host(&client, &oracle, &error), error);
  check_ask(&client, 2, TW_CLOSED);
  close_client(&client);
}

static void answers_with_a_wrong_handle_or_message_are_refused(void) {
  tw_request request;
  conformance_client client = open_client(4);
  const tw_table *table = client.tw.table;
  const uint8_t not_text = 0xff;
  received what;
  conformance_oracle oracle = oracle_of(&what);
  tw_completion completion;
  tw_error error;
  tw_handle call = 0;
  memset(&what, 0, sizeof(what));
  CHECK_CODE(table->host_call_answer(client.tw.instance, TW_OK, NULL, 0, &error), TW_ARGUMENT);
  REQUIRE_OK(conformance_client_set_host(&client, &oracle, &error), error);
  REQUIRE_OK(
      submit_request(conformance_ask_later_prepare(&client, KEEP, &request), 5, &call, &error),
      error);
  completion = next_completion(&client);
  CHECK_CODE(table->host_call_answer(call, TW_OK, NULL, 0, &error), TW_ARGUMENT);
  tw_host_serve(client.tw.host, &completion);
  CHECK_CODE(table->host_call_answer(what.kept.call, 99, NULL, 0, &error), TW_ARGUMENT);
  CHECK_CODE(table->host_call_answer(what.kept.call, TW_CANCELLED, &not_text, 1, &error),
             TW_ARGUMENT);
  CHECK_CODE(table->host_call_answer(what.kept.call, TW_CANCELLED, NULL, 0, &error), TW_OK);
  completion = next_completion(&client);
  CHECK(completion.kind == TW_COMPLETION_CALL && completion.code == TW_ERROR);
  table->release(&completion);
  close_client(&client);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  RUN(host_answers_during_a_blocking_call);
  RUN(host_answers_during_a_wait_for_a_stream);
  RUN(host_import_that_calls_its_client_would_park);
  RUN(host_call_can_be_answered_later_until_its_call_ends);
  RUN(host_call_without_host_or_function_is_closed);
  RUN(answers_with_a_wrong_handle_or_message_are_refused);
  return done("hosts");
}
