/* Arguments whose second part is read in place: TW_SUBMIT_BORROWED. The tests free that part as soon as
 * thalweg.h allows it, so that AddressSanitizer finds a later use. */
#include <pthread.h>

#include "host.h"

/* Both parts of a message, each in memory of its own. */
typedef struct parts {
  tw_borrowed_args args;
  uint8_t *head;
  uint8_t *tail;
} parts;

static uint8_t *copy_of(const uint8_t *bytes, uint64_t size) {
  uint8_t *copy = (uint8_t *)malloc(size);
  CHECK(copy != NULL);
  memcpy(copy, bytes, size);
  return copy;
}

/* The message of a request. Its last `size` bytes are the tail. */
static parts split(tw_request *request, uint64_t size) {
  const tw_submission *whole = &request->submission;
  tw_error error;
  parts made;
  REQUIRE_OK(tw_request_end(request, &error), error);
  made.args.head_size = whole->args_size - size;
  made.args.tail_size = size;
  made.head = copy_of(whole->args, made.args.head_size);
  made.tail = copy_of(whole->args + made.args.head_size, size);
  made.args.head = made.head;
  made.args.tail = made.tail;
  return made;
}

/* Submits the call with both parts, and frees the request and the head. */
static uint32_t submit(tw_request *request, parts *of, uint64_t token, uint64_t deadline_ns,
                       tw_handle *call) {
  const tw_table *table = request->client->table;
  uint32_t accepted = 0;
  uint32_t code;
  tw_error error;
  request->submission.args = (const uint8_t *)&of->args;
  request->submission.args_size = sizeof(of->args);
  request->submission.flags = TW_SUBMIT_BORROWED;
  request->submission.token = token;
  request->submission.deadline_ns = deadline_ns;
  code = table->submit(request->client->port, &request->submission, 1, &accepted, &error);
  CHECK((code == TW_OK) == (accepted == 1));
  if (call) {
    *call = request->submission.call;
  }
  tw_request_free(request);
  free(of->head);
  return code;
}

/* Reaps the completion of a call, frees its tail, and returns the outcome. */
static uint32_t end(const conformance_client *client, parts *of, uint64_t token) {
  tw_completion completion = next_completion(client);
  uint32_t code = completion.code;
  free(of->tail);
  CHECK(completion.token == token);
  client->tw.table->release(&completion);
  return code;
}

static tw_text text_of_size(char *memory, size_t size) {
  tw_text text;
  memset(memory, 'a', size);
  text.data = memory;
  text.size = size;
  return text;
}

static char memory[1 << 20];

static parts split_text(const conformance_client *client, tw_request *request, size_t size) {
  return split(conformance_echo_string_prepare(client, text_of_size(memory, size), request), size);
}

static void borrowed_text_is_echoed(void) {
  static const size_t sizes[] = {1, 7, 512, 4096, 100000, sizeof(memory)};
  conformance_client client = open_client(4);
  size_t i;
  for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    conformance_echo_string_result result;
    tw_completion completion;
    tw_request request;
    tw_error error;
    parts of = split_text(&client, &request, sizes[i]);
    CHECK_CODE(submit(&request, &of, i, TW_FOREVER, NULL), TW_OK);
    completion = next_completion(&client);
    memset(of.tail, 'b', sizes[i]);
    free(of.tail);
    CHECK_CODE(conformance_echo_string_read(&client, &completion, &result, &error), TW_OK);
    CHECK(tw_text_equal(result.ok, text_of_size(memory, sizes[i])));
    tw_reply_release(&result.reply);
  }
  close_client(&client);
}

