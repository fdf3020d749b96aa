/* The JSON form of values that conformance/README.md describes: what the runners in C and C++ share. */
#ifndef JSON_H
#define JSON_H

#include <jansson.h>

#include "thalweg_client.h"

/* Memory of values, which is freed after the scenario. */
typedef struct allocation {
  struct allocation *next;
  union {
    double number;
    void *pointer;
  } data[1];
} allocation;

static allocation *allocations = NULL;

static inline void *allocate(size_t size) {
  allocation *memory = (allocation *)calloc(1, sizeof(allocation) + size);
  if (!memory) {
    abort();
  }
  memory->next = allocations;
  allocations = memory;
  return memory->data;
}

static inline void free_all(void) {
  while (allocations) {
    allocation *next = allocations->next;
    free(allocations);
    allocations = next;
  }
}

static inline uint64_t number(const json_t *step, const char *key, uint64_t otherwise) {
  const json_t *json = json_object_get(step, key);
  return json ? (uint64_t)json_integer_value(json) : otherwise;
}

static inline bool is_name(const json_t *json, const char *name) {
  return json_is_string(json) && strcmp(json_string_value(json), name) == 0;
}

static inline void not_a_value(const json_t *json) {
  char *text = json_dumps(json, JSON_ENCODE_ANY);
  fprintf(stderr, "not a value of its type: %s\n", text ? text : "nothing");
  free(text);
  exit(2);
}

/* Lists, also with one repeated element. */
static inline size_t item_count(const json_t *json) {
  if (json_is_object(json)) {
    return (size_t)json_integer_value(json_object_get(json, "count"));
  }
  return json_array_size(json);
}

static inline const json_t *item_at(const json_t *json, size_t index) {
  return json_is_object(json) ? json_object_get(json, "repeat") : json_array_get(json, index);
}

/* Text and bytes, also with one repeated piece. */
static inline void text_from(const json_t *json, tw_text *out) {
  const json_t *piece = json_is_object(json) ? json_object_get(json, "repeat") : json;
  size_t times = json_is_object(json) ? item_count(json) : 1;
  size_t size = json_string_length(piece);
  char *data = (char *)allocate(size * times);
  size_t i;
  if (!json_is_string(piece)) {
    not_a_value(json);
  }
  for (i = 0; i < times; i++) {
    memcpy(data + i * size, json_string_value(piece), size);
  }
  out->data = data;
  out->size = size * times;
}

static inline void bytes_from(const json_t *json, tw_bytes *out) {
  tw_text hex;
  uint8_t *data;
  size_t i;
  text_from(json, &hex);
  data = (uint8_t *)allocate(hex.size / 2);
  for (i = 0; i < hex.size / 2; i++) {
    const char digits[3] = {hex.data[2 * i], hex.data[2 * i + 1], '\0'};
    data[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
  out->data = data;
  out->size = hex.size / 2;
}

static inline bool bytes_is(const uint8_t *base, tw_bytes value, const json_t *json) {
  tw_bytes wanted;
  (void)base;
  bytes_from(json, &wanted);
  return value.size == wanted.size && memcmp(value.data, wanted.data, value.size) == 0;
}

/* Whether a message is equal to the one that the step has under `key`. True if it has none. */
static inline bool bytes_are(const json_t *step, const char *key, const uint8_t *data,
                             uint64_t size) {
  const tw_bytes bytes = {data, (size_t)size};
  return !json_object_get(step, key) || bytes_is(NULL, bytes, json_object_get(step, key));
}

/* A char is a string of one character. */
static inline void char_from(const json_t *json, uint32_t *out) {
  static const uint8_t lead[] = {0x7f, 0x7f, 0x1f, 0x0f, 0x07};
  size_t size = json_string_length(json);
  size_t i;
  if (size < 1 || size > 4) {
    not_a_value(json);
  }
  *out = (uint8_t)json_string_value(json)[0] & lead[size];
  for (i = 1; i < size; i++) {
    *out = *out << 6 | ((uint8_t)json_string_value(json)[i] & 0x3f);
  }
}

static inline uint32_t label_of(const json_t *json, const char *const *labels, size_t count) {
  size_t i;
  for (i = 0; json_is_string(json) && i < count; i++) {
    if (strcmp(labels[i], json_string_value(json)) == 0) {
      return (uint32_t)i;
    }
  }
  not_a_value(json);
  return 0;
}

static inline uint32_t flags_of(const json_t *json, const char *const *labels, size_t count) {
  uint32_t flags = 0;
  size_t i;
  for (i = 0; i < json_array_size(json); i++) {
    flags |= UINT32_C(1) << label_of(json_array_get(json, i), labels, count);
  }
  return flags;
}

#endif
