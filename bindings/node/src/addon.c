/* The native part of the Node package: opens libraries, submits calls, reaps completions, reads
 * and writes streams. Everything else is JavaScript, in ../lib. It uses N-API and libuv, which node
 * exports; no helper thread and no threadsafe function.
 *
 *  1. An environment (the main thread or a worker) has its own `struct state`. Everything here runs
 *     on the environment's thread.
 *  2. JavaScript and this file exchange data through ArrayBuffers that only ../lib refers to, and
 *     that are never detached: `error`, and for each port `results` and `records`. Their memory
 *     therefore has the same address until the environment ends.
 *  3. The loop watches the port's eventfd (uv_poll). A turn delivers at most MAX_ENTRIES
 *     completions, in one call of JavaScript. A turn ends with the port armed, or with `again`
 *     active, so each completion causes a turn.
 *  4. The first word of `results` is the number of operations that JavaScript waits for. The two
 *     handles keep the process alive only if it is not 0.
 *  5. `owned` has each handle that belongs to this environment. The clean-up hook closes them: a
 *     worker that is terminated runs no JavaScript.
 *  6. The clean-up hook closes the port before any memory of the environment is freed. The state is
 *     freed once libuv has closed all its handles.
 *  7. Memory of a batch that JavaScript reads in place is retained. It is released when V8 frees
 *     the contents of the ArrayBuffer, so even a buffer that was transferred is never dangling.
 */
#define NAPI_VERSION 8
#include <node_api.h>
#include <uv.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg_open.h"

/* Slots of a port: the maximum number of outstanding calls of a thread and library. The same number
 * as in the Python package; the core allocates about 100 bytes for each. */
#define CAPACITY 16384u
/* Completions of one turn: rule 3. With 1 us for each, other events of the loop wait 0.3 ms. */
#define MAX_ENTRIES 256u
/* Completions of one reap. */
#define REAP 32u
/* Calls of one submission. The core looks up the client and wakes the service once for up to 64. */
#define MAX_CALLS 128u
/* Sizes of the shared buffers. Most turns fit, and a segment of a stream has 64 KiB. */
#define RESULTS_SIZE (256u * 1024u)
#define RECORDS_SIZE (96u * 1024u)
/* Where the entries or the data begin in both buffers. */
#define HEADER 64u

/* One call to submit. lib/port.js writes it. */
struct call {
  uint64_t token;
  uint64_t client;
  double timeout_ms; /* negative: none */
  uint64_t call;     /* out */
  uint32_t method;
  uint32_t flags;
  uint32_t args; /* offset in the buffer */
  uint32_t args_size;
};

/* One completion. lib/port.js reads it. Offsets are from the beginning of the buffer. */
struct entry {
  uint64_t token;
  uint64_t call;
  uint32_t kind;
  uint32_t code;
  uint32_t retryable;
  uint32_t own; /* 0, or 1 + the index of a buffer of its own, which has the data and message */
  uint32_t data;
  uint32_t data_size;
  uint32_t message;
  uint32_t message_size;
};

/* A batch. lib/stream.js reads it from the beginning of `records`. */
struct batch {
  uint64_t first_seq;
  uint64_t lost_before;
  uint64_t retained; /* 0: the records were copied */
  uint32_t count;
  uint32_t stride;
  uint32_t first; /* position of the first record in the buffer */
  int32_t base;   /* position to which offsets of slices are relative */
  uint32_t limit; /* position after the last readable byte */
  uint32_t gap_reason;
  uint32_t flags;
};

/* How `read` returns a batch, and what `close` closes: as in lib. */
enum { COPY_SLOTS, COPY_ALL, IN_PLACE };
enum { ANY, CLIENT, STREAM, RESOURCE };

/* A set of handles: open addressing with linear probing. 0 is a free slot. */
struct owned {
  tw_handle *slots;
  size_t size; /* a power of two, or 0 */
  size_t count;
};

/* One library in one environment, and its port. */
struct port {
  struct state *state;
  const tw_table *table;
  tw_expected expected;
  char *text[4];         /* what `expected` points to: package, version, methods, imports */
  tw_method *methods[2]; /* methods, imports */
  tw_handle handle;      /* 0 before `start` and after the clean-up */
  uv_poll_t poll;
  uv_idle_t again;
  bool watched;    /* libuv has the two handles */
  bool referenced; /* they keep the process alive */
  napi_ref deliver;
  uint8_t *results;
  uint8_t *records;
  tw_completion reaped[REAP];
  uint32_t next; /* the first one that was not delivered */
  uint32_t reaped_count;
  struct owned owned;
};

struct state {
  napi_env env;
  uv_loop_t *loop;
  tw_error *error; /* rule 2; NULL from the clean-up on */
  struct port **ports;
  uint32_t port_count;
  napi_async_cleanup_hook_handle hook;
  uint32_t closing; /* handles that libuv has not closed yet */
};

