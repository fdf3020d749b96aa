/* The C ABI of a guest: a shared library whose code serves calls. C99 and C++17.
 *
 * A guest exports one function, `tw_guest`. A program opens it by the address "thread:PATH", through
 * libthalweg.so, and gets a tw_table as for a service in Rust: see tw_address_open. This header is
 * the reference for authors of language bindings. Guests in C include the header that
 * `thalweg gen --guest c` writes for a package; it uses this one.
 *
 * The life of an instance of the service:
 *
 *   open                        before the first call: returns the guest's state
 *   call                        the method begins; `answer` or `fail` ends the call, at once or
 *                               later on any thread
 *   cancel                      the call ended without the guest
 *   drop                        no program has the resource any more
 *   close                       the client was closed; the guest has failed a call with
 *                               TW_GUEST_PANICKED, and the next call opens a new state; or the
 *                               library was replaced: see tw_address_reload
 *
 * A guest gets these in one of two ways. With `serve`, the core calls the guest's functions on its own
 * threads: for languages whose code can run on any thread. With `serve_port`, threads of the guest take
 * them out of a port as events: see tw_guest_event.
 *
 * The rules of thalweg.h hold for the functions of tw_guest_core. Rules for the guest's functions:
 *  1. The core calls those of one state one at a time, and those of different states at the same
 *     time. A function may run on another thread each time; the thread belongs to the core.
 *  2. They must return soon and must not wait for Thalweg: a call that they make with a client of
 *     their own and would have to wait for returns TW_WOULD_PARK. Work that takes long or waits goes
 *     to a thread of the guest, which answers the call later.
 *  3. They must not unwind, and not exit the thread.
 *  4. Before `close`, `drop` is called for the resources that are left. After it, the core does not
 *     use the state. The guest has ended its threads' work for the state when `close` returns, if
 *     that work uses the state.
 *  5. Every message of the guest is checked against its description.
 */
#ifndef THALWEG_GUEST_H
#define THALWEG_GUEST_H

#include "thalweg.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the layouts in this header. */
#define TW_GUEST_ABI 1u

/* The package of a guest. These structs belong to the guest, and are copied. */

/* Overflow policies of a stream: see docs/policy.md. */
#define TW_OVERFLOW_BLOCK 0u
#define TW_OVERFLOW_LATEST 1u
#define TW_OVERFLOW_DROP_NEWEST 2u
#define TW_OVERFLOW_DROP_OLDEST 3u
#define TW_OVERFLOW_FAIL 4u

/* The options of a method that thalweg.h does not describe. All zero: the defaults. */
typedef struct tw_guest_policy {
  uint64_t notice_interval_ns; /* of progress notices; 0: none */
  uint64_t timeout_ns;         /* the longest time for a call and its streams; 0: no limit */
  /* These are options of the stream that it returns. */
  uint64_t linger_ns;
  uint32_t overflow;        /* TW_OVERFLOW_* */
  uint32_t capacity;        /* in records; 0: 8,192 */
  uint32_t max_record_size; /* in bytes, 64 KiB to 512 MiB; 0: 64 MiB */
  uint32_t reserved;        /* 0 */
} tw_guest_policy;

/* A flag of a package: the policy `overload = "block"`. */
#define TW_GUEST_BLOCK 1u

/* A package. */
typedef struct tw_guest_package {
  uint32_t size;       /* sizeof(tw_guest_package) */
  uint32_t flags;      /* TW_GUEST_* */
  const char *package; /* the WIT name: "thalweg:search" */
  const char *version; /* "0.1.0" */
  /* `flags`: TW_METHOD_ASYNC, TW_METHOD_IDEMPOTENT, TW_METHOD_CBOR and TW_METHOD_BRIEF. The hashes are
   * computed from `description`, and those here are ignored. */
  const tw_method *methods;
  const tw_guest_policy *policies; /* one for each method, or NULL */
  const tw_method *imports;
  uint32_t method_count;
  uint32_t import_count;
  uint32_t max_queued_calls; /* that wait for one instance; 0: 4,096 */
  uint32_t reserved;         /* 0 */
  uint64_t max_queued_bytes; /* 0: 64 MiB */
} tw_guest_package;

