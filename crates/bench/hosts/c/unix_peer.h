/* The peer of `e2e`: a thread that answers over a Unix socket as the lab's service answers a call.
 *
 * A request is its size in four bytes, followed by that many bytes; size 0 means the 24 bytes of
 * the scalars. The answer is one byte, the result of the predicate. A request of size
 * UNIX_PEER_EVENTS carries a count and a size in eight bytes each: the thread then sends that many
 * requests back, each in the form in which it would receive it. */
#ifndef LAB_UNIX_PEER_H
#define LAB_UNIX_PEER_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNIX_PEER_EVENTS UINT32_MAX
#define UNIX_PEER_SCALARS 24u
/* Twice the largest request. */
#define UNIX_PEER_BUFFER (2u * 65540u)

typedef struct e2e_scalars {
  int64_t a;
  int64_t b;
  double x;
} e2e_scalars;

/* The contents of a request, and the predicate on them: service/src/predicates.rs. */
static inline e2e_scalars e2e_scalars_of(uint64_t n) {
  const e2e_scalars of = {(int64_t)n, 2 * (int64_t)n, 2.0};
  return of;
}

static inline uint8_t e2e_parity(e2e_scalars of) {
  const double sum = (double)(of.a + of.b) + of.x;
  return (double)(int64_t)sum == sum && (int64_t)sum % 2 == 0;
}

static inline void e2e_fill(uint8_t *data, uint32_t size, uint64_t n) {
  data[0] = (uint8_t)n;
  data[size - 1] = (uint8_t)n;
}

static inline uint8_t e2e_payload(const uint8_t *data, uint32_t size) {
  return data[0] == data[size - 1] && data[0] % 2 == 0;
}

static inline uint8_t e2e_answer(const uint8_t *data, uint32_t size) {
  e2e_scalars scalars;
  if (size != 0) {
    return e2e_payload(data, size);
  }
  memcpy(&scalars, data, sizeof(scalars));
  return e2e_parity(scalars);
}

static inline void unix_peer_fail(const char *what) {
  perror(what);
  exit(1);
}

static inline void unix_peer_write(int fd, const uint8_t *data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written <= 0) {
      unix_peer_fail("unix: write");
    }
    data += written;
    size -= (size_t)written;
  }
}

/* What was read and not looked at yet. */
typedef struct unix_peer_buffer {
  uint8_t *bytes;
  uint32_t from;
  uint32_t to;
} unix_peer_buffer;

static inline unix_peer_buffer unix_peer_buffer_open(void) {
  const unix_peer_buffer buffer = {malloc(UNIX_PEER_BUFFER), 0, 0};
  if (!buffer.bytes) {
    abort();
  }
  return buffer;
}

/* Reads more bytes and appends them; 0 at the end. */
static inline int unix_peer_read(int fd, unix_peer_buffer *buffer) {
  ssize_t count;
  memmove(buffer->bytes, buffer->bytes + buffer->from, buffer->to - buffer->from);
  buffer->to -= buffer->from;
  buffer->from = 0;
  count = read(fd, buffer->bytes + buffer->to, UNIX_PEER_BUFFER - buffer->to);
  if (count < 0) {
    unix_peer_fail("unix: read");
  }
  buffer->to += (uint32_t)count;
  return count > 0;
}

/* The next whole request and its size; NULL where more has to be read. */
static inline const uint8_t *unix_peer_next(unix_peer_buffer *buffer, uint32_t *size) {
  const uint8_t *at = buffer->bytes + buffer->from;
  uint32_t whole;
  if (buffer->to - buffer->from < sizeof(*size)) {
    return NULL;
  }
  memcpy(size, at, sizeof(*size));
  whole = *size == 0 ? UNIX_PEER_SCALARS : *size == UNIX_PEER_EVENTS ? 2 * sizeof(uint64_t) : *size;
  if (buffer->to - buffer->from - sizeof(*size) < whole) {
    return NULL;
  }
  buffer->from += (uint32_t)sizeof(*size) + whole;
  return at + sizeof(*size);
}

/* Writes request number `n` of `size` bytes to `frame` in the form that is sent, and returns its
 * length. Bytes between the first and the last are left as they are. */
static inline uint32_t unix_peer_request(uint8_t *frame, uint32_t size, uint64_t n) {
  memcpy(frame, &size, sizeof(size));
  if (size == 0) {
    const e2e_scalars scalars = e2e_scalars_of(n);
    memcpy(frame + sizeof(size), &scalars, sizeof(scalars));
    return sizeof(size) + UNIX_PEER_SCALARS;
  }
  e2e_fill(frame + sizeof(size), size, n);
  return (uint32_t)sizeof(size) + size;
}

static inline void unix_peer_events(int fd, const uint8_t *asked) {
  uint64_t numbers[2];
  uint8_t *frame = calloc(1, UNIX_PEER_BUFFER);
  uint64_t n;
  memcpy(numbers, asked, sizeof(numbers));
  if (!frame) {
    abort();
  }
  for (n = 0; n < numbers[0]; n++) {
    unix_peer_write(fd, frame, unix_peer_request(frame, (uint32_t)numbers[1], n));
  }
  free(frame);
}

static void *unix_peer_serve(void *argument) {
  const int fd = (int)(intptr_t)argument;
  unix_peer_buffer buffer = unix_peer_buffer_open();
  uint8_t answers[4096];
  while (unix_peer_read(fd, &buffer)) {
    const uint8_t *data;
    uint32_t size;
    uint32_t answered = 0;
    while (answered < sizeof(answers) && (data = unix_peer_next(&buffer, &size))) {
      if (size == UNIX_PEER_EVENTS) {
        unix_peer_events(fd, data);
      } else {
        answers[answered++] = e2e_answer(data, size);
      }
    }
    unix_peer_write(fd, answers, answered);
  }
  free(buffer.bytes);
  close(fd);
  return NULL;
}

/* A socket whose other end a thread serves until it is closed. */
static inline int unix_peer_open(void) {
  int ends[2];
  pthread_t thread;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    unix_peer_fail("unix: socketpair");
  }
  if (pthread_create(&thread, NULL, unix_peer_serve, (void *)(intptr_t)ends[1]) != 0) {
    unix_peer_fail("unix: pthread_create");
  }
  pthread_detach(thread);
  return ends[0];
}

#endif
