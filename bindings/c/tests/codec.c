/* Conversion of messages to and from CBOR, with the descriptions of the library's methods; and clients
 * that use CBOR. */
#include "host.h"

/* Line `line` of a method's description, from 0. */
typedef struct description {
  const uint8_t *text;
  uint64_t size;
} description;

enum { PARAMS, OK, FAILED, ELEMENT };

static const tw_method *method(const char *name) {
  const tw_table *table = library.table;
  uint32_t i;
  for (i = 0; i < table->method_count; i++) {
    if (strcmp(table->methods[i].name, name) == 0) {
      return &table->methods[i];
    }
  }
  fprintf(stderr, "there is no method %s\n", name);
  exit(1);
}

static description line_of(const tw_method *of, uint32_t line) {
  const uint8_t *at = of->description;
  const uint8_t *end = at + of->description_size;
  description found;
  for (; line > 0; line--) {
    at = (const uint8_t *)memchr(at, '\n', (size_t)(end - at)) + 1;
  }
  found.text = at;
  found.size = 0;
  while (at + found.size < end && at[found.size] != '\n') {
    found.size++;
  }
  return found;
}

static bool is(description of, const char *text) {
  return of.size == strlen(text) && memcmp(of.text, text, strlen(text)) == 0;
}

static uint32_t transcode(description of, uint32_t to, const void *data, uint64_t size,
                          uint8_t *out, uint64_t capacity, uint64_t *made, tw_error *error) {
  return library.table->transcode(of.text, of.size, to, (const uint8_t *)data, size, out, capacity,
                                  made, error);
}

static void method_describes_its_types(void) {
  const tw_method *items = method("conformance.items");
  CHECK(is(line_of(items, PARAMS), "record{count:u64}"));
  CHECK(is(line_of(items, OK),
           "stream<record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}>"));
  CHECK(is(line_of(items, FAILED),
           "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}"));
  CHECK(is(line_of(items, ELEMENT),
           "record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}"));
  CHECK(is(line_of(method("conformance.nothing"), PARAMS), "record{}"));
  CHECK(is(line_of(method("conformance.nothing"), OK), "_"));
  CHECK(is(line_of(method("conformance.nothing"), FAILED), ""));
}

/* A host without generated code: the arguments and the result are CBOR. */
static void call_with_cbor_arguments_returns_a_cbor_result(void) {
  static const uint8_t given[] =
      "\xa1\x65value\xa2\x61x\x07\x61y\x28"; /* {"value": {"x": 7, "y": -9}} */
  static const uint8_t wanted[] = "\xa2\x61x\x07\x61y\x28";
  conformance_client client = open_client(4);
  const tw_method *echo = method("conformance.echo-point");
  tw_submission submission;
  tw_completion completion;
  tw_error error;
  uint64_t message[32];
  uint8_t cbor[64];
  uint64_t size = 0;
  uint32_t accepted = 0;
  memset(&submission, 0, sizeof(submission));
  REQUIRE_OK(transcode(line_of(echo, PARAMS), TW_FLAT, given, sizeof(given) - 1, (uint8_t *)message,
                       sizeof(message), &size, &error),
             error);
  submission.client = client.tw.instance;
  submission.method = (uint32_t)(echo - library.table->methods);
  submission.args = (const uint8_t *)message;
  submission.args_size = size;
  REQUIRE_OK(library.table->submit(client.tw.port, &submission, 1, &accepted, &error), error);
  completion = next_completion(&client);
  CHECK_CODE(completion.code, TW_OK);
  REQUIRE_OK(transcode(line_of(echo, OK), TW_CBOR, completion.data, completion.data_size, cbor,
                       sizeof(cbor), &size, &error),
             error);
  CHECK(size == sizeof(wanted) - 1 && memcmp(cbor, wanted, sizeof(wanted) - 1) == 0);
  library.table->release(&completion);
  close_client(&client);
}

static void output_larger_than_the_buffer_is_overloaded(void) {
  static const uint8_t given[] = "\xa1\x65value\x64"
                                 "four";
  description params = line_of(method("conformance.echo-string"), PARAMS);
  uint64_t message[8];
  tw_error error;
  uint64_t size = 7;
  uint64_t capacity;
  memset(message, 0, sizeof(message));
  for (capacity = 0; capacity < 28; capacity++) {
    CHECK_CODE(transcode(params, TW_FLAT, given, sizeof(given) - 1, (uint8_t *)message, capacity,
                         &size, &error),
               TW_OVERLOADED);
    CHECK(size == 0 && error.retryable == 1 && message[0] == 0);
  }
  CHECK_CODE(
      transcode(params, TW_FLAT, given, sizeof(given) - 1, (uint8_t *)message, 28, &size, &error),
      TW_OK);
  CHECK(size == 28);
}

