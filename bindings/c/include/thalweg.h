/* The C ABI of a Thalweg library. C99 and C++17; depends only on the C standard library.
 *
 * A service is a shared library that exports one symbol, `tw_library`. It returns a `tw_table`: the
 * functions that open clients and ports, submit calls, reap completions and read streams. This
 * header is the reference for authors of language bindings. C programs include the header that
 * `thalweg gen` writes for a package; it uses thalweg_client.h, which uses this table.
 *
 * The life of a call:
 *
 *   client_open, port_open       once
 *   submit                       copies the arguments; the service runs the method
 *   port_wait or port_fd         until a completion is available
 *   port_reap                    returns the completion: the outcome and the result
 *   release                      frees the result
 *
 * Rules for every function. The comments below only add to them.
 *  1. It returns a `tw_code`. If that is not TW_OK and `error` is not NULL, it fills in `*error`.
 *     It never unwinds into the caller.
 *  2. These codes are possible everywhere and not repeated below: TW_ARGUMENT for a NULL pointer
 *     that is required, a handle of another kind or a malformed message; TW_STALE for a handle
 *     whose object was closed; TW_FORKED for a handle from before fork(); TW_OVERLOADED if memory
 *     is short.
 *  3. Input is borrowed until the function returns, and copied if it is needed for longer.
 *  4. Output is either a value, or its comment names the one function that frees it. Never use
 *     free() on it.
 *  5. Every function may be called on every thread unless its comment says otherwise. "One thread
 *     at a time" means that the caller serialises the calls for one object.
 *  6. A handle is a number that may be copied freely. No number is used twice, so a handle never
 *     refers to another object than the one that it was created for.
 *  7. Times are nanoseconds on the clock of `now()`, CLOCK_MONOTONIC. Deadlines are absolute.
 *  8. New fields are only added at the end of tw_table. Check only the bits of `flags` that you
 *     know. A completion has only a kind that you requested.
 */
#ifndef THALWEG_H
#define THALWEG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the layout of `tw_table`. A library with another one is incompatible. */
#define TW_ABI 2u

/* The outcome of a call, and the status of every function. The numbers never change. */
enum tw_code {
  TW_OK = 0,
  TW_ERROR = 1,          /* the method's own error; the payload is `data`, or see stream_error */
  TW_CANCELLED = 2,      /* the caller cancelled the call, or closed its client or port */
  TW_TIMED_OUT = 3,      /* the deadline passed */
  TW_GUEST_LOST = 4,     /* the service could not be started or restarted, or dropped the call */
  TW_GUEST_PANICKED = 5, /* the service panicked in this call; the message has the panic's text */
  TW_OVERLOADED = 6,     /* a limit was reached, or memory is short; try again later */
  TW_SHUT_DOWN = 7,      /* the runtime is shutting down */
  TW_CLOSED = 8,         /* the object was closed; for a stream: the regular end, nothing missing */
  TW_STALE = 9,          /* the handle's object no longer exists */
  TW_ARGUMENT = 10,      /* a NULL pointer, a handle of another kind, a malformed message */
  TW_VERSION = 11,       /* caller and library are incompatible */
  TW_FORKED = 12,        /* the handle was created before fork() */
  TW_INTERRUPTED = 13,   /* a signal was handled during the wait; call the function again */
  TW_WOULD_PARK = 14     /* nothing is available, and the function must not wait */
};

/* A handle of a client, port, call, resource, stream or retained batch. 0 is never valid. */
typedef uint64_t tw_handle;

/* No deadline. A deadline of 0 means "do not wait"; only in a submission it also means "none". */
#define TW_FOREVER UINT64_MAX

/* A failure. The struct belongs to the caller. */
typedef struct tw_error {
  uint32_t code;
  uint32_t retryable; /* 1: the same call may succeed later, and repeating it does no harm */
  char message[248];  /* UTF-8, NUL-terminated, truncated at a character boundary */
} tw_error;

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The kinds of a completion. */
#define TW_COMPLETION_CALL 1u         /* the call `call` ended with `code` */
#define TW_COMPLETION_STREAM_READY 2u /* the stream `call`, armed by stream_arm, is ready */
#define TW_COMPLETION_NOTICE 3u       /* progress notice: the call `call` is still running */
#define TW_COMPLETION_HOST_CALL 4u    /* the service calls host import number `code` */
#define TW_COMPLETION_LOG 5u          /* a log record of the level `code`; see log_set_port */