/* A call, as the guest gets it. */
typedef struct tw_guest_call {
  tw_handle call;
  uint32_t method; /* index into the methods of the package */
  uint32_t reserved;
  uint64_t deadline_ns; /* TW_FOREVER: none */
  /* A message, aligned to 8 bytes: the record of the parameters. It was checked, belongs to the guest
   * until `call` returns, and may be written to. A resource in it is a handle for `resource_get`, or
   * for `resource_take` if the parameter is `own`. */
  uint8_t *args;
  uint64_t args_size;
} tw_guest_call;

/* A flag of tw_guest_functions: the library cannot be unloaded. After `unload`, it stays in the process, and
 * its function tw_guest is called again when it is opened again. */
#define TW_GUEST_STAYS_LOADED 1u

/* A flag of tw_guest_functions: `call` may block for methods that are an `async func`. It is called for them on
 * threads of a pool, while other functions of the state run. `close` follows when they have returned. */
#define TW_GUEST_ASYNC_MAY_BLOCK 2u

/* The functions of a guest. `ctx` is that of `serve`. */
typedef struct tw_guest_functions {
  uint32_t size;  /* sizeof(tw_guest_functions) */
  uint32_t flags; /* TW_GUEST_* */
  /* Sets `*state` for a new instance. Another result than TW_OK ends the call for which the instance
   * was needed as TW_GUEST_LOST, with the message of `error`. */
  uint32_t (*open)(void *ctx, uint64_t *state, tw_error *error);
  void (*call)(void *ctx, uint64_t state, const tw_guest_call *call);
  /* May be NULL. The guest may have answered the call at the same time. */
  void (*cancel)(void *ctx, uint64_t state, tw_handle call);
  /* May be NULL. `type` and `object` are those of resource_new. */
  void (*drop)(void *ctx, uint64_t state, uint32_t type, uint64_t object);
  /* May be NULL. */
  void (*close)(void *ctx, uint64_t state);
  /* The guest is not used any more; called once, last, on a thread of its own, so that it may wait for
   * the guest's threads. The library is unloaded afterwards. May be NULL. */
  void (*unload)(void *ctx);
} tw_guest_functions;

/* What happens to a state of a guest that takes its events from a port. */
#define TW_GUEST_OPEN 1u   /* a new state, before its first call */
#define TW_GUEST_CALL 2u   /* a call to be served */
#define TW_GUEST_CANCEL 3u /* `call.call` ended without the guest, which may have answered it */
#define TW_GUEST_DROP 4u   /* no program has the resource any more */
#define TW_GUEST_CLOSE 5u  /* the last event of the state */
/* Of no state: what reader_notify, writer_notify or import_begin waits for has happened. `object` is their
 * token. */
#define TW_GUEST_READY 6u

/* An event. Rules:
 *  1. The events of a state come in order, if one thread at a time takes them. The guest keeps the order of
 *     the calls of each state, unless their functions are `async func`: it begins one when the one before it
 *     has ended. If more of them wait than the package's limit, it ends further ones as TW_OVERLOADED.
 *  2. The guest may wait, because it serves calls on its own threads.
 *  3. A guest that cannot open a state ends each of its calls as TW_GUEST_LOST.
 *  4. `brief` has no effect.
 *  5. Before TW_GUEST_CLOSE, there is a TW_GUEST_DROP for each resource that is left. */
typedef struct tw_guest_event {
  uint32_t kind; /* TW_GUEST_* */
  uint32_t resource_type;
  uint64_t state;  /* a number that the core chooses, and uses once */
  uint64_t object; /* that is dropped, of `resource_type` */
  /* The arguments belong to the guest until event_release. */
  tw_guest_call call;
  uint64_t args_capacity; /* for event_release */
} tw_guest_event;

