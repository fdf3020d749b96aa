/* Opens and closes guests repeatedly: guest_soak ROUNDS PROBE ECHO, the addresses of a guest in C and of one
 * in C++ with a thread of its own. A round opens each, makes calls, and closes it, so that its library is
 * loaded and unloaded. After the first tenth of the rounds, memory, descriptors and threads must not grow. */
#include <dirent.h>
#include <unistd.h>

#include "check.h"
#include "echo.h"
#include "probe.h"

/* The growth of the allocator's own memory that is tolerated. */
#define SLACK_KIB 2048

static long count_entries(const char *path) {
  DIR *folder = opendir(path);
  long count = 0;
  if (!folder) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
  }
  while (readdir(folder)) {
    count++;
  }
  closedir(folder);
  return count;
}

static long resident_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2) {
    fputs("/proc/self/statm cannot be read\n", stderr);
    exit(1);
  }
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The least number of entries of a folder within a second: a guest is unloaded on a thread of its own. */
static long least_entries(const char *path) {
  const struct timespec pause = {0, 10000000};
  long least = count_entries(path);
  int tries;
  for (tries = 0; tries < 100; tries++) {
    long count;
    nanosleep(&pause, NULL);
    count = count_entries(path);
    least = count < least ? count : least;
  }
  return least;
}

static void use_probe(const char *address, uint64_t number) {
  probe_library library;
  probe_client client;
  probe_cell_new_result cell;
  probe_add_result added;
  tw_error error;
  REQUIRE_OK(probe_open(address, &library, &error), error);
  REQUIRE_OK(probe_client_open(&library, 4, &client, &error), error);
  REQUIRE_OK(probe_cell_new(&client, number, TW_FOREVER, &cell, &error), error);
  tw_reply_release(&cell.reply);
  REQUIRE_OK(probe_add(&client, number, TW_FOREVER, &added, &error), error);
  CHECK(added.ok == number);
  tw_reply_release(&added.reply);
  REQUIRE_OK(probe_cell_close(&cell.ok, &error), error);
  REQUIRE_OK(probe_client_close(&client, &error), error);
  REQUIRE_OK(tw_close(library.table, &error), error);
}

static void use_echo(const char *address) {
  const echo_request_in request = {tw_text_of("hello"), 0};
  echo_library library;
  echo_client client;
  echo_timer_new_result timer;
  echo_timer_echo_result echoed;
  echo_timer_schedule_result ticks;
  echo_tick_batch batch;
  tw_error error;
  REQUIRE_OK(echo_open(address, &library, &error), error);
  REQUIRE_OK(echo_client_open(&library, 4, &client, &error), error);
  REQUIRE_OK(echo_timer_new(&client, tw_text_of("timer"), TW_FOREVER, &timer, &error), error);
  tw_reply_release(&timer.reply);
  REQUIRE_OK(echo_timer_echo(&client, timer.ok, &request, TW_FOREVER, &echoed, &error), error);
  CHECK(tw_text_equal(echo_response_message(echoed.reply.base, echoed.ok), request.message));
  tw_reply_release(&echoed.reply);
  /* A stream that is open when the client is closed. */
  REQUIRE_OK(echo_timer_schedule(&client, timer.ok, 1, 0, TW_FOREVER, &ticks, &error), error);
  tw_reply_release(&ticks.reply);
  REQUIRE_OK(echo_tick_stream_acquire(&ticks.ok, 1, TW_FOREVER, &batch, &error), error);
  REQUIRE_OK(echo_client_close(&client, &error), error);
  REQUIRE_OK(echo_tick_stream_close(&ticks.ok, &error), error);
  REQUIRE_OK(echo_timer_close(&timer.ok, &error), error);
  REQUIRE_OK(tw_close(library.table, &error), error);
}

int main(int argc, char **argv) {
  const uint64_t rounds = argc == 4 ? strtoull(argv[1], NULL, 10) : 0;
  const uint64_t first = rounds / 10;
  uint64_t round;
  long memory = 0;
  long descriptors = 0;
  long threads = 0;
  long grown;
  if (first == 0) {
    fputs("usage: guest_soak ROUNDS PROBE ECHO, 10 rounds at least\n", stderr);
    return 2;
  }
  for (round = 0; round < rounds; round++) {
    if (round == first) {
      memory = resident_kib();
      descriptors = least_entries("/proc/self/fd");
      threads = least_entries("/proc/self/task");
    }
    use_probe(argv[2], round);
    use_echo(argv[3]);
  }
  grown = resident_kib() - memory;
  CHECK(grown < SLACK_KIB);
  descriptors = least_entries("/proc/self/fd") - descriptors;
  threads = least_entries("/proc/self/task") - threads;
  CHECK(descriptors <= 0);
  CHECK(threads <= 0);
  printf("guest_soak: %llu rounds: %ld KiB, %ld descriptors and %ld threads more than after %llu\n",
         (unsigned long long)rounds, grown, descriptors, threads, (unsigned long long)first);
  tests_run = 1;
  return done("guest_soak");
}