/* ---- Owned handles --------------------------------------------------------------------------- */

static tw_handle *owned_slot(const struct owned *set, tw_handle handle) {
  size_t at = (size_t)((handle * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (set->size - 1);
  while (set->slots[at] != 0 && set->slots[at] != handle) {
    at = (at + 1) & (set->size - 1);
  }
  return &set->slots[at];
}

/* Without memory the handle is not tracked; JavaScript still closes it. */
static void owned_add(struct owned *set, tw_handle handle) {
  if (handle == 0) {
    return;
  }
  if (set->count * 2 >= set->size) {
    struct owned larger = {NULL, set->size ? set->size * 2 : 64, set->count};
    larger.slots = (tw_handle *)calloc(larger.size, sizeof(tw_handle));
    if (!larger.slots) {
      return;
    }
    for (size_t at = 0; at < set->size; at++) {
      if (set->slots[at] != 0) {
        *owned_slot(&larger, set->slots[at]) = set->slots[at];
      }
    }
    free(set->slots);
    *set = larger;
  }
  tw_handle *slot = owned_slot(set, handle);
  set->count += *slot == 0;
  *slot = handle;
}

static void owned_remove(struct owned *set, tw_handle handle) {
  tw_handle *slot = handle == 0 || set->size == 0 ? NULL : owned_slot(set, handle);
  if (!slot || *slot == 0) {
    return;
  }
  *slot = 0;
  set->count--;
  /* The entries after it may have been placed there because of it. */
  size_t mask = set->size - 1;
  for (size_t at = ((size_t)(slot - set->slots) + 1) & mask; set->slots[at] != 0;
       at = (at + 1) & mask) {
    tw_handle moved = set->slots[at];
    set->slots[at] = 0;
    *owned_slot(set, moved) = moved;
  }
}

/* TW_ARGUMENT: the handle is of another kind. */
static uint32_t close_as(const tw_table *table, uint32_t kind, tw_handle handle) {
  switch (kind) {
  case CLIENT:
    return table->client_close(handle, NULL);
  case STREAM:
    return table->stream_close(handle, NULL);
  case RESOURCE:
    return table->resource_drop(handle, NULL);
  default:
    for (kind = CLIENT; kind < RESOURCE; kind++) {
      uint32_t code = close_as(table, kind, handle);
      if (code != TW_ARGUMENT) {
        return code;
      }
    }
    return close_as(table, RESOURCE, handle);
  }
}

/* ---- Arguments and results ------------------------------------------------------------------- */

#define MAX_ARGUMENTS 9

/* The state, and `count` arguments. NULL with an exception: ../lib never causes it. */
static struct state *arguments(napi_env env, napi_callback_info info, size_t count,
                               napi_value *args) {
  size_t passed = MAX_ARGUMENTS;
  void *state = NULL;
  if (napi_get_cb_info(env, info, &passed, args, NULL, &state) != napi_ok || passed < count ||
      !((struct state *)state)->error) {
    napi_throw_type_error(env, NULL, "thalweg: wrong arguments for a native function");
    return NULL;
  }
  return (struct state *)state;
}

/* The same; args[0] is the index of a port. */
static struct port *port_arguments(napi_env env, napi_callback_info info, size_t count,
                                   napi_value *args, bool is_open) {
  struct state *state = arguments(env, info, count, args);
  uint32_t index = 0;
  if (!state) {
    return NULL;
  }
  if (napi_get_value_uint32(env, args[0], &index) != napi_ok || index >= state->port_count ||
      (is_open && state->ports[index]->handle == 0)) {
    napi_throw_type_error(env, NULL, "thalweg: no such port");
    return NULL;
  }
  return state->ports[index];
}

/* Begins a function of an open port with `count` arguments, the port's index included. */
#define PORT_FUNCTION(count)                                                                       \
  napi_value args[MAX_ARGUMENTS];                                                                  \
  struct port *port = port_arguments(env, info, (count), args, true);                              \
  if (!port) {                                                                                     \
    return NULL;                                                                                   \
  }                                                                                                \
  const tw_table *table = port->table;                                                             \
  tw_error *error = port->state->error;                                                            \
  (void)error

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
  if (text && napi_get_value_string_utf8(env, value, text, *length + 1, length) != napi_ok) {
    free(text);
    text = NULL;
  }
  return text;
}

static napi_value from_u32(napi_env env, uint32_t number) {
  napi_value value = NULL;
  napi_create_uint32(env, number, &value);
  return value;
}

static napi_value from_u64(napi_env env, uint64_t number) {
  napi_value value = NULL;
  napi_create_bigint_uint64(env, number, &value);
  return value;
}

/* A new ArrayBuffer. NULL: no memory; the exception is cleared. */
static napi_value new_buffer(napi_env env, size_t size, uint8_t **data) {
  napi_value value = NULL;
  void *memory = NULL;
  if (napi_create_arraybuffer(env, size, &memory, &value) != napi_ok) {
    napi_value raised = NULL;
    napi_get_and_clear_last_exception(env, &raised);
    return NULL;
  }
  *data = (uint8_t *)memory;
  return value;
}

/* An ArrayBuffer that lives as long as the environment: rule 2. */
static napi_value shared_buffer(napi_env env, size_t size, uint8_t **data) {
  napi_value value = new_buffer(env, size, data);
  napi_ref held = NULL;
  if (!value || napi_create_reference(env, value, 1, &held) != napi_ok) {
    return NULL;
  }
  memset(*data, 0, size);
  return value;
}

static size_t aligned(size_t size) {
  return (size + 7) & ~(size_t)7;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void free_port(struct port *port) {
  for (size_t i = 0; i < 4; i++) {
    free(port->text[i]);
  }
  free(port->methods[0]);
  free(port->methods[1]);
  free(port->owned.slots);
  free(port);
}

/* Functions as the package describes them: `text` has the name and the description of each, both
 * NUL-terminated, and args[1] (a BigUint64Array) its four hashes. */
static bool to_methods(napi_env env, const napi_value *args, char **text, tw_method **methods,
                       uint32_t *count) {
  size_t size = 0;
  size_t length = 0;
  void *data = NULL;
  *text = to_text(env, args[0], &size);
  if (!*text ||
      napi_get_typedarray_info(env, args[1], NULL, &length, &data, NULL, NULL) != napi_ok) {
    return false;
  }
  *count = (uint32_t)(length / 4);
  *methods = (tw_method *)calloc((size_t)*count + 1, sizeof(tw_method));
  if (!*methods) {
    return false;
  }
  const char *at = *text;
  const char *end = *text + size;
  for (uint32_t i = 0; i < *count; i++) {
    tw_method *method = &(*methods)[i];
    uint64_t hashes[4];
    memcpy(hashes, (const uint8_t *)data + i * sizeof(hashes), sizeof(hashes));
    const char *description = at + strlen(at) + 1;
    if (description > end) {
      return false;
    }
    *method = (tw_method){at,
                          hashes[0],
                          hashes[1],
                          hashes[2],
                          hashes[3],
                          0,
                          (uint32_t)strlen(description),
                          (const uint8_t *)description};
    at = description + method->description_size + 1;
    if (at > end) {
      return false;
    }
  }
  return true;
}

/* Fills in a port from the arguments of `open`. False: see `error`. */
static bool open_port(napi_env env, const napi_value *args, struct port *port, tw_error *error) {
  size_t length = 0;
  tw_expected *expected = &port->expected;
  tw_fail(error, TW_ARGUMENT, "the description of the package is malformed, or memory is short");
  port->text[0] = to_text(env, args[1], &length);
  port->text[1] = to_text(env, args[2], &length);
  expected->package = port->text[0];
  expected->version = port->text[1];
  expected->layout = to_u64(env, args[3]);
  expected->imports_layout = to_u64(env, args[4]);
  if (!port->text[0] || !port->text[1] ||
      !to_methods(env, &args[5], &port->text[2], &port->methods[0], &expected->method_count) ||
      !to_methods(env, &args[7], &port->text[3], &port->methods[1], &expected->import_count)) {
    return false;
  }
  expected->methods = port->methods[0];
  expected->imports = port->methods[1];
  char *path = to_text(env, args[0], &length);
  bool is_open = path && tw_open(path, expected, &port->table, error) == TW_OK;
  free(path);
  return is_open;
}

/* open(path, package, version, layout, imports layout, methods, hashes, imports, hashes): the index
 * of the port of this library; -1: see `error`. */
static napi_value open_library(napi_env env, napi_callback_info info) {
  napi_value args[MAX_ARGUMENTS];
  napi_value result = NULL;
  struct state *state = arguments(env, info, 9, args);
  if (!state) {
    return NULL;
  }
  int32_t index = -1;
  struct port *port = (struct port *)calloc(1, sizeof(*port));
  if (!port) {
    tw_fail(state->error, TW_OVERLOADED, "no memory to open a library");
  } else if (open_port(env, args, port, state->error)) {
    for (uint32_t i = 0; i < state->port_count; i++) {
      if (state->ports[i]->table == port->table &&
          state->ports[i]->expected.layout == port->expected.layout) {
        index = (int32_t)i;
      }
    }
    if (index < 0) {
      size_t size = (state->port_count + 1) * sizeof(struct port *);
      struct port **ports = (struct port **)realloc(state->ports, size);
      tw_fail(state->error, TW_OVERLOADED, "no memory to open a library");
      if (ports) {
        index = (int32_t)state->port_count++;
        state->ports = ports;
        ports[index] = port;
        port->state = state;
        port = NULL;
      }
    }
  }
  if (port) {
    free_port(port);
  }
  napi_create_int32(env, index, &result);
  return result;
}

/* flags(port): an ArrayBuffer with the library's TW_METHOD_* of each method of the package. */
static napi_value method_flags(napi_env env, napi_callback_info info) {
  napi_value args[MAX_ARGUMENTS];
  struct port *port = port_arguments(env, info, 1, args, false);
  if (!port) {
    return NULL;
  }
  uint8_t *data = NULL;
  uint32_t count = port->expected.method_count;
  napi_value buffer = new_buffer(env, count * sizeof(uint32_t), &data);
  for (uint32_t i = 0; buffer && i < count; i++) {
    uint32_t flags = 0;
    for (uint32_t k = 0; k < port->table->method_count; k++) {
      if (strcmp(port->table->methods[k].name, port->methods[0][i].name) == 0) {
        flags = port->table->methods[k].flags;
      }
    }
    memcpy(data + i * sizeof(flags), &flags, sizeof(flags));
  }
  return buffer;
}

/* clientOpen(port): the handle; 0n: see `error`. */
static napi_value client_open(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(1);
  const tw_expected *expected = &port->expected;
  tw_handle client = 0;
  if (table->client_open(&client, error) != TW_OK) {
    return from_u64(env, 0);
  }
  if (table->layout != expected->layout &&
      table->client_set_layouts(client, expected->methods, expected->method_count,
                                expected->imports, expected->import_count, error) != TW_OK) {
    table->client_close(client, NULL);
    return from_u64(env, 0);
  }
  owned_add(&port->owned, client);
  return from_u64(env, client);
}

/* close(port, kind, handle): closing twice has no effect. */
static napi_value close_handle(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(3);
  tw_handle handle = to_u64(env, args[2]);
  owned_remove(&port->owned, handle);
  close_as(table, to_u32(env, args[1]), handle);
  return NULL;
}

/* forget(port, handle): it belongs to the service now. */
static napi_value forget(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(2);
  (void)table;
  owned_remove(&port->owned, to_u64(env, args[1]));
  return NULL;
}

/* setHost(port, client, slot, generation): the code. Host calls arrive with this token. */
static napi_value set_host(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(4);
  return from_u32(env, table->client_set_host(to_u64(env, args[1]), port->handle,
                                              to_token(env, &args[2]), error));
}

/* ---- The port in the event loop -------------------------------------------------------------- */

/* Rule 4. */
static void update_reference(struct port *port) {
  int32_t waiting = 0;
  memcpy(&waiting, port->results, sizeof(waiting));
  if ((waiting > 0) == port->referenced) {
    return;
  }
  port->referenced = waiting > 0;
  void (*change)(uv_handle_t *) = port->referenced ? uv_ref : uv_unref;
  change((uv_handle_t *)&port->poll);
  change((uv_handle_t *)&port->again);
}

/* Where completions are copied to. */
struct sink {
  napi_env env;
  uint8_t *memory;
  size_t used;
  size_t size;
  napi_value own; /* an array of the buffers of large completions, or NULL */
  uint32_t own_count;
};

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
    owned_add(&port->owned, handle);
  }
}

