/* Serving calls in C. C99 and C++17, header-only; needs only libc.
 *
 * The header that `thalweg gen --guest c` writes for a package uses this file. A program includes that
 * header, not this one.
 */
#ifndef THALWEG_SERVE_H
#define THALWEG_SERVE_H

#include "thalweg_error.h"
#include "thalweg_guest.h"
#include "thalweg_message.h"

/* Marks the one symbol that a guest exports. */
#ifdef __cplusplus
#define TW_GUEST_SYMBOL extern "C" __attribute__((visibility("default")))
#else
#define TW_GUEST_SYMBOL __attribute__((visibility("default")))
#endif

/* Checks that the guest was built for the core that opens it. */
static inline uint32_t tw_guest_core_check(uint32_t abi, const tw_guest_core *core,
                                           tw_error *error) {
  if (abi == TW_GUEST_ABI && core && core->size >= sizeof(tw_guest_core)) {
    return TW_OK;
  }
  return tw_fail(error, TW_VERSION,
                 "the guest was built for guest abi %u with %u bytes of functions, and "
                 "libthalweg.so has guest abi %u with %u bytes",
                 TW_GUEST_ABI, (unsigned)sizeof(tw_guest_core), (unsigned)abi,
                 core ? (unsigned)core->size : 0);
}

/* A call that the guest serves. Copy it to answer the call later. */
typedef struct tw_incoming {
  const tw_guest_core *core;
  tw_handle call;
  uint64_t deadline_ns; /* TW_FOREVER: none */
  const uint8_t
      *base; /* for accessors of the arguments; valid until the guest's function returns */
} tw_incoming;

static inline tw_incoming tw_incoming_of(const tw_guest_core *core, const tw_guest_call *call) {
  tw_incoming incoming;
  incoming.core = core;
  incoming.call = call->call;
  incoming.deadline_ns = call->deadline_ns;
  incoming.base = call->args;
  return incoming;
}

/* Ends a call as `code`, which is not TW_OK or TW_ERROR: see `fail` in tw_guest_core. `text` is the
 * reason, and may be NULL. TW_STALE: the call has ended. */
static inline uint32_t tw_incoming_fail(const tw_incoming *call, uint32_t code, const char *text,
                                        tw_error *error) {
  return call->core->fail(call->call, code, text, text ? strlen(text) : 0, error);
}

/* Ends a call with the outcome of something that it needed: a call of the host, or a stream. As
 * TW_GUEST_LOST if a guest cannot cause that outcome. */
static inline uint32_t tw_incoming_pass_on(const tw_incoming *call, uint32_t code,
                                           const tw_error *why, tw_error *error) {
  uint32_t status = tw_incoming_fail(call, code, why->message, error);
  return status == TW_ARGUMENT ? tw_incoming_fail(call, TW_GUEST_LOST, why->message, error)
                               : status;
}

/* TW_OK: go on with the call. Otherwise why to stop: see `call_check` in tw_guest_core. A long function
 * calls it from time to time. */
static inline uint32_t tw_incoming_check(const tw_incoming *call, tw_error *error) {
  return call->core->call_check(call->call, error);
}

/* Ends a call with a message, which this function completes and frees. `code` is TW_OK or TW_ERROR. If the
 * message cannot be made, the call ends as TW_GUEST_LOST. */
static inline uint32_t tw_incoming_answer(const tw_incoming *call, tw_writer *writer, uint32_t code,
                                          tw_error *error) {
  uint32_t status = tw_writer_end(writer);
  if (status == TW_OK) {
    status = call->core->answer(call->call, code, writer->data, writer->size, error);
  } else {
    static const char why[] = "the answer has a null pointer, is too large, or memory is short";
    tw_incoming_fail(call, TW_GUEST_LOST, why, NULL);
    tw_fail(error, status, "%s", why);
  }
  tw_writer_free(writer);
  return status;
}

/* The root of a message that was checked. */
static inline const void *tw_incoming_root(const tw_incoming *call) {
  tw_message header;
  memcpy(&header, call->base, sizeof(header));
  return call->base + header.root;
}

/* The argument at `offset` of the root. */
static inline const void *tw_argument_at(const void *root, uint32_t offset) {
  return (const uint8_t *)root + offset;
}

/* The object of the resource at `place` in the arguments. If it cannot be used, the call ends, and the
 * result is false. */
static inline bool tw_incoming_object(const tw_incoming *call, const void *place, uint32_t type,
                                      bool is_own, void **object) {
  tw_handle_ref ref;
  tw_handle handle;
  tw_error why;
  uint64_t number = 0;
  uint32_t code;
  memcpy(&ref, place, sizeof(ref));
  memcpy(&handle, call->base + sizeof(tw_message) + 8 * (size_t)ref.index, sizeof(handle));
  code = is_own ? call->core->resource_take(call->call, handle, type, &number, &why)
                : call->core->resource_get(call->call, handle, type, &number, &why);
  if (code != TW_OK) {
    tw_incoming_fail(call, code, why.message, NULL);
    return false;
  }
  *object = (void *)(uintptr_t)number;
  return true;
}

