/* Serves a guest's functions from a port, on one thread of the guest: for tests and for the lab, where the
 * same guest is compared with both ways. POSIX.
 *
 * TW_SERVE_FROM_PORT(serve): exports a guest whose generated function is `serve`. */
#ifndef SERVE_PORT_H
#define SERVE_PORT_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg_serve.h"

#define SERVED_STATES 1024 /* buckets */

/* A state of the guest, by the number that the core has for it. */
typedef struct served_state {
  uint64_t number;
  uint64_t state;
  uint32_t code; /* of `open` */
  tw_error why;
  struct served_state *next;
} served_state;

static const tw_guest_core *served_core;
static tw_guest_core served_copy; /* with the function serve_from_port */
static tw_guest_functions served_functions;
static void *served_ctx;
static tw_handle served_port;
static pthread_t served_thread;
static served_state *served_states[SERVED_STATES];

static inline served_state **served_find(uint64_t number) {
  served_state **place = &served_states[number % SERVED_STATES];
  while (*place && (*place)->number != number) {
    place = &(*place)->next;
  }
  return place;
}

static inline void served_open(uint64_t number) {
  served_state *opened = (served_state *)calloc(1, sizeof(*opened));
  if (!opened) {
    abort();
  }
  opened->number = number;
  if (served_functions.open) {
    opened->code = served_functions.open(served_ctx, &opened->state, &opened->why);
  }
  *served_find(number) = opened;
}

static inline void served_event(const tw_guest_event *event) {
  served_state **place = served_find(event->state);
  served_state *found = *place;
  switch (event->kind) {
  case TW_GUEST_OPEN:
    served_open(event->state);
    break;
  case TW_GUEST_CALL:
    if (found->code == TW_OK) {
      served_functions.call(served_ctx, found->state, &event->call);
    } else {
      const char *why = found->why.message;
      served_core->fail(event->call.call, TW_GUEST_LOST, why, strlen(why), NULL);
    }
    break;
  case TW_GUEST_CANCEL:
    if (found->code == TW_OK && served_functions.cancel) {
      served_functions.cancel(served_ctx, found->state, event->call.call);
    }
    break;
  case TW_GUEST_DROP:
    if (served_functions.drop) {
      served_functions.drop(served_ctx, found->state, event->resource_type, event->object);
    }
    break;
  default: /* TW_GUEST_CLOSE */
    if (found->code == TW_OK && served_functions.close) {
      served_functions.close(served_ctx, found->state);
    }
    *place = found->next;
    free(found);
    break;
  }
}

static inline void *serve_events(void *unused) {
  tw_guest_event events[64];
  tw_error error;
  uint32_t code, count, i;
  (void)unused;
  do {
    code = served_core->port_take(served_port, events, 64, TW_FOREVER, &count, &error);
    for (i = 0; i < count; i++) {
      served_event(&events[i]);
    }
    served_core->event_release(events, count);
  } while (code == TW_OK || code == TW_INTERRUPTED);
  if (code != TW_CLOSED) {
    fprintf(stderr, "port_take returned %u: %s\n", (unsigned)code, error.message);
    abort();
  }
  return NULL;
}

static inline void unload_port(void *ctx) {
  pthread_join(served_thread, NULL);
  if (served_functions.unload) {
    served_functions.unload(ctx);
  }
}

static inline uint32_t serve_from_port(uint64_t opening, const tw_guest_package *package,
                                       const tw_guest_functions *functions, void *ctx,
                                       tw_error *error) {
  tw_guest_functions used;
  uint32_t code;
  served_functions = *functions;
  served_ctx = ctx;
  memset(&used, 0, sizeof(used));
  used.size = (uint32_t)sizeof(used);
  used.unload = unload_port;
  code = served_core->serve_port(opening, package, &used, ctx, &served_port, error);
  if (code == TW_OK && pthread_create(&served_thread, NULL, serve_events, NULL) != 0) {
    abort();
  }
  return code;
}

static inline const tw_guest_core *core_with_port(const tw_guest_core *core) {
  served_core = core;
  served_copy = *core;
  served_copy.serve = serve_from_port;
  return &served_copy;
}

#define TW_SERVE_FROM_PORT(serve, guest)                                                           \
  TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,     \
                                    tw_error *error) {                                             \
    return serve(guest, abi, core_with_port(core), opening, error);                                \
  }

#endif
