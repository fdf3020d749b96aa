/* The conformance scenarios in C: runner LIBRARY SCENARIOS REPORT. What a step means stands in conformance/README.md. */
#include "conformance_json.h"
#include "oracle.h"
#include "report.h"

#define MOST_KEPT 16
#define METHODS (sizeof(methods) / sizeof(methods[0]))

static const char *scenario;
static int failures = 0;
static tw_client client;
static kept resources[MOST_KEPT];
static size_t resource_count;

static void fail(const char *what, const char *detail) {
  fprintf(stderr, "%s: %s: %s\n", scenario, what, detail);
  failures++;
}

/* An ending: its code's name, and a part of its message. */
static void check_ending(const json_t *step, uint32_t code, uint32_t regular, const char *message) {
  const char *wanted = json_string_value(json_object_get(step, "ends"));
  const char *part = json_string_value(json_object_get(step, "message"));
  if (strcmp(tw_code_name(code), wanted ? wanted : tw_code_name(regular)) != 0) {
    fail("ended otherwise", tw_code_name(code));
  }
  if (part && !strstr(message, part)) {
    fail("another message", message);
  }
}

/* Reads the stream as the step says, and closes it. */
static void check_stream(const json_t *wanted, const method *method, tw_handle handle) {
  const json_t *elements = json_object_get(wanted, "elements");
  const json_t *first = json_object_get(wanted, "first");
  const json_t *last = json_object_get(wanted, "last");
  const uint64_t take_only = number(wanted, "take", UINT64_MAX);
  tw_stream stream = {client.table, handle};
  uint64_t count = 0;
  uint64_t lost = 0;
  bool last_is = false;
  tw_error error = {0, 0, ""};
  tw_batch batch;
  uint32_t code = TW_OK;
  uint32_t i;
  while (count < take_only) {
    const uint64_t left = take_only - count;
    const uint32_t most = left < 256 ? (uint32_t)left : 256;
    code = tw_stream_acquire(&stream, most, TW_FOREVER, method->element_size, &batch, &error);
    if (code != TW_OK) {
      check_ending(wanted, code, TW_CLOSED, error.message);
      break;
    }
    lost += batch.lost_before;
    for (i = 0; i < batch.count; i++, count++) {
      const void *record = tw_batch_at(&batch, i);
      const json_t *same = elements ? json_array_get(elements, (size_t)count) : NULL;
      if ((same && !method->element_is(batch.base, record, same)) ||
          (count == 0 && first && !method->element_is(batch.base, record, first))) {
        fail("another element", method->name);
      }
      last_is = last && method->element_is(batch.base, record, last);
    }
    tw_stream_release(&stream, batch.count, NULL);
  }
  if ((last && !last_is) || (elements && count != json_array_size(elements)) ||
      count != number(wanted, "count", count) ||
      count + lost != number(wanted, "total", count + lost)) {
    fail("other elements in all", method->name);
  }
  tw_stream_close(&stream, NULL);
}

/* Submits, cancels where it is told to, and waits for the completion. */
static uint32_t call_once(const json_t *step, tw_submission *submission, tw_completion *completion,
                          tw_error *error) {
  const uint64_t timeout = number(step, "timeout_ms", 0);
  const uint64_t cancel_after = number(step, "cancel_after_ms", 0);
  uint32_t count = 0;
  uint32_t code;
  submission->deadline_ns = timeout ? tw_after(&client, timeout * MILLISECOND) : TW_FOREVER;
  if (client.table->methods[submission->method].flags & TW_METHOD_INLINE) {
    return tw_call_inline(&client, submission, completion, error);
  }
  code = tw_submit(&client, submission, error);
  if (code == TW_OK && cancel_after) {
    client.table->port_wait(client.port, tw_after(&client, cancel_after * MILLISECOND), NULL);
    code = client.table->cancel(submission->call, error);
  }
  while (code == TW_OK && count == 0) {
    code = next_or_answer(&client, completion, &count, error);
  }
  return code;
}

