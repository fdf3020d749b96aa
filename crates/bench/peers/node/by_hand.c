/* The Node peers that are written by hand, in one addon.
 *
 * - `bareCall`: two hand-offs between two threads with nothing around them (src/bare.rs of the lab's
 *   service, as for every language). The loop watches the eventfd of the reply with uv_poll and
 *   resolves a promise.
 * - `rawCall`, `rawFill`: the least that a drain can be: finished work under a mutex, a watched
 *   eventfd, a promise for each.
 * - `ticks`, `events`: a thread that calls a function of the program once for each record, by a
 *   threadsafe function with as much room as a stream of the lab has. The record is in an ArrayBuffer,
 *   from which JavaScript creates the object (crates/bench/hosts/node/records.js). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define NAPI_VERSION 8
#include <dlfcn.h>
#include <node_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check(bool ok, const char *what) {
  if (!ok) {
    fprintf(stderr, "by_hand: %s failed\n", what);
    abort();
  }
}

#define N(call) check((call) == napi_ok, #call)

static napi_env environment;
static napi_async_context context;

/* Watches `fd`. */
static void watch(uv_poll_t *poll, int fd, uv_poll_cb callback) {
  uv_loop_t *loop;
  N(napi_get_uv_event_loop(environment, &loop));
  check(uv_poll_init(loop, poll, fd) == 0, "uv_poll_init");
  check(uv_poll_start(poll, UV_READABLE, callback) == 0, "uv_poll_start");
}

/* What a callback of the loop needs around calls of Node-API. */
typedef struct {
  napi_handle_scope handles;
  napi_callback_scope callbacks;
  napi_value undefined;
} scope;

static scope enter(void) {
  scope own;
  napi_value resource;
  N(napi_open_handle_scope(environment, &own.handles));
  N(napi_create_object(environment, &resource));
  N(napi_open_callback_scope(environment, resource, context, &own.callbacks));
  N(napi_get_undefined(environment, &own.undefined));
  return own;
}

static void leave(scope own) {
  N(napi_close_callback_scope(environment, own.callbacks));
  N(napi_close_handle_scope(environment, own.handles));
}

static void clear(int fd) {
  uint64_t count;
  check(read(fd, &count, sizeof count) == sizeof count, "read");
}

/* Moves this thread to a processor, which JavaScript cannot. */
static napi_value move_caller(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value cpu;
  int32_t number;
  cpu_set_t there;
  N(napi_get_cb_info(env, info, &count, &cpu, NULL, NULL));
  N(napi_get_value_int32(env, cpu, &number));
  CPU_ZERO(&there);
  CPU_SET(number, &there);
  check(sched_setaffinity(0, sizeof there, &there) == 0, "sched_setaffinity");
  return NULL;
}

/* -- One await ------------------------------------------------------------------------------- */

static struct {
  void *state;
  void (*post)(const void *);
  void (*close)(void *);
  int fd;
  uv_poll_t poll;
  napi_deferred waiting;
} bare;

static void bare_replied(uv_poll_t *poll, int status, int events) {
  (void)poll, (void)status, (void)events;
  clear(bare.fd);
  scope own = enter();
  N(napi_resolve_deferred(environment, bare.waiting, own.undefined));
  leave(own);
}

static napi_value bare_call(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value promise;
  N(napi_create_promise(env, &bare.waiting, &promise));
  bare.post(bare.state);
  return promise;
}

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  check(found != NULL, name);
  return found;
}

static void bare_open(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  check(library != NULL, "dlopen");
  void *(*start)(void);
  int (*fd)(const void *);
  *(void **)&start = symbol(library, "lab_bare_open");
  *(void **)&bare.post = symbol(library, "lab_bare_post");
  *(void **)&bare.close = symbol(library, "lab_bare_close");
  *(void **)&fd = symbol(library, "lab_bare_fd");
  bare.state = start();
  check(bare.state != NULL, "lab_bare_open");
  bare.fd = fd(bare.state);
  watch(&bare.poll, bare.fd, bare_replied);
}

/* -- The least drain -------------------------------------------------------------------------- */

