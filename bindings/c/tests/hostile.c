/* Malformed messages: hostile LIBRARY HOSTILE. conformance/hostile.json has the messages and their
 * expected outcomes. Those with `damage` are also truncated at every byte and changed in every
 * byte. A valid call follows each of them in the same batch and must succeed. */
#include <jansson.h>

#include "host.h"

#define MOST 1024u
#define BAD 1u
#define GOOD 2u

static uint64_t sent = 0;

static uint32_t method_number(const char *name) {
  const tw_table *table = library.table;
  uint32_t i;
  for (i = 0; i < table->method_count; i++) {
    const char *full = table->methods[i].name;
    if (strcmp(strchr(full, '.') + 1, name) == 0) {
      return i;
    }
  }
  fprintf(stderr, "there is no function %s\n", name);
  exit(1);
}

static size_t unhex(const char *hex, uint8_t *bytes) {
  size_t size = 0;
  unsigned byte;
  for (; sscanf(hex, "%2x", &byte) == 1 && size < MOST; hex += 2) {
    bytes[size++] = (uint8_t)byte;
  }
  return size;
}

/* The outcome of a call with these arguments. They are in memory of exactly that size, so that the
 * sanitizer detects a read beyond it. */
static uint32_t outcome(const conformance_client *client, uint32_t method, const uint8_t *arguments,
                        size_t size) {
  static const uint64_t nothing[2] = {UINT64_C(0), UINT64_C(0)};
  const tw_table *table = client->tw.table;
  const uint32_t good = method_number("nothing");
  uint8_t *copy = (uint8_t *)malloc(size > 0 ? size : 1);
  tw_submission batch[2];
  tw_message header;
  uint8_t empty[16];
  uint32_t codes[3] = {TW_CLOSED, TW_CLOSED, TW_CLOSED};
  uint32_t accepted = 0;
  tw_error error;
  int i;
  memcpy(empty, nothing, sizeof(empty));
  header.size = sizeof(empty);
  header.layout = (uint32_t)table->methods[good].params;
  header.handles = 0;
  header.root = sizeof(empty);
  memcpy(empty, &header, sizeof(empty));
  memcpy(copy, arguments, size);
  memset(batch, 0, sizeof(batch));
  for (i = 0; i < 2; i++) {
    batch[i].token = i == 0 ? BAD : GOOD;
    batch[i].client = client->tw.instance;
    batch[i].method = i == 0 ? method : good;
    batch[i].args = i == 0 ? copy : empty;
    batch[i].args_size = i == 0 ? size : sizeof(empty);
  }
  REQUIRE_OK(table->submit(client->tw.port, batch, 2, &accepted, &error), error);
  free(copy);
  for (i = 0; i < 2; i++) {
    tw_completion completion = next_completion(client);
    CHECK(completion.kind == TW_COMPLETION_CALL);
    codes[completion.token] = completion.code;
    table->release(&completion);
  }
  CHECK_CODE(codes[GOOD], TW_OK);
  sent++;
  return codes[BAD];
}

static json_t *messages = NULL;

static const char *text(const json_t *message, const char *key) {
  return json_string_value(json_object_get(message, key));
}

static void every_message_ends_with_its_expected_outcome(void) {
  conformance_client client = open_client(2);
  uint8_t bytes[MOST];
  size_t i;
  for (i = 0; i < json_array_size(messages); i++) {
    const json_t *message = json_array_get(messages, i);
    const size_t size = unhex(text(message, "arguments"), bytes);
    const uint32_t method = method_number(text(message, "call"));
    const uint32_t code = outcome(&client, method, bytes, size);
    if (strcmp(tw_code_name(code), text(message, "ends")) != 0) {
      fprintf(stderr, "%s: ended as %s\n", text(message, "name"), tw_code_name(code));
      checks_failed++;
    }
  }
  close_client(&client);
}

static void truncated_message_is_refused(void) {
  conformance_client client = open_client(2);
  uint8_t bytes[MOST];
  size_t i;
  for (i = 0; i < json_array_size(messages); i++) {
    const json_t *message = json_array_get(messages, i);
    const uint32_t method = method_number(text(message, "call"));
    size_t size = json_object_get(message, "damage") ? unhex(text(message, "arguments"), bytes) : 0;
    while (size-- > 0) {
      const uint32_t whole = (uint32_t)size;
      CHECK_CODE(outcome(&client, method, bytes, size), TW_ARGUMENT);
      if (size >= sizeof(whole)) {
        /* Truncated, with the new size in the header. The missing bytes are part of a tail or the
         * root. */
        uint8_t first[sizeof(whole)];
        memcpy(first, bytes, sizeof(first));
        memcpy(bytes, &whole, sizeof(whole));
        CHECK_CODE(outcome(&client, method, bytes, size), TW_ARGUMENT);
        memcpy(bytes, first, sizeof(first));
      }
    }
  }
  close_client(&client);
}

