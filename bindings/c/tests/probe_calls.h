/* Calls of the guest in guests/probe.c, and what a process has. */
#ifndef PROBE_CALLS_H
#define PROBE_CALLS_H

#include <dirent.h>
#include <time.h>

#include "check.h"
#include "probe.h"

static inline void sleep_ms(uint32_t milliseconds) {
  struct timespec length;
  length.tv_sec = milliseconds / 1000;
  length.tv_nsec = (long)(milliseconds % 1000) * 1000000;
  nanosleep(&length, NULL);
}

static inline probe_client open_client_of(const probe_library *library) {
  probe_client client;
  tw_error error;
  REQUIRE_OK(probe_client_open(library, 1024, &client, &error), error);
  return client;
}

static inline void close_client(probe_client *client) {
  tw_error error;
  REQUIRE_OK(probe_client_close(client, &error), error);
}

static inline uint64_t add(const probe_client *client, uint64_t number) {
  probe_add_result result;
  tw_error error;
  uint64_t sum;
  REQUIRE_OK(probe_add(client, number, TW_FOREVER, &result, &error), error);
  sum = result.ok;
  tw_reply_release(&result.reply);
  return sum;
}

static inline probe_cell new_cell(const probe_client *client, uint64_t value) {
  probe_cell_new_result made;
  tw_error error;
  probe_cell cell;
  REQUIRE_OK(probe_cell_new(client, value, TW_FOREVER, &made, &error), error);
  cell = made.ok;
  tw_reply_release(&made.reply);
  return cell;
}

static inline long count_entries(const char *path) {
  DIR *directory = opendir(path);
  long count = 0;
  while (directory && readdir(directory)) {
    count++;
  }
  if (directory) {
    closedir(directory);
  }
  return count;
}

static inline long resident_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2) {
    exit(1);
  }
  fclose(file);
  return resident * 4;
}

#endif
