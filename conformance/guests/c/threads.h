/* The threads of the guest, which end before it is unloaded. */
#ifndef THREADS_H
#define THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "conformance_guest.h"

static pthread_mutex_t threads_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_changed = PTHREAD_COND_INITIALIZER;
static int threads_running;
static bool threads_stopping;

typedef struct thread_start {
  void (*run)(void *given);
  void *given;
} thread_start;

static inline void *run_thread(void *given) {
  thread_start start = *(thread_start *)given;
  free(given);
  start.run(start.given);
  pthread_mutex_lock(&threads_mutex);
  threads_running--;
  pthread_cond_broadcast(&threads_changed);
  pthread_mutex_unlock(&threads_mutex);
  return NULL;
}

/* Runs `run(given)` on a thread. */
static inline void start_thread(void (*run)(void *given), void *given) {
  thread_start *start = (thread_start *)malloc(sizeof(*start));
  pthread_t thread;
  if (!start) {
    abort();
  }
  start->run = run;
  start->given = given;
  pthread_mutex_lock(&threads_mutex);
  threads_running++;
  pthread_mutex_unlock(&threads_mutex);
  if (pthread_create(&thread, NULL, run_thread, start) != 0) {
    abort();
  }
  pthread_detach(thread);
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
}

#endif
