/* What a library does to the process it is in, and what it survives: descriptors beyond 1,024, signal handlers,
 * unloading, fork with a call in flight, threads that end, the process's own end. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* Who ends in the middle of something has not freed it, and no sanitizer needs to say so. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  return "detect_leaks=0";
}

static const char *path = NULL;

static void a_good_call_is_answered(void) {
  conformance_client client = open_client(4);
  conformance_echo_u32_result result;
  tw_error error;
  REQUIRE_OK(conformance_echo_u32(&client, 7, TW_FOREVER, &result, &error), error);
  CHECK(result.ok == 7);
  close_client(&client);
}

/* Before anything is opened: see main. */
static struct sigaction before[65];

static void note_signals(struct sigaction *into) {
  int number;
  memset(into, 0, 65 * sizeof(*into));
  for (number = 1; number <= 64; number++) {
    (void)sigaction(number, NULL, &into[number]);
  }
}

static void no_signal_s_action_is_changed(void) {
  struct sigaction after[65];
  int number;
  int other;
  a_good_call_is_answered();
  note_signals(after);
  for (number = 1; number <= 64; number++) {
    CHECK(after[number].sa_flags == before[number].sa_flags);
    CHECK(after[number].sa_handler == before[number].sa_handler);
    for (other = 1; other <= 64; other++) {
      CHECK(sigismember(&after[number].sa_mask, other) ==
            sigismember(&before[number].sa_mask, other));
    }
  }
}

static void descriptors_beyond_1024_are_as_good(void) {
  enum { MANY = 2000 };
  static int taken[MANY];
  struct rlimit limit;
  conformance_client client;
  conformance_echo_u32_result result;
  conformance_count_result stream;
  conformance_u64_batch batch;
  tw_error error;
  uint32_t ready = 1;
  int fd = -1;
  int i;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur < MANY + 100) {
    limit.rlim_cur = MANY + 100;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  for (i = 0; i < MANY; i++) {
    taken[i] = open("/dev/null", O_RDONLY);
    CHECK(taken[i] >= 0);
  }
  client = open_client(4);
  REQUIRE_OK(client.tw.table->port_fd(client.tw.port, &fd, &error), error);
  CHECK(fd >= 1024);
  REQUIRE_OK(conformance_echo_u32(&client, 7, TW_FOREVER, &result, &error), error);
  CHECK(result.ok == 7);
  REQUIRE_OK(client.tw.table->port_arm(client.tw.port, &ready, &error), error);
  CHECK(ready == 0);
  REQUIRE_OK(conformance_count(&client, 0, 10, TW_FOREVER, &stream, &error), error);
  REQUIRE_OK(conformance_u64_stream_acquire(&stream.ok, 10, TW_FOREVER, &batch, &error), error);
  CHECK(batch.tw.count >= 1);
  REQUIRE_OK(conformance_u64_stream_close(&stream.ok, &error), error);
  close_client(&client);
  for (i = 0; i < MANY; i++) {
    close(taken[i]);
  }
}

/* `-z nodelete`: its threads run on, and so do its handles. */
static void dlclose_unloads_nothing(void) {
  conformance_client client = open_client(4);
  conformance_echo_u32_result result;
  tw_error error;
  void *again = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int i;
  CHECK(again != NULL);
  for (i = 0; i < 3; i++) {
    (void)dlclose(again);
  }
  REQUIRE_OK(conformance_echo_u32(&client, 8, TW_FOREVER, &result, &error), error);
  CHECK(result.ok == 8);
  close_client(&client);
}

/* The child ends by itself with 0, whatever its parent had under way; the parent goes on. */
static int in_child(void (*work)(const conformance_client *), const conformance_client *client) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    checks_failed = 0;
    alarm(30);
    work(client);
    exit(checks_failed == 0 ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}

static void opens_its_own(const conformance_client *client) {
  tw_error error;
  CHECK_CODE(client->tw.table->cancel(client->tw.port, &error), TW_FORKED);
  a_good_call_is_answered();
}

static void ends_at_once(const conformance_client *client) {
  (void)client;
}

static void a_fork_with_a_call_and_a_stream_under_way_disturbs_nobody(void) {
  tw_request request;
  conformance_client client = open_client(8);
  conformance_endless_result stream;
  tw_completion completion;
  tw_error error;
  tw_handle call = 0;
  REQUIRE_OK(conformance_endless(&client, TW_FOREVER, &stream, &error), error);
  REQUIRE_OK(
      tw_request_submit(conformance_never_prepare(&client, &request), TW_FOREVER, 5, &call, &error),
      error);
  CHECK(in_child(opens_its_own, &client) == 0);
  CHECK(in_child(ends_at_once, &client) == 0);
  REQUIRE_OK(client.tw.table->cancel(call, &error), error);
  completion = next_completion(&client);
  CHECK(completion.token == 5);
  CHECK_CODE(completion.code, TW_CANCELLED);
  client.tw.table->release(&completion);
  REQUIRE_OK(conformance_u64_stream_close(&stream.ok, &error), error);
  close_client(&client);
}

