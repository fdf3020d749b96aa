/* The conformance service in C: the functions of ../../wit that a guest can have, which service/ has in
 * Rust. ../build.sh builds it. */
#include "inputs.h"
#include "state.h"
#include "streams.h"
#include "threads.h"
#include "values.h"

static uint32_t open_state(void *context, void **opened, tw_error *error) {
  state *made = (state *)calloc(1, sizeof(*made));
  (void)context;
  if (!made || !(made->runs = (runs *)calloc(1, sizeof(runs)))) {
    free(made);
    return tw_fail(error, TW_OVERLOADED, "no memory");
  }
  atomic_store(&made->runs->references, 1);
  *opened = made;
  return TW_OK;
}

static void free_waiting(waiting_call **at) {
  waiting_call *freed = *at;
  *at = freed->next;
  free(freed);
}

static void free_ticking(ticking **at) {
  ticking *freed = *at;
  *at = freed->next;
  free(freed);
}

static void close_state(void *opened) {
  state *closed = (state *)opened;
  while (closed->waiting) {
    free_waiting(&closed->waiting);
  }
  while (closed->ticking) {
    conformance_u64_stream_writer_abort(&closed->ticking->writer, "the state ends", NULL);
    free_ticking(&closed->ticking);
  }
  runs_release(closed->runs);
  free(closed);
}

