/* Writing and reading messages without a library.
 *
 * Functions that return their one parameter have the same layout for arguments and results, except
 * for the hash in the header. With the other hash, the arguments are therefore a reply. */
#include "check.h"
#include "conformance.h"

static int released = 0;

static void release(tw_completion *completion) {
  (void)completion;
  released++;
}

static uint32_t take_handle(tw_completion *completion, uint32_t index, tw_handle *out,
                            tw_error *error) {
  (void)completion;
  *out = 77;
  return index == 0 ? TW_OK : tw_fail(error, TW_ARGUMENT, "no handle %u", (unsigned)index);
}

static tw_table table;
static conformance_client client;

static void make_table(void) {
  table.release = release;
  table.take_handle = take_handle;
  client.tw.table = &table;
  client.tw.instance = 1; /* not 0; nothing is submitted */
}

/* A reply to the call `submission`, made from its arguments. Free it with free(). */
static uint8_t *reply_of(const tw_submission *submission, tw_completion *completion) {
  uint32_t layout =
      (uint32_t)(conformance_expected()->methods[submission->method].ok & 0xffffffffu);
  uint8_t *data = (uint8_t *)malloc((size_t)submission->args_size);
  if (!data) {
    abort();
  }
  memcpy(data, submission->args, (size_t)submission->args_size);
  memcpy(data + offsetof(tw_message, layout), &layout, sizeof(layout));
  memset(completion, 0, sizeof(*completion));
  completion->kind = TW_COMPLETION_CALL;
  completion->data = data;
  completion->data_size = submission->args_size;
  return data;
}

static bool is_text(tw_text text, const char *expected) {
  return tw_text_equal(text, tw_text_of(expected));
}

/* ---- A value with all types ------------------------------------------------------------------ */

static const tw_text names[] = {{"one", 3}, {"", 0}, {"three", 5}};
static const uint8_t some_bytes[] = {0, 255, 7};
static const int32_t first_row[] = {-1, 2};
static const conformance_list_s32 rows[] = {{first_row, 2}, {NULL, 0}};
static const conformance_point corners[] = {{1, 2}, {-3, 4}};

static conformance_nested_in nested_value(void) {
  static conformance_result_point_string_in outcomes[2];
  static conformance_tuple2_string_option_list_u8_in pairs[2];
  static conformance_shape_in shapes[3];
  conformance_nested_in nested;
  memset(&nested, 0, sizeof(nested));
  outcomes[0].tag = CONFORMANCE_RESULT_POINT_STRING_OK;
  outcomes[0].value.ok = corners[1];
  outcomes[1].tag = CONFORMANCE_RESULT_POINT_STRING_ERROR;
  outcomes[1].value.error = tw_text_of("wrong");
  pairs[0].f0 = tw_text_of("left");
  pairs[0].f1.some = true;
  pairs[0].f1.value.data = some_bytes;
  pairs[0].f1.value.size = sizeof(some_bytes);
  pairs[1].f0 = tw_text_of("right");
  shapes[0].tag = CONFORMANCE_SHAPE_POLYGON;
  shapes[0].value.polygon.items = corners;
  shapes[0].value.polygon.count = 2;
  shapes[1].tag = CONFORMANCE_SHAPE_LABEL;
  shapes[1].value.label = tw_text_of("a label");
  shapes[2].tag = CONFORMANCE_SHAPE_CIRCLE;
  shapes[2].value.circle = 1.5;
  nested.text = tw_text_of("gr\xc3\xbc\xc3\x9f\x65");
  nested.bytes.data = some_bytes;
  nested.bytes.size = sizeof(some_bytes);
  nested.names.items = names;
  nested.names.count = 3;
  nested.grid.items = rows;
  nested.grid.count = 2;
  nested.maybe.some = true;
  nested.maybe.value = tw_text_of("perhaps");
  nested.twice.some = true;
  nested.twice.value.some = true;
  nested.twice.value.value = 9;
  nested.outcomes.items = outcomes;
  nested.outcomes.count = 2;
  nested.pairs.items = pairs;
  nested.pairs.count = 2;
  nested.shapes.items = shapes;
  nested.shapes.count = 3;
  nested.color = CONFORMANCE_COLOR_GREEN;
  nested.rights = CONFORMANCE_RIGHTS_READ | CONFORMANCE_RIGHTS_RECORD;
  nested.aliased = nested.names;
  return nested;
}

