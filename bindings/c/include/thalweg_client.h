/* Using a Thalweg library from C: open it, make a client, call, read a stream. C99 and C++, header-only,
 * needs libc and dlopen.
 *
 *   const tw_table *table;            what the library offers
 *     tw_open                         opens it and checks that both sides fit
 *   tw_client                         an instance of the service, and a port to call it through
 *     tw_client_open, _open_as, _attach, _close
 *     tw_call                         one call: submit, wait, reap
 *     tw_call_inline                  one call of an inline method, on this thread
 *   tw_host                           answers what the service asks
 *   tw_reply                          an ending that was reaped: owns what its result points into
 *   tw_stream                         a stream; read by tw_stream_acquire and _release
 *
 * The header that `thalweg gen` writes for a package puts types on all of these. Every function
 * returns a `tw_code` and, if `error` is not NULL, says there what went wrong; where it returns
 * TW_OK, `*error` is left alone. Strings that go in are checked to be UTF-8 by the core.
 */
#ifndef THALWEG_CLIENT_H
#define THALWEG_CLIENT_H

#include <inttypes.h>

#include "thalweg.h"
#include "thalweg_error.h"
#include "thalweg_message.h"
#include "thalweg_open.h"

/* ---- Clients ---------------------------------------------------------------------------------- */

struct tw_host;

/* An instance of the service, and the port through which this holder calls it. Use one from one thread at
 * a time; another thread, or an event loop, attaches one of its own. */
typedef struct tw_client {
  const tw_table *table;
  tw_handle instance;
  tw_handle port;
  bool attached;        /* the instance is another tw_client's to close */
  struct tw_host *host; /* who answers what the service asks, or NULL */
  /* Called by a blocking call while it waits, each time the interval is over that the method's policy file names as
   * `notice`, with the nanoseconds since the submission; it ends nothing, and may cancel `call`. NULL: nobody. Set it with its
   * context after the client was opened, which has a place of its port for it besides the call's. */
  void (*on_notice)(void *notice_ctx, const struct tw_client *client, tw_handle call,
                    uint64_t elapsed_ns);
  void *notice_ctx;
} tw_client;

/* A client over an instance that exists. */
static inline uint32_t tw_client_attach(const tw_client *instance, uint32_t capacity,
                                        tw_client *out, tw_error *error) {
  *out = *instance;
  out->port = 0;
  out->attached = true;
  out->host = NULL;
  out->on_notice = NULL;
  out->notice_ctx = NULL;
  return out->table->port_open(capacity, &out->port, error);
}

/* A new instance of the service, and a port on which `capacity` calls may be unreaped at once. */
static inline uint32_t tw_client_open(const tw_table *table, uint32_t capacity, tw_client *out,
                                      tw_error *error) {
  uint32_t code;
  out->table = table;
  out->instance = 0;
  out->port = 0;
  out->attached = false;
  out->host = NULL;
  out->on_notice = NULL;
  out->notice_ctx = NULL;
  code = table->client_open(&out->instance, error);
  if (code != TW_OK) {
    return code;
  }
  code = table->port_open(capacity, &out->port, error);
  if (code != TW_OK) {
    table->client_close(out->instance, NULL);
    out->instance = 0;
  }
  return code;
}

/* The same for a caller that was built for `expected`, which may be another version of the library's package. */
static inline uint32_t tw_client_open_as(const tw_table *table, const tw_expected *expected,
                                         uint32_t capacity, tw_client *out, tw_error *error) {
  uint32_t code = tw_client_open(table, capacity, out, error);
  if (code != TW_OK || table->layout == expected->layout || !expected->methods) {
    return code;
  }
  code = table->client_set_layouts(out->instance, expected->methods, expected->method_count,
                               expected->imports, expected->import_count, error);
  if (code != TW_OK) {
    table->port_close(out->port, NULL);
    table->client_close(out->instance, NULL);
    out->instance = 0;
    out->port = 0;
  }
  return code;
}

/* Closes the port, whose calls end as cancelled, and the instance unless it is another's. Closing twice
 * is TW_OK: the second finds nothing to do. */