/* Copies a completion and releases it. False: the memory that is left is too small. */
static bool copy_out(struct port *port, struct sink *sink, tw_completion *from,
                     struct entry *entry) {
  size_t data_size = from->data ? (size_t)from->data_size : 0;
  size_t message_size = from->message ? from->message_size : 0;
  size_t wanted = aligned(data_size) + aligned(message_size);
  uint8_t *to = sink->memory;
  *entry = (struct entry){.token = from->token,
                          .call = from->call,
                          .kind = from->kind,
                          .code = from->code,
                          .retryable = from->retryable};
  if (wanted <= sink->size - sink->used) {
    entry->data = (uint32_t)sink->used;
    sink->used += wanted;
  } else if (wanted <= sink->size / 2) {
    return false;
  } else {
    napi_value buffer = new_buffer(sink->env, wanted, &to);
    if (!sink->own) {
      napi_create_array(sink->env, &sink->own);
    }
    if (!buffer || napi_set_element(sink->env, sink->own, sink->own_count, buffer) != napi_ok) {
      entry->code = entry->kind == TW_COMPLETION_CALL ? TW_OVERLOADED : entry->code;
      entry->retryable = 0; /* the call has run */
      port->table->release(from);
      return true;
    }
    entry->own = ++sink->own_count;
  }
  entry->data_size = (uint32_t)data_size;
  entry->message = (uint32_t)(entry->data + aligned(data_size));
  entry->message_size = (uint32_t)message_size;
  if (data_size > 0) {
    memcpy(to + entry->data, from->data, data_size);
    take_handles(port, from, to + entry->data, data_size);
  }
  if (message_size > 0) {
    memcpy(to + entry->message, from->message, message_size);
  }
  port->table->release(from);
  return true;
}