/* A message that a guest receives during a call. It was checked, and belongs to the guest until
 * message_release. */
typedef struct tw_guest_message {
  uint8_t *data;
  uint64_t size;
  uint64_t capacity; /* for message_release */
} tw_guest_message;

/* Flags of stream_write and stream_commit. Further records follow soon. */
#define TW_WRITE_MORE 1u
/* Only of stream_commit: the records are not checked. They must be well-formed: see thalweg.h. Programs that
 * read others have undefined behaviour. */
#define TW_WRITE_TRUSTED 2u

/* Places for the next records of a stream, in its memory. */
typedef struct tw_record_space {
  uint8_t *base;      /* from which offsets count, those in tw_slice, too */
  uint32_t first;     /* offset of the next record */
  uint32_t stride;    /* distance from one record to the next */
  uint32_t count;     /* number of records that fit */
  uint32_t tails;     /* offset of the free space for the contents of strings and lists */
  uint32_t tails_end; /* its end */
  uint32_t reserved;
} tw_record_space;

/* One of several answers. */
typedef struct tw_guest_answer {
  tw_handle call;
  uint32_t code;
  uint32_t result; /* of the answer, set by answer_many */
  const uint8_t *message;
  uint64_t message_size;
} tw_guest_answer;

/* The functions that a guest calls. New ones are only added at the end. */
typedef struct tw_guest_core {
  uint32_t abi;     /* TW_GUEST_ABI */
  uint32_t size;    /* of the core's tw_guest_core */
  const char *core; /* the version of Thalweg */
  /* The clock of all deadlines: nanoseconds of CLOCK_MONOTONIC. */
  uint64_t (*now)(void);
  /* Declares what the guest serves. Only from `tw_guest`, once, with its `opening`. */
  uint32_t (*serve)(uint64_t opening, const tw_guest_package *package,
                    const tw_guest_functions *functions, void *ctx, tw_error *error);
  /* Ends a call with the message of the result (TW_OK) or of the error (TW_ERROR). The program owns
   * the resources in the message, which must be those of resource_new. TW_STALE: the call has ended.
   * TW_GUEST_LOST: the message does not match the description; the call has ended with this failure.
   * In both cases, the resources in the message are closed. */
  uint32_t (*answer)(tw_handle call, uint32_t code, const uint8_t *message, uint64_t message_size,
                     tw_error *error);
  /* Ends a call whose result is a resource. `type` is a number of the guest's own for its type, which is
   * compared when the resource is an argument. TW_OK: the program owns the object, and `drop` is called
   * for it; also if the call is cancelled at the same time. Otherwise the guest still owns it, and the
   * codes are those of `answer`. */
  uint32_t (*answer_resource)(tw_handle call, uint32_t type, uint64_t object, tw_error *error);
  /* Ends a call without a result, as TW_CANCELLED, TW_TIMED_OUT, TW_GUEST_LOST, TW_GUEST_PANICKED,
   * TW_OVERLOADED, TW_STALE, TW_ARGUMENT or TW_WOULD_PARK. `text` is the reason in UTF-8.
   * TW_GUEST_PANICKED also ends the state: `close` follows, the other calls that the guest has end as
   * TW_GUEST_PANICKED, and the resources become stale. TW_STALE: the call has ended. */
  uint32_t (*fail)(tw_handle call, uint32_t code, const char *text, uint64_t text_size,
                   tw_error *error);
  /* TW_OK: go on with the call. Otherwise the reason to stop: TW_CANCELLED, TW_TIMED_OUT,
   * TW_GUEST_PANICKED, or TW_STALE if the call has ended and no more is known. */
  uint32_t (*call_check)(tw_handle call, tw_error *error);
  /* Makes a handle for an object of the guest, to put it into an answer with several. The handle belongs to
   * the state that serves `call`. `drop` is called for the object once the handle is closed, also if the
   * answer is refused. A handle that is in no answer is closed with the state. */
  uint32_t (*resource_new)(tw_handle call, uint32_t type, uint64_t object, tw_handle *resource,
                           tw_error *error);
  /* The object of a handle in the arguments. TW_ARGUMENT: the object has another type, or belongs to
   * another client. TW_STALE: it was closed. */
  uint32_t (*resource_get)(tw_handle call, tw_handle resource, uint32_t type, uint64_t *object,
                           tw_error *error);
  /* The same for a parameter `own`: the guest owns the object again, and gets no `drop`. */
  uint32_t (*resource_take)(tw_handle call, tw_handle resource, uint32_t type, uint64_t *object,
                            tw_error *error);
  /* Ends a call whose result is a stream or a future. `*writer` is a handle for the functions below, which
   * one thread at a time uses. The codes are those of `answer`. */
  uint32_t (*answer_stream)(tw_handle call, tw_handle *writer, tw_error *error);
  /* Writes `count` adjacent records, which become visible together, and with TW_WRITE_MORE together with
   * those of the next write or when the stream ends. `first` is the offset of the first one in
   * the `size` bytes at `base`, from which the offsets in tw_slice count; the contents of strings and
   * lists follow the last record. `*written` is the number of records that were written, or dropped by the
   * overflow policy; it may be NULL. While the stream is full, waits until `deadline_ns`.
   * TW_ARGUMENT: a record is malformed, and nothing was written; or one is too large. TW_TIMED_OUT: the
   * stream was full. TW_WOULD_PARK: the same in a function of the guest, which must not wait.
   * TW_OVERLOADED: the same under the policy `fail`. Another code: the outcome of the stream, which has
   * ended; TW_CLOSED if its reader is gone. */
  uint32_t (*stream_write)(tw_handle writer, const uint8_t *base, uint64_t size, uint32_t first,
                           uint32_t count, uint32_t flags, uint64_t deadline_ns, uint32_t *written,
                           tw_error *error);
  /* Ends a stream regularly, with the message of the error of its function, or as TW_GUEST_LOST with a reason.
   * The handle of the writer is closed, unless the result is TW_ARGUMENT. The other codes are the outcome
   * of a stream that has ended before. */
  uint32_t (*stream_finish)(tw_handle writer, tw_error *error);
  uint32_t (*stream_fail)(tw_handle writer, const uint8_t *message, uint64_t message_size,
                          tw_error *error);
  uint32_t (*stream_abort)(tw_handle writer, const char *text, uint64_t text_size, tw_error *error);
  /* Declares what the guest serves, instead of `serve`, and opens the port from which its threads take the
   * events. Only `flags` and `unload` of `functions` are used. The port ends before `unload` is called, and
   * is stale when `unload` has returned. */
  uint32_t (*serve_port)(uint64_t opening, const tw_guest_package *package,
                         const tw_guest_functions *functions, void *ctx, tw_handle *port,
                         tw_error *error);
  /* A descriptor for an event loop. It becomes readable when there are events after `port_take` has returned
   * none, and when the port ends. `port_take` makes it unreadable; do not read it. It is closed with the
   * port. */
  uint32_t (*port_fd)(tw_handle port, int *fd, tw_error *error);
  /* Takes up to `capacity` events, which is 64 at most for calls. Waits for the first one until
   * `deadline_ns`, or not at all if it is 0. `*count` is 0 if there was none. Any number of threads may take
   * at the same time.
   * TW_CLOSED, TW_STALE: the port has ended; there will be no more events. TW_INTERRUPTED: a signal was handled
   * on this thread. */
  uint32_t (*port_take)(tw_handle port, tw_guest_event *events, uint32_t capacity,
                        uint64_t deadline_ns, uint32_t *count, tw_error *error);
  /* Frees the arguments of `count` events and sets them to NULL. Any thread may do this, at any time after it
   * has decoded them. */
  void (*event_release)(tw_guest_event *events, uint32_t count);
  /* Takes a stream or future that is an argument. Those that are not taken are closed when the call ends.
   * One thread at a time uses the reader, which the guest closes. The stream may be read after the call was
   * answered. TW_STALE: the call has ended, or the stream was taken. TW_ARGUMENT: the handle is no stream of
   * the parameters. */
  uint32_t (*reader_open)(tw_handle call, tw_handle stream, tw_handle *reader, tw_error *error);
  /* Waits for the next element, a message, until `deadline_ns` (0: does not wait). TW_CLOSED: the stream has
   * ended regularly. TW_TIMED_OUT: nothing arrived. TW_WOULD_PARK: the same without waiting, and always in a
   * function of the guest, which must not wait. Another code: the outcome of the stream, TW_CANCELLED if
   * its writer has left before the end. */
  uint32_t (*reader_receive)(tw_handle reader, uint64_t deadline_ns, tw_guest_message *element,
                             tw_error *error);
  /* Closes a reader. The writer gets TW_CLOSED, and so does a reader_receive that waits on another
   * thread. */
  uint32_t (*reader_close)(tw_handle reader, tw_error *error);
  /* Calls an import of the package during a call, with the message of its parameters, and waits for the
   * host's answer: TW_OK with the message of the result, or TW_ERROR with that of the error. It ends with the
   * call. TW_WOULD_PARK: the thread must not wait, as in a function of the guest. TW_CLOSED: the program has
   * not set a host. Other codes: the outcome of the call of the host. */
  uint32_t (*import_call)(tw_handle call, uint32_t import, const uint8_t *args, uint64_t args_size,
                          tw_guest_message *answer, tw_error *error);
  /* Frees a message and sets its data to NULL. */
  void (*message_release)(tw_guest_message *message);
  /* Adds one event TW_GUEST_READY with `token` to a port when reader_receive need not wait, at once if that is
   * so now. Only the last request counts. */
  uint32_t (*reader_notify)(tw_handle reader, tw_handle port, uint64_t token, tw_error *error);
  /* Begins what import_call does. One event TW_GUEST_READY with `token` is added to the port when
   * import_answer has the answer, possibly before this function returns. */
  uint32_t (*import_begin)(tw_handle call, uint32_t import, const uint8_t *args, uint64_t args_size,
                           tw_handle port, uint64_t token, tw_handle *host_call, tw_error *error);
  /* The answer, as by import_call. Closes the handle, unless the result is TW_WOULD_PARK: there is no answer
   * yet. */
  uint32_t (*import_answer)(tw_handle host_call, tw_guest_message *answer, tw_error *error);
  /* Cancels a call of the host, and closes the handle. */
  uint32_t (*import_cancel)(tw_handle host_call, tw_error *error);
  /* Adds one event TW_GUEST_READY with `token` to a port when a stream_write that found the stream full may go
   * on, or the stream has ended; at once if that is so now. */
  uint32_t (*writer_notify)(tw_handle writer, tw_handle port, uint64_t token, tw_error *error);
  /* Does what `answer` does for `count` answers, and then wakes their callers: each port once, if its answers
   * are adjacent. */
  void (*answer_many)(tw_guest_answer *answers, uint32_t count);
  /* Finds places in the stream's memory, at least one with `tails` bytes for strings and lists. They have
   * any contents before, and the guest may write there until it calls the next function of the writer.
   * While the stream is full, waits until `deadline_ns`. If the overflow policy drops a record instead, the
   * result is TW_OK and `space->count` is 0. The codes are those of stream_write. */
  uint32_t (*stream_reserve)(tw_handle writer, uint32_t tails, uint64_t deadline_ns,
                             tw_record_space *space, tw_error *error);
  /* Makes the first `count` of these places part of the stream. All bytes of the records are written, and
   * those of the strings and lists up to the offset `tails_end`. They become visible as in stream_write.
   * `*space` has the places that are left; its count may be 0.
   * TW_ARGUMENT: some records are malformed, and the others are in the stream; or the places were not
   * reserved. Another code: the outcome of the stream, which has ended. */
  uint32_t (*stream_commit)(tw_handle writer, uint32_t count, uint32_t tails_end, uint32_t flags,
                            tw_record_space *space, tw_error *error);
  /* Reads the counters of a stream, such as the records that nobody has read yet. `size` is sizeof(tw_stats)
   * of the guest: see `stream_stats` in tw_table. */
  uint32_t (*writer_stats)(tw_handle writer, tw_stats *out, uint32_t size, tw_error *error);
} tw_guest_core;

