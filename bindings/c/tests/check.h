/* Checks and test runs. A failed CHECK is printed and counted; `done` returns the exit status. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int checks_failed = 0;
static int tests_run = 0;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                      \
      checks_failed++;                                                                             \
    }                                                                                              \
  } while (0)

/* Checks a tw_code. Prints the names of both codes. */
#define CHECK_CODE(code, wanted)                                                                   \
  do {                                                                                             \
    uint32_t check_code = (code);                                                                  \
    if (check_code != (uint32_t)(wanted)) {                                                        \
      fprintf(stderr, "%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #code,                      \
              tw_code_name(check_code), tw_code_name(wanted));                                     \
      checks_failed++;                                                                             \
    }                                                                                              \
  } while (0)

/* Ends the program unless the code is TW_OK. */
#define REQUIRE_OK(code, error)                                                                    \
  do {                                                                                             \
    uint32_t require_code = (code);                                                                \
    if (require_code != TW_OK) {                                                                   \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #code,                            \
              tw_code_name(require_code), (error).message);                                        \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* Runs a test. */
#define RUN(test)                                                                                  \
  do {                                                                                             \
    int failed_before = checks_failed;                                                             \
    test();                                                                                        \
    tests_run++;                                                                                   \
    if (checks_failed != failed_before) {                                                          \
      fprintf(stderr, "FAILED %s\n", #test);                                                       \
    }                                                                                              \
  } while (0)

static inline int done(const char *name) {
#ifdef __SANITIZE_ADDRESS__
  /* LeakSanitizer does not search the stacks of actors, so it reports what an actor that is about to
     end still holds. */
  const struct timespec pause = {0, 300 * 1000 * 1000};
  nanosleep(&pause, NULL);
#endif
  printf("%s: %d tests, %d checks failed\n", name, tests_run, checks_failed);
  return checks_failed == 0 ? 0 : 1;
}

#endif