/* One entry of a completion queue. `data` and `message` are valid until `release`. */
typedef struct tw_completion {
  uint64_t token; /* as passed in tw_submission, stream_arm, client_set_host or log_set_port */
  tw_handle call; /* the call, stream or host call; see the kinds */
  uint32_t kind;  /* TW_COMPLETION_* */
  uint32_t code;  /* the outcome, a tw_code; of a host call the number of the import; of a log
                     record its level */
  /* A message, aligned to 8 bytes: the result with TW_OK, the error payload with TW_ERROR, the
   * arguments of a host call. Or CBOR: see client_set_format. Of a notice: a uint64_t, the
   * nanoseconds since the submission. Otherwise NULL. */
  const uint8_t *data;
  uint64_t data_size;
  const char *message; /* UTF-8 text, not NUL-terminated, or NULL */
  uint32_t message_size;
  uint32_t retryable; /* as in tw_error */
  uint64_t owner;     /* private */
} tw_completion;

/* One call to submit. */
typedef struct tw_submission {
  uint64_t token; /* any value; the completion returns it */
  tw_handle client;
  uint32_t method;     /* index into the methods of the caller's header, from 0 */
  uint32_t flags;      /* TW_SUBMIT_*; TW_ARGUMENT for an unknown bit */
  const uint8_t *args; /* a message: the record of the parameters; or see TW_SUBMIT_BORROWED */
  uint64_t args_size;
  uint64_t deadline_ns; /* 0 or TW_FOREVER: none */
  tw_handle call;       /* out: for `cancel`; valid until the call has ended */
} tw_submission;

/* Requests progress notices: a TW_COMPLETION_NOTICE at each interval of the method
 * (`notice_interval` in the policy file). The port holds at most one unreaped notice of a call, and
 * none after its TW_COMPLETION_CALL. Such a call uses two slots of the port. TW_ARGUMENT if the
 * method does not have TW_METHOD_NOTICES. */
#define TW_SUBMIT_NOTICES 1u

/* If the client has no capacity for the call and the method has TW_METHOD_CAN_BLOCK, `submit` waits
 * for capacity until the call's deadline. At the deadline the call is accepted and ends as
 * TW_TIMED_OUT. A signal withdraws the call: TW_INTERRUPTED. Without this flag, or for other
 * methods, a call without capacity is TW_OVERLOADED. */
#define TW_SUBMIT_BLOCK 2u

/* `args` points to a tw_borrowed_args, and `args_size` is its size. The service reads `tail` in place, so
 * that a large string or list is not copied: if the call is accepted, `tail` must stay valid and
 * unchanged until the completion of the call was reaped, or port_close has returned. That is enough
 * also after a cancellation, a deadline or client_close: nothing reads `tail` after the call has
 * completed, even if the service still runs. `head` may be freed on return. The sum of both sizes is
 * the size of the message, and each string and each list is in one of the parts. `tail` is not
 * counted against the client's limit of queued bytes. If the method has TW_METHOD_INLINE, or the caller
 * was built for another version, both parts are copied. */
#define TW_SUBMIT_BORROWED 4u

/* A message in two parts. */
typedef struct tw_borrowed_args {
  const uint8_t *head; /* the header, the root, and the contents of strings and lists that fit */
  uint64_t head_size;
  const uint8_t *tail; /* the rest of the message */
  uint64_t tail_size;
} tw_borrowed_args;

/* ---- Streams --------------------------------------------------------------------------------- */

/* A batch view: a run of a stream's records, read in place. It is valid until stream_release of its
 * last record, or stream_close. Slices in a record are offsets from `base`. */
typedef struct tw_batch {
  const uint8_t *base;  /* aligned to 8 bytes */
  const uint8_t *slots; /* record i is at slots + i * stride */
  uint32_t count;
  uint32_t stride;
  uint64_t first_seq;   /* sequence number of the first record, from 0 */
  uint64_t lost_before; /* records missing directly before the first one:
                           [first_seq - lost_before, first_seq); with TW_BATCH_END, records missing
                           after the last one */
  uint32_t gap_reason;  /* TW_GAP_*; 0 if nothing is missing */
  uint32_t flags;       /* TW_BATCH_* */
  uint64_t size;        /* readable bytes from `base`; all records and their tails are inside */
} tw_batch;

/* The stream ended: there are no records, and the status is the stream's outcome. Without this flag
 * the status is that of the wait. */
#define TW_BATCH_END 1u
/* The records are of the control lane: never dropped, delivered before all others, and numbered
 * separately by first_seq. */
#define TW_BATCH_CONTROL 2u

