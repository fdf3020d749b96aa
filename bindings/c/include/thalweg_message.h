/* Messages of Thalweg: writing one, and reading one without a wild read. C99 and C++, header-only.
 *
 * The layout is in thalweg.h. Generated code stands on this file; a program rarely calls it itself,
 * but for tw_text and tw_bytes, which are what strings and bytes look like on both ways.
 *
 * What is checked where: going in, the core checks everything (bounds, UTF-8, bools, chars,
 * discriminants) before the service sees it, and a call with a bad message ends as TW_ARGUMENT. Coming
 * out, generated code walks the message once with the tw_check_* functions (bounds, order of the tails,
 * bools, chars, discriminants) and only then hands out pointers into it. UTF-8 that came out was
 * written by the core and is not checked again.
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

/* A check while compiling. `condition` is constant. */
#if defined(__cplusplus)
#define TW_STATIC_CHECK(condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TW_STATIC_CHECK(condition) _Static_assert(condition, #condition)
#else
#define TW_STATIC_CHECK(condition) extern char tw_static_check[(condition) ? 1 : -1]
#endif

/* Generated structs lie in messages and batches as they are: that this compiler agrees is checked. */
#define TW_SIZE(type, bytes) TW_STATIC_CHECK(sizeof(type) == (bytes))
#define TW_OFFSET(type, member, bytes) TW_STATIC_CHECK(offsetof(type, member) == (bytes))

TW_SIZE(bool, 1);
TW_SIZE(tw_slice, 8);
TW_SIZE(tw_message, 16);

/* The largest message, in bytes. */
#define TW_MESSAGE_MAX 0x7fffffffu

/* ---- Text and bytes --------------------------------------------------------------------------- */

/* UTF-8. Not NUL-terminated; a NUL inside is legal. */
typedef struct tw_text {
  const char *data;
  size_t size; /* in bytes */
} tw_text;

/* What WIT calls list<u8>. */
typedef struct tw_bytes {
  const uint8_t *data;
  size_t size;
} tw_bytes;

/* A resource, a stream or a future in a value that came: its place in the message's table. tw_reply_take_handle takes it out. */
typedef struct tw_handle_ref {
  uint32_t index;
} tw_handle_ref;

TW_SIZE(tw_handle_ref, 4);

/* The text of a NUL-terminated string; the empty text for NULL. Borrows it. */
static inline tw_text tw_text_of(const char *string) {
  tw_text text;
  text.data = string;
  text.size = string ? strlen(string) : 0;
  return text;
}

