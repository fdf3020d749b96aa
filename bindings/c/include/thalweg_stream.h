/* Streams and futures: reading those that the service writes, and writing those that are
 * parameters. C99 and C++17, header-only. */
#ifndef THALWEG_STREAM_H
#define THALWEG_STREAM_H

#include "thalweg_client.h"

/* ---- Reading --------------------------------------------------------------------------------- */

/* A stream or future that belongs to the caller. One thread at a time reads it. */
typedef struct tw_stream {
  const tw_table *table;
  tw_handle handle;
} tw_stream;

/* Takes a stream or future out of a result, as tw_reply_take_handle does with a resource. */
static inline uint32_t tw_reply_take_stream(tw_reply *reply, tw_handle_ref ref, tw_stream *out,
                                            tw_error *error) {
  tw_resource taken;
  uint32_t code = tw_reply_take_handle(reply, ref, &taken, error);
  out->table = taken.table;
  out->handle = taken.handle;
  return code;
}

/* A stream or future as a result: taken out of the reply. See "Decoding" in thalweg_client.h. */
static inline void tw_decode_stream(tw_decoder *decoder, tw_stream *out) {
  tw_resource taken = {NULL, 0};
  tw_decode_resource(decoder, &taken);
  out->table = taken.table;
  out->handle = taken.handle;
}

/* Checks that a batch has the records that the caller was built for, of `size` bytes each.
 * TW_VERSION: it does not. */
static inline uint32_t tw_batch_check(const tw_batch *batch, uint32_t size, tw_error *error) {
  if (batch->stride < size) {
    return tw_fail(error, TW_VERSION,
                   "built for records of %" PRIu32 " bytes, the stream's have %" PRIu32, size,
                   batch->stride);
  }
  return TW_OK;
}

/* Waits for records, at most `max`, of `size` bytes each: see stream_acquire in thalweg.h. */
static inline uint32_t tw_stream_acquire(const tw_stream *stream, uint32_t max,
                                         uint64_t deadline_ns, uint32_t size, tw_batch *batch,
                                         tw_error *error) {
  uint32_t code;
  memset(batch, 0, sizeof(*batch));
  code = stream->table->stream_acquire(stream->handle, max, deadline_ns, batch, error);
  if (code == TW_OK) {
    code = tw_batch_check(batch, size, error);
    if (code != TW_OK) {
      stream->table->stream_release(stream->handle, batch->count, NULL);
    }
  }
  return code;
}

/* Record number `index` of a batch, from 0. */
static inline const void *tw_batch_at(const tw_batch *batch, uint32_t index) {
  return batch->slots + (size_t)index * batch->stride;
}

/* Releases the first `count` records of the open batch. */
static inline uint32_t tw_stream_release(const tw_stream *stream, uint32_t count, tw_error *error) {
  return stream->table->stream_release(stream->handle, count, error);
}

/* Waits for the value of a future: a batch with one record, valid until tw_stream_close.
 * TW_GUEST_LOST: the service dropped the future without a value. */
static inline uint32_t tw_future_wait(const tw_stream *future, uint64_t deadline_ns, uint32_t size,
                                      tw_batch *batch, tw_error *error) {
  uint32_t code = tw_stream_acquire(future, 1, deadline_ns, size, batch, error);
  if (code == TW_CLOSED) {
    return tw_fail(error, TW_GUEST_LOST, "the service dropped the future without a value");
  }
  return code;
}

/* The service's own error of a stream that ended as TW_ERROR, as a completion for the `X_read` of
 * the method that returned the stream. Valid until tw_stream_close. Returns `completion`; its kind
 * is TW_COMPLETION_NONE if the stream did not end as TW_ERROR. */
static inline tw_completion *tw_stream_error(const tw_stream *stream, tw_completion *completion,
                                             tw_error *error) {
  uint32_t code;
  memset(completion, 0, sizeof(*completion));
  code =
      stream->table->stream_error(stream->handle, &completion->data, &completion->data_size, error);
  if (code == TW_OK) {
    completion->kind = TW_COMPLETION_CALL;
    completion->code = TW_ERROR;
  } else {
    completion->kind = TW_COMPLETION_NONE;
    completion->code = code;
  }
  return completion;
}