/* The message of `echo_string` with 100 characters, cut at each place. */
static void message_is_only_accepted_if_no_value_is_cut(void) {
  conformance_client client = open_client(4);
  uint64_t tail;
  for (tail = 0; tail <= 124; tail++) {
    tw_request request;
    parts of =
        split(conformance_echo_string_prepare(&client, text_of_size(memory, 100), &request), tail);
    uint32_t wanted = tail == 0 || tail == 100 ? TW_OK : TW_ARGUMENT;
    CHECK(of.args.head_size + tail == 124);
    CHECK_CODE(submit(&request, &of, tail, TW_FOREVER, NULL), TW_OK);
    CHECK_CODE(end(&client, &of, tail), wanted);
  }
  close_client(&client);
}

static void damaged_part_is_refused(void) {
  conformance_client client = open_client(4);
  tw_request request;
  parts of = split_text(&client, &request, 5000);
  of.tail[4999] = 0xff; /* not UTF-8 */
  CHECK_CODE(submit(&request, &of, 1, TW_FOREVER, NULL), TW_OK);
  CHECK_CODE(end(&client, &of, 1), TW_ARGUMENT);
  of = split_text(&client, &request, 5000);
  of.args.tail_size -= 1;
  CHECK_CODE(submit(&request, &of, 2, TW_FOREVER, NULL), TW_OK);
  CHECK_CODE(end(&client, &of, 2), TW_ARGUMENT);
  of = split_text(&client, &request, 5000);
  of.head[4] ^= 1; /* another layout */
  CHECK_CODE(submit(&request, &of, 3, TW_FOREVER, NULL), TW_OK);
  CHECK_CODE(end(&client, &of, 3), TW_ARGUMENT);
  close_client(&client);
}

static void wrong_struct_is_refused(void) {
  conformance_client client = open_client(4);
  const tw_table *table = client.tw.table;
  tw_submission call;
  tw_borrowed_args args;
  tw_error error;
  uint32_t accepted = 7;
  memset(&args, 0, sizeof(args));
  memset(&call, 0, sizeof(call));
  call.client = client.tw.instance;
  call.flags = TW_SUBMIT_BORROWED;
  CHECK_CODE(table->submit(client.tw.port, &call, 1, &accepted, &error), TW_ARGUMENT);
  call.args_size = sizeof(args);
  CHECK_CODE(table->submit(client.tw.port, &call, 1, &accepted, &error), TW_ARGUMENT);
  call.args = (const uint8_t *)&args;
  CHECK_CODE(table->submit(client.tw.port, &call, 1, &accepted, &error), TW_ARGUMENT);
  args.head = (const uint8_t *)memory;
  CHECK_CODE(table->submit(client.tw.port, &call, 1, &accepted, &error), TW_ARGUMENT);
  args.tail = (const uint8_t *)memory;
  args.tail_size = UINT64_MAX;
  CHECK_CODE(table->submit(client.tw.port, &call, 1, &accepted, &error), TW_ARGUMENT);
  args.tail_size = 8;
  args.head_size = 16;
  call.method = UINT32_MAX;
  CHECK_CODE(table->submit(client.tw.port, &call, 1, &accepted, &error), TW_ARGUMENT);
  CHECK(accepted == 0);
  close_client(&client);
}

/* A client whose service reads a stream, so that all further calls wait for its end. */
static conformance_client open_blocked(conformance_item_stream_writer *block) {
  conformance_client client = open_client(8);
  tw_request request;
  tw_error error;
  REQUIRE_OK(conformance_names_of_items_open(&client, block, &error), error);
  REQUIRE_OK(
      submit_request(conformance_names_of_prepare(&client, block, &request), 0, NULL, &error),
      error);
  return client;
}

static void let_continue(conformance_item_stream_writer *block) {
  tw_error error;
  REQUIRE_OK(conformance_item_stream_writer_finish(block, &error), error);
  REQUIRE_OK(conformance_item_stream_writer_close(block, &error), error);
}