static void unload(void *context) {
  (void)context;
  end_threads();
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Functions that return their parameter. */
#define ECHO(name, type)                                                                           \
  static void name(void *opened, const tw_incoming *call, type value) {                            \
    (void)opened;                                                                                  \
    conformance_##name##_answer(call, value, NULL);                                                \
  }

ECHO(echo_bool, bool)
ECHO(echo_u8, uint8_t)
ECHO(echo_u16, uint16_t)
ECHO(echo_u32, uint32_t)
ECHO(echo_u64, uint64_t)
ECHO(echo_s8, int8_t)
ECHO(echo_s16, int16_t)
ECHO(echo_s32, int32_t)
ECHO(echo_s64, int64_t)
ECHO(echo_f32, float)
ECHO(echo_f64, double)
ECHO(echo_char, uint32_t)
ECHO(echo_string, tw_text)
ECHO(echo_bytes, tw_bytes)
ECHO(echo_bools, conformance_list_bool)
ECHO(echo_numbers, conformance_list_s64)
ECHO(echo_floats, conformance_list_f64)
ECHO(echo_points, conformance_list_point)
ECHO(echo_option_twice, const conformance_option_option_u32 *)
ECHO(echo_result_ok, conformance_list_result_u32_none)
ECHO(echo_result_bare, conformance_list_result_none_none)
ECHO(echo_point, const conformance_point *)
ECHO(echo_spot, const conformance_point *)
ECHO(echo_scalars, const conformance_scalars *)
ECHO(echo_color, conformance_color)
ECHO(echo_colors, conformance_list_color)
ECHO(echo_rights, conformance_rights)
ECHO(echo_days, conformance_days)
ECHO(echo_wide, conformance_wide)
ECHO(echo_key, const conformance_list16_u8 *)
ECHO(echo_three, const conformance_list3_s64 *)
ECHO(echo_keys, conformance_list_list2_u8)

/* The same for types that have another struct for results. `made` is a `type` made of `value`. */
#define ECHO_AS(name, given, type, made, passed)                                                   \
  static void name(void *opened, const tw_incoming *call, given value) {                           \
    scratch memory_of_call = {NULL};                                                               \
    scratch *memory = &memory_of_call;                                                             \
    const uint8_t *base = call->base;                                                              \
    const type result = made;                                                                      \
    (void)opened, (void)base;                                                                      \
    conformance_##name##_answer(call, passed result, NULL);                                        \
    scratch_free(memory);                                                                          \
  }

ECHO_AS(echo_strings, conformance_list_string, conformance_list_string_in,
        strings_of(memory, base, value), )
ECHO_AS(echo_names, conformance_list_string, conformance_list_string_in,
        strings_of(memory, base, value), )
ECHO_AS(echo_grid, conformance_list_list_s32, conformance_list_list_s32_in,
        grid_of(memory, base, value), )
ECHO_AS(echo_shapes, conformance_list_shape, conformance_list_shape_in,
        shapes_of(memory, base, value), )
ECHO_AS(echo_option, const conformance_option_string *, conformance_option_string_in,
        option_of(base, value), &)
ECHO_AS(echo_nested, const conformance_nested *, conformance_nested_in,
        nested_of(memory, base, value), &)
ECHO_AS(echo_keywords, const conformance_keywords *, conformance_keywords_in,
        keywords_of(base, value), &)
ECHO_AS(echo_shape, const conformance_shape *, conformance_shape_in, shape_of(base, value), &)
ECHO_AS(echo_failure, const conformance_failure *, conformance_failure_in,
        failure_of(base, value), &)
ECHO_AS(echo_fixed, const conformance_fixed *, conformance_fixed_in, fixed_of(base, value), &)

static void echo_result(void *opened, const tw_incoming *call,
                        const conformance_tuple1_result_u64_string *value) {
  conformance_tuple1_result_u64_string_in result;
  (void)opened;
  memset(&result, 0, sizeof(result));
  result.f0.tag = value->f0.tag;
  if (!conformance_result_u64_string_error(call->base, &value->f0, &result.f0.value.error)) {
    result.f0.value.ok = value->f0.value.ok;
  }
  conformance_echo_result_answer(call, &result, NULL);
}

static conformance_result_none_string_in none_or_text(const uint8_t *base,
                                                      const conformance_result_none_string *view) {
  conformance_result_none_string_in result;
  memset(&result, 0, sizeof(result));
  result.tag = view->tag;
  conformance_result_none_string_error(base, view, &result.value.error);
  return result;
}

static void echo_result_error(void *opened, const tw_incoming *call,
                              conformance_list_result_none_string value) {
  scratch memory_of_call = {NULL};
  scratch *memory = &memory_of_call;
  conformance_list_result_none_string_in list;
  (void)opened;
  LIST_OF(list, conformance_result_none_string_in, value,
          none_or_text(call->base, &value.items[i]));
  conformance_echo_result_error_answer(call, list, NULL);
  scratch_free(memory);
}

static void echo_tuple(void *opened, const tw_incoming *call,
                       const conformance_tuple4_u8_string_f64_option_char *value) {
  conformance_tuple4_u8_string_f64_option_char_in result;
  (void)opened;
  result.f0 = value->f0;
  result.f1 = conformance_tuple4_u8_string_f64_option_char_f1(call->base, value);
  result.f2 = value->f2;
  result.f3 = value->f3;
  conformance_echo_tuple_answer(call, &result, NULL);
}

static void several(void *opened, const tw_incoming *call, uint8_t type, tw_text match,
                    conformance_list_u16 list, const conformance_option_point *maybe) {
  conformance_tuple4_u8_string_list_u16_option_point_in result;
  (void)opened;
  result.f0 = type;
  result.f1 = match;
  result.f2 = list;
  result.f3 = *maybe;
  conformance_several_answer(call, &result, NULL);
}

static void nothing(void *opened, const tw_incoming *call) {
  (void)opened;
  conformance_nothing_answer(call, NULL);
}

static void many(void *opened, const tw_incoming *call, uint8_t a, uint16_t b, uint32_t c,
                 uint64_t d, uint8_t e, tw_text f, uint16_t g, uint32_t h, tw_bytes i, uint64_t j,
                 uint8_t k, const conformance_option_string *n, void *object, uint16_t m) {
  const conformance_option_string_in last = option_of(call->base, n);
  const size_t size = f.size + (last.some ? last.value.size : 0);
  conformance_tuple2_u64_string_in result;
  char *text = (char *)malloc(size + 1);
  size_t at;
  (void)opened;
  if (!text) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
    return;
  }
  memcpy(text, f.data, f.size);
  memcpy(text + f.size, last.some ? last.value.data : "", size - f.size);
  result.f0 = (uint64_t)a + b + c + d + e + g + h + j + k + m;
  result.f0 += atomic_load(&((counter *)object)->value);
  for (at = 0; at < i.size; at++) {
    result.f0 += i.data[at];
  }
  result.f1.data = text;
  result.f1.size = size;
  conformance_many_answer(call, &result, NULL);
  free(text);
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

#define FAILS(name)                                                                                \
  static void name(void *opened, const tw_incoming *call, const conformance_option_failure *how) { \
    const conformance_failure *view;                                                               \
    (void)opened;                                                                                  \
    if (conformance_option_failure_get(call->base, how, &view)) {                                  \
      const conformance_failure_in failure = failure_of(call->base, view);                         \
      conformance_##name##_fail(call, &failure, NULL);                                             \
    } else {                                                                                       \
      conformance_##name##_answer(call, 7, NULL);                                                  \
    }                                                                                              \
  }

FAILS(fail)
FAILS(fail_later)

static void fail_bare(void *opened, const tw_incoming *call, bool fails) {
  (void)opened;
  if (fails) {
    conformance_fail_bare_fail(call, NULL);
  } else {
    conformance_fail_bare_answer(call, NULL);
  }
}

static void panic_with(void *opened, const tw_incoming *call, tw_text message) {
  (void)opened;
  call->core->fail(call->call, TW_GUEST_PANICKED, message.data, message.size, NULL);
}

static void doze(void *opened, const tw_incoming *call, uint32_t milliseconds) {
  (void)opened, (void)milliseconds;
  tw_incoming_fail(call, TW_WOULD_PARK, "a guest does not wait", NULL);
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

static void keep_waiting(void *opened, const tw_incoming *call, bool is_held_up) {
  state *of = (state *)opened;
  waiting_call *made = (waiting_call *)malloc(sizeof(*made));
  if (!made) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
    return;
  }
  made->call = *call;
  made->is_held_up = is_held_up;
  made->next = of->waiting;
  of->waiting = made;
}

/* `never`, and `limited`, whose policy ends it. */
static void never(void *opened, const tw_incoming *call) {
  keep_waiting(opened, call, false);
}

static void held_up(void *opened, const tw_incoming *call) {
  keep_waiting(opened, call, true);
}

static void let_go(void *opened, const tw_incoming *call) {
  waiting_call **at = &((state *)opened)->waiting;
  while (*at) {
    if ((*at)->is_held_up) {
      conformance_held_up_answer(&(*at)->call, NULL);
      free_waiting(at);
    } else {
      at = &(*at)->next;
    }
  }
  conformance_let_go_answer(call, NULL);
}

static void waiting(void *opened, const tw_incoming *call) {
  const waiting_call *one;
  uint32_t count = 0;
  for (one = ((state *)opened)->waiting; one; one = one->next) {
    count++;
  }
  conformance_waiting_answer(call, count, NULL);
}

static void cancel(void *opened, tw_handle call) {
  waiting_call **at = &((state *)opened)->waiting;
  while (*at && (*at)->call.call != call) {
    at = &(*at)->next;
  }
  if (*at) {
    free_waiting(at);
  }
}

typedef struct sleeping {
  tw_incoming call;
  uint32_t milliseconds;
} sleeping;

static void end_sleep(void *given) {
  sleeping *slept = (sleeping *)given;
  pause_thread(slept->milliseconds);
  conformance_sleep_answer(&slept->call, slept->milliseconds, NULL);
  free(slept);
}

static void sleep_for(void *opened, const tw_incoming *call, uint32_t milliseconds) {
  sleeping *made = (sleeping *)malloc(sizeof(*made));
  (void)opened;
  if (!made) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
    return;
  }
  made->call = *call;
  made->milliseconds = milliseconds;
  start_thread(end_sleep, made);
}

