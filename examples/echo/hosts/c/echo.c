/* Calls the echo service from C: echo-c LIBRARY. All hosts print the same output. */
#include "echo.h"

#define HOUR (60 * 60 * 1000)
#define MS UINT64_C(1000000)
/* The most outstanding calls. */
#define CALLS 2

static void print_response(const echo_timer_echo_result *result) {
  tw_text name = echo_response_name(result->reply.base, result->ok);
  tw_text message = echo_response_message(result->reply.base, result->ok);
  printf("%.*s said %.*s\n", (int)name.size, name.data, (int)message.size, message.data);
}

/* Submits two calls and reaps their completions in the order in which the calls end. */
static uint32_t submit_two(const echo_client *client, echo_timer timer, tw_error *error) {
  tw_request request;
  const echo_request_in later = {tw_text_of("later"), 50};
  const echo_request_in sooner = {tw_text_of("sooner"), 0};
  const tw_table *table = client->tw.table;
  uint32_t ended = 0;
  uint32_t code = tw_request_submit(echo_timer_echo_prepare(client, timer, &later, &request),
                                    TW_FOREVER, 1, NULL, error);
  if (code == TW_OK) {
    code = tw_request_submit(echo_timer_echo_prepare(client, timer, &sooner, &request), TW_FOREVER,
                             2, NULL, error);
  }
  while (code == TW_OK && ended < CALLS) {
    tw_completion completions[CALLS];
    uint32_t count = 0;
    uint32_t i;
    code = table->port_wait(client->tw.port, TW_FOREVER, error);
    if (code == TW_OK) {
      code = table->port_reap(client->tw.port, completions, CALLS, &count, error);
    }
    for (i = 0; i < count; i++) {
      echo_timer_echo_result result;
      code = echo_timer_echo_read(client, &completions[i], &result, error);
      if (code == TW_OK) {
        print_response(&result);
      }
      tw_reply_release(&result.reply);
    }
    ended += count;
  }
  return code;
}

static uint32_t complex(const echo_client *client, echo_timer timer, tw_error *error) {
  const echo_request_in messages[] = {{tw_text_of("one"), 10}, {tw_text_of("two"), 20}};
  const tw_text tags[] = {tw_text_of("fast"), tw_text_of("async")};
  echo_complex_request_in request;
  echo_timer_complex_result result;
  uint32_t code;
  request.messages.items = messages;
  request.messages.count = 2;
  request.tags.items = tags;
  request.tags.count = 2;
  request.note.some = true;
  request.note.value = tw_text_of("an extra");
  request.retries.some = true;
  request.retries.value = 3;
  code = echo_timer_complex(client, timer, &request, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    tw_text summary = echo_complex_response_summary(result.reply.base, result.ok);
    printf("%.*s (%" PRIu64 ")\n", (int)summary.size, summary.data, result.ok->item_count);
  }
  tw_reply_release(&result.reply);
  return code;
}

/* Reads a stream to its end. */
static uint32_t ticks(const echo_client *client, echo_timer timer, tw_error *error) {
  echo_timer_schedule_result result;
  echo_tick_batch batch;
  uint32_t i;
  uint32_t code = echo_timer_schedule(client, timer, 5, 3, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    while ((code = echo_tick_stream_acquire(&result.ok, 16, TW_FOREVER, &batch, error)) == TW_OK) {
      for (i = 0; i < batch.tw.count; i++) {
        printf("tick %" PRIu32 "\n", echo_tick_batch_at(&batch, i)->number);
      }
      echo_tick_stream_release(&result.ok, batch.tw.count, error);
    }
    echo_tick_stream_close(&result.ok, NULL);
  }
  tw_reply_release(&result.reply);
  return code == TW_CLOSED ? TW_OK : code;
}

/* A typed error, and a call whose deadline passes: the service is cancelled, too. */
static uint32_t show_failures(const echo_client *client, echo_timer timer, tw_error *error) {
  const echo_request_in never = {tw_text_of("never"), HOUR + 1};
  const echo_request_in in_an_hour = {tw_text_of("in an hour"), HOUR};
  const uint64_t now = client->tw.table->now();
  echo_timer_echo_result result;
  uint32_t code = echo_timer_echo(client, timer, &never, TW_FOREVER, &result, error);
  if (code == TW_ERROR && result.error->tag == ECHO_TIMER_ERROR_TOO_LONG) {
    printf("refused: %" PRIu32 " ms\n", result.error->value.too_long);
  }
  tw_reply_release(&result.reply);
  code = echo_timer_echo(client, timer, &in_an_hour, now + 20 * MS, &result, error);
  tw_reply_release(&result.reply);
  if (code != TW_TIMED_OUT) {
    return code;
  }
  puts("timed out");
  return TW_OK;
}

static uint32_t show(const echo_client *client, tw_error *error) {
  echo_version_result version;
  echo_timer_new_result created;
  uint32_t code = echo_version(client, TW_FOREVER, &version, error);
  if (code == TW_OK) {
    printf("version %.*s\n", (int)version.ok.size, version.ok.data);
  }
  tw_reply_release(&version.reply);
  if (code != TW_OK) {
    return code;
  }
  code = echo_timer_new(client, tw_text_of("clock"), TW_FOREVER, &created, error);
  if (code == TW_OK) {
    code = submit_two(client, created.ok, error);
    code = code == TW_OK ? complex(client, created.ok, error) : code;
    code = code == TW_OK ? ticks(client, created.ok, error) : code;
    code = code == TW_OK ? show_failures(client, created.ok, error) : code;
    echo_timer_close(&created.ok, NULL);
  }
  tw_reply_release(&created.reply);
  return code;
}

int main(int argc, char **argv) {
  echo_library library;
  echo_client client;
  tw_error error;
  uint32_t code;
  if (argc != 2) {
    fputs("usage: echo-c LIBRARY\n", stderr);
    return 2;
  }
  code = echo_open(argv[1], &library, &error);
  if (code == TW_OK) {
    code = echo_client_open(&library, CALLS, &client, &error);
  }
  if (code == TW_OK) {
    code = show(&client, &error);
    echo_client_close(&client, NULL);
  }
  if (code != TW_OK) {
    fprintf(stderr, "echo-c: %s: %s\n", tw_code_name(code), error.message);
    return 1;
  }
  return 0;
}