static inline uint32_t tw_client_close(tw_client *client, tw_error *error) {
  uint32_t code = TW_OK;
  uint32_t second = TW_OK;
  if (client->port != 0) {
    code = client->table->port_close(client->port, error);
  }
  if (client->instance != 0 && !client->attached) {
    second = client->table->client_close(client->instance, code == TW_OK ? error : NULL);
  }
  client->port = 0;
  client->instance = 0;
  client->host = NULL;
  return code != TW_OK ? code : second;
}

/* `nanoseconds` from now, as a deadline. */
static inline uint64_t tw_deadline_after(const tw_client *client, uint64_t nanoseconds) {
  uint64_t now = client->table->now();
  return nanoseconds < TW_FOREVER - now ? now + nanoseconds : TW_FOREVER;
}

/* Ends a message and fills a submission with it, but for token and deadline. `name` is for the error. */
static inline uint32_t tw_prepare(const tw_client *client, tw_writer *writer, uint32_t method,
                                  const char *name, tw_submission *submission, tw_error *error) {
  uint32_t code = tw_writer_end(writer);
  memset(submission, 0, sizeof(*submission));
  if (client->instance == 0) {
    return tw_fail(error, TW_CLOSED, "%s: the client is closed", name);
  }
  if (code == TW_OVERLOADED) {
    return tw_fail(error, code, "%s: no memory for the message", name);
  }
  if (code != TW_OK) {
    return tw_fail(error, code, "%s: a null pointer, or more than 2 GiB of arguments", name);
  }
  submission->client = client->instance;
  submission->method = method;
  submission->args = writer->data;
  submission->args_size = writer->size;
  return TW_OK;
}

/* Submits one call. The completion carries `submission->token`; `submission->call` is for cancel. */
static inline uint32_t tw_submit(const tw_client *client, tw_submission *submission,
                                 tw_error *error) {
  uint32_t accepted = 0;
  return client->table->submit(client->port, submission, 1, &accepted, error);
}

/* ---- Hosts ------------------------------------------------------------------------------------ */

/* Something that a service asks of its host. Copy it to answer later, on whichever thread. */
typedef struct tw_host_call {
  const tw_table *table;
  tw_handle call;
  const uint8_t *base; /* of the arguments, for accessors: until the host's function returns */
} tw_host_call;

/* Who answers what a client's service asks: generated code puts functions behind it. Zero it before its use. */
typedef struct tw_host {
  const tw_table *table;
  void (*serve)(struct tw_host *host, const tw_host_call *asked, const tw_completion *completion);
  bool serving; /* one of its functions runs */
} tw_host;

/* From now on what the client's service asks comes to the client's port: see client_set_host in thalweg.h. */
static inline uint32_t tw_client_set_host(tw_client *client, tw_host *host, tw_error *error) {
  uint32_t code = client->table->client_set_host(client->instance, client->port, 0, error);
  if (code == TW_OK) {
    host->table = client->table;
    host->serving = false;
    client->host = host;
  }
  return code;
}

/* Has a TW_COMPLETION_HOST_CALL answered that was reaped, and releases it. */
static inline void tw_host_serve(tw_host *host, tw_completion *completion) {
  tw_host_call asked;
  bool before = host->serving;
  asked.table = host->table;
  asked.call = completion->call;
  asked.base = completion->data;
  host->serving = true;
  host->serve(host, &asked, completion);
  host->serving = before;
  host->table->release(completion);
}

/* Answers with a message, and frees it. */
static inline uint32_t tw_host_call_answer(const tw_host_call *asked, tw_writer *writer, uint32_t code,
                                       tw_error *error) {
  uint32_t status = tw_writer_end(writer);
  if (status == TW_OK) {
    status = asked->table->host_call_answer(asked->call, code, writer->data, writer->size, error);
  } else {
    tw_fail(error, status, "an answer with a null pointer, too large, or without memory for it");
  }
  tw_writer_free(writer);
  return status;
}

