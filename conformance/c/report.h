/* Loading the scenarios, and the report: see conformance/README.md. */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

#include "json.h"

static const char *scenario;
static int failures = 0;
static json_t *verdicts = NULL;
static int reported_failures = 0;

/* Reports that a step failed. */
static inline void fail(const char *what, const char *detail) {
  fprintf(stderr, "%s: %s: %s\n", scenario, what, detail);
  failures++;
}

/* Checks an outcome: the name of its code, or one of several, and a part of its message. */
static inline void check_outcome(const json_t *step, uint32_t code, uint32_t regular,
                                 const char *message) {
  const json_t *wanted = json_object_get(step, "ends");
  const char *part = json_string_value(json_object_get(step, "message"));
  size_t i = 0;
  if (wanted ? !is_name(wanted, tw_code_name(code)) : code != regular) {
    while (i < json_array_size(wanted) && !is_name(json_array_get(wanted, i), tw_code_name(code))) {
      i++;
    }
    if (i == json_array_size(wanted)) {
      fail("another outcome", tw_code_name(code));
    }
  }
  if (part && !strstr(message, part)) {
    fail("another message", message);
  }
}

/* The records of a stream that a runner has read. */
typedef struct record_counts {
  uint64_t elements;
  uint64_t controls;
  uint64_t lost;
  uint64_t gap; /* the last gap reason */
} record_counts;

static inline void count_lost(record_counts *counts, uint64_t lost_before, uint32_t gap_reason) {
  counts->lost += lost_before;
  counts->gap = lost_before ? gap_reason : counts->gap;
}

static inline bool counts_are(const json_t *wanted, const record_counts *counts) {
  const json_t *elements = json_object_get(wanted, "elements");
  const json_t *controls = json_object_get(wanted, "controls");
  const uint64_t total = counts->elements + counts->lost;
  return (!elements || counts->elements == json_array_size(elements)) &&
         (!controls || counts->controls == json_array_size(controls)) &&
         counts->elements == number(wanted, "count", counts->elements) &&
         total == number(wanted, "total", total) &&
         counts->gap == number(wanted, "gap", counts->gap);
}

static inline bool stats_are(const json_t *step, const tw_stats *stats) {
  uint64_t lost = 0;
  size_t i;
  for (i = 0; i < sizeof(stats->lost) / sizeof(stats->lost[0]); i++) {
    lost += stats->lost[i];
  }
  return stats->streams == number(step, "streams", stats->streams) &&
         stats->published == number(step, "published", stats->published) &&
         stats->delivered == number(step, "delivered", stats->delivered) &&
         stats->undelivered == number(step, "undelivered", stats->undelivered) &&
         stats->occupancy == number(step, "occupancy", stats->occupancy) &&
         stats->control == number(step, "control", stats->control) &&
         lost == number(step, "lost", lost);
}

/* Prints an error and returns NULL if the file cannot be read. */
static inline json_t *load_scenarios(const char *path) {
  json_error_t where;
  json_t *scenarios = json_load_file(path, JSON_ALLOW_NUL, &where);
  if (!scenarios) {
    fprintf(stderr, "%s: %s\n", path, where.text);
  }
  verdicts = json_array();
  return scenarios;
}

/* Adds the verdict of the current scenario. */
static inline void report_scenario(void) {
  const char *verdict = failures == reported_failures ? "ok" : "failed";
  reported_failures = failures;
  json_array_append_new(verdicts, json_pack("{s:s, s:s}", "name", scenario, "verdict", verdict));
}

/* Writes the report and prints a summary. Returns the exit status. */
static inline int write_report(const char *path, const char *language, const char *version) {
  const unsigned count = (unsigned)json_array_size(verdicts);
  json_t *report =
      json_pack("{s:s, s:s, s:o}", "language", language, "version", version, "scenarios", verdicts);
  const int written = json_dump_file(report, path, JSON_INDENT(1));
  if (written != 0) {
    fprintf(stderr, "%s: the report cannot be written\n", path);
  }
  json_decref(report);
  printf("conformance: %u scenarios, %d failures\n", count, reported_failures);
  return written == 0 && reported_failures == 0 ? 0 : 1;
}

#endif
