/* Wraps another library and replaces its answers. `reply` sets the data of the next completions
 * that carry data, and `change` alters the next batches. Each buffer has exactly the size of its
 * data. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg.h"

const tw_table *tw_library(uint32_t abi);
int wrap(const char *path);
void reply(const uint8_t *bytes, uint64_t size);
void honest(void);
uint64_t last(uint8_t *bytes, uint64_t capacity);
void change(uint32_t what, uint64_t at, uint64_t value);
uint64_t shown(void);
uint32_t judge(const char *method, uint32_t part, const uint8_t *bytes, uint64_t size);

enum { NOTHING, BYTE, SIZE, COUNT, STRIDE, SLOTS };

static const tw_table *real;
static tw_table table;
static uint8_t *answer;
static uint64_t answer_size;
static uint8_t *seen;
static uint64_t seen_size;
static uint32_t changed;
static uint64_t change_at;
static uint64_t change_to;
static uint8_t *copy;
static uint64_t copied;

/* Copies BYTES to memory of exactly SIZE bytes, so that a sanitizer detects a read past the end. */
static uint8_t *just(const uint8_t *bytes, uint64_t size) {
  uint8_t *memory = (uint8_t *)malloc(size > 0 ? (size_t)size : 1);
  if (size > 0) {
    memcpy(memory, bytes, (size_t)size);
  }
  return memory;
}

static uint32_t reap(tw_handle port, tw_completion *out, uint32_t max, uint32_t *count,
                     tw_error *error) {
  uint32_t code = real->port_reap(port, out, max, count, error);
  uint32_t i;
  for (i = 0; code == TW_OK && i < *count; i++) {
    if (out[i].data_size > 0) {
      free(seen);
      seen = just(out[i].data, out[i].data_size);
      seen_size = out[i].data_size;
      if (answer != NULL) {
        out[i].data = answer;
        out[i].data_size = answer_size;
      }
    }
  }
  return code;
}

static uint32_t acquire(tw_handle stream, uint32_t max, uint64_t deadline_ns, tw_batch *out,
                        tw_error *error) {
  uint32_t code = real->stream_acquire(stream, max, deadline_ns, out, error);
  if (code != TW_OK || changed == NOTHING) {
    return code;
  }
  free(copy);
  copy = just(out->base, out->size);
  copied = out->size;
  out->slots = copy + (out->slots - out->base);
  out->base = copy;
  switch (changed) {
  case BYTE:
    copy[change_at % copied] = (uint8_t)change_to;
    break;
  case SIZE:
    out->size = change_to;
    break;
  case COUNT:
    out->count = (uint32_t)change_to;
    break;
  case STRIDE:
    out->stride = (uint32_t)change_to;
    break;
  default:
    out->slots = (const uint8_t *)((uintptr_t)copy + (uintptr_t)change_to);
    break;
  }
  return code;
}

int wrap(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const tw_table *(*function)(uint32_t) = NULL;
  if (library == NULL) {
    return 1;
  }
  *(void **)&function = dlsym(library, "tw_library");
  real = function(TW_ABI);
  table = *real;
  table.port_reap = reap;
  table.stream_acquire = acquire;
  return 0;
}

const tw_table *tw_library(uint32_t abi) {
  (void)abi;
  return &table;
}

void reply(const uint8_t *bytes, uint64_t size) {
  free(answer);
  answer = just(bytes, size);
  answer_size = size;
}

void honest(void) {
  free(answer);
  answer = NULL;
  changed = NOTHING;
}

uint64_t last(uint8_t *bytes, uint64_t capacity) {
  if (seen_size <= capacity) {
    memcpy(bytes, seen, (size_t)seen_size);
  }
  return seen_size;
}

void change(uint32_t what, uint64_t at, uint64_t value) {
  changed = what;
  change_at = at;
  change_to = value;
}

uint64_t shown(void) {
  return copied;
}

/* The core's verdict on the message: TW_OK or TW_ARGUMENT. */
uint32_t judge(const char *method, uint32_t part, const uint8_t *bytes, uint64_t size) {
  uint8_t out[65536];
  uint64_t written = 0;
  uint32_t i;
  for (i = 0; i < real->method_count; i++) {
    const char *line = (const char *)real->methods[i].description;
    const char *end = line + real->methods[i].description_size;
    if (strcmp(real->methods[i].name, method) == 0) {
      const char *next;
      for (; (next = memchr(line, '\n', (size_t)(end - line))) != NULL && part > 0; part--) {
        line = next + 1;
      }
      next = next != NULL ? next : end;
      return real->transcode((const uint8_t *)line, (uint64_t)(next - line), TW_CBOR, bytes, size,
                             out, sizeof(out), &written, NULL);
    }
  }
  return TW_STALE;
}
