/* The state of a client. It shares parts of it with threads. */
#ifndef STATE_H
#define STATE_H

#include <stdatomic.h>

#include "conformance_guest.h"

/* The number of running streams of `endless`. */
typedef struct runs {
  atomic_uint references;
  atomic_uint running;
} runs;

static inline runs *runs_share(runs *shared) {
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

static inline void runs_release(runs *shared) {
  if (atomic_fetch_sub(&shared->references, 1) == 1) {
    free(shared);
  }
}

/* A number that stays in the service. The thread of `steps` has a reference, too. */
typedef struct counter {
  atomic_uint references;
  atomic_uint_fast64_t value;
} counter;

static inline counter *counter_share(counter *shared) {
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

static inline void counter_release(counter *shared) {
  if (atomic_fetch_sub(&shared->references, 1) == 1) {
    free(shared);
  }
}

/* A call that waits. */
typedef struct waiting_call {
  tw_incoming call;
  bool is_held_up;
  struct waiting_call *next;
} waiting_call;

/* A stream of `ticks`, and its next number. */
typedef struct ticking {
  conformance_u64_stream_writer writer;
  uint64_t number;
  struct ticking *next;
} ticking;

typedef struct state {
  runs *runs;
  uint32_t counters;
  waiting_call *waiting;
  ticking *ticking;
} state;

#endif
