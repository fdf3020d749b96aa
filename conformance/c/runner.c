/* The conformance runner in C: runner LIBRARY SCENARIOS REPORT. conformance/README.md describes the
 * steps. */
#include "clients.h"
#include "conformance_json.h"
#include "outstanding.h"
#include "report.h"
#include "streams.h"

#define METHODS (sizeof(methods) / sizeof(methods[0]))

static named_resources all_resources;

/* Submits a call, cancels it if the step has `cancel_after_ms`, and waits for it unless the step
 * has `start`. */
static uint32_t call_once(const json_t *step, const method *method, tw_submission *submission,
                          tw_completion *completion, tw_error *error) {
  const uint64_t timeout = number(step, "timeout_ms", 0);
  const uint64_t cancel_after = number(step, "cancel_after_ms", 0);
  uint32_t code;
  submission->deadline_ns =
      timeout ? tw_deadline_after(&client, timeout * MILLISECOND) : TW_FOREVER;
  if (client.table->methods[submission->method].flags & TW_METHOD_INLINE) {
    return tw_call_inline(&client, submission, completion, error);
  }
  submission->token = add_call(step, method);
  submission->flags |= json_object_get(step, "cancel_after_notices") ? TW_SUBMIT_NOTICES : 0;
  code = tw_submit(&client, submission, error);
  if (code == TW_OK && cancel_after) {
    client.table->port_wait(client.port, tw_deadline_after(&client, cancel_after * MILLISECOND),
                            NULL);
    code = client.table->cancel(submission->call, error);
  }
  if (code != TW_OK) {
    remove_call(submission->token);
  } else if (!json_object_get(step, "start")) {
    code = wait_for_call(&client, submission->token, completion, error);
  }
  return code;
}

/* Whether the result of a call is the expected one. Reports every other difference. */
static bool compare(const json_t *step, const method *method, uint32_t code,
                    tw_completion *completion, tw_error *error) {
  const json_t *stream = json_object_get(step, "stream");
  const char *name = json_string_value(json_object_get(step, "bind"));
  expected expected = {json_object_get(step, "ok"), json_object_get(step, "error"), true, 0};
  bool replied = true;
  if (code == TW_OK) {
    replied = bytes_are(step, "reply", completion->data, completion->data_size);
    code = method->read(&client, completion, &expected, error);
  }
  check_outcome(step, code, TW_OK, error->message);
  if (code == TW_OK && method->element_is) {
    tw_stream returned = {client.table, expected.handle};
    if (name) {
      keep_stream(name, method, returned);
    } else if (stream) {
      const observation observation = read_stream(&client, stream, method, returned);
      check_stream(&observation);
    }
    if (!name) {
      tw_stream_close(&returned, NULL);
    }
  } else if (code == TW_OK && expected.handle != 0 && name) {
    keep_resource(&all_resources, name, client.table, expected.handle);
  }
  return expected.agrees && replied;
}

static bool attempt(const json_t *step, const method *method) {
  const given given = {json_object_get(step, "params"), all_resources.all, all_resources.count};
  tw_error error = {0, 0, ""};
  tw_request request;
  tw_completion completion;
  uint32_t code = method->prepare(&client, &given, &request, &error);
  if (code == TW_OK) {
    const tw_submission *submission = &request.submission;
    if (!bytes_are(step, "arguments", submission->args, submission->args_size)) {
      fail("other arguments than expected", method->name);
    }
    code = call_once(step, method, &request.submission, &completion, &error);
  }
  tw_request_free(&request);
  if (code == TW_OK && json_object_get(step, "start")) {
    return true;
  }
  return compare(step, method, code, &completion, &error);
}

/* Waits for the outstanding calls with this name. */
static void await(const char *name) {
  tw_error error = {0, 0, ""};
  tw_completion completion;
  const outstanding_call *outstanding_call;
  while ((outstanding_call = find_call(name)) != NULL) {
    const json_t *step = outstanding_call->step;
    const method *method = outstanding_call->method;
    uint32_t code = wait_for_call(&client, outstanding_call->token, &completion, &error);
    if (!compare(step, method, code, &completion, &error)) {
      fail("another result", method->name);
    }
  }
}

static void call(const json_t *step) {
  const char *name = json_string_value(json_object_get(step, "call"));
  const uint64_t until = client.table->now() + number(step, "within_ms", 0) * MILLISECOND;
  const int before = failures;
  uint64_t times = number(step, "times", 1);
  size_t i = 0;
  while (i < METHODS && strcmp(methods[i].name, name) != 0) {
    i++;
  }
  while (times > 0) {
    if (i < METHODS && attempt(step, &methods[i])) {
      times--;
    } else if (i == METHODS || client.table->now() >= until || failures != before) {
      fail(i == METHODS ? "no such method" : "another result", name);
      return;
    }
  }
}

/* Runs the steps up to the first one that fails. */
static void run(const json_t *steps) {
  const int before = failures;
  size_t i;
  for (i = 0; i < json_array_size(steps) && failures == before; i++) {
    const json_t *step = json_array_get(steps, i);
    uint64_t times = number(step, "repeat", 0);
    if (json_object_get(step, "call")) {
      call(step);
    } else if (json_object_get(step, "drop")) {
      drop_resource(&all_resources, json_string_value(json_object_get(step, "drop")));
      drop_stream(find_stream(json_string_value(json_object_get(step, "drop"))));
    } else if (json_object_get(step, "await")) {
      await(json_string_value(json_object_get(step, "await")));
    } else if (json_object_get(step, "close")) {
      close_instance();
    } else if (json_object_get(step, "open")) {
      open_instance();
    } else if (json_object_get(step, "other")) {
      swap_instances();
    } else if (times == 0) {
      stream_step(step);
    }
    while (times-- > 0 && failures == before) {
      run(json_object_get(step, "steps"));
    }
  }
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
    if (tw_client_open_as(library.table, conformance_expected(), 256, &client, &error) != TW_OK ||
        set_oracle(&client, &error) != TW_OK) {
      fail("no client", error.message);
    } else {
      run(json_object_get(one, "steps"));
    }
    drop_resource(&all_resources, NULL);
    remove_all_calls(&client);
    drop_all_streams();
    close_both();
    free_all();
    report_scenario();
  }
  i = (size_t)write_report(argv[3], "C", "C99");
  json_decref(scenarios);
  return (int)i;
}
