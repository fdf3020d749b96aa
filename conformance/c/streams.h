/* Streams: what comes out of them, and those that are kept under a name. Included by the runner alone. */
#ifndef STREAMS_H
#define STREAMS_H

#include "report.h"
#include "values.h"

#define MOST_STREAMS 16

/* What is told of a stream, piece by piece, and how it agrees with what the step says. */
typedef struct seen {
  const method *method;
  const json_t *wanted;
  uint64_t most; /* records */
  uint64_t count;
  uint64_t lost;
  uint64_t controls;
  uint32_t gap;  /* why the last records were lost */
  uint32_t code; /* how it ended; 0: not yet */
  bool other;    /* an element is another one */
  bool last_is;
  bool error_is; /* the service's own error is the one that is wanted, or none is */
  char message[sizeof(((tw_error *)NULL)->message)];
} seen;

/* A stream under a name. Records that come by callback are copied, and looked at when the step comes that reads them. */
typedef struct kept_stream {
  const char *name;
  const method *method;
  tw_stream stream;
  bool subscribed;
  uint64_t most; /* of a callback */
  uint64_t taken;
  tw_batch batches[1024]; /* with memory of their own */
  size_t batch_count;
  tw_batch ended;
  tw_error ending;
} kept_stream;

static tw_client client;
static kept_stream kept_streams[MOST_STREAMS];

static inline kept_stream *stream_named(const char *name) {
  size_t i;
  for (i = 0; i < MOST_STREAMS; i++) {
    if (name && kept_streams[i].name && strcmp(kept_streams[i].name, name) == 0) {
      return &kept_streams[i];
    }
  }
  return NULL;
}

static inline void drop_stream(kept_stream *kept) {
  if (kept) {
    size_t i;
    tw_stream_close(&kept->stream, NULL);
    for (i = 0; i < kept->batch_count; i++) {
      free((void *)(uintptr_t)kept->batches[i].base);
    }
    kept->name = NULL;
  }
}

static inline kept_stream *keep_stream(const char *name, const method *method, tw_stream stream) {
  size_t i = 0;
  kept_stream *place = NULL;
  drop_stream(stream_named(name));
  while (!place) {
    if (i == MOST_STREAMS) {
      abort();
    }
    place = kept_streams[i].name ? NULL : &kept_streams[i];
    i++;
  }
  memset(place, 0, sizeof(*place));
  place->name = name;
  place->method = method;
  place->stream = stream;
  return place;
}

static inline void drop_all_streams(void) {
  size_t i;
  for (i = 0; i < MOST_STREAMS; i++) {
    drop_stream(kept_streams[i].name ? &kept_streams[i] : NULL);
  }
}

static inline void saw_loss(seen *seen, const tw_batch *batch) {
  seen->lost += batch->lost_before;
  seen->gap = batch->lost_before ? batch->gap_reason : seen->gap;
}

static inline void saw_batch(seen *seen, const tw_batch *batch) {
  const char *key = batch->flags & TW_BATCH_CONTROL ? "controls" : "elements";
  const json_t *all = json_object_get(seen->wanted, key);
  uint64_t *count = batch->flags & TW_BATCH_CONTROL ? &seen->controls : &seen->count;
  const json_t *first = json_object_get(seen->wanted, "first");
  const json_t *last = json_object_get(seen->wanted, "last");
  uint32_t i;
  saw_loss(seen, batch);
  for (i = 0; i < batch->count && seen->count < seen->most; i++, ++*count) {
    const void *record = tw_batch_at(batch, i);
    const json_t *same = all ? json_array_get(all, (size_t)*count) : NULL;
    if (same && !seen->method->element_is(batch->base, record, same)) {
      seen->other = true;
    }
    if (batch->flags & TW_BATCH_CONTROL) {
      continue;
    }
    seen->other |= *count == 0 && first && !seen->method->element_is(batch->base, record, first);
    seen->last_is = last && seen->method->element_is(batch->base, record, last);
  }
}

static inline bool agrees(const seen *seen) {
  const json_t *wanted = seen->wanted;
  const json_t *elements = json_object_get(wanted, "elements");
  const json_t *controls = json_object_get(wanted, "controls");
  return !seen->other && seen->error_is && (seen->last_is || !json_object_get(wanted, "last")) &&
         (!elements || seen->count == json_array_size(elements)) &&
         (!controls || seen->controls == json_array_size(controls)) &&
         seen->count == number(wanted, "count", seen->count) &&
         seen->count + seen->lost == number(wanted, "total", seen->count + seen->lost) &&
         seen->gap == number(wanted, "gap", seen->gap);
}

/* Looks at the error that a stream ended with, where the step says which. */
static inline bool error_is(const tw_client *reader, const seen *seen, const tw_stream *stream) {
  expected expected = {NULL, json_object_get(seen->wanted, "error"), true, 0};
  tw_completion completion;
  tw_error error = {0, 0, ""};
  if (!expected.error) {
    return true;
  }
  return seen->code == TW_ERROR && tw_stream_error(stream, &completion, &error) == TW_OK &&
         seen->method->read(reader, &completion, &expected, &error) == TW_ERROR && expected.agrees;
}

