/* Thalweg: typed calls and streams between languages, in one process. C99, no dependency.
 *
 * A service is one shared library with one exported symbol, `tw_library`. This header declares the
 * table behind it and needs nothing else; `thalweg_client.h` opens a library, checks it and calls it, and
 * the header that `thalweg gen` writes for a package puts types on that.
 *
 * Rules for every function of the table:
 *  - it returns a status (`tw_code`), fills `*error` if `error` is not NULL, and never unwinds;
 *  - every pointer in is copied before the call returns;
 *  - every pointer out says below until when it is valid and what releases it;
 *  - a handle is a number with a generation: a closed or foreign one is an error, never
 *    somebody else's object;
 *  - times are nanoseconds of CLOCK_MONOTONIC (`now()` of the table).
 */
#ifndef THALWEG_H
#define THALWEG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of this table's shape. A library with another one is refused. */
#define TW_ABI 2u

/* How a call can end and what a function can return. A code is {domain u8, number u24};
 * Thalweg's own domain is 0, so these are the whole code. Numbers never change. */
enum tw_code {
  TW_OK = 0,         /* done */
  TW_ERROR = 1,      /* the service's own typed error: its payload is the data, or stream_error */
  TW_CANCELLED = 2,  /* cancelled by the caller, or its port closed */
  TW_TIMED_OUT = 3,  /* the deadline passed */
  TW_GUEST_LOST = 4, /* the service could not be (re)started, or dropped the call */
  TW_GUEST_PANICKED = 5, /* the service panicked in this call; the message says how */
  TW_OVERLOADED = 6,     /* no room: try again later */
  TW_SHUT_DOWN = 7,      /* the runtime is shutting down */
  TW_CLOSED = 8,         /* closed, or a stream's end: everything was delivered */
  TW_STALE = 9,          /* the handle's object is gone */
  TW_ARGUMENT = 10,      /* a null pointer, a wrong handle, a malformed message */
  TW_VERSION = 11,       /* the two sides do not fit */
  TW_FORKED = 12,        /* the handle was made before fork() */
  TW_INTERRUPTED = 13,   /* a signal arrived while waiting: run handlers, call again */
  TW_WOULD_PARK = 14     /* nothing there now, and waiting was not allowed */
};

typedef uint64_t tw_handle; /* 0 is never valid */

/* A wait's deadline: 0 does not wait at all. */
#define TW_FOREVER UINT64_MAX

/* What went wrong. Owned by the caller; text is UTF-8, NUL-terminated, cut at a character. */
typedef struct tw_error {
  uint32_t code;
  uint32_t retryable; /* the same call may succeed later */
  char message[248];
} tw_error;

/* Kinds of a completion. None comes that was not asked for, so a caller meets those alone whose functions or
 * flags it uses. A call that has not ended yet says so before its end and never after it, one at a time that
 * is unreaped: `data` is a uint64_t, the nanoseconds since it was submitted. */
#define TW_COMPLETION_CALL 1u    /* the call `call` ended with `code` */
#define TW_COMPLETION_STREAM_READY 2u  /* an armed stream has something; `call` is the stream's handle */
#define TW_COMPLETION_NOTICE 3u /* the call `call` has not ended yet */
#define TW_COMPLETION_HOST_CALL 4u     /* the service asks its host: `code` is the import's number */

/* One entry of a completion queue. `data` and `message` are valid until `release`. */
typedef struct tw_completion {
  uint64_t token; /* what the submission, or stream_arm, carried */
  tw_handle call;
  uint32_t kind;
  uint32_t code;
  const uint8_t *data; /* a message, at a multiple of 8; NULL unless TW_OK or TW_ERROR */
  uint64_t data_size;
  const char *message; /* UTF-8, not NUL-terminated; NULL where there is nothing to say */
  uint32_t message_size;
  uint32_t retryable;
  uint64_t owner; /* the core's */
} tw_completion;

/* One call to submit. `args` is a message (see below) and is copied. */
typedef struct tw_submission {
  uint64_t token;   /* comes back in the completion */
  tw_handle client; /* whose method */
  uint32_t method;  /* its number: the place in the table's `methods` */
  uint32_t flags;   /* TW_SUBMIT_NOTICES, TW_SUBMIT_BLOCK; TW_ARGUMENT for a bit that the library does not know */
  const uint8_t *args;
  uint64_t args_size;
  uint64_t deadline_ns; /* 0 or TW_FOREVER: none */
  tw_handle call;       /* out: for cancel; stale once the completion was reaped */
} tw_submission;

