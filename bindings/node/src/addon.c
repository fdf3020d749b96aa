/* The native part of the Node package: opens libraries, submits calls, reaps completions, reads
 * and writes streams. Everything else is JavaScript, in ../lib. It uses N-API and libuv, which node
 * exports; no helper thread and no threadsafe function.
 *
 *  1. A `struct port` belongs to one environment (the main thread or a worker). Everything here
 *     runs on the environment's thread.
 *  2. JavaScript and this file exchange data through ArrayBuffers that only ../lib refers to, and
 *     that are never detached: `error`, and for each port `results`, `records` and `state`. Their
 *     memory therefore has the same address until the environment ends. They contain the structs of
 *     thalweg.h, with positions in the buffer in place of pointers.
 *  3. The loop watches the port's eventfd (uv_poll). A turn delivers the completions of at most
 *     ROUNDS reaps, in one call of JavaScript. A turn ends with the port armed, or with its eventfd
 *     readable, so each completion causes a turn.
 *  4. On one processor, the first completion of many calls wakes this thread before the service has
 *     run the others. A turn therefore yields the processor once if it reaped fewer calls than were
 *     submitted, and does not expect the remaining ones any longer if that was in vain.
 *  5. `owned` has each handle that belongs to this environment. The clean-up hook closes them: a
 *     worker that is terminated runs no JavaScript.
 *  6. The clean-up hook closes the port before any memory of the environment is freed. The port is
 *     freed once libuv has closed its handle.
 *  7. Memory of a batch that JavaScript reads in place is retained. It is released when V8 frees
 *     the contents of the ArrayBuffer, so even a buffer that was transferred is never dangling.
 */
#define _GNU_SOURCE
#define NAPI_VERSION 8
#include <node_api.h>
#include <uv.h>

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The libthalweg.so next to this addon, or NULL: pack.sh adds it to the package. */
static const char *packaged_core(void) {
  static _Thread_local char path[PATH_MAX];
  Dl_info addon;
  if (dladdr((void *)packaged_core, &addon) == 0) {
    return NULL;
  }
  const char *slash = strrchr(addon.dli_fname, '/');
  const int folder = slash ? (int)(slash + 1 - addon.dli_fname) : 0;
  const int size = snprintf(path, sizeof(path), "%.*slibthalweg.so", folder, addon.dli_fname);
  return size < (int)sizeof(path) && access(path, R_OK) == 0 ? path : NULL;
}

#define TW_CORE_LIBRARY packaged_core()
#include "thalweg_open.h"

/* Slots of a port: the maximum number of outstanding calls of a thread and library. The same number
 * as in the Python package; the core allocates about 100 bytes for each. */
#define CAPACITY 16384u
/* Completions of one reap, and reaps of one turn: rule 3. With 1 us for each of the 256
 * completions, other events of the loop wait 0.3 ms. */
#define REAP 32u
#define ROUNDS 8u
/* Calls of one submission. The core looks up the client and wakes the service once for up to 64. */
#define MAX_CALLS 128u
/* Sizes of the shared buffers. Most turns fit, and a segment of a stream has 64 KiB. */
#define RESULTS_SIZE (256u * 1024u)
#define RECORDS_SIZE (96u * 1024u)
/* Where the data begins in `records`, after one struct. */
#define RECORDS 64u

/* One library in one environment, and its port. The data of all functions for JavaScript. */
struct port {
  napi_env env;
  const tw_table *table;
  tw_expected expected;
  char *text;         /* what `expected` points to */
  tw_method *methods; /* its methods, then its host imports */
  tw_handle handle;
  int fd;
  uv_poll_t poll;
  napi_async_cleanup_hook_handle hook;
  napi_ref deliver;
  tw_error *error;
  uint8_t *results;
  uint8_t *records;
  uint32_t *state;        /* is there a turn; the operations that a promise waits for */
  uint32_t expected_soon; /* calls that were submitted and may complete in this turn: rule 4 */
  void *owned;            /* the root of a tree of tsearch, whose keys are the handles */
};

static int compare(const void *left, const void *right) {
  return ((uintptr_t)left > (uintptr_t)right) - ((uintptr_t)left < (uintptr_t)right);
}

/* Without memory the handle is not tracked; JavaScript still closes it. */
static void own(struct port *port, tw_handle handle) {
  if (handle != 0) {
    tsearch((const void *)(uintptr_t)handle, &port->owned, compare);
  }
}

