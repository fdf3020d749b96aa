/* The library and its process: signal actions, descriptors beyond 1,024, dlclose, fork during a
 * call, threads that end, exit of the process, shortage of memory. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* Children exit during calls. The sanitizer does not report their leaks. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  return "detect_leaks=0";
}

static const char *path = NULL;

static void check_call(void) {
  conformance_client client = open_client(4);
  conformance_echo_u32_result result;
  tw_error error;
  REQUIRE_OK(conformance_echo_u32(&client, 7, TW_FOREVER, &result, &error), error);
  CHECK(result.ok == 7);
  close_client(&client);
}

/* The signal actions before the library was opened. */
static struct sigaction before[65];

static void read_signal_actions(struct sigaction *into) {
  int number;
  memset(into, 0, 65 * sizeof(*into));
  for (number = 1; number <= 64; number++) {
    (void)sigaction(number, NULL, &into[number]);
  }
}

static void signal_actions_are_unchanged(void) {
  struct sigaction after[65];
  int number;
  int other;
  check_call();
  read_signal_actions(after);
  for (number = 1; number <= 64; number++) {
    CHECK(after[number].sa_flags == before[number].sa_flags);
    CHECK(after[number].sa_handler == before[number].sa_handler);
    for (other = 1; other <= 64; other++) {
      CHECK(sigismember(&after[number].sa_mask, other) ==
            sigismember(&before[number].sa_mask, other));
    }
  }
}

static void descriptors_beyond_1024_work(void) {
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

/* With `-z nodelete`, its threads and handles remain valid. */
static void dlclose_does_not_unload(void) {
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

/* Runs `work` in a child and returns its status, which is 0 if no check failed. */
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

static void open_own_client(const conformance_client *client) {
  tw_error error;
  CHECK_CODE(client->tw.table->cancel(client->tw.port, &error), TW_FORKED);
  check_call();
}

static void ends_at_once(const conformance_client *client) {
  (void)client;
}

static void fork_during_a_call_and_a_stream_affects_neither_process(void) {
  tw_request request;
  conformance_client client = open_client(8);
  conformance_endless_result stream;
  tw_completion completion;
  tw_error error;
  tw_handle call = 0;
  REQUIRE_OK(conformance_endless(&client, TW_FOREVER, &stream, &error), error);
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 5, &call, &error), error);
  CHECK(in_child(open_own_client, &client) == 0);
  CHECK(in_child(ends_at_once, &client) == 0);
  REQUIRE_OK(client.tw.table->cancel(call, &error), error);
  completion = next_completion(&client);
  CHECK(completion.token == 5);
  CHECK_CODE(completion.code, TW_CANCELLED);
  client.tw.table->release(&completion);
  REQUIRE_OK(conformance_u64_stream_close(&stream.ok, &error), error);
  close_client(&client);
}

static void *open_and_end(void *into) {
  tw_request request;
  conformance_client *client = (conformance_client *)into;
  conformance_endless_result stream;
  tw_error error;
  *client = open_client(2);
  REQUIRE_OK(conformance_endless(client, TW_FOREVER, &stream, &error), error);
  REQUIRE_OK(submit_request(conformance_never_prepare(client, &request), 1, NULL, &error), error);
  return NULL;
}

/* A client outlives the thread that opened it, and another thread closes it. */
static void port_outlives_the_thread_that_opened_it(void) {
  enum { THREADS = 50 };
  static conformance_client clients[THREADS];
  int i;
  for (i = 0; i < THREADS; i++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, open_and_end, &clients[i]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  check_call();
  for (i = 0; i < THREADS; i++) {
    close_client(&clients[i]);
  }
}

static void *wait_on_port(void *of) {
  const conformance_client *client = (const conformance_client *)of;
  (void)client->tw.table->port_wait(client->tw.port, TW_FOREVER, NULL);
  return NULL;
}

/* Returns, and so exits, with an unread stream, an outstanding call and a thread in port_wait. */
static void return_during_calls(const conformance_client *parents) {
  tw_request request;
  static conformance_client client;
  conformance_endless_result stream;
  pthread_t thread;
  tw_error error;
  (void)parents;
  client = open_client(4);
  REQUIRE_OK(conformance_endless(&client, TW_FOREVER, &stream, &error), error);
  CHECK(pthread_create(&thread, NULL, wait_on_port, &client) == 0);
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 1, NULL, &error), error);
}

static void process_exits_during_calls_and_waits(void) {
  int i;
  for (i = 0; i < 10; i++) {
    CHECK(in_child(return_during_calls, NULL) == 0);
  }
}

#if !defined(__SANITIZE_ADDRESS__)
/* In a child: limits the address space and opens ports until memory is short. The port is refused,
 * and the process continues, also if a panic would print a backtrace. */
static void open_ports_until_memory_is_short(const conformance_client *parents) {
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
  /* A sanitizer needs more memory than the limit. */
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(setenv("RUST_BACKTRACE", "1", 1) == 0);
  CHECK(in_child(open_ports_until_memory_is_short, &client) == 0);
  CHECK(setenv("RUST_BACKTRACE", "0", 1) == 0);
#endif
  close_client(&client);
}

int main(int argc, char **argv) {
  read_signal_actions(before);
  open_library(argc, argv);
  path = argv[1];
  RUN(signal_actions_are_unchanged);
  RUN(descriptors_beyond_1024_work);
  RUN(dlclose_does_not_unload);
  RUN(fork_during_a_call_and_a_stream_affects_neither_process);
  RUN(port_outlives_the_thread_that_opened_it);
  RUN(port_without_memory_is_overloaded);
  RUN(process_exits_during_calls_and_waits);
  return done("process");
}
