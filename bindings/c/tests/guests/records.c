/* A guest of the tests that writes records with text.
 * TRUSTED: they are not checked. */
#include <stdio.h>

#include "records_guest.h"

/* The state of an instance. */
typedef struct last {
  uint32_t errors;
  uint64_t unread;
} last;

static char large_name[100000];

static uint32_t open_state(void *context, void **state, tw_error *error) {
  (void)context;
  *state = calloc(1, sizeof(last));
  return *state ? (uint32_t)TW_OK : tw_fail(error, TW_OVERLOADED, "no memory");
}

static void close_state(void *state) {
  free(state);
}

static void items(void *state, const tw_incoming *call, uint32_t count, uint32_t batch,
                  uint32_t large, uint32_t malformed) {
  last *result = (last *)state;
  records_item_stream_writer writer;
  tw_stats stats;
  uint32_t number;
  if (records_items_answer(call, &writer, NULL) != TW_OK) {
    return;
  }
  writer.tw.batch = batch;
#ifdef TRUSTED
  writer.tw.flags = TW_WRITE_TRUSTED;
#endif
  result->errors = 0;
  memset(large_name, 'x', sizeof(large_name));
  for (number = 1; number <= count; number++) {
    char name[32];
    records_item_in item;
    snprintf(name, sizeof(name), "item %u", (unsigned)number);
    item.number = number;
    item.letter = 'a';
    item.name = tw_text_of(name);
    if (number == large) {
      item.name.data = large_name;
      item.name.size = sizeof(large_name);
    } else if (number == malformed) {
      item.name = tw_text_of("caf\xe9");
    }
    if (records_item_stream_writer_send(&writer, &item, 0, NULL) != TW_OK) {
      result->errors++;
    }
  }
  if (records_item_stream_writer_send(&writer, NULL, 0, NULL) != TW_ARGUMENT ||
      writer.tw.core->writer_stats(writer.tw.handle, &stats, (uint32_t)sizeof(stats), NULL) !=
          TW_OK ||
      writer.tw.core->writer_stats(writer.tw.handle, NULL, 8, NULL) != TW_ARGUMENT) {
    abort();
  }
  result->unread = stats.occupancy;
  if (records_item_stream_writer_finish(&writer, NULL) != TW_OK) {
    result->errors++;
  }
}

static void last_result(void *state, const tw_incoming *call) {
  const last *result = (const last *)state;
  records_tuple2_u32_u64 value;
  memset(&value, 0, sizeof(value));
  value.f0 = result->errors;
  value.f1 = result->unread;
  records_last_answer(call, &value, NULL);
}

static records_guest guest = {
    .open = open_state,
    .close = close_state,
    .items = items,
    .last = last_result,
};

RECORDS_GUEST_EXPORT(&guest)
