/* The functions that return streams and futures, whose records threads write. */
#ifndef STREAMS_H
#define STREAMS_H

#include <stdio.h>

#include "state.h"
#include "threads.h"
#include "values.h"

/* What a thread writes. */
typedef struct job {
  union {
    conformance_u64_stream_writer numbers;
    conformance_item_stream_writer items;
    conformance_sample_stream_writer samples;
    conformance_shape_stream_writer shapes;
    conformance_void_stream_writer beats;
    conformance_bool_stream_writer bits;
    conformance_char_stream_writer letters;
    conformance_option_string_stream_writer maybes;
    conformance_tuple2_u8_string_stream_writer couples;
    conformance_list_u16_stream_writer rows;
    conformance_result_u32_string_stream_writer outcomes;
    conformance_string_stream_writer texts;
    conformance_string_future_writer later;
    conformance_void_future_writer signal;
  } writer;
  uint64_t count;
  uint64_t first;
  uint32_t size;
  uint32_t milliseconds;
  char *text;
  runs *runs;
  counter *counter;
} job;

static inline job *new_job(uint64_t count) {
  job *made = (job *)calloc(1, sizeof(*made));
  if (!made) {
    abort();
  }
  made->count = count;
  return made;
}

static inline void end_job(job *ended) {
  if (ended->runs) {
    atomic_fetch_sub(&ended->runs->running, 1);
    runs_release(ended->runs);
  }
  if (ended->counter) {
    counter_release(ended->counter);
  }
  free(ended->text);
  free(ended);
}

/* Answers with the stream of a job, which `run` writes. */
#define START(function, member, run, made)                                                         \
  do {                                                                                             \
    (void)opened;                                                                                  \
    if (conformance_##function##_answer(call, &(made)->writer.member, NULL) == TW_OK) {            \
      start_thread(run, made);                                                                     \
    } else {                                                                                       \
      end_job(made);                                                                               \
    }                                                                                              \
  } while (0)

/* A function of a thread, which writes a record for each number below `count`. `send` sends `record`, which
 * `make` has made. */
#define WRITES(name, prefix, member, type, make, send)                                             \
  static void name(void *given) {                                                                  \
    job *job = (struct job *)given;                                                                \
    uint32_t code = TW_OK;                                                                         \
    uint64_t number;                                                                               \
    for (number = 0; number < job->count && code == TW_OK; number++) {                             \
      type record;                                                                                 \
      memset(&record, 0, sizeof(record));                                                          \
      make;                                                                                        \
      code = conformance_##prefix##_send(&job->writer.member, send, TW_FOREVER, NULL);             \
    }                                                                                              \
    if (code == TW_OK) {                                                                           \
      conformance_##prefix##_finish(&job->writer.member, NULL);                                    \
    } else {                                                                                       \
      conformance_##prefix##_abort(&job->writer.member, "a record was refused", NULL);             \
    }                                                                                              \
    end_job(job);                                                                                  \
  }

#define ONE &record, 1

static tw_text digits(char *memory, const char *format, uint64_t number) {
  sprintf(memory, format, (unsigned long long)number);
  return tw_text_of(memory);
}

WRITES(write_numbers, u64_stream_writer, numbers, uint64_t, record = job->first + number, ONE)
WRITES(write_steps, u64_stream_writer, numbers, uint64_t,
       record = atomic_fetch_add(&job->counter->value, 1) + 1, ONE)
WRITES(write_beats, void_stream_writer, beats, uint64_t, (void)record, 1)
WRITES(write_bits, bool_stream_writer, bits, bool, record = number % 2 == 1, ONE)

static uint32_t letter(uint64_t number) {
  static const uint32_t letters[] = {'a', 0xdf, 0x2603, 0x10348};
  return letters[number % 4];
}
WRITES(write_letters, char_stream_writer, letters, uint32_t, record = letter(number), ONE)