/* Ends it otherwise, with a code that is neither TW_OK nor TW_ERROR, and a text. TW_STALE: it has ended. */
static inline uint32_t tw_host_call_fail(const tw_host_call *asked, uint32_t code, const char *text,
                                    tw_error *error) {
  return asked->table->host_call_answer(asked->call, code, (const uint8_t *)(const void *)text,
                                   text ? strlen(text) : 0, error);
}

/* By when it must be answered; TW_FOREVER: whenever, TW_FOREVER also where it has ended. */
static inline uint64_t tw_host_call_deadline(const tw_host_call *asked) {
  uint64_t deadline = TW_FOREVER;
  asked->table->host_call_deadline(asked->call, &deadline, NULL);
  return deadline;
}

/* What lies `offset` bytes behind `root`. */
static inline const void *tw_at_offset(const void *root, uint32_t offset) {
  return (const uint8_t *)root + offset;
}

/* ---- Calls ------------------------------------------------------------------------------------ */

/* One call, from submission to its completion: TW_OK and `*out`, whatever the call's own ending (`out->code`).
 *
 * For a port on which nothing else is under way: a completion of something else is released and
 * TW_ARGUMENT says so; but what the service asks of the client's host meanwhile is answered here. TW_WOULD_PARK
 * in a function of that host: the service waits for it. Where there is no room for the call and the library's policy is to wait, it waits, answering nobody meanwhile. A signal while waiting cancels the call and waits for that; TW_INTERRUPTED means that the call ended
 * as cancelled for this reason. Release `*out` with tw_table.release where TW_OK was returned. */
static inline uint32_t tw_call(const tw_client *client, tw_submission *submission,
                               tw_completion *out, tw_error *error) {
  const tw_table *table = client->table;
  bool interrupted = false;
  bool foreign = false;
  uint32_t code;
  if (client->host && client->host->serving) {
    return tw_fail(error, TW_WOULD_PARK,
                   "a host must not call the client whose service waits for its answer");
  }
  if (client->on_notice && submission->client == client->instance &&
      submission->method < table->method_count &&
      (table->methods[submission->method].flags & TW_METHOD_NOTICES)) {
    submission->flags |= TW_SUBMIT_NOTICES;
  }
  submission->flags |= TW_SUBMIT_BLOCK;
  code = tw_submit(client, submission, error);
  if (code != TW_OK) {
    return code;
  }
  for (;;) {
    uint32_t count = 0;
    code = table->port_wait(client->port, TW_FOREVER, error);
    if (code == TW_INTERRUPTED) {
      if (!interrupted) {
        interrupted = true;
        table->cancel(submission->call, NULL); /* stale if it ended meanwhile: then it is here */
      }
      continue;
    }
    if (code == TW_OK) {
      code = table->port_reap(client->port, out, 1, &count, error);
    }
    if (code != TW_OK) {
      return code;
    }
    if (count == 0) {
      continue;
    }
    if (out->kind == TW_COMPLETION_CALL && out->call == submission->call) {
      break;
    }
    if (out->kind == TW_COMPLETION_NOTICE && out->call == submission->call) {
      uint64_t elapsed_ns = 0;
      memcpy(&elapsed_ns, out->data, sizeof(elapsed_ns));
      table->release(out);
      if (client->on_notice) {
        client->on_notice(client->notice_ctx, client, submission->call, elapsed_ns);
      }
      continue;
    }
    if (out->kind == TW_COMPLETION_HOST_CALL && client->host) {
      tw_host_serve(client->host, out);
      continue;
    }
    /* A left-over of tw_stream_acquire_serving, with TW_SERVING_TOKEN. */
    foreign = foreign || out->kind != TW_COMPLETION_STREAM_READY || out->token != UINT64_MAX;
    table->release(out);
  }
  if (foreign) {
    table->release(out);
    return tw_fail(error, TW_ARGUMENT, "tw_call on a port on which something else is under way");
  }
  if (interrupted && out->code == TW_CANCELLED) {
    table->release(out);
    return tw_fail_with(error, TW_INTERRUPTED, 1, "a signal arrived during the call",
                        sizeof("a signal arrived during the call") - 1);
  }
  return TW_OK;
}