/* One attempt; whether what came back agrees. What is wrong besides is reported. */
static bool attempt(const json_t *step, const method *method) {
  const given given = {json_object_get(step, "params"), resources, resource_count};
  const json_t *stream = json_object_get(step, "stream");
  const char *name = json_string_value(json_object_get(step, "bind"));
  expected expected = {json_object_get(step, "ok"), json_object_get(step, "error"), true, 0};
  tw_error error = {0, 0, ""};
  tw_writer writer;
  tw_submission submission;
  tw_completion completion;
  bool replied = true;
  uint32_t code = method->prepare(&client, &given, &writer, &submission, &error);
  if (code == TW_OK) {
    if (!bytes_are(step, "arguments", submission.args, submission.args_size)) {
      fail("other arguments than agreed", method->name);
    }
    code = call_once(step, &submission, &completion, &error);
  }
  tw_writer_free(&writer);
  if (code == TW_OK) {
    replied = bytes_are(step, "reply", completion.data, completion.data_size);
    code = method->read(&client, &completion, &expected, &error);
  }
  check_ending(step, code, TW_OK, error.message);
  if (code == TW_OK && stream) {
    check_stream(stream, method, expected.handle);
  } else if (code == TW_OK && expected.handle != 0 && name && resource_count < MOST_KEPT) {
    resources[resource_count].name = name;
    resources[resource_count].resource.table = client.table;
    resources[resource_count++].resource.handle = expected.handle;
  }
  return expected.agrees && replied;
}

static void call(const json_t *step) {
  const char *name = json_string_value(json_object_get(step, "call"));
  const uint64_t until = client.table->now() + number(step, "within_ms", 0) * MILLISECOND;
  const int before = failures;
  size_t i = 0;
  while (i < METHODS && strcmp(methods[i].name, name) != 0) {
    i++;
  }
  while (i == METHODS || !attempt(step, &methods[i])) {
    if (i == METHODS || client.table->now() >= until || failures != before) {
      fail(i == METHODS ? "no such method" : "gave something else", name);
      return;
    }
  }
}

/* Stale is what was given away. */
static void drop(const char *name) {
  size_t i;
  for (i = 0; i < resource_count; i++) {
    if (!name || strcmp(resources[i].name, name) == 0) {
      tw_resource_close(&resources[i].resource, NULL);
    }
  }
}

static void run(const json_t *steps, const conformance_library *library) {
  tw_error error;
  size_t i;
  resource_count = 0;
  if (tw_client_open(library->table, 4, &client, &error) != TW_OK ||
      give_oracle(&client, &error) != TW_OK) {
    fail("no client", error.message);
    return;
  }
  for (i = 0; i < json_array_size(steps); i++) {
    const json_t *step = json_array_get(steps, i);
    if (json_object_get(step, "call")) {
      call(step);
    } else if (json_object_get(step, "drop")) {
      drop(json_string_value(json_object_get(step, "drop")));
    } else {
      tw_client_close(&client, NULL);
    }
  }
  drop(NULL);
  tw_client_close(&client, NULL);
  give_back_all();
}

int main(int argc, char **argv) {
  conformance_library library;
  tw_error error;
  json_t *scenarios = argc == 4 ? load_scenarios(argv[2]) : NULL;
  size_t i;
  if (!scenarios || conformance_open(argv[1], &library, &error) != TW_OK) {
    fputs(scenarios ? error.message : "usage: runner LIBRARY SCENARIOS REPORT\n", stderr);
    return 2;
  }
  for (i = 0; i < json_array_size(scenarios); i++) {
    const json_t *one = json_array_get(scenarios, i);
    scenario = json_string_value(json_object_get(one, "name"));
    run(json_object_get(one, "steps"), &library);
    report_scenario(scenario, failures);
  }
  i = (size_t)write_report(argv[3]);
  json_decref(scenarios);
  return (int)i;
}
