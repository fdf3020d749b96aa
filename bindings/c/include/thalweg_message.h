/* Writing, checking and viewing messages. C99 and C++17, header-only.
 *
 * thalweg.h describes the layout. The header of a package uses this file; a program itself needs
 * little more than tw_text and tw_bytes.
 *
 * The core checks every message that it receives (bounds, UTF-8, bool, char,
 * discriminants), and a call with a malformed message ends as TW_ARGUMENT. The header of a package
 * checks every result once with the tw_check_* functions, before it hands out pointers into it:
 * bounds, order of the tails, bool, char and discriminants. It relies on the core for UTF-8.
 */
#ifndef THALWEG_MESSAGE_H
#define THALWEG_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Thalweg's messages are little-endian, and this header reads them in place"
#endif

/* A check at compile time. `condition` is constant. */
#if defined(__cplusplus)
#define TW_STATIC_CHECK(condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TW_STATIC_CHECK(condition) _Static_assert(condition, #condition)
#else
#define TW_STATIC_CHECK(condition) extern char tw_static_check[(condition) ? 1 : -1]
#endif

/* Generated structs are read in place, so the compiler must lay them out like the message. */
#define TW_SIZE(type, bytes) TW_STATIC_CHECK(sizeof(type) == (bytes))
#define TW_OFFSET(type, member, bytes) TW_STATIC_CHECK(offsetof(type, member) == (bytes))

TW_SIZE(bool, 1);
TW_SIZE(tw_slice, 8);
TW_SIZE(tw_message, 16);

/* The largest message, in bytes. */
#define TW_MESSAGE_MAX 0x7fffffffu

/* ---- Text and bytes -------------------------------------------------------------------------- */

/* UTF-8, not NUL-terminated. May contain NUL characters. */
typedef struct tw_text {
  const char *data;
  size_t size; /* in bytes */
} tw_text;

/* `list<u8>` in WIT. */
typedef struct tw_bytes {
  const uint8_t *data;
  size_t size;
} tw_bytes;

/* A resource, stream or future inside a result: its index in the message's handles.
 * tw_reply_take_handle takes it out. */
typedef struct tw_handle_ref {
  uint32_t index;
} tw_handle_ref;

TW_SIZE(tw_handle_ref, 4);

/* An object in the service that belongs to the caller. In a guest, an object for a result:
 * tw_incoming_new_resource. */
typedef struct tw_resource {
  const tw_table *table; /* NULL in a guest */
  tw_handle handle;
} tw_resource;

/* The text of a NUL-terminated string, which it borrows; for NULL the empty text. */
static inline tw_text tw_text_of(const char *string) {
  tw_text text;
  text.data = string;
  text.size = string ? strlen(string) : 0;
  return text;
}

