/* Calling a Thalweg service from C. C99 and C++17, header-only; needs libc and dlopen.
 *
 *   tw_table          the functions of a library; opened by tw_open
 *   tw_client         an instance of the service, and a port that calls it
 *   tw_request        one call before it is submitted
 *   tw_reply          one completion; owns the memory that the result points to
 *   tw_host           implements the host imports of a client's service
 *   tw_resource       an object in the service
 *   tw_stream         a stream or future that the service writes (thalweg_stream.h)
 *   tw_stream_writer  a stream or future that you write (thalweg_stream.h)
 *
 * `thalweg gen` writes a header per package, which puts types on these. Every function that can
 * fail returns a tw_code. If that is not TW_OK, it fills in `*error`, unless `error` is NULL.
 * Functions that free or close something may be called twice: the second call has no effect and
 * returns TW_OK. */
#ifndef THALWEG_CLIENT_H
#define THALWEG_CLIENT_H

#include <inttypes.h>

#include "thalweg.h"
#include "thalweg_error.h"
#include "thalweg_message.h"
#include "thalweg_open.h"

/* ---- Clients --------------------------------------------------------------------------------- */

struct tw_host;

/* An instance of the service, and a port that calls it. One thread at a time uses a client; for
 * another thread or an event loop, attach a further one to the same instance. */
typedef struct tw_client {
  const tw_table *table;
  tw_handle instance;
  tw_handle port;
  bool attached;        /* the instance belongs to another tw_client */
  struct tw_host *host; /* see tw_client_set_host; or NULL */
  /* Progress notices: a blocking call of a method with a `notice_interval` calls this function at
   * each interval, with the nanoseconds since the submission. The function may cancel `call`. Set
   * it after the client was opened, and open the client with one more slot for it. NULL: no
   * notices. */
  void (*on_notice)(void *notice_ctx, const struct tw_client *client, tw_handle call,
                    uint64_t elapsed_ns);
  void *notice_ctx;
} tw_client;

/* Opens a further client of an instance, with its own port of `capacity` slots. */
static inline uint32_t tw_client_attach(const tw_client *instance, uint32_t capacity,
                                        tw_client *out, tw_error *error) {
  memset(out, 0, sizeof(*out));
  out->table = instance->table;
  out->instance = instance->instance;
  out->attached = true;
  return out->table->port_open(capacity, &out->port, error);
}