static void disown(struct port *port, tw_handle handle) {
  tdelete((const void *)(uintptr_t)handle, &port->owned, compare);
}

/* Closes a stream, resource or client. */
static void close_any(const tw_table *table, tw_handle handle) {
  if (table->stream_close(handle, NULL) == TW_ARGUMENT &&
      table->resource_drop(handle, NULL) == TW_ARGUMENT) {
    table->client_close(handle, NULL);
  }
}

#define MAX_ARGUMENTS 6

/* Begins a function of a port. Arguments that are missing are undefined, which is read as 0. */
#define PORT_FUNCTION()                                                                            \
  napi_value args[MAX_ARGUMENTS];                                                                  \
  struct port *port = arguments(env, info, args);                                                  \
  const tw_table *table = port->table;                                                             \
  tw_error *error = port->error;                                                                   \
  (void)table;                                                                                     \
  (void)error

/* Defines a function that returns the code of `expression`. */
#define CODE_FUNCTION(name, expression)                                                            \
  static napi_value name(napi_env env, napi_callback_info info) {                                  \
    PORT_FUNCTION();                                                                               \
    return from_u32(env, (expression));                                                            \
  }

static struct port *arguments(napi_env env, napi_callback_info info, napi_value *args) {
  size_t count = MAX_ARGUMENTS;
  void *port = NULL;
  napi_get_cb_info(env, info, &count, args, NULL, &port);
  return (struct port *)port;
}

static uint32_t to_u32(napi_env env, napi_value value) {
  uint32_t number = 0;
  napi_get_value_uint32(env, value, &number);
  return number;
}

/* 0, which is no handle, if the value is no BigInt. */
static uint64_t to_u64(napi_env env, napi_value value) {
  uint64_t number = 0;
  bool lossless = false;
  napi_get_value_bigint_uint64(env, value, &number, &lossless);
  return number;
}

/* A token: the slot and the generation of an entry of lib/port.js. */
static uint64_t to_token(napi_env env, const napi_value *args) {
  return ((uint64_t)to_u32(env, args[1]) << 32) | to_u32(env, args[0]);
}

/* Three arguments: an ArrayBuffer, an offset and a size. NULL if they are not inside. */
static uint8_t *to_bytes(napi_env env, const napi_value *args, uint32_t *size) {
  void *data = NULL;
  size_t length = 0;
  uint32_t offset = to_u32(env, args[1]);
  *size = to_u32(env, args[2]);
  if (napi_get_arraybuffer_info(env, args[0], &data, &length) != napi_ok || offset > length ||
      *size > length - offset) {
    return NULL;
  }
  return (uint8_t *)data + offset;
}

/* Copies a string to the heap, NUL-terminated. NULL: no string, or no memory. */
static char *to_text(napi_env env, napi_value value, size_t *length) {
  if (napi_get_value_string_utf8(env, value, NULL, 0, length) != napi_ok) {
    return NULL;
  }
  char *text = (char *)malloc(*length + 1);
  if (text) {
    napi_get_value_string_utf8(env, value, text, *length + 1, length);
  }
  return text;
}

static napi_value from_u32(napi_env env, uint32_t number) {
  napi_value value = NULL;
  napi_create_uint32(env, number, &value);
  return value;
}

/* A new ArrayBuffer. NULL: no memory; the exception is cleared. */
static napi_value new_buffer(napi_env env, size_t size, uint8_t **data) {
  napi_value value = NULL;
  void *memory = NULL;
  if (napi_create_arraybuffer(env, size, &memory, &value) != napi_ok) {
    napi_get_and_clear_last_exception(env, &value);
    return NULL;
  }
  *data = (uint8_t *)memory;
  return value;
}

/* Sets `name` of `object` to an ArrayBuffer that lives as long as the environment: rule 2. */
static bool share(napi_env env, napi_value object, const char *name, size_t size, uint8_t **data) {
  napi_value value = new_buffer(env, size, data);
  napi_ref held = NULL;
  return value && napi_create_reference(env, value, 1, &held) == napi_ok &&
         napi_set_named_property(env, object, name, value) == napi_ok;
}

/* Where completions are copied to: `memory`, and the buffers of `own` if they do not fit there. */
struct sink {
  uint8_t *memory;
  size_t used;
  size_t size;
  napi_value own; /* an array, or NULL */
  uint32_t own_count;
};