static void on_again(uv_idle_t *again);

/* Copies completions until none is left or the limits of a turn are reached: rule 3. Returns their
 * number. */
static uint32_t drain(struct port *port, struct sink *sink) {
  const tw_table *table = port->table;
  bool armed = false;
  uint32_t count = 0;
  for (uint32_t fruitless = 0; fruitless < 2;) {
    for (; port->next < port->reaped_count; port->next++, count++) {
      struct entry entry;
      if (count == MAX_ENTRIES || !copy_out(port, sink, &port->reaped[port->next], &entry)) {
        uv_idle_start(&port->again, on_again);
        return count;
      }
      memcpy(sink->memory + HEADER + count * sizeof(entry), &entry, sizeof(entry));
    }
    port->next = 0;
    port->reaped_count = 0;
    if (armed) {
      return count;
    }
    if (table->port_reap(port->handle, port->reaped, REAP, &port->reaped_count, NULL) != TW_OK) {
      port->reaped_count = 0;
      uv_poll_stop(&port->poll); /* this process is a fork, and the port is its parent's */
      return count;
    }
    if (port->reaped_count < REAP) {
      uint32_t ready = 0;
      armed = table->port_arm(port->handle, &ready, NULL) == TW_OK && !ready;
      fruitless += !armed && port->reaped_count == 0;
    }
  }
  uv_idle_start(&port->again, on_again); /* the fd was reset, but the port is not armed */
  return count;
}