/* Opens a client: a new instance of the service, and a port of `capacity` slots. */
static inline uint32_t tw_client_open(const tw_table *table, uint32_t capacity, tw_client *out,
                                      tw_error *error) {
  uint32_t code;
  memset(out, 0, sizeof(*out));
  out->table = table;
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

/* The same for a caller that may be built for another version of the package. */
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

/* Closes the port, and the instance unless the client is attached. Their calls and streams end as
 * TW_CANCELLED. Still release the replies, and close the streams and resources. */
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

/* The deadline that is `nanoseconds` from now. */
static inline uint64_t tw_deadline_after(const tw_client *client, uint64_t nanoseconds) {
  uint64_t now = client->table->now();
  return nanoseconds < TW_FOREVER - now ? now + nanoseconds : TW_FOREVER;
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

/* A host call: the service called a host import. Copy it to answer later, on any thread. */
typedef struct tw_host_call {
  const tw_table *table;
  tw_handle call;
  const uint8_t *base; /* for accessors of the arguments; valid until the host's function returns */
} tw_host_call;

/* Implements the host imports of one client's service. The header of a package fills in `serve`. */
typedef struct tw_host {
  const tw_table *table;
  void (*serve)(struct tw_host *host, const tw_host_call *call, const tw_completion *completion);
  bool serving; /* one of its functions is running */
} tw_host;

/* Sets the host of a client: host calls of the service arrive on the client's port. */
static inline uint32_t tw_client_set_host(tw_client *client, tw_host *host, tw_error *error) {
  uint32_t code = client->table->client_set_host(client->instance, client->port, 0, error);
  if (code == TW_OK) {
    host->table = client->table;
    host->serving = false;
    client->host = host;
  }
  return code;
}

/* Passes a TW_COMPLETION_HOST_CALL that was reaped to the host, and releases it. */
static inline void tw_host_serve(tw_host *host, tw_completion *completion) {
  tw_host_call call;
  bool before = host->serving;
  call.table = host->table;
  call.call = completion->call;
  call.base = completion->data;
  host->serving = true;
  host->serve(host, &call, completion);
  host->serving = before;
  host->table->release(completion);
}

/* Answers a host call with a message, which it ends and frees. `code` is TW_OK or TW_ERROR.
 * TW_STALE: the host call has ended. */
static inline uint32_t tw_host_call_answer(const tw_host_call *call, tw_writer *writer,
                                           uint32_t code, tw_error *error) {
  uint32_t status = tw_writer_end(writer);
  if (status == TW_OK) {
    status = call->table->host_call_answer(call->call, code, writer->data, writer->size, error);
  } else {
    tw_fail(error, status, "the answer has a null pointer, is too large, or memory is short");
  }
  tw_writer_free(writer);
  return status;
}

/* Fails a host call with a code other than TW_OK and TW_ERROR, and a text, which may be NULL.
 * TW_STALE: the host call has ended. */
static inline uint32_t tw_host_call_fail(const tw_host_call *call, uint32_t code, const char *text,
                                         tw_error *error) {
  return call->table->host_call_answer(call->call, code, (const uint8_t *)(const void *)text,
                                       text ? strlen(text) : 0, error);
}

/* The deadline of a host call. TW_FOREVER if it has none or has ended. */
static inline uint64_t tw_host_call_deadline(const tw_host_call *call) {
  uint64_t deadline = TW_FOREVER;
  call->table->host_call_deadline(call->call, &deadline, NULL);
  return deadline;
}

/* The argument at `offset` of the root. */
static inline const void *tw_at_offset(const void *root, uint32_t offset) {
  return (const uint8_t *)root + offset;
}

/* ---- Submissions ----------------------------------------------------------------------------- */

/* Submits one call on the client's port. Its completion has `submission->token`;
 * `submission->call` is for tw_table.cancel. */
static inline uint32_t tw_submit(const tw_client *client, tw_submission *submission,
                                 tw_error *error) {
  uint32_t accepted = 0;
  return client->table->submit(client->port, submission, 1, &accepted, error);
}

/* The token of a notification for tw_stream_acquire_serving, which may arrive after it returned. */
#define TW_SERVING_TOKEN UINT64_MAX

/* The first half of tw_call: submits. */
static inline uint32_t tw_call_submit(const tw_client *client, tw_submission *submission,
                                      tw_error *error) {
  const tw_table *table = client->table;
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
  return tw_submit(client, submission, error);
}

/* The second half of tw_call: waits and reaps. `submission->call` is known before, so that another
 * thread can cancel the call meanwhile. */
static inline uint32_t tw_call_wait(const tw_client *client, const tw_submission *submission,
                                    tw_completion *out, tw_error *error) {
  const tw_table *table = client->table;
  bool interrupted = false;
  bool foreign = false;
  uint32_t code;
  for (;;) {
    uint32_t count = 0;
    code = table->port_wait(client->port, TW_FOREVER, error);
    if (code == TW_INTERRUPTED) {
      if (!interrupted) {
        interrupted = true;
        table->cancel(submission->call, NULL); /* if it is stale, its completion is in the port */
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
    foreign = foreign || out->kind != TW_COMPLETION_STREAM_READY || out->token != TW_SERVING_TOKEN;
    table->release(out);
  }
  if (foreign) {
    table->release(out);
    return tw_fail(error, TW_ARGUMENT, "tw_call on a port that has other outstanding calls");
  }
  if (interrupted && out->code == TW_CANCELLED) {
    table->release(out);
    return tw_fail_with(error, TW_INTERRUPTED, 1, "a signal arrived during the call",
                        sizeof("a signal arrived during the call") - 1);
  }
  return TW_OK;
}

/* A blocking call: submits, waits and reaps. TW_OK: the call ended; `out->code` is its outcome, and
 * `*out` must be passed to tw_table.release.
 *
 * The client must have no other outstanding calls: their completions are released, and the result
 * is TW_ARGUMENT. Host calls are answered during the wait. If the method can wait for capacity
 * (TW_METHOD_CAN_BLOCK), the call does, without answering host calls. A signal cancels the call;
 * the function returns TW_INTERRUPTED after the call has ended. TW_WOULD_PARK: called in a function
 * of the client's host, which the service is waiting for. */
static inline uint32_t tw_call(const tw_client *client, tw_submission *submission,
                               tw_completion *out, tw_error *error) {
  uint32_t code = tw_call_submit(client, submission, error);
  return code == TW_OK ? tw_call_wait(client, submission, out, error) : code;
}

/* Calls an inline or a brief method on this thread, without a port. The rest is as in tw_call, but a
 * brief method may be refused as TW_WOULD_PARK: then use tw_call. */
static inline uint32_t tw_call_inline(const tw_client *client, const tw_submission *submission,
                                      tw_completion *out, tw_error *error) {
  return client->table->call_inline(submission->client, submission->method, submission->args,
                                    submission->args_size, submission->deadline_ns, out, error);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* A stream or future that is a parameter: see thalweg_stream.h. */
typedef struct tw_stream_writer {
  const tw_table *table;
  tw_handle writer;
  tw_handle reader;              /* 0 once it belongs to the service */
  struct tw_stream_writer *next; /* private: the next one of the same request */
} tw_stream_writer;

/* The kind of a tw_completion that no port returned: the call was not made. `code` says why, and
 * the tw_error was filled in. */
#define TW_COMPLETION_NONE UINT32_MAX

/* One call before it is submitted: its message and its submission. `X_prepare` of a package's
 * header fills it in; then use exactly one of tw_request_submit, tw_request_call,
 * tw_request_call_inline and tw_request_free. A failure of X_prepare is returned by that function.
 * Do not move the struct in between. The client must stay open. */
typedef struct tw_request {
  const tw_client *client;
  const tw_method *method;   /* as the caller's header describes it */
  tw_submission submission;  /* complete after tw_request_end */
  tw_completion completion;  /* of a blocking call */
  tw_stream_writer *streams; /* the parameters that the caller writes */
  tw_writer writer;
} tw_request;

/* Begins the message of method number `method` of `methods`. Returns the offset of its root. */
static inline uint32_t tw_request_begin(tw_request *request, const tw_client *client,
                                        const tw_method *methods, uint32_t method, uint32_t handles,
                                        uint32_t root_size) {
  request->client = client;
  request->method = &methods[method];
  request->streams = NULL;
  memset(&request->submission, 0, sizeof(request->submission));
  request->submission.client = client->instance;
  request->submission.method = method;
  return tw_writer_begin(&request->writer, methods[method].params, handles, root_size);
}

/* Writes the reading end of a stream as a parameter at `at`. */
static inline void tw_request_put_stream(tw_request *request, uint32_t at,
                                         tw_stream_writer *stream) {
  if (tw_writer_require(&request->writer, stream)) {
    tw_put_handle(&request->writer, at, stream->reader);
    stream->next = request->streams;
    request->streams = stream;
  }
}

/* Completes `request->submission`, except for its token and deadline. Only needed to submit several
 * calls at once: copy the submissions into an array for tw_table.submit, then call
 * tw_request_accepted for the accepted ones and tw_request_free for all. */
static inline uint32_t tw_request_end(tw_request *request, tw_error *error) {
  const char *name = request->method->name;
  uint32_t code = tw_writer_end(&request->writer);
  if (request->submission.client == 0) {
    return tw_fail(error, TW_CLOSED, "%s: the client is closed", name);
  }
  if (code == TW_OVERLOADED) {
    return tw_fail(error, code, "%s: no memory for the arguments", name);
  }
  if (code != TW_OK) {
    return tw_fail(error, code, "%s: a null pointer, or more than 2 GiB of arguments", name);
  }
  request->submission.args = request->writer.data;
  request->submission.args_size = request->writer.size;
  return TW_OK;
}

/* After the submission was accepted: the reading ends of its streams belong to the service. */
static inline void tw_request_accepted(tw_request *request) {
  tw_stream_writer *stream = request->streams;
  while (stream) {
    tw_stream_writer *next = stream->next;
    stream->reader = 0;
    stream->next = NULL;
    stream = next;
  }
  request->streams = NULL;
}

/* Frees the message. */
static inline void tw_request_free(tw_request *request) {
  tw_writer_free(&request->writer);
}

/* Submits the call on the client's port, and frees the request. The completion has `token`; pass it
 * to `X_read`. `*call` is for tw_table.cancel; `call` may be NULL. */
static inline uint32_t tw_request_submit(tw_request *request, uint64_t deadline_ns, uint64_t token,
                                         tw_handle *call, tw_error *error) {
  uint32_t code = tw_request_end(request, error);
  if (code == TW_OK) {
    request->submission.token = token;
    request->submission.deadline_ns = deadline_ns;
    code = tw_submit(request->client, &request->submission, error);
    if (call) {
      *call = request->submission.call;
    }
  }
  if (code == TW_OK) {
    tw_request_accepted(request);
  }
  tw_request_free(request);
  return code;
}

/* The completion of a blocking call, or TW_COMPLETION_NONE with the reason. Frees the message. */
static inline tw_completion *tw_request_result(tw_request *request, uint32_t code) {
  if (code == TW_OK) {
    tw_request_accepted(request);
  } else {
    memset(&request->completion, 0, sizeof(request->completion));
    request->completion.kind = TW_COMPLETION_NONE;
    request->completion.code = code;
  }
  tw_request_free(request);
  return &request->completion;
}

/* Makes a blocking call with tw_call, and frees the message. A brief method runs on this thread if
 * its service is idle. Returns the completion for `X_read`, which is valid as long as `*request`. */
static inline tw_completion *tw_request_call(tw_request *request, uint64_t deadline_ns,
                                             tw_error *error) {
  uint32_t code = tw_request_end(request, error);
  request->submission.deadline_ns = deadline_ns;
  if (code == TW_OK && (request->method->flags & TW_METHOD_BRIEF) != 0 &&
      tw_call_inline(request->client, &request->submission, &request->completion, error) == TW_OK) {
    return tw_request_result(request, TW_OK);
  }
  if (code == TW_OK) {
    code = tw_call(request->client, &request->submission, &request->completion, error);
  }
  return tw_request_result(request, code);
}

/* The same with tw_call_inline. */
static inline tw_completion *tw_request_call_inline(tw_request *request, uint64_t deadline_ns,
                                                    tw_error *error) {
  uint32_t code = tw_request_end(request, error);
  request->submission.deadline_ns = deadline_ns;
  if (code == TW_OK) {
    code = tw_call_inline(request->client, &request->submission, &request->completion, error);
  }
  return tw_request_result(request, code);
}

/* ---- Replies --------------------------------------------------------------------------------- */

/* A completion. It owns the memory that a typed result points to, until tw_reply_release. A zeroed
 * reply is empty and may be released. */
typedef struct tw_reply {
  const tw_table *table;
  const uint8_t *base; /* of the message, for accessors */
  tw_completion completion;
} tw_reply;

/* Makes a reply empty, without releasing it. */
static inline void tw_reply_clear(tw_reply *reply) {
  memset(reply, 0, sizeof(*reply));
}

/* Moves a completion into a reply. */
static inline void tw_reply_take(tw_reply *reply, const tw_table *table,
                                 tw_completion *completion) {
  reply->table = table;
  reply->base = completion->data;
  reply->completion = *completion;
  memset(completion, 0, sizeof(*completion));
}

/* Frees the memory of a result. */
static inline void tw_reply_release(tw_reply *reply) {
  if (reply->table) {
    reply->table->release(&reply->completion);
  }
  tw_reply_clear(reply);
}

/* Fills in `*error` from a reply whose code is not TW_OK. Returns the code. */
static inline uint32_t tw_reply_error(const tw_reply *reply, tw_error *error) {
  const tw_completion *completion = &reply->completion;
  if (completion->message) {
    return tw_fail_with(error, completion->code, completion->retryable, completion->message,
                        completion->message_size);
  }
  return tw_fail_with(error, completion->code, completion->retryable,
                      tw_code_name(completion->code), strlen(tw_code_name(completion->code)));
}

/* ---- Resources ------------------------------------------------------------------------------- */

/* Takes a resource out of a result. You must then close it. tw_reply_release closes those that were
 * not taken.
 * TW_ARGUMENT: it was taken before, or the reply was released. */
static inline uint32_t tw_reply_take_handle(tw_reply *reply, tw_handle_ref ref, tw_resource *out,
                                            tw_error *error) {
  out->table = reply->table;
  out->handle = 0;
  if (!reply->table) {
    return tw_fail(error, TW_ARGUMENT, "the reply was released");
  }
  return reply->table->take_handle(&reply->completion, ref.index, &out->handle, error);
}

/* Drops the resource. */
static inline uint32_t tw_resource_close(tw_resource *resource, tw_error *error) {
  uint32_t code = TW_OK;
  if (resource->handle != 0) {
    code = resource->table->resource_drop(resource->handle, error);
  }
  resource->handle = 0;
  return code;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* Decodes a completion into a typed result. Used by `X_read` of a package's header. */
typedef struct tw_decoder {
  tw_reply *reply; /* the first member of the result */
  const tw_method *method;
  tw_error *error;
  uint32_t code;  /* the outcome; or why the result cannot be decoded */
  bool in_place;  /* the result points into the reply */
  tw_slice slice; /* of tw_decode_list */
  tw_checker checker;
} tw_decoder;

/* Zeroes the result, whose first member is a tw_reply, and moves the completion into it. */
static inline tw_decoder tw_decode_begin(const tw_client *client, const tw_method *method,
                                         tw_completion *completion, void *result,
                                         size_t result_size, tw_error *error) {
  tw_decoder decoder;
  memset(result, 0, result_size);
  decoder.reply = (tw_reply *)result;
  decoder.method = method;
  decoder.error = error;
  decoder.code = completion->code;
  decoder.in_place = false;
  if (completion->kind != TW_COMPLETION_NONE) {
    tw_reply_take(decoder.reply, client->table, completion);
  }
  return decoder;
}

/* The result cannot be decoded, for the reason `code`. */
static inline void tw_decode_fail(tw_decoder *decoder, uint32_t code) {
  tw_reply_release(decoder->reply);
  decoder->code = code;
}

static inline void tw_decode_malformed(tw_decoder *decoder) {
  tw_decode_fail(decoder, tw_fail(decoder->error, TW_ARGUMENT,
                                  "%s: the library's message is malformed", decoder->method->name));
}

/* The header of the message; see tw_check_root. NULL unless the outcome is `code`. */
static inline const void *tw_decode_header(tw_decoder *decoder, uint32_t code, uint32_t size) {
  const tw_completion *completion = &decoder->reply->completion;
  uint64_t layout = code == TW_OK ? decoder->method->ok : decoder->method->error;
  const void *root;
  if (decoder->code != code) {
    return NULL;
  }
  root = tw_check_root(&decoder->checker, completion->data, completion->data_size, layout, size);
  if (!root) {
    tw_decode_malformed(decoder);
  }
  return root;
}

/* The root of the message, of `size` bytes and checked by `check` unless that is NULL. It stays in
 * the reply. NULL unless the outcome is `code`: TW_OK or TW_ERROR. */
static inline const void *tw_decode_root(tw_decoder *decoder, uint32_t code, uint32_t size,
                                         tw_check check) {
  const void *root = tw_decode_header(decoder, code, size);
  if (root &&
      ((check && !check(&decoder->checker, root)) || !tw_check_all_handles(&decoder->checker))) {
    tw_decode_malformed(decoder);
    root = NULL;
  }
  decoder->in_place = decoder->in_place || root;
  return root;
}

/* A number, bool, char, enum or flags: copied to `out`. */
static inline void tw_decode_value(tw_decoder *decoder, uint32_t code, void *out, uint32_t size,
                                   tw_check check) {
  const void *root = tw_decode_root(decoder, code, size, check);
  if (root) {
    memcpy(out, root, size);
    decoder->in_place = false;
  }
}

/* A list: whether there is one. Its slice is then `decoder->slice`. */
static inline bool tw_decode_list(tw_decoder *decoder, uint32_t code, tw_check check) {
  const void *root = tw_decode_root(decoder, code, sizeof(tw_slice), check);
  if (root) {
    decoder->slice = *(const tw_slice *)root;
  }
  return root != NULL;
}

/* A string. */
static inline void tw_decode_text(tw_decoder *decoder, uint32_t code, tw_text *out) {
  if (tw_decode_list(decoder, code, tw_check_text)) {
    *out = tw_text_view(decoder->reply->base, decoder->slice);
  }
}

/* A list<u8>. */
static inline void tw_decode_bytes(tw_decoder *decoder, uint32_t code, tw_bytes *out) {
  if (tw_decode_list(decoder, code, tw_check_text)) {
    *out = tw_bytes_view(decoder->reply->base, decoder->slice);
  }
}

/* A resource: taken out of the reply. */
static inline void tw_decode_resource(tw_decoder *decoder, tw_resource *out) {
  const tw_handle_ref *root =
      (const tw_handle_ref *)tw_decode_header(decoder, TW_OK, sizeof(tw_handle_ref));
  if (root) {
    uint32_t code = tw_reply_take_handle(decoder->reply, *root, out, decoder->error);
    if (code != TW_OK) {
      tw_decode_fail(decoder, code);
    }
  }
}

/* Returns the outcome, and fills in the error. Releases a reply that the result does not point
 * into. */
static inline uint32_t tw_decode_end(tw_decoder *decoder) {
  if (decoder->code == TW_OK) {
    if (!decoder->in_place) {
      tw_reply_release(decoder->reply);
    }
    return TW_OK;
  }
  /* Without a table there is no reply, and the error was filled in. */
  return decoder->reply->table ? tw_reply_error(decoder->reply, decoder->error) : decoder->code;
}

#endif
