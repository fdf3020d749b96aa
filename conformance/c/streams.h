/* Reading streams, and streams that the scenario refers to by a name. Included only by the
 * runner. */
#ifndef STREAMS_H
#define STREAMS_H

#include "report.h"
#include "values.h"

#define MAX_STREAMS 16

/* The records of a stream, compared with the expected ones of a step. */
typedef struct observation {
  const method *method;
  const json_t *wanted;
  uint64_t max; /* records to read */
  record_counts counts;
  uint32_t code; /* the outcome; 0: the stream has not ended */
  bool differs;  /* an element is not equal */
  bool last_is;
  bool error_is; /* the error is equal, or none is expected */
  char message[sizeof(((tw_error *)NULL)->message)];
} observation;

/* A stream with a name. Records of a callback are copied, and compared by a later step. */
typedef struct named_stream {
  const char *name;
  const method *method;
  tw_stream stream;
  bool subscribed;
  uint64_t max; /* records of the callback */
  uint64_t taken;
  tw_batch batches[1024]; /* copies */
  size_t batch_count;
  tw_batch end;
  tw_error outcome;
} named_stream;

static tw_client client;
static named_stream all_streams[MAX_STREAMS];

static inline named_stream *find_stream(const char *name) {
  size_t i;
  for (i = 0; i < MAX_STREAMS; i++) {
    if (name && all_streams[i].name && strcmp(all_streams[i].name, name) == 0) {
      return &all_streams[i];
    }
  }
  return NULL;
}

static inline void drop_stream(named_stream *named) {
  if (named) {
    size_t i;
    tw_stream_close(&named->stream, NULL);
    for (i = 0; i < named->batch_count; i++) {
      free((void *)(uintptr_t)named->batches[i].base);
    }
    named->name = NULL;
  }
}