/* Reads what a stream gives, as the step says. */
static inline seen read_stream(const tw_client *reader, const json_t *wanted, const method *method,
                               tw_stream stream) {
  seen seen = {method, wanted, number(wanted, "take", UINT64_MAX), 0, 0, 0, 0, 0, false, false,
               true,   ""};
  tw_error error = {0, 0, ""};
  tw_batch batch;
  while (seen.count < seen.most) {
    const uint64_t left = seen.most - seen.count;
    const uint32_t most = left < 256 ? (uint32_t)left : 256;
    seen.code = tw_stream_acquire_serving(&stream, reader, most, TW_FOREVER, method->element_size,
                                          &batch, &error);
    if (seen.code != TW_OK) {
      saw_loss(&seen, &batch);
      memcpy(seen.message, error.message, sizeof(seen.message));
      seen.error_is = error_is(reader, &seen, &stream);
      break;
    }
    saw_batch(&seen, &batch);
    tw_stream_release(&stream, batch.count, NULL);
  }
  return seen;
}

/* The callback: copies. */
static inline uint32_t take_batch(void *ctx, const tw_batch *batch, const tw_error *ending) {
  kept_stream *kept = (kept_stream *)ctx;
  tw_batch *copy;
  uint8_t *memory;
  if (ending) {
    kept->ended = *batch;
    kept->ending = *ending;
    return 0;
  }
  if (kept->batch_count == sizeof(kept->batches) / sizeof(kept->batches[0])) {
    abort();
  }
  memory = (uint8_t *)malloc((size_t)batch->size);
  if (!memory) {
    abort();
  }
  memcpy(memory, batch->base, (size_t)batch->size);
  copy = &kept->batches[kept->batch_count++];
  *copy = *batch;
  copy->base = memory;
  copy->slots = memory + (batch->slots - batch->base);
  kept->taken += batch->flags & TW_BATCH_CONTROL ? 0 : batch->count;
  return kept->taken >= kept->most;
}

static inline uint32_t subscribe(kept_stream *kept, const json_t *step, tw_error *error) {
  kept->subscribed = true;
  kept->most = number(step, "take", UINT64_MAX);
  return tw_stream_subscribe(&kept->stream, take_batch, kept, NULL, error);
}

/* The same of one with a callback, once that is over. */
static inline seen read_subscribed(const json_t *wanted, const kept_stream *kept) {
  seen seen = {
      kept->method, wanted, number(wanted, "take", UINT64_MAX), 0, 0, 0, 0, 0, false, false,
      true,         ""};
  size_t i;
  seen.code = tw_stream_join(&kept->stream, TW_FOREVER, NULL);
  for (i = 0; i < kept->batch_count; i++) {
    saw_batch(&seen, &kept->batches[i]);
  }
  saw_loss(&seen, &kept->ended);
  seen.code = seen.code != TW_OK ? seen.code : kept->ending.code;
  memcpy(seen.message, kept->ending.message, sizeof(seen.message));
  return seen;
}

static inline bool stats_are(const json_t *step, const tw_stats *stats) {
  uint64_t lost = 0;
  size_t i;
  for (i = 0; i < sizeof(stats->lost) / sizeof(stats->lost[0]); i++) {
    lost += stats->lost[i];
  }
  return stats->streams == number(step, "streams", stats->streams) &&
         stats->published == number(step, "published", stats->published) &&
         stats->delivered == number(step, "delivered", stats->delivered) &&
         stats->undelivered == number(step, "undelivered", stats->undelivered) &&
         stats->occupancy == number(step, "occupancy", stats->occupancy) &&
         stats->control == number(step, "control", stats->control) &&
         lost == number(step, "lost", lost);
}

static inline void check_stream(const seen *seen) {
  check_ending(seen->wanted, seen->code == TW_OK ? TW_CLOSED : seen->code, TW_CLOSED,
               seen->message);
  if (!agrees(seen)) {
    fail("other elements, or not so many", seen->method->name);
  }
}

/* A step about a stream that is kept. */
static inline void stream_step(const json_t *step) {
  const char *about[] = {"read", "tee", "subscribe", "stats"};
  kept_stream *kept = NULL;
  tw_error error = {0, 0, ""};
  tw_stream tee;
  tw_stats stats;
  uint32_t code = TW_OK;
  size_t i = 0;
  while (!json_object_get(step, about[i])) {
    i++;
  }
  kept = stream_named(json_string_value(json_object_get(step, about[i])));
  if (!kept) {
    fail("no such stream", about[i]);
  } else if (i == 0) {
    const json_t *wanted = json_object_get(step, "stream");
    const seen seen = kept->subscribed ? read_subscribed(wanted, kept)
                                       : read_stream(&client, wanted, kept->method, kept->stream);
    check_stream(&seen);
    drop_stream(kept);
  } else if (i == 1) {
    code = tw_stream_tee(&kept->stream, &tee, &error);
    keep_stream(json_string_value(json_object_get(step, "bind")), kept->method, tee);
  } else if (i == 2) {
    code = subscribe(kept, step, &error);
  } else {
    code = tw_stream_stats(&kept->stream, &stats, &error);
    if (!stats_are(step, &stats)) {
      fail("other statistics", kept->name);
    }
  }
  if (code != TW_OK) {
    fail(about[i], error.message);
  }
}

#endif