/* Delivers completions to JavaScript. An exception of JavaScript is an uncaught exception. */
static void turn(struct port *port) {
  napi_env env = port->state->env;
  napi_handle_scope scope;
  if (port->handle == 0 || napi_open_handle_scope(env, &scope) != napi_ok) {
    return;
  }
  struct sink sink = {env,          port->results, HEADER + MAX_ENTRIES * sizeof(struct entry),
                      RESULTS_SIZE, NULL,          0};
  uint32_t count = drain(port, &sink);
  napi_value deliver;
  napi_value global;
  napi_value raised;
  if (count > 0 && napi_get_reference_value(env, port->deliver, &deliver) == napi_ok &&
      napi_get_global(env, &global) == napi_ok) {
    napi_value args[2] = {from_u32(env, count), sink.own ? sink.own : global};
    /* This also runs the microtasks: the code that awaited the calls. */
    if (napi_make_callback(env, NULL, global, deliver, 2, args, NULL) == napi_pending_exception &&
        napi_get_and_clear_last_exception(env, &raised) == napi_ok) {
      napi_fatal_exception(env, raised);
    }
  }
  if (port->handle != 0) {
    update_reference(port);
  }
  napi_close_handle_scope(env, scope);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  turn((struct port *)poll->data);
}

static void on_again(uv_idle_t *again) {
  uv_idle_stop(again);
  turn((struct port *)again->data);
}

/* Opens the port, and lets the loop watch it. */
static uint32_t watch(struct port *port, tw_error *error) {
  const tw_table *table = port->table;
  uint32_t ready = 0;
  int fd = -1;
  uint32_t code = table->port_open(CAPACITY, &port->handle, error);
  if (code != TW_OK) {
    return code;
  }
  code = table->port_fd(port->handle, &fd, error);
  if (code == TW_OK) {
    int status = uv_poll_init(port->state->loop, &port->poll, fd);
    if (status == 0) {
      uv_idle_init(port->state->loop, &port->again);
      port->poll.data = port;
      port->again.data = port;
      port->watched = true;
      port->referenced = true;
      update_reference(port);
      status = uv_poll_start(&port->poll, UV_READABLE, on_readable);
    }
    if (status == 0) {
      return table->port_arm(port->handle, &ready, error);
    }
    code = tw_fail(error, TW_OVERLOADED, "the event loop cannot watch the port: %s",
                   uv_strerror(status));
  }
  table->port_close(port->handle, NULL);
  port->handle = 0;
  return code;
}

/* start(port, deliver): opens the port. Returns [results, records]; undefined: see `error`.
 * `deliver(count, own)` is called in each turn that has completions. */
static napi_value start(napi_env env, napi_callback_info info) {
  napi_value args[MAX_ARGUMENTS];
  napi_value result = NULL;
  struct port *port = port_arguments(env, info, 2, args, false);
  if (!port || port->handle != 0 || port->watched) {
    return NULL;
  }
  tw_fail(port->state->error, TW_OVERLOADED, "no memory for a port");
  napi_value results = shared_buffer(env, RESULTS_SIZE, &port->results);
  napi_value records = shared_buffer(env, RECORDS_SIZE, &port->records);
  if (!results || !records || napi_create_array_with_length(env, 2, &result) != napi_ok ||
      napi_set_element(env, result, 0, results) != napi_ok ||
      napi_set_element(env, result, 1, records) != napi_ok ||
      napi_create_reference(env, args[1], 1, &port->deliver) != napi_ok ||
      watch(port, port->state->error) != TW_OK) {
    return NULL;
  }
  return result;
}