static inline named_stream *keep_stream(const char *name, const method *method, tw_stream stream) {
  size_t i = 0;
  named_stream *place = NULL;
  drop_stream(find_stream(name));
  while (!place) {
    if (i == MAX_STREAMS) {
      abort();
    }
    place = all_streams[i].name ? NULL : &all_streams[i];
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
  for (i = 0; i < MAX_STREAMS; i++) {
    drop_stream(all_streams[i].name ? &all_streams[i] : NULL);
  }
}

static inline void observe_batch(observation *observation, const tw_batch *batch) {
  const char *key = batch->flags & TW_BATCH_CONTROL ? "controls" : "elements";
  const json_t *all = json_object_get(observation->wanted, key);
  uint64_t *count = batch->flags & TW_BATCH_CONTROL ? &observation->counts.controls
                                                    : &observation->counts.elements;
  const json_t *first = json_object_get(observation->wanted, "first");
  const json_t *last = json_object_get(observation->wanted, "last");
  uint32_t i;
  count_lost(&observation->counts, batch->lost_before, batch->gap_reason);
  for (i = 0; i < batch->count && observation->counts.elements < observation->max; i++, ++*count) {
    const void *record = tw_batch_at(batch, i);
    const json_t *same = all ? json_array_get(all, (size_t)*count) : NULL;
    if (same && !observation->method->element_is(batch->base, record, same)) {
      observation->differs = true;
    }
    if (batch->flags & TW_BATCH_CONTROL) {
      continue;
    }
    observation->differs |=
        *count == 0 && first && !observation->method->element_is(batch->base, record, first);
    observation->last_is = last && observation->method->element_is(batch->base, record, last);
  }
}

static inline bool agrees(const observation *observation) {
  return !observation->differs && observation->error_is &&
         (observation->last_is || !json_object_get(observation->wanted, "last")) &&
         counts_are(observation->wanted, &observation->counts);
}

/* Whether the error at the end of a stream is the expected one. True if none is expected. */
static inline bool error_is(const tw_client *reader, const observation *observation,
                            const tw_stream *stream) {
  expected expected = {NULL, json_object_get(observation->wanted, "error"), true, 0};
  tw_completion completion;
  tw_error error = {0, 0, ""};
  if (!expected.error) {
    return true;
  }
  return observation->code == TW_ERROR &&
         tw_stream_error(stream, &completion, &error)->kind != TW_COMPLETION_NONE &&
         observation->method->read(reader, &completion, &expected, &error) == TW_ERROR &&
         expected.agrees;
}

/* Reads a stream until its end, or as many records as the step has in `take`. */
static inline observation read_stream(const tw_client *reader, const json_t *wanted,
                                      const method *method, tw_stream stream) {
  observation observation = {
      method, wanted, number(wanted, "take", UINT64_MAX), {0, 0, 0, 0}, 0, false, false, true, ""};
  tw_error error = {0, 0, ""};
  tw_batch batch;
  while (observation.counts.elements < observation.max) {
    const uint64_t left = observation.max - observation.counts.elements;
    const uint32_t most = left < 256 ? (uint32_t)left : 256;
    observation.code = tw_stream_acquire_serving(&stream, reader, most, TW_FOREVER,
                                                 method->element_size, &batch, &error);
    if (observation.code != TW_OK) {
      count_lost(&observation.counts, batch.lost_before, batch.gap_reason);
      memcpy(observation.message, error.message, sizeof(observation.message));
      observation.error_is = error_is(reader, &observation, &stream);
      break;
    }
    observe_batch(&observation, &batch);
    tw_stream_release(&stream, batch.count, NULL);
  }
  return observation;
}

/* The callback: copies each batch. */
static inline uint32_t copy_batch(void *ctx, const tw_batch *batch, const tw_error *outcome) {
  named_stream *named = (named_stream *)ctx;
  tw_batch *copy;
  uint8_t *memory;
  if (outcome) {
    named->end = *batch;
    named->outcome = *outcome;
    return 0;
  }
  if (named->batch_count == sizeof(named->batches) / sizeof(named->batches[0])) {
    abort();
  }
  memory = (uint8_t *)malloc((size_t)batch->size);
  if (!memory) {
    abort();
  }
  memcpy(memory, batch->base, (size_t)batch->size);
  copy = &named->batches[named->batch_count++];
  *copy = *batch;
  copy->base = memory;
  copy->slots = memory + (batch->slots - batch->base);
  named->taken += batch->flags & TW_BATCH_CONTROL ? 0 : batch->count;
  return named->taken >= named->max;
}

static inline uint32_t subscribe(named_stream *named, const json_t *step, tw_error *error) {
  named->subscribed = true;
  named->max = number(step, "take", UINT64_MAX);
  return tw_stream_subscribe(&named->stream, copy_batch, named, NULL, error);
}

/* The same for a stream with a callback, after its last call. */
static inline observation read_subscribed(const json_t *wanted, const named_stream *named) {
  observation observation = {named->method, wanted, number(wanted, "take", UINT64_MAX),
                             {0, 0, 0, 0},  0,      false,
                             false,         true,   ""};
  size_t i;
  observation.code = tw_stream_join(&named->stream, TW_FOREVER, NULL);
  for (i = 0; i < named->batch_count; i++) {
    observe_batch(&observation, &named->batches[i]);
  }
  count_lost(&observation.counts, named->end.lost_before, named->end.gap_reason);
  observation.code = observation.code != TW_OK ? observation.code : named->outcome.code;
  memcpy(observation.message, named->outcome.message, sizeof(observation.message));
  return observation;
}

static inline void check_stream(const observation *observation) {
  check_outcome(observation->wanted, observation->code == TW_OK ? TW_CLOSED : observation->code,
                TW_CLOSED, observation->message);
  if (!agrees(observation)) {
    fail("other elements, or another number of them", observation->method->name);
  }
}

/* A step that reads a named stream, or another operation on one. */
static inline void stream_step(const json_t *step) {
  const char *about[] = {"read", "tee", "subscribe", "stats"};
  named_stream *named = NULL;
  tw_error error = {0, 0, ""};
  tw_stream tee;
  tw_stats stats;
  uint32_t code = TW_OK;
  size_t i = 0;
  while (!json_object_get(step, about[i])) {
    i++;
  }
  named = find_stream(json_string_value(json_object_get(step, about[i])));
  if (!named) {
    fail("no such stream", about[i]);
  } else if (i == 0) {
    const json_t *wanted = json_object_get(step, "stream");
    const observation observation =
        named->subscribed ? read_subscribed(wanted, named)
                          : read_stream(&client, wanted, named->method, named->stream);
    check_stream(&observation);
    drop_stream(named);
  } else if (i == 1) {
    code = tw_stream_tee(&named->stream, &tee, &error);
    keep_stream(json_string_value(json_object_get(step, "bind")), named->method, tee);
  } else if (i == 2) {
    code = subscribe(named, step, &error);
  } else {
    code = tw_stream_stats(&named->stream, &stats, &error);
    if (!stats_are(step, &stats)) {
      fail("other statistics", named->name);
    }
  }
  if (code != TW_OK) {
    fail(about[i], error.message);
  }
}

#endif
