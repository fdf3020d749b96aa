/* What a hostile guest and the program that tests it tell each other, beside Thalweg. */
#ifndef HOSTILE_LEDGER_H
#define HOSTILE_LEDGER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define LEDGER_CALLS 1024    /* calls of a round */
#define LEDGER_OBJECTS 16384 /* objects of a round */
#define LEDGER_HANDLES 64

/* A call, by its number. Everything is 0 at the beginning of a round. */
typedef struct ledger_call {
  atomic_uint endings; /* functions of the core that have ended the call */
  atomic_uint outcome; /* the code that the last of them has caused */
  atomic_uint
      resources; /* calls of answer_resource that returned TW_OK: one may have ended the call */
  atomic_ullong hash; /* of the message; 0: unknown */
  atomic_ullong sum;  /* of the numbers that were written into its stream */
} ledger_call;

/* An object of the guest. */
typedef struct ledger_object {
  atomic_uint given; /* the core has taken it over */
  atomic_uint ends;  /* calls of `drop`, and of resource_take that have returned it */
} ledger_object;

typedef struct ledger {
  uint64_t seed;
  atomic_ullong messages; /* calls of functions of the core so far */
  atomic_uint violations; /* found by the guest, which has printed them */
  atomic_int states;      /* that are open */
  atomic_uint object_count;
  atomic_ullong host_handles[LEDGER_HANDLES]; /* of the program's ports, clients and streams */
  ledger_call calls[LEDGER_CALLS];
  ledger_object objects[LEDGER_OBJECTS];
} ledger;

/* The guest exports these. `hostile_settle` performs everything that the guest still intends to do, at
 * once, and ends the streams that it keeps. */
typedef void (*hostile_settle_function)(void);

/* A random number generator: xorshift64*. */
static inline uint64_t random_next(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

/* A hash of a message: FNV-1a. */
static inline uint64_t ledger_hash(const uint8_t *data, size_t size) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  size_t i;
  for (i = 0; i < size; i++) {
    hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
  }
  return hash;
}

#endif
