/* Matches read in place, and the same loop over an array of the same structs. */
#ifndef LAB_READING_H
#define LAB_READING_H

#include "lab.h"
#include "sample.h"

/* Records in a batch. */
#define READING_BATCH 256u
/* A stream's worth: its capacity in crates/bench/wit/lab.thalweg.toml. */
#define READING_KEPT UINT64_C(8192)
/* Untimed pause in which a generator fills a stream: several times the time it needs. */
#define READING_FILL_US 3000u

typedef struct reading {
  uint64_t ns;
  uint64_t records;
  uint64_t checksum;
} reading;

typedef struct verified {
  uint64_t records;
  uint64_t digest;
} verified;

/* Sum of the fields of a match that every host reads: line, column, length of the path, first and
 * last byte of the text. */
static inline uint64_t touch(const uint8_t *base, const lab_match *match) {
  const tw_text path = lab_match_path(base, match);
  const tw_text text = lab_match_text(base, match);
  return match->line + match->column + path.size + (uint8_t)text.data[0] +
         (uint8_t)text.data[text.size - 1];
}

static lab_match_stream generate(const lab_client *client, uint64_t count) {
  lab_generate_result result;
  lab_match_stream stream;
  tw_error error;
  must(lab_generate(client, count, TW_FOREVER, &result, &error), "generate", &error);
  stream = result.ok;
  tw_reply_release(&result.reply);
  return stream;
}

/* The next batch; 0 at the stream's end. */
static inline int next_batch(const lab_match_stream *stream, lab_match_batch *batch) {
  tw_error error;
  const uint32_t code = lab_match_stream_acquire(stream, READING_BATCH, TW_FOREVER, batch, &error);
  if (code == TW_CLOSED) {
    return 0;
  }
  must(code, "acquire", &error);
  return 1;
}

static inline void give_back(const lab_match_stream *stream, const lab_match_batch *batch) {
  tw_error error;
  must(lab_match_stream_release(stream, batch->tw.count, &error), "release", &error);
}

static inline void close_stream(lab_match_stream *stream) {
  tw_error error;
  must(lab_match_stream_close(stream, &error), "close", &error);
}

/* Reads `count` matches of a new stream. Timed: acquire, loop and release, for batches that are
 * ready after each wait. */
static reading read_views(const lab_client *client, uint64_t count) {
  lab_match_stream stream = generate(client, count);
  lab_match_batch batch;
  reading read = {0, 0, 0};
  uint64_t until_wait = 0;
  while (read.records < count) {
    uint64_t began;
    uint32_t i;
    if (until_wait == 0) {
      pause_us(READING_FILL_US);
      until_wait = READING_KEPT;
    }
    began = now_ns();
    if (!next_batch(&stream, &batch)) {
      break;
    }
    for (i = 0; i < batch.tw.count; i++) {
      read.checksum += touch(batch.tw.base, lab_match_batch_at(&batch, i));
    }
    give_back(&stream, &batch);
    read.ns += now_ns() - began;
    read.records += batch.tw.count;
    until_wait -= batch.tw.count < until_wait ? batch.tw.count : until_wait;
  }
  close_stream(&stream);
  return read;
}

/* An array of `kept` matches in one piece of memory, laid out as a batch is: slots, then tails. */
typedef struct array {
  uint64_t kept;
  uint8_t *base;
} array;

static tw_slice keep_text(array *all, uint64_t *end, tw_text text) {
  const tw_slice slice = {(uint32_t)*end, (uint32_t)text.size};
  memcpy(all->base + *end, text.data, text.size);
  *end += text.size;
  return slice;
}

/* Copies the first `kept` matches of a stream. */
static array build_array(const lab_client *client, uint64_t kept) {
  /* No path has more than 23 bytes and no text more than 85: service/src/content.rs. */
  const uint64_t room = kept * (sizeof(lab_match) + 108);
  array all = {kept, aligned_alloc(64, (room + 63) / 64 * 64)};
  lab_match_stream stream = generate(client, kept);
  lab_match_batch batch;
  uint64_t end = kept * sizeof(lab_match);
  uint64_t place = 0;
  if (!all.base || room > UINT32_MAX) {
    abort();
  }
  while (next_batch(&stream, &batch)) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      const lab_match *from = lab_match_batch_at(&batch, i);
      lab_match *to = (lab_match *)all.base + place++;
      *to = *from;
      to->path = keep_text(&all, &end, lab_match_path(batch.tw.base, from));
      to->text = keep_text(&all, &end, lab_match_text(batch.tw.base, from));
    }
    give_back(&stream, &batch);
  }
  close_stream(&stream);
  return all;
}

/* Reads `count` matches of an array of `kept` repeatedly. The array is built once and not timed. */
static reading read_array(const lab_client *client, uint64_t kept, uint64_t count) {
  static array arrays[2];
  array *all = &arrays[kept == READING_KEPT];
  reading read = {0, 0, 0};
  uint64_t began;
  if (all->kept != kept) {
    free(all->base);
    *all = build_array(client, kept);
  }
  began = now_ns();
  while (read.records < count) {
    const lab_match *match = (const lab_match *)all->base;
    const uint64_t left = count - read.records;
    const lab_match *end = match + (left < kept ? left : kept);
    read.records += (uint64_t)(end - match);
    for (; match < end; match++) {
      read.checksum += touch(all->base, match);
    }
  }
  read.ns = now_ns() - began;
  return read;
}

static uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size) {
  const uint8_t *byte = bytes;
  size_t i;
  for (i = 0; i < size; i++) {
    digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
  }
  return digest;
}

/* FNV-1a over every byte of `count` matches, in order: see `Contents::digest` in the service. */
static verified verify(const lab_client *client, uint64_t count) {
  lab_match_stream stream = generate(client, count);
  lab_match_batch batch;
  verified all = {0, UINT64_C(0xcbf29ce484222325)};
  while (next_batch(&stream, &batch)) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      const lab_match *match = lab_match_batch_at(&batch, i);
      const tw_text path = lab_match_path(batch.tw.base, match);
      const tw_text text = lab_match_text(batch.tw.base, match);
      const uint8_t cut = match->cut ? 1 : 0;
      all.digest = digest_bytes(all.digest, path.data, path.size);
      all.digest = digest_bytes(all.digest, text.data, text.size);
      all.digest = digest_bytes(all.digest, &match->line, sizeof(match->line));
      all.digest = digest_bytes(all.digest, &match->column, sizeof(match->column));
      all.digest = digest_bytes(all.digest, &cut, 1);
    }
    all.records += batch.tw.count;
    give_back(&stream, &batch);
  }
  close_stream(&stream);
  return all;
}

#endif