/* Why records are missing. */
#define TW_GAP_CONFLATED 1u      /* newer records replaced them (policies `latest`, `conflate`) */
#define TW_GAP_DROPPED_NEWEST 2u /* the stream was full (policy `drop-newest`) */
#define TW_GAP_DROPPED_OLDEST 3u /* the stream was full (policy `drop-oldest`) */
#define TW_GAP_BATCH_OPEN 4u     /* `drop-oldest` dropped the newest: a batch had the oldest */
#define TW_GAP_SERVICE 5u        /* the service reported the records as missing */

/* Counters of all streams of one method of one client, open and closed. Once the writers are gone,
 * published = delivered + undelivered + occupancy + the sum of lost. */
typedef struct tw_stats {
  uint64_t streams;
  uint64_t published;   /* records that the service wrote */
  uint64_t delivered;   /* records that were in a batch */
  uint64_t undelivered; /* records left in a stream when it was closed */
  uint64_t occupancy;   /* records now in open streams */
  uint64_t lost[8];     /* missing records by reason; the index is TW_GAP_* */
  uint64_t high_water;  /* the most records that one stream has held, counted in whole segments */
  uint64_t control;     /* records of the control lane that were in a batch */
  uint64_t wakes;       /* times that a writer woke a reader */
  uint64_t parks;       /* times that a reader asked to be woken */
  uint64_t waits;       /* times that a writer waited for capacity */
  uint64_t faults;      /* streams that ended neither regularly nor by stream_close */
  uint64_t age[32];     /* segments first read 2^i ns or more after their first record was begun */
} tw_stats;

/* Receives a stream's records on threads of the service, one call at a time. `batch` and `outcome`
 * are valid until it returns. The last call has `outcome`, how the stream ended (TW_CLOSED:
 * regularly), and TW_BATCH_END in batch->flags; in all other calls `outcome` is NULL. A result
 * other than 0 closes the stream. The callback must not wait, and must not leave by an exception,
 * longjmp or pthread_exit. */
typedef uint32_t (*tw_stream_callback)(void *ctx, const tw_batch *batch, const tw_error *outcome);
/* Frees the `ctx` of a callback. Called exactly once, after the last call of the callback. */
typedef void (*tw_drop_ctx)(void *ctx);

/* ---- Reports --------------------------------------------------------------------------------- */

/* The importance of a log record. */
#define TW_LOG_ERROR 1u   /* a part of the program failed */
#define TW_LOG_WARNING 2u /* a limit was reached, or work was lost or delayed */
#define TW_LOG_INFO 3u    /* a part of the runtime changed its state */

/* What the library reports about itself; docs/c-abi.md lists the targets. The texts are UTF-8 and
 * not NUL-terminated. A newer library may have more fields at the end. */
typedef struct tw_log_record {
  uint64_t time_ns; /* the time of day: nanoseconds since 1970-01-01 00:00 UTC */
  uint32_t level;   /* TW_LOG_* */
  uint32_t target_size;
  const char *target; /* the part that reports: "service" */
  const char *message;
  uint64_t message_size;
} tw_log_record;

/* Receives log records on threads of the library and of its callers, also on several threads at the
 * same time. `record` is valid until it returns. It must not wait, and must not call functions of
 * the library, except `now` and `log_set_sink`; nor may it leave by an exception, longjmp or
 * pthread_exit. Records that it causes on its own thread are discarded. */
typedef void (*tw_log_callback)(void *ctx, const tw_log_record *record);

/* Counters of the library's runtime since it started, and numbers of its open handles. All are 0
 * before the first client is opened. They are read one after the other, so they are not those of
 * one moment. */
typedef struct tw_counters {
  uint64_t workers;          /* the most worker threads that it starts */
  uint64_t stacks;           /* stacks of the workers, used or free */
  uint64_t actors;           /* actors that exist */
  uint64_t actors_started;   /* actors that were started */
  uint64_t actors_failed;    /* of these, ended by a panic, an error, a kill, or without a stack */
  uint64_t actors_waiting;   /* actors, and turns of services, that no worker has begun */
  uint64_t slices;           /* times that an actor, or a turn of a service, got a worker */
  uint64_t waits;            /* times that an actor was suspended to wait */
  uint64_t remote_wakes;     /* actors woken by another thread than their worker */
  uint64_t deadlines;        /* actors woken by a deadline */
  uint64_t timers;           /* timers that fired: deadlines of calls, notices */
  uint64_t steals;           /* times that a worker took work from another */
  uint64_t sleeps;           /* times that a worker without work went to sleep */
  uint64_t messages;         /* messages that actors handled */
  uint64_t messages_dropped; /* messages dropped because a mailbox was full */
  uint64_t restarts;         /* actors restarted by a supervisor */
  uint64_t clients;          /* open clients */
  uint64_t ports;            /* open ports */
  uint64_t calls;            /* calls that have not ended */
  uint64_t calls_queued;     /* of these, not begun by the service */
  uint64_t streams;          /* open streams, readers and writers */
  uint64_t resources;        /* open resources */
  uint64_t batches;          /* retained batches */
  uint64_t completions;      /* completions with contents that were reaped and not released */
} tw_counters;

