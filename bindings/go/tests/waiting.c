/* Tests for guests in Go that wait for their callers and hosts: waiting LIBRARY. guest_inputs.c of the
 * tests in C has those of all languages. */
#include <dlfcn.h>
#include <time.h>

#include "check.h"
#include "inputs.h"

#define MS UINT64_C(1000000)
#define WAITING 300

static inputs_library library;
static const long *running; /* calls of the guest */

static inputs_client open_client(void) {
  inputs_client client;
  tw_error error;
  REQUIRE_OK(inputs_client_open(&library, 1024, &client, &error), error);
  return client;
}

static void close_client(inputs_client *client) {
  tw_error error;
  REQUIRE_OK(inputs_client_close(client, &error), error);
}

/* Waits until the guest runs this number of calls. */
static void wait_for_running(long count) {
  struct timespec pause;
  int tries;
  pause.tv_sec = 0;
  pause.tv_nsec = MS;
  for (tries = 0; tries < 30000 && *(const volatile long *)running != count; tries++) {
    nanosleep(&pause, NULL);
  }
  CHECK(*(const volatile long *)running == count);
}

static long threads_of_the_process(void) {
  char line[256];
  long threads = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof(line), status)) {
    if (strncmp(line, "Threads:", 8) == 0) {
      threads = strtol(line + 8, NULL, 10);
    }
  }
  if (status) {
    fclose(status);
  }
  return threads;
}

static void submit_sum(const inputs_client *client, inputs_u64_stream_writer *numbers,
                       uint64_t deadline, uint64_t token) {
  tw_request request;
  tw_error error;
  REQUIRE_OK(inputs_sum_numbers_open(client, numbers, &error), error);
  REQUIRE_OK(tw_request_submit(inputs_sum_prepare(client, numbers, &request), deadline, token, NULL,
                               &error),
             error);
}

/* Reaps `count` completions of `sum`, which have this code and their token as the sum. */
static void reap_sums(const inputs_client *client, uint32_t count, uint32_t code) {
  const tw_table *table = client->tw.table;
  tw_error error;
  while (count > 0) {
    tw_completion completion;
    inputs_sum_result result;
    uint32_t got = 0;
    uint64_t token;
    REQUIRE_OK(table->port_wait(client->tw.port, TW_FOREVER, &error), error);
    REQUIRE_OK(table->port_reap(client->tw.port, &completion, 1, &got, &error), error);
    token = completion.token;
    CHECK_CODE(inputs_sum_read(client, &completion, &result, &error), code);
    CHECK(code != TW_OK || result.ok == token);
    tw_reply_release(&result.reply);
    count -= got;
  }
}

static void no_thread_waits_for_a_stream(void) {
  inputs_client client = open_client();
  static inputs_u64_stream_writer numbers[WAITING];
  tw_error error;
  uint64_t i;
  for (i = 0; i < WAITING; i++) {
    submit_sum(&client, &numbers[i], TW_FOREVER, i);
  }
  wait_for_running(WAITING);
  CHECK(threads_of_the_process() < WAITING / 4);
  for (i = 0; i < WAITING; i++) {
    REQUIRE_OK(inputs_u64_stream_writer_send(&numbers[i], i, TW_FOREVER, &error), error);
    REQUIRE_OK(inputs_u64_stream_writer_finish(&numbers[i], &error), error);
    inputs_u64_stream_writer_close(&numbers[i], &error);
  }
  reap_sums(&client, WAITING, TW_OK);
  wait_for_running(0);
  close_client(&client);
}

static void reading_ends_with_the_call(void) {
  inputs_client client = open_client();
  inputs_u64_stream_writer numbers;
  tw_error error;
  submit_sum(&client, &numbers, client.tw.table->now() + 20 * MS, 1);
  reap_sums(&client, 1, TW_TIMED_OUT);
  wait_for_running(0);
  inputs_u64_stream_writer_close(&numbers, &error);
  close_client(&client);
}

static void reading_ends_with_the_client(void) {
  inputs_client client = open_client();
  inputs_u64_stream_writer numbers;
  tw_error error;
  submit_sum(&client, &numbers, TW_FOREVER, 1);
  wait_for_running(1);
  close_client(&client);
  wait_for_running(0);
  inputs_u64_stream_writer_close(&numbers, &error);
}

/* Answers nothing. */
static void look_up(void *context, const tw_host_call *call, uint64_t key) {
  (void)context;
  (void)call;
  (void)key;
}

static void waiting_for_the_host_ends(void) {
  inputs_client client = open_client();
  inputs_oracle host;
  inputs_ask_result asked;
  tw_error error;
  memset(&host, 0, sizeof(host));
  host.look_up = look_up;
  REQUIRE_OK(inputs_client_set_host(&client, &host, &error), error);
  /* With the call. */
  CHECK_CODE(inputs_ask(&client, 1, client.tw.table->now() + 20 * MS, &asked, &error),
             TW_TIMED_OUT);
  tw_reply_release(&asked.reply);
  wait_for_running(0);
  /* With the context that the guest has. */
  CHECK_CODE(inputs_ask(&client, 100, TW_FOREVER, &asked, &error), TW_GUEST_LOST);
  CHECK(strstr(error.message, "the guest does not wait") != NULL);
  tw_reply_release(&asked.reply);
  wait_for_running(0);
  close_client(&client);
}

int main(int argc, char **argv) {
  char address[1024];
  void *loaded;
  tw_error error;
  if (argc != 2) {
    fputs("usage: waiting LIBRARY\n", stderr);
    return 2;
  }
  snprintf(address, sizeof(address), "thread:%s", argv[1]);
  REQUIRE_OK(inputs_open(address, &library, &error), error);
  loaded = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
  running = loaded ? (const long *)dlsym(loaded, "inputs_threads") : NULL;
  if (!running) {
    fputs("the guest has no inputs_threads\n", stderr);
    return 1;
  }
  RUN(no_thread_waits_for_a_stream);
  RUN(reading_ends_with_the_call);
  RUN(reading_ends_with_the_client);
  RUN(waiting_for_the_host_ends);
  return done("waiting");
}
