/*
 * A bounded ring of u64 between one producer and one consumer, as a C programmer would write it
 * today: two positions that only grow, each on its own cache line next to its owner's copy of the
 * other one.
 *
 * It is a peer of the lab, called from Rust: each operation is a call that no compiler inlines.
 * ring_same_thread is the same ring inlined into its loop, for the cell that compares loops.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { CACHE_LINE = 64 };

struct ring {
  /* Written by the producer: the published tail, and the last head that it read. */
  alignas(CACHE_LINE) _Atomic uint64_t tail;
  uint64_t head_seen;
  /* Written by the consumer. */
  alignas(CACHE_LINE) _Atomic uint64_t head;
  uint64_t tail_seen;
  /* Read by both, constant. */
  alignas(CACHE_LINE) uint64_t mask;
  uint64_t *slots;
};

/* NULL where capacity is no power of two, or memory is out. */
struct ring *thalweg_ring_new(size_t capacity) {
  if (capacity == 0 || (capacity & (capacity - 1)) != 0) {
    return NULL;
  }
  struct ring *ring = aligned_alloc(CACHE_LINE, sizeof *ring);
  uint64_t *slots = calloc(capacity, sizeof *slots);
  if (ring == NULL || slots == NULL) {
    free(ring);
    free(slots);
    return NULL;
  }
  atomic_init(&ring->tail, 0);
  ring->head_seen = 0;
  atomic_init(&ring->head, 0);
  ring->tail_seen = 0;
  ring->mask = capacity - 1;
  ring->slots = slots;
  return ring;
}

void thalweg_ring_free(struct ring *ring) {
  free(ring->slots);
  free(ring);
}

/* Returns how many of `wanted` slots are free at `tail`. Reads the consumer's head only if the last
 * value read is not enough. */
static inline uint64_t writable(struct ring *ring, uint64_t tail, uint64_t wanted) {
  uint64_t capacity = ring->mask + 1;
  uint64_t room = capacity - (tail - ring->head_seen);
  if (room < wanted) {
    ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
    room = capacity - (tail - ring->head_seen);
  }
  return room < wanted ? room : wanted;
}

static inline uint64_t readable(struct ring *ring, uint64_t head, uint64_t wanted) {
  uint64_t there = ring->tail_seen - head;
  if (there < wanted) {
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    there = ring->tail_seen - head;
  }
  return there < wanted ? there : wanted;
}

static inline bool push(struct ring *ring, uint64_t message) {
  uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
  if (writable(ring, tail, 1) == 0) {
    return false;
  }
  ring->slots[tail & ring->mask] = message;
  atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
  return true;
}

static inline bool pop(struct ring *ring, uint64_t *message) {
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  if (readable(ring, head, 1) == 0) {
    return false;
  }
  *message = ring->slots[head & ring->mask];
  atomic_store_explicit(&ring->head, head + 1, memory_order_release);
  return true;
}

bool thalweg_ring_push(struct ring *ring, uint64_t message) {
  return push(ring, message);
}

bool thalweg_ring_pop(struct ring *ring, uint64_t *message) {
  return pop(ring, message);
}

/* Writes first, first + 1, .. into at most `count` slots, or into `count` slots or none if `whole`,
 * and publishes them at once. Returns how many. */
size_t thalweg_ring_push_many(struct ring *ring, uint64_t first, size_t count, bool whole) {
  uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
  uint64_t room = writable(ring, tail, count);
  if (whole && room < count) {
    return 0;
  }
  for (uint64_t i = 0; i < room; i++) {
    ring->slots[(tail + i) & ring->mask] = first + i;
  }
  atomic_store_explicit(&ring->tail, tail + room, memory_order_release);
  return room;
}

/* Takes at most `count` messages, or `count` or none if `whole`. Returns how many. */
size_t thalweg_ring_pop_many(struct ring *ring, uint64_t *messages, size_t count, bool whole) {
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  uint64_t there = readable(ring, head, count);
  if (whole && there < count) {
    return 0;
  }
  for (uint64_t i = 0; i < there; i++) {
    messages[i] = ring->slots[(head + i) & ring->mask];
  }
  atomic_store_explicit(&ring->head, head + there, memory_order_release);
  return there;
}

/*
 * Pushes and pops 0 .. count in turn. Returns the bits in which any message differed from the
 * pushed one; all ones if a push or a pop was refused.
 */
uint64_t thalweg_ring_same_thread(struct ring *ring, uint64_t count) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t message = 0;
    if (!push(ring, i) || !pop(ring, &message)) {
      return UINT64_MAX;
    }
    wrong |= message ^ i;
  }
  return wrong;
}