static size_t aligned(size_t size) {
  return (size + 7) & ~(size_t)7;
}

/* Takes all handles out of a message that was copied to `data`, and writes them there. */
static void take_handles(struct port *port, tw_completion *from, uint8_t *data, size_t size) {
  tw_message header;
  if (size < sizeof(header)) {
    return;
  }
  memcpy(&header, data, sizeof(header));
  for (uint32_t i = 0; i < header.handles && i < (size - sizeof(header)) / sizeof(tw_handle); i++) {
    tw_handle handle = 0;
    port->table->take_handle(from, i, &handle, NULL);
    memcpy(data + sizeof(header) + i * sizeof(handle), &handle, sizeof(handle));
    own(port, handle);
  }
}

/* Copies a completion: the struct to `to`, and the data and message to the sink. `owner` is then 0,
 * or 1 + the index of the buffer with both. */
static void copy_out(struct port *port, struct sink *sink, tw_completion *from, uint8_t *to) {
  napi_env env = port->env;
  tw_completion out = *from;
  uint8_t *memory = sink->memory;
  out.data_size = from->data ? from->data_size : 0;
  out.message_size = from->message ? from->message_size : 0;
  out.owner = 0;
  size_t at = sink->used;
  size_t message = aligned((size_t)out.data_size);
  size_t size = message + aligned(out.message_size);
  if (size <= sink->size - sink->used) {
    sink->used += size;
  } else {
    napi_value buffer = new_buffer(env, size, &memory);
    at = 0;
    if (!sink->own) {
      napi_create_array(env, &sink->own);
    }
    if (buffer && napi_set_element(env, sink->own, sink->own_count, buffer) == napi_ok) {
      out.owner = ++sink->own_count;
    } else {
      out.code = out.kind == TW_COMPLETION_CALL ? TW_OVERLOADED : out.code;
      out.retryable = 0; /* the call has run */
      out.data_size = 0;
      out.message_size = 0;
    }
  }
  if (out.data_size > 0) {
    memcpy(memory + at, from->data, (size_t)out.data_size);
    take_handles(port, from, memory + at, (size_t)out.data_size);
  }
  if (out.message_size > 0) {
    memcpy(memory + at + message, from->message, out.message_size);
  }
  out.data = (const uint8_t *)(uintptr_t)at;
  out.message = (const char *)(uintptr_t)(at + message);
  memcpy(to, &out, sizeof(out));
}

/* Copies completions until none is left or the limits of a turn are reached: rule 3. Returns their
 * number. */
static uint32_t drain(struct port *port, struct sink *sink) {
  const tw_table *table = port->table;
  uint32_t count = 0;
  bool has_yielded = false;
  for (uint32_t round = 0; round < ROUNDS && sink->used < sink->size / 2; round++) {
    tw_completion reaped[REAP];
    uint32_t ready = 1;
    uint32_t got = 0;
    if (table->port_reap(port->handle, reaped, REAP, &got, NULL) != TW_OK) {
      uv_poll_stop(&port->poll); /* this process is a fork, and the port is its parent's */
      return count;
    }
    if (has_yielded && got == 0) {
      port->expected_soon = 0;
    }
    for (uint32_t i = 0; i < got; i++, count++) {
      port->expected_soon -= reaped[i].kind == TW_COMPLETION_CALL && port->expected_soon > 0;
      copy_out(port, sink, &reaped[i], sink->memory + count * sizeof(reaped[i]));
    }
    table->release_all(reaped, got);
    if (got < REAP && got > 0 && port->expected_soon > 0 && !has_yielded) {
      has_yielded = true;
      sched_yield();
      continue;
    }
    if (got < REAP && table->port_arm(port->handle, &ready, NULL) == TW_OK && !ready) {
      return count;
    }
  }
  eventfd_write(port->fd, 1); /* the next turn; port_arm may have reset it */
  return count;
}

/* The port keeps the process alive while operations wait. A turn calls this at its end, because a
 * promise that is settled in it usually leads to the next call. */
static void hold_process(struct port *port) {
  (port->state[1] > 0 ? uv_ref : uv_unref)((uv_handle_t *)&port->poll);
}

