/* A guest of the tests, which also misbehaves on request.
 *
 * PROBE_BLOCKS: its async functions block. PROBE_REFUSES: refuses to be opened. PROBE_SILENT: does not
 * call `serve`. PROBE_ABI: returns as if it were built for another ABI. PROBE_PORT: takes its calls from
 * a port. PROBE_STAYS: stays loaded. PROBE_FORKS: forks while it is loaded and unloaded. PROBE_VERSION: a
 * number; the sums of the second version begin at a million, and so on. PROBE_BALLAST: a number of bytes
 * that the library keeps in memory while it is loaded. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe_guest.h"
#ifdef PROBE_PORT
#include "serve_port.h"
#endif

#define MISBEHAVE 13 /* the number of the method */

/* Read by the tests through dlsym. */
extern __attribute__((visibility("default"))) atomic_long probe_states, probe_cells, probe_cancels,
    probe_threads, probe_blocked;
atomic_long probe_states, probe_cells, probe_cancels, probe_threads, probe_blocked;

/* Set by the tests: what `misbehave` does while it is served, which returns a code. */
extern __attribute__((visibility("default"))) uint32_t (*probe_meanwhile)(void);
uint32_t (*probe_meanwhile)(void);

#ifndef PROBE_VERSION
#define PROBE_VERSION 1
#endif
#ifndef PROBE_BALLAST
#define PROBE_BALLAST 1
#endif

static volatile char ballast[PROBE_BALLAST];

#ifdef PROBE_FORKS
static __attribute__((constructor, destructor)) void forks(void) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, NULL, 0);
}
#endif

typedef struct state {
  uint64_t sum;
} state;

typedef struct cell {
  uint64_t value;
  uint32_t version; /* of the library */
} cell;

/* Another version of the library must not get the object. */
static cell *checked(void *object) {
  cell *found = (cell *)object;
  if (found->version != PROBE_VERSION) {
    abort();
  }
  return found;
}

static uint32_t open_state(void *context, void **opened, tw_error *error) {
  state *made = (state *)calloc(1, sizeof(*made));
  (void)context;
  if (!made) {
    return tw_fail(error, TW_OVERLOADED, "no memory");
  }
  made->sum = (PROBE_VERSION - 1) * UINT64_C(1000000);
  atomic_fetch_add(&probe_states, 1);
  *opened = made;
  return TW_OK;
}

static void close_state(void *opened) {
  atomic_fetch_sub(&probe_states, 1);
  free(opened);
}

static void cancel(void *opened, tw_handle call) {
  (void)opened;
  (void)call;
  atomic_fetch_add(&probe_cancels, 1);
}

static void cell_new(void *opened, const tw_incoming *call, uint64_t value) {
  cell *made = (cell *)malloc(sizeof(*made));
  (void)opened;
  if (!made) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
    return;
  }
  made->value = value;
  made->version = PROBE_VERSION;
  atomic_fetch_add(&probe_cells, 1);
  if (probe_cell_new_answer(call, made, NULL) != TW_OK) {
    atomic_fetch_sub(&probe_cells, 1);
    free(made);
  }
}

static void cell_drop(void *opened, void *object) {
  (void)opened;
  atomic_fetch_sub(&probe_cells, 1);
  free(object ? checked(object) : NULL);
}

static void cell_get(void *opened, const tw_incoming *call, void *self) {
  (void)opened;
  probe_cell_get_answer(call, checked(self)->value, NULL);
}

static void cell_add(void *opened, const tw_incoming *call, void *self, uint64_t value) {
  (void)opened;
  checked(self)->value += value;
  probe_cell_add_answer(call, checked(self)->value, NULL);
}

static void cell_open(void *opened, const tw_incoming *call, void *object) {
  uint64_t value = checked(object)->value;
  cell_drop(opened, object);
  probe_cell_open_answer(call, value, NULL);
}

static void add(void *opened, const tw_incoming *call, uint64_t number) {
  ((state *)opened)->sum += number;
  probe_add_answer(call, ((state *)opened)->sum, NULL);
}