/* One call of an inline method, on this thread: as tw_call, but neither the client's port nor any other is
 * needed, and any thread may. */
static inline uint32_t tw_call_inline(const tw_client *client, const tw_submission *submission,
                                      tw_completion *out, tw_error *error) {
  return client->table->call_inline(submission->client, submission->method, submission->args,
                                    submission->args_size, submission->deadline_ns, out, error);
}

/* ---- Replies ---------------------------------------------------------------------------------- */

/* A completion that was reaped. What a typed result points to lies in it and is valid until
 * tw_reply_release. A zeroed one is empty, and releasing that is legal. */
typedef struct tw_reply {
  const tw_table *table;
  const uint8_t *base; /* the message's first byte, for accessors */
  tw_completion completion;
} tw_reply;

/* Empty, so that releasing it does nothing. */
static inline void tw_reply_clear(tw_reply *reply) {
  memset(reply, 0, sizeof(*reply));
}

/* Takes a completion over. It is then the reply's to release. */
static inline void tw_reply_take(tw_reply *reply, const tw_table *table,
                                 tw_completion *completion) {
  reply->table = table;
  reply->base = completion->data;
  reply->completion = *completion;
  memset(completion, 0, sizeof(*completion));
}

/* Frees what the reply points to. Harmless twice. */
static inline void tw_reply_release(tw_reply *reply) {
  if (reply->table) {
    reply->table->release(&reply->completion);
  }
  tw_reply_clear(reply);
}

/* How the call ended, for an ending that has no value: fills `*error` and returns the code. */
static inline uint32_t tw_reply_error(const tw_reply *reply, tw_error *error) {
  const tw_completion *completion = &reply->completion;
  if (completion->message) {
    return tw_fail_with(error, completion->code, completion->retryable, completion->message,
                        completion->message_size);
  }
  return tw_fail_with(error, completion->code, completion->retryable,
                      tw_code_name(completion->code), strlen(tw_code_name(completion->code)));
}

/* The root of the reply's message: see tw_check_root. */
static inline const void *tw_reply_root(const tw_reply *reply, tw_checker *reader, uint64_t layout,
                                        uint32_t size) {
  return tw_check_root(reader, reply->completion.data, reply->completion.data_size, layout, size);
}

/* Takes the own resource or stream out of a result whose root is its index. It is then the caller's, and
 * the reply has nothing left: it is released. */
static inline uint32_t tw_reply_take_root_handle(tw_reply *reply, uint32_t index, tw_handle *out,
                                       tw_error *error) {
  uint32_t code = reply->table->take_handle(&reply->completion, index, out, error);
  tw_reply_release(reply);
  return code;
}

/* For a message that is not what its layout says: the call's result is lost. */
static inline uint32_t tw_reply_malformed(tw_reply *reply, const char *function, tw_error *error) {
  tw_reply_release(reply);
  return tw_fail(error, TW_ARGUMENT, "%s: the library's message is malformed", function);
}

/* ---- Resources -------------------------------------------------------------------------------- */

/* An object on the service's side that the caller owns. */
typedef struct tw_resource {
  const tw_table *table;
  tw_handle handle;
} tw_resource;

/* Takes a resource out of a value that came; it is then the caller's to close. What nobody took is closed when the
 * reply is released. Only once; the second time is TW_ARGUMENT. */
static inline uint32_t tw_reply_take_handle(tw_reply *reply, tw_handle_ref held, tw_resource *out,
                                    tw_error *error) {
  out->table = reply->table;
  out->handle = 0;
  if (!reply->table) {
    return tw_fail(error, TW_ARGUMENT, "the reply was released");
  }
  return reply->table->take_handle(&reply->completion, held.index, &out->handle, error);
}

/* Closes it. Closing twice is TW_OK: the second finds nothing to do. */
static inline uint32_t tw_resource_close(tw_resource *resource, tw_error *error) {
  uint32_t code = TW_OK;
  if (resource->handle != 0) {
    code = resource->table->resource_drop(resource->handle, error);
  }
  resource->handle = 0;
  return code;
}

/* ---- Streams ---------------------------------------------------------------------------------- */

