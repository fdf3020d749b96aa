/* The file of scenarios, and the report of how they came out: see conformance/README.md. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdio.h>

static json_t *verdicts = NULL;
static int reported_failures = 0;

/* NULL where the file cannot be read, which is said. */
static inline json_t *load_scenarios(const char *path) {
  json_error_t where;
  json_t *scenarios = json_load_file(path, JSON_ALLOW_NUL, &where);
  if (!scenarios) {
    fprintf(stderr, "%s: %s\n", path, where.text);
  }
  verdicts = json_array();
  return scenarios;
}

/* A scenario has ended, and there were `failures` in all so far. */
static inline void report_scenario(const char *name, int failures) {
  const char *verdict = failures == reported_failures ? "ok" : "failed";
  reported_failures = failures;
  json_array_append_new(verdicts, json_pack("{s:s, s:s}", "name", name, "verdict", verdict));
}

/* Writes the report and says how it went; the program's status. */
static inline int write_report(const char *path) {
  const unsigned count = (unsigned)json_array_size(verdicts);
  json_t *report =
      json_pack("{s:s, s:s, s:o}", "language", "C", "version", "C99", "scenarios", verdicts);
  const int written = json_dump_file(report, path, JSON_INDENT(1));
  if (written != 0) {
    fprintf(stderr, "%s: the report cannot be written\n", path);
  }
  json_decref(report);
  printf("conformance: %u scenarios, %d failures\n", count, reported_failures);
  return written == 0 && reported_failures == 0 ? 0 : 1;
}

#endif