static conformance_item_in item_of(uint64_t number, char *memory, uint8_t *bytes) {
  static const tw_text tags[] = {{"tag 0", 5}, {"tag 1", 5}};
  conformance_item_in item;
  memset(&item, 0, sizeof(item));
  memset(bytes, (uint8_t)number, 7);
  item.number = number;
  item.name = digits(memory, "item %llu", number);
  item.tags.items = tags;
  item.tags.count = number % 3;
  item.blob.some = number % 2 == 0;
  item.blob.value.data = bytes;
  item.blob.value.size = number % 7;
  return item;
}
WRITES(write_items, item_stream_writer, items, conformance_item_in, char name[32]; uint8_t bytes[7];
       record = item_of(number, name, bytes), &record)

static conformance_sample_in sample_of(uint32_t number, char *memory, conformance_point *corners) {
  static const conformance_color colors[] = {CONFORMANCE_COLOR_RED, CONFORMANCE_COLOR_GREEN,
                                             CONFORMANCE_COLOR_BOOL};
  const bool is_even = number % 2 == 0;
  const int32_t i = (int32_t)number;
  conformance_sample_in sample;
  int32_t corner;
  memset(&sample, 0, sizeof(sample));
  sample.number = number;
  sample.at.x = i;
  sample.at.y = -i;
  sample.all.a_bool = is_even;
  sample.all.a_u64 = (uint64_t)number << 32;
  sample.all.a_u8 = (uint8_t)number;
  sample.all.a_u16 = (uint16_t)number;
  sample.all.a_s8 = (int8_t)i;
  sample.all.a_u32 = number;
  sample.all.a_s16 = (int16_t)-i;
  sample.all.a_f64 = number / 2.0;
  sample.all.a_char = 'a' + number % 26;
  sample.all.a_s64 = -(int64_t)i;
  sample.all.a_f32 = (float)number / 4;
  sample.all.a_s32 = -i;
  sample.weight.some = is_even;
  sample.weight.value = number;
  sample.color = colors[number % 3];
  sample.days = is_even ? CONFORMANCE_DAYS_MONDAY : CONFORMANCE_DAYS_WORKDAY;
  sample.pair.f0 = (uint8_t)number;
  sample.pair.f1 = number;
  sample.name.some = is_even;
  sample.name.value = digits(memory, "sample %llu", number);
  for (corner = 0; corner < i % 4; corner++) {
    corners[corner].x = i;
    corners[corner].y = corner;
  }
  sample.corners.items = corners;
  sample.corners.count = number % 4;
  return sample;
}
WRITES(write_samples, sample_stream_writer, samples, conformance_sample_in, char name[32];
       conformance_point corners[3]; record = sample_of((uint32_t)number, name, corners), &record)

WRITES(write_shapes, shape_stream_writer, shapes, conformance_shape_in,
       record.tag = CONFORMANCE_SHAPE_CIRCLE;
       record.value.circle = (double)number, &record)
WRITES(write_maybes, option_string_stream_writer, maybes, conformance_option_string_in,
       char text[32];
       record.some = number % 2 == 0; record.value = digits(text, "%llu", number), &record)
WRITES(write_couples, tuple2_u8_string_stream_writer, couples, conformance_tuple2_u8_string_in,
       char text[32];
       record.f0 = (uint8_t)number; record.f1 = digits(text, "%llu", number), &record)

static conformance_list_u16 row_at(uint64_t number) {
  static const uint16_t numbers[] = {0, 1, 2};
  const conformance_list_u16 row = {numbers, number % 4};
  return row;
}
WRITES(write_rows, list_u16_stream_writer, rows, conformance_list_u16, record = row_at(number),
       record)

static conformance_result_u32_string_in outcome_at(uint64_t number, char *memory) {
  conformance_result_u32_string_in outcome;
  memset(&outcome, 0, sizeof(outcome));
  if (number % 2 == 0) {
    outcome.tag = CONFORMANCE_RESULT_U32_STRING_OK;
    outcome.value.ok = (uint32_t)number;
  } else {
    outcome.tag = CONFORMANCE_RESULT_U32_STRING_ERROR;
    outcome.value.error = digits(memory, "no %llu", number);
  }
  return outcome;
}
WRITES(write_outcomes, result_u32_string_stream_writer, outcomes, conformance_result_u32_string_in,
       char text[32];
       record = outcome_at(number, text), &record)