/* Ends a call whose result is a resource. TW_OK: `object` belongs to the program, and `drop` is called
 * for it. Otherwise it still belongs to the guest. */
static inline uint32_t tw_incoming_answer_object(const tw_incoming *call, uint32_t type,
                                                 void *object, tw_error *error) {
  return call->core->answer_resource(call->call, type, (uint64_t)(uintptr_t)object, error);
}

/* Makes a resource that is a part of a result, of an object of the guest. TW_OK: `drop` is called for
 * the object once no program has it, also if the result is refused. */
static inline uint32_t tw_incoming_new_resource(const tw_incoming *call, uint32_t type,
                                                void *object, tw_resource *resource,
                                                tw_error *error) {
  resource->table = NULL;
  resource->handle = 0;
  return call->core->resource_new(call->call, type, (uint64_t)(uintptr_t)object, &resource->handle,
                                  error);
}

/* ---- The host -------------------------------------------------------------------------------- */

/* Calls an import with a message, which this function completes and frees, and waits for the answer: see
 * `import_call` in tw_guest_core. */
static inline uint32_t tw_incoming_import(const tw_incoming *call, uint32_t import,
                                          tw_writer *writer, tw_guest_message *answer,
                                          tw_error *error) {
  uint32_t status = tw_writer_end(writer);
  memset(answer, 0, sizeof(*answer));
  if (status == TW_OK) {
    status = call->core->import_call(call->call, import, writer->data, writer->size, answer, error);
  } else {
    tw_fail(error, status, "an argument has a null pointer, is too large, or memory is short");
  }
  tw_writer_free(writer);
  return status;
}

/* The root of a message that was checked. */
static inline const void *tw_guest_message_root(const tw_guest_message *message) {
  tw_message header;
  memcpy(&header, message->data, sizeof(header));
  return message->data + header.root;
}

/* ---- Streams and futures that are parameters ------------------------------------------------- */

/* The reading end, which the guest closes. One thread at a time uses it. */
typedef struct tw_element_reader {
  const tw_guest_core *core;
  tw_handle handle;
  tw_guest_message element; /* the last one */
} tw_element_reader;

/* Closes a reader, and frees the last element. */
static inline void tw_element_reader_close(tw_element_reader *reader) {
  reader->core->message_release(&reader->element);
  reader->core->reader_close(reader->handle, NULL);
}

/* Waits for the next element until `deadline_ns`, and frees the one before: see `reader_receive` in
 * tw_guest_core. */
static inline uint32_t tw_element_reader_receive(tw_element_reader *reader, uint64_t deadline_ns,
                                                 tw_error *error) {
  reader->core->message_release(&reader->element);
  return reader->core->reader_receive(reader->handle, deadline_ns, &reader->element, error);
}

/* Opens the reader of the stream at `place` in the arguments. If it cannot be used, the call ends, and the
 * result is false. */
static inline bool tw_incoming_reader(const tw_incoming *call, const void *place,
                                      tw_element_reader *reader) {
  tw_handle_ref ref;
  tw_handle stream;
  tw_error why;
  uint32_t code;
  memset(reader, 0, sizeof(*reader));
  reader->core = call->core;
  memcpy(&ref, place, sizeof(ref));
  memcpy(&stream, call->base + sizeof(tw_message) + 8 * (size_t)ref.index, sizeof(stream));
  code = call->core->reader_open(call->call, stream, &reader->handle, &why);
  if (code != TW_OK) {
    tw_incoming_fail(call, code, why.message, NULL);
  }
  return code == TW_OK;
}

/* ---- Streams that are results ---------------------------------------------------------------- */

/* The writing end of a stream or future. One thread at a time uses it. It is closed by _finish, _abort or
 * _fail_stream. */
typedef struct tw_record_writer {
  const tw_guest_core *core;
  tw_handle handle;
  /* Records become visible to the reader when this many are not, 1 unless you set it. All are visible when
   * the stream ends, and when it was full. If a record is malformed, this is reported when the records
   * become visible, which are then all others. */
  uint32_t batch;
  /* TW_WRITE_TRUSTED, or 0: records that contain strings or lists are checked. Others always are. */
  uint32_t flags;
  uint32_t pending;      /* records that are in the stream and not visible */
  uint32_t filled;       /* records before `space.first` that are not in the stream yet */
  tw_record_space space; /* places for records */
} tw_record_writer;

/* Ends a call whose result is a stream or a future. */
static inline uint32_t tw_incoming_answer_stream(const tw_incoming *call, tw_record_writer *writer,
                                                 tw_error *error) {
  memset(writer, 0, sizeof(*writer));
  writer->core = call->core;
  writer->batch = 1;
  return call->core->answer_stream(call->call, &writer->handle, error);
}

/* Writes `count` records at `first` of `base`. */
static inline uint32_t tw_record_writer_write(tw_record_writer *writer, const void *base,
                                              uint64_t size, uint32_t first, uint32_t count,
                                              uint64_t deadline_ns, tw_error *error) {
  bool has_more = writer->pending + count < writer->batch;
  uint32_t code =
      writer->core->stream_write(writer->handle, (const uint8_t *)base, size, first, count,
                                 has_more ? TW_WRITE_MORE : 0, deadline_ns, NULL, error);
  writer->pending = has_more && code == TW_OK ? writer->pending + count : 0;
  writer->space.count = 0;
  return code;
}