static void running(void *opened, const tw_incoming *call) {
  conformance_running_answer(call, atomic_load(&((state *)opened)->runs->running), NULL);
}

/* ---- Resources ------------------------------------------------------------------------------- */

static counter *new_counter(void *opened, uint64_t value) {
  counter *made = (counter *)calloc(1, sizeof(*made));
  if (!made) {
    abort();
  }
  atomic_store(&made->references, 1);
  atomic_store(&made->value, value);
  ((state *)opened)->counters++;
  return made;
}

static void counter_drop(void *opened, void *object) {
  ((state *)opened)->counters--;
  counter_release((counter *)object);
}

static uint64_t now(const void *object) {
  return atomic_load(&((const counter *)object)->value);
}

/* The object of a new counter is answered by `answer`, or dropped. */
#define ANSWER_COUNTER(function, number)                                                           \
  do {                                                                                             \
    counter *made = new_counter(opened, number);                                                   \
    if (conformance_##function##_answer(call, made, NULL) != TW_OK) {                              \
      counter_drop(opened, made);                                                                  \
    }                                                                                              \
  } while (0)

static void counter_new(void *opened, const tw_incoming *call, uint64_t start) {
  ANSWER_COUNTER(counter_new, start);
}

static void counter_sum(void *opened, const tw_incoming *call, void *left, void *right) {
  ANSWER_COUNTER(counter_sum, now(left) + now(right));
}