static void data_of_another_type_is_refused(void) {
  static const uint8_t given[] = "\xa1\x65value\x64"
                                 "four";
  description params = line_of(method("conformance.echo-string"), PARAMS);
  description other = line_of(method("conformance.echo-u8"), PARAMS);
  description handle = line_of(method("conformance.[static]counter.finish"), PARAMS);
  uint8_t out[256];
  tw_error error;
  uint64_t size = 7;
  uint64_t cut;
  for (cut = 0; cut < sizeof(given) - 1; cut++) {
    CHECK_CODE(transcode(params, TW_FLAT, given, cut, out, sizeof(out), &size, &error),
               TW_ARGUMENT);
    CHECK(size == 0);
  }
  CHECK_CODE(transcode(other, TW_FLAT, given, sizeof(given) - 1, out, sizeof(out), &size, &error),
             TW_ARGUMENT);
  CHECK_CODE(transcode(params, TW_CBOR, given, sizeof(given) - 1, out, sizeof(out), &size, &error),
             TW_ARGUMENT);
  CHECK_CODE(transcode(handle, TW_FLAT, given, sizeof(given) - 1, out, sizeof(out), &size, &error),
             TW_ARGUMENT);
  CHECK(strstr(error.message, "handle") != NULL);
  CHECK_CODE(transcode(params, 2, given, sizeof(given) - 1, out, sizeof(out), &size, &error),
             TW_ARGUMENT);
  params.size--;
  CHECK_CODE(transcode(params, TW_FLAT, given, sizeof(given) - 1, out, sizeof(out), &size, &error),
             TW_ARGUMENT);
}

static void null_pointers_and_impossible_sizes_are_refused(void) {
  static const uint8_t given[] = "\xa1\x65value\x64"
                                 "four";
  description params = line_of(method("conformance.echo-string"), PARAMS);
  uint8_t out[64];
  tw_error error;
  uint64_t size = 0;
  description none = {NULL, 0};
  description impossible = params;
  impossible.size = UINT64_MAX;
  CHECK_CODE(transcode(none, TW_FLAT, given, 1, out, sizeof(out), &size, &error), TW_ARGUMENT);
  CHECK_CODE(transcode(params, TW_FLAT, NULL, 1, out, sizeof(out), &size, &error), TW_ARGUMENT);
  CHECK_CODE(transcode(params, TW_FLAT, given, 1, NULL, sizeof(out), &size, &error), TW_ARGUMENT);
  CHECK_CODE(transcode(params, TW_FLAT, given, 1, out, sizeof(out), NULL, &error), TW_ARGUMENT);
  CHECK_CODE(transcode(params, TW_FLAT, given, UINT64_MAX, out, sizeof(out), &size, &error),
             TW_ARGUMENT);
  CHECK_CODE(transcode(impossible, TW_FLAT, given, 1, out, sizeof(out), &size, &error),
             TW_ARGUMENT);
  CHECK_CODE(transcode(none, 9, NULL, 0, NULL, 0, NULL, NULL), TW_ARGUMENT);
}

/* Submits CBOR to the method `of`. */
static uint32_t submit_cbor(const conformance_client *client, const tw_method *of, const void *args,
                            uint64_t size, tw_error *error) {
  tw_submission submission;
  uint32_t accepted = 0;
  uint32_t code;
  memset(&submission, 0, sizeof(submission));
  submission.client = client->tw.instance;
  submission.method = (uint32_t)(of - library.table->methods);
  submission.args = (const uint8_t *)args;
  submission.args_size = size;
  code = library.table->submit(client->tw.port, &submission, 1, &accepted, error);
  CHECK(accepted == (code == TW_OK));
  return code;
}

static bool completion_is(const tw_completion *completion, uint32_t code, const void *cbor,
                          uint64_t size) {
  CHECK_CODE(completion->code, code);
  return completion->data_size == size && (uintptr_t)completion->data % 8 == 0 &&
         memcmp(completion->data, cbor, size) == 0;
}

static conformance_client open_cbor_client(void) {
  conformance_client client = open_client(4);
  tw_error error;
  REQUIRE_OK(library.table->client_set_format(client.tw.instance, TW_FLAT, &error), error);
  REQUIRE_OK(library.table->client_set_format(client.tw.instance, TW_CBOR, &error), error);
  return client;
}

