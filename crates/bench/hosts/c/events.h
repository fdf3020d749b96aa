/* Events of 488 bytes, from the call on. */
#ifndef LAB_EVENTS_H
#define LAB_EVENTS_H

#include "lab.h"
#include "reading.h"
#include "sample.h"

static lab_event_stream events_open(const lab_client *client, uint64_t count) {
  lab_events_result result;
  lab_event_stream stream;
  tw_error error;
  must(lab_events(client, count, READING_BATCH, TW_FOREVER, &result, &error), "events", &error);
  stream = result.ok;
  tw_reply_release(&result.reply);
  return stream;
}

/* Acquires, reads and gives back one batch of at most `max`; 0 at the stream's end. */
static inline int events_read(const lab_event_stream *stream, uint32_t max, reading *read) {
  lab_event_batch batch;
  tw_error error;
  uint32_t i;
  const uint32_t code = lab_event_stream_acquire(stream, max, TW_FOREVER, &batch, &error);
  if (code == TW_CLOSED) {
    return 0;
  }
  must(code, "acquire", &error);
  for (i = 0; i < batch.tw.count; i++) {
    read->checksum += lab_event_batch_at(&batch, i)->quote.number;
  }
  read->records += batch.tw.count;
  must(lab_event_stream_release(stream, batch.tw.count, &error), "release", &error);
  return 1;
}

static inline void events_close(lab_event_stream *stream) {
  tw_error error;
  must(lab_event_stream_close(stream, &error), "close", &error);
}

/* `count` events from the call on, at most `max` of them at a time. */
static reading event_stream(const lab_client *client, uint64_t count, uint32_t max) {
  const uint64_t began = now_ns();
  lab_event_stream stream = events_open(client, count);
  reading read = {0, 0, 0};
  while (events_read(&stream, max, &read)) {
  }
  read.ns = now_ns() - began;
  events_close(&stream);
  return read;
}

#endif
