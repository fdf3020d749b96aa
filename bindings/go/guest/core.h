/* The functions of tw_guest_core: cgo cannot call through a pointer. */
#ifndef THALWEG_GO_CORE_H
#define THALWEG_GO_CORE_H

#include <stdbool.h>

#include "thalweg_guest.h"

static inline uint64_t thalweg_now(const tw_guest_core *core) {
  return core->now();
}

static inline uint32_t thalweg_answer(const tw_guest_core *core, tw_handle call, uint32_t code,
                                      const uint8_t *message, uint64_t size) {
  return core->answer(call, code, message, size, NULL);
}

/* An answer, whose message has `size` bytes. */
typedef struct thalweg_result {
  tw_handle call;
  uint32_t code;
  uint32_t size;
} thalweg_result;

#define THALWEG_MOST_ANSWERS 64

/* Answers up to THALWEG_MOST_ANSWERS calls. The messages are adjacent in `data`, each from a multiple of 8
 * bytes. */
static inline void thalweg_answer_many(const tw_guest_core *core, const thalweg_result *answers,
                                       uint32_t count, const uint8_t *data) {
  tw_guest_answer given[THALWEG_MOST_ANSWERS];
  uint32_t i;
  for (i = 0; i < count; i++) {
    given[i].call = answers[i].call;
    given[i].code = answers[i].code;
    given[i].result = 0;
    given[i].message = data;
    given[i].message_size = answers[i].size;
    data += (answers[i].size + UINT32_C(7)) & ~UINT32_C(7);
  }
  core->answer_many(given, count);
}

static inline uint32_t thalweg_answer_resource(const tw_guest_core *core, tw_handle call,
                                               uint32_t type, uint64_t object) {
  return core->answer_resource(call, type, object, NULL);
}

static inline uint32_t thalweg_answer_stream(const tw_guest_core *core, tw_handle call,
                                             tw_handle *writer) {
  return core->answer_stream(call, writer, NULL);
}

static inline uint32_t thalweg_fail(const tw_guest_core *core, tw_handle call, uint32_t code,
                                    const char *text, uint64_t size) {
  return core->fail(call, code, text, size, NULL);
}

static inline uint32_t thalweg_call_check(const tw_guest_core *core, tw_handle call,
                                          tw_error *error) {
  return core->call_check(call, error);
}

static inline uint32_t thalweg_object(const tw_guest_core *core, tw_handle call, tw_handle resource,
                                      uint32_t type, bool is_own, uint64_t *object,
                                      tw_error *error) {
  return is_own ? core->resource_take(call, resource, type, object, error)
                : core->resource_get(call, resource, type, object, error);
}

/* Makes handles of objects. Returns how many were made. */
static inline uint32_t thalweg_new_objects(const tw_guest_core *core, tw_handle call,
                                           const uint32_t *types, const uint64_t *objects,
                                           uint32_t count, tw_handle *handles) {
  uint32_t i = 0;
  while (i < count && core->resource_new(call, types[i], objects[i], &handles[i], NULL) == TW_OK) {
    i++;
  }
  return i;
}

static inline uint32_t thalweg_reader_open(const tw_guest_core *core, tw_handle call,
                                           tw_handle stream, tw_handle *reader, tw_error *error) {
  return core->reader_open(call, stream, reader, error);
}

/* Receives the next element and releases the one before. TW_WOULD_PARK: the port gets an event with
 * `token` when there is one. */
static inline uint32_t thalweg_reader_receive(const tw_guest_core *core, tw_handle reader,
                                              tw_handle port, uint64_t token,
                                              tw_guest_message *element, tw_error *error) {
  uint32_t code;
  core->message_release(element);
  code = core->reader_receive(reader, 0, element, error);
  if (code == TW_WOULD_PARK) {
    uint32_t asked = core->reader_notify(reader, port, token, error);
    return asked == TW_OK ? code : asked;
  }
  return code;
}

static inline void thalweg_reader_close(const tw_guest_core *core, tw_handle reader,
                                        tw_guest_message *element) {
  core->message_release(element);
  core->reader_close(reader, NULL);
}

static inline uint32_t thalweg_import_begin(const tw_guest_core *core, tw_handle call,
                                            uint32_t import, const uint8_t *args, uint64_t size,
                                            tw_handle port, uint64_t token, tw_handle *host_call,
                                            tw_error *error) {
  return core->import_begin(call, import, args, size, port, token, host_call, error);
}

static inline uint32_t thalweg_import_answer(const tw_guest_core *core, tw_handle host_call,
                                             tw_guest_message *answer, tw_error *error) {
  return core->import_answer(host_call, answer, error);
}

static inline void thalweg_import_cancel(const tw_guest_core *core, tw_handle host_call) {
  core->import_cancel(host_call, NULL);
}

static inline void thalweg_message_release(const tw_guest_core *core, tw_guest_message *message) {
  core->message_release(message);
}

static inline uint32_t thalweg_stream_write(const tw_guest_core *core, tw_handle writer,
                                            const uint8_t *base, uint64_t size, uint32_t first,
                                            uint32_t count, uint32_t *written, tw_error *error) {
  return core->stream_write(writer, base, size, first, count, 0, 0, written, error);
}

/* The port gets an event with `token` when a stream that was full has room, or has ended. */
static inline uint32_t thalweg_writer_notify(const tw_guest_core *core, tw_handle writer,
                                             tw_handle port, uint64_t token, tw_error *error) {
  return core->writer_notify(writer, port, token, error);
}

static inline uint32_t thalweg_stream_finish(const tw_guest_core *core, tw_handle writer) {
  return core->stream_finish(writer, NULL);
}

static inline uint32_t thalweg_stream_fail(const tw_guest_core *core, tw_handle writer,
                                           const uint8_t *message, uint64_t size) {
  return core->stream_fail(writer, message, size, NULL);
}

static inline uint32_t thalweg_stream_abort(const tw_guest_core *core, tw_handle writer,
                                            const char *text, uint64_t size) {
  return core->stream_abort(writer, text, size, NULL);
}

static inline uint32_t thalweg_serve_port(const tw_guest_core *core, uint64_t opening,
                                          const tw_guest_package *package, tw_handle *port,
                                          tw_error *error) {
  tw_guest_functions functions = {0};
  functions.size = (uint32_t)sizeof(functions);
  functions.flags = TW_GUEST_STAYS_LOADED;
  return core->serve_port(opening, package, &functions, NULL, port, error);
}

static inline uint32_t thalweg_port_fd(const tw_guest_core *core, tw_handle port, int *fd,
                                       tw_error *error) {
  return core->port_fd(port, fd, error);
}

/* Releases the `*count` events that were taken before, and takes those that are available until the deadline. */
static inline uint32_t thalweg_port_take(const tw_guest_core *core, tw_handle port,
                                         tw_guest_event *events, uint32_t capacity,
                                         uint64_t deadline_ns, uint32_t *count) {
  if (*count > 0) {
    core->event_release(events, *count);
  }
  *count = 0;
  return core->port_take(port, events, capacity, deadline_ns, count, NULL);
}

void thalweg_refuse(tw_error *error, uint32_t code, const char *text);

#endif
