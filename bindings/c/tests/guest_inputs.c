/* A service in C that reads streams of its callers and calls its host.
 * guest_inputs LIBRARY: the guest, which test.sh compiles. */
#include <dlfcn.h>
#include <time.h>

#include "check.h"
#include "inputs.h"

static inputs_library library;
static const long *threads; /* of the guest */

static inputs_client open_client(void) {
  inputs_client client;
  tw_error error;
  REQUIRE_OK(inputs_client_open(&library, 1024, &client, &error), error);
  return client;
}

static void close_client(inputs_client *client) {
  tw_error error;
  REQUIRE_OK(inputs_client_close(client, &error), error);
}

/* The outcome of a call that was submitted. */
static tw_completion *reap(const inputs_client *client, tw_completion *completion) {
  const tw_table *table = client->tw.table;
  tw_error error;
  uint32_t count = 0;
  REQUIRE_OK(table->port_wait(client->tw.port, TW_FOREVER, &error), error);
  REQUIRE_OK(table->port_reap(client->tw.port, completion, 1, &count, &error), error);
  CHECK(count == 1);
  return completion;
}

static void submit(tw_request *request) {
  tw_error error;
  REQUIRE_OK(tw_request_submit(request, TW_FOREVER, 1, NULL, &error), error);
}

static void elements_are_read_in_order(void) {
  inputs_client client = open_client();
  inputs_u64_stream_writer numbers;
  inputs_sum_result result;
  tw_request request;
  tw_completion completion;
  tw_error error;
  uint64_t number;
  REQUIRE_OK(inputs_sum_numbers_open(&client, &numbers, &error), error);
  submit(inputs_sum_prepare(&client, &numbers, &request));
  for (number = 1; number <= 10000; number++) {
    REQUIRE_OK(inputs_u64_stream_writer_send(&numbers, number, TW_FOREVER, &error), error);
  }
  REQUIRE_OK(inputs_u64_stream_writer_finish(&numbers, &error), error);
  CHECK_CODE(inputs_sum_read(&client, reap(&client, &completion), &result, &error), TW_OK);
  CHECK(result.ok == UINT64_C(50005000));
  tw_reply_release(&result.reply);
  inputs_u64_stream_writer_close(&numbers, &error);
  close_client(&client);
}

static void text_and_futures_are_read(void) {
  inputs_client client = open_client();
  inputs_string_stream_writer names;
  inputs_string_future_writer between;
  inputs_join_result result;
  tw_request request;
  tw_completion completion;
  tw_error error;
  REQUIRE_OK(inputs_join_names_open(&client, &names, &error), error);
  REQUIRE_OK(inputs_join_between_open(&client, &between, &error), error);
  submit(inputs_join_prepare(&client, &names, &between, &request));
  REQUIRE_OK(inputs_string_stream_writer_send(&names, tw_text_of("left"), TW_FOREVER, &error),
             error);
  REQUIRE_OK(inputs_string_stream_writer_send(&names, tw_text_of("right"), TW_FOREVER, &error),
             error);
  REQUIRE_OK(inputs_string_stream_writer_finish(&names, &error), error);
  REQUIRE_OK(inputs_string_future_writer_set(&between, tw_text_of(" and "), &error), error);
  CHECK_CODE(inputs_join_read(&client, reap(&client, &completion), &result, &error), TW_OK);
  CHECK(tw_text_equal(result.ok, tw_text_of("left and right")));
  tw_reply_release(&result.reply);
  inputs_string_stream_writer_close(&names, &error);
  inputs_string_future_writer_close(&between, &error);
  close_client(&client);
}

static void writer_that_leaves_cancels_the_stream(void) {
  inputs_client client = open_client();
  inputs_u64_stream_writer numbers;
  inputs_sum_result result;
  tw_request request;
  tw_completion completion;
  tw_error error;
  REQUIRE_OK(inputs_sum_numbers_open(&client, &numbers, &error), error);
  submit(inputs_sum_prepare(&client, &numbers, &request));
  REQUIRE_OK(inputs_u64_stream_writer_send(&numbers, 1, TW_FOREVER, &error), error);
  inputs_u64_stream_writer_close(&numbers, &error);
  CHECK_CODE(inputs_sum_read(&client, reap(&client, &completion), &result, &error), TW_CANCELLED);
  tw_reply_release(&result.reply);
  close_client(&client);
}