/* A turn. An exception of JavaScript is an uncaught exception. */
static void on_readable(uv_poll_t *poll, int status, int events) {
  struct port *port = (struct port *)poll->data;
  napi_env env = port->env;
  napi_handle_scope scope;
  napi_value deliver;
  napi_value global;
  napi_value raised;
  (void)status;
  (void)events;
  if (napi_open_handle_scope(env, &scope) != napi_ok) {
    return;
  }
  struct sink sink = {port->results, ROUNDS * REAP * sizeof(tw_completion), RESULTS_SIZE, NULL, 0};
  uint32_t count = drain(port, &sink);
  if (count > 0 && napi_get_reference_value(env, port->deliver, &deliver) == napi_ok &&
      napi_get_global(env, &global) == napi_ok) {
    napi_value args[2] = {from_u32(env, count), sink.own ? sink.own : global};
    /* This also runs the microtasks: the code that awaited the calls. */
    port->state[0] = 1;
    if (napi_make_callback(env, NULL, global, deliver, 2, args, NULL) == napi_pending_exception &&
        napi_get_and_clear_last_exception(env, &raised) == napi_ok) {
      napi_fatal_exception(env, raised);
    }
    port->state[0] = 0;
    hold_process(port);
  }
  napi_close_handle_scope(env, scope);
}

/* hold(): `state` has changed outside of a turn. */
static napi_value hold(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  hold_process(port);
  return NULL;
}

/* clientOpen(): the code. The handle is in `records`. */
static napi_value client_open(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  const tw_expected *expected = &port->expected;
  tw_handle client = 0;
  uint32_t code = table->client_open(&client, error);
  if (code == TW_OK && table->layout != expected->layout) {
    code = table->client_set_layouts(client, expected->methods, expected->method_count,
                                     expected->imports, expected->import_count, error);
    if (code != TW_OK) {
      table->client_close(client, NULL);
      client = 0;
    }
  }
  own(port, client);
  memcpy(port->records, &client, sizeof(client));
  return from_u32(env, code);
}

/* close(handle): closing twice has no effect. */
static napi_value close_handle(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  tw_handle handle = to_u64(env, args[0]);
  disown(port, handle);
  close_any(table, handle);
  return NULL;
}

/* forget(handle): it belongs to the service now. */
static napi_value forget(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  disown(port, to_u64(env, args[0]));
  return NULL;
}

/* setHost(client, slot, generation): the code. Host calls arrive with this token. */
CODE_FUNCTION(set_host, table->client_set_host(to_u64(env, args[0]), port->handle,
                                               to_token(env, &args[1]), error))

/* Makes a submission usable: `args` is a position in the buffer, and `deadline_ns` is a double with
 * the timeout in milliseconds, which is negative if there is none. */
static bool prepare(const tw_table *table, uint8_t *buffer, size_t size, tw_submission *call) {
  uintptr_t at = (uintptr_t)call->args;
  double timeout = 0;
  memcpy(&timeout, &call->deadline_ns, sizeof(timeout));
  if (at > size || call->args_size > size - at) {
    return false;
  }
  call->args = buffer + at;
  call->deadline_ns = 0;
  if (timeout >= 0) {
    double wanted = (double)table->now() + timeout * 1e6;
    call->deadline_ns = wanted < 9e18 ? (uint64_t)fmax(wanted, 1) : TW_FOREVER;
  }
  return true;
}

/* submit(outbox, from, count): submits the calls number `from` to `count`, without `count`. Returns
 * the number of the first one that was refused, and `error` says why; `count` if all were accepted. */
static napi_value submit(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  tw_submission calls[MAX_CALLS];
  void *data = NULL;
  size_t size = 0;
  uint32_t from = to_u32(env, args[1]);
  uint32_t count = to_u32(env, args[2]) - from;
  uint32_t accepted = 0;
  napi_get_arraybuffer_info(env, args[0], &data, &size);
  uint8_t *first = (uint8_t *)data + from * sizeof(calls[0]);
  bool is_sound = from < MAX_CALLS && count <= MAX_CALLS - from && size >= sizeof(calls);
  for (uint32_t i = 0; is_sound && i < count; i++) {
    memcpy(&calls[i], first + i * sizeof(calls[i]), sizeof(calls[i]));
    is_sound = prepare(table, (uint8_t *)data, size, &calls[i]);
  }
  if (!is_sound) {
    tw_fail(error, TW_ARGUMENT, "a malformed submission");
    return from_u32(env, from);
  }
  table->submit(port->handle, calls, count, &accepted, error);
  port->expected_soon += accepted;
  for (uint32_t i = 0; i < accepted; i++) {
    memcpy(first + i * sizeof(calls[i]) + offsetof(tw_submission, call), &calls[i].call,
           sizeof(tw_handle));
  }
  return from_u32(env, from + accepted);
}