/* Writes `count` records of `size` bytes without strings and lists. While the stream is full, waits until
 * `deadline_ns`: see `stream_write` in tw_guest_core. */
static inline uint32_t tw_record_writer_send(tw_record_writer *writer, const void *records,
                                             uint32_t count, uint32_t size, uint64_t deadline_ns,
                                             tw_error *error) {
  return tw_record_writer_write(writer, records, (uint64_t)count * size, 0, count, deadline_ns,
                                error);
}

/* Makes the filled places part of the stream. */
static inline uint32_t tw_record_writer_commit(tw_record_writer *writer, bool has_more,
                                               tw_error *error) {
  uint32_t filled = writer->filled;
  uint32_t flags = writer->flags | (has_more ? TW_WRITE_MORE : 0);
  uint32_t code;
  writer->filled = 0;
  code = writer->core->stream_commit(writer->handle, filled, writer->space.tails, flags,
                                     &writer->space, error);
  writer->pending = has_more && code == TW_OK ? writer->pending + filled : 0;
  return code;
}

/* Writes a value at an offset. */
typedef void (*tw_put_value)(tw_writer *message, uint32_t at, const void *value);

/* Writes one record for which the segment has no space: it is written elsewhere and copied. */
static inline uint32_t tw_record_writer_copy(tw_record_writer *writer, tw_put_value put,
                                             const void *value, uint32_t size, uint64_t deadline_ns,
                                             tw_error *error) {
  tw_writer message;
  uint32_t root = tw_writer_begin(&message, 0, 0, size);
  uint32_t status;
  put(&message, root, value);
  status = tw_writer_end(&message);
  if (status != TW_OK) {
    tw_fail(error, status, "the record has a null pointer, is too large, or memory is short");
  } else if (writer->filled) {
    status = tw_record_writer_commit(writer, true, error);
  }
  if (status == TW_OK) {
    status =
        tw_record_writer_write(writer, message.data, message.size, root, 1, deadline_ns, error);
  }
  tw_writer_free(&message);
  return status;
}

/* Writes one record of `size` bytes with strings and lists, where its reader will read it. While the stream is
 * full, waits until `deadline_ns`: see `stream_write` in tw_guest_core. */
static inline uint32_t tw_record_writer_put(tw_record_writer *writer, tw_put_value put,
                                            const void *value, uint32_t size, uint64_t deadline_ns,
                                            tw_error *error) {
  tw_record_space *space = &writer->space;
  tw_writer record;
  if (!value) {
    return tw_fail(error, TW_ARGUMENT, "the record is NULL");
  }
  if (space->count == 0) {
    uint32_t code = writer->core->stream_reserve(writer->handle, 0, deadline_ns, space, error);
    if (code != TW_OK || space->count == 0) {
      return code;
    }
  }
  record.data = space->base;
  record.size = space->tails;
  record.capacity = space->tails_end;
  record.status = TW_OK;
  record.handles = 0;
  record.handles_put = 0;
  record.is_fixed = true;
  memset(space->base + space->first, 0, size);
  put(&record, space->first, value);
  if (record.status != TW_OK) {
    return tw_record_writer_copy(writer, put, value, size, deadline_ns, error);
  }
  space->first += space->stride;
  space->tails = record.size;
  space->count--;
  writer->filled++;
  if (writer->pending + writer->filled < writer->batch) {
    return space->count == 0 ? tw_record_writer_commit(writer, true, error) : (uint32_t)TW_OK;
  }
  return tw_record_writer_commit(writer, false, error);
}

/* Ends a stream regularly. */
static inline uint32_t tw_record_writer_finish(tw_record_writer *writer, tw_error *error) {
  uint32_t code = TW_OK;
  uint32_t ended;
  if (writer->filled) {
    code = tw_record_writer_commit(writer, false, error);
  }
  ended = writer->core->stream_finish(writer->handle, code == TW_OK ? error : NULL);
  return code == TW_OK ? ended : code;
}

/* Ends a stream as TW_GUEST_LOST with a reason. */
static inline uint32_t tw_record_writer_abort(tw_record_writer *writer, const char *text,
                                              size_t size, tw_error *error) {
  if (writer->filled) {
    tw_record_writer_commit(writer, false, NULL);
  }
  return writer->core->stream_abort(writer->handle, text, size, error);
}

/* Ends a stream with an error, a message, which this function completes and frees. */
static inline uint32_t tw_record_writer_fail(tw_record_writer *writer, tw_writer *message,
                                             tw_error *error) {
  uint32_t status = tw_writer_end(message);
  if (status == TW_OK && writer->filled) {
    tw_record_writer_commit(writer, false, NULL);
  }
  if (status == TW_OK) {
    status = writer->core->stream_fail(writer->handle, message->data, message->size, error);
  } else {
    tw_fail(error, status, "the error has a null pointer, is too large, or memory is short");
  }
  tw_writer_free(message);
  return status;
}

#endif