static inline bool tw_text_equal(tw_text a, tw_text b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* ---- Writing ---------------------------------------------------------------------------------- */

/* A message under construction. A small one needs no allocation; the struct must not be moved between
 * tw_writer_begin and tw_writer_free. A failure is sticky: the first one stays in `status`, every
 * later step does nothing, and tw_writer_end reports it. */
typedef struct tw_writer {
  uint8_t *data;
  uint32_t size;
  uint32_t capacity;
  uint32_t status;  /* TW_OVERLOADED: no memory. TW_ARGUMENT: NULL with a length, or too large */
  uint32_t handles; /* places in the table, and how many are taken */
  uint32_t handles_put;
  uint64_t small[32];
} tw_writer;

/* Makes room for `size` more bytes. */
static inline bool tw_writer_grow(tw_writer *writer, uint64_t size) {
  uint64_t wanted = (uint64_t)writer->size + size;
  uint64_t capacity = (uint64_t)writer->capacity * 2;
  uint8_t *data;
  if (wanted > TW_MESSAGE_MAX) {
    writer->status = TW_ARGUMENT;
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

/* Appends `size` zero bytes at the next multiple of `align`, and returns where. */
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

/* Begins a message whose root has the layout hash `layout` and `root_size` bytes, with a table of
 * `handles` handles. Returns the root's offset. End with tw_writer_free, also after a failure. */
static inline uint32_t tw_writer_begin(tw_writer *writer, uint64_t layout, uint32_t handles,
                                       uint32_t root_size) {
  tw_message header;
  writer->data = (uint8_t *)writer->small;
  writer->size = 0;
  writer->capacity = (uint32_t)sizeof(writer->small);
  writer->status = TW_OK;
  writer->handles = handles;
  writer->handles_put = 0;
  header.size = 0;
  header.layout = (uint32_t)(layout & 0xffffffffu);
  header.handles = handles;
  header.root = (uint32_t)sizeof(header) + 8 * handles;
  tw_writer_reserve(writer, header.root, 8);
  tw_put(writer, 0, &header, sizeof(header));
  return tw_writer_reserve(writer, root_size, 8);
}

/* Puts `handle` into the table at `index`, and its index at `at`. */
static inline void tw_put_handle(tw_writer *writer, uint32_t at, uint32_t index, tw_handle handle) {
  tw_put(writer, (uint32_t)sizeof(tw_message) + 8 * index, &handle, sizeof(handle));
  tw_put(writer, at, &index, sizeof(index));
}

/* Puts `handle` behind those that were put so. */
static inline void tw_put_next_handle(tw_writer *writer, uint32_t at, tw_handle handle) {
  if (writer->status == TW_OK && writer->handles_put >= writer->handles) {
    writer->status = TW_ARGUMENT;
  }
  if (writer->status == TW_OK) {
    tw_put_handle(writer, at, writer->handles_put++, handle);
  }
}

/* Reserves the tail of a list and puts its slice at `at`. Returns where the first element goes. `items`
 * is looked at for NULL only. */
static inline uint32_t tw_put_list(tw_writer *writer, uint32_t at, const void *items, size_t count,
                                    uint32_t size, uint32_t align) {
  tw_slice slice;
  if (count == 0 || writer->status != TW_OK) {
    return 0; /* an empty one is {0, 0}, and the place is zero already */
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

/* Puts a list of numbers: elements without padding and without tails of their own. */
static inline void tw_put_numbers(tw_writer *writer, uint32_t at, const void *items, size_t count,
                                  uint32_t size) {
  uint32_t first = tw_put_list(writer, at, items, count, size, size);
  if (count != 0) {
    tw_put(writer, first, items, count * size);
  }
}

static inline void tw_put_text(tw_writer *writer, uint32_t at, tw_text text) {
  tw_put_numbers(writer, at, text.data, text.size, 1);
}

static inline void tw_put_bytes(tw_writer *writer, uint32_t at, tw_bytes bytes) {
  tw_put_numbers(writer, at, bytes.data, bytes.size, 1);
}

/* Completes the header. TW_OK, or why the message could not be written. */
static inline uint32_t tw_writer_end(tw_writer *writer) {
  tw_put(writer, 0, &writer->size, sizeof(writer->size));
  return writer->status;
}

static inline void tw_writer_free(tw_writer *writer) {
  if (writer->data != (uint8_t *)writer->small) {
    free(writer->data);
    writer->data = (uint8_t *)writer->small;
  }
}

/* ---- Reading ---------------------------------------------------------------------------------- */

/* A message that is being checked. Tails come in pre-order and never overlap: each begins at or after
 * `floor`, the end of the one before. */
typedef struct tw_checker {
  const uint8_t *data;
  uint32_t size;
  uint32_t floor;
  uint32_t handles; /* in the table, and how many of them were met */
  uint32_t handles_met;
} tw_checker;

/* Checks a message's header against the layout hash of the root that is expected. Returns the root, of
 * at least `root_size` bytes, or NULL if the message is not one. */
static inline const void *tw_check_root(tw_checker *reader, const uint8_t *data, uint64_t data_size,
                                        uint64_t layout, uint32_t root_size) {
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
  reader->data = data;
  reader->size = header.size;
  reader->floor = header.root + root_size;
  reader->handles = header.handles;
  reader->handles_met = 0;
  return data + header.root;
}

/* Checks a list's place. Returns its first element, some pointer if it is empty, NULL if it is wrong. */
static inline const void *tw_check_list(tw_checker *reader, tw_slice slice, uint32_t size,
                                        uint32_t align) {
  uint64_t bytes = (uint64_t)slice.length * size;
  if (slice.length == 0) {
    return slice.offset == 0 ? reader->data : NULL;
  }
  if (slice.offset < reader->floor || slice.offset % align != 0 || slice.offset > reader->size ||
      bytes > reader->size - slice.offset) {
    return NULL;
  }
  reader->floor = slice.offset + (uint32_t)bytes;
  return reader->data + slice.offset;
}

static inline bool tw_check_text(tw_checker *reader, tw_slice slice) {
  return tw_check_list(reader, slice, 1, 1) != NULL;
}

/* Handles are numbered in the order of their fields, and each is used once. */
static inline bool tw_check_handle(tw_checker *reader, tw_handle_ref held) {
  return held.index < reader->handles && held.index == reader->handles_met++;
}

static inline bool tw_check_all_handles(const tw_checker *reader) {
  return reader->handles_met == reader->handles;
}

/* `place` is where a bool lies: it must not be read as one before. */
static inline bool tw_check_bool(const void *place) {
  return *(const unsigned char *)place <= 1;
}

static inline bool tw_check_char(uint32_t value) {
  return value < 0xd800 || (value > 0xdfff && value < 0x110000);
}

/* ---- Views ------------------------------------------------------------------------------------
 * Of slices that were checked, or that lie in a stream's batch. `base` is the message's first byte, or
 * the batch's `base`. What they return is valid as long as that memory is. */

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
