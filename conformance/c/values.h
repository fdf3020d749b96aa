/* Values in the JSON form that conformance/README.md describes. The generated tables use this
 * file. */
#ifndef VALUES_H
#define VALUES_H

#include "json.h"

#define MILLISECOND UINT64_C(1000000)

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

/* ---- Text ---- */

static inline bool text_is(const uint8_t *base, tw_text value, const json_t *json) {
  tw_text wanted;
  (void)base;
  text_from(json, &wanted);
  return tw_text_equal(value, wanted);
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

#endif