static void counter_add(void *opened, const tw_incoming *call, void *self, uint64_t amount) {
  (void)opened;
  conformance_counter_add_answer(call, atomic_fetch_add(&((counter *)self)->value, amount) + amount,
                                 NULL);
}

static void counter_value(void *opened, const tw_incoming *call, void *self) {
  (void)opened;
  conformance_counter_value_answer(call, now(self), NULL);
}

static void counter_value_later(void *opened, const tw_incoming *call, void *self) {
  (void)opened;
  conformance_counter_value_later_answer(call, now(self), NULL);
}

static void counter_finish(void *opened, const tw_incoming *call, void *object) {
  const uint64_t value = now(object);
  counter_drop(opened, object);
  conformance_counter_finish_answer(call, value, NULL);
}

static void counters(void *opened, const tw_incoming *call) {
  conformance_counters_answer(call, ((state *)opened)->counters, NULL);
}

/* An even number is half of it, and a scale its factor, in memory of their own. */
static uint64_t *new_number(uint64_t value) {
  uint64_t *made = (uint64_t *)malloc(sizeof(*made));
  if (!made) {
    abort();
  }
  *made = value;
  return made;
}

static void number_drop(void *opened, void *object) {
  (void)opened;
  free(object);
}

static void even_new(void *opened, const tw_incoming *call, uint32_t value) {
  (void)opened;
  if (value % 2 == 1) {
    const conformance_failure_in failure = failure_code(value);
    conformance_even_new_fail(call, &failure, NULL);
  } else {
    uint64_t *made = new_number(value / 2);
    if (conformance_even_new_answer(call, made, NULL) != TW_OK) {
      free(made);
    }
  }
}

static void even_half(void *opened, const tw_incoming *call, void *self) {
  (void)opened;
  conformance_even_half_answer(call, (uint32_t) * (uint64_t *)self, NULL);
}

static void scale_new(void *opened, const tw_incoming *call, uint64_t by) {
  uint64_t *made = new_number(by);
  (void)opened;
  if (conformance_scale_new_answer(call, made, NULL) != TW_OK) {
    free(made);
  }
}

static void scale_apply(void *opened, const tw_incoming *call, void *self, void *object) {
  ANSWER_COUNTER(scale_apply, now(object) * *(uint64_t *)self);
}

/* ---- Resources inside of values -------------------------------------------------------------- */

/* A resource for a result. */
static tw_resource resource_of(const tw_incoming *call, counter *object) {
  tw_resource resource;
  if (tw_incoming_new_resource(call, CONFORMANCE_TYPE_COUNTER, object, &resource, NULL) != TW_OK) {
    abort();
  }
  return resource;
}

/* The counter of an argument, which belongs to the guest again. NULL: the call has ended. */
static counter *take_counter(const tw_incoming *call, const tw_handle_ref *place) {
  void *object = NULL;
  tw_incoming_object(call, place, CONFORMANCE_TYPE_COUNTER, true, &object);
  return (counter *)object;
}

/* The number of such a counter, which is destroyed. */
static uint64_t finish_counter(void *opened, const tw_incoming *call, const tw_handle_ref *place) {
  counter *taken = take_counter(call, place);
  uint64_t value = 0;
  if (taken) {
    value = now(taken);
    counter_drop(opened, taken);
  }
  return value;
}

