/* The threads of the guest, which end before it is unloaded. */
#ifndef THREADS_H
#define THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "conformance_guest.h"

/* A thread. It is joined after its end: a detached one could still run code of the library while that is
 * unloaded. */
typedef struct thread {
  pthread_t id;
  void (*run)(void *given);
  void *given;
  struct thread *next;
} thread;

static pthread_mutex_t threads_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_changed = PTHREAD_COND_INITIALIZER;
static int threads_running;
static thread *threads_ended;
static bool threads_stopping;

static inline void *run_thread(void *given) {
  thread *self = (thread *)given;
  self->run(self->given);
  pthread_mutex_lock(&threads_mutex);
  self->next = threads_ended;
  threads_ended = self;
  threads_running--;
  pthread_cond_broadcast(&threads_changed);
  pthread_mutex_unlock(&threads_mutex);
  return NULL;
}

/* Joins the threads in a list. */
static inline void join_threads(thread *ended) {
  while (ended) {
    thread *next = ended->next;
    pthread_join(ended->id, NULL);
    free(ended);
    ended = next;
  }
}

/* Runs `run(given)` on a thread. */
static inline void start_thread(void (*run)(void *given), void *given) {
  thread *made = (thread *)calloc(1, sizeof(*made));
  thread *ended;
  if (!made) {
    abort();
  }
  made->run = run;
  made->given = given;
  pthread_mutex_lock(&threads_mutex);
  threads_running++;
  if (pthread_create(&made->id, NULL, run_thread, made) != 0) {
    abort();
  }
  ended = threads_ended;
  threads_ended = NULL;
  pthread_mutex_unlock(&threads_mutex);
  join_threads(ended);
}

/* Waits for this time, or until the guest is unloaded. */
static inline void pause_thread(uint32_t milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += milliseconds / 1000;
  until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&threads_mutex);
  while (!threads_stopping &&
         pthread_cond_timedwait(&threads_changed, &threads_mutex, &until) == 0) {
  }
  pthread_mutex_unlock(&threads_mutex);
}

static inline void end_threads(void) {
  pthread_mutex_lock(&threads_mutex);
  threads_stopping = true;
  pthread_cond_broadcast(&threads_changed);
  while (threads_running > 0) {
    pthread_cond_wait(&threads_changed, &threads_mutex);
  }
  threads_stopping = false;
  pthread_mutex_unlock(&threads_mutex);
  join_threads(threads_ended);
  threads_ended = NULL;
}

#endif
