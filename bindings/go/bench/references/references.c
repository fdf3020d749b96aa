#define _GNU_SOURCE
#include "references.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

typedef struct trips {
  int request, answer, count;
  double ns;
} trips;

int new_eventfd(int is_nonblocking) {
  return eventfd(0, EFD_CLOEXEC | (is_nonblocking ? EFD_NONBLOCK : 0));
}

void cross(void) {
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *run(void *given) {
  trips *job = (trips *)given;
  uint64_t one = 1;
  double began = now();
  int i;
  for (i = 0; i < job->count; i++) {
    uint64_t counter;
    if (write(job->request, &one, 8) != 8 || read(job->answer, &counter, 8) != 8) {
      return NULL;
    }
  }
  job->ns = (now() - began) / job->count;
  return NULL;
}

double round_trips(int request, int answer, int count) {
  trips job = {request, answer, count, 0};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, &job) == 0) {
    pthread_join(thread, NULL);
  }
  return job.ns;
}
