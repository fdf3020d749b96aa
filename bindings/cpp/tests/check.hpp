/// Checks and test runs. A failed CHECK is printed and counted; `done` returns the exit status.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "conformance.hpp"

inline int checks_failed = 0;
inline int tests_run = 0;
inline const char *library = nullptr;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                 \
      checks_failed++;                                                                             \
    }                                                                                              \
  } while (false)

/// Checks that a result is an error of this outcome.
#define CHECK_FAILS(result, wanted)                                                                \
  do {                                                                                             \
    const auto &checked = (result);                                                                \
    if (checked.has_value() || checked.error().code() != thalweg::outcome::wanted) {               \
      std::fprintf(stderr, "%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #result,               \
                   checked.has_value() ? "ok" : checked.error().name(), #wanted);                  \
      checks_failed++;                                                                             \
    }                                                                                              \
  } while (false)

#define RUN(test)                                                                                  \
  do {                                                                                             \
    const int failed_before = checks_failed;                                                       \
    test();                                                                                        \
    tests_run++;                                                                                   \
    if (checks_failed != failed_before) {                                                          \
      std::fprintf(stderr, "FAILED %s\n", #test);                                                  \
    }                                                                                              \
  } while (false)

/// The value of a result; ends the program if there is an error.
template <class R> auto require(R &&result) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", result.error().name(), result.error().message().data());
    std::exit(1);
  }
  return std::move(*result);
}

template <class R> void require_ok(R &&result) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", result.error().name(), result.error().message().data());
    std::exit(1);
  }
}

inline conformance::client open_client(std::uint32_t capacity = 16) {
  return require(conformance::client::open(library, capacity));
}

inline void begin(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    std::exit(2);
  }
  library = argv[1];
}

inline int done(const char *name) {
  std::printf("%s: %d tests, %d checks failed\n", name, tests_run, checks_failed);
  return checks_failed == 0 ? 0 : 1;
}

#endif
