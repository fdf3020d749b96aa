/* The program that calls a hostile guest: its threads, their calls, and the checks of what they get. A part of
 * hostile_guests.c. */
#ifndef HOSTILE_HOST_H
#define HOSTILE_HOST_H

#include <pthread.h>

#include "check.h"
#include "guests/hostile_ledger.h"
#include "hostile.h"
#include "probe.h"

#define THREADS 2
#define CLIENTS 3                      /* of a thread: two of its own, and one that both use */
#define CALLS (LEDGER_CALLS / THREADS) /* of a thread, in a round */
#define CELLS 16
#define PENDING 48

static hostile_library library;
static probe_library good_library;
static hostile_client shared_client; /* of the round */
static ledger *seen;

/* A call of the program, by its number. */
typedef struct host_call {
  uint32_t method;
  uint32_t client;
  tw_handle call;
  bool pending;
  bool ended;
  uint32_t outcome;
  uint64_t hash;
  bool is_regular; /* its stream was read to a regular end */
  uint64_t sum;    /* of the stream's numbers */
} host_call;

static host_call host_calls[LEDGER_CALLS];

typedef struct host {
  pthread_t thread;
  uint32_t index;
  uint64_t random;
  hostile_client clients[CLIENTS];
  probe_client good;
  uint64_t good_sum;
  hostile_cell cells[CELLS];
  uint32_t pending[CLIENTS];
  uint32_t next; /* the number of the next call */
} host;

static pthread_mutex_t failures_lock = PTHREAD_MUTEX_INITIALIZER;

static void failed(const char *what, uint64_t id, uint32_t code) {
  pthread_mutex_lock(&failures_lock);
  if (checks_failed++ < 20) {
    fprintf(stderr, "call %llu of method %u: %s: %s\n", (unsigned long long)id,
            (unsigned)(id < LEDGER_CALLS ? host_calls[id].method : 99), what, tw_code_name(code));
  }
  pthread_mutex_unlock(&failures_lock);
}

static uint32_t below(host *self, uint32_t limit) {
  return (uint32_t)((random_next(&self->random) >> 33) % limit);
}

static bool one_in(host *self, uint32_t times) {
  return below(self, times) == 0;
}

static uint64_t soon(host *self, uint32_t us) {
  return library.table->now() + (100 + below(self, us)) * UINT64_C(1000);
}

/* Lets the guest know a handle of the program. */
static void expose(host *self, tw_handle handle) {
  atomic_store(&seen->host_handles[below(self, LEDGER_HANDLES)], handle);
}

/* ---- Checks of results -------------------------------------------------------------------------- */

static bool is_utf8(const uint8_t *text, size_t size) {
  size_t i = 0;
  while (i < size) {
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint8_t first = text[i++];
    uint32_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    uint32_t value = more == 0 ? first : first & (0x3fu >> more);
    if ((first >= 0x80 && first < 0xc0) || first >= 0xf8 || size - i < more) {
      return false;
    }
    for (uint32_t k = 0; k < more; k++, i++) {
      if ((text[i] & 0xc0) != 0x80) {
        return false;
      }
      value = value << 6 | (text[i] & 0x3f);
    }
    if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
      return false;
    }
  }
  return true;
}

static bool is_text(tw_text text) {
  return is_utf8((const uint8_t *)text.data, text.size);
}

/* Checks a point of a result, or of a batch that has `size` bytes. */
static bool is_point(const uint8_t *base, uint64_t size, const hostile_point *point) {
  const uint8_t *on = (const uint8_t *)point + offsetof(hostile_point, on);
  if (point->name.length > size || point->name.offset > size - point->name.length) {
    return false;
  }
  return is_text(hostile_point_name(base, point)) && *on <= 1 && point->shade <= 2 &&
         (point->letter < 0xd800 || (point->letter >= 0xe000 && point->letter < 0x110000));
}

static bool is_trouble(const uint8_t *base, const hostile_trouble *trouble) {
  tw_text text;
  return trouble && trouble->tag <= 2 &&
         (!hostile_trouble_because(base, trouble, &text) || is_text(text));
}

/* ---- Streams ------------------------------------------------------------------------------------ */

/* The outcomes that a stream may have. */
static void check_end(uint64_t id, uint32_t code, bool has_error) {
  if (code != TW_CLOSED && code != TW_CANCELLED && code != TW_TIMED_OUT && code != TW_GUEST_LOST &&
      code != TW_GUEST_PANICKED && !(code == TW_ERROR && has_error)) {
    failed("a stream has ended", id, code);
  }
}

/* Reads some of a stream. Returns whether it has ended. */
static bool read_stream(host *self, uint64_t id, const tw_stream *stream) {
  const bool numbers = host_calls[id].method == HOSTILE_METHOD_NUMBERS;
  const uint32_t size = numbers ? 8 : (uint32_t)sizeof(hostile_point);
  bool is_whole = true;
  uint32_t batches = 1 + below(self, 40);
  while (batches-- > 0) {
    tw_batch batch;
    tw_error error;
    uint32_t code =
        tw_stream_acquire(stream, 1 + below(self, 32), soon(self, 1000), size, &batch, &error);
    if (code != TW_OK) {
      if ((batch.flags & TW_BATCH_END) == 0) {
        if (code != TW_TIMED_OUT) {
          failed("a stream cannot be read", id, code);
        }
        continue;
      }
      check_end(id, code, host_calls[id].method == HOSTILE_METHOD_NAMES);
      host_calls[id].is_regular = code == TW_CLOSED && is_whole && batch.lost_before == 0;
      return true;
    }
    is_whole = is_whole && batch.lost_before == 0;
    for (uint32_t i = 0; i < batch.count; i++) {
      const void *record = tw_batch_at(&batch, i);
      if (numbers) {
        host_calls[id].sum += *(const uint64_t *)record;
      } else if (!is_point(batch.base, batch.size, (const hostile_point *)record)) {
        failed("a record is malformed", id, TW_OK);
      }
    }
    code = tw_stream_release(stream, batch.count, &error);
    if (code != TW_OK) {
      failed("a batch cannot be released", id, code);
    }
  }
  return false;
}