static void give_counters(void *opened, const tw_incoming *call, uint64_t start, uint32_t count) {
  scratch memory = {NULL};
  tw_resource *items = (tw_resource *)scratch_take(&memory, count, sizeof(*items));
  conformance_list_counter_in list;
  uint32_t i;
  for (i = 0; i < count; i++) {
    items[i] = resource_of(call, new_counter(opened, start + i));
  }
  list.items = items;
  list.count = count;
  conformance_give_counters_answer(call, list, NULL);
  scratch_free(&memory);
}

static void total(void *opened, const tw_incoming *call, conformance_list_counter counters) {
  uint64_t sum = 0;
  size_t i;
  for (i = 0; i < counters.count; i++) {
    sum += finish_counter(opened, call, &counters.items[i]);
  }
  conformance_total_answer(call, sum, NULL);
}

static void first_of(void *opened, const tw_incoming *call,
                     const conformance_option_counter *object) {
  conformance_option_u64 value;
  memset(&value, 0, sizeof(value));
  value.some = object->some;
  if (object->some) {
    value.value = finish_counter(opened, call, &object->value);
  }
  conformance_first_of_answer(call, &value, NULL);
}

/* The resource of an argument as one of a result. */
static tw_resource returned(const tw_incoming *call, const tw_handle_ref *place) {
  counter *taken = take_counter(call, place);
  const tw_resource none = {NULL, 0};
  return taken ? resource_of(call, taken) : none;
}

static void swap(void *opened, const tw_incoming *call, const conformance_pair *value) {
  const tw_resource left = returned(call, &value->left);
  (void)opened;
  if (value->right.some) {
    conformance_pair_in pair;
    memset(&pair, 0, sizeof(pair));
    pair.name = conformance_pair_name(call->base, value);
    pair.left = returned(call, &value->right.value);
    pair.right.some = true;
    pair.right.value = left;
    conformance_swap_answer(call, &pair, NULL);
  } else {
    conformance_maybe_counter_in one;
    memset(&one, 0, sizeof(one));
    one.tag = CONFORMANCE_MAYBE_COUNTER_ONE;
    one.value.one = left;
    conformance_swap_fail(call, &one, NULL);
  }
}

static void refuse(void *opened, const tw_incoming *call, const conformance_maybe_counter *value) {
  scratch memory_of_call = {NULL};
  scratch *memory = &memory_of_call;
  conformance_list_counter several;
  conformance_maybe_counter_in refused;
  (void)opened;
  memset(&refused, 0, sizeof(refused));
  refused.tag = value->tag;
  if (conformance_maybe_counter_several(call->base, value, &several)) {
    LIST_OF(refused.value.several, tw_resource, several, returned(call, &several.items[i]));
  } else if (value->tag == CONFORMANCE_MAYBE_COUNTER_ONE) {
    refused.value.one = returned(call, &value->value.one);
  }
  conformance_refuse_fail(call, &refused, NULL);
  scratch_free(memory);
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

static void ticks(void *opened, const tw_incoming *call) {
  state *of = (state *)opened;
  ticking *made = (ticking *)calloc(1, sizeof(*made));
  if (!made) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
  } else if (conformance_ticks_answer(call, &made->writer, NULL) == TW_OK) {
    made->next = of->ticking;
    of->ticking = made;
  } else {
    free(made);
  }
}

static void tick(void *opened, const tw_incoming *call, uint32_t count) {
  ticking **at = &((state *)opened)->ticking;
  uint32_t reading = 0;
  while (*at) {
    uint32_t code = TW_OK;
    uint32_t i;
    for (i = 0; i < count && code == TW_OK; i++) {
      code = conformance_u64_stream_writer_send(&(*at)->writer, &(*at)->number, 1, 0, NULL);
      (*at)->number++;
    }
    if (code == TW_OK) {
      reading++;
      at = &(*at)->next;
    } else {
      conformance_u64_stream_writer_abort(&(*at)->writer, "its reader has left", NULL);
      free_ticking(at);
    }
  }
  conformance_tick_answer(call, reading, NULL);
}