static inline bool tw_text_equal(tw_text a, tw_text b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* A message under construction. Small messages need no allocation. Do not move the struct between
 * tw_writer_begin and tw_writer_free. The first failure is kept in `status`: later functions then
 * do nothing, and tw_writer_end returns it. */
typedef struct tw_writer {
  uint8_t *data;
  uint32_t size;
  uint32_t capacity;
  uint32_t status;      /* TW_OVERLOADED: no memory. TW_ARGUMENT: a NULL pointer, or too large */
  uint32_t handles;     /* entries in the table of handles */
  uint32_t handles_put; /* entries written so far */
  bool is_fixed;        /* `data` cannot grow: it is memory of the stream */
  uint64_t small[32];
} tw_writer;

/* Adds capacity for `size` more bytes. */
static inline bool tw_writer_grow(tw_writer *writer, uint64_t size) {
  uint64_t wanted = (uint64_t)writer->size + size;
  uint64_t capacity = (uint64_t)writer->capacity * 2;
  uint8_t *data;
  if (wanted > TW_MESSAGE_MAX) {
    writer->status = TW_ARGUMENT;
    return false;
  }
  if (writer->is_fixed) {
    writer->status = TW_OVERLOADED;
    return false;
  }
  if (capacity < wanted) {
    capacity = wanted;
  }
  if (capacity > TW_MESSAGE_MAX) {
    capacity = TW_MESSAGE_MAX;
  }
  if (writer->data == (uint8_t *)writer->small) {
    data = (uint8_t *)malloc((size_t)capacity);
    if (data) {
      memcpy(data, writer->data, writer->size);
    }
  } else {
    data = (uint8_t *)realloc(writer->data, (size_t)capacity);
  }
  if (!data) {
    writer->status = TW_OVERLOADED;
    return false;
  }
  writer->data = data;
  writer->capacity = (uint32_t)capacity;
  return true;
}

/* Appends `size` zero bytes at the next multiple of `align`. Returns their offset. */
static inline uint32_t tw_writer_reserve(tw_writer *writer, uint64_t size, uint32_t align) {
  uint32_t pad = (align - writer->size % align) % align;
  uint64_t total = size + pad;
  uint32_t at;
  if (writer->status != TW_OK) {
    return 0;
  }
  if (size > TW_MESSAGE_MAX) {
    writer->status = TW_ARGUMENT;
    return 0;
  }
  if (total > writer->capacity - writer->size && !tw_writer_grow(writer, total)) {
    return 0;
  }
  memset(writer->data + writer->size, 0, (size_t)total);
  at = writer->size + pad;
  writer->size = at + (uint32_t)size;
  return at;
}

/* Writes `size` bytes at an offset that was reserved. */
static inline void tw_put(tw_writer *writer, uint32_t at, const void *value, size_t size) {
  if (writer->status == TW_OK) {
    memcpy(writer->data + at, value, size);
  }
}

/* Begins a message with a table of `handles` handles and a root of `root_size` bytes, whose layout
 * hash is `layout`. Returns the offset of the root. Call tw_writer_free afterwards, also after a
 * failure. */
static inline uint32_t tw_writer_begin(tw_writer *writer, uint64_t layout, uint32_t handles,
                                       uint32_t root_size) {
  tw_message header;
  writer->data = (uint8_t *)writer->small;
  writer->size = 0;
  writer->capacity = (uint32_t)sizeof(writer->small);
  writer->status = TW_OK;
  writer->handles = handles;
  writer->handles_put = 0;
  writer->is_fixed = false;
  header.size = 0;
  header.layout = (uint32_t)(layout & 0xffffffffu);
  header.handles = handles;
  header.root = (uint32_t)sizeof(header) + 8 * handles;
  tw_writer_reserve(writer, header.root, 8);
  tw_put(writer, 0, &header, sizeof(header));
  return tw_writer_reserve(writer, root_size, 8);
}

/* Whether `value` may be read; a NULL pointer makes the message fail with TW_ARGUMENT. */
static inline bool tw_writer_require(tw_writer *writer, const void *value) {
  if (!value && writer->status == TW_OK) {
    writer->status = TW_ARGUMENT;
  }
  return value != NULL;
}

/* Writes `handle` to the next entry of the table of handles, and the entry's index at `at`. */
static inline void tw_put_handle(tw_writer *writer, uint32_t at, tw_handle handle) {
  uint32_t index = writer->handles_put;
  if (writer->status != TW_OK) {
    return;
  }
  if (index >= writer->handles) {
    writer->status = TW_ARGUMENT;
    return;
  }
  writer->handles_put++;
  tw_put(writer, (uint32_t)sizeof(tw_message) + 8 * index, &handle, sizeof(handle));
  tw_put(writer, at, &index, sizeof(index));
}

/* Reserves the tail of a list and writes its slice at `at`. Returns the offset of the first
 * element. `items` is only compared with NULL. */
static inline uint32_t tw_put_list(tw_writer *writer, uint32_t at, const void *items, size_t count,
                                   uint32_t size, uint32_t align) {
  tw_slice slice;
  if (count == 0 || writer->status != TW_OK) {
    return 0; /* the empty list is {0, 0}, and reserved bytes are zero */
  }
  if (!items || count > TW_MESSAGE_MAX / size) {
    writer->status = TW_ARGUMENT;
    return 0;
  }
  slice.offset = tw_writer_reserve(writer, (uint64_t)count * size, align);
  slice.length = (uint32_t)count;
  tw_put(writer, at, &slice, sizeof(slice));
  return slice.offset;
}

/* Writes a list whose elements are copied as they are: no padding, no tails. */
static inline void tw_put_items(tw_writer *writer, uint32_t at, const void *items, size_t count,
                                uint32_t size, uint32_t align) {
  uint32_t first = tw_put_list(writer, at, items, count, size, align);
  if (count != 0) {
    tw_put(writer, first, items, count * size);
  }
}

static inline void tw_put_text(tw_writer *writer, uint32_t at, tw_text text) {
  tw_put_items(writer, at, text.data, text.size, 1, 1);
}

static inline void tw_put_bytes(tw_writer *writer, uint32_t at, tw_bytes bytes) {
  tw_put_items(writer, at, bytes.data, bytes.size, 1, 1);
}

/* Completes the message. Returns `status`. */
static inline uint32_t tw_writer_end(tw_writer *writer) {
  tw_put(writer, 0, &writer->size, sizeof(writer->size));
  return writer->status;
}

/* Frees the message. A second call has no effect. */
static inline void tw_writer_free(tw_writer *writer) {
  if (writer->data != (uint8_t *)writer->small) {
    free(writer->data);
    writer->data = (uint8_t *)writer->small;
  }
}

/* ---- Checking -------------------------------------------------------------------------------- */

/* A message that is being checked. Tails are in pre-order and never overlap: each begins at or
 * after `floor`, the end of the previous one. */
typedef struct tw_checker {
  const uint8_t *data;
  uint32_t size;
  uint32_t floor;
  uint32_t handles;     /* entries in the table of handles */
  uint32_t handles_met; /* entries that the value has referred to so far */
} tw_checker;

/* Checks the value at `place`, which is inside the message and aligned. */
typedef bool (*tw_check)(tw_checker *checker, const void *place);

/* Checks a message's header against the layout hash of the expected root. Returns the root, which
 * has at least `root_size` bytes; NULL if the message is malformed. */
static inline const void *tw_check_root(tw_checker *checker, const uint8_t *data,
                                        uint64_t data_size, uint64_t layout, uint32_t root_size) {
  tw_message header;
  if (!data || (uintptr_t)data % 8 != 0 || data_size < sizeof(header) ||
      data_size > TW_MESSAGE_MAX) {
    return NULL;
  }
  memcpy(&header, data, sizeof(header));
  if (header.size != data_size || header.layout != (uint32_t)(layout & 0xffffffffu)) {
    return NULL;
  }
  if (header.handles > (header.size - sizeof(header)) / 8 ||
      header.root != sizeof(header) + 8 * header.handles || root_size > header.size - header.root) {
    return NULL;
  }
  checker->data = data;
  checker->size = header.size;
  checker->floor = header.root + root_size;
  checker->handles = header.handles;
  checker->handles_met = 0;
  return data + header.root;
}

/* Checks the bounds of a list. Returns its first element; a pointer that must not be read if it is
 * empty; NULL if it is malformed. */
static inline const void *tw_check_list(tw_checker *checker, tw_slice slice, uint32_t size,
                                        uint32_t align) {
  uint64_t bytes = (uint64_t)slice.length * size;
  if (slice.length == 0) {
    return slice.offset == 0 ? checker->data : NULL;
  }
  if (slice.offset < checker->floor || slice.offset % align != 0 || slice.offset > checker->size ||
      bytes > checker->size - slice.offset) {
    return NULL;
  }
  checker->floor = slice.offset + (uint32_t)bytes;
  return checker->data + slice.offset;
}

/* A string or list<u8>: a slice of bytes. */
static inline bool tw_check_text(tw_checker *checker, const void *place) {
  return tw_check_list(checker, *(const tw_slice *)place, 1, 1) != NULL;
}

/* A handle. They are numbered in the order of their fields, and each is used once. */
static inline bool tw_check_handle(tw_checker *checker, const void *place) {
  uint32_t index = ((const tw_handle_ref *)place)->index;
  return index < checker->handles && index == checker->handles_met++;
}

/* After the value: every entry of the table of handles was used. */
static inline bool tw_check_all_handles(const tw_checker *checker) {
  return checker->handles_met == checker->handles;
}

/* A bool is read as a byte, because C does not define reading a bool that is neither 0 nor 1. */
static inline bool tw_check_bool(tw_checker *checker, const void *place) {
  (void)checker;
  return *(const unsigned char *)place <= 1;
}

/* A char: a Unicode scalar value. */
static inline bool tw_check_char(tw_checker *checker, const void *place) {
  uint32_t value = *(const uint32_t *)place;
  (void)checker;
  return value < 0xd800 || (value > 0xdfff && value < 0x110000);
}

/* ---- Views ----------------------------------------------------------------------------------- */

/* Views of slices in a result that was checked, or in a stream's batch. `base` is the first byte of
 * the message, or the batch's `base`. A view is valid as long as that memory. */

static inline const void *tw_at(const uint8_t *base, tw_slice slice) {
  return base + slice.offset;
}

static inline tw_text tw_text_view(const uint8_t *base, tw_slice slice) {
  tw_text text;
  text.data = (const char *)tw_at(base, slice);
  text.size = slice.length;
  return text;
}

static inline tw_bytes tw_bytes_view(const uint8_t *base, tw_slice slice) {
  tw_bytes bytes;
  bytes.data = base + slice.offset;
  bytes.size = slice.length;
  return bytes;
}

#endif
