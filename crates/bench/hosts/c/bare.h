/* Two hand-offs through eventfds and nothing else: the baseline of a call between two threads.
 *
 *   bare_open     a thread that waits for the request and answers it
 *   bare_call     one request, one reply
 *   bare_close    ends the thread
 */
#ifndef LAB_BARE_H
#define LAB_BARE_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct bare {
  int request;
  int reply;
  pthread_t thread;
} bare;

/* A request with this in it ends the thread. */
#define BARE_END (UINT64_C(1) << 32)

static inline void bare_fail(const char *what) {
  perror(what);
  exit(1);
}

static inline uint64_t bare_wait(int fd) {
  uint64_t value;
  if (read(fd, &value, sizeof(value)) != sizeof(value)) {
    bare_fail("bare: read");
  }
  return value;
}

static inline void bare_post(int fd, uint64_t value) {
  if (write(fd, &value, sizeof(value)) != sizeof(value)) {
    bare_fail("bare: write");
  }
}

static void *bare_answer(void *argument) {
  const bare *self = argument;
  while (bare_wait(self->request) < BARE_END) {
    bare_post(self->reply, 1);
  }
  return NULL;
}

static inline void bare_open(bare *self) {
  self->request = eventfd(0, EFD_CLOEXEC);
  self->reply = eventfd(0, EFD_CLOEXEC);
  if (self->request < 0 || self->reply < 0) {
    bare_fail("bare: eventfd");
  }
  if (pthread_create(&self->thread, NULL, bare_answer, self) != 0) {
    bare_fail("bare: pthread_create");
  }
}

static inline void bare_call(const bare *self) {
  bare_post(self->request, 1);
  bare_wait(self->reply);
}

static inline void bare_close(bare *self) {
  bare_post(self->request, BARE_END);
  pthread_join(self->thread, NULL);
  close(self->request);
  close(self->reply);
}

#endif