static void echo(void *opened, const tw_incoming *call, tw_text text) {
  (void)opened;
  if (text.size > 100000) {
    probe_trouble_in trouble;
    memset(&trouble, 0, sizeof(trouble));
    trouble.tag = PROBE_TROUBLE_TOO_LONG;
    trouble.value.too_long = (uint32_t)text.size;
    probe_echo_fail(call, &trouble, NULL);
    return;
  }
  /* The text is still in the arguments, which stay valid. */
  probe_echo_answer(call, text, NULL);
}

static void move_all(void *opened, const tw_incoming *call, probe_list_point points,
                     const probe_point *by, const probe_option_colors *colors) {
  probe_point_in *moved = (probe_point_in *)calloc(points.count + 1, sizeof(*moved));
  probe_list_point_in list;
  size_t i;
  (void)opened;
  if (!moved) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
    return;
  }
  for (i = 0; i < points.count; i++) {
    const probe_point *from = &points.items[points.count - 1 - i];
    moved[i].name = probe_point_name(call->base, from);
    moved[i].x = from->x + by->x;
    moved[i].y = colors->some && (colors->value & PROBE_COLORS_BLUE) ? 0 : from->y + by->y;
  }
  list.items = moved;
  list.count = points.count;
  probe_move_all_answer(call, list, NULL);
  free(moved);
}

static void bytes(void *opened, const tw_incoming *call, tw_bytes given) {
  (void)opened;
  probe_bytes_answer(call, given, NULL);
}

static void nothing(void *opened, const tw_incoming *call) {
  (void)opened;
  probe_nothing_answer(call, NULL);
}

/* Threads that work for calls. `unload` joins those that are left. */
typedef struct worker {
  pthread_t thread;
  void *(*run)(void *);
  void *given;
  atomic_bool has_ended;
  struct worker *next;
} worker;

static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static worker *workers;

static void *run_worker(void *given) {
  worker *self = (worker *)given;
  self->run(self->given);
  atomic_fetch_sub(&probe_threads, 1);
  atomic_store(&self->has_ended, true);
  return NULL;
}

/* Joins the threads that have ended, or all of them. */
static void join_workers(bool all) {
  worker **place = &workers;
  while (*place) {
    worker *one = *place;
    if (all || atomic_load(&one->has_ended)) {
      pthread_join(one->thread, NULL);
      *place = one->next;
      free(one);
    } else {
      place = &one->next;
    }
  }
}

static bool start(void *(*run)(void *), void *given) {
  worker *one = (worker *)calloc(1, sizeof(*one));
  bool has_started;
  if (!one) {
    return false;
  }
  one->run = run;
  one->given = given;
  atomic_fetch_add(&probe_threads, 1);
  pthread_mutex_lock(&workers_lock);
  join_workers(false);
  has_started = pthread_create(&one->thread, NULL, run_worker, one) == 0;
  if (has_started) {
    one->next = workers;
    workers = one;
  }
  pthread_mutex_unlock(&workers_lock);
  if (!has_started) {
    atomic_fetch_sub(&probe_threads, 1);
    free(one);
  }
  return has_started;
}

typedef struct later_call {
  tw_incoming call;
  uint32_t ms;
  uint64_t number;
} later_call;

static void *answer_later(void *given) {
  later_call *later = (later_call *)given;
  struct timespec pause;
  pause.tv_sec = later->ms / 1000;
  pause.tv_nsec = (long)(later->ms % 1000) * 1000000;
  nanosleep(&pause, NULL);
  probe_later_answer(&later->call, later->number, NULL);
  free(later);
  return NULL;
}

static void later(void *opened, const tw_incoming *call, uint32_t ms, uint64_t number) {
  later_call *made = (later_call *)malloc(sizeof(*made));
  (void)opened;
  if (!made) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
    return;
  }
  made->call = *call;
  made->ms = ms;
  made->number = number;
#ifdef PROBE_BLOCKS
  atomic_fetch_add(&probe_blocked, 1);
  answer_later(made);
  atomic_fetch_sub(&probe_blocked, 1);
  return;