/* sync(port): the number of awaited operations has changed. */
static napi_value sync_reference(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(1);
  (void)table;
  update_reference(port);
  return NULL;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* 0 means no deadline. */
static uint64_t deadline(const tw_table *table, double timeout_ms) {
  if (!(timeout_ms >= 0)) {
    return 0;
  }
  double wanted = (double)table->now() + timeout_ms * 1e6;
  return wanted < 9e18 ? (uint64_t)fmax(wanted, 1) : TW_FOREVER;
}

/* Reads the calls number `from` to `count` of an outbox. False: they are not inside of it. */
static bool to_submissions(const tw_table *table, uint8_t *buffer, size_t size, uint32_t from,
                           uint32_t count, tw_submission *out) {
  if (from >= count || count > MAX_CALLS || count > size / sizeof(struct call)) {
    return false;
  }
  for (uint32_t i = from; i < count; i++) {
    struct call call;
    memcpy(&call, buffer + i * sizeof(call), sizeof(call));
    if (call.args > size || call.args_size > size - call.args) {
      return false;
    }
    *out++ = (tw_submission){.token = call.token,
                             .client = call.client,
                             .method = call.method,
                             .flags = call.flags,
                             .args = buffer + call.args,
                             .args_size = call.args_size,
                             .deadline_ns = deadline(table, call.timeout_ms)};
  }
  return true;
}

/* submit(port, outbox, from, count): submits the calls number `from` to `count`, without `count`.
 * Returns the number of the first one that was refused, and `error` says why; `count` if all were
 * accepted. */
static napi_value submit(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(4);
  tw_submission batch[MAX_CALLS];
  void *buffer = NULL;
  size_t size = 0;
  uint32_t from = to_u32(env, args[2]);
  uint32_t count = to_u32(env, args[3]);
  uint32_t accepted = 0;
  napi_get_arraybuffer_info(env, args[1], &buffer, &size);
  if (!to_submissions(table, (uint8_t *)buffer, size, from, count, batch)) {
    tw_fail(error, TW_ARGUMENT, "a malformed submission");
    return from_u32(env, from);
  }
  table->submit(port->handle, batch, count - from, &accepted, error);
  for (uint32_t i = 0; i < accepted; i++) {
    size_t at = (from + i) * sizeof(struct call) + offsetof(struct call, call);
    memcpy((uint8_t *)buffer + at, &batch[i].call, sizeof(tw_handle));
  }
  update_reference(port);
  return from_u32(env, from + accepted);
}

/* callInline(port, outbox): makes call number 0 of the outbox on this thread. Returns a code if it
 * was not made. Otherwise its entry is at the beginning of `records`, and the result there or in
 * the ArrayBuffer that is returned. */
static napi_value call_inline(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(2);
  tw_submission call;
  void *buffer = NULL;
  size_t size = 0;
  napi_get_arraybuffer_info(env, args[1], &buffer, &size);
  if (!to_submissions(table, (uint8_t *)buffer, size, 0, 1, &call)) {
    return from_u32(env, tw_fail(error, TW_ARGUMENT, "a malformed submission"));
  }
  tw_completion completion = {0};
  uint32_t code = table->call_inline(call.client, call.method, call.args, call.args_size,
                                     call.deadline_ns, &completion, error);
  if (code != TW_OK) {
    return from_u32(env, code);
  }
  completion.kind = TW_COMPLETION_CALL;
  struct sink sink = {env, port->records, HEADER, RECORDS_SIZE, NULL, 0};
  struct entry entry;
  copy_out(port, &sink, &completion, &entry); /* a result that does not fit has its own buffer */
  memcpy(port->records, &entry, sizeof(entry));
  napi_value own = NULL;
  if (entry.own) {
    napi_get_element(env, sink.own, 0, &own);
  }
  return own ? own : from_u32(env, TW_OK);
}

/* cancel(port, call) */
static napi_value cancel(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(2);
  table->cancel(to_u64(env, args[1]), NULL);
  return NULL;
}

/* answer(port, call, code, buffer, offset, size): the code. */
static napi_value answer(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(6);
  uint32_t size = 0;
  const uint8_t *data = to_bytes(env, &args[3], &size);
  return from_u32(
      env, table->host_call_answer(to_u64(env, args[1]), to_u32(env, args[2]), data, size, error));
}

/* ---- Streams --------------------------------------------------------------------------------- */

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

/* An ArrayBuffer over the memory of the open batch. NULL: this node does not allow it. */
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
    table->retained_batch_release(*handle, NULL);
    free(retained);
    *handle = 0;
    return NULL;
  }
  return buffer;
}