/* A stream that the caller owns. One thread at a time reads it. */
typedef struct tw_stream {
  const tw_table *table;
  tw_handle handle;
} tw_stream;

/* Whether a batch has the records that the caller was built for, of `size` bytes. */
static inline uint32_t tw_batch_check(const tw_batch *batch, uint32_t size, tw_error *error) {
  if (batch->stride < size) {
    return tw_fail(error, TW_VERSION,
                   "built for records of %" PRIu32 " bytes, the stream's have %" PRIu32, size,
                   batch->stride);
  }
  return TW_OK;
}

/* Records that lie ready, at most `max`: see stream_acquire in thalweg.h. `size` is the record's. */
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

/* The one record of a stream that is a future: TW_OK with a batch of it, which stays open until it is
 * closed. */
static inline uint32_t tw_future_wait(const tw_stream *future, uint64_t deadline_ns, uint32_t size,
                                      tw_batch *batch, tw_error *error) {
  uint32_t code = tw_stream_acquire(future, 1, deadline_ns, size, batch, error);
  if (code == TW_CLOSED) {
    return tw_fail(error, TW_GUEST_LOST, "the service dropped the future without a value");
  }
  return code;
}

/* Gives back the first `count` records of the open batch. */
static inline uint32_t tw_stream_release(const tw_stream *stream, uint32_t count, tw_error *error) {
  return stream->table->stream_release(stream->handle, count, error);
}

/* The service's own error of a stream that ended as TW_ERROR, as a completion for the X_read of the function
 * that returned the stream; X_stream_error does both. Valid until the stream is closed. See stream_error in
 * thalweg.h. */
static inline uint32_t tw_stream_error(const tw_stream *stream, tw_completion *completion,
                                       tw_error *error) {
  memset(completion, 0, sizeof(*completion));
  completion->kind = TW_COMPLETION_CALL;
  completion->code = TW_ERROR;
  return stream->table->stream_error(stream->handle, &completion->data, &completion->data_size,
                                     error);
}

/* One TW_COMPLETION_STREAM_READY with `token` comes to the client's port as soon as acquire would not wait; where
 * it would not now, `*ready` is 1 and none comes. */
static inline uint32_t tw_stream_arm(const tw_stream *stream, const tw_client *client,
                                     uint64_t token, uint32_t *ready, tw_error *error) {
  return stream->table->stream_arm(stream->handle, client->port, token, ready, error);
}

/* A file descriptor that becomes readable as soon as acquire would not wait; where it would not now, `*ready` is 1 and
 * nothing was armed. It is the stream's. */
static inline uint32_t tw_stream_arm_fd(const tw_stream *stream, int *fd, uint32_t *ready,
                                        tw_error *error) {
  uint32_t code = stream->table->stream_fd(stream->handle, fd, error);
  return code != TW_OK ? code : stream->table->stream_arm(stream->handle, 0, 0, ready, error);
}

/* A further reader, with places, losses and numbers of its own: see stream_tee in thalweg.h. */
static inline uint32_t tw_stream_tee(const tw_stream *stream, tw_stream *reader,
                                        tw_error *error) {
  *reader = *stream;
  reader->handle = 0;
  return stream->table->stream_tee(stream->handle, &reader->handle, error);
}

/* What all streams of this one's method and client did: see tw_stats. */
static inline uint32_t tw_stream_stats(const tw_stream *stream, tw_stats *stats, tw_error *error) {
  return stream->table->stream_stats(stream->handle, 0, stats, sizeof(*stats), error);
}

/* Legal anywhere. Closing twice is TW_OK: the second finds nothing to do. */
static inline uint32_t tw_stream_close(tw_stream *stream, tw_error *error) {
  uint32_t code = TW_OK;
  if (stream->handle != 0) {
    code = stream->table->stream_close(stream->handle, error);
  }
  stream->handle = 0;
  return code;
}

/* Record `index` of a batch. */
static inline const void *tw_batch_at(const tw_batch *batch, uint32_t index) {
  return batch->slots + (size_t)index * batch->stride;
}

#include "thalweg_stream.h"

#endif
