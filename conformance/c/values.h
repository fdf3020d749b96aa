/* Values in the JSON form that conformance/README.md describes. The generated tables use this
 * file. */
#ifndef VALUES_H
#define VALUES_H

#include <jansson.h>

#include "thalweg_client.h"

#define MILLISECOND UINT64_C(1000000)

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

/* A resource that the scenario refers to by a name. */
typedef struct named_resource {
  const char *name;
  tw_resource resource;
} named_resource;

#define MAX_RESOURCES 16

typedef struct named_resources {
  named_resource all[MAX_RESOURCES];
  size_t count;
} named_resources;

static inline bool is_name(const json_t *json, const char *name) {
  return json_is_string(json) && strcmp(json_string_value(json), name) == 0;
}

/* Closes the resource with this name, or all. Resources that were passed to the service are
 * stale. */
static inline void drop_resource(named_resources *resources, const char *name) {
  size_t i;
  for (i = resources->count; i-- > 0;) {
    if (!name || strcmp(resources->all[i].name, name) == 0) {
      tw_resource_close(&resources->all[i].resource, NULL);
    }
  }
  resources->count = name ? resources->count : 0;
}

/* Adds a resource under a name. Closes the previous one with this name. */
static inline void keep_resource(named_resources *resources, const char *name,
                                 const tw_table *table, tw_handle handle) {
  size_t i = 0;
  while (i < resources->count && strcmp(resources->all[i].name, name) != 0) {
    i++;
  }
  if (i == MAX_RESOURCES) {
    abort();
  }
  if (i == resources->count) {
    resources->count++;
  } else {
    tw_resource_close(&resources->all[i].resource, NULL);
  }
  resources->all[i].name = name;
  resources->all[i].resource.table = table;
  resources->all[i].resource.handle = handle;
}

typedef struct given {
  const json_t *params;
  const named_resource *resources;
  size_t resource_count;
} given;

typedef struct expected {
  const json_t *ok;    /* NULL: any value */
  const json_t *error; /* NULL: any value */
  bool agrees;
  tw_handle handle; /* out: the stream or resource */
} expected;

/* A method in the generated table. */
typedef struct method {
  const char *name;
  uint32_t (*prepare)(const tw_client *client, const given *given, tw_request *request,
                      tw_error *error);
  uint32_t (*read)(const tw_client *client, tw_completion *completion, expected *expected,
                   tw_error *error);
  bool (*element_is)(const uint8_t *base, const void *record, const json_t *json);
  uint32_t element_size;
} method;

static inline void not_a_value(const json_t *json) {
  char *text = json_dumps(json, JSON_ENCODE_ANY);
  fprintf(stderr, "not a value of its type: %s\n", text ? text : "nothing");
  free(text);
  exit(2);
}

static inline tw_resource resource_of(const given *given, const json_t *json) {
  const char *name = json_string_value(json_object_get(json, "resource"));
  size_t i;
  for (i = 0; name && i < given->resource_count; i++) {
    if (strcmp(given->resources[i].name, name) == 0) {
      return given->resources[i].resource;
    }
  }
  not_a_value(json);
  return given->resources[0].resource;
}

/* The resources for the arguments that are being filled in. */
static const given *current_given = NULL;

static inline void handle_from(const json_t *json, tw_resource *out) {
  *out = resource_of(current_given, json);
}

/* The reply that contains the value that is being compared. */
static tw_reply *current_reply = NULL;

/* JSON cannot describe a resource in a result. */
static inline bool handle_is(const uint8_t *base, tw_handle_ref value, const json_t *json) {
  (void)base;
  (void)value;
  (void)json;
  return true;
}

/* ---- Lists, also with one repeated element ---- */

static inline size_t item_count(const json_t *json) {
  if (json_is_object(json)) {
    return (size_t)json_integer_value(json_object_get(json, "count"));
  }
  return json_array_size(json);
}

static inline const json_t *item_at(const json_t *json, size_t index) {
  return json_is_object(json) ? json_object_get(json, "repeat") : json_array_get(json, index);
}

/* ---- Scalars ---- */

#define NUMBER(name, type)                                                                         \
  static inline void name##_from(const json_t *json, type *out) {                                  \
    *out = (type)json_integer_value(json);                                                         \
    if (!json_is_integer(json) || (json_int_t)*out != json_integer_value(json)) {                  \
      not_a_value(json);                                                                           \
    }                                                                                              \
  }                                                                                                \
  static inline bool name##_is(const uint8_t *base, type value, const json_t *json) {              \
    (void)base;                                                                                    \
    return json_is_integer(json) && (json_int_t)value == json_integer_value(json);                 \
  }

/* Numbers that JSON cannot represent: text that `parse` reads. Compared bit by bit. */
#define WRITTEN(name, type, bits, parse)                                                           \
  static inline void name##_from(const json_t *json, type *out) {                                  \
    const char *text = json_string_value(json);                                                    \
    bits value;                                                                                    \
    if (!text) {                                                                                   \
      not_a_value(json);                                                                           \
    }                                                                                              \
    value = (bits)parse(text, NULL, 0);                                                            \
    memcpy(out, &value, sizeof(*out));                                                             \
  }                                                                                                \
  static inline bool name##_is(const uint8_t *base, type value, const json_t *json) {              \
    type wanted;                                                                                   \
    (void)base;                                                                                    \
    name##_from(json, &wanted);                                                                    \
    return memcmp(&value, &wanted, sizeof(value)) == 0;                                            \
  }

NUMBER(u8, uint8_t)
NUMBER(u16, uint16_t)
NUMBER(u32, uint32_t)
NUMBER(s8, int8_t)
NUMBER(s16, int16_t)
NUMBER(s32, int32_t)
WRITTEN(u64, uint64_t, uint64_t, strtoull)
WRITTEN(s64, int64_t, int64_t, strtoll)
WRITTEN(f32, float, uint32_t, strtoull)
WRITTEN(f64, double, uint64_t, strtoull)

static inline void bool_from(const json_t *json, bool *out) {
  *out = json_is_true(json);
}

static inline bool bool_is(const uint8_t *base, bool value, const json_t *json) {
  (void)base;
  return json_is_boolean(json) && value == json_is_true(json);
}

/* ---- Text and bytes, also with one repeated piece ---- */

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

static inline bool text_is(const uint8_t *base, tw_text value, const json_t *json) {
  tw_text wanted;
  (void)base;
  text_from(json, &wanted);
  return tw_text_equal(value, wanted);
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

static inline bool char_is(const uint8_t *base, uint32_t value, const json_t *json) {
  uint32_t wanted;
  (void)base;
  char_from(json, &wanted);
  return value == wanted;
}

/* ---- Names ---- */

/* Whether a variant has this case, or a result this side. */
static inline bool is_case(const json_t *json, const char *name) {
  const json_t *named = json_object_get(json, "case");
  return named ? strcmp(json_string_value(named), name) == 0 : json_object_get(json, name) != NULL;
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
