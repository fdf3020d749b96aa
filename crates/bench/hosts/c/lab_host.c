/* The C host program of the lab's own service: `lab_host LIBRARY [BARE]`. LIBRARY may be the address of a
 * guest; then BARE is the library that has the bare hand-offs. Its lines are those of
 * src/workloads/lab_hosts.rs. It measures the generated header as a C program would use it. */
#include "bare.h"
#include "completions.h"
#include "e2e.h"
#include "events.h"
#include "lab.h"
#include "reading.h"
#include "sample.h"
#include "ticks.h"

static lab_library library;
static lab_client client;
static bare two_hand_offs;

static void nop(void) {
  lab_nop_result result;
  tw_error error;
  must(lab_nop(&client, TW_FOREVER, &result, &error), "nop", &error);
}

static void nop_async(void) {
  lab_nop_async_result result;
  tw_error error;
  must(lab_nop_async(&client, TW_FOREVER, &result, &error), "nop-async", &error);
}

static void tally(void) {
  lab_tally_result result;
  tw_error error;
  must(lab_tally(&client, 1, TW_FOREVER, &result, &error), "tally", &error);
}

static void bare_nop(void) {
  two_hand_offs.call(two_hand_offs.state);
}

/* Takes `latencies` over. */
static void answer_each(uint64_t *latencies, uint64_t count) {
  uint64_t i;
  fputs("{\"latencies\": [", stdout);
  for (i = 0; i < count; i++) {
    printf("%s%" PRIu64, i > 0 ? ", " : "", latencies[i]);
  }
  puts("]}");
  fflush(stdout);
  free(latencies);
}

/* COUNT operations timed one by one, after UNCOUNTED more, each after a pause of PAUSE_US. */
static void block(void (*operation)(void), const uint64_t numbers[3]) {
  const uint64_t count = numbers[0];
  uint64_t *latencies = calloc(count + 1, sizeof(*latencies));
  uint64_t i;
  if (!latencies) {
    abort();
  }
  for (i = 0; i < numbers[1]; i++) {
    operation();
  }
  for (i = 0; i < count; i++) {
    uint64_t began;
    if (numbers[2] > 0) {
      pause_us((uint32_t)numbers[2]);
    }
    began = now_ns();
    operation();
    latencies[i] = now_ns() - began;
  }
  answer_each(latencies, count);
}

static void answer(reading read) {
  printf("{\"ns\": %" PRIu64 ", \"records\": %" PRIu64 ", \"checksum\": %" PRIu64 "}\n", read.ns,
         read.records, read.checksum);
  fflush(stdout);
}

static void run(const char *command, const uint64_t numbers[3]) {
  reading read = {0, 0, 0};
  if (strcmp(command, "nop") == 0) {
    block(nop, numbers);
  } else if (strcmp(command, "nop-async") == 0) {
    block(nop_async, numbers);
  } else if (strcmp(command, "tally") == 0) {
    block(tally, numbers);
  } else if (strcmp(command, "bare") == 0) {
    block(bare_nop, numbers);
  } else if (strcmp(command, "views") == 0) {
    answer(read_views(&client, numbers[0]));
  } else if (strcmp(command, "array") == 0) {
    answer(read_array(&client, numbers[0], numbers[0]));
  } else if (strcmp(command, "kept") == 0) {
    answer(read_array(&client, READING_KEPT, numbers[0]));
  } else if (strcmp(command, "tick-views") == 0) {
    answer(tick_views(&client, numbers[0]));
  } else if (strcmp(command, "tick-array") == 0) {
    answer(tick_array(&client, numbers[0]));
  } else if (strcmp(command, "stream-one") == 0) {
    answer(tick_stream(&client, numbers[0], 1));
  } else if (strcmp(command, "stream-views") == 0) {
    answer(tick_stream(&client, numbers[0], READING_BATCH));
  } else if (strcmp(command, "stream-callback") == 0) {
    answer(tick_callback(&client, numbers[0]));
  } else if (strcmp(command, "events-one") == 0) {
    answer(event_stream(&client, numbers[0], 1));
  } else if (strcmp(command, "events-views") == 0) {
    answer(event_stream(&client, numbers[0], READING_BATCH));
  } else if (strcmp(command, "complete") == 0) {
    answer(complete(&client, numbers[0], COMPLETIONS_WINDOW, COMPLETIONS_AT_ONCE));
  } else if (strcmp(command, "in-flight") == 0) {
    answer(complete(&client, numbers[0], numbers[1], numbers[2]));
  } else if (strcmp(command, "paced") == 0) {
    answer_each(paced(&client, numbers[0], numbers[1]), numbers[0]);
  } else if (strcmp(command, "drain") == 0) {
    answer(drain(&client, numbers[0]));
  } else if (strcmp(command, "raw") == 0) {
    answer(raw(numbers[0]));
  } else if (strcmp(command, "verify") == 0) {
    const verified all = verify(&client, numbers[0]);
    printf("{\"records\": %" PRIu64 ", \"digest\": \"%016" PRIx64 "\"}\n", all.records, all.digest);
    fflush(stdout);
  } else if (strncmp(command, "e2e-", 4) == 0 && e2e(&library, command + 4, numbers, &read)) {
    answer(read);
  } else {
    fprintf(stderr, "not a command: %s\n", command);
    exit(1);
  }
}

int main(int argc, char **argv) {
  tw_error error;
  char command[32];
  uint64_t numbers[3];
  if (argc != 2 && argc != 3) {
    fputs("usage: lab_host LIBRARY [BARE]\n", stderr);
    return 2;
  }
  must(lab_open(argv[1], &library, &error), argv[1], &error);
  must(lab_client_open(&library, 64, &client, &error), "client", &error);
  bare_open(&two_hand_offs, argv[argc - 1]);
  nop();
  nop_async();
  bare_nop();
  move_caller();
  say_ready();
  while (next_command(command, numbers)) {
    run(command, numbers);
  }
  two_hand_offs.close(two_hand_offs.state);
  must(lab_client_close(&client, &error), "close", &error);
  return 0;
}
