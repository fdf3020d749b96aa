/* What ends the whole process, as docs/c-abi.md says: a thread that is ended inside the library. Each in a child. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* A child that is aborted has not freed anything, and no sanitizer needs to say so; nor that it was aborted. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  return "detect_leaks=0:handle_abort=0";
}

static const char *path = NULL;

/* How a child ended, and what it wrote to standard error, as far as there is room. */
typedef struct ended {
  int status;
  char text[4096];
} ended;

/* The child opens the library by itself: threads do not survive a fork. A child that hangs is ended by SIGALRM. */
static ended in_child(void (*work)(void)) {
  ended result;
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
  const ended result = in_child(work);
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

static void exits_in_a_callback(void) {
  conformance_client client = open_client(4);
  conformance_count_result result;
  tw_error error;
  REQUIRE_OK(conformance_count(&client, 0, 10, TW_FOREVER, &result, &error), error);
  REQUIRE_OK(conformance_u64_stream_subscribe(&result.ok, exits, NULL, NULL, &error), error);
  REQUIRE_OK(tw_stream_join(&result.ok.tw, TW_FOREVER, &error), error);
}

static void pthread_exit_in_a_callback_aborts_the_process(void) {
  check_aborted(exits_in_a_callback);
}

/* What the thread that is to be cancelled does; the pipe says that it has begun. */
typedef struct waiter {
  conformance_client client;
  int type;
  int begun;
} waiter;

static void *waits(void *of) {
  const waiter *mine = (const waiter *)of;
  const char byte = 0;
  (void)pthread_setcanceltype(mine->type, NULL);
  (void)write(mine->begun, &byte, 1);
  (void)mine->client.tw.table->port_wait(mine->client.tw.port, TW_FOREVER, NULL);
  /* A thread whose cancellation is deferred comes here when its port is closed, and ends in this call. */
  pthread_testcancel();
  return NULL;
}

/* Is there a thread of this process that sleeps in the system call that the thread makes? By then it is in port_wait: nothing else of
 * it sleeps. */
static void let_it_sleep(void) {
  sleep_ms(300);
}

static void *cancelled_in_port_wait(int type) {
  waiter mine;
  pthread_t thread;
  void *result = NULL;
  tw_error error;
  char byte;
  int ends[2];
  CHECK(pipe(ends) == 0);
  mine.client = open_client(4);
  mine.type = type;
  mine.begun = ends[1];
  CHECK(pthread_create(&thread, NULL, waits, &mine) == 0);
  CHECK(read(ends[0], &byte, 1) == 1);
  let_it_sleep();
  CHECK(pthread_cancel(thread) == 0);
  if (type == PTHREAD_CANCEL_DEFERRED) {
    REQUIRE_OK(conformance_client_close(&mine.client, &error), error);
  }
  CHECK(pthread_join(thread, &result) == 0);
  return result;
}

static void cancels_at_once(void) {
  (void)cancelled_in_port_wait(PTHREAD_CANCEL_ASYNCHRONOUS);
}

static void asynchronous_cancel_in_port_wait_aborts_the_process(void) {
  check_aborted(cancels_at_once);
}

static void cancels_later(void) {
  exit(cancelled_in_port_wait(PTHREAD_CANCEL_DEFERRED) == PTHREAD_CANCELED ? 0 : 3);
}

static void deferred_cancel_waits_until_port_wait_has_returned(void) {
  const ended result = in_child(cancels_later);
  CHECK(WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0);
  if (result.status != 0) {
    fprintf(stderr, "status %d: %s\n", result.status, result.text);
  }
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  path = argv[1];
  (void)path;
  RUN(pthread_exit_in_a_callback_aborts_the_process);
  RUN(asynchronous_cancel_in_port_wait_aborts_the_process);
  RUN(deferred_cancel_waits_until_port_wait_has_returned);
  return done("aborts");
}
