/* Correct messages of a hostile guest, and what it makes of them. */
#ifndef HOSTILE_MESSAGES_H
#define HOSTILE_MESSAGES_H

#include "hostile_guest.h"
#include "hostile_ledger.h"

#define MESSAGE_ROOM 4096

/* A message with room around it, so that wrong sizes still are inside of it. */
typedef struct hostile_message {
  uint64_t space[MESSAGE_ROOM / 8];
  uint8_t *data; /* where the message begins; may be NULL */
  uint64_t size;
} hostile_message;

/* The random numbers of this thread. LeakSanitizer cannot read thread-local variables of the other models
 * if their library was opened by dlopen. */
static _Thread_local uint64_t random_state __attribute__((tls_model("initial-exec")));
static atomic_ullong random_threads;
static ledger *hostile_shared(void);

static uint64_t any(void) {
  if (random_state == 0) {
    random_state = (hostile_shared()->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) +
                   (atomic_fetch_add(&random_threads, 1) + 1) * UINT64_C(0xd1b54a32d192ed03);
    random_state |= 1;
  }
  return random_next(&random_state);
}

static uint32_t below(uint32_t limit) {
  return (uint32_t)((any() >> 33) % limit);
}

static bool one_in(uint32_t times) {
  return below(times) == 0;
}

static tw_text some_text(void) {
  static const char *const texts[] = {"", "a", "caf\xc3\xa9", "\xf0\x9f\x8c\x8a and more",
                                      "a text that is longer than the others, to fill a message"};
  return tw_text_of(texts[below(5)]);
}

static hostile_point_in some_point(void) {
  hostile_point_in point;
  memset(&point, 0, sizeof(point));
  point.name = some_text();
  point.x = (int32_t)any();
  point.on = one_in(2);
  point.shade = (hostile_color)below(3);
  point.letter = one_in(2) ? 'x' : 0x1f30a;
  return point;
}

static void keep_message(hostile_message *message, tw_writer *writer) {
  if (tw_writer_end(writer) != TW_OK || writer->size > MESSAGE_ROOM / 2) {
    abort();
  }
  memset(message->space, 0, sizeof(message->space));
  memcpy(message->space, writer->data, writer->size);
  message->data = (uint8_t *)message->space;
  message->size = writer->size;
  tw_writer_free(writer);
}

/* A correct result of a method that returns a value. `handles` are those of a `pair`. */
static void make_result(uint32_t method, const tw_handle *handles, hostile_message *message) {
  tw_writer writer;
  const uint64_t number = any();
  const uint64_t layout = hostile_methods[method].ok;
  uint32_t root;
  switch (method) {
  case 5: /* text */
    root = tw_writer_begin(&writer, layout, 0, 8);
    tw_put_text(&writer, root, some_text());
    break;
  case 6: { /* points */
    hostile_point_in points[8];
    hostile_list_point_in list;
    list.items = points;
    list.count = below(9);
    for (size_t i = 0; i < list.count; i++) {
      points[i] = some_point();
    }
    root = tw_writer_begin(&writer, layout, 0, 8);
    hostile_list_point_write(&writer, root, list);
    break;
  }
  case 7: { /* maybe */
    hostile_option_tuple2_u64_string_in maybe;
    memset(&maybe, 0, sizeof(maybe));
    maybe.some = one_in(2);
    maybe.value.f0 = number;
    maybe.value.f1 = some_text();
    root = tw_writer_begin(&writer, layout, 0, 24);
    hostile_option_tuple2_u64_string_write(&writer, root, &maybe);
    break;
  }
  case 9: /* pair */
    root = tw_writer_begin(&writer, layout, 2, 8);
    tw_put_handle(&writer, root, handles[0]);
    tw_put_handle(&writer, root + 4, handles[1]);
    break;
  default:
    root = tw_writer_begin(&writer, layout, 0, 8);
    tw_put(&writer, root, &number, sizeof(number));
    break;
  }
  keep_message(message, &writer);
}

/* A correct error of a method that has one. */
static void make_error(uint32_t method, hostile_message *message) {
  tw_writer writer;
  uint32_t root = tw_writer_begin(&writer, hostile_methods[method].error, 0, 12);
  hostile_trouble_in trouble;
  memset(&trouble, 0, sizeof(trouble));
  trouble.tag = (uint8_t)below(3);
  if (trouble.tag == HOSTILE_TROUBLE_BECAUSE) {
    trouble.value.because = some_text();
  } else if (trouble.tag == HOSTILE_TROUBLE_TOO_LONG) {
    trouble.value.too_long = (uint32_t)any();
  }
  hostile_trouble_write(&writer, root, &trouble);
  keep_message(message, &writer);
}

/* Adds a table of handles to a message, which has none. */
static void add_handles(hostile_message *message, tw_handle (*pick)(void)) {
  uint8_t *data = (uint8_t *)message->space;
  uint32_t count = 1 + below(3);
  tw_message header;
  memcpy(&header, data, sizeof(header));
  if (header.handles != 0) {
    return;
  }
  memmove(data + 16 + 8 * count, data + 16, message->size - 16);
  for (uint32_t i = 0; i < count; i++) {
    tw_handle handle = pick();
    memcpy(data + 16 + 8 * (size_t)i, &handle, sizeof(handle));
  }
  header.handles = count;
  header.root += 8 * count;
  header.size += 8 * count;
  message->size += 8 * count;
  memcpy(data, &header, sizeof(header));
}

/* Damages a message in one of many ways, or in none. */
static void mutate(hostile_message *message, tw_handle (*pick)(void)) {
  uint8_t *data = (uint8_t *)message->space;
  const uint32_t huge[] = {0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff8, 0x10000, 1};
  uint32_t number = huge[below(6)];
  switch (below(10)) {
  case 0:
  case 1:
  case 2: /* bits */
    for (uint32_t flips = 1 + below(4); flips > 0; flips--) {
      uint64_t bit = any() % (message->size * 8);
      data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    break;
  case 3: /* cut off, with the right or the wrong size in the header */
    message->size = any() % (message->size + 1);
    if (one_in(2) && message->size >= 4) {
      uint32_t size = (uint32_t)message->size;
      memcpy(data, &size, sizeof(size));
    }
    break;
  case 4: /* longer */
    message->size += 1 + below(64);
    if (one_in(2)) {
      uint32_t size = (uint32_t)message->size;
      memcpy(data, &size, sizeof(size));
    }
    break;
  case 5: /* a number of the header */
    memcpy(data + 4 * below(4), &number, sizeof(number));
    break;
  case 6: /* an offset or a length */
    if (message->size >= 24) {
      memcpy(data + 16 + 4 * (size_t)below((uint32_t)(message->size - 16) / 4), &number, 4);
    }
    break;
  case 7:
    add_handles(message, pick);
    break;
  case 8: /* at an odd address, or nowhere */
    if (one_in(2)) {
      memmove(data + 1, data, message->size);
      message->data = data + 1;
    } else {
      message->data = NULL;
      message->size = one_in(2) ? any() : message->size;
    }
    break;
  default: /* a size that no message has */
    if (one_in(2)) {
      message->size = UINT64_C(1) << (32 + below(32));
    }
    break;
  }
}

#endif