/* Copies the records of the open batch into `records`, or into a new ArrayBuffer, which is the
 * result. TW_OVERLOADED: no memory for that. */
static uint32_t copy_records(napi_env env, struct port *port, uint32_t mode, const tw_batch *batch,
                             struct batch *out, napi_value *buffer) {
  uint32_t offset = (uint32_t)(batch->slots - batch->base);
  size_t size =
      mode == COPY_SLOTS ? (size_t)batch->count * batch->stride : (size_t)batch->size - offset;
  uint8_t *to = port->records + HEADER;
  out->first = HEADER;
  if (mode == IN_PLACE || size > RECORDS_SIZE - HEADER) {
    out->first = 0;
    *buffer = new_buffer(env, size, &to);
    if (!*buffer) {
      return tw_fail(port->state->error, TW_OVERLOADED, "no memory for a batch");
    }
  }
  out->base = (int32_t)out->first - (int32_t)offset;
  out->limit = out->first + (uint32_t)size;
  memcpy(to, batch->slots, size);
  return TW_OK;
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
  tw_error *error = port->state->error;
  for (;;) {
    uint32_t ready = 0;
    uint32_t code = port->table->stream_acquire(stream, max, 0, batch, error);
    if (code != TW_WOULD_PARK || (batch->flags & TW_BATCH_END)) {
      return code;
    }
    code = port->table->stream_arm(stream, port->handle, token, &ready, error);
    if (code != TW_OK || !ready) {
      return code == TW_OK ? TW_WOULD_PARK : code;
    }
  }
}

/* read(port, stream, max, slot, generation, mode, record size): the next batch, described at the
 * beginning of `records`. Returns the ArrayBuffer with the records, or a code. TW_OK: they are in
 * `records`. TW_WOULD_PARK: there are none, and the stream was armed. The batch is open only if
 * `retained` is not 0. */
static napi_value read_stream(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(7);
  napi_value buffer = NULL;
  tw_handle stream = to_u64(env, args[1]);
  uint32_t mode = to_u32(env, args[5]);
  tw_batch batch = {0};
  uint32_t code =
      acquire_or_arm(port, stream, to_u32(env, args[2]), to_token(env, &args[3]), &batch);
  struct batch out = {.first_seq = batch.first_seq,
                      .lost_before = batch.lost_before,
                      .count = batch.count,
                      .stride = batch.stride,
                      .gap_reason = batch.gap_reason,
                      .flags = batch.flags};
  if (code == TW_OK) {
    code = check_batch(&batch, to_u32(env, args[6]), error);
    if (code == TW_OK && mode == IN_PLACE) {
      buffer = in_place(env, table, stream, &batch, &out.retained);
      out.first = (uint32_t)(batch.slots - batch.base);
      out.limit = (uint32_t)batch.size;
    }
    if (code == TW_OK && !buffer) {
      code = copy_records(env, port, mode, &batch, &out, &buffer);
    }
    if (out.retained == 0) {
      table->stream_release(stream, batch.count, NULL);
    }
  }
  memcpy(port->records, &out, sizeof(out));
  return buffer ? buffer : from_u32(env, code);
}

/* release(port, stream, count, buffer, retained): releases a batch that was read in place. Its
 * typed arrays are empty afterwards. */
static napi_value release_batch(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(5);
  bool is_detached = true;
  table->stream_release(to_u64(env, args[1]), to_u32(env, args[2]), NULL);
  /* The contents of a buffer that JavaScript has transferred have another owner: rule 7. */
  if (napi_is_detached_arraybuffer(env, args[3], &is_detached) == napi_ok && !is_detached &&
      napi_detach_arraybuffer(env, args[3]) == napi_ok) {
    table->retained_batch_release(to_u64(env, args[4]), NULL);
  }
  return NULL;
}

/* tee(port, stream): another reader; 0n: see `error`. */
static napi_value tee_stream(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(2);
  tw_handle reader = 0;
  if (table->stream_tee(to_u64(env, args[1]), &reader, error) != TW_OK) {
    reader = 0;
  }
  owned_add(&port->owned, reader);
  return from_u64(env, reader);
}

/* streamError(port, stream): an ArrayBuffer with the service's own error, or a code. */
static napi_value stream_error(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(2);
  const uint8_t *data = NULL;
  uint64_t size = 0;
  uint8_t *to = NULL;
  uint32_t code = table->stream_error(to_u64(env, args[1]), &data, &size, error);
  if (code != TW_OK) {
    return from_u32(env, code);
  }
  napi_value buffer = new_buffer(env, (size_t)size, &to);
  if (!buffer) {
    return from_u32(env, tw_fail(error, TW_OVERLOADED, "no memory for an error"));
  }
  memcpy(to, data, (size_t)size);
  return buffer;
}