/* In a submission's flags: TW_COMPLETION_NOTICE is wanted, each time the method's interval is over. Such a call takes
 * two places of the port. TW_ARGUMENT for a method without TW_METHOD_NOTICES. */
#define TW_SUBMIT_NOTICES 1u

/* In a submission's flags: where the client has no room for the call, and the method TW_METHOD_CAN_BLOCK, the thread waits for it,
 * until the call's deadline; then the call is accepted, and ends as TW_TIMED_OUT. Without it, or without TW_METHOD_CAN_BLOCK,
 * it is TW_OVERLOADED. A signal while waiting withdraws the call: TW_INTERRUPTED. */
#define TW_SUBMIT_BLOCK 2u

/* Records of a stream, in place. Valid until stream_release of the last of them, or
 * stream_close. A string's bytes stand at `base + offset`. */
typedef struct tw_batch {
  const uint8_t *base;  /* at a multiple of 8 */
  const uint8_t *slots; /* record i is at slots + i * stride */
  uint32_t count;
  uint32_t stride;
  uint64_t first_seq;   /* number of the first record, counted from 0 */
  uint64_t lost_before; /* records lost right before it: [first_seq - lost_before, first_seq); with
                           TW_BATCH_END those behind the last record */
  uint32_t gap_reason;  /* TW_GAP_*, 0 where nothing was lost */
  uint32_t flags;       /* TW_BATCH_*; look at the bits you know */
  uint64_t size; /* bytes from `base` on that readers may touch: slots and tails lie within */
} tw_batch;

#define TW_BATCH_END 1u /* the status is the stream's ending, not the wait's */
/* Of the control lane: never dropped, before all others; first_seq counts these alone. */
#define TW_BATCH_CONTROL 2u

#define TW_GAP_CONFLATED 1u      /* overtaken by a newer one (policy latest) */
#define TW_GAP_DROPPED_NEWEST 2u /* the stream was full (policy drop-newest) */
#define TW_GAP_DROPPED_OLDEST 3u /* the stream was full (policy drop-oldest) */
#define TW_GAP_BATCH_OPEN 4u           /* the same, but the oldest were in an open batch: the newest */
#define TW_GAP_SERVICE 5u         /* the service had them not */

/* What the streams of a client's method did since the client was opened: those that are open, and those that are gone.
 * `published` is the sum of `delivered`, `lost`, `undelivered` and `occupancy` once the writers are gone. */
typedef struct tw_stats {
  uint64_t streams;
  uint64_t published;   /* records that writers gave */
  uint64_t delivered;   /* records that were in a batch */
  uint64_t undelivered; /* records that lay in a stream that was closed */
  uint64_t occupancy;   /* records that lie in open streams now */
  uint64_t lost[8];     /* by reason: TW_GAP_* */
  uint64_t
      high_water;   /* the most places that one stream had taken, in records; by whole segments */
  uint64_t control; /* records of the control lane that were in a batch */
  uint64_t wakes;   /* a writer woke a reader */
  uint64_t parks;   /* a reader asked to be woken */
  uint64_t waits;   /* a writer found no room and waited */
  uint64_t faults;  /* streams that ended neither regularly nor by a close */
  uint64_t age[32]; /* segments whose first record was taken 2^i ns or more after they were begun */
} tw_stats;

/* Takes a stream's records, on a thread of the service, one call at a time. `batch` is valid until it returns. The last
 * call has `ending`, with how the stream ended (TW_CLOSED: regularly), and TW_BATCH_END in batch->flags; in all others
 * `ending` is NULL. Any other result than 0 closes the stream. A C++ exception that leaves it is undefined behaviour. */
typedef uint32_t (*tw_stream_callback)(void *ctx, const tw_batch *batch, const tw_error *ending);
/* Gives a callback's `ctx` up: once, after its last call. */
typedef void (*tw_drop_ctx)(void *ctx);

/* A method, in the order of its number. Names are "interface.function", or
 * "interface.[constructor]resource", "interface.[method]resource.name",
 * "interface.[static]resource.name" as WIT writes them. The four hashes are of the flat layouts of
 * the parameters, the result (ok side), the error payload and the stream's element; 0: there is none. What follows them says more of the method and is no part of what must
 * be equal on both sides. */
typedef struct tw_method {
  const char *name;
  uint64_t params;
  uint64_t ok;
  uint64_t error;
  uint64_t element;
  uint32_t flags; /* TW_METHOD_*; look at the bits you know */
  uint32_t description_size;
  /* The texts that the four hashes are of, a line each, empty where there is none; no end of a line
   * stands behind the last. */
  const uint8_t *description;
} tw_method;

