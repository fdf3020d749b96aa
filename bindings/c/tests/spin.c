/* Waiting a moment in an event loop: port_spin. */
#include <poll.h>
#include <pthread.h>

#include "host.h"

static uint32_t spin(const conformance_client *client, uint64_t max_ns) {
  tw_error error;
  uint32_t ready = 7;
  REQUIRE_OK(client->tw.table->port_spin(client->tw.port, max_ns, &ready, &error), error);
  return ready;
}

static bool readable_within(const conformance_client *client, int milliseconds) {
  struct pollfd watched;
  tw_error error;
  REQUIRE_OK(client->tw.table->port_fd(client->tw.port, &watched.fd, &error), error);
  watched.events = POLLIN;
  return poll(&watched, 1, milliseconds) == 1;
}

/* Reaps the one completion that is available. */
static void reap_one(const conformance_client *client, uint64_t token) {
  tw_completion completion;
  tw_error error;
  uint32_t count = 0;
  REQUIRE_OK(client->tw.table->port_reap(client->tw.port, &completion, 1, &count, &error), error);
  CHECK(count == 1 && completion.token == token && completion.code == TW_OK);
  if (count == 1) {
    client->tw.table->release(&completion);
  }
}

static void submit_sleep(conformance_client *client, uint32_t milliseconds, uint64_t token) {
  tw_request request;
  tw_error error;
  REQUIRE_OK(submit_request(conformance_sleep_prepare(client, milliseconds, &request), token, NULL,
                            &error),
             error);
}

static void port_without_a_completion_is_armed(void) {
  conformance_client client = open_client(4);
  CHECK(spin(&client, 0) == 0);
  CHECK(spin(&client, 50000) == 0);
  CHECK(!readable_within(&client, 0));
  submit_sleep(&client, 30, 1);
  CHECK(spin(&client, UINT64_MAX) == 0); /* the limit is 1 ms */
  CHECK(readable_within(&client, 60000));
  reap_one(&client, 1);
  close_client(&client);
}

static void available_completion_is_found_and_nothing_is_armed(void) {
  conformance_client client = open_client(4);
  tw_error error;
  submit_sleep(&client, 1, 1);
  REQUIRE_OK(client.tw.table->port_wait(client.tw.port, TW_FOREVER, &error), error);
  CHECK(spin(&client, 0) == 1);
  CHECK(spin(&client, 50000) == 1);
  submit_sleep(&client, 1, 2);
  sleep_ms(20);
  CHECK(!readable_within(&client, 0));
  reap_one(&client, 1);
  /* The sleep of another call may take longer than ours. */
  REQUIRE_OK(client.tw.table->port_wait(client.tw.port, TW_FOREVER, &error), error);
  reap_one(&client, 2);
  close_client(&client);
}

/* Each completion is either found at once, or makes the fd readable. */
static void no_completion_is_lost(void) {
  static const uint64_t limits[] = {0, 2000, 50000};
  conformance_client client = open_client(4);
  uint64_t round;
  for (round = 0; round < 600; round++) {
    tw_request request;
    tw_error error;
    REQUIRE_OK(submit_request(conformance_nothing_prepare(&client, &request), round, NULL, &error),
               error);
    if (spin(&client, limits[round % 3]) == 0) {
      CHECK(readable_within(&client, 60000));
    }
    reap_one(&client, round);
  }
  close_client(&client);
}

static void *wait_for_the_end(void *of) {
  const conformance_client *client = (const conformance_client *)of;
  tw_error error;
  CHECK_CODE(client->tw.table->port_wait(client->tw.port, TW_FOREVER, &error), TW_OK);
  return NULL;
}

static void thread_that_waits_excludes_another(void) {
  conformance_client client = open_client(4);
  const tw_table *table = client.tw.table;
  pthread_t thread;
  tw_error error;
  uint32_t ready = 0;
  int tries;
  CHECK(pthread_create(&thread, NULL, wait_for_the_end, &client) == 0);
  for (tries = 0; tries < 6000; tries++) {
    if (table->port_spin(client.tw.port, 0, &ready, &error) == TW_ARGUMENT) {
      break;
    }
    sleep_ms(10);
  }
  CHECK(tries < 6000);
  submit_sleep(&client, 1, 3);
  pthread_join(thread, NULL);
  CHECK(spin(&client, 0) == 1);
  reap_one(&client, 3);
  close_client(&client);
}

static void wrong_arguments_are_refused(void) {
  conformance_client client = open_client(4);
  const tw_table *table = client.tw.table;
  tw_handle port = client.tw.port;
  tw_error error;
  uint32_t ready = 7;
  CHECK_CODE(table->port_spin(port, 0, NULL, &error), TW_ARGUMENT);
  CHECK_CODE(table->port_spin(client.tw.instance, 0, &ready, &error), TW_ARGUMENT);
  CHECK(ready == 7);
  close_client(&client);
  CHECK_CODE(table->port_spin(port, 50000, &ready, NULL), TW_STALE);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  RUN(port_without_a_completion_is_armed);
  RUN(available_completion_is_found_and_nothing_is_armed);
  RUN(no_completion_is_lost);
  RUN(thread_that_waits_excludes_another);
  RUN(wrong_arguments_are_refused);
  return done("spin");
}
