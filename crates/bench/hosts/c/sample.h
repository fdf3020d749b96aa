/* Shared by all C host programs: the clock, and the line protocol of the lab (src/child.rs). */
#ifndef LAB_SAMPLE_H
#define LAB_SAMPLE_H

#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "thalweg_client.h"

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void pause_us(uint32_t us) {
  const struct timespec length = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
  nanosleep(&length, NULL);
}

/* Ends the program if a call fails, because the measurement of a failed call is meaningless. */
static inline void must(uint32_t code, const char *what, const tw_error *error) {
  if (code != TW_OK) {
    fprintf(stderr, "%s: %s: %s\n", what, tw_code_name(code), error->message);
    exit(1);
  }
}

/* Moves this thread to its own processor if the lab asks for it. All other threads were started
 * before and stay where they are. */
static inline void move_caller(void) {
  const char *cpu = getenv("LAB_CALLER_CPU");
  cpu_set_t set;
  if (!cpu) {
    return;
  }
  CPU_ZERO(&set);
  CPU_SET((size_t)strtoul(cpu, NULL, 10), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    perror("move_caller");
    exit(1);
  }
}

/* Says that the program can take samples. */
static inline void say_ready(void) {
  puts("{\"ready\": true}");
  fflush(stdout);
}

/* Reads the next line and splits it into a command and up to three numbers; 0 at the end of the
 * input. */
static inline int next_command(char command[32], uint64_t numbers[3]) {
  char line[256];
  memset(numbers, 0, 3 * sizeof(*numbers));
  if (!fgets(line, sizeof(line), stdin)) {
    return 0;
  }
  if (sscanf(line, "%31s %" SCNu64 " %" SCNu64 " %" SCNu64, command, &numbers[0], &numbers[1],
             &numbers[2]) < 1) {
    fprintf(stderr, "not a command: %s", line);
    exit(1);
  }
  return 1;
}

#endif