/* A changed byte may be a valid value of the type. The call then succeeds. */
static void message_with_a_changed_byte_is_refused_or_answered(void) {
  static const uint8_t others[] = {0x00, 0x01, 0x7f, 0x80, 0xc0, 0xff};
  conformance_client client = open_client(2);
  uint8_t bytes[MOST];
  size_t i;
  for (i = 0; i < json_array_size(messages); i++) {
    const json_t *message = json_array_get(messages, i);
    const uint32_t method = method_number(text(message, "call"));
    const size_t size =
        json_object_get(message, "damage") ? unhex(text(message, "arguments"), bytes) : 0;
    /* Every value if the message is short. */
    const uint32_t values = size <= 48 ? 256 : (uint32_t)sizeof(others);
    size_t at;
    for (at = 0; at < size; at++) {
      const uint8_t before = bytes[at];
      uint32_t value;
      for (value = 0; value < values; value++) {
        uint32_t code;
        bytes[at] = values == 256 ? (uint8_t)value : others[value];
        code = outcome(&client, method, bytes, size);
        if (code != TW_OK && code != TW_ERROR && code != TW_ARGUMENT) {
          fprintf(stderr, "%s, byte %u of value %u: ended as %s\n", text(message, "name"),
                  (unsigned)at, (unsigned)bytes[at], tw_code_name(code));
          checks_failed++;
        }
      }
      bytes[at] = before;
    }
  }
  close_client(&client);
}

static void unknown_method_is_refused_at_submit(void) {
  conformance_client client = open_client(2);
  const uint32_t numbers[] = {library.table->method_count, UINT32_C(0x7fffffff), UINT32_MAX};
  uint8_t bytes[MOST];
  tw_submission submission;
  tw_error error;
  size_t i;
  memset(&submission, 0, sizeof(submission));
  submission.client = client.tw.instance;
  submission.args = bytes;
  submission.args_size = unhex(text(json_array_get(messages, 0), "arguments"), bytes);
  for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    uint32_t accepted = 7;
    submission.method = numbers[i];
    CHECK_CODE(library.table->submit(client.tw.port, &submission, 1, &accepted, &error),
               TW_ARGUMENT);
    CHECK(accepted == 0);
  }
  CHECK_CODE(library.table->port_wait(client.tw.port, 0, &error), TW_TIMED_OUT);
  close_client(&client);
}

/* Sends every message to every method with other types. */
static void message_of_another_method_is_refused(void) {
  conformance_client client = open_client(2);
  const tw_table *table = library.table;
  uint8_t bytes[MOST];
  size_t i;
  for (i = 0; i < json_array_size(messages); i++) {
    const json_t *message = json_array_get(messages, i);
    const size_t size = unhex(text(message, "arguments"), bytes);
    const uint64_t layout = table->methods[method_number(text(message, "call"))].params;
    uint32_t method;
    for (method = 0; method < table->method_count; method++) {
      if (table->methods[method].params != layout) {
        const uint32_t code = outcome(&client, method, bytes, size);
        /* One message of the file is a valid message of another function. */
        CHECK(code == TW_ARGUMENT || (code == TW_OK && strstr(text(message, "name"), "another")));
      }
    }
  }
  close_client(&client);
}

/* A host that releases nothing: the port continues, and the completions stay valid. */
static void unreleased_completions_do_not_stop_the_port(void) {
  tw_request request;
  enum { KEPT = 2000 };
  static tw_completion kept[KEPT];
  conformance_client client = open_client(1);
  tw_error error;
  int i;
  for (i = 0; i < KEPT; i++) {
    REQUIRE_OK(tw_request_submit(conformance_echo_u32_prepare(&client, (uint32_t)i, &request),
                                 TW_FOREVER, 0, NULL, &error),
               error);
    kept[i] = next_completion(&client);
  }
  for (i = 0; i < KEPT; i++) {
    uint32_t number = 0;
    CHECK_CODE(kept[i].code, TW_OK);
    memcpy(&number, kept[i].data + 16, sizeof(number));
    CHECK(number == (uint32_t)i);
    library.table->release(&kept[i]);
    library.table->release(&kept[i]);
    CHECK(kept[i].data == NULL);
  }
  close_client(&client);
}

int main(int argc, char **argv) {
  json_error_t where;
  if (argc != 3 || !(messages = json_load_file(argv[2], 0, &where))) {
    fprintf(stderr, "usage: hostile LIBRARY HOSTILE\n");
    return 2;
  }
  open_library(argc, argv);
  RUN(every_message_ends_with_its_expected_outcome);
  RUN(truncated_message_is_refused);
  RUN(message_with_a_changed_byte_is_refused_or_answered);
  RUN(unknown_method_is_refused_at_submit);
  RUN(message_of_another_method_is_refused);
  RUN(unreleased_completions_do_not_stop_the_port);
  json_decref(messages);
  printf("hostile: %u messages, each with a good call behind it\n", (unsigned)sent);
  return done("hostile");
}
