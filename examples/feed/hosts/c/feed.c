/* Reads the feed from C: feed-c LIBRARY. All hosts print the same output. Typed callbacks receive
 * the events. */
#include "feed.h"

#define BATCH 256

/* Sums over all events: the policy is `block`. */
typedef struct ledger {
  uint64_t count;
  uint64_t trades;
  uint64_t volume;
  int64_t turnover;
  int64_t best;
  tw_error outcome; /* of the stream */
} ledger;

/* Runs on the thread that writes the events, one call at a time. */
static uint32_t add_to_ledger(void *ctx, const feed_event_batch *batch, const tw_error *outcome) {
  ledger *sums = (ledger *)ctx;
  uint32_t i;
  uint32_t place;
  if (outcome) {
    sums->outcome = *outcome;
  }
  for (i = 0; i < batch->tw.count; i++) {
    const feed_event *event = feed_event_batch_at(batch, i);
    sums->count++;
    for (place = 0; place < 14; place++) {
      const int64_t price = event->bids.items[place].price;
      sums->best = price > sums->best ? price : sums->best;
    }
    if (event->kind == FEED_KIND_TRADE) {
      sums->trades++;
      sums->volume += event->size;
      sums->turnover += event->price * (int64_t)event->size;
    }
  }
  return 0;
}

/* Waits for the last call of the callback. Until then, the callback owns its `ctx`. */
static uint32_t wait_for(const feed_event_stream *events, const tw_error *outcome,
                         tw_error *error) {
  uint32_t code = tw_stream_join(&events->tw, TW_FOREVER, error);
  if (code == TW_OK && outcome->code != TW_CLOSED) {
    *error = *outcome;
    code = outcome->code;
  }
  return code;
}

static uint32_t show_all(const feed_client *client, tw_error *error) {
  ledger sums = {0, 0, 0, 0, 0, {0, 0, ""}};
  feed_all_result result;
  uint32_t code = feed_all(client, 100000, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    code = feed_event_stream_subscribe(&result.ok, add_to_ledger, &sums, NULL, error);
    code = code == TW_OK ? wait_for(&result.ok, &sums.outcome, error) : code;
    feed_event_stream_close(&result.ok, NULL);
    printf("all: %" PRIu64 " events, %" PRIu64 " trades of %" PRIu64 " for %" PRId64
           ", best bid %" PRId64 "\n",
           sums.count, sums.trades, sums.volume, sums.turnover, sums.best);
  }
  tw_reply_release(&result.reply);
  return code;
}

typedef struct screen {
  uint64_t count;
  uint64_t volume;
  tw_error outcome;
} screen;

/* Prints gaps and halts. The policy is `drop-oldest`; a halt is a control record, which is never
 * dropped. */
static uint32_t show_on_screen(void *ctx, const feed_event_batch *batch, const tw_error *outcome) {
  screen *sums = (screen *)ctx;
  uint32_t i;
  if (outcome) {
    sums->outcome = *outcome;
  }
  if (batch->tw.lost_before > 0) {
    printf("recent: gap of %" PRIu64 " events before number %" PRIu64 ", reason %" PRIu32 "\n",
           batch->tw.lost_before, batch->tw.first_seq, batch->tw.gap_reason);
  }
  for (i = 0; i < batch->tw.count; i++) {
    const feed_event *event = feed_event_batch_at(batch, i);
    if (batch->tw.flags & TW_BATCH_CONTROL) {
      printf("recent: halt at event %" PRIu64 "\n", event->number);
    } else {
      sums->count++;
      sums->volume += event->size;
    }
  }
  return 0;
}

static uint32_t show_recent(const feed_client *client, tw_error *error) {
  screen sums = {0, 0, {0, 0, ""}};
  feed_recent_result result;
  tw_stats stats;
  uint32_t code = feed_recent(client, 5000, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    code = feed_event_stream_subscribe(&result.ok, show_on_screen, &sums, NULL, error);
    code = code == TW_OK ? wait_for(&result.ok, &sums.outcome, error) : code;
    code = code == TW_OK ? tw_stream_stats(&result.ok.tw, &stats, error) : code;
    feed_event_stream_close(&result.ok, NULL);
  }
  if (code == TW_OK) {
    printf("recent: %" PRIu64 " events of %" PRIu64 "\n", sums.count, sums.volume);
    printf("recent: %" PRIu64 " published, %" PRIu64 " delivered, %" PRIu64 " dropped, %" PRIu64
           " halts\n",
           stats.published, stats.delivered, stats.lost[TW_GAP_DROPPED_OLDEST], stats.control);
  }
  tw_reply_release(&result.reply);
  return code;
}

/* Reads the newest event on this thread, batch by batch. The policy is `latest`. */
static uint32_t show_newest(const feed_client *client, tw_error *error) {
  feed_newest_result result;
  feed_event_batch batch;
  uint32_t i;
  uint32_t code = feed_newest(client, 5000, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    while ((code = feed_event_stream_acquire(&result.ok, BATCH, TW_FOREVER, &batch, error)) ==
           TW_OK) {
      for (i = 0; i < batch.tw.count; i++) {
        const feed_event *event = feed_event_batch_at(&batch, i);
        printf("newest: event %" PRIu64 " at %" PRIu64 " ns, %" PRIu64 " overtaken\n",
               event->number, event->at_ns, batch.tw.lost_before);
      }
      feed_event_stream_release(&result.ok, batch.tw.count, NULL);
    }
    feed_event_stream_close(&result.ok, NULL);
  }
  tw_reply_release(&result.reply);
  return code == TW_CLOSED ? TW_OK : code;
}

int main(int argc, char **argv) {
  feed_library library;
  feed_client client;
  tw_error error;
  uint32_t code;
  if (argc != 2) {
    fputs("usage: feed-c LIBRARY\n", stderr);
    return 2;
  }
  code = feed_open(argv[1], &library, &error);
  if (code == TW_OK) {
    code = feed_client_open(&library, 1, &client, &error);
  }
  if (code == TW_OK) {
    code = show_all(&client, &error);
    code = code == TW_OK ? show_recent(&client, &error) : code;
    code = code == TW_OK ? show_newest(&client, &error) : code;
    feed_client_close(&client, NULL);
  }
  if (code != TW_OK) {
    fprintf(stderr, "feed-c: %s: %s\n", tw_code_name(code), error.message);
    return 1;
  }
  return 0;
}
