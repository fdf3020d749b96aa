/* A program of another version than the library: test.sh generates conformance.h from a changed
 * WIT.
 * -DOLDER: it has less; -DNEWER: it has more; -DOTHER: a field has another place. */
#include "check.h"
#include "conformance.h"

#if defined(OTHER)

int main(int argc, char **argv) {
  conformance_library library;
  tw_error error;
  (void)argc;
  memset(&error, 0, sizeof(error));
  CHECK_CODE(conformance_open(argv[1], &library, &error), TW_VERSION);
  CHECK(strstr(error.message, "built for thalweg:conformance@0.1.0 with layout") != NULL);
  CHECK(strstr(error.message, "but the library's thalweg:conformance@0.1.0 has layout") != NULL);
  CHECK(strstr(error.message, "conformance.echo-keywords differ: `value.errno` is `value.await`") !=
        NULL);
  CHECK(library.table == NULL);
  tests_run++;
  return done("versions, another order");
}

#else

static conformance_client client;

static void record_keeps_the_fields_that_both_versions_have(void) {
  conformance_echo_keywords_result result;
  conformance_keywords_in value;
  tw_error error;
  memset(&value, 0, sizeof(value));
  value.int_ = 1234567890;
  value.nullptr_ = -8;
  REQUIRE_OK(conformance_echo_keywords(&client, &value, TW_FOREVER, &result, &error), error);
  CHECK(result.ok->int_ == 1234567890 && result.ok->nullptr_ == -8);
  tw_reply_release(&result.reply);
#ifdef NEWER
  /* The library does not return fields that it does not have. */
  value.errno_ = -5;
  value.more = 7;
  REQUIRE_OK(conformance_echo_keywords(&client, &value, TW_FOREVER, &result, &error), error);
  CHECK(result.ok->errno_ == -5 && result.ok->more == 0);
  tw_reply_release(&result.reply);
#endif
}

static void parameters_may_be_fewer_and_more(void) {
  static const uint16_t numbers[] = {3, 5};
  conformance_list_u16 list = {numbers, 2};
  conformance_several_result result;
  tw_error error;
#ifdef NEWER
  conformance_option_point point;
  memset(&point, 0, sizeof(point));
  point.some = true;
  point.value.y = -3;
  REQUIRE_OK(conformance_several(&client, 7, tw_text_of("match"), list, &point,
                                 tw_text_of("not known"), TW_FOREVER, &result, &error),
             error);
  CHECK(result.ok->f3.some && result.ok->f3.value.y == -3);
#else
  REQUIRE_OK(
      conformance_several(&client, 7, tw_text_of("match"), list, TW_FOREVER, &result, &error),
      error);
  CHECK(!result.ok->f3.some);
#endif
  CHECK(result.ok->f0 == 7 && result.ok->f1.length == 5 && result.ok->f2.length == 2);
  tw_reply_release(&result.reply);
}

static void flags_keep_those_that_both_versions_have(void) {
  conformance_echo_rights_result result;
  tw_error error;
  conformance_rights all = CONFORMANCE_RIGHTS_READ | CONFORMANCE_RIGHTS_WRITE;
#ifdef NEWER
  conformance_rights more = all | CONFORMANCE_RIGHTS_RECORD | CONFORMANCE_RIGHTS_MINE;
  all |= CONFORMANCE_RIGHTS_RECORD;
#else
  conformance_rights more = all;
#endif
  REQUIRE_OK(conformance_echo_rights(&client, more, TW_FOREVER, &result, &error), error);
  CHECK(result.ok == all);
  tw_reply_release(&result.reply);
}

static void error_payload_keeps_the_cases_that_both_versions_have(void) {
  conformance_option_failure_in how;
  conformance_fail_result result;
  tw_error error;
  uint32_t number = 0;
  memset(&how, 0, sizeof(how));
  how.some = true;
  how.value.tag = CONFORMANCE_FAILURE_CODE;
  how.value.value.code = 4711;
  CHECK_CODE(conformance_fail(&client, &how, TW_FOREVER, &result, &error), TW_ERROR);
  CHECK(conformance_failure_code(result.reply.base, result.error, &number) && number == 4711);
  tw_reply_release(&result.reply);
#ifdef NEWER
  how.value.tag = CONFORMANCE_FAILURE_LATER;
  CHECK_CODE(conformance_fail(&client, &how, TW_FOREVER, &result, &error), TW_ERROR);
  CHECK(result.error->tag == CONFORMANCE_FAILURE_UNKNOWN);
  tw_reply_release(&result.reply);
#endif
}

static conformance_item_stream items(uint64_t count) {
  conformance_items_result result;
  tw_error error;
  REQUIRE_OK(conformance_items(&client, count, TW_FOREVER, &result, &error), error);
  return result.ok;
}

/* Checks the fields of an item that both versions have. */
static void check_item(const uint8_t *base, const conformance_item *item, uint64_t number) {
  char name[32];
  snprintf(name, sizeof(name), "item %u", (unsigned)number);
  CHECK(item->number == number);
  CHECK(tw_text_equal(conformance_item_name(base, item), tw_text_of(name)));
  CHECK(conformance_item_tags(base, item).count == number % 3);
#ifdef NEWER
  {
    tw_bytes blob;
    CHECK(conformance_item_blob(base, item, &blob) == (number % 2 == 0));
    CHECK(item->size == 0 && tw_text_equal(conformance_item_more(base, item), tw_text_of("")));
  }
#endif
}