#endif
  if (!start(answer_later, made)) {
    free(made);
    tw_incoming_fail(call, TW_OVERLOADED, "no thread", NULL);
  }
}

/* A thread that writes a stream. */
typedef struct writing {
  probe_u64_stream_writer numbers;
  probe_point_stream_writer points;
  probe_u32_future_writer soon;
  uint64_t count;
  uint32_t failing;
} writing;

static void *write_numbers(void *given) {
  writing *job = (writing *)given;
  uint64_t records[100];
  uint64_t next = 0;
  while (next < job->count) {
    uint32_t count = 0;
    while (count < 100 && next < job->count) {
      records[count++] = next++;
    }
    if (probe_u64_stream_writer_send(&job->numbers, records, count, TW_FOREVER, NULL) != TW_OK) {
      break; /* the reader has left */
    }
  }
  probe_u64_stream_writer_finish(&job->numbers, NULL);
  free(job);
  return NULL;
}

static void *write_points(void *given) {
  writing *job = (writing *)given;
  uint32_t number;
  for (number = 1; number <= job->count; number++) {
    char name[32];
    probe_point_in point;
    snprintf(name, sizeof(name), "point %u", (unsigned)number);
    point.name = tw_text_of(name);
    point.x = (int32_t)number;
    point.y = -point.x;
    if (number == job->failing) {
      probe_trouble_in trouble;
      memset(&trouble, 0, sizeof(trouble));
      trouble.tag = PROBE_TROUBLE_BECAUSE;
      trouble.value.because = tw_text_of("it was asked to");
      probe_points_fail_stream(&job->points, &trouble, NULL);
      break;
    }
    if (probe_point_stream_writer_send(&job->points, &point, TW_FOREVER, NULL) != TW_OK) {
      break;
    }
  }
  if (number > job->count) {
    probe_point_stream_writer_finish(&job->points, NULL);
  } else if (number != job->failing) {
    probe_point_stream_writer_abort(&job->points, "the reader has left", NULL);
  }
  free(job);
  return NULL;
}

static void *write_soon(void *given) {
  writing *job = (writing *)given;
  uint32_t value = (uint32_t)job->count;
  probe_u32_future_writer_send(&job->soon, &value, 1, TW_FOREVER, NULL);
  probe_u32_future_writer_finish(&job->soon, NULL);
  free(job);
  return NULL;
}

/* Starts the thread of a stream. */
static void begin_writing(void *(*run)(void *), writing *job) {
  if (!start(run, job)) {
    abort();
  }
}

static writing *new_job(const tw_incoming *call, uint64_t count) {
  writing *job = (writing *)calloc(1, sizeof(*job));
  if (!job) {
    tw_incoming_fail(call, TW_OVERLOADED, "no memory", NULL);
    return NULL;
  }
  job->count = count;
  return job;
}

static void numbers(void *opened, const tw_incoming *call, uint64_t count) {
  writing *job = new_job(call, count);
  (void)opened;
  /* Without a place for the writer, the call goes on. */
  if (job && call->core->answer_stream(call->call, NULL, NULL) == TW_ARGUMENT &&
      probe_numbers_answer(call, &job->numbers, NULL) == TW_OK) {
    begin_writing(write_numbers, job);
  } else {
    free(job);
  }
}

static void points(void *opened, const tw_incoming *call, uint32_t count, uint32_t failing) {
  writing *job = new_job(call, count);
  (void)opened;
  if (!job) {
    return;
  }
  job->failing = failing;
  if (probe_points_answer(call, &job->points, NULL) == TW_OK) {
    begin_writing(write_points, job);
  } else {
    free(job);
  }
}

static void soon(void *opened, const tw_incoming *call, uint32_t value) {
  writing *job = new_job(call, value);
  (void)opened;
  if (job && probe_soon_answer(call, &job->soon, NULL) == TW_OK) {
    begin_writing(write_soon, job);
  } else {
    free(job);
  }
}

/* Reports an unexpected code to the program. */
static void unexpected(const tw_incoming *call, const char *what, uint32_t code) {
  char text[100];
  snprintf(text, sizeof(text), "%s returned %u", what, (unsigned)code);
  tw_incoming_fail(call, TW_ARGUMENT, text, NULL);
}

