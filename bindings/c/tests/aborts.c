/* Ending a thread inside the library aborts the process, as docs/c-abi.md describes. Each test runs
 * in a child process. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* An aborted child frees nothing. The sanitizer reports neither the leaks nor the abort. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  return "detect_leaks=0:handle_abort=0";
}

/* Ends the child unless the condition is true. */
#define REQUIRE(condition)                                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static const char *path = NULL;

/* The exit status of a child, and the start of its standard error. */
typedef struct child_result {
  int status;
  char text[4096];
} child_result;

/* Runs `work` in a child, which opens the library; the parent has not opened it. SIGALRM ends a
 * child that hangs. */
static child_result in_child(void (*work)(void)) {
  child_result result;
  tw_error error;
  int ends[2];
  size_t size = 0;
  ssize_t got;
  pid_t child;
  memset(&result, 0, sizeof(result));
  CHECK(pipe(ends) == 0);
  fflush(NULL);
  child = fork();
  if (child == 0) {
    alarm(60);
    (void)dup2(ends[1], STDERR_FILENO);
    (void)close(ends[0]);
    (void)close(ends[1]);
    REQUIRE_OK(conformance_open(path, &library, &error), error);
    work();
    exit(0);
  }
  (void)close(ends[1]);
  while ((got = read(ends[0], result.text + size, sizeof(result.text) - 1 - size)) > 0) {
    size += (size_t)got;
  }
  (void)close(ends[0]);
  CHECK(child > 0 && waitpid(child, &result.status, 0) == child);
  return result;
}

static void check_aborted(void (*work)(void)) {
  const child_result result = in_child(work);
  CHECK(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGABRT);
  if (!WIFSIGNALED(result.status) || WTERMSIG(result.status) != SIGABRT) {
    fprintf(stderr, "status %d: %s\n", result.status, result.text);
  }
}

static uint32_t exits(void *ctx, const conformance_u64_batch *batch, const tw_error *ending) {
  (void)ctx;
  (void)batch;
  (void)ending;
  pthread_exit(NULL);
}

static void exit_in_a_callback(void) {
  conformance_client client = open_client(4);
  conformance_count_result result;
  tw_error error;
  REQUIRE_OK(conformance_count(&client, 0, 10, TW_FOREVER, &result, &error), error);
  REQUIRE_OK(conformance_u64_stream_subscribe(&result.ok, exits, NULL, NULL, &error), error);
  REQUIRE_OK(tw_stream_join(&result.ok.tw, TW_FOREVER, &error), error);
}

static void pthread_exit_in_callback_aborts_the_process(void) {
  check_aborted(exit_in_a_callback);
}

/* A thread that will be cancelled. It writes its folder in /proc to the pipe when it runs. */
typedef struct waiter {
  conformance_client client;
  bool async;
  int begun;
} waiter;

static void *wait_on_port(void *of) {
  const waiter *mine = (const waiter *)of;
  char folder[256] = "/proc/";
  uint32_t code;
  CHECK(readlink("/proc/thread-self", folder + 6, sizeof(folder) - 7) > 0);
  if (mine->async) {
    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  } else {
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  }
  CHECK(write(mine->begun, folder, sizeof(folder)) == (ssize_t)sizeof(folder));
  code = mine->client.tw.table->port_wait(mine->client.tw.port, TW_FOREVER, NULL);
  CHECK_CODE(code, TW_CLOSED);
  (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  pthread_testcancel();
  return NULL;
}

/* Waits until the thread of this folder sleeps, which it does only in port_wait. */
static void wait_until_asleep(const char *folder) {
  char file[300];
  char state = 0;
  (void)snprintf(file, sizeof(file), "%s/stat", folder);
  while (state != 'S') {
    FILE *stat = fopen(file, "r");
    REQUIRE(stat != NULL);
    REQUIRE(fscanf(stat, "%*d (%*[^)]) %c", &state) == 1);
    (void)fclose(stat);
  }
}

/* Cancels a thread that sleeps in port_wait. Returns the result of the thread. */
static void *cancelled_in_port_wait(bool async) {
  waiter mine;
  pthread_t thread;
  void *result = NULL;
  tw_error error;
  char folder[256];
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  mine.client = open_client(4);
  mine.async = async;
  mine.begun = ends[1];
  REQUIRE(pthread_create(&thread, NULL, wait_on_port, &mine) == 0);
  REQUIRE(read(ends[0], folder, sizeof(folder)) == (ssize_t)sizeof(folder));
  wait_until_asleep(folder);
  CHECK(pthread_cancel(thread) == 0);
  if (!async) {
    REQUIRE_OK(conformance_client_close(&mine.client, &error), error);
  }
  CHECK(pthread_join(thread, &result) == 0);
  return result;
}

static void cancels_asynchronously(void) {
  (void)cancelled_in_port_wait(true);
}

static void asynchronous_cancel_in_port_wait_aborts_the_process(void) {
  check_aborted(cancels_asynchronously);
}

static void cancels_where_that_is_disabled(void) {
  const bool cancelled = cancelled_in_port_wait(false) == PTHREAD_CANCELED;
  exit(cancelled && checks_failed == 0 ? 0 : 3);
}

static void cancel_disabled_around_port_wait_takes_effect_after_it(void) {
  const child_result result = in_child(cancels_where_that_is_disabled);
  CHECK(WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0);
  if (result.status != 0) {
    fprintf(stderr, "status %d: %s\n", result.status, result.text);
  }
}

int main(int argc, char **argv) {
  path = argv[argc - 1];
  if (argc != 2) {
    fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    return 2;
  }
  RUN(pthread_exit_in_callback_aborts_the_process);
  RUN(asynchronous_cancel_in_port_wait_aborts_the_process);
  RUN(cancel_disabled_around_port_wait_takes_effect_after_it);
  return done("aborts");
}