/* The type of the function `tw_guest` of a guest. It checks `abi`, keeps `core`, which is valid for ever, and calls
 * `core->serve`. Another result than TW_OK refuses to be opened, with the message of `error`. */
typedef uint32_t (*tw_guest_function)(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                                      tw_error *error);

/* The functions of libthalweg.so. */

/* Opens a guest by its address, "thread:PATH". PATH is searched for as by dlopen if it has no slash.
 * `*table` is used like that of a service library, until it is closed. If the same address is open, the
 * result is the same table, which is then closed as often as it was opened. If the guest was closed and is
 * still in use, waits up to 10 s until it is unloaded, because it would be the same library, with the same
 * static variables.
 * TW_ARGUMENT: no such address, or the library cannot be loaded, is no guest, or describes itself
 * wrongly. TW_VERSION: `abi` is not TW_ABI, or the guest has another TW_GUEST_ABI. TW_OVERLOADED: 64
 * guests are open, or this one is still in use after 10 s. The result of the guest, if it refuses. */
uint32_t tw_address_open(uint32_t abi, const char *address, const tw_table **table,
                         tw_error *error);

/* Replaces the library of an open guest while programs use it. Loads the library at `address`, or at the
 * address of the guest if it is NULL, beside the one that is loaded, and moves the guest's clients to it.
 * The clients, the table and their handles stay valid.
 *
 *   a call that is submitted after this function has returned, and one that waits    the new library
 *   a call that the old library has begun, the streams that it writes                go on there
 *   a resource of the old library, and calls that have it as an argument             the old library
 *
 * Each client gets a new state in the new library with its next call. Its state in the old one ends when
 * it has no calls, resources and writers left. At `drain_deadline_ns`, a time of the table's clock, it ends
 * in any case: its calls and streams end as TW_STALE, and its resources are stale. TW_FOREVER: no deadline.
 * 0: at once. The old library is unloaded when its last state has ended. The next reload does not need to
 * wait for that: any number of libraries may drain.
 *
 * Unless the result is TW_OK, nothing has changed.
 * TW_ARGUMENT: the library cannot be loaded, is no guest, describes itself wrongly, or is open as another
 * guest; the guest was opened by a path without a slash, and `address` is NULL; or one of the two stays
 * loaded (TW_GUEST_STAYS_LOADED) or takes its calls from a port. TW_VERSION: the package has another
 * description, or another TW_GUEST_ABI. TW_OVERLOADED: another thread reloads the guest. TW_STALE: the
 * table is closed, or is no table of a guest. TW_FORKED: the table was opened before fork(). The result
 * of the guest, if it refuses. */
uint32_t tw_address_reload(const tw_table *table, const char *address, uint64_t drain_deadline_ns,
                           tw_error *error);

/* Closes what tw_address_open has opened, with all its clients. The guest is unloaded when its last state
 * is closed. The table stays readable, and its client_open returns TW_CLOSED; in a child of fork(), which
 * has no open guests, TW_FORKED.
 * TW_STALE: the table is closed, or is no table of a guest. */
uint32_t tw_address_close(const tw_table *table, tw_error *error);

#ifdef __cplusplus
}
#endif

#endif