static void end_ticks(void *opened, const tw_incoming *call) {
  state *of = (state *)opened;
  while (of->ticking) {
    conformance_u64_stream_writer_finish(&of->ticking->writer, NULL);
    free_ticking(&of->ticking);
  }
  conformance_end_ticks_answer(call, NULL);
}

static conformance_guest guest = {
    .unload = unload,
    .open = open_state,
    .close = close_state,
    .cancel = cancel,
#define SERVES(name) .name = name
    SERVES(echo_bool),
    SERVES(echo_u8),
    SERVES(echo_u16),
    SERVES(echo_u32),
    SERVES(echo_u64),
    SERVES(echo_s8),
    SERVES(echo_s16),
    SERVES(echo_s32),
    SERVES(echo_s64),
    SERVES(echo_f32),
    SERVES(echo_f64),
    SERVES(echo_char),
    SERVES(echo_string),
    SERVES(echo_bytes),
    SERVES(echo_bools),
    SERVES(echo_numbers),
    SERVES(echo_floats),
    SERVES(echo_strings),
    SERVES(echo_grid),
    SERVES(echo_points),
    SERVES(echo_option),
    SERVES(echo_option_twice),
    SERVES(echo_result),
    SERVES(echo_result_ok),
    SERVES(echo_result_error),
    SERVES(echo_result_bare),
    SERVES(echo_tuple),
    SERVES(echo_point),
    SERVES(echo_spot),
    SERVES(echo_scalars),
    SERVES(echo_nested),
    SERVES(echo_keywords),
    SERVES(echo_shape),
    SERVES(echo_shapes),
    SERVES(echo_color),
    SERVES(echo_colors),
    SERVES(echo_rights),
    SERVES(echo_days),
    SERVES(echo_wide),
    SERVES(echo_names),
    SERVES(echo_failure),
    SERVES(echo_key),
    SERVES(echo_three),
    SERVES(echo_fixed),
    SERVES(echo_keys),
    SERVES(several),
    SERVES(nothing),
    SERVES(many),
    SERVES(fail),
    SERVES(fail_later),
    SERVES(fail_bare),
    .panic = panic_with,
    .panic_later = panic_with,
    SERVES(doze),
    SERVES(never),
    .limited = never,
    SERVES(held_up),
    SERVES(let_go),
    SERVES(waiting),
    .sleep = sleep_for,
    SERVES(running),
    SERVES(counter_new),
    SERVES(counter_add),
    SERVES(counter_value),
    SERVES(counter_value_later),
    SERVES(counter_steps),
    SERVES(counter_sum),
    SERVES(counter_finish),
    SERVES(counter_drop),
    SERVES(counters),
    SERVES(even_new),
    SERVES(even_half),
    .even_drop = number_drop,
    SERVES(scale_new),
    SERVES(scale_apply),
    .scale_drop = number_drop,
    SERVES(give_counters),
    SERVES(total),
    SERVES(first_of),
    SERVES(swap),
    SERVES(refuse),
    SERVES(count),
    SERVES(items),
    SERVES(latest),
    SERVES(breaks),
    SERVES(endless),
    SERVES(samples),
    SERVES(shapes),
    SERVES(later),
    .signal = signal_after,
    SERVES(never_comes),
    SERVES(fails_to_come),
    SERVES(ticks),
    SERVES(tick),
    SERVES(end_ticks),
    SERVES(drops_newest),
    SERVES(drops_oldest),
    SERVES(refuses),
    SERVES(beats),
    SERVES(bits),
    SERVES(letters),
    SERVES(maybes),
    SERVES(couples),
    SERVES(rows),
    SERVES(outcomes),
    SERVES(stops),
    SERVES(rows_of),
    SERVES(sum_of),
    SERVES(names_of),
    SERVES(first_numbers),
    SERVES(words_first),
    SERVES(add_all),
    SERVES(hear),
    SERVES(beats_of),
    SERVES(comes),
    SERVES(ask),
    SERVES(ask_later),
    SERVES(tell),
    SERVES(ask_all),
};

CONFORMANCE_GUEST_EXPORT(&guest)