static void misbehave(void *opened, const tw_incoming *call, uint32_t how) {
  const tw_guest_core *core = call->core;
  uint64_t message[8] = {0};
  tw_error error;
  tw_handle handle;
  uint64_t object;
  uint32_t code;
  (void)opened;
  memset(&error, 0, sizeof(error));
  switch (how) {
  case 0: /* no message */
    core->answer(call->call, TW_OK, NULL, 0, NULL);
    code = core->answer(call->call, TW_OK, (const uint8_t *)message, sizeof(message), &error);
    if (code != TW_GUEST_LOST || !strstr(error.message, "thalweg:probe")) {
      unexpected(call, "a malformed answer", code);
    }
    break;
  case 1: /* a text that is not UTF-8 */
    probe_misbehave_answer(call, tw_text_of("caf\xe9"), NULL);
    break;
  case 2: /* twice */
    probe_misbehave_answer(call, tw_text_of("first"), NULL);
    code = probe_misbehave_answer(call, tw_text_of("second"), NULL);
    if (code != TW_STALE) {
      abort();
    }
    break;
  case 3: /* another call's number */
    code = core->answer(call->call + 1, TW_OK, (const uint8_t *)message, sizeof(message), NULL);
    code = code == TW_OK ? code : core->fail(12345, TW_ARGUMENT, NULL, 0, NULL);
    if (code != TW_STALE && code != TW_ARGUMENT) {
      unexpected(call, "an unknown call", code);
      break;
    }
    probe_misbehave_answer(call, tw_text_of("refused"), NULL);
    break;
  case 4: /* never */
    break;
  case 5: /* a panic */
    tw_incoming_fail(call, TW_GUEST_PANICKED, "it went wrong\n  at probe.c", NULL);
    break;
  case 6: /* an outcome that it cannot cause */
    code = tw_incoming_fail(call, TW_SHUT_DOWN, "no", NULL);
    code = code == TW_ARGUMENT ? tw_incoming_fail(call, 99, "no", NULL) : code;
    if (code != TW_ARGUMENT) {
      unexpected(call, "an impossible outcome", code);
      break;
    }
    probe_misbehave_answer(call, tw_text_of("refused"), NULL);
    break;
  case 7: /* handles that are none */
    code = core->resource_get(call->call, 77, 0, &object, NULL);
    if (code == TW_OK || core->resource_new(call->call, 0, 0, NULL, NULL) != TW_ARGUMENT) {
      unexpected(call, "resource_get", code);
      break;
    }
    probe_misbehave_answer(call, tw_text_of("refused"), NULL);
    break;
  case 8: { /* a handle in a result that has none */
    tw_writer writer;
    uint32_t root = tw_writer_begin(&writer, probe_methods[MISBEHAVE].ok, 1, 8);
    if (core->resource_new(call->call, PROBE_TYPE_CELL, 0, &handle, NULL) != TW_OK) {
      abort();
    }
    atomic_fetch_add(&probe_cells, 1); /* `drop` follows: free(NULL) */
    tw_put_handle(&writer, root, handle);
    tw_incoming_answer(call, &writer, TW_OK, NULL);
    break;
  }
  case 11: { /* a stream of a function that has none, and one that is none */
    uint64_t record = 1;
    code = core->answer_stream(call->call, &handle, NULL);
    if (code != TW_ARGUMENT ||
        core->stream_write(77, (const uint8_t *)&record, 8, 0, 1, 0, 0, NULL, NULL) == TW_OK ||
        core->stream_finish(call->call, NULL) == TW_OK) {
      unexpected(call, "answer_stream", code);
      break;
    }
    probe_misbehave_answer(call, tw_text_of("refused"), NULL);
    break;
  }
  case 30: /* does something of its host */
    atomic_fetch_add(&probe_blocked, 1);
    code = probe_meanwhile();
    atomic_fetch_sub(&probe_blocked, 1);
    probe_misbehave_answer(call, tw_text_of(tw_code_name(code)), NULL);
    break;
  case 9: /* writes into its arguments */
    memset((void *)(uintptr_t)call->base, 0xff, sizeof(tw_message) + sizeof(how));
    probe_misbehave_answer(call, tw_text_of("written"), NULL);
    break;
  case 10: { /* an error of the wrong type */
    tw_writer writer;
    uint32_t root = tw_writer_begin(&writer, probe_methods[MISBEHAVE].error, 0, 16);
    uint32_t tag = 77;
    tw_put(&writer, root, &tag, sizeof(tag));
    tw_incoming_answer(call, &writer, TW_ERROR, NULL);
    break;
  }
  default: {
    probe_trouble_in trouble;
    memset(&trouble, 0, sizeof(trouble));
    trouble.tag = PROBE_TROUBLE_BECAUSE;
    trouble.value.because = tw_text_of("no such case");
    probe_misbehave_fail(call, &trouble, NULL);
    break;
  }
  }
}

