/* Shared by the tests of the conformance library: opening it and its clients, submitting and
 * reaping. */
#ifndef HOST_H
#define HOST_H

#include <time.h>

#include "check.h"
#include "conformance.h"

#define MILLISECOND UINT64_C(1000000)

static conformance_library library;

static inline void open_library(int argc, char **argv) {
  tw_error error;
  if (argc < 2) {
    fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    exit(2);
  }
  REQUIRE_OK(conformance_open(argv[1], &library, &error), error);
}

static inline conformance_client open_client(uint32_t capacity) {
  conformance_client client;
  tw_error error;
  REQUIRE_OK(conformance_client_open(&library, capacity, &client, &error), error);
  return client;
}

static inline void close_client(conformance_client *client) {
  tw_error error;
  REQUIRE_OK(conformance_client_close(client, &error), error);
}

static inline void sleep_ms(uint32_t milliseconds) {
  struct timespec length;
  length.tv_sec = milliseconds / 1000;
  length.tv_nsec = (long)(milliseconds % 1000) * 1000000;
  nanosleep(&length, NULL);
}

/* Submits a call without a deadline. `call` may be NULL. */
static inline uint32_t submit_request(tw_request *request, uint64_t token, tw_handle *call,
                                      tw_error *error) {
  return tw_request_submit(request, TW_FOREVER, token, call, error);
}

/* Waits for the next completion. The test ends if there is none within a minute. */
static inline tw_completion next_completion(const conformance_client *client) {
  const tw_table *table = client->tw.table;
  tw_completion completion;
  tw_error error;
  uint32_t count = 0;
  REQUIRE_OK(table->port_wait(client->tw.port, table->now() + 60000 * MILLISECOND, &error), error);
  REQUIRE_OK(table->port_reap(client->tw.port, &completion, 1, &count, &error), error);
  if (count != 1) {
    fprintf(stderr, "port_wait returned, but there is no completion\n");
    exit(1);
  }
  return completion;
}

/* Whether the number of running `endless` streams becomes `wanted` within a minute. */
static inline bool running_becomes(const conformance_client *client, uint32_t wanted) {
  conformance_running_result result;
  tw_error error;
  int tries;
  for (tries = 0; tries < 6000; tries++) {
    REQUIRE_OK(conformance_running(client, TW_FOREVER, &result, &error), error);
    if (result.ok == wanted) {
      return true;
    }
    sleep_ms(10);
  }
  fprintf(stderr, "%u streams run, not %u\n", (unsigned)result.ok, (unsigned)wanted);
  return false;
}

#endif