/* Reads every byte that the value refers to. */
static size_t walk(const uint8_t *base, const conformance_nested *nested) {
  conformance_list_string list = conformance_nested_names(base, nested);
  conformance_list_list_s32 grid = conformance_nested_grid(base, nested);
  conformance_list_result_point_string outcomes = conformance_nested_outcomes(base, nested);
  conformance_list_tuple2_string_option_list_u8 pairs = conformance_nested_pairs(base, nested);
  conformance_list_shape shapes = conformance_nested_shapes(base, nested);
  tw_text text = conformance_nested_text(base, nested);
  tw_bytes bytes = conformance_nested_bytes(base, nested);
  size_t sum = nested->color + nested->rights + nested->twice.value.value;
  size_t i;
  size_t j;
  for (i = 0; i < text.size; i++) {
    sum += (unsigned char)text.data[i];
  }
  for (i = 0; i < bytes.size; i++) {
    sum += bytes.data[i];
  }
  for (i = 0; i < list.count; i++) {
    text = conformance_list_string_at(base, list, i);
    sum += text.size > 0 ? (unsigned char)text.data[text.size - 1] : 1;
  }
  for (i = 0; i < grid.count; i++) {
    conformance_list_s32 row = conformance_list_list_s32_at(base, grid, i);
    for (j = 0; j < row.count; j++) {
      sum += (size_t)row.items[j];
    }
  }
  for (i = 0; i < outcomes.count; i++) {
    const conformance_point *point;
    if (conformance_result_point_string_ok(base, &outcomes.items[i], &point)) {
      sum += (size_t)point->x + (size_t)point->y;
    } else if (conformance_result_point_string_error(base, &outcomes.items[i], &text)) {
      sum += text.size > 0 ? (unsigned char)text.data[0] : 1;
    } else {
      abort(); /* an invalid discriminant */
    }
  }
  for (i = 0; i < pairs.count; i++) {
    text = conformance_tuple2_string_option_list_u8_f0(base, &pairs.items[i]);
    sum += text.size > 0 ? (unsigned char)text.data[0] : 1;
    if (conformance_tuple2_string_option_list_u8_f1(base, &pairs.items[i], &bytes)) {
      sum += bytes.size > 0 ? bytes.data[bytes.size - 1] : 1;
    }
  }
  for (i = 0; i < shapes.count; i++) {
    conformance_list_point polygon;
    if (conformance_shape_polygon(base, &shapes.items[i], &polygon)) {
      for (j = 0; j < polygon.count; j++) {
        sum += (size_t)polygon.items[j].y;
      }
    }
  }
  if (conformance_nested_maybe(base, nested, &text)) {
    sum += text.size > 0 ? (unsigned char)text.data[0] : 1;
  }
  return sum;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void value_with_all_types_is_written_and_read(void) {
  conformance_nested_in in = nested_value();
  conformance_echo_nested_result result;
  conformance_list_string list;
  conformance_list_shape shapes;
  conformance_list_result_point_string outcomes;
  conformance_list_tuple2_string_option_list_u8 pairs;
  const conformance_point *point;
  conformance_list_point polygon;
  const uint8_t *base;
  tw_request request;
  tw_completion completion;
  tw_error error;
  tw_text text;
  tw_bytes bytes;
  uint8_t *data;
  REQUIRE_OK(tw_request_end(conformance_echo_nested_prepare(&client, &in, &request), &error),
             error);
  data = reply_of(&request.submission, &completion);
  REQUIRE_OK(conformance_echo_nested_read(&client, &completion, &result, &error), error);
  base = result.reply.base;
  CHECK(base == data);
  CHECK(is_text(conformance_nested_text(base, result.ok), "gr\xc3\xbc\xc3\x9f\x65"));
  bytes = conformance_nested_bytes(base, result.ok);
  CHECK(bytes.size == 3 && memcmp(bytes.data, some_bytes, 3) == 0);
  list = conformance_nested_aliased(base, result.ok);
  CHECK(list.count == 3 && is_text(conformance_list_string_at(base, list, 0), "one"));
  CHECK(conformance_list_string_at(base, list, 1).size == 0);
  CHECK(is_text(conformance_list_string_at(base, list, 2), "three"));
  CHECK(conformance_nested_maybe(base, result.ok, &text) && is_text(text, "perhaps"));
  CHECK(result.ok->twice.some && result.ok->twice.value.some && result.ok->twice.value.value == 9);
  outcomes = conformance_nested_outcomes(base, result.ok);
  CHECK(outcomes.count == 2);
  CHECK(conformance_result_point_string_ok(base, &outcomes.items[0], &point) && point->x == -3);
  CHECK(!conformance_result_point_string_ok(base, &outcomes.items[1], &point));
  CHECK(conformance_result_point_string_error(base, &outcomes.items[1], &text));
  CHECK(is_text(text, "wrong"));
  pairs = conformance_nested_pairs(base, result.ok);
  CHECK(pairs.count == 2);
  CHECK(is_text(conformance_tuple2_string_option_list_u8_f0(base, &pairs.items[1]), "right"));
  CHECK(conformance_tuple2_string_option_list_u8_f1(base, &pairs.items[0], &bytes));
  CHECK(bytes.size == 3);
  CHECK(!conformance_tuple2_string_option_list_u8_f1(base, &pairs.items[1], &bytes));
  shapes = conformance_nested_shapes(base, result.ok);
  CHECK(shapes.count == 3);
  CHECK(conformance_shape_polygon(base, &shapes.items[0], &polygon) && polygon.count == 2 &&
        polygon.items[1].x == -3 && polygon.items[1].y == 4);
  CHECK(conformance_shape_label(base, &shapes.items[1], &text) && is_text(text, "a label"));
  CHECK(result.ok->color == CONFORMANCE_COLOR_GREEN && result.ok->rights == 5);
  tw_reply_release(&result.reply);
  tw_reply_release(&result.reply);
  CHECK(released == 1);
  tw_request_free(&request);
  free(data);
}

static void padding_and_absent_payloads_are_zero(void) {
  conformance_shape_in shape;
  tw_request request;
  tw_error error;
  uint32_t i;
  memset(&shape, 0xff, sizeof(shape));
  shape.tag = CONFORMANCE_SHAPE_NOTHING;
  REQUIRE_OK(tw_request_end(conformance_echo_shape_prepare(&client, &shape, &request), &error),
             error);
  CHECK(request.submission.args[16] == CONFORMANCE_SHAPE_NOTHING);
  for (i = 17; i < request.submission.args_size; i++) {
    CHECK(request.submission.args[i] == 0);
  }
  tw_request_free(&request);
}

static void large_message_is_written_and_read(void) {
  enum { COUNT = 100000 };
  int64_t *numbers = (int64_t *)malloc(COUNT * sizeof(*numbers));
  conformance_list_s64 list;
  conformance_echo_numbers_result result;
  tw_request request;
  tw_completion completion;
  tw_error error;
  uint8_t *data;
  int i;
  if (!numbers) {
    abort();
  }
  for (i = 0; i < COUNT; i++) {
    numbers[i] = i * INT64_C(-1000000007);
  }
  list.items = numbers;
  list.count = COUNT;
  REQUIRE_OK(tw_request_end(conformance_echo_numbers_prepare(&client, list, &request), &error),
             error);
  data = reply_of(&request.submission, &completion);
  REQUIRE_OK(conformance_echo_numbers_read(&client, &completion, &result, &error), error);
  CHECK(result.ok.count == COUNT);
  CHECK(memcmp(result.ok.items, numbers, COUNT * sizeof(*numbers)) == 0);
  tw_reply_release(&result.reply);
  tw_request_free(&request);
  free(data);
  free(numbers);
}

static void null_pointer_with_a_length_is_refused(void) {
  conformance_list_string_in list = {NULL, 3};
  tw_text text = {NULL, 1};
  tw_request request;
  tw_error error;
  CHECK_CODE(tw_request_end(conformance_echo_strings_prepare(&client, list, &request), &error),
             TW_ARGUMENT);
  CHECK(strstr(error.message, "conformance.echo-strings") != NULL);
  tw_request_free(&request);
  CHECK_CODE(tw_request_end(conformance_echo_string_prepare(&client, text, &request), &error),
             TW_ARGUMENT);
  tw_request_free(&request);
  CHECK_CODE(tw_request_end(conformance_echo_nested_prepare(&client, NULL, &request), &error),
             TW_ARGUMENT);
  tw_request_free(&request);
}

static void oversized_arguments_are_refused_before_they_are_read(void) {
  tw_text text = {"x", (size_t)TW_MESSAGE_MAX};
  conformance_list_s64 list = {(const int64_t *)(const void *)names, SIZE_MAX / 4};
  tw_request request;
  tw_error error;
  CHECK_CODE(tw_request_end(conformance_echo_string_prepare(&client, text, &request), &error),
             TW_ARGUMENT);
  tw_request_free(&request);
  CHECK_CODE(tw_request_end(conformance_echo_numbers_prepare(&client, list, &request), &error),
             TW_ARGUMENT);
  tw_request_free(&request);
}

/* Decodes a changed message. Either all of it can be read, or the result is TW_ARGUMENT. */
static void read_changed(const tw_completion *original, const uint8_t *changed, size_t size,
                         int *refused) {
  conformance_echo_nested_result result;
  tw_completion completion = *original;
  uint32_t code;
  completion.data = changed;
  completion.data_size = size;
  code = conformance_echo_nested_read(&client, &completion, &result, NULL);
  if (code == TW_OK) {
    (void)walk(result.reply.base, result.ok);
  } else {
    CHECK_CODE(code, TW_ARGUMENT);
    (*refused)++;
  }
  tw_reply_release(&result.reply);
}

static void changed_byte_never_causes_an_invalid_read(void) {
  static const uint8_t values[] = {0, 1, 2, 3, 8, 0x40, 0x7f, 0x80, 0xfe, 0xff};
  conformance_nested_in in = nested_value();
  tw_request request;
  tw_completion completion;
  tw_error error;
  uint8_t *data;
  size_t size;
  size_t at;
  size_t v;
  int refused = 0;
  REQUIRE_OK(tw_request_end(conformance_echo_nested_prepare(&client, &in, &request), &error),
             error);
  data = reply_of(&request.submission, &completion);
  size = (size_t)request.submission.args_size;
  for (at = 0; at < size; at++) {
    uint8_t before = data[at];
    for (v = 0; v < sizeof(values); v++) {
      data[at] = values[v];
      read_changed(&completion, data, size, &refused);
    }
    data[at] = before;
  }
  CHECK(refused > 500);
  tw_request_free(&request);
  free(data);
}

static void message_truncated_anywhere_is_refused(void) {
  conformance_nested_in in = nested_value();
  tw_request request;
  tw_completion completion;
  tw_error error;
  uint8_t *data;
  size_t size;
  int refused = 0;
  REQUIRE_OK(tw_request_end(conformance_echo_nested_prepare(&client, &in, &request), &error),
             error);
  data = reply_of(&request.submission, &completion);
  for (size = 0; size < request.submission.args_size; size++) {
    /* A copy of exactly that size, so that the sanitizer detects a read beyond it. */
    uint8_t *cut = (uint8_t *)malloc(size + 1);
    if (!cut) {
      abort();
    }
    memcpy(cut, data, size);
    read_changed(&completion, cut, size, &refused);
    if (size >= sizeof(uint32_t)) {
      uint32_t claimed = (uint32_t)size;
      memcpy(cut, &claimed, sizeof(claimed));
      read_changed(&completion, cut, size, &refused);
    }
    free(cut);
  }
  CHECK(refused == (int)(2 * request.submission.args_size - 4));
  tw_request_free(&request);
  free(data);
}

static void result_of_another_layout_is_refused(void) {
  conformance_echo_u32_result result;
  tw_request request;
  tw_completion completion;
  tw_error error;
  uint8_t *data;
  REQUIRE_OK(tw_request_end(conformance_echo_s32_prepare(&client, 5, &request), &error), error);
  data = reply_of(&request.submission, &completion);
  CHECK_CODE(conformance_echo_u32_read(&client, &completion, &result, &error), TW_ARGUMENT);
  CHECK(strstr(error.message, "malformed") != NULL);
  tw_request_free(&request);
  free(data);
}

static void outcome_without_data_has_its_code_and_text(void) {
  conformance_echo_u32_result result;
  tw_completion completion;
  tw_error error;
  memset(&completion, 0, sizeof(completion));
  completion.code = TW_GUEST_PANICKED;
  completion.message = "it broke";
  completion.message_size = 8;
  CHECK_CODE(conformance_echo_u32_read(&client, &completion, &result, &error), TW_GUEST_PANICKED);
  CHECK(strcmp(error.message, "it broke") == 0);
  completion.code = TW_OVERLOADED;
  completion.message = NULL;
  completion.retryable = 1;
  CHECK_CODE(conformance_echo_u32_read(&client, &completion, &result, &error), TW_OVERLOADED);
  CHECK(strcmp(error.message, "overloaded") == 0 && error.retryable == 1);
}

static void long_error_text_is_truncated_at_a_character(void) {
  tw_error error;
  char text[400];
  memset(text, 'a', sizeof(text));
  memcpy(text + 246, "\xc3\xa9", 2); /* the second byte of the character does not fit */
  CHECK_CODE(tw_fail_with(&error, TW_CLOSED, 0, text, sizeof(text)), TW_CLOSED);
  CHECK(strlen(error.message) == 246);
  CHECK_CODE(tw_fail(NULL, TW_STALE, "%d", 1), TW_STALE);
  CHECK(strcmp(tw_code_name(TW_WOULD_PARK), "would_park") == 0);
  CHECK(strcmp(tw_code_name(99), "unknown") == 0);
}

int main(void) {
  make_table();
  RUN(value_with_all_types_is_written_and_read);
  RUN(padding_and_absent_payloads_are_zero);
  RUN(large_message_is_written_and_read);
  RUN(null_pointer_with_a_length_is_refused);
  RUN(oversized_arguments_are_refused_before_they_are_read);
  RUN(changed_byte_never_causes_an_invalid_read);
  RUN(message_truncated_anywhere_is_refused);
  RUN(result_of_another_layout_is_refused);
  RUN(outcome_without_data_has_its_code_and_text);
  RUN(long_error_text_is_truncated_at_a_character);
  return done("message");
}