/* ---- The table ------------------------------------------------------------------------------- */

/* A method or a host import; its number is its index. `name` is "interface.function", or for a
 * resource "interface.[constructor]resource", "interface.[method]resource.name" or
 * "interface.[static]resource.name", as in WIT. The hashes are those of the message layouts; 0
 * means that there is none. Both sides must agree on the name and the hashes; the other fields are
 * information. */
typedef struct tw_method {
  const char *name;
  uint64_t params;  /* hash of the record of the parameters */
  uint64_t ok;      /* hash of the result, without its error side */
  uint64_t error;   /* hash of the error payload */
  uint64_t element; /* hash of the elements of the stream or future that it returns */
  uint32_t flags;   /* TW_METHOD_* */
  uint32_t description_size;
  /* The four types as text, one per line in the order of the hashes, an empty line for none. The
   * last line has no line end. */
  const uint8_t *description;
} tw_method;

#define TW_METHOD_ASYNC 1u      /* an `async func`: later calls of the client do not wait for it */
#define TW_METHOD_INLINE 2u     /* call_inline can call it */
#define TW_METHOD_IDEMPOTENT 4u /* repeating it does no harm: more outcomes are retryable */
#define TW_METHOD_NOTICES 8u    /* supports TW_SUBMIT_NOTICES */
#define TW_METHOD_CAN_BLOCK 16u /* supports TW_SUBMIT_BLOCK (policy `overflow = "block"`) */
#define TW_METHOD_CBOR 32u      /* supports client_set_format (policy `format = "cbor"`) */
#define TW_METHOD_BRIEF 64u     /* call_inline can call it while the client's service is idle */

/* Formats for `transcode` and `client_set_format`. */
#define TW_FLAT 0u /* a message, see "Messages" below */
#define TW_CBOR 1u /* RFC 8949, see docs/cbor.md */

/* The functions of a library. The table is static: nothing in it is freed, and it is valid until
 * the process ends. The first five fields are at the same place in every version. */