static void write_breaks(void *given) {
  job *job = (struct job *)given;
  char why[64];
  uint64_t number;
  for (number = 0; number < job->count; number++) {
    conformance_u64_stream_writer_send(&job->writer.numbers, &number, 1, TW_FOREVER, NULL);
  }
  digits(why, "broken after %llu", job->count);
  conformance_u64_stream_writer_abort(&job->writer.numbers, why, NULL);
  end_job(job);
}

/* `count` rows of one letter, one of `size`, and another of one. */
static void write_texts(void *given) {
  job *job = (struct job *)given;
  tw_text row;
  tw_error error;
  uint32_t code = TW_OK;
  uint64_t number;
  memset(&error, 0, sizeof(error));
  for (number = 0; number < job->count + 2 && code == TW_OK; number++) {
    row.data = job->text;
    row.size = number == job->count ? job->size : 1;
    code = conformance_string_stream_writer_send(&job->writer.texts, row, TW_FOREVER, &error);
  }
  if (code == TW_OK) {
    conformance_string_stream_writer_finish(&job->writer.texts, NULL);
  } else {
    char why[300];
    snprintf(why, sizeof(why), "a send failed: %s: %s", tw_code_name(code), error.message);
    conformance_string_stream_writer_abort(&job->writer.texts, why, NULL);
  }
  end_job(job);
}

static void write_later(void *given) {
  job *job = (struct job *)given;
  pause_thread(job->milliseconds);
  conformance_string_future_writer_send(&job->writer.later, tw_text_of(job->text), TW_FOREVER,
                                        NULL);
  conformance_string_future_writer_finish(&job->writer.later, NULL);
  end_job(job);
}

static void write_signal(void *given) {
  job *job = (struct job *)given;
  pause_thread(job->milliseconds);
  conformance_void_future_writer_send(&job->writer.signal, 1, TW_FOREVER, NULL);
  conformance_void_future_writer_finish(&job->writer.signal, NULL);
  end_job(job);
}

static void count(void *opened, const tw_incoming *call, uint64_t first, uint64_t count) {
  job *made = new_job(count < UINT64_MAX - first ? count : UINT64_MAX - first);
  made->first = first;
  START(count, numbers, write_numbers, made);
}

static void latest(void *opened, const tw_incoming *call, uint64_t count) {
  job *made = new_job(count);
  START(latest, numbers, write_numbers, made);
}

static void breaks(void *opened, const tw_incoming *call, uint64_t after) {
  job *made = new_job(after);
  START(breaks, numbers, write_breaks, made);
}

static void endless(void *opened, const tw_incoming *call) {
  job *made = new_job(UINT64_MAX);
  made->runs = runs_share(((state *)opened)->runs);
  atomic_fetch_add(&made->runs->running, 1);
  START(endless, numbers, write_numbers, made);
}

static void counter_steps(void *opened, const tw_incoming *call, void *self, uint32_t count) {
  job *made = new_job(count);
  made->counter = counter_share((counter *)self);
  START(counter_steps, numbers, write_steps, made);
}

#define STREAM(name, type, member, run)                                                            \
  static void name(void *opened, const tw_incoming *call, type count) {                            \
    job *made = new_job(count);                                                                    \
    START(name, member, run, made);                                                                \
  }

STREAM(items, uint64_t, items, write_items)
STREAM(samples, uint32_t, samples, write_samples)
STREAM(shapes, uint32_t, shapes, write_shapes)
STREAM(beats, uint64_t, beats, write_beats)
STREAM(bits, uint32_t, bits, write_bits)
STREAM(letters, uint32_t, letters, write_letters)
STREAM(maybes, uint32_t, maybes, write_maybes)
STREAM(couples, uint32_t, couples, write_couples)
STREAM(rows, uint32_t, rows, write_rows)
STREAM(outcomes, uint32_t, outcomes, write_outcomes)

