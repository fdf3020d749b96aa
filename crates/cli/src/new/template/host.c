/* A C program that uses the service: host-c LIBRARY. */
#include "my_service.h"

static void print(const void *base, const my_service_greeting *greeting) {
  tw_text text = my_service_greeting_text(base, greeting);
  printf("%" PRIu64 ": %.*s\n", greeting->number, (int)text.size, text.data);
}

static uint32_t greet(const my_service_client *client, tw_error *error) {
  my_service_greet_result result;
  uint32_t code = my_service_greet(client, tw_text_of("Ada"), TW_FOREVER, &result, error);
  if (code == TW_OK) {
    print(result.reply.base, result.ok);
  }
  tw_reply_release(&result.reply);
  return code;
}

static uint32_t greet_all(const my_service_client *client, tw_error *error) {
  const tw_text names[] = {tw_text_of("Grace"), tw_text_of("Barbara")};
  my_service_list_string_in list;
  my_service_greet_all_result result;
  my_service_greeting_batch batch;
  uint32_t code;
  list.items = names;
  list.count = 2;
  code = my_service_greet_all(client, list, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    while ((code = my_service_greeting_stream_acquire(&result.ok, 16, TW_FOREVER, &batch, error)) ==
           TW_OK) {
      uint32_t i;
      for (i = 0; i < batch.tw.count; i++) {
        print(batch.tw.base, my_service_greeting_batch_at(&batch, i));
      }
      my_service_greeting_stream_release(&result.ok, batch.tw.count, error);
    }
    my_service_greeting_stream_close(&result.ok, NULL);
  }
  tw_reply_release(&result.reply);
  return code == TW_CLOSED ? TW_OK : code; /* TW_CLOSED: the stream is complete */
}

int main(int argc, char **argv) {
  my_service_library library;
  my_service_client client;
  tw_error error;
  uint32_t code;
  if (argc != 2) {
    fputs("usage: host-c LIBRARY\n", stderr);
    return 2;
  }
  code = my_service_open(argv[1], &library, &error);
  if (code == TW_OK) {
    code = my_service_client_open(&library, 1, &client, &error);
  }
  if (code == TW_OK) {
    code = greet(&client, &error);
    code = code == TW_OK ? greet_all(&client, &error) : code;
    my_service_client_close(&client, NULL);
  }
  if (code != TW_OK) {
    fprintf(stderr, "host-c: %s: %s\n", tw_code_name(code), error.message);
    return 1;
  }
  return 0;
}