#define WINDOW 1024
#define DRAINED 256

typedef struct {
  uint64_t token, words[3];
} completion;

static struct {
  napi_deferred waiting[WINDOW];
  completion filled[WINDOW];
  size_t called, begin, end;
  pthread_mutex_t lock;
  int fd;
  uv_poll_t poll;
} raw = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t raw_take(completion *some) {
  pthread_mutex_lock(&raw.lock);
  size_t left = raw.end - raw.begin;
  size_t count = left < DRAINED ? left : DRAINED;
  memcpy(some, raw.filled + raw.begin, count * sizeof *some);
  raw.begin += count;
  pthread_mutex_unlock(&raw.lock);
  return count;
}

static void raw_ready(uv_poll_t *poll, int status, int events) {
  (void)poll, (void)status, (void)events;
  clear(raw.fd);
  completion some[DRAINED];
  scope own = enter();
  for (size_t count; (count = raw_take(some)) > 0;) {
    for (size_t i = 0; i < count; i++) {
      N(napi_resolve_deferred(environment, raw.waiting[some[i].token], own.undefined));
    }
  }
  leave(own);
}

static napi_value raw_call(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value promise;
  check(raw.called < WINDOW, "a window");
  N(napi_create_promise(env, &raw.waiting[raw.called++], &promise));
  return promise;
}

/* All calls are finished. */
static napi_value raw_fill(napi_env env, napi_callback_info info) {
  (void)env, (void)info;
  pthread_mutex_lock(&raw.lock);
  for (size_t i = 0; i < raw.called; i++) {
    raw.filled[i] = (completion){.token = i};
  }
  raw.begin = 0;
  raw.end = raw.called;
  pthread_mutex_unlock(&raw.lock);
  raw.called = 0;
  uint64_t one = 1;
  check(write(raw.fd, &one, sizeof one) == sizeof one, "write");
  return NULL;
}

static napi_value open_all(napi_env env, napi_callback_info info) {
  size_t count = 1, size;
  napi_value path;
  char text[4096];
  N(napi_get_cb_info(env, info, &count, &path, NULL, NULL));
  N(napi_get_value_string_utf8(env, path, text, sizeof text, &size));
  bare_open(text);
  raw.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  check(raw.fd >= 0, "eventfd");
  watch(&raw.poll, raw.fd, raw_ready);
  return NULL;
}

/* Watches no more, so that the process can end. */
static napi_value close_all(napi_env env, napi_callback_info info) {
  (void)env, (void)info;
  uv_close((uv_handle_t *)&bare.poll, NULL);
  uv_close((uv_handle_t *)&raw.poll, NULL);
  bare.close(bare.state);
  return NULL;
}

/* -- A call for each record ------------------------------------------------------------------- */

/* Capacity of the streams in crates/bench/wit/lab.thalweg.toml. */
#define ROOM 8192
/* Records of the queue, the one that is written, and the one that is read. */
#define SLOTS (2 * ROOM)

typedef struct {
  uint64_t number, at, bid, ask, bid_size, ask_size, last, volume;
} tick;

/* An event in the size of the service's record. All but the quote is zero. */
typedef struct {
  char before[184];
  struct {
    struct {
      uint64_t symbol;
      int32_t expiration;
      uint32_t security;
      double strike;
      uint32_t is_call, exchange;
      uint64_t id;
    } contract;
    uint64_t number, received_at;
    double bid, ask;
    int32_t ms_of_day, date, bid_size, bid_exchange, bid_condition, ask_size, ask_exchange,
        ask_condition;
  } quote;
  char after[200];
} event;
_Static_assert(sizeof(event) == 488, "the service's record");

typedef struct {
  uint64_t count;
  /* The bytes of a record. */
  size_t size;
  /* The memory of an ArrayBuffer that the program keeps. */
  void *shared;
  napi_threadsafe_function call;
  pthread_t thread;
  union {
    tick ticks[SLOTS];
    event events[SLOTS];
  };
} producer;

static void call(producer *own, void *record) {
  N(napi_call_threadsafe_function(own->call, record, napi_tsfn_blocking));
}

