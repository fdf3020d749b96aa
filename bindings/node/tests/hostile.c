/* Wraps the library THALWEG_HOSTILE_REAL and damages its answers. Environment variables, which a
 * test sets while it runs, say how: THALWEG_HOSTILE_REPLY replaces the data of completions (in hex),
 * and THALWEG_HOSTILE_BATCH ("WHAT AT VALUE") changes batches. Each buffer has exactly the size of
 * its data, so a sanitizer detects a read past the end. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg.h"

const tw_table *tw_library(uint32_t abi);

enum { NOTHING, BYTE, SIZE, COUNT, STRIDE, SLOTS };

static const tw_table *real;
static tw_table table;
static uint8_t *answer;
static uint8_t *copy;

static uint32_t reap(tw_handle port, tw_completion *out, uint32_t max, uint32_t *count,
                     tw_error *error) {
  const char *hex = getenv("THALWEG_HOSTILE_REPLY");
  uint32_t code = real->port_reap(port, out, max, count, error);
  uint32_t i;
  if (!hex || !*hex || code != TW_OK || *count == 0) {
    return code;
  }
  if (strcmp(hex, "-") == 0) {
    hex = "";
  }
  free(answer);
  answer = (uint8_t *)malloc(strlen(hex) / 2 + (*hex == 0));
  for (i = 0; hex[2 * i]; i++) {
    unsigned byte = 0;
    sscanf(hex + (size_t)2 * i, "%2x", &byte);
    answer[i] = (uint8_t)byte;
  }
  for (i = 0; i < *count; i++) {
    out[i].data = answer;
    out[i].data_size = strlen(hex) / 2;
  }
  return code;
}

static uint32_t acquire(tw_handle stream, uint32_t max, uint64_t deadline_ns, tw_batch *out,
                        tw_error *error) {
  const char *change = getenv("THALWEG_HOSTILE_BATCH");
  uint32_t code = real->stream_acquire(stream, max, deadline_ns, out, error);
  unsigned what = NOTHING;
  unsigned long at = 0;
  unsigned long value = 0;
  if (code != TW_OK || !change || sscanf(change, "%u %lu %lu", &what, &at, &value) != 3) {
    return code;
  }
  free(copy);
  copy = (uint8_t *)malloc(out->size);
  memcpy(copy, out->base, out->size);
  out->slots = copy + (out->slots - out->base);
  out->base = copy;
  switch (what) {
  case BYTE:
    copy[at % out->size] = (uint8_t)value;
    break;
  case SIZE:
    out->size = value;
    break;
  case COUNT:
    out->count = (uint32_t)value;
    break;
  case STRIDE:
    out->stride = (uint32_t)value;
    break;
  default:
    out->slots = (const uint8_t *)((uintptr_t)copy + (uintptr_t)value);
    break;
  }
  return code;
}

const tw_table *tw_library(uint32_t abi) {
  const char *path = getenv("THALWEG_HOSTILE_REAL");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  tw_library_function function = NULL;
  if (!library) {
    return NULL;
  }
  *(void **)&function = dlsym(library, "tw_library");
  real = function(abi);
  table = *real;
  table.port_reap = reap;
  table.stream_acquire = acquire;
  return &table;
}
