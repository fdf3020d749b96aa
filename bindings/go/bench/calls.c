/* Nanoseconds for a call of a guest: calls ADDRESS. */
#include <stdio.h>
#include <sys/resource.h>

#include "probe.h"

#define IN_FLIGHT 64
#define ROUNDS 200000

static probe_library library;
static probe_client client;
static tw_error error;

static void require(uint32_t code) {
  if (code != TW_OK) {
    fprintf(stderr, "%s: %s\n", tw_code_name(code), error.message);
    exit(1);
  }
}

static double alone(void) {
  const uint64_t began = client.tw.table->now();
  int i;
  for (i = 0; i < ROUNDS; i++) {
    probe_add_result result;
    require(probe_add(&client, 1, TW_FOREVER, &result, &error));
    tw_reply_release(&result.reply);
  }
  return (double)(client.tw.table->now() - began) / ROUNDS;
}

typedef struct method {
  uint32_t (*submit)(uint64_t token);
  void (*read)(tw_completion *completion);
} method;

static uint32_t submit_add(uint64_t token) {
  tw_request request;
  return tw_request_submit(probe_add_prepare(&client, 1, &request), TW_FOREVER, token, NULL,
                           &error);
}

static void read_add(tw_completion *completion) {
  probe_add_result result;
  require(probe_add_read(&client, completion, &result, &error));
  tw_reply_release(&result.reply);
}

static uint32_t submit_nothing(uint64_t token) {
  tw_request request;
  return tw_request_submit(probe_nothing_prepare(&client, &request), TW_FOREVER, token, NULL,
                           &error);
}

static void read_nothing(tw_completion *completion) {
  probe_nothing_result result;
  require(probe_nothing_read(&client, completion, &result, &error));
  tw_reply_release(&result.reply);
}

static const method add = {submit_add, read_add};
static const method nothing = {submit_nothing, read_nothing};

static double in_flight(const method *called) {
  const tw_table *table = client.tw.table;
  const uint64_t began = table->now();
  tw_completion completions[IN_FLIGHT];
  uint32_t submitted = 0;
  uint32_t ended = 0;
  while (ended < ROUNDS) {
    uint32_t count = 0;
    uint32_t i;
    while (submitted < ROUNDS && submitted - ended < IN_FLIGHT) {
      require(called->submit(submitted));
      submitted++;
    }
    require(table->port_wait(client.tw.port, TW_FOREVER, &error));
    require(table->port_reap(client.tw.port, completions, IN_FLIGHT, &count, &error));
    for (i = 0; i < count; i++) {
      called->read(&completions[i]);
    }
    ended += count;
  }
  return (double)(table->now() - began) / ROUNDS;
}

static double brief_in_flight(void) {
  return in_flight(&add);
}

static double other_in_flight(void) {
  return in_flight(&nothing);
}

/* The processor time of the process, which other programs influence less. */
static double processor_ns(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

static void measure(const char *name, double (*run)(void)) {
  const double before = processor_ns();
  const double ns = run();
  printf("%s: %.0f ns, %.0f ns of processor time\n", name, ns,
         (processor_ns() - before) / ROUNDS);
}

int main(int argc, char **argv) {
  int round;
  if (argc != 2) {
    fputs("usage: calls ADDRESS\n", stderr);
    return 2;
  }
  require(probe_open(argv[1], &library, &error));
  require(probe_client_open(&library, IN_FLIGHT, &client, &error));
  for (round = 0; round < 3; round++) {
    measure("a brief call, alone", alone);
    measure("a brief call, 64 in flight", brief_in_flight);
    measure("another call, 64 in flight", other_in_flight);
  }
  return 0;
}
