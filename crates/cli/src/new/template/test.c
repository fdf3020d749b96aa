/* Tests of the service from C: test-c LIBRARY. */
#include "my_service.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static void greet_returns_a_greeting(const my_service_client *client) {
  my_service_greet_result result;
  tw_error error;
  tw_text text;
  CHECK(my_service_greet(client, tw_text_of("Ada"), TW_FOREVER, &result, &error) == TW_OK);
  CHECK(result.ok->number == 1);
  text = my_service_greeting_text(result.reply.base, result.ok);
  CHECK(text.size == strlen("Hello, Ada!") && memcmp(text.data, "Hello, Ada!", text.size) == 0);
  tw_reply_release(&result.reply);
}

static void greet_refuses_an_empty_name(const my_service_client *client) {
  my_service_greet_result result;
  tw_error error;
  CHECK(my_service_greet(client, tw_text_of(""), TW_FOREVER, &result, &error) == TW_ERROR);
  CHECK(result.error->tag == MY_SERVICE_MY_SERVICE_ERROR_EMPTY_NAME);
  tw_reply_release(&result.reply);
}

static void greet_all_streams_one_greeting_per_name(const my_service_client *client) {
  const tw_text names[] = {tw_text_of("Grace"), tw_text_of("Barbara")};
  my_service_list_string_in list;
  my_service_greet_all_result result;
  my_service_greeting_batch batch;
  tw_error error;
  uint32_t count = 0;
  uint32_t code;
  list.items = names;
  list.count = 2;
  CHECK(my_service_greet_all(client, list, TW_FOREVER, &result, &error) == TW_OK);
  while ((code = my_service_greeting_stream_acquire(&result.ok, 16, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    count += batch.tw.count;
    my_service_greeting_stream_release(&result.ok, batch.tw.count, &error);
  }
  CHECK(code == TW_CLOSED && count == 2);
  my_service_greeting_stream_close(&result.ok, NULL);
  tw_reply_release(&result.reply);
}

int main(int argc, char **argv) {
  my_service_library library;
  my_service_client client;
  tw_error error;
  CHECK(argc == 2);
  CHECK(my_service_open(argv[1], &library, &error) == TW_OK);
  CHECK(my_service_client_open(&library, 1, &client, &error) == TW_OK);
  greet_returns_a_greeting(&client);
  greet_refuses_an_empty_name(&client);
  greet_all_streams_one_greeting_per_name(&client);
  my_service_client_close(&client, NULL);
  puts("C: 3 tests passed");
  return 0;
}
