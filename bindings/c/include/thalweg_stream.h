/* Streams by callback, and waiting for one while the service asks. Part of thalweg_client.h, which includes it. */
#ifndef THALWEG_STREAM_H
#define THALWEG_STREAM_H

/* Gives the records to `callback`, on threads of the service: see stream_subscribe in thalweg.h. `ctx` is the stream's where
 * TW_OK is returned, and else the caller's still. */
static inline uint32_t tw_stream_subscribe(const tw_stream *stream, tw_stream_callback callback,
                                           void *ctx, tw_drop_ctx drop_ctx, tw_error *error) {
  return stream->table->stream_subscribe(stream->handle, callback, ctx, drop_ctx, 0, error);
}

/* Behind a callback of typed records: what generated code calls, and with what. */
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

/* As tw_stream_subscribe, for generated code: `deliver` gets a tw_subscriber. TW_OVERLOADED: no memory for that. */
static inline uint32_t tw_stream_subscribe_typed(const tw_stream *stream, tw_stream_callback deliver,
                                         void (*callback)(void), void *ctx, tw_drop_ctx drop_ctx,
                                         tw_error *error) {
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

/* Waits until the callback is over: its last call has returned, and drop_ctx. */
static inline uint32_t tw_stream_join(const tw_stream *stream, uint64_t deadline_ns,
                                      tw_error *error) {
  return stream->table->stream_join(stream->handle, deadline_ns, error);
}

/* The token of what tw_stream_acquire_serving arms. */
#define TW_SERVING_TOKEN UINT64_MAX

/* As tw_stream_acquire, and what the service asks of the client's host meanwhile is answered here, as in tw_call; without a host it is
 * the same. For a port on which nothing else is under way: a completion of something else is released, and TW_ARGUMENT
 * says so. After TW_TIMED_OUT and TW_INTERRUPTED a TW_COMPLETION_STREAM_READY with TW_SERVING_TOKEN may still come to the port, which
 * this function and tw_call pass over. */
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
        code = tw_fail(error, TW_ARGUMENT, "a stream's wait on a port with something else");
      }
      ready = completion.call == stream->handle;
      table->release(&completion);
    }
    if (code != TW_OK) {
      return code;
    }
  }
}

#endif