static void ended_call_is_not_read_by_the_service(void) {
  conformance_item_stream_writer block;
  conformance_client client = open_blocked(&block);
  const tw_table *table = client.tw.table;
  tw_request request;
  tw_completion first;
  tw_handle call;
  tw_error error;
  parts of = split_text(&client, &request, 5000);
  CHECK_CODE(submit(&request, &of, 1, TW_FOREVER, &call), TW_OK);
  REQUIRE_OK(table->cancel(call, &error), error);
  CHECK_CODE(end(&client, &of, 1), TW_CANCELLED);
  of = split_text(&client, &request, 5000);
  CHECK_CODE(submit(&request, &of, 2, table->now() + MILLISECOND, NULL), TW_OK);
  CHECK_CODE(end(&client, &of, 2), TW_TIMED_OUT);
  of = split_text(&client, &request, 5000);
  CHECK_CODE(submit(&request, &of, 3, 1, NULL), TW_OK);
  CHECK_CODE(end(&client, &of, 3), TW_TIMED_OUT);
  let_continue(&block);
  first = next_completion(&client);
  CHECK(first.token == 0 && first.code == TW_OK);
  table->release(&first);
  close_client(&client);
}

static void closed_client_ends_the_borrow(void) {
  conformance_item_stream_writer block;
  conformance_client client = open_blocked(&block);
  conformance_client other = open_client(4);
  const tw_table *table = client.tw.table;
  tw_handle port = client.tw.port;
  tw_request request;
  tw_error error;
  uint32_t left = 2;
  parts of = split_text(&client, &request, 5000);
  CHECK_CODE(submit(&request, &of, 1, TW_FOREVER, NULL), TW_OK);
  REQUIRE_OK(table->client_close(client.tw.instance, &error), error);
  while (left > 0) {
    tw_completion completion;
    uint32_t count = 0;
    REQUIRE_OK(table->port_wait(port, TW_FOREVER, &error), error);
    REQUIRE_OK(table->port_reap(port, &completion, 1, &count, &error), error);
    CHECK(count == 1 && (completion.token == 0 || completion.code == TW_CANCELLED));
    table->release(&completion);
    left -= 1;
  }
  free(of.tail);
  REQUIRE_OK(conformance_item_stream_writer_close(&block, &error), error);
  REQUIRE_OK(table->port_close(port, &error), error);
  close_client(&other);
}

static void closed_port_ends_the_borrow(void) {
  conformance_item_stream_writer block;
  conformance_client client = open_blocked(&block);
  const tw_table *table = client.tw.table;
  tw_handle port = client.tw.port;
  tw_request request;
  tw_error error;
  parts of = split_text(&client, &request, 5000);
  REQUIRE_OK(table->port_open(4, &client.tw.port, &error), error);
  CHECK_CODE(submit(&request, &of, 1, TW_FOREVER, NULL), TW_OK);
  REQUIRE_OK(table->port_close(client.tw.port, &error), error);
  free(of.tail);
  client.tw.port = port;
  let_continue(&block);
  CHECK(next_completion(&client).token == 0);
  close_client(&client);
}

static void full_port_leaves_the_parts_with_the_caller(void) {
  conformance_client client = open_client(1);
  tw_request request;
  tw_error error;
  parts of;
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 0, NULL, &error), error);
  of = split_text(&client, &request, 5000);
  CHECK_CODE(submit(&request, &of, 1, TW_FOREVER, NULL), TW_OVERLOADED);
  free(of.tail);
  close_client(&client);
}

static tw_handle running;
static int is_over;

static void *cancel_calls(void *of) {
  const conformance_client *client = (const conformance_client *)of;
  unsigned rounds = 0;
  while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
    volatile unsigned i;
    for (i = 0; i < rounds % 2000; i++) {
    }
    rounds += 37;
    client->tw.table->cancel(__atomic_load_n(&running, __ATOMIC_ACQUIRE), NULL);
  }
  return NULL;
}