static void method_with_the_format_cbor_takes_and_returns_cbor(void) {
  /* {"type": 1, "match": "m", "list": [2], "bool": {"x": 7, "y": -9}} */
  static const char several[] = "\xa4\x64type\x01\x65match\x61m\x64list\x81\x02\x64"
                                "bool\xa2\x61x\x07\x61y\x28";
  /* [1, "m", a typed array of 2, {"x": 7, "y": -9}] */
  static const char returned[] = "\x84\x01\x61m\xd8\x45\x42\x02\x00\xa2\x61x\x07\x61y\x28";
  static const char fail[] = "\xa1\x63how\xa1\x64"
                             "code\x07"; /* {"how": {"code": 7}} */
  static const char failed[] = "\xa1\x64"
                               "code\x07";
  static const char twice[] = "\xa1\x65value\x15"; /* {"value": 21} */
  conformance_client client = open_cbor_client();
  const tw_method *inlined = method("conformance.twice");
  tw_completion completion;
  tw_error error;
  CHECK(inlined->flags & TW_METHOD_CBOR);
  CHECK((method("conformance.echo-point")->flags & TW_METHOD_CBOR) == 0);
  REQUIRE_OK(
      submit_cbor(&client, method("conformance.several"), several, sizeof(several) - 1, &error),
      error);
  completion = next_completion(&client);
  CHECK(completion_is(&completion, TW_OK, returned, sizeof(returned) - 1));
  library.table->release(&completion);
  REQUIRE_OK(submit_cbor(&client, method("conformance.fail"), fail, sizeof(fail) - 1, &error),
             error);
  completion = next_completion(&client);
  CHECK(completion_is(&completion, TW_ERROR, failed, sizeof(failed) - 1));
  library.table->release(&completion);
  REQUIRE_OK(submit_cbor(&client, inlined, twice, sizeof(twice) - 1, &error), error);
  completion = next_completion(&client);
  CHECK(completion_is(&completion, TW_OK, "\x18\x2a", 2));
  library.table->release(&completion);
  REQUIRE_OK(library.table->call_inline(
                 client.tw.instance, (uint32_t)(inlined - library.table->methods),
                 (const uint8_t *)twice, sizeof(twice) - 1, TW_FOREVER, &completion, &error),
             error);
  CHECK(completion_is(&completion, TW_OK, "\x18\x2a", 2));
  library.table->release(&completion);
  close_client(&client);
}

static void arguments_that_are_not_cbor_of_the_type_are_refused(void) {
  static const char twice[] = "\xa1\x65value\x15";
  static const char more[] = "\xa1\x65value\x15\x00";
  static const char other[] = "\xa1\x65value\x20"; /* {"value": -1} */
  const tw_method *of = method("conformance.twice");
  conformance_client client = open_cbor_client();
  conformance_running_result running;
  tw_completion completion;
  tw_error error;
  uint64_t cut;
  for (cut = 0; cut < sizeof(twice) - 1; cut++) {
    CHECK_CODE(submit_cbor(&client, of, twice, cut, &error), TW_ARGUMENT);
  }
  CHECK_CODE(submit_cbor(&client, of, more, sizeof(more) - 1, &error), TW_ARGUMENT);
  CHECK_CODE(submit_cbor(&client, of, other, sizeof(other) - 1, &error), TW_ARGUMENT);
  CHECK(strstr(error.message, "CBOR") != NULL);
  REQUIRE_OK(library.table->call_inline(client.tw.instance, (uint32_t)(of - library.table->methods),
                                        (const uint8_t *)other, sizeof(other) - 1, TW_FOREVER,
                                        &completion, &error),
             error);
  CHECK_CODE(completion.code, TW_ARGUMENT);
  library.table->release(&completion);
  /* Other methods take messages, as before. */
  REQUIRE_OK(conformance_running(&client, TW_FOREVER, &running, &error), error);
  close_client(&client);
}

static void format_is_set_once_and_not_with_layouts(void) {
  const tw_table *table = library.table;
  conformance_client client = open_cbor_client();
  tw_error error;
  CHECK_CODE(table->client_set_format(client.tw.instance, TW_CBOR, &error), TW_ARGUMENT);
  CHECK_CODE(table->client_set_format(client.tw.instance, 2, &error), TW_ARGUMENT);
  CHECK_CODE(table->client_set_format(0, TW_CBOR, &error), TW_ARGUMENT);
  CHECK_CODE(table->client_set_format(client.tw.port, TW_CBOR, NULL), TW_ARGUMENT);
  close_client(&client);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  RUN(method_describes_its_types);
  RUN(call_with_cbor_arguments_returns_a_cbor_result);
  RUN(output_larger_than_the_buffer_is_overloaded);
  RUN(data_of_another_type_is_refused);
  RUN(null_pointers_and_impossible_sizes_are_refused);
  RUN(method_with_the_format_cbor_takes_and_returns_cbor);
  RUN(arguments_that_are_not_cbor_of_the_type_are_refused);
  RUN(format_is_set_once_and_not_with_layouts);
  return done("codec");
}