static void stream_elements_keep_the_fields_that_both_versions_have(void) {
  conformance_item_stream stream = items(1000);
  conformance_item_batch batch;
  tw_error error;
  uint64_t next = 0;
  uint32_t code;
  uint32_t i;
  while ((code = conformance_item_stream_acquire(&stream, 64, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    CHECK(batch.tw.stride == sizeof(conformance_item) && batch.tw.first_seq == next);
    CHECK(batch.tw.size >= (uint64_t)batch.tw.count * batch.tw.stride);
    for (i = 0; i < batch.tw.count; i++, next++) {
      check_item(batch.tw.base, conformance_item_batch_at(&batch, i), next);
    }
    CHECK_CODE(conformance_item_stream_release(&stream, batch.tw.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(next == 1000);
  CHECK_CODE(conformance_item_stream_close(&stream, &error), TW_OK);
}

static void stream_error_keeps_the_cases_that_both_versions_have(void) {
  conformance_stops_result result;
  conformance_u64_stream stream;
  conformance_u64_batch batch;
  tw_error error;
  uint32_t number = 0;
  REQUIRE_OK(conformance_stops(&client, 0, tw_text_of("fail"), TW_FOREVER, &result, &error), error);
  stream = result.ok;
  CHECK_CODE(conformance_u64_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error), TW_ERROR);
  CHECK_CODE(conformance_stops_stream_error(&client, &stream, &result, &error), TW_ERROR);
  CHECK(conformance_failure_code(result.reply.base, result.error, &number) && number == 0);
  CHECK_CODE(conformance_u64_stream_close(&stream, &error), TW_OK);
}

static void retained_batch_has_the_layout_of_its_reader(void) {
  conformance_item_stream stream = items(1000);
  conformance_item_batch batch;
  tw_handle kept;
  tw_error error;
  uint32_t i;
  REQUIRE_OK(conformance_item_stream_acquire(&stream, 64, TW_FOREVER, &batch, &error), error);
  REQUIRE_OK(client.tw.table->stream_retain_batch(stream.tw.handle, &kept, &error), error);
  CHECK_CODE(conformance_item_stream_release(&stream, batch.tw.count, &error), TW_OK);
  CHECK_CODE(conformance_item_stream_close(&stream, &error), TW_OK);
  for (i = 0; i < batch.tw.count; i++) {
    check_item(batch.tw.base, conformance_item_batch_at(&batch, i), i);
  }
  CHECK_CODE(client.tw.table->retained_batch_release(kept, &error), TW_OK);
}

static void sent_elements_keep_the_fields_that_both_versions_have(void) {
  conformance_item_stream_writer stream;
  conformance_names_of_result result;
  conformance_item_in item;
  tw_error error;
  memset(&item, 0, sizeof(item));
  item.name = tw_text_of("left");
#ifdef NEWER
  item.size = 7;
  item.more = tw_text_of("not known");
#endif
  REQUIRE_OK(conformance_names_of_items_open(&client, &stream, &error), error);
  REQUIRE_OK(conformance_item_stream_writer_send(&stream, &item, TW_FOREVER, &error), error);
  item.name = tw_text_of("right");
  REQUIRE_OK(conformance_item_stream_writer_send(&stream, &item, TW_FOREVER, &error), error);
  item.name = tw_text_of("a\xff\x62");
  CHECK_CODE(conformance_item_stream_writer_send(&stream, &item, TW_FOREVER, &error), TW_ARGUMENT);
  CHECK_CODE(conformance_item_stream_writer_finish(&stream, &error), TW_OK);
  REQUIRE_OK(conformance_names_of(&client, &stream, TW_FOREVER, &result, &error), error);
  CHECK(tw_text_equal(result.ok, tw_text_of("leftright")));
  tw_reply_release(&result.reply);
  CHECK_CODE(conformance_item_stream_writer_close(&stream, &error), TW_OK);
}

static void invalid_value_is_refused(void) {
  conformance_echo_string_result result;
  tw_error error;
  CHECK_CODE(conformance_echo_string(&client, tw_text_of("a\xff\x62"), TW_FOREVER, &result, &error),
             TW_ARGUMENT);
  tw_reply_release(&result.reply);
}

static void layouts_are_set_once(void) {
  const tw_expected *expected = conformance_expected();
  tw_error error;
  CHECK_CODE(client.tw.table->client_set_layouts(client.tw.instance, expected->methods,
                                                 expected->method_count, expected->imports,
                                                 expected->import_count, &error),
             TW_ARGUMENT);
}

int main(int argc, char **argv) {
  conformance_library library;
  tw_error error;
  if (argc != 2) {
    fputs("usage: versions LIBRARY\n", stderr);
    return 2;
  }
  REQUIRE_OK(conformance_open(argv[1], &library, &error), error);
  REQUIRE_OK(conformance_client_open(&library, 4, &client, &error), error);
  CHECK(library.table->layout != conformance_expected()->layout);
  RUN(record_keeps_the_fields_that_both_versions_have);
  RUN(parameters_may_be_fewer_and_more);
  RUN(flags_keep_those_that_both_versions_have);
  RUN(error_payload_keeps_the_cases_that_both_versions_have);
  RUN(stream_elements_keep_the_fields_that_both_versions_have);
  RUN(stream_error_keeps_the_cases_that_both_versions_have);
  RUN(retained_batch_has_the_layout_of_its_reader);
  RUN(sent_elements_keep_the_fields_that_both_versions_have);
  RUN(invalid_value_is_refused);
  RUN(layouts_are_set_once);
  CHECK_CODE(conformance_client_close(&client, &error), TW_OK);
  return done("versions");
}

#endif