/* callInline(outbox): makes call number 0 of the outbox on this thread. Returns a code if it was not
 * made. Otherwise its completion is at the beginning of `records`, and the data there or in the
 * buffer of the array that is returned. */
static napi_value call_inline(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  tw_submission call;
  tw_completion completion = {0};
  void *buffer = NULL;
  size_t size = 0;
  uint32_t code = TW_ARGUMENT;
  napi_get_arraybuffer_info(env, args[0], &buffer, &size);
  if (size >= sizeof(call)) {
    memcpy(&call, buffer, sizeof(call));
    if (prepare(table, (uint8_t *)buffer, size, &call)) {
      code = table->call_inline(call.client, call.method, call.args, call.args_size,
                                call.deadline_ns, &completion, error);
    }
  }
  if (code != TW_OK) {
    return from_u32(env, code);
  }
  struct sink sink = {port->records, RECORDS, RECORDS_SIZE, NULL, 0};
  completion.kind = TW_COMPLETION_CALL;
  copy_out(port, &sink, &completion, port->records);
  table->release(&completion);
  return sink.own ? sink.own : from_u32(env, TW_OK);
}

/* cancel(call) */
CODE_FUNCTION(cancel, table->cancel(to_u64(env, args[0]), NULL))

/* answer(call, code, buffer, offset, size): the code. */
static napi_value answer(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  uint32_t size = 0;
  const uint8_t *data = to_bytes(env, &args[2], &size);
  return from_u32(
      env, table->host_call_answer(to_u64(env, args[0]), to_u32(env, args[1]), data, size, error));
}

/* The owner of a retained batch. */
struct retained {
  const tw_table *table;
  tw_handle handle;
};

/* Rule 7. */
static void on_freed(napi_env env, void *data, void *hint) {
  struct retained *retained = (struct retained *)hint;
  (void)env;
  (void)data;
  retained->table->retained_batch_release(retained->handle, NULL); /* or it was released before */
  free(retained);
}

/* An ArrayBuffer over the memory of the open batch. NULL: no memory. */
static napi_value in_place(napi_env env, const tw_table *table, tw_handle stream,
                           const tw_batch *batch, tw_handle *handle) {
  struct retained *retained = (struct retained *)malloc(sizeof(*retained));
  napi_value buffer = NULL;
  if (!retained || table->stream_retain_batch(stream, handle, NULL) != TW_OK) {
    free(retained);
    *handle = 0;
    return NULL;
  }
  *retained = (struct retained){table, *handle};
  /* JavaScript only reads the memory; N-API has no type for that. */
  if (napi_create_external_arraybuffer(env, (void *)(uintptr_t)batch->base, (size_t)batch->size,
                                       on_freed, retained, &buffer) != napi_ok) {
    on_freed(env, NULL, retained);
    *handle = 0;
    return NULL;
  }
  return buffer;
}

/* Whether all records of a batch are inside of its memory, and have at least `size` bytes. */
static uint32_t check_batch(const tw_batch *batch, uint32_t size, tw_error *error) {
  uint64_t offset = (uint64_t)((uintptr_t)batch->slots - (uintptr_t)batch->base);
  if (batch->stride < size) {
    return tw_fail(error, TW_VERSION,
                   "built for records of %" PRIu32 " bytes, the stream's have %" PRIu32, size,
                   batch->stride);
  }
  if (batch->size > INT32_MAX || offset > batch->size || batch->count == 0 ||
      (uint64_t)batch->count * batch->stride > batch->size - offset) {
    return tw_fail(error, TW_ARGUMENT, "the library's batch is malformed");
  }
  return TW_OK;
}

