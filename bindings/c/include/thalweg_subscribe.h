/* Streams by callback. Part of thalweg_client.h, which includes it. */
#ifndef THALWEG_SUBSCRIBE_H
#define THALWEG_SUBSCRIBE_H

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
static inline uint32_t tw_stream_deliver(const tw_stream *stream, tw_stream_callback deliver,
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

#endif