typedef struct tw_table {
  uint32_t abi;        /* TW_ABI of the library */
  uint32_t size;       /* sizeof(tw_table) in the library */
  const char *package; /* "thalweg:search" */
  const char *version; /* version of the package: "0.1.0" */
  const char *core;    /* version of Thalweg in the library */
  uint64_t layout;     /* hash of all methods and host imports */
  const tw_method *methods;
  uint32_t method_count;
  uint32_t reserved;

  /* The current time, in nanoseconds. Never fails. */
  uint64_t (*now)(void);

  /* Opens a client: a new instance of the service with its own actor. Free it with client_close.
   * The first client starts the threads of the runtime.
   * TW_OVERLOADED: the system has no thread. */
  uint32_t (*client_open)(tw_handle *client, tw_error *error);
  /* Closes the client and drops its instance. Its calls and streams end as TW_CANCELLED. You still
   * receive completions for its calls, and must still close the handles of its streams and
   * resources. A second close is TW_STALE. */
  uint32_t (*client_close)(tw_handle client, tw_error *error);

  /* Opens a port: a completion queue with an eventfd. Free it with port_close. Several clients may
   * use one port. Any thread may submit; one thread at a time may wait, arm and reap. `capacity` is
   * the number of slots, 1 to 65,536: each call uses one from its submission until its completion
   * is reaped.
   * TW_ARGUMENT: another capacity. TW_OVERLOADED: no memory or no file descriptor. */
  uint32_t (*port_open)(uint32_t capacity, tw_handle *port, tw_error *error);
  /* Closes the port. Its calls end as TW_CANCELLED, without completions, and completions that were
   * not reaped are freed. A thread in port_wait receives TW_CLOSED. */
  uint32_t (*port_close)(tw_handle port, tw_error *error);
  /* The eventfd, for poll and epoll. It belongs to the port: do not close it, and remove it from
   * epoll before port_close. You need not read from it; port_arm resets it. */
  uint32_t (*port_fd)(tw_handle port, int *fd, tw_error *error);
  /* Arms the eventfd for one wake-up. *ready = 1: completions are available now, and nothing was
   * armed; reap first. *ready = 0: the fd becomes readable with the next completion. Arming again
   * is allowed. One thread at a time. */
  uint32_t (*port_arm)(tw_handle port, uint32_t *ready, tw_error *error);
  /* Waits until a completion is available. One thread at a time. pthread_cancel of this thread may
   * abort the process; close the port instead, or disable cancellation around the call.
   * TW_TIMED_OUT, TW_INTERRUPTED. TW_CLOSED: the port was closed. */
  uint32_t (*port_wait)(tw_handle port, uint64_t deadline_ns, tw_error *error);
  /* Removes up to `max` completions and writes them to `out`; *count may be 0. Never waits. Pass
   * each completion to `release`, which is also possible after port_close and client_close. One
   * thread at a time.
   * TW_ARGUMENT: another thread is reaping the port. */
  uint32_t (*port_reap)(tw_handle port, tw_completion *out, uint32_t max, uint32_t *count,
                        tw_error *error);
  /* Frees `data` and `message` of a completion, closes the handles in `data` that were not taken,
   * and sets the pointers to NULL. A second release, also of a copy, has no effect; the first one
   * also frees the memory that copies point to. One thread at a time per completion. */
  void (*release)(tw_completion *completion);

  /* Submits `count` calls. The first *accepted of them are accepted, and each completes exactly
   * once. The status says why the next one was refused. The messages may be freed on return. `own`
   * handles in an accepted message belong to the service. Several calls in one submission wake the
   * service once.
   * TW_OVERLOADED: the port has no slot, or the client no capacity (see TW_SUBMIT_BLOCK). */
  uint32_t (*submit)(tw_handle port, tw_submission *batch, uint32_t count, uint32_t *accepted,
                     tw_error *error);
  /* Requests cancellation. The call completes once, with whichever outcome came first.
   * TW_STALE: the call has ended. */
  uint32_t (*cancel)(tw_handle call, tw_error *error);

  /* Takes handle number `index` (a resource or a stream) out of a completion's message. Free it
   * with resource_drop or stream_close, also after `release`. Before `release`, one thread at a
   * time per completion.
   * TW_ARGUMENT: it was taken before. TW_STALE: the completion was released, for a copy. */
  uint32_t (*take_handle)(tw_completion *completion, uint32_t index, tw_handle *out,
                          tw_error *error);
  /* Drops a resource. Its destructor runs in the service, once no call uses the object; this
   * function does not wait for it. */
  uint32_t (*resource_drop)(tw_handle resource, tw_error *error);

  /* Waits for records and returns up to `max` of them as a batch view, at least one. Free it with
   * stream_release or stream_close. A stream has one reader at a time and one open batch.
   * TW_WOULD_PARK: deadline 0 and no records. TW_TIMED_OUT, TW_INTERRUPTED.
   * With TW_BATCH_END in out->flags, after all records, how the stream ended: TW_CLOSED if it is
   * complete; TW_ERROR with the service's own error, see stream_error; TW_GUEST_LOST if a writer
   * was dropped before it finished, with the reason in the message; or the outcome of the call that
   * returned the stream. Each code except TW_CLOSED means that the stream is incomplete. */
  uint32_t (*stream_acquire)(tw_handle stream, uint32_t max, uint64_t deadline_ns, tw_batch *out,
                             tw_error *error);
  /* Releases the first `count` records of the open batch. After the last record the batch is
   * closed. The thread that reads. */
  uint32_t (*stream_release)(tw_handle stream, uint32_t count, tw_error *error);
  /* Arms the stream for one notification: `port` receives a TW_COMPLETION_STREAM_READY with `token`
   * once stream_acquire would not wait. With port 0, the fd of stream_fd becomes readable instead.
   * *ready = 1: it would not wait now, and nothing was armed. For the writer of a parameter
   * (stream_new): ready means that there is capacity again, or that the stream ended. Another
   * stream_arm, or a stream_acquire that waits, replaces it. The notification uses a slot of the
   * port until it is reaped, and may arrive after stream_close. One thread at a time. */
  uint32_t (*stream_arm)(tw_handle stream, tw_handle port, uint64_t token, uint32_t *ready,
                         tw_error *error);
  /* Closes a stream or one end of a parameter. Always allowed: during a stream_acquire on another
   * thread, which returns; with an open batch, which becomes invalid; in a callback. The service's
   * writers fail from then on. No further call of the stream's callback begins, and a call that is
   * running is waited for, unless this function is called in a callback or on a thread that must
   * not wait. */
  uint32_t (*stream_close)(tw_handle stream, tw_error *error);

  /* Converts `data` to the format `to`: CBOR to a message, or a message to CBOR in the
   * deterministic encoding of RFC 8949, 4.2.1. `description` is one line of tw_method.description:
   * the type. Writes *size bytes to `out`, which has room for `capacity` bytes.
   * TW_OVERLOADED: the result is larger. TW_ARGUMENT: `data` is not a value of the type, or the
   * type contains handles. */
  uint32_t (*transcode)(const uint8_t *description, uint64_t description_size, uint32_t to,
                        const uint8_t *data, uint64_t data_size, uint8_t *out, uint64_t capacity,
                        uint64_t *size, tw_error *error);

  /* Delivers the stream's records to `callback` instead of a reader. Records that arrive later are
   * delivered on the thread that writes them, which continues when the callback returns. Earlier
   * records and the end of the stream are delivered on another thread of the service. The callback
   * may use every function of the table that does not wait. It replaces an earlier callback, of
   * which no further call begins.
   * TW_OK: the core owns `ctx` and calls `drop_ctx`, if not NULL, once, after the last call.
   * Otherwise `ctx` still belongs to the caller and nothing is called.
   * TW_ARGUMENT: `callback` is NULL, a batch is open, or `flags` is not 0. */
  uint32_t (*stream_subscribe)(tw_handle stream, tw_stream_callback callback, void *ctx,
                               tw_drop_ctx drop_ctx, uint32_t flags, tw_error *error);
  /* Waits until the stream's callback has made its last call and drop_ctx has returned. TW_OK also
   * if there is no callback.
   * TW_TIMED_OUT, TW_INTERRUPTED. TW_WOULD_PARK: called in a callback. */
  uint32_t (*stream_join)(tw_handle stream, uint64_t deadline_ns, tw_error *error);
  /* The stream's own eventfd, for stream_arm with port 0. It belongs to the stream: do not close
   * it, and remove it from epoll before stream_close. You need not read from it. */
  uint32_t (*stream_fd)(tw_handle stream, int *fd, tw_error *error);
  /* Calls a method that has TW_METHOD_INLINE or TW_METHOD_BRIEF, on this thread and without a port.
   * `args` is read in place. TW_OK: the call ended, and *out is its completion, with token and call
   * 0; pass it to `release`.
   * TW_WOULD_PARK: the method is brief, and its service is busy, has not begun its first call, or
   * must not run on this thread. The call was not made: use `submit`.
   * TW_ARGUMENT: the method is neither inline nor brief. */
  uint32_t (*call_inline)(tw_handle client, uint32_t method, const uint8_t *args,
                          uint64_t args_size, uint64_t deadline_ns, tw_completion *out,
                          tw_error *error);

  /* Receives the host calls of the client's service on `port`; with port 0, each on the port of the
   * call that caused it. A host call is a TW_COMPLETION_HOST_CALL with `token`; answer its `call`
   * with host_call_answer. It uses a slot of the port until it is reaped. If the port has no slot,
   * the service receives TW_OVERLOADED; if the port is closed or no host was set, TW_CLOSED. In
   * effect until the next client_set_host.
   * TW_ARGUMENT: the service has no host imports. */
  uint32_t (*client_set_host)(tw_handle client, tw_handle port, uint64_t token, tw_error *error);
  /* Answers a host call, once. `data` is a message: the result with TW_OK, the error payload with
   * TW_ERROR. With every other code it is UTF-8 text, which may be empty.
   * TW_STALE: the host call has ended, by its deadline or with the call that caused it. */
  uint32_t (*host_call_answer)(tw_handle call, uint32_t code, const uint8_t *data,
                               uint64_t data_size, tw_error *error);
  /* The deadline of a host call; TW_FOREVER if it has none. */
  uint32_t (*host_call_deadline)(tw_handle call, uint64_t *deadline_ns, tw_error *error);
  /* Adds a reader to a stream, for another thread: an independent stream with its own capacity,
   * gaps and sequence numbers. It starts with the next record written. Free it with stream_close.
   * Under the policies `block` and `fail`, writers are limited by the slowest reader; under the
   * others, each reader loses records for itself. Writers continue until all readers are closed. */
  uint32_t (*stream_tee)(tw_handle stream, tw_handle *reader, tw_error *error);
  /* Reads the counters of all streams of a client's method. `handle` is the client; or one of the
   * streams, and then `method` is ignored. `size` is sizeof(tw_stats) of the caller: fields that
   * the caller does not know are left out, and fields that the library does not know are 0. */
  uint32_t (*stream_stats)(tw_handle handle, uint32_t method, tw_stats *out, uint32_t size,
                           tw_error *error);
  /* Retains the memory of the open batch: everything that the tw_batch points to stays unchanged
   * after stream_release and stream_close, until retained_batch_release. It uses no capacity of the
   * stream. A batch may be retained more than once. The thread that reads.
   * TW_ARGUMENT: no batch is open. */
  uint32_t (*stream_retain_batch)(tw_handle stream, tw_handle *retained, tw_error *error);
  /* Frees the memory of a retained batch. */
  uint32_t (*retained_batch_release)(tw_handle retained, tw_error *error);

  /* Creates a stream or future that the caller writes and a method reads. `parameter` is the number
   * of the parameter, from 0, with `self` counted. Put *reader into the call's message: it belongs
   * to the service once the call was accepted, and before that to the caller. The caller frees
   * *writer. Free both with stream_close. If the writer is closed before stream_finish, the service
   * reads TW_CANCELLED.
   * TW_ARGUMENT: the parameter is not a stream or future. */
  uint32_t (*stream_new)(tw_handle client, uint32_t method, uint32_t parameter, tw_handle *writer,
                         tw_handle *reader, tw_error *error);
  /* Sends one element, a message, which is copied. Waits for capacity until `deadline_ns`: 256
   * elements or 1 MiB may be unread; a future takes one. Also allowed before the call is submitted,
   * and on several threads.
   * TW_WOULD_PARK: deadline 0 and no capacity; see stream_arm. TW_TIMED_OUT, TW_INTERRUPTED.
   * TW_CLOSED: the service stopped reading. TW_ARGUMENT: the element has another layout; the stream
   * continues. Otherwise how the stream ended. */
  uint32_t (*stream_send)(tw_handle writer, const uint8_t *element, uint64_t element_size,
                          uint64_t deadline_ns, tw_error *error);
  /* Ends the stream regularly, after the elements that were sent. */
  uint32_t (*stream_finish)(tw_handle writer, tw_error *error);

  uint64_t imports_layout; /* hash of all host imports; 0: there are none */

  /* For a caller that was built for another version of the package: declares the caller's methods
   * and host imports, with descriptions. The library then uses the caller's method numbers and
   * message layouts for this client, and converts. Once per client, before its first call.
   * With client 0 it only checks whether the two versions are compatible.
   * TW_VERSION: they are not; the message names the first difference. TW_ARGUMENT: called twice, or
   * after a call. */
  uint32_t (*client_set_layouts)(tw_handle client, const tw_method *methods, uint32_t method_count,
                                 const tw_method *imports, uint32_t import_count, tw_error *error);

  /* The service's own error of a stream that ended as TW_ERROR: a message with the error layout of
   * the method that returned the stream, aligned to 8 bytes. It belongs to the stream and is valid
   * until stream_close of this reader. Also allowed in the stream's callback.
   * TW_ARGUMENT: the stream did not end as TW_ERROR. */
  uint32_t (*stream_error)(tw_handle stream, const uint8_t **data, uint64_t *size, tw_error *error);

  const tw_method *imports; /* the host imports; NULL if there are none */
  uint32_t import_count;
  uint32_t reserved_imports;

  /* With TW_CBOR: from now on, for methods with TW_METHOD_CBOR, this client submits CBOR instead of
   * a message, and the `data` of their completions are CBOR. CBOR that is not a value of the
   * parameters is refused as TW_ARGUMENT. Other methods and host calls are not affected. The CBOR
   * has the types of the library: see docs/cbor.md. Once per client, before its first call, and not
   * together with client_set_layouts. TW_FLAT changes nothing.
   * TW_ARGUMENT: no method has TW_METHOD_CBOR, or the format or the layouts were set before. */
  uint32_t (*client_set_format)(tw_handle client, uint32_t format, tw_error *error);

  /* Releases `count` completions, as `count` calls of `release` do. No effect if `count` is 0 or
   * `completions` is NULL. */
  void (*release_all)(tw_completion *completions, uint32_t count);
  /* Wakes `fd` instead of the port's eventfd, for an event loop that cannot watch an eventfd:
   * port_arm then arms `fd` for one wake-up. -1: the eventfd again. `fd` is a connected socket, the
   * writing end of a pipe, or an eventfd. Each wake-up writes one byte to a socket or pipe (to a
   * datagram socket, a datagram of one byte), and the number 1 to an eventfd. The library only
   * writes; the caller reads. A write never blocks, even if `fd` does, and never raises SIGPIPE. A
   * write that fails, for example because the pipe is full, is ignored. The port keeps a duplicate
   * until the next port_wake or port_close, so the caller may close `fd`. Nothing is written to it
   * after they have returned. In effect at once, also for an armed port; if completions are
   * available, `fd` is woken now.
   * TW_ARGUMENT: `fd` is not open, of another kind, not connected, or a pipe without a reader.
   * TW_OVERLOADED: no file descriptor. The earlier one then stays. */
  uint32_t (*port_wake)(tw_handle port, int fd, tw_error *error);
  /* Passes the library's log records up to `level` (TW_LOG_*) to `callback`, which replaces the
   * earlier callback. With NULL there is none; `ctx`, `drop_ctx` and `level` are then ignored. When
   * the function returns, no call of the earlier callback is running, and drop_ctx has returned. In
   * a callback it does not wait: no further call begins, and drop_ctx is called after the last one.
   * Do not hold a lock that the callback or drop_ctx takes. Without a callback, no record is built.
   * A forked child begins without a callback; its parent's is neither called nor dropped.
   * TW_OK: the core owns `ctx` and calls `drop_ctx`, if not NULL, once, after the last call.
   * TW_ARGUMENT: another level. `ctx` then still belongs to the caller. */
  uint32_t (*log_set_sink)(tw_log_callback callback, void *ctx, tw_drop_ctx drop_ctx,
                           uint32_t level, tw_error *error);
  /* Reads the counters. `size` is sizeof(tw_counters) of the caller: fields that the caller does
   * not know are left out, and fields that the library does not know are 0. It looks at every slot
   * of the handle table; do not call it in a loop. */
  uint32_t (*counters)(tw_counters *out, uint32_t size, tw_error *error);
  /* Passes the library's log records up to `level` (TW_LOG_*) to `port`, each as a TW_COMPLETION_LOG
   * with `token`: for a caller that cannot be called back on other threads. `message` is the text
   * "target: message", `code` the level, and the other fields are 0. It replaces the callback of
   * log_set_sink, and that replaces the port. A record uses a slot of the port until it is reaped.
   * If the port has no slot or is closed, the record is dropped. With port 0 there is no port and no
   * callback. It waits as log_set_sink does.
   * TW_ARGUMENT: another level. */
  uint32_t (*log_set_port)(tw_handle port, uint64_t token, uint32_t level, tw_error *error);
  /* Like port_arm, but first waits a moment for a completion, without sleeping: in an event loop,
   * other events wait meanwhile. Call it after `submit` if few calls are outstanding. With several
   * processors it spins for at most `max_ns`, limited to 1,000,000, and less if that did not help
   * lately; with 0 it does not spin. With one processor it never spins; it yields once, and less
   * often if that did not help. From the first call with a `max_ns` above 0, all threads of the
   * library may spin for up to `max_ns`, or 50,000 if that is more, before they sleep. Threads that
   * are pinned to one processor spin too, if the threads of the process may together use several.
   * While it spins, the port is not armed. One thread at a time.
   * TW_ARGUMENT: another thread waits on the port. */
  uint32_t (*port_spin)(tw_handle port, uint64_t max_ns, uint32_t *ready, tw_error *error);
} tw_table;