/* Acquires a batch without waiting. TW_WOULD_PARK: there is none, and the stream was armed. */
static uint32_t acquire_or_arm(struct port *port, tw_handle stream, uint32_t max, uint64_t token,
                               tw_batch *batch) {
  for (;;) {
    uint32_t ready = 0;
    uint32_t code = port->table->stream_acquire(stream, max, 0, batch, port->error);
    if (code != TW_WOULD_PARK || (batch->flags & TW_BATCH_END)) {
      return code;
    }
    code = port->table->stream_arm(stream, port->handle, token, &ready, port->error);
    if (code != TW_OK || !ready) {
      return code == TW_OK ? TW_WOULD_PARK : code;
    }
  }
}

/* read(stream, max, slot, generation, tails, record size): the next batch. Its tw_batch and the
 * handle of its retained memory are at the beginning of `records`. Returns a code, or the ArrayBuffer
 * with the records. TW_OK: they are in `records`. TW_WOULD_PARK: there are none, and the stream was
 * armed. If the stream has ended with the service's own error, the buffer has that message. `tails`
 * is 0: the records are copied; 1: with everything after them; 2: they are read in place, and the
 * batch is open. */
static napi_value read_stream(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  tw_handle stream = to_u64(env, args[0]);
  uint32_t tails = to_u32(env, args[4]);
  tw_handle retained = 0;
  tw_batch batch = {0};
  napi_value buffer = NULL;
  uint32_t code =
      acquire_or_arm(port, stream, to_u32(env, args[1]), to_token(env, &args[2]), &batch);
  if (code == TW_OK) {
    code = check_batch(&batch, to_u32(env, args[5]), error);
    size_t offset = (size_t)(batch.slots - batch.base);
    size_t first = 0;
    if (code == TW_OK && tails == 2) {
      buffer = in_place(env, table, stream, &batch, &retained);
      first = offset;
    } else if (code == TW_OK) {
      uint8_t *to = port->records + RECORDS;
      size_t size = tails ? (size_t)batch.size - offset : (size_t)batch.count * batch.stride;
      if (size <= RECORDS_SIZE - RECORDS) {
        first = RECORDS;
      } else {
        buffer = new_buffer(env, size, &to);
      }
      if (first || buffer) {
        memcpy(to, batch.slots, size);
      }
      batch.size = first + size;
    }
    if (code == TW_OK && !first && !buffer) {
      code = tw_fail(error, TW_OVERLOADED, "no memory for a batch");
    }
    batch.base = (const uint8_t *)(first - offset);
    batch.slots = (const uint8_t *)first;
    if (retained == 0) {
      table->stream_release(stream, batch.count, NULL);
    }
  }
  const uint8_t *payload = NULL;
  uint64_t size = 0;
  uint8_t *to = NULL;
  if (code == TW_ERROR && table->stream_error(stream, &payload, &size, NULL) == TW_OK) {
    buffer = new_buffer(env, (size_t)size, &to);
    if (buffer) {
      memcpy(to, payload, (size_t)size);
    }
  }
  memcpy(port->records, &batch, sizeof(batch));
  memcpy(port->records + sizeof(batch), &retained, sizeof(retained));
  return buffer ? buffer : from_u32(env, code);
}

/* release(stream, count, buffer, retained): releases a batch that was read in place. Its typed
 * arrays are empty afterwards. */
static napi_value release_batch(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  bool is_detached = true;
  table->stream_release(to_u64(env, args[0]), to_u32(env, args[1]), NULL);
  /* The contents of a buffer that JavaScript has transferred have another owner: rule 7. */
  if (napi_is_detached_arraybuffer(env, args[2], &is_detached) == napi_ok && !is_detached &&
      napi_detach_arraybuffer(env, args[2]) == napi_ok) {
    table->retained_batch_release(to_u64(env, args[3]), NULL);
  }
  return NULL;
}

/* tee(stream): the code. The handle of another reader is in `records`. */
static napi_value tee_stream(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  tw_handle reader = 0;
  uint32_t code = table->stream_tee(to_u64(env, args[0]), &reader, error);
  own(port, reader);
  memcpy(port->records, &reader, sizeof(reader));
  return from_u32(env, code);
}

/* stats(stream): the code. The tw_stats is in `records`. */
CODE_FUNCTION(stream_stats,
              table->stream_stats(to_u64(env, args[0]), 0, (tw_stats *)(void *)port->records,
                                  sizeof(tw_stats), error))

/* streamNew(client, method, parameter): the code. The handles of the writer and the reader are in
 * `records`. */
