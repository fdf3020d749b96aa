/* What a test needs: CHECK counts and reports, RUN names the situation, `done` is main's result. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

static int checks_failed = 0;
static int tests_run = 0;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                      \
      checks_failed++;                                                                             \
    }                                                                                              \
  } while (0)

/* A code that must be another's, both named. */
#define CHECK_CODE(code, wanted)                                                                   \
  do {                                                                                             \
    uint32_t check_code = (code);                                                                  \
    if (check_code != (uint32_t)(wanted)) {                                                        \
      fprintf(stderr, "%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #code,                      \
              tw_code_name(check_code), tw_code_name(wanted));                                     \
      checks_failed++;                                                                             \
    }                                                                                              \
  } while (0)

/* What the rest of the test stands on: without it, the program ends. */
#define REQUIRE_OK(code, error)                                                                    \
  do {                                                                                             \
    uint32_t require_code = (code);                                                                \
    if (require_code != TW_OK) {                                                                   \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #code,                            \
              tw_code_name(require_code), (error).message);                                        \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

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
  printf("%s: %d tests, %d checks failed\n", name, tests_run, checks_failed);
  return checks_failed == 0 ? 0 : 1;
}

#endif
