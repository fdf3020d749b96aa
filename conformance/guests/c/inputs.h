/* The functions that read streams and futures or call the host. Threads serve them, because they wait. */
#ifndef INPUTS_H
#define INPUTS_H

#include "state.h"
#include "threads.h"
#include "values.h"

/* A call, and those of these parameters that its function has. */
typedef struct input {
  tw_incoming call;
  uint64_t key;
  uint32_t count;
  counter *counter;
  conformance_u64_stream_reader numbers;
  conformance_item_stream_reader items;
  conformance_string_stream_reader words;
  conformance_void_stream_reader beats;
  conformance_string_future_reader text;
  conformance_void_future_reader signal;
  conformance_list_string_in list;
  conformance_option_u32 at;
  scratch memory;
} input;

static inline input *new_input(const tw_incoming *call) {
  input *made = (input *)calloc(1, sizeof(*made));
  if (!made) {
    abort();
  }
  made->call = *call;
  return made;
}

static inline void end_input(input *ended) {
  if (ended->counter) {
    counter_release(ended->counter);
  }
  scratch_free(&ended->memory);
  free(ended);
}

static inline tw_text copy_text(scratch *memory, tw_text text) {
  tw_text copy;
  char *data = (char *)scratch_take(memory, text.size + 1, 1);
  memcpy(data, text.data, text.size);
  copy.data = data;
  copy.size = text.size;
  return copy;
}

/* Text or items of a length that is not known yet. */
typedef struct growing {
  char *data;
  size_t size;
} growing;

static inline void append(growing *to, const void *data, size_t size) {
  char *grown = (char *)realloc(to->data, to->size + size + 1);
  if (!grown) {
    abort();
  }
  memcpy(grown + to->size, data, size);
  to->data = grown;
  to->size += size;
}

static inline tw_text text_of(const growing *grown) {
  tw_text text;
  text.data = grown->data;
  text.size = grown->size;
  return text;
}

/* ---- Streams and futures --------------------------------------------------------------------- */

/* Whether there is a next number. */
static inline bool next_number(input *of, uint64_t *number) {
  return conformance_u64_stream_reader_receive(&of->numbers, TW_FOREVER, number, NULL) == TW_OK;
}

static void run_sum_of(void *given) {
  input *of = (input *)given;
  conformance_tuple2_u64_u64 sum = {0, 0};
  uint64_t number;
  uint32_t code;
  while ((code = conformance_u64_stream_reader_receive(&of->numbers, TW_FOREVER, &number, NULL)) ==
         TW_OK) {
    sum.f0++;
    sum.f1 += number;
  }
  conformance_u64_stream_reader_close(&of->numbers);
  if (code == TW_CLOSED) {
    conformance_sum_of_answer(&of->call, &sum, NULL);
  } else {
    conformance_sum_of_fail(&of->call, code, NULL);
  }
  end_input(of);
}

static void sum_of(void *opened, const tw_incoming *call, conformance_u64_stream_reader numbers) {
  input *made = new_input(call);
  (void)opened;
  made->numbers = numbers;
  start_thread(run_sum_of, made);
}

static void run_names_of(void *given) {
  input *of = (input *)given;
  growing names = {NULL, 0};
  const conformance_item *item;
  while (conformance_item_stream_reader_receive(&of->items, TW_FOREVER, &item, NULL) == TW_OK) {
    const tw_text name = conformance_item_name(of->items.tw.element.data, item);
    append(&names, name.data, name.size);
  }
  conformance_item_stream_reader_close(&of->items);
  conformance_names_of_answer(&of->call, text_of(&names), NULL);
  free(names.data);
  end_input(of);
}

static void names_of(void *opened, const tw_incoming *call, conformance_item_stream_reader items) {
  input *made = new_input(call);
  (void)opened;
  made->items = items;
  start_thread(run_names_of, made);
}

static void run_first_numbers(void *given) {
  input *of = (input *)given;
  growing numbers = {NULL, 0};
  conformance_list_u64 list;
  uint64_t number;
  list.count = 0;
  while (list.count < of->count && next_number(of, &number)) {
    append(&numbers, &number, sizeof(number));
    list.count++;
  }
  conformance_u64_stream_reader_close(&of->numbers);
  list.items = (const uint64_t *)(const void *)numbers.data;
  conformance_first_numbers_answer(&of->call, list, NULL);
  free(numbers.data);
  end_input(of);
}

static void first_numbers(void *opened, const tw_incoming *call, uint32_t count,
                          conformance_u64_stream_reader numbers) {
  input *made = new_input(call);
  (void)opened;
  made->count = count;
  made->numbers = numbers;
  start_thread(run_first_numbers, made);
}

static void run_words_first(void *given) {
  input *of = (input *)given;
  growing words = {NULL, 0};
  conformance_tuple2_string_u64_in both;
  tw_text word;
  uint64_t number;
  memset(&both, 0, sizeof(both));
  while (conformance_string_stream_reader_receive(&of->words, TW_FOREVER, &word, NULL) == TW_OK) {
    append(&words, word.data, word.size);
  }
  conformance_string_stream_reader_close(&of->words);
  while (next_number(of, &number)) {
    both.f1 += number;
  }
  conformance_u64_stream_reader_close(&of->numbers);
  both.f0 = text_of(&words);
  conformance_words_first_answer(&of->call, &both, NULL);
  free(words.data);
  end_input(of);
}

static void words_first(void *opened, const tw_incoming *call,
                        conformance_u64_stream_reader numbers,
                        conformance_string_stream_reader words) {
  input *made = new_input(call);
  (void)opened;
  made->numbers = numbers;
  made->words = words;
  start_thread(run_words_first, made);
}

