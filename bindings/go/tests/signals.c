/* Signal handlers that the program has before it opens a guest in Go: signals ADDRESS. Go's runtime replaces those
 * for SIGSEGV, SIGBUS, SIGFPE and SIGPIPE, and calls them for signals that are not its own. It takes SIGURG,
 * without calling the program's handler. */
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "probe.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGCHLD, SIGUSR1, SIGTERM, SIGPROF};
#define COUNT (sizeof(signals) / sizeof(signals[0]))

static volatile sig_atomic_t handled[65];
static sigjmp_buf resumed;
static volatile sig_atomic_t is_resumable;

static void handle(int signal) {
  handled[signal]++;
  if (is_resumable) {
    siglongjmp(resumed, 1);
  }
}

static probe_library library;
static probe_client client;

static void guest_is_called(void) {
  probe_add_result result;
  tw_error error;
  REQUIRE_OK(probe_add(&client, 1, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
}

static void handlers_of_the_program_are_called(void) {
  size_t i;
  for (i = 0; i < COUNT; i++) {
    const int before = handled[signals[i]];
    raise(signals[i]);
    if (handled[signals[i]] != before + 1) {
      fprintf(stderr, "signal %d was not handled\n", signals[i]);
      checks_failed++;
    }
    guest_is_called();
  }
}

static void wrong_access_of_the_program_is_handled(void) {
  const int before = handled[SIGSEGV];
  is_resumable = 1;
  if (sigsetjmp(resumed, 1) == 0) {
    *(volatile int *)16 = 1;
  }
  is_resumable = 0;
  CHECK(handled[SIGSEGV] == before + 1);
  guest_is_called();
}

static void end_of_a_child_is_handled(void) {
  const int before = handled[SIGCHLD];
  int status = 1;
  pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  while (waitpid(child, &status, 0) != child) {
  }
  CHECK(status == 0 && handled[SIGCHLD] == before + 1);
}

static void wrong_access_of_the_guest_is_a_panic(void) {
  const int before = handled[SIGSEGV];
  probe_misbehave_result result;
  tw_error error;
  CHECK_CODE(probe_misbehave(&client, 14, TW_FOREVER, &result, &error), TW_GUEST_PANICKED);
  CHECK(strstr(error.message, "nil pointer") && strstr(error.message, "at misbehave.go:"));
  tw_reply_release(&result.reply);
  CHECK(handled[SIGSEGV] == before);
}

int main(int argc, char **argv) {
  tw_error error;
  size_t i;
  if (argc != 2) {
    fputs("usage: signals ADDRESS\n", stderr);
    return 2;
  }
  for (i = 0; i < COUNT; i++) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handle;
    if (sigaction(signals[i], &action, NULL) != 0) {
      return 1;
    }
  }
  REQUIRE_OK(probe_open(argv[1], &library, &error), error);
  REQUIRE_OK(probe_client_open(&library, 8, &client, &error), error);
  guest_is_called();
  RUN(handlers_of_the_program_are_called);
  RUN(wrong_access_of_the_program_is_handled);
  RUN(end_of_a_child_is_handled);
  RUN(wrong_access_of_the_guest_is_a_panic);
  probe_client_close(&client, &error);
  return done("signals");
}