#define TW_FLAT 0u /* a message, as below */
#define TW_CBOR 1u /* RFC 8949, as docs/cbor.md has it */

#define TW_METHOD_ASYNC 1u      /* an `async func`: the client's next call does not wait for it */
#define TW_METHOD_INLINE 2u     /* may be called by call_inline, on the caller's thread */
#define TW_METHOD_IDEMPOTENT 4u /* a second run does no harm: more of its endings are retryable */
#define TW_METHOD_NOTICES 8u    /* it can say that it still runs: TW_SUBMIT_NOTICES */
#define TW_METHOD_CAN_BLOCK 16u     /* its calls can wait for room: TW_SUBMIT_BLOCK */

/* What a library offers. The first five fields never move. */
typedef struct tw_table {
  uint32_t abi;        /* TW_ABI of the library */
  uint32_t size;       /* sizeof(tw_table) there */
  const char *package; /* "thalweg:search" */
  const char *version; /* "0.1.0", the package's */
  const char *core;    /* version of the Thalweg inside */
  uint64_t layout;     /* hash over all methods, and what it asks of its host */
  const tw_method *methods;
  uint32_t method_count;
  uint32_t reserved;

  uint64_t (*now)(void);

  /* A client: an instance of the service of its own, run by an actor. close() drops it, and ends
   * its calls and streams as cancelled. The first one starts the threads: TW_OVERLOADED where the system has none. */
  uint32_t (*client_open)(tw_handle *client, tw_error *error);
  uint32_t (*client_close)(tw_handle client, tw_error *error);

  /* A port: a completion queue with an eventfd. Submit from any thread, reap from one at a time,
   * close from any. `capacity`, 1 to 65,536, is how many calls may be unreaped at once; another one is TW_ARGUMENT.
   * TW_OVERLOADED where there is no memory for it, or no file descriptor. */
  uint32_t (*port_open)(uint32_t capacity, tw_handle *port, tw_error *error);
  uint32_t (*port_close)(tw_handle port, tw_error *error);
  /* The eventfd; it belongs to the port. Readable after port_arm said 0 and something completed.
   * Nobody needs to read it: port_arm resets it. */
  uint32_t (*port_fd)(tw_handle port, int *fd, tw_error *error);
  /* *ready = 1: there is something to reap, nothing was armed. 0: the fd becomes readable. */
  uint32_t (*port_arm)(tw_handle port, uint32_t *ready, tw_error *error);
  /* Waits until there is something to reap. TW_OK, TW_TIMED_OUT, TW_INTERRUPTED, TW_CLOSED.
   * pthread_cancel of the thread in it may abort the process, and does so where its cancellation is
   * asynchronous: close the port instead, or disable cancellation around the call. */
  uint32_t (*port_wait)(tw_handle port, uint64_t deadline_ns, tw_error *error);
  /* TW_ARGUMENT where another thread is reaping the port just now. */
  uint32_t (*port_reap)(tw_handle port, tw_completion *out, uint32_t max, uint32_t *count,
                        tw_error *error);
  /* Frees what the completion points to, and closes handles in it that were not taken. A second
   * release has no effect, also of a copy. The first release also frees what a copy points to. */
  void (*release)(tw_completion *completion);

  /* Submits `count` calls; *accepted of them, the first ones, will complete exactly once each.
   * The status is why the next one was not accepted. */
  uint32_t (*submit)(tw_handle port, tw_submission *batch, uint32_t count, uint32_t *accepted,
                     tw_error *error);
  /* A request: the call ends as cancelled unless it ended before. */
  uint32_t (*cancel)(tw_handle call, tw_error *error);

  /* Takes the handle number `index` (own resource or stream) out of a completion's message. From then
   * on it is the caller's to close. */
  uint32_t (*take_handle)(tw_completion *completion, uint32_t index, tw_handle *out,
                          tw_error *error);
  /* Closes a resource. */
  uint32_t (*resource_drop)(tw_handle resource, tw_error *error);

  /* Streams: one reader at a time, one open batch at a time.
   * acquire: TW_OK with count >= 1; TW_WOULD_PARK (deadline 0), TW_TIMED_OUT, TW_INTERRUPTED; with
   * TW_BATCH_END in batch->flags how the stream ended, after all records: TW_CLOSED where it is complete,
   * TW_ERROR with the service's own error (stream_error), TW_GUEST_LOST where a writer was dropped before it
   * had finished (the message says why), or how the call ended that the stream belongs to. */
  uint32_t (*stream_acquire)(tw_handle stream, uint32_t max, uint64_t deadline_ns, tw_batch *out,
                             tw_error *error);
  /* Gives back the first `count` records of the open batch; all of them close it. */
  uint32_t (*stream_release)(tw_handle stream, uint32_t count, tw_error *error);
  /* One TW_COMPLETION_STREAM_READY with `token` comes to `port` as soon as acquire would not park; where `port` is 0, the stream's own
   * fd becomes readable. *ready = 1: it would not now, and nothing was armed. */
  uint32_t (*stream_arm)(tw_handle stream, tw_handle port, uint64_t token, uint32_t *ready,
                         tw_error *error);
  /* Legal anywhere, also with a batch open: that batch is invalid from then on. The service's writers
   * see it and stop. Of a stream with a callback no call begins any more; one that runs is waited for, but not in a
   * callback, and not where the caller must not wait. */
  uint32_t (*stream_close)(tw_handle stream, tw_error *error);

  /* Rewrites `data` as `to` (TW_FLAT, TW_CBOR): CBOR as a message, a message as CBOR, in the one form
   * that RFC 8949, 4.2.1 has for each value. `description` is a line of a method's, and says of which type
   * it is. *size bytes of `out` are written, `capacity` at most: TW_OVERLOADED where it takes more.
   * TW_ARGUMENT: `data` is no value of the type, or there are handles in the type. */
  uint32_t (*transcode)(const uint8_t *description, uint64_t description_size, uint32_t to,
                        const uint8_t *data, uint64_t data_size, uint8_t *out, uint64_t capacity,
                        uint64_t *size, tw_error *error);

  /* From now on the stream's records go to `callback` and to no reader. They come on the threads that write them, and a
   * writer goes on when the callback has returned; what lay there before, and the ending, come on another thread of the
   * service. The callback may call any function of the table that does not wait. pthread_exit in it aborts the
   * process; an exception or a longjmp out of it is undefined behaviour. TW_OK: `drop_ctx`, which may be NULL, is
   * called once, whatever happens; a callback that was there before is given up, and no call of it begins any more.
   * Else neither is ever called. TW_ARGUMENT: `callback` is NULL, a batch is open, `flags` is not 0. */
  uint32_t (*stream_subscribe)(tw_handle stream, tw_stream_callback callback, void *ctx,
                               tw_drop_ctx drop_ctx, uint32_t flags, tw_error *error);
  /* Waits until the stream's callback is over: its last call has returned, and drop_ctx. TW_OK, also where there is none;
   * TW_TIMED_OUT, TW_INTERRUPTED; TW_WOULD_PARK in a callback. */
  uint32_t (*stream_join)(tw_handle stream, uint64_t deadline_ns, tw_error *error);
  /* The stream's own eventfd, for stream_arm with port 0; it belongs to the stream. Nobody needs to read it: stream_arm
   * resets it. */
  uint32_t (*stream_fd)(tw_handle stream, int *fd, tw_error *error);
  /* Calls a method that has TW_METHOD_INLINE, on this thread and through no port. `args` is a message, and is
   * read before this returns. TW_OK: *out is how it ended, whatever that is, for `release`; its token and
   * its call are 0. TW_ARGUMENT: the method is not inline. */
  uint32_t (*call_inline)(tw_handle client, uint32_t method, const uint8_t *args,
                          uint64_t args_size, uint64_t deadline_ns, tw_completion *out,
                          tw_error *error);

  /* What the client's service asks of its host comes to `port` from now on, or with 0 to the port of the call
   * for which it is asked: a TW_COMPLETION_HOST_CALL with `token`, whose
   * `code` is the number of the import, whose `data` are its arguments, and whose `call` is answered by
   * host_call_answer. It has one of the port's places until it is reaped; where there is none the service
   * gets TW_OVERLOADED, and TW_CLOSED where the port is closed or there is none. TW_ARGUMENT: the service asks
   * nothing. */
  uint32_t (*client_set_host)(tw_handle client, tw_handle port, uint64_t token, tw_error *error);
  /* Ends what a host was asked. `data` is a message with TW_OK (the result) and TW_ERROR (the error), else
   * text that says why, and may be empty then. Any thread may. TW_STALE: it has ended, by its deadline or
   * with the call for which it was asked. */
  uint32_t (*host_call_answer)(tw_handle call, uint32_t code, const uint8_t *data, uint64_t data_size,
                          tw_error *error);
  /* By when it must be answered; TW_FOREVER: whenever. */
  uint32_t (*host_call_deadline)(tw_handle call, uint64_t *deadline_ns, tw_error *error);
  /* A further reader of the stream, for another thread: a stream of its own, to be closed by stream_close, with places,
   * losses and numbers of its own. It begins with what is written from now on. The slowest reader is who a writer
   * waits for (`block`), or is refused for (`fail`); under the other policies each loses for itself. Writers go on until
   * all readers are closed. */
  uint32_t (*stream_tee)(tw_handle stream, tw_handle *reader, tw_error *error);
  /* What the streams of method number `method` of a client did; where `handle` is a stream's, those of its client and
   * method, and `method` is not looked at. At most `size` bytes are written, which is sizeof(tw_stats) of the caller: what
   * a later version has behind is left out, and what an earlier one lacks is 0. */
  uint32_t (*stream_stats)(tw_handle handle, uint32_t method, tw_stats *out, uint32_t size,
                           tw_error *error);
  /* Keeps the memory of the open batch: what the tw_batch showed stays as it is, after stream_release
   * and stream_close too, until retained_batch_release(*kept). It takes none of the stream's room, and a batch can be
   * kept more than once. TW_ARGUMENT where no batch is open. */
  uint32_t (*stream_retain_batch)(tw_handle stream, tw_handle *kept, tw_error *error);
  uint32_t (*retained_batch_release)(tw_handle kept, tw_error *error);

  /* A stream, or a future, for a parameter of a method, by its number from 0, `self` among them: what the caller writes, and
   * what goes into the call's message as the parameter's handle. *reader is the service's once the call was submitted; before, and
   * where it was refused, it is the caller's to stream_close. *writer is the caller's to stream_close, which a service that
   * reads takes for TW_CANCELLED where stream_finish was not called. TW_ARGUMENT: the parameter is no stream. */
  uint32_t (*stream_new)(tw_handle client, uint32_t method, uint32_t parameter, tw_handle *writer,
                         tw_handle *reader, tw_error *error);
  /* Sends one element, a message of the element's layout, and waits for room until `deadline_ns` (0: not at all, and TW_WOULD_PARK;
   * stream_arm with the writer then tells of room): 256 elements, or 1 MiB of them, may wait to be read. A future has
   * one. Else how the stream ended: TW_CLOSED where the service reads no more. TW_ARGUMENT, and the stream stays: another
   * layout. Any thread, also before the call was submitted. */
  uint32_t (*stream_send)(tw_handle writer, const uint8_t *element, uint64_t element_size,
                          uint64_t deadline_ns, tw_error *error);
  /* Nothing more comes. */
  uint32_t (*stream_finish)(tw_handle writer, tw_error *error);

  uint64_t imports_layout; /* hash over what it asks of its host; 0: nothing */

  /* Says how the caller knows the methods and what the service asks of its host, with their descriptions, where its package is
   * another version than the library's: from then on what it submits and gets is converted, and so is what it is asked and answers.
   * To be called before the client's first call, once. TW_VERSION: they are no versions of one another, and the error says where.
   * `client` 0: nothing is remembered, only looked at. */
  uint32_t (*client_set_layouts)(tw_handle client, const tw_method *methods, uint32_t method_count,
                             const tw_method *imports, uint32_t import_count, tw_error *error);

  /* The service's own error at the end of a stream that ended as TW_ERROR: a message with the layout of
   * the error payload of the method that returned the stream, at a multiple of 8. Valid until stream_close
   * of this reader; nothing else releases it. May be called in the stream's callback. TW_ARGUMENT: the
   * stream did not end so. */
  uint32_t (*stream_error)(tw_handle stream, const uint8_t **data, uint64_t *size, tw_error *error);
} tw_table;

/* The one symbol of a library. Never NULL; `abi` is what the caller was built with. */
typedef const tw_table *(*tw_library_function)(uint32_t abi);

/* ---- Messages ---------------------------------------------------------------------------------
 * The Component Model's canonical layout, with offsets from the message's first byte in place of pointers:
 *
 *   0   u32 size       whole message
 *   4   u32 layout     low half of the root's layout hash
 *   8   u32 handles    how many
 *   12  u32 root       offset of the root, a multiple of 8: 16 + 8 * handles
 *   16  u64 handles[]
 *   ..  root, then tails in pre-order, each aligned for its elements, never overlapping
 *
 * A string or list is {u32 offset, u32 length} (length in bytes, or elements); an empty one is {0, 0}. A
 * resource or stream is a u32: its place in handles[]. The root of the arguments is the record of the
 * parameters; of a completion with TW_OK the result (its ok side), with TW_ERROR the error payload. */
typedef struct tw_slice {
  uint32_t offset;
  uint32_t length;
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