/* The type of `tw_library`, the one exported symbol. `abi` is the caller's TW_ABI. Never returns
 * NULL. */
typedef const tw_table *(*tw_library_function)(uint32_t abi);

/* ---- Messages -------------------------------------------------------------------------------- */

/* A message is a value in the Component Model's canonical memory layout. It has offsets from its
 * first byte instead of pointers:
 *
 *   offset  field
 *   0       u32 size       bytes of the whole message
 *   4       u32 layout     low half of the layout hash of the root
 *   8       u32 handles    number of handles
 *   12      u32 root       offset of the root, a multiple of 8: 16 + 8 * handles
 *   16      u64 handles[]
 *   root    the root, then the contents of strings and lists ("tails") in pre-order, each aligned
 *           for its elements, never overlapping
 *
 * A string or list is a tw_slice; the empty one is {0, 0}. A resource, stream or future is a u32:
 * its index in handles[]. The root is the record of the parameters, the result without its error
 * side (TW_OK), or the error payload (TW_ERROR). */
typedef struct tw_slice {
  uint32_t offset; /* from the first byte of the message or batch */
  uint32_t length; /* in bytes for a string, otherwise in elements */
} tw_slice;

typedef struct tw_message {
  uint32_t size;
  uint32_t layout;
  uint32_t handles;
  uint32_t root;
} tw_message;

#ifdef __cplusplus
}
#endif
#endif
