/* A service in C that writes records with text into the memory of its streams.
 * guest_records LIBRARY TRUSTED: the guests, which test.sh compiles. */
#include "check.h"
#include "records.h"

static records_library library;
static records_client client;

/* Reads `count` items without the one that is malformed. */
static void read_items(uint32_t count, uint32_t batch, uint32_t large, uint32_t malformed,
                       uint32_t errors) {
  records_items_result items;
  records_last_result result;
  records_item_batch read;
  tw_error error;
  uint32_t code;
  uint32_t number = 0;
  uint32_t seen = 0;
  REQUIRE_OK(records_items(&client, count, batch, large, malformed, TW_FOREVER, &items, &error),
             error);
  while ((code = records_item_stream_acquire(&items.ok, 256, TW_FOREVER, &read, &error)) == TW_OK) {
    uint32_t i;
    for (i = 0; i < read.tw.count; i++) {
      const records_item *item = records_item_batch_at(&read, i);
      const tw_text name = records_item_name(read.tw.base, item);
      char wanted[32];
      seen++;
      number += number + 1 == malformed ? 2 : 1;
      CHECK(item->number == number && item->letter == 'a');
      if (number == large) {
        CHECK(name.size == 100000 && name.data[0] == 'x' && name.data[99999] == 'x');
      } else {
        snprintf(wanted, sizeof(wanted), "item %u", (unsigned)number);
        CHECK(tw_text_equal(name, tw_text_of(wanted)));
      }
    }
    CHECK_CODE(records_item_stream_release(&items.ok, read.tw.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(seen == count - (malformed != 0));
  records_item_stream_close(&items.ok, &error);
  tw_reply_release(&items.reply);
  REQUIRE_OK(records_last(&client, TW_FOREVER, &result, &error), error);
  CHECK(result.ok->f0 == errors);
  tw_reply_release(&result.reply);
}

static void records_are_read_in_order(void) {
  static const uint32_t batches[] = {1, 2, 7, 64, 1000};
  size_t i;
  for (i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
    read_items(0, batches[i], 0, 0, 0);
    read_items(1, batches[i], 0, 0, 0);
    read_items(3000, batches[i], 0, 0, 0);
  }
}

static void record_that_does_not_fit_is_copied(void) {
  read_items(20, 1, 5, 0, 0);
  read_items(20, 8, 5, 0, 0);
  read_items(20, 8, 8, 0, 0);
  read_items(20, 100, 20, 0, 0);
  read_items(600, 100, 300, 0, 0);
}

static void malformed_record_is_reported_and_the_others_are_written(void) {
  read_items(20, 1, 0, 5, 1);
  read_items(20, 8, 0, 5, 1);
  read_items(20, 8, 0, 20, 1); /* when the stream ends */
  read_items(600, 1000, 4, 5, 1);
}

int main(int argc, char **argv) {
  tw_error error;
  int i;
  if (argc != 3) {
    fputs("usage: guest_records LIBRARY TRUSTED\n", stderr);
    return 2;
  }
  for (i = 1; i < argc; i++) {
    char address[1024];
    snprintf(address, sizeof(address), "thread:%s", argv[i]);
    REQUIRE_OK(records_open(address, &library, &error), error);
    REQUIRE_OK(records_client_open(&library, 16, &client, &error), error);
    RUN(records_are_read_in_order);
    RUN(record_that_does_not_fit_is_copied);
    if (i == 1) {
      RUN(malformed_record_is_reported_and_the_others_are_written);
    }
    REQUIRE_OK(records_client_close(&client, &error), error);
    REQUIRE_OK(tw_close(library.table, &error), error);
  }
  return done("guest_records");
}
