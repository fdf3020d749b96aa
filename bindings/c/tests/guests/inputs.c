/* A guest of the tests that reads streams of its callers and calls its host.
 * BLOCKS: without threads of its own, in functions that may block. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "inputs_guest.h"

/* Read by the tests through dlsym. */
extern __attribute__((visibility("default"))) atomic_long inputs_threads;
atomic_long inputs_threads;

/* The work of a thread. */
typedef struct job {
  tw_incoming call;
  void (*run)(struct job *job);
  inputs_u64_stream_reader numbers;
  inputs_string_stream_reader names;
  inputs_string_future_reader between;
  uint64_t key;
  tw_text words[8];
  size_t word_count;
  char text[256];
} job;

static void *run(void *given) {
  job *work = (job *)given;
  work->run(work);
  free(work);
  atomic_fetch_sub(&inputs_threads, 1);
  return NULL;
}

static job *new_job(const tw_incoming *call, void (*function)(job *job)) {
  job *work = (job *)calloc(1, sizeof(*work));
  if (!work) {
    abort();
  }
  work->call = *call;
  work->run = function;
  return work;
}

static void start(job *work) {
  pthread_t thread;
  atomic_fetch_add(&inputs_threads, 1);
#ifdef BLOCKS
  (void)thread;
  run(work);
  return;
#endif
  if (pthread_create(&thread, NULL, run, work) != 0) {
    abort();
  }
  pthread_detach(thread);
}

static void run_sum(job *work) {
  uint64_t sum = 0;
  uint64_t number;
  uint32_t code;
  tw_error error;
  while ((code = inputs_u64_stream_reader_receive(&work->numbers, TW_FOREVER, &number, &error)) ==
         TW_OK) {
    sum += number;
  }
  inputs_u64_stream_reader_close(&work->numbers);
  if (code == TW_CLOSED) {
    inputs_sum_answer(&work->call, sum, NULL);
  } else {
    tw_incoming_pass_on(&work->call, code, &error, NULL);
  }
}

static void sum(void *state, const tw_incoming *call, inputs_u64_stream_reader numbers) {
  job *work = new_job(call, run_sum);
  (void)state;
  work->numbers = numbers;
  start(work);
}

static void run_join(job *work) {
  char joined[256] = "";
  size_t size = 0;
  uint32_t code;
  tw_text between;
  tw_text name;
  tw_error error;
  code = inputs_string_future_reader_receive(&work->between, TW_FOREVER, &between, &error);
  while (code == TW_OK && (code = inputs_string_stream_reader_receive(&work->names, TW_FOREVER,
                                                                      &name, &error)) == TW_OK) {
    size +=
        (size_t)snprintf(joined + size, sizeof(joined) - size, "%.*s%.*s",
                         size > 0 ? (int)between.size : 0, between.data, (int)name.size, name.data);
  }
  inputs_string_future_reader_close(&work->between);
  inputs_string_stream_reader_close(&work->names);
  if (code == TW_CLOSED) {
    inputs_join_answer(&work->call, tw_text_of(joined), NULL);
  } else {
    tw_incoming_pass_on(&work->call, code, &error, NULL);
  }
}

static void join(void *state, const tw_incoming *call, inputs_string_stream_reader names,
                 inputs_string_future_reader between) {
  job *work = new_job(call, run_join);
  (void)state;
  work->names = names;
  work->between = between;
  start(work);
}

static void ignore(void *state, const tw_incoming *call, inputs_u64_stream_reader numbers) {
  (void)state;
  inputs_u64_stream_reader_close(&numbers);
  inputs_ignore_answer(call, NULL);
}

static void run_ask(job *work) {
  inputs_look_up_result found;
  tw_error error;
  uint32_t code = inputs_look_up(&work->call, work->key, &found, &error);
  switch (code) {
  case TW_OK:
    inputs_ask_answer(&work->call, found.ok, NULL);
    break;
  case TW_ERROR:
    inputs_ask_fail(&work->call, found.error, NULL);
    break;
  default:
    tw_incoming_pass_on(&work->call, code, &error, NULL);
    break;
  }
  inputs_look_up_release(&found);
}

static void ask(void *state, const tw_incoming *call, uint64_t key) {
  job *work = new_job(call, run_ask);
  (void)state;
  work->key = key;
  start(work);
}

static void run_tell(job *work) {
  inputs_list_string_in words;
  inputs_option_u32 at;
  inputs_tell_result told;
  tw_error error;
  uint32_t code;
  words.items = work->words;
  words.count = work->word_count;
  memset(&at, 0, sizeof(at));
  at.some = true;
  at.value = 1000;
  code = inputs_tell(&work->call, words, &at, &told, &error);
  if (code == TW_OK) {
    inputs_tell_answer(&work->call, told.ok, NULL);
  } else {
    tw_incoming_pass_on(&work->call, code, &error, NULL);
  }
  inputs_tell_release(&told);
}

static void tell(void *state, const tw_incoming *call, inputs_list_string words) {
  job *work = new_job(call, run_tell);
  char *to = work->text;
  (void)state;
  for (; work->word_count < words.count && work->word_count < 8; work->word_count++) {
    tw_text word = inputs_list_string_at(call->base, words, work->word_count);
    if ((size_t)(work->text + sizeof(work->text) - to) < word.size) {
      break;
    }
    memcpy(to, word.data, word.size);
    work->words[work->word_count].data = to;
    work->words[work->word_count].size = word.size;
    to += word.size;
  }
  start(work);
}

static void ask_now(void *state, const tw_incoming *call, uint64_t key) {
  inputs_look_up_result found;
  uint32_t code = inputs_look_up(call, key, &found, NULL);
  (void)state;
  inputs_look_up_release(&found);
  inputs_ask_now_answer(call, code, NULL);
}

static inputs_guest guest = {
#ifdef BLOCKS
    .flags = TW_GUEST_ASYNC_MAY_BLOCK,
#endif
    .sum = sum,
    .join = join,
    .ignore = ignore,
    .ask = ask,
    .tell = tell,
    .ask_now = ask_now,
};

INPUTS_GUEST_EXPORT(&guest)