static void closed_stream_is_reported_to_its_writer(void) {
  inputs_client client = open_client();
  inputs_u64_stream_writer numbers;
  inputs_ignore_result result;
  tw_error error;
  REQUIRE_OK(inputs_ignore_numbers_open(&client, &numbers, &error), error);
  CHECK_CODE(inputs_ignore(&client, &numbers, TW_FOREVER, &result, &error), TW_OK);
  tw_reply_release(&result.reply);
  CHECK_CODE(inputs_u64_stream_writer_send(&numbers, 1, TW_FOREVER, &error), TW_CLOSED);
  inputs_u64_stream_writer_close(&numbers, &error);
  close_client(&client);
}

static void look_up(void *context, const tw_host_call *call, uint64_t key) {
  (void)context;
  if (key == 99) {
    tw_host_call_fail(call, TW_OVERLOADED, "not now", NULL);
  } else if (key % 2 == 0) {
    inputs_oracle_look_up_answer(call, tw_text_of("an even number"), NULL);
  } else {
    inputs_oracle_look_up_fail(call, key, NULL);
  }
}

static void tell(void *context, const tw_host_call *call, inputs_list_string words,
                 const inputs_option_u32 *at) {
  uint64_t total = at->some ? at->value : 0;
  size_t index;
  (void)context;
  for (index = 0; index < words.count; index++) {
    total += inputs_list_string_at(call->base, words, index).size;
  }
  inputs_oracle_tell_answer(call, total, NULL);
}

static void guest_calls_its_host(void) {
  inputs_client client = open_client();
  inputs_oracle host;
  inputs_ask_result asked;
  inputs_ask_now_result now;
  inputs_tell_result told;
  tw_text words[2];
  inputs_list_string_in list;
  tw_error error;
  CHECK_CODE(inputs_ask(&client, 2, TW_FOREVER, &asked, &error), TW_GUEST_LOST);
  CHECK(strstr(error.message, "no host") != NULL);
  tw_reply_release(&asked.reply);
  memset(&host, 0, sizeof(host));
  host.look_up = look_up;
  host.tell = tell;
  REQUIRE_OK(inputs_client_set_host(&client, &host, &error), error);
  CHECK_CODE(inputs_ask(&client, 2, TW_FOREVER, &asked, &error), TW_OK);
  CHECK(tw_text_equal(asked.ok, tw_text_of("an even number")));
  tw_reply_release(&asked.reply);
  CHECK_CODE(inputs_ask(&client, 3, TW_FOREVER, &asked, &error), TW_ERROR);
  CHECK(asked.error == 3);
  tw_reply_release(&asked.reply);
  CHECK_CODE(inputs_ask(&client, 99, TW_FOREVER, &asked, &error), TW_OVERLOADED);
  CHECK(strstr(error.message, "not now") != NULL);
  tw_reply_release(&asked.reply);
  words[0] = tw_text_of("three");
  words[1] = tw_text_of("four");
  list.items = words;
  list.count = 2;
  CHECK_CODE(inputs_tell(&client, list, TW_FOREVER, &told, &error), TW_OK);
  CHECK(told.ok == 1009);
  tw_reply_release(&told.reply);
  CHECK_CODE(inputs_ask_now(&client, 2, TW_FOREVER, &now, &error), TW_OK);
  CHECK(now.ok == TW_WOULD_PARK);
  tw_reply_release(&now.reply);
  close_client(&client);
}

static void threads_of_the_guest_end(void) {
  struct timespec pause;
  int tries;
  pause.tv_sec = 0;
  pause.tv_nsec = 1000000;
  for (tries = 0; tries < 60000 && *(const volatile long *)threads != 0; tries++) {
    nanosleep(&pause, NULL);
  }
  CHECK(*(const volatile long *)threads == 0);
}

int main(int argc, char **argv) {
  char address[1024];
  void *loaded;
  tw_error error;
  if (argc != 2) {
    fputs("usage: guest_inputs LIBRARY\n", stderr);
    return 2;
  }
  snprintf(address, sizeof(address), "thread:%s", argv[1]);
  REQUIRE_OK(inputs_open(address, &library, &error), error);
  loaded = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
  threads = loaded ? (const long *)dlsym(loaded, "inputs_threads") : NULL;
  if (!threads) {
    fputs("the guest has no inputs_threads\n", stderr);
    return 1;
  }
  RUN(elements_are_read_in_order);
  RUN(text_and_futures_are_read);
  RUN(writer_that_leaves_cancels_the_stream);
  RUN(closed_stream_is_reported_to_its_writer);
  RUN(guest_calls_its_host);
  RUN(threads_of_the_guest_end);
  return done("guest_inputs");
}