/* Arms the stream: the client's port receives a TW_COMPLETION_STREAM_READY with `token` once
 * tw_stream_acquire would not wait. *ready = 1: it would not wait now, and nothing was armed. */
static inline uint32_t tw_stream_arm(const tw_stream *stream, const tw_client *client,
                                     uint64_t token, uint32_t *ready, tw_error *error) {
  return stream->table->stream_arm(stream->handle, client->port, token, ready, error);
}

/* Arms the stream's own file descriptor, which becomes readable once tw_stream_acquire would not
 * wait. It belongs to the stream. *ready = 1: it would not wait now, and nothing was armed. */
static inline uint32_t tw_stream_arm_fd(const tw_stream *stream, int *fd, uint32_t *ready,
                                        tw_error *error) {
  uint32_t code = stream->table->stream_fd(stream->handle, fd, error);
  return code != TW_OK ? code : stream->table->stream_arm(stream->handle, 0, 0, ready, error);
}

/* Adds a reader, an independent stream: see stream_tee in thalweg.h. */
static inline uint32_t tw_stream_tee(const tw_stream *stream, tw_stream *reader, tw_error *error) {
  *reader = *stream;
  reader->handle = 0;
  return stream->table->stream_tee(stream->handle, &reader->handle, error);
}

/* Counters of all streams of this stream's method and client. */
static inline uint32_t tw_stream_stats(const tw_stream *stream, tw_stats *stats, tw_error *error) {
  return stream->table->stream_stats(stream->handle, 0, stats, sizeof(*stats), error);
}

/* Closes the stream. Always allowed, also with an open batch, which becomes invalid. */
static inline uint32_t tw_stream_close(tw_stream *stream, tw_error *error) {
  uint32_t code = TW_OK;
  if (stream->handle != 0) {
    code = stream->table->stream_close(stream->handle, error);
  }
  stream->handle = 0;
  return code;
}

/* tw_stream_acquire for a client with a host: answers host calls during the wait. The client must
 * have no outstanding calls: their completions are released, and the result is TW_ARGUMENT. After
 * TW_TIMED_OUT and TW_INTERRUPTED, the port may still receive a TW_COMPLETION_STREAM_READY with
 * TW_SERVING_TOKEN, which this function and tw_call ignore. */