/* The service reads the tail while another thread cancels the call. */
static void call_that_is_cancelled_while_it_is_read_is_not_read_afterwards(void) {
  conformance_client client = open_client(4);
  pthread_t thread;
  uint64_t round;
  CHECK(pthread_create(&thread, NULL, cancel_calls, &client) == 0);
  for (round = 0; round < 1000; round++) {
    tw_request request;
    tw_handle call = 0;
    uint32_t code;
    parts of = split_text(&client, &request, 200000);
    CHECK_CODE(submit(&request, &of, round, TW_FOREVER, &call), TW_OK);
    __atomic_store_n(&running, call, __ATOMIC_RELEASE);
    code = end(&client, &of, round);
    CHECK(code == TW_OK || code == TW_CANCELLED);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  close_client(&client);
}

static void message_with_handles_can_be_borrowed(void) {
  conformance_client client = open_client(4);
  conformance_counter_new_result counter;
  conformance_many_result result;
  conformance_option_string_in text;
  tw_completion completion;
  tw_request request;
  tw_error error;
  parts of;
  static const uint8_t bytes[3] = {1, 2, 3};
  tw_bytes few;
  few.data = bytes;
  few.size = sizeof(bytes);
  memset(&text, 0, sizeof(text));
  text.some = true;
  text.value = text_of_size(memory, 5000);
  REQUIRE_OK(conformance_counter_new(&client, 5, TW_FOREVER, &counter, &error), error);
  of = split(conformance_many_prepare(&client, 1, 2, 3, 4, 5, tw_text_of("f"), 7, 8, few, 10, 11,
                                      &text, counter.ok, 15, &request),
             5000);
  CHECK_CODE(submit(&request, &of, 1, TW_FOREVER, NULL), TW_OK);
  completion = next_completion(&client);
  free(of.tail);
  CHECK_CODE(conformance_many_read(&client, &completion, &result, &error), TW_OK);
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_counter_close(&counter.ok, &error), TW_OK);
  close_client(&client);
}

/* A refused call closes the stream in its message. Its root is cut. */
static void stream_in_a_refused_message_is_closed(void) {
  conformance_client client = open_client(4);
  conformance_item_stream_writer writer;
  conformance_item_in item;
  tw_request request;
  tw_error error;
  parts of;
  memset(&item, 0, sizeof(item));
  REQUIRE_OK(conformance_names_of_items_open(&client, &writer, &error), error);
  of = split(conformance_names_of_prepare(&client, &writer, &request), 2);
  CHECK_CODE(submit(&request, &of, 1, TW_FOREVER, NULL), TW_OK);
  CHECK_CODE(end(&client, &of, 1), TW_ARGUMENT);
  CHECK_CODE(conformance_item_stream_writer_send(&writer, &item, 0, &error), TW_CLOSED);
  CHECK_CODE(conformance_item_stream_writer_close(&writer, &error), TW_OK);
  close_client(&client);
}

/* They are copied, so that any cut is accepted. */
static void arguments_of_an_inline_method_are_copied(void) {
  conformance_client client = open_client(4);
  tw_request request;
  parts of = split(conformance_twice_prepare(&client, 21, &request), 5);
  CHECK_CODE(submit(&request, &of, 2, TW_FOREVER, NULL), TW_OK);
  CHECK_CODE(end(&client, &of, 2), TW_OK);
  close_client(&client);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  RUN(borrowed_text_is_echoed);
  RUN(message_is_only_accepted_if_no_value_is_cut);
  RUN(damaged_part_is_refused);
  RUN(wrong_struct_is_refused);
  RUN(ended_call_is_not_read_by_the_service);
  RUN(closed_client_ends_the_borrow);
  RUN(closed_port_ends_the_borrow);
  RUN(full_port_leaves_the_parts_with_the_caller);
  RUN(call_that_is_cancelled_while_it_is_read_is_not_read_afterwards);
  RUN(message_with_handles_can_be_borrowed);
  RUN(stream_in_a_refused_message_is_closed);
  RUN(arguments_of_an_inline_method_are_copied);
  return done("borrowed");
}