static void use_stream(host *self, uint64_t id, tw_stream *stream) {
  tw_error error;
  uint32_t code;
  expose(self, stream->handle);
  read_stream(self, id, stream);
  code = tw_stream_close(stream, &error);
  if (code != TW_OK) {
    failed("a stream cannot be closed", id, code);
  }
}

/* ---- Results ------------------------------------------------------------------------------------ */

static void keep_cell(host *self, hostile_cell cell) {
  uint32_t index = below(self, CELLS);
  hostile_cell_close(&self->cells[index], NULL); /* the guest may have ended it */
  self->cells[index] = cell;
}

#define READ(name)                                                                                 \
  hostile_##name##_result result;                                                                  \
  uint32_t code = hostile_##name##_read(client, completion, &result, &error)

/* Reads the result of a call as a program does, and checks it. Returns the code that the program sees. */
static uint32_t read_result(host *self, uint64_t id, const hostile_client *client,
                            tw_completion *completion) {
  tw_error error;
  bool is_right = true;
  switch (host_calls[id].method) {
  case HOSTILE_METHOD_CELL_NEW: {
    READ(cell_new);
    if (code == TW_OK) {
      keep_cell(self, result.ok);
    }
    tw_reply_release(&result.reply);
    return code;
  }
  case HOSTILE_METHOD_TRAY_NEW: {
    READ(tray_new);
    hostile_tray_close(&result.ok, NULL);
    tw_reply_release(&result.reply);
    return code;
  }
  case HOSTILE_METHOD_TEXT: {
    READ(text);
    is_right = code == TW_OK      ? is_text(result.ok)
               : code == TW_ERROR ? is_trouble(result.reply.base, result.error)
                                  : true;
    tw_reply_release(&result.reply);
    if (!is_right) {
      failed("the result is malformed", id, code);
    }
    return code;
  }
  case HOSTILE_METHOD_POINTS: {
    READ(points);
    for (size_t i = 0; code == TW_OK && i < result.ok.count; i++) {
      is_right = is_right && is_point(result.reply.base, result.reply.completion.data_size,
                                      &result.ok.items[i]);
    }
    tw_reply_release(&result.reply);
    if (!is_right) {
      failed("the result is malformed", id, code);
    }
    return code;
  }
  case HOSTILE_METHOD_MAYBE: {
    READ(maybe);
    if (code == TW_OK && result.ok && result.ok->some) {
      is_right = is_text(tw_text_view(result.reply.base, result.ok->value.f1));
    }
    tw_reply_release(&result.reply);
    if (!is_right) {
      failed("the result is malformed", id, code);
    }
    return code;
  }
  case HOSTILE_METHOD_LATER: {
    READ(later);
    if (code == TW_ERROR && !is_trouble(result.reply.base, result.error)) {
      failed("the error is malformed", id, code);
    }
    tw_reply_release(&result.reply);
    return code;
  }
  case HOSTILE_METHOD_PAIR: {
    READ(pair);
    hostile_cell cell;
    if (code == TW_OK && one_in(self, 2) &&
        hostile_cell_take(&result.reply, result.ok->f1, &cell, &error) == TW_OK) {
      keep_cell(self, cell);
    }
    tw_reply_release(&result.reply);
    return code;
  }
  case HOSTILE_METHOD_NUMBERS: {
    READ(numbers);
    tw_reply_release(&result.reply);
    if (code == TW_OK) {
      use_stream(self, id, &result.ok.tw);
    }
    return code;
  }
  case HOSTILE_METHOD_NAMES: {
    READ(names);
    tw_reply_release(&result.reply);
    if (code == TW_OK) {
      use_stream(self, id, &result.ok.tw);
    }
    return code;
  }
  case HOSTILE_METHOD_NEWEST: {
    READ(newest);
    tw_reply_release(&result.reply);
    if (code == TW_OK) {
      use_stream(self, id, &result.ok.tw);
    }
    return code;
  }
  case HOSTILE_METHOD_SOON: {
    READ(soon);
    tw_reply_release(&result.reply);
    if (code == TW_OK) {
      use_stream(self, id, &result.ok.tw);
    }
    return code;
  }
  default: { /* a number */
    READ(number);
    tw_reply_release(&result.reply);
    return code;
  }
  }
}

/* Records and checks the end of a call. */
static void end_call(host *self, const hostile_client *client, tw_completion *completion,
                     uint64_t id) {
  host_call *call = &host_calls[id];
  const uint32_t code = completion->code;
  uint32_t read;
  if (id >= LEDGER_CALLS || !call->pending || call->ended) {
    failed("an outcome was not expected", id, code);
    library.table->release(completion);
    return;
  }
  call->ended = true;
  call->outcome = code;
  call->hash = completion->data ? ledger_hash(completion->data, (size_t)completion->data_size) : 0;
  if (completion->message &&
      !is_utf8((const uint8_t *)completion->message, completion->message_size)) {
    failed("the reason is not UTF-8", id, code);
  }
  read = read_result(self, id, client, completion);
  if (read != code) {
    failed("a malformed result was delivered", id, code);
  }
}

#endif
