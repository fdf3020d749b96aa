/* The hot paths of a C host: `hosts_c LIBRARY PATH COUNT`. See instructions.sh. */
#include "events.h"
#include "lab.h"
#include "reading.h"
#include "sample.h"

/* Records of a stream that is full before it is read. */
#define AT_ONCE UINT64_C(8000)

/* Only instructions of these two functions and what they call are counted for the paths `view` and
 * `event_view`. */
__attribute__((noinline)) void lab_counted_matches(const lab_match_stream *stream, uint64_t count,
                                                   reading *read) {
  while (read->records < count) {
    lab_match_batch batch;
    uint32_t i;
    if (!next_batch(stream, &batch)) {
      return;
    }
    for (i = 0; i < batch.tw.count; i++) {
      read->checksum += touch(batch.tw.base, lab_match_batch_at(&batch, i));
    }
    read->records += batch.tw.count;
    give_back(stream, &batch);
  }
}

__attribute__((noinline)) void lab_counted_events(const lab_event_stream *stream, uint64_t count,
                                                  reading *read) {
  while (read->records < count && events_read(stream, READING_BATCH, read)) {
  }
}

static void wait_until_full(const tw_stream *stream, uint64_t count) {
  tw_stats stats = {0};
  tw_error error;
  do {
    pause_us(1000);
    must(tw_stream_stats(stream, &stats, &error), "stats", &error);
  } while (stats.occupancy < count);
}

static uint64_t smaller(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

int main(int argc, char **argv) {
  lab_library library;
  lab_client client;
  reading all = {0, 0, 0};
  tw_error error;
  const char *path = argc == 4 ? argv[2] : "";
  const uint64_t count = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
  must(argc == 4 ? lab_open(argv[1], &library, &error) : TW_ARGUMENT, "hosts_c", &error);
  must(lab_client_open(&library, 64, &client, &error), "client", &error);
  while (all.records < count) {
    const uint64_t now = smaller(count - all.records, AT_ONCE);
    reading read = {0, 0, 0};
    if (strcmp(path, "call") == 0) {
      lab_nop_result result;
      must(lab_nop(&client, TW_FOREVER, &result, &error), "nop", &error);
      read.records = 1;
    } else if (strcmp(path, "call_brief") == 0) {
      lab_tally_result result;
      must(lab_tally(&client, 1, TW_FOREVER, &result, &error), "tally", &error);
      read.records = 1;
    } else if (strcmp(path, "view") == 0) {
      lab_match_stream stream = generate(&client, now);
      wait_until_full(&stream.tw, now);
      lab_counted_matches(&stream, now, &read);
      close_stream(&stream);
    } else if (strcmp(path, "event_view") == 0) {
      lab_event_stream stream = events_open(&client, now);
      wait_until_full(&stream.tw, now);
      lab_counted_events(&stream, now, &read);
      events_close(&stream);
    } else if (strcmp(path, "event") == 0) {
      read = event_stream(&client, count, READING_BATCH);
    } else {
      fprintf(stderr, "not a path: %s\n", path);
      return 2;
    }
    all.records += read.records;
  }
  must(lab_client_close(&client, &error), "close", &error);
  return all.records == count ? 0 : 1;
}