static void rows_of(void *opened, const tw_incoming *call, uint32_t count, uint32_t size) {
  job *made = new_job(count);
  made->size = size;
  made->text = (char *)malloc((size_t)size + 1);
  if (!made->text) {
    abort();
  }
  memset(made->text, 'x', (size_t)size + 1);
  START(rows_of, texts, write_texts, made);
}

static void later(void *opened, const tw_incoming *call, uint32_t milliseconds, tw_text text) {
  job *made = new_job(0);
  made->milliseconds = milliseconds;
  made->text = (char *)calloc(1, text.size + 1);
  if (!made->text) {
    abort();
  }
  memcpy(made->text, text.data, text.size);
  START(later, later, write_later, made);
}

static void signal_after(void *opened, const tw_incoming *call, uint32_t milliseconds) {
  job *made = new_job(0);
  made->milliseconds = milliseconds;
  START(signal, signal, write_signal, made);
}

/* Writes the numbers below `count` before the function returns. */
static void write_at_once(conformance_u64_stream_writer *writer, uint64_t count) {
  uint64_t *numbers = (uint64_t *)malloc((count + 1) * sizeof(*numbers));
  uint64_t number;
  if (!numbers) {
    abort();
  }
  for (number = 0; number < count; number++) {
    numbers[number] = number;
  }
  /* Together, so that the reader cannot keep up. */
  conformance_u64_stream_writer_send(writer, numbers, (uint32_t)count, 0, NULL);
  conformance_u64_stream_writer_finish(writer, NULL);
  free(numbers);
}

#define AT_ONCE(name)                                                                              \
  static void name(void *opened, const tw_incoming *call, uint64_t count) {                        \
    conformance_u64_stream_writer writer;                                                          \
    (void)opened;                                                                                  \
    if (conformance_##name##_answer(call, &writer, NULL) == TW_OK) {                               \
      write_at_once(&writer, count);                                                               \
    }                                                                                              \
  }

AT_ONCE(drops_newest)
AT_ONCE(drops_oldest)
AT_ONCE(refuses)

static void stops(void *opened, const tw_incoming *call, uint64_t count, tw_text how) {
  conformance_u64_stream_writer writer;
  uint64_t number;
  (void)opened;
  if (conformance_stops_answer(call, &writer, NULL) != TW_OK) {
    return;
  }
  for (number = 0; number < count; number++) {
    conformance_u64_stream_writer_send(&writer, &number, 1, 0, NULL);
  }
  if (tw_text_equal(how, tw_text_of("finish"))) {
    conformance_u64_stream_writer_finish(&writer, NULL);
  } else if (tw_text_equal(how, tw_text_of("fail"))) {
    const conformance_failure_in failure = failure_code((uint32_t)count);
    conformance_stops_fail_stream(&writer, &failure, NULL);
  } else {
    /* A guest's stream has one writer. */
    conformance_u64_stream_writer_abort(&writer, "a writer was dropped without finish()", NULL);
  }
}

static void never_comes(void *opened, const tw_incoming *call,
                        const conformance_option_string *message) {
  conformance_point_future_writer writer;
  (void)opened, (void)message;
  if (conformance_never_comes_answer(call, &writer, NULL) == TW_OK) {
    conformance_point_future_writer_abort(&writer, "the service dropped the future without a value",
                                          NULL);
  }
}

static void fails_to_come(void *opened, const tw_incoming *call, uint32_t code) {
  const conformance_failure_in failure = failure_code(code);
  conformance_point_future_writer writer;
  (void)opened;
  if (conformance_fails_to_come_answer(call, &writer, NULL) == TW_OK) {
    conformance_fails_to_come_fail_stream(&writer, &failure, NULL);
  }
}

#endif
