/* A library for lua-resty-ffi that breaks the rules of its interface. Its configuration says how it
 * starts, and each request says what happens to its task:
 *
 *   idle              starts no thread: `hostile_start` does
 *   threads:N         starts N threads instead of one
 *   fail              returns 5; `fail-polling` starts a thread before that */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "resty_ffi.h"

enum { KEPT = 4096, LARGE = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept[KEPT];
static int kept_count;
static atomic_int ended, polled, is_holding;
static void *last_tq;

static char *filled(size_t size, char with) {
  char *bytes = malloc(size + 1);
  memset(bytes, with, size);
  bytes[size] = 0;
  return bytes;
}

static void keep(void *task) {
  pthread_mutex_lock(&lock);
  kept[kept_count++ % KEPT] = task;
  pthread_mutex_unlock(&lock);
}

static void answer_twice(void *task, int is_same) {
  char *first = strdup("first");
  ngx_http_lua_ffi_respond(task, 0, first, 0);
  ngx_http_lua_ffi_respond(task, 0, is_same ? first : strdup("second"), 0);
}

static void use_garbage(void) {
  static const size_t garbage[] = {
      0, 1, 4096, 0x7fffffffffffffff, 0x4000000000000000, 0x4000000001ffffff, (size_t)-1};
  for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
    int len = 7;
    void *pointer = (void *)garbage[i];
    if (ngx_http_lua_ffi_task_poll(pointer) != NULL ||
        ngx_http_lua_ffi_get_req(pointer, &len) != NULL || len != 0) {
      abort();
    }
    ngx_http_lua_ffi_respond(pointer, 0, NULL, 0);
  }
}

static void serve_one(void *task, char *request, int len) {
  if (request == NULL) {
    ngx_http_lua_ffi_respond(task, 0, len == 0 ? strdup("nil") : NULL, 0);
  } else if (strncmp(request, "echo:", 5) == 0) {
    char *answer = malloc((size_t)len);
    memcpy(answer, request, (size_t)len);
    memmove(answer, answer + 5, (size_t)len - 5);
    ngx_http_lua_ffi_respond(task, 0, answer, len - 5);
  } else if (strncmp(request, "write", 5) == 0) {
    memset(request, 'w', (size_t)len);
    ngx_http_lua_ffi_respond(task, 0, strdup(request), 0);
  } else if (strcmp(request, "text") == 0) {
    ngx_http_lua_ffi_respond(task, 0, strdup("a text"), 0);
  } else if (strcmp(request, "empty") == 0) {
    ngx_http_lua_ffi_respond(task, 0, calloc(1, 1), 0);
  } else if (strcmp(request, "nothing") == 0) {
    ngx_http_lua_ffi_respond(task, 0, NULL, 0);
  } else if (strcmp(request, "unterminated") == 0) {
    char *answer = malloc(24); /* all of the memory that malloc gives for 24 bytes */
    memset(answer, 'x', 24);
    ngx_http_lua_ffi_respond(task, 0, answer, 0);
  } else if (strcmp(request, "negative") == 0) {
    ngx_http_lua_ffi_respond(task, 0, strdup("negative"), -1);
  } else if (strcmp(request, "failed") == 0) {
    ngx_http_lua_ffi_respond(task, 7, strdup("why"), 0);
  } else if (strcmp(request, "failed-silently") == 0) {
    ngx_http_lua_ffi_respond(task, -3, NULL, 0);
  } else if (strcmp(request, "twice") == 0 || strcmp(request, "twice-same") == 0) {
    answer_twice(task, strcmp(request, "twice-same") == 0);
  } else if (strcmp(request, "garbage") == 0) {
    use_garbage();
    ngx_http_lua_ffi_respond(task, 0, strdup("ok"), 0);
  } else if (strcmp(request, "keep") == 0) {
    keep(task);
  } else if (strcmp(request, "hold") == 0) { /* the thread does not poll meanwhile */
    while (is_holding) {
      usleep(1000);
    }
    ngx_http_lua_ffi_respond(task, 0, strdup("held"), 0);
  }
}

static void *serve(void *tq) {
  void *task;
  while ((task = ngx_http_lua_ffi_task_poll(tq)) != NULL) {
    int len = -1;
    char *request = ngx_http_lua_ffi_get_req(task, &len);
    polled++;
    serve_one(task, request, len);
  }
  usleep(20000); /* the code must still be there */
  if (ngx_http_lua_ffi_task_poll(tq) != NULL) {
    abort();
  }
  ended++;
  return NULL;
}

static int start(void *tq, int threads) {
  for (int i = 0; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, tq) || pthread_detach(thread)) {
      return 1;
    }
  }
  return 0;
}

int libffi_init(char *cfg, void *tq) {
  last_tq = tq;
  if (cfg == NULL) {
    return start(tq, 1);
  } else if (strncmp(cfg, "threads:", 8) == 0) {
    int threads = atoi(cfg + 8);
    memset(cfg, 'w', strlen(cfg));
    return start(tq, threads);
  } else if (strncmp(cfg, "fail", 4) == 0) {
    return strcmp(cfg, "fail") == 0 || start(tq, 1) == 0 ? 5 : 6;
  }
  return strncmp(cfg, "idle", 4) == 0 ? 0 : start(tq, 1);
}

/* The tests call these functions. */
void hostile_start(int threads);
void hostile_hold(int yes);
int hostile_ended(void);
int hostile_polled(void);
int hostile_kept(void);
int hostile_answer_kept(void);

/* Starts threads for the runtime that was loaded last. */
void hostile_start(int threads) {
  start(last_tq, threads);
}

void hostile_hold(int yes) {
  is_holding = yes;
}

/* The number of threads that have seen the end of their runtime. */
int hostile_ended(void) {
  return ended;
}

int hostile_polled(void) {
  return polled;
}

/* The number of tasks that `hostile_answer_kept` answers. */
int hostile_kept(void) {
  pthread_mutex_lock(&lock);
  int count = kept_count;
  pthread_mutex_unlock(&lock);
  return count;
}

/* Answers the kept tasks, with much memory each. Returns their number. */
int hostile_answer_kept(void) {
  pthread_mutex_lock(&lock);
  int count = kept_count;
  for (int i = 0; i < count; i++) {
    ngx_http_lua_ffi_respond(kept[i], 0, filled(LARGE, 'k'), LARGE);
  }
  kept_count = 0;
  pthread_mutex_unlock(&lock);
  return count;
}