/* As in crates/bench/service/src/ticks.rs. */
static void *write_ticks(void *argument) {
  producer *own = argument;
  for (uint64_t n = 0; n < own->count; n++) {
    uint64_t bid = 10000 + n % 97;
    tick *slot = &own->ticks[n % SLOTS];
    *slot = (tick){n, 0, bid, bid + 1, n % 7, n % 11, bid, 3 * n};
    call(own, slot);
  }
  N(napi_release_threadsafe_function(own->call, napi_tsfn_release));
  return NULL;
}

/* As in crates/bench/service/src/events.rs. */
static void *write_events(void *argument) {
  producer *own = argument;
  for (uint64_t n = 0; n < own->count; n++) {
    int32_t small = n & 0xffff;
    event *slot = &own->events[n % SLOTS];
    *slot = (event){.quote = {
                        .contract = {0x4d524554, 20261218, 2, 150.0, 1, 5, 77},
                        .number = n,
                        .received_at = n,
                        .bid = small,
                        .ask = small + 0.25,
                        .ms_of_day = small,
                        .date = 20261124,
                        .bid_size = 10,
                        .bid_exchange = 3,
                        .bid_condition = 50,
                        .ask_size = small ^ 7,
                        .ask_exchange = 4,
                        .ask_condition = 50,
                    }};
    call(own, slot);
  }
  N(napi_release_threadsafe_function(own->call, napi_tsfn_release));
  return NULL;
}

/* Copies the record to the memory that JavaScript reads, and calls the function. Creating the object
 * here, by Node-API, takes several times as long. */
static void call_js(napi_env env, napi_value function, void *context, void *record) {
  if (env != NULL) {
    const producer *own = context;
    napi_value undefined;
    N(napi_get_undefined(env, &undefined));
    memcpy(own->shared, record, own->size);
    N(napi_call_function(env, undefined, function, 0, NULL, NULL));
  }
}

static void ended(napi_env env, void *data, void *hint) {
  (void)env, (void)hint;
  producer *own = data;
  pthread_join(own->thread, NULL);
  free(own);
}

/* Arguments: the number of records, an ArrayBuffer of a record's size, and the function. */
static napi_value produce(napi_env env, napi_callback_info info, size_t size,
                          void *(*write)(void *)) {
  size_t count = 3, room;
  napi_value arguments[3], name;
  int64_t records;
  producer *own = malloc(sizeof *own);
  check(own != NULL, "malloc");
  N(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  N(napi_get_value_int64(env, arguments[0], &records));
  N(napi_get_arraybuffer_info(env, arguments[1], &own->shared, &room));
  check(room == size, "the size of a record");
  own->count = records;
  own->size = size;
  N(napi_create_string_utf8(env, "by_hand", NAPI_AUTO_LENGTH, &name));
  N(napi_create_threadsafe_function(env, arguments[2], NULL, name, ROOM, 1, own, ended, own,
                                    call_js, &own->call));
  check(pthread_create(&own->thread, NULL, write, own) == 0, "pthread_create");
  return NULL;
}

static napi_value ticks(napi_env env, napi_callback_info info) {
  return produce(env, info, sizeof(tick), write_ticks);
}

static napi_value events(napi_env env, napi_callback_info info) {
  return produce(env, info, sizeof(event), write_events);
}

NAPI_MODULE_INIT() {
  environment = env;
  napi_value name;
  N(napi_create_string_utf8(env, "by_hand", NAPI_AUTO_LENGTH, &name));
  N(napi_async_init(env, NULL, name, &context));
  napi_property_descriptor functions[] = {
      {.utf8name = "moveCaller", .method = move_caller},
      {.utf8name = "open", .method = open_all},
      {.utf8name = "close", .method = close_all},
      {.utf8name = "bareCall", .method = bare_call},
      {.utf8name = "rawCall", .method = raw_call},
      {.utf8name = "rawFill", .method = raw_fill},
      {.utf8name = "ticks", .method = ticks},
      {.utf8name = "events", .method = events},
  };
  N(napi_define_properties(env, exports, COUNT(functions), functions));
  return exports;
}