static void *leaves_all_open(void *into) {
  tw_request request;
  conformance_client *client = (conformance_client *)into;
  conformance_endless_result stream;
  tw_error error;
  *client = open_client(2);
  REQUIRE_OK(conformance_endless(client, TW_FOREVER, &stream, &error), error);
  REQUIRE_OK(
      tw_request_submit(conformance_never_prepare(client, &request), TW_FOREVER, 1, NULL, &error),
      error);
  return NULL;
}

/* What a thread opened outlives it, and another thread closes it. */
static void a_thread_that_ends_with_a_port_open_takes_nothing_along(void) {
  enum { THREADS = 50 };
  static conformance_client clients[THREADS];
  int i;
  for (i = 0; i < THREADS; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leaves_all_open, &clients[i]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  a_good_call_is_answered();
  for (i = 0; i < THREADS; i++) {
    close_client(&clients[i]);
  }
}

static void *waits(void *of) {
  const conformance_client *client = (const conformance_client *)of;
  (void)client->tw.table->port_wait(client->tw.port, TW_FOREVER, NULL);
  return NULL;
}

/* main's return with a stream unread, a call in flight and a thread in a wait. */
static void leaves_with_much_under_way(const conformance_client *parents) {
  tw_request request;
  static conformance_client client;
  conformance_endless_result stream;
  pthread_t thread;
  tw_error error;
  (void)parents;
  client = open_client(4);
  REQUIRE_OK(conformance_endless(&client, TW_FOREVER, &stream, &error), error);
  CHECK(pthread_create(&thread, NULL, waits, &client) == 0);
  REQUIRE_OK(
      tw_request_submit(conformance_never_prepare(&client, &request), TW_FOREVER, 1, NULL, &error),
      error);
}

static void a_process_ends_with_much_under_way(void) {
  int i;
  for (i = 0; i < 10; i++) {
    CHECK(in_child(leaves_with_much_under_way, NULL) == 0);
  }
}

#if !defined(__SANITIZE_ADDRESS__)
/* In a child: the address space ends a little above where it ends now. A port that finds no memory is refused, and not
 * fatal, also where a panic would print a backtrace. */
static void opens_ports_until_there_is_no_memory(const conformance_client *parents) {
  enum { MOST = 256 };
  const tw_table *table = parents->tw.table;
  static tw_handle ports[MOST];
  struct rlimit all;
  struct rlimit few;
  unsigned long pages = 0;
  uint32_t code = TW_OK;
  int count = 0;
  tw_error error;
  FILE *sizes = fopen("/proc/self/statm", "r");
  CHECK(sizes != NULL && fscanf(sizes, "%lu", &pages) == 1);
  (void)fclose(sizes);
  CHECK(getrlimit(RLIMIT_AS, &all) == 0);
  few = all;
  few.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1u << 20);
  CHECK(setrlimit(RLIMIT_AS, &few) == 0);
  while (count < MOST && code == TW_OK) {
    code = table->port_open(65536, &ports[count], &error);
    count += code == TW_OK;
  }
  CHECK(setrlimit(RLIMIT_AS, &all) == 0);
  CHECK_CODE(code, TW_OVERLOADED);
  CHECK(error.retryable == 1);
  REQUIRE_OK(table->port_open(65536, &ports[count], &error), error);
  for (; count >= 0; count--) {
    REQUIRE_OK(table->port_close(ports[count], &error), error);
  }
}
#endif

static void port_without_memory_is_overloaded(void) {
  conformance_client client = open_client(4);
  /* A sanitizer's own memory is beyond such a limit. */
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(setenv("RUST_BACKTRACE", "1", 1) == 0);
  CHECK(in_child(opens_ports_until_there_is_no_memory, &client) == 0);
  CHECK(setenv("RUST_BACKTRACE", "0", 1) == 0);
#endif
  close_client(&client);
}

int main(int argc, char **argv) {
  note_signals(before);
  open_library(argc, argv);
  path = argv[1];
  RUN(no_signal_s_action_is_changed);
  RUN(descriptors_beyond_1024_are_as_good);
  RUN(dlclose_unloads_nothing);
  RUN(a_fork_with_a_call_and_a_stream_under_way_disturbs_nobody);
  RUN(a_thread_that_ends_with_a_port_open_takes_nothing_along);
  RUN(port_without_memory_is_overloaded);
  RUN(a_process_ends_with_much_under_way);
  return done("process");
}