/* streamNew(port, client, method, parameter): the code. The writer's and the reader's handles are
 * the first two numbers in `records`. */
static napi_value stream_new(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(4);
  tw_handle ends[2] = {0, 0};
  uint32_t code = table->stream_new(to_u64(env, args[1]), to_u32(env, args[2]),
                                    to_u32(env, args[3]), &ends[0], &ends[1], error);
  owned_add(&port->owned, ends[0]);
  owned_add(&port->owned, ends[1]);
  memcpy(port->records, ends, sizeof(ends));
  return from_u32(env, code);
}

/* send(port, writer, buffer, offset, size, slot, generation): the code. TW_WOULD_PARK: there is no
 * capacity, and the stream was armed. */
static napi_value send_element(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(7);
  tw_handle writer = to_u64(env, args[1]);
  uint32_t size = 0;
  const uint8_t *data = to_bytes(env, &args[2], &size);
  for (;;) {
    uint32_t ready = 0;
    uint32_t code = table->stream_send(writer, data, size, 0, error);
    if (code != TW_WOULD_PARK) {
      return from_u32(env, code);
    }
    code = table->stream_arm(writer, port->handle, to_token(env, &args[5]), &ready, error);
    if (code != TW_OK || !ready) {
      return from_u32(env, code == TW_OK ? TW_WOULD_PARK : code);
    }
  }
}

/* finish(port, writer) */
static napi_value finish_stream(napi_env env, napi_callback_info info) {
  PORT_FUNCTION(2);
  table->stream_finish(to_u64(env, args[1]), NULL);
  return NULL;
}

/* ---- The environment ------------------------------------------------------------------------- */

static void free_state(struct state *state) {
  for (uint32_t i = 0; i < state->port_count; i++) {
    free_port(state->ports[i]);
  }
  free(state->ports);
  napi_remove_async_cleanup_hook(state->hook);
  free(state);
}

static void on_closed(uv_handle_t *handle) {
  struct state *state = ((struct port *)handle->data)->state;
  if (--state->closing == 0) {
    free_state(state);
  }
}

/* Rule 6. */
static void clean_up(napi_async_cleanup_hook_handle hook, void *data) {
  struct state *state = (struct state *)data;
  state->hook = hook;
  state->error = NULL;
  state->closing = 1;
  for (uint32_t i = 0; i < state->port_count; i++) {
    struct port *port = state->ports[i];
    tw_handle handle = port->handle;
    port->handle = 0;
    if (port->watched) {
      state->closing += 2;
      uv_close((uv_handle_t *)&port->poll, on_closed);
      uv_close((uv_handle_t *)&port->again, on_closed);
    }
    if (handle != 0) {
      port->table->port_close(handle, NULL);
    }
    for (; port->next < port->reaped_count; port->next++) {
      port->table->release(&port->reaped[port->next]);
    }
    for (size_t k = 0; k < port->owned.size; k++) {
      if (port->owned.slots[k] != 0) {
        close_as(port->table, ANY, port->owned.slots[k]);
      }
    }
  }
  if (--state->closing == 0) {
    free_state(state);
  }
}

static const struct {
  const char *name;
  napi_callback function;
} FUNCTIONS[] = {
    {"open", open_library},
    {"flags", method_flags},
    {"clientOpen", client_open},
    {"close", close_handle},
    {"forget", forget},
    {"setHost", set_host},
    {"start", start},
    {"sync", sync_reference},
    {"submit", submit},
    {"callInline", call_inline},
    {"cancel", cancel},
    {"answer", answer},
    {"read", read_stream},
    {"release", release_batch},
    {"tee", tee_stream},
    {"streamError", stream_error},
    {"streamNew", stream_new},
    {"send", send_element},
    {"finish", finish_stream},
};

NAPI_MODULE_INIT() {
  struct state *state = (struct state *)calloc(1, sizeof(*state));
  uint8_t *memory = NULL;
  napi_value error = state ? shared_buffer(env, sizeof(tw_error), &memory) : NULL;
  if (!error || napi_get_uv_event_loop(env, &state->loop) != napi_ok ||
      napi_set_named_property(env, exports, "error", error) != napi_ok ||
      napi_add_async_cleanup_hook(env, clean_up, state, &state->hook) != napi_ok) {
    free(state);
    napi_throw_error(env, NULL, "thalweg: the native part cannot start");
    return NULL;
  }
  state->env = env;
  state->error = (tw_error *)(void *)memory;
  for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]); i++) {
    napi_value function = NULL;
    napi_create_function(env, FUNCTIONS[i].name, NAPI_AUTO_LENGTH, FUNCTIONS[i].function, state,
                         &function);
    napi_set_named_property(env, exports, FUNCTIONS[i].name, function);
  }
  return exports;
}