static napi_value stream_new(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  tw_handle ends[2] = {0, 0};
  uint32_t code = table->stream_new(to_u64(env, args[0]), to_u32(env, args[1]),
                                    to_u32(env, args[2]), &ends[0], &ends[1], error);
  own(port, ends[0]);
  own(port, ends[1]);
  memcpy(port->records, ends, sizeof(ends));
  return from_u32(env, code);
}

/* send(writer, buffer, offset, size, slot, generation): the code. TW_WOULD_PARK: there is no
 * capacity, and the stream was armed. */
static napi_value send_element(napi_env env, napi_callback_info info) {
  PORT_FUNCTION();
  tw_handle writer = to_u64(env, args[0]);
  uint32_t size = 0;
  const uint8_t *data = to_bytes(env, &args[1], &size);
  for (;;) {
    uint32_t ready = 0;
    uint32_t code = table->stream_send(writer, data, size, 0, error);
    if (code == TW_WOULD_PARK) {
      code = table->stream_arm(writer, port->handle, to_token(env, &args[4]), &ready, error);
      code = code == TW_OK ? TW_WOULD_PARK : code;
    }
    if (!ready) {
      return from_u32(env, code);
    }
  }
}

/* finish(writer) */
CODE_FUNCTION(finish_stream, table->stream_finish(to_u64(env, args[0]), NULL))

static const struct {
  const char *name;
  napi_callback function;
} FUNCTIONS[] = {
    {"hold", hold},
    {"clientOpen", client_open},
    {"close", close_handle},
    {"forget", forget},
    {"setHost", set_host},
    {"submit", submit},
    {"callInline", call_inline},
    {"cancel", cancel},
    {"answer", answer},
    {"read", read_stream},
    {"release", release_batch},
    {"tee", tee_stream},
    {"stats", stream_stats},
    {"streamNew", stream_new},
    {"send", send_element},
    {"finish", finish_stream},
};

static void free_port(struct port *port) {
  if (port) {
    free(port->text);
    free(port->methods);
    free(port);
  }
}

static void on_closed(uv_handle_t *handle) {
  struct port *port = (struct port *)handle->data;
  napi_remove_async_cleanup_hook(port->hook);
  free_port(port);
}

/* Rule 6. */
static void clean_up(napi_async_cleanup_hook_handle hook, void *data) {
  struct port *port = (struct port *)data;
  port->hook = hook;
  uv_close((uv_handle_t *)&port->poll, on_closed);
  port->table->port_close(port->handle, NULL);
  while (port->owned) {
    uintptr_t handle = 0; /* the key, which is the first member of a node */
    memcpy(&handle, port->owned, sizeof(handle));
    disown(port, handle);
    close_any(port->table, handle);
  }
}

/* The string at `*at`, which then is the next one. */
static const char *next_text(const char **at, const char *end) {
  const char *text = *at < end ? *at : end;
  *at = text + strlen(text) + 1;
  return text;
}

/* Fills in what the package expects. args[1] has texts that end with NUL: its name, its version, and
 * the name and the description of each method and host import. args[2], a BigUint64Array, has its
 * two layouts and the four hashes of each. args[3] is the number of methods. */
static bool expect(napi_env env, const napi_value *args, struct port *port) {
  tw_expected *expected = &port->expected;
  void *hashes = NULL;
  size_t size = 0;
  size_t count = 0;
  port->text = to_text(env, args[1], &size);
  if (!port->text ||
      napi_get_typedarray_info(env, args[2], NULL, &count, &hashes, NULL, NULL) != napi_ok ||
      count < 2) {
    return false;
  }
  const uint64_t *hash = (const uint64_t *)hashes;
  const char *at = port->text;
  const char *end = at + size;
  *expected = (tw_expected){.package = next_text(&at, end),
                            .version = next_text(&at, end),
                            .layout = hash[0],
                            .imports_layout = hash[1],
                            .method_count = to_u32(env, args[3])};
  count = (count - 2) / 4;
  port->methods = (tw_method *)calloc(count + 1, sizeof(tw_method));
  if (!port->methods || expected->method_count > count) {
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    const uint64_t *its = hash + 2 + 4 * i;
    tw_method *method = &port->methods[i];
    *method = (tw_method){.name = next_text(&at, end),
                          .params = its[0],
                          .ok = its[1],
                          .error = its[2],
                          .element = its[3]};
    method->description = (const uint8_t *)next_text(&at, end);
    method->description_size = (uint32_t)strlen((const char *)method->description);
  }
  expected->methods = port->methods;
  expected->imports = port->methods + expected->method_count;
  expected->import_count = (uint32_t)count - expected->method_count;
  return true;
}