static void run_add_all(void *given) {
  input *of = (input *)given;
  uint64_t amount;
  while (next_number(of, &amount)) {
    atomic_fetch_add(&of->counter->value, amount);
  }
  conformance_u64_stream_reader_close(&of->numbers);
  conformance_add_all_answer(&of->call, atomic_load(&of->counter->value), NULL);
  end_input(of);
}

static void add_all(void *opened, const tw_incoming *call, void *to,
                    conformance_u64_stream_reader amounts) {
  input *made = new_input(call);
  (void)opened;
  made->counter = counter_share((counter *)to);
  made->numbers = amounts;
  start_thread(run_add_all, made);
}

static void run_hear(void *given) {
  input *of = (input *)given;
  tw_text text;
  uint32_t code = conformance_string_future_reader_receive(&of->text, TW_FOREVER, &text, NULL);
  if (code == TW_OK) {
    conformance_hear_answer(&of->call, text, NULL);
  } else {
    conformance_hear_fail(&of->call, code, NULL);
  }
  conformance_string_future_reader_close(&of->text);
  end_input(of);
}

static void hear(void *opened, const tw_incoming *call, conformance_string_future_reader text) {
  input *made = new_input(call);
  (void)opened;
  made->text = text;
  start_thread(run_hear, made);
}

static void run_beats_of(void *given) {
  input *of = (input *)given;
  uint64_t count = 0;
  while (conformance_void_stream_reader_receive(&of->beats, TW_FOREVER, NULL) == TW_OK) {
    count++;
  }
  conformance_void_stream_reader_close(&of->beats);
  conformance_beats_of_answer(&of->call, count, NULL);
  end_input(of);
}

static void beats_of(void *opened, const tw_incoming *call, conformance_void_stream_reader beats) {
  input *made = new_input(call);
  (void)opened;
  made->beats = beats;
  start_thread(run_beats_of, made);
}

static void run_comes(void *given) {
  input *of = (input *)given;
  uint32_t code = conformance_void_future_reader_receive(&of->signal, TW_FOREVER, NULL);
  conformance_void_future_reader_close(&of->signal);
  if (code == TW_OK) {
    conformance_comes_answer(&of->call, NULL);
  } else {
    conformance_comes_fail(&of->call, code, NULL);
  }
  end_input(of);
}

static void comes(void *opened, const tw_incoming *call, conformance_void_future_reader signal) {
  input *made = new_input(call);
  (void)opened;
  made->signal = signal;
  start_thread(run_comes, made);
}

/* ---- The host -------------------------------------------------------------------------------- */

#define ASKS(name)                                                                                 \
  static void run_##name(void *given) {                                                            \
    input *of = (input *)given;                                                                    \
    conformance_look_up_result found;                                                              \
    uint32_t code = conformance_look_up(&of->call, of->key, &found, NULL);                         \
    if (code == TW_OK) {                                                                           \
      conformance_##name##_answer(&of->call, found.ok, NULL);                                      \
    } else {                                                                                       \
      conformance_##name##_fail(&of->call, code, NULL);                                            \
    }                                                                                              \
    conformance_look_up_release(&found);                                                           \
    end_input(of);                                                                                 \
  }                                                                                                \
                                                                                                   \
  static void name(void *opened, const tw_incoming *call, uint64_t key) {                          \
    input *made = new_input(call);                                                                 \
    (void)opened;                                                                                  \
    made->key = key;                                                                               \
    start_thread(run_##name, made);                                                                \
  }

ASKS(ask)
ASKS(ask_later)

static void run_tell(void *given) {
  input *of = (input *)given;
  conformance_nod_result nodded;
  conformance_tell_result told;
  uint32_t code = conformance_nod(&of->call, &nodded, NULL);
  conformance_nod_release(&nodded);
  if (code == TW_OK) {
    code = conformance_tell(&of->call, of->list, &of->at, &told, NULL);
    conformance_tell_release(&told);
  }
  if (code == TW_OK) {
    conformance_tell_answer(&of->call, told.ok, NULL);
  } else {
    conformance_tell_fail(&of->call, code, NULL);
  }
  end_input(of);
}

static void tell(void *opened, const tw_incoming *call, conformance_list_string words,
                 const conformance_option_u32 *at) {
  input *made = new_input(call);
  scratch *memory = &made->memory;
  (void)opened;
  LIST_OF(made->list, tw_text, words,
          copy_text(memory, conformance_list_string_at(call->base, words, i)));
  made->at = *at;
  start_thread(run_tell, made);
}

static void run_ask_all(void *given) {
  input *of = (input *)given;
  growing items = {NULL, 0};
  conformance_list_result_string_u32_in list;
  uint64_t key;
  list.count = 0;
  while (next_number(of, &key)) {
    conformance_look_up_result found;
    conformance_result_string_u32_in item;
    const uint32_t code = conformance_look_up(&of->call, key, &found, NULL);
    memset(&item, 0, sizeof(item));
    if (code == TW_OK) {
      item.tag = CONFORMANCE_RESULT_STRING_U32_OK;
      item.value.ok = copy_text(&of->memory, found.ok);
    } else {
      item.tag = CONFORMANCE_RESULT_STRING_U32_ERROR;
      item.value.error = code;
    }
    conformance_look_up_release(&found);
    append(&items, &item, sizeof(item));
    list.count++;
  }
  conformance_u64_stream_reader_close(&of->numbers);
  list.items = (const conformance_result_string_u32_in *)(const void *)items.data;
  conformance_ask_all_answer(&of->call, list, NULL);
  free(items.data);
  end_input(of);
}

static void ask_all(void *opened, const tw_incoming *call, conformance_u64_stream_reader keys) {
  input *made = new_input(call);
  (void)opened;
  made->numbers = keys;
  start_thread(run_ask_all, made);
}

#endif