/* The program opens a library again only after it was unloaded. A forked child opens one again that is loaded
 * in its parent. */
static atomic_int loaded_by; /* a process, or 0 */

static uint32_t load(void *context, tw_error *error) {
  const int before = atomic_exchange(&loaded_by, (int)getpid());
  size_t i;
  (void)context;
#ifndef PROBE_TWICE
  if (before == (int)getpid()) {
    return tw_fail(error, TW_GUEST_LOST, "the guest is loaded already");
  }
#endif
  (void)before, (void)error;
  for (i = 0; i < sizeof(ballast); i += 4096) {
    ballast[i] = 1;
  }
  return TW_OK;
}

static void unload(void *context) {
  (void)context;
  join_workers(true);
  atomic_store(&loaded_by, 0);
}

static probe_guest guest = {
#ifdef PROBE_BLOCKS
    .flags = TW_GUEST_ASYNC_MAY_BLOCK,
#endif
    .load = load,
    .unload = unload,
    .open = open_state,
    .close = close_state,
    .cancel = cancel,
    .cell_new = cell_new,
    .cell_get = cell_get,
    .cell_add = cell_add,
    .cell_open = cell_open,
    .cell_drop = cell_drop,
    .add = add,
    .echo = echo,
    .move_all = move_all,
    .bytes = bytes,
    .nothing = nothing,
    .later = later,
    .numbers = numbers,
    .points = points,
    .soon = soon,
    .misbehave = misbehave,
};

#if defined(PROBE_REFUSES)
TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                                  tw_error *error) {
  (void)abi, (void)core, (void)opening, (void)guest;
  return tw_fail(error, TW_ARGUMENT, "not today");
}
#elif defined(PROBE_SILENT)
TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                                  tw_error *error) {
  (void)abi, (void)core, (void)opening, (void)error, (void)guest;
  return TW_OK;
}
#elif defined(PROBE_ABI)
TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                                  tw_error *error) {
  return probe_guest_serve(&guest, abi + 1, core, opening, error);
}
#elif defined(PROBE_TWICE)
TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                                  tw_error *error) {
  uint32_t code = probe_guest_serve(&guest, abi, core, opening + 1, NULL);
  if (code == TW_ARGUMENT) {
    code = probe_guest_serve(&guest, abi, core, opening, error);
  }
  return code == TW_OK ? probe_guest_serve(&guest, abi, core, opening, error) : code;
}
#elif defined(PROBE_STAYS)
static const tw_guest_core *given_core;

static uint32_t serve(uint64_t opening, const tw_guest_package *package,
                      const tw_guest_functions *functions, void *context, tw_error *error) {
  tw_guest_functions staying = *functions;
  staying.flags |= TW_GUEST_STAYS_LOADED;
  return given_core->serve(opening, package, &staying, context, error);
}

TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                                  tw_error *error) {
  static tw_guest_core changed;
  given_core = core;
  changed = *core;
  changed.serve = serve;
  return probe_guest_serve(&guest, abi, &changed, opening, error);
}
#elif defined(PROBE_PORT)
TW_SERVE_FROM_PORT(probe_guest_serve, &guest)
#else
PROBE_GUEST_EXPORT(&guest)
#endif
