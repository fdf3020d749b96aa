/* Names of outcomes, and filling in a tw_error. C99 and C++17, header-only. */
#ifndef THALWEG_ERROR_H
#define THALWEG_ERROR_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "thalweg.h"

/* The name of a tw_code in lower case, such as "timed_out". "unknown" for any other number. */
static inline const char *tw_code_name(uint32_t code) {
  static const char *const names[] = {"ok",         "error",          "cancelled",  "timed_out",
                                      "guest_lost", "guest_panicked", "overloaded", "shut_down",
                                      "closed",     "stale",          "argument",   "version",
                                      "forked",     "interrupted",    "would_park"};
  return code < sizeof(names) / sizeof(names[0]) ? names[code] : "unknown";
}

/* Fills in `*error`, if not NULL, with `size` bytes of UTF-8, truncated at a character boundary.
 * Returns `code`. */
static inline uint32_t tw_fail_with(tw_error *error, uint32_t code, uint32_t retryable,
                                    const char *message, size_t size) {
  if (!error) {
    return code;
  }
  if (size >= sizeof(error->message)) {
    size = sizeof(error->message) - 1;
    while (size > 0 && ((unsigned char)message[size] & 0xc0) == 0x80) {
      size--;
    }
  }
  error->code = code;
  error->retryable = retryable;
  if (size > 0) {
    memcpy(error->message, message, size);
  }
  error->message[size] = '\0';
  return code;
}

/* The same with a format of printf. Only TW_OVERLOADED is retryable. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline uint32_t
tw_fail(tw_error *error, uint32_t code, const char *format, ...) {
  char text[1024];
  va_list arguments;
  int size;
  va_start(arguments, format);
  size = vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (size < 0) {
    size = 0;
  }
  return tw_fail_with(error, code, code == TW_OVERLOADED, text,
                      (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1);
}

#endif