static inline uint32_t tw_stream_acquire_serving(const tw_stream *stream, const tw_client *client,
                                                 uint32_t max, uint64_t deadline_ns, uint32_t size,
                                                 tw_batch *batch, tw_error *error) {
  const tw_table *table = client->table;
  if (!client->host || deadline_ns == 0) {
    return tw_stream_acquire(stream, max, deadline_ns, size, batch, error);
  }
  for (;;) {
    uint32_t ready = 0;
    uint32_t code = tw_stream_acquire(stream, max, 0, size, batch, error);
    if (code != TW_WOULD_PARK || (batch->flags & TW_BATCH_END)) {
      return code;
    }
    code = table->stream_arm(stream->handle, client->port, TW_SERVING_TOKEN, &ready, error);
    while (code == TW_OK && !ready) {
      tw_completion completion;
      uint32_t count = 0;
      code = table->port_wait(client->port, deadline_ns, error);
      if (code == TW_OK) {
        code = table->port_reap(client->port, &completion, 1, &count, error);
      }
      if (code != TW_OK || count == 0) {
        continue;
      }
      if (completion.kind == TW_COMPLETION_HOST_CALL) {
        tw_host_serve(client->host, &completion);
        continue;
      }
      if (completion.kind != TW_COMPLETION_STREAM_READY || completion.token != TW_SERVING_TOKEN) {
        code = tw_fail(error, TW_ARGUMENT, "a stream's wait on a port with outstanding calls");
      }
      ready = completion.call == stream->handle;
      table->release(&completion);
    }
    if (code != TW_OK) {
      return code;
    }
  }
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

/* Delivers the records to `callback`, on threads of the service: see stream_subscribe in thalweg.h.
 * TW_OK: drop_ctx, if not NULL, is called once, after the last call. Otherwise `ctx` still belongs
 * to the caller. */
static inline uint32_t tw_stream_subscribe(const tw_stream *stream, tw_stream_callback callback,
                                           void *ctx, tw_drop_ctx drop_ctx, tw_error *error) {
  return stream->table->stream_subscribe(stream->handle, callback, ctx, drop_ctx, 0, error);
}

/* A callback for typed records, in a package's header. */
typedef struct tw_subscriber {
  void (*callback)(void); /* of the stream's own type */
  void *ctx;
  tw_drop_ctx drop_ctx;
} tw_subscriber;

static inline void tw_subscriber_drop(void *ctx) {
  tw_subscriber *subscriber = (tw_subscriber *)ctx;
  if (subscriber->drop_ctx) {
    subscriber->drop_ctx(subscriber->ctx);
  }
  free(subscriber);
}

/* tw_stream_subscribe for a package's header: the `ctx` of `deliver` is a tw_subscriber.
 * TW_OVERLOADED: no memory for it. */
static inline uint32_t tw_stream_subscribe_typed(const tw_stream *stream,
                                                 tw_stream_callback deliver, void (*callback)(void),
                                                 void *ctx, tw_drop_ctx drop_ctx, tw_error *error) {
  tw_subscriber *subscriber = (tw_subscriber *)malloc(sizeof(tw_subscriber));
  uint32_t code;
  if (!subscriber) {
    return tw_fail(error, TW_OVERLOADED, "no memory for a subscription");
  }
  subscriber->callback = callback;
  subscriber->ctx = ctx;
  subscriber->drop_ctx = drop_ctx;
  code = tw_stream_subscribe(stream, deliver, subscriber, tw_subscriber_drop, error);
  if (code != TW_OK) {
    free(subscriber);
  }
  return code;
}

/* Waits until the callback has made its last call and drop_ctx has returned. */
static inline uint32_t tw_stream_join(const tw_stream *stream, uint64_t deadline_ns,
                                      tw_error *error) {
  return stream->table->stream_join(stream->handle, deadline_ns, error);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Creates a stream or future for parameter number `parameter` of a method, from 0. Any thread may
 * write it, also before the call is submitted: 256 elements or 1 MiB may be unread. */
static inline uint32_t tw_stream_writer_open(const tw_client *client, uint32_t method,
                                             uint32_t parameter, tw_stream_writer *stream,
                                             tw_error *error) {
  memset(stream, 0, sizeof(*stream));
  stream->table = client->table;
  return client->table->stream_new(client->instance, method, parameter, &stream->writer,
                                   &stream->reader, error);
}

/* Ends an element's message, sends it and frees it: see stream_send in thalweg.h. */
static inline uint32_t tw_stream_writer_send(const tw_stream_writer *stream, tw_writer *writer,
                                             uint64_t deadline_ns, tw_error *error) {
  const tw_table *table = stream->table;
  uint32_t code = tw_writer_end(writer);
  if (code == TW_OVERLOADED) {
    tw_fail(error, code, "no memory for the element");
  } else if (code != TW_OK) {
    tw_fail(error, code, "a null pointer, or an element of more than 2 GiB");
  } else {
    code = table->stream_send(stream->writer, writer->data, writer->size, deadline_ns, error);
  }
  tw_writer_free(writer);
  return code;
}

/* Ends the stream regularly. */
static inline uint32_t tw_stream_writer_finish(const tw_stream_writer *stream, tw_error *error) {
  return stream->table->stream_finish(stream->writer, error);
}

/* Arms the stream: the client's port receives a TW_COMPLETION_STREAM_READY with `token` once there
 * is capacity again or the stream has ended. *ready = 1: that is so now, and nothing was armed. */
static inline uint32_t tw_stream_writer_arm(const tw_stream_writer *stream, const tw_client *client,
                                            uint64_t token, uint32_t *ready, tw_error *error) {
  return stream->table->stream_arm(stream->writer, client->port, token, ready, error);
}

/* Closes the writer, and the reader unless it belongs to the service. Always allowed. If the stream
 * was not finished, the service reads TW_CANCELLED. */
static inline uint32_t tw_stream_writer_close(tw_stream_writer *stream, tw_error *error) {
  uint32_t code = TW_OK;
  if (stream->reader != 0) {
    stream->table->stream_close(stream->reader, NULL);
  }
  if (stream->writer != 0) {
    code = stream->table->stream_close(stream->writer, error);
  }
  stream->reader = 0;
  stream->writer = 0;
  return code;
}

#endif
