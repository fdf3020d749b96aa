/* Ticks of 64 bytes: what the host's own time for one is, and what the whole way of one takes. */
#ifndef LAB_TICKS_H
#define LAB_TICKS_H

#include <semaphore.h>

#include "lab.h"
#include "reading.h"
#include "sample.h"

/* What every host touches of a tick. */
static inline uint64_t tick_touch(const lab_tick *tick) {
  return tick->number + tick->bid + tick->volume;
}

static lab_tick_stream ticks_open(const lab_client *client, uint64_t count) {
  lab_ticks_result result;
  lab_tick_stream stream;
  tw_error error;
  must(lab_ticks(client, count, READING_BATCH, TW_FOREVER, &result, &error), "ticks", &error);
  stream = result.ok;
  tw_reply_release(&result.reply);
  return stream;
}

/* The next batch of at most `max`; 0 at the stream's end. */
static inline int ticks_next(const lab_tick_stream *stream, uint32_t max, lab_tick_batch *batch) {
  tw_error error;
  const uint32_t code = lab_tick_stream_acquire(stream, max, TW_FOREVER, batch, &error);
  if (code == TW_CLOSED) {
    return 0;
  }
  must(code, "acquire", &error);
  return 1;
}

static inline void ticks_give_back(const lab_tick_stream *stream, const lab_tick_batch *batch) {
  tw_error error;
  must(lab_tick_stream_release(stream, batch->tw.count, &error), "release", &error);
}

static inline void ticks_close(lab_tick_stream *stream) {
  tw_error error;
  must(lab_tick_stream_close(stream, &error), "close", &error);
}

/* Acquires, reads and gives back one batch; 0 at the stream's end. */
static inline int ticks_read(const lab_tick_stream *stream, uint32_t max, reading *read) {
  lab_tick_batch batch;
  uint32_t i;
  if (!ticks_next(stream, max, &batch)) {
    return 0;
  }
  for (i = 0; i < batch.tw.count; i++) {
    read->checksum += tick_touch(lab_tick_batch_at(&batch, i));
  }
  read->records += batch.tw.count;
  ticks_give_back(stream, &batch);
  return 1;
}

/* Reads `count` ticks of a new stream. Timed: acquire, loop and release, for batches that are ready
 * after each wait. */
static reading tick_views(const lab_client *client, uint64_t count) {
  lab_tick_stream stream = ticks_open(client, count);
  reading read = {0, 0, 0};
  uint64_t until = 0;
  while (read.records < count) {
    uint64_t began;
    if (read.records >= until) {
      pause_us(READING_FILL_US);
      until = read.records + READING_KEPT;
    }
    began = now_ns();
    if (!ticks_read(&stream, READING_BATCH, &read)) {
      break;
    }
    read.ns += now_ns() - began;
  }
  ticks_close(&stream);
  return read;
}

/* The same loop over `count` ticks in an array, which is built once and not timed. */
static reading tick_array(const lab_client *client, uint64_t count) {
  static lab_tick *kept;
  static uint64_t size;
  reading read = {0, 0, 0};
  uint64_t began;
  if (size != count) {
    lab_tick_stream stream = ticks_open(client, count);
    lab_tick_batch batch;
    free(kept);
    kept = calloc(count, sizeof(*kept));
    if (!kept) {
      abort();
    }
    size = 0;
    while (ticks_next(&stream, READING_BATCH, &batch)) {
      uint32_t i;
      for (i = 0; i < batch.tw.count; i++) {
        kept[size++] = *lab_tick_batch_at(&batch, i);
      }
      ticks_give_back(&stream, &batch);
    }
    ticks_close(&stream);
  }
  began = now_ns();
  for (; read.records < size; read.records++) {
    read.checksum += tick_touch(&kept[read.records]);
  }
  read.ns = now_ns() - began;
  return read;
}

/* `count` ticks from the call on, at most `max` of them at a time. */
static reading tick_stream(const lab_client *client, uint64_t count, uint32_t max) {
  const uint64_t began = now_ns();
  lab_tick_stream stream = ticks_open(client, count);
  reading read = {0, 0, 0};
  while (ticks_read(&stream, max, &read)) {
  }
  read.ns = now_ns() - began;
  ticks_close(&stream);
  return read;
}

typedef struct tick_called {
  reading read;
  uint32_t ended;
  sem_t over;
} tick_called;

static uint32_t tick_take(void *ctx, const tw_batch *batch, const tw_error *ending) {
  tick_called *called = ctx;
  uint32_t i;
  if (ending) {
    called->ended = ending->code;
    sem_post(&called->over);
    return 0;
  }
  for (i = 0; i < batch->count; i++) {
    called->read.checksum += tick_touch(tw_batch_at(batch, i));
  }
  called->read.records += batch->count;
  return 0;
}

/* The same, taken by a callback on the thread that writes them. */
static reading tick_callback(const lab_client *client, uint64_t count) {
  tick_called called = {{0, 0, 0}, TW_OK, {{0}}};
  const uint64_t began = now_ns();
  lab_tick_stream stream;
  tw_error error;
  sem_init(&called.over, 0, 0);
  stream = ticks_open(client, count);
  must(stream.tw.table->stream_subscribe(stream.tw.handle, tick_take, &called, NULL, 0, &error),
       "subscribe", &error);
  while (sem_wait(&called.over) != 0) {
  }
  called.read.ns = now_ns() - began;
  must(stream.tw.table->stream_join(stream.tw.handle, TW_FOREVER, &error), "join", &error);
  if (called.ended != TW_CLOSED) {
    fprintf(stderr, "a stream ended with %s\n", tw_code_name(called.ended));
    exit(1);
  }
  ticks_close(&stream);
  sem_destroy(&called.over);
  return called.read;
}

#endif