/* Opens the port, and lets the loop watch it. */
static uint32_t watch(struct port *port) {
  const tw_table *table = port->table;
  tw_error *error = port->error;
  uv_loop_t *loop = NULL;
  uint32_t ready = 0;
  uint32_t code = table->port_open(CAPACITY, &port->handle, error);
  if (code != TW_OK) {
    return code;
  }
  code = table->port_fd(port->handle, &port->fd, error);
  if (code == TW_OK) {
    code = table->port_arm(port->handle, &ready, error);
  }
  if (code == TW_OK) {
    napi_get_uv_event_loop(port->env, &loop);
    if (uv_poll_init(loop, &port->poll, port->fd) == 0) {
      port->poll.data = port;
      uv_unref((uv_handle_t *)&port->poll);
      uv_poll_start(&port->poll, UV_READABLE, on_readable);
      napi_add_async_cleanup_hook(port->env, clean_up, port, &port->hook);
      return TW_OK;
    }
    code = tw_fail(error, TW_OVERLOADED, "the event loop cannot watch the port");
  }
  table->port_close(port->handle, NULL);
  return code;
}

/* The library's TW_METHOD_* of each method of the package. */
static void method_flags(const struct port *port, uint8_t *to) {
  const tw_table *table = port->table;
  for (uint32_t i = 0; i < port->expected.method_count; i++) {
    for (uint32_t k = 0; k < table->method_count; k++) {
      if (strcmp(table->methods[k].name, port->methods[i].name) == 0) {
        memcpy(to + i * sizeof(uint32_t), &table->methods[k].flags, sizeof(uint32_t));
      }
    }
  }
}

/* open(path, texts, hashes, method count, deliver): an object with FUNCTIONS for this library, and the
 * ArrayBuffers `results`, `records`, `state` and `flags`. undefined: see `error`. `deliver(count, own)` is
 * called in each turn that has completions. */
static napi_value open_library(napi_env env, napi_callback_info info) {
  napi_value args[MAX_ARGUMENTS];
  napi_value object = NULL;
  uint8_t *flags = NULL;
  uint8_t *state = NULL;
  size_t length = 0;
  struct port *port = (struct port *)calloc(1, sizeof(*port));
  /* The data of this function is the memory of `error`. */
  tw_error *error = (tw_error *)(void *)arguments(env, info, args);
  tw_fail(error, TW_OVERLOADED, "no memory to open a library");
  char *path = to_text(env, args[0], &length);
  if (port && path && expect(env, args, port)) {
    port->env = env;
    port->error = error;
    if (tw_open(path, &port->expected, &port->table, error) == TW_OK &&
        napi_create_object(env, &object) == napi_ok &&
        share(env, object, "results", RESULTS_SIZE, &port->results) &&
        share(env, object, "records", RECORDS_SIZE, &port->records) &&
        share(env, object, "state", 2 * sizeof(uint32_t), &state) &&
        share(env, object, "flags", port->expected.method_count * sizeof(uint32_t), &flags) &&
        napi_create_reference(env, args[4], 1, &port->deliver) == napi_ok && watch(port) == TW_OK) {
      port->state = (uint32_t *)(void *)state;
      method_flags(port, flags);
      for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]); i++) {
        napi_value function = NULL;
        napi_create_function(env, FUNCTIONS[i].name, NAPI_AUTO_LENGTH, FUNCTIONS[i].function, port,
                             &function);
        napi_set_named_property(env, object, FUNCTIONS[i].name, function);
      }
      free(path);
      return object;
    }
  }
  free(path);
  free_port(port);
  return NULL;
}

NAPI_MODULE_INIT() {
  uint8_t *error = NULL;
  napi_value open = NULL;
  if (!share(env, exports, "error", sizeof(tw_error), &error) ||
      napi_create_function(env, "open", NAPI_AUTO_LENGTH, open_library, error, &open) != napi_ok ||
      napi_set_named_property(env, exports, "open", open) != napi_ok) {
    napi_throw_error(env, NULL, "thalweg: the native part cannot start");
  }
  return exports;
}
