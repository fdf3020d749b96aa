/* Wraps the library at the path PROXY_OF of the environment. Its methods wait for capacity, and the
 * tests control its `submit`. */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "thalweg.h"

const tw_table *tw_library(uint32_t abi);
void proxy_interrupt(void);
void proxy_hold(void);
void proxy_go(void);
int proxy_holds(void);
uint32_t proxy_flags(void);
uint32_t proxy_submissions(void);
void proxy_refuse(int place);

static const tw_table *real;
static tw_table table;
static int is_interrupted;
static int is_held;
static uint32_t last_flags;
static uint32_t submissions;
static int refused_place = -1;

/* Raises a signal during the next submission. */
void proxy_interrupt(void) {
  is_interrupted = 1;
}

/* Makes the next submission wait for `proxy_go`. */
void proxy_hold(void) {
  __atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST);
}

void proxy_go(void) {
  __atomic_store_n(&is_held, 0, __ATOMIC_SEQ_CST);
}

/* Whether a submission is waiting. */
int proxy_holds(void) {
  return __atomic_load_n(&is_held, __ATOMIC_SEQ_CST) == 2;
}

/* The flags of the last submission. */
uint32_t proxy_flags(void) {
  return last_flags;
}

/* The number of submissions since the previous call. */
uint32_t proxy_submissions(void) {
  const uint32_t count = submissions;
  submissions = 0;
  return count;
}

/* Refuses the call at index `place` of the next submission that has more than `place` calls. */
void proxy_refuse(int place) {
  refused_place = place;
}

static uint32_t refused(uint32_t code, uint32_t *accepted, tw_error *error) {
  *accepted = 0;
  error->code = code;
  error->retryable = 1;
  strcpy(error->message, "by the proxy");
  return code;
}

static uint32_t submit(tw_handle port, tw_submission *batch, uint32_t count, uint32_t *accepted,
                       tw_error *error) {
  int tries = 0;
  last_flags = batch->flags;
  submissions++;
  if (refused_place >= 0 && (uint32_t)refused_place < count) {
    const uint32_t before = (uint32_t)refused_place;
    refused_place = -1;
    if (before > 0) {
      real->submit(port, batch, before, accepted, error);
    }
    refused(TW_OVERLOADED, accepted, error);
    *accepted = before;
    return TW_OVERLOADED;
  }
  if (is_interrupted) {
    is_interrupted = 0;
    raise(SIGUSR1);
    return refused(TW_INTERRUPTED, accepted, error);
  }
  if (__atomic_load_n(&is_held, __ATOMIC_SEQ_CST)) {
    __atomic_store_n(&is_held, 2, __ATOMIC_SEQ_CST);
    while (proxy_holds()) {
      usleep(1000);
      if (++tries == 10000) {
        proxy_go();
        return refused(TW_OVERLOADED, accepted, error);
      }
    }
  }
  return real->submit(port, batch, count, accepted, error);
}

/* Refuses the layouts, as a library with different host imports does. */
static uint32_t client_set_layouts(tw_handle client, const tw_method *methods, uint32_t count,
                                   const tw_method *imports, uint32_t import_count,
                                   tw_error *error) {
  (void)client, (void)methods, (void)count, (void)imports, (void)import_count;
  error->code = TW_VERSION;
  strcpy(error->message, "by the proxy");
  return TW_VERSION;
}

const tw_table *tw_library(uint32_t abi) {
  void *library = dlopen(getenv("PROXY_OF"), RTLD_NOW | RTLD_LOCAL);
  const tw_table *(*entry)(uint32_t);
  tw_method *methods;
  uint32_t i;
  if (!library) {
    return NULL;
  }
  *(void **)&entry = dlsym(library, "tw_library");
  real = entry(abi);
  methods = calloc(real->method_count + 1, sizeof(*methods));
  memcpy(methods, real->methods, real->method_count * sizeof(*methods));
  for (i = 0; i < real->method_count; i++) {
    methods[i].flags |= TW_METHOD_CAN_BLOCK;
  }
  memcpy(&table, real, sizeof(table) < real->size ? sizeof(table) : real->size);
  if (getenv("PROXY_VERSION")) {
    /* A later version with PROXY_MORE more functions. */
    table.version = getenv("PROXY_VERSION");
    table.layout ^= 1;
    methods[table.method_count].name = "conformance.another";
    table.method_count += (uint32_t)atoi(getenv("PROXY_MORE"));
    if (atoi(getenv("PROXY_HOST"))) {
      table.imports_layout ^= 1;
      table.client_set_layouts = client_set_layouts;
    }
  }
  table.methods = methods;
  table.submit = submit;
  return &table;
}
