--- The C ABI of a Thalweg library: thalweg.h, without its comments. `tests/test_abi.py` compares both.
local ffi = require "ffi"

ffi.cdef [[
typedef uint64_t tw_handle;

typedef struct tw_error {
  uint32_t code, retryable;
  char message[248];
} tw_error;

typedef struct tw_completion {
  uint64_t token;
  tw_handle call;
  uint32_t kind, code;
  const uint8_t *data;
  uint64_t data_size;
  const char *message;
  uint32_t message_size, retryable;
  uint64_t owner;
} tw_completion;

typedef struct tw_submission {
  uint64_t token;
  tw_handle client;
  uint32_t method, flags;
  const uint8_t *args;
  uint64_t args_size, deadline_ns;
  tw_handle call;
} tw_submission;

typedef struct tw_batch {
  const uint8_t *base;
  const uint8_t *slots;
  uint32_t count, stride;
  uint64_t first_seq, lost_before;
  uint32_t gap_reason, flags;
  uint64_t size;
} tw_batch;

typedef struct tw_stats {
  uint64_t streams, published, delivered, undelivered, occupancy, lost[8], high_water, control,
    wakes, parks, waits, faults, age[32];
} tw_stats;

typedef struct tw_log_record {
  uint64_t time_ns;
  uint32_t level, target_size;
  const char *target;
  const char *message;
  uint64_t message_size;
} tw_log_record;

typedef void (*tw_log_callback)(void *ctx, const tw_log_record *record);

typedef struct tw_counters {
  uint64_t workers, stacks, actors, actors_started, actors_failed, actors_waiting, slices,
    waits, remote_wakes, deadlines, timers, steals, sleeps, messages, messages_dropped,
    restarts, clients, ports, calls, calls_queued, streams, resources, batches, completions;
} tw_counters;

typedef struct tw_method {
  const char *name;
  uint64_t params, ok, error, element;
  uint32_t flags, description_size;
  const uint8_t *description;
} tw_method;

typedef struct tw_table {
  uint32_t abi;
  uint32_t size;
  const char *package;
  const char *version;
  const char *core;
  uint64_t layout;
  const tw_method *methods;
  uint32_t method_count;
  uint32_t reserved;
  uint64_t (*now)(void);
  uint32_t (*client_open)(tw_handle *client, tw_error *error);
  uint32_t (*client_close)(tw_handle client, tw_error *error);
  uint32_t (*port_open)(uint32_t capacity, tw_handle *port, tw_error *error);
  uint32_t (*port_close)(tw_handle port, tw_error *error);
  uint32_t (*port_fd)(tw_handle port, int *fd, tw_error *error);
  uint32_t (*port_arm)(tw_handle port, uint32_t *ready, tw_error *error);
  void *port_wait;
  uint32_t (*port_reap)(tw_handle port, tw_completion *out, uint32_t max, uint32_t *count, tw_error *error);
  void (*release)(tw_completion *completion);
  uint32_t (*submit)(tw_handle port, tw_submission *batch, uint32_t count, uint32_t *accepted, tw_error *error);
  uint32_t (*cancel)(tw_handle call, tw_error *error);
  uint32_t (*take_handle)(tw_completion *completion, uint32_t index, tw_handle *out, tw_error *error);
  uint32_t (*resource_drop)(tw_handle resource, tw_error *error);
  uint32_t (*stream_acquire)(tw_handle stream, uint32_t max, uint64_t deadline_ns, tw_batch *out, tw_error *error);
  uint32_t (*stream_release)(tw_handle stream, uint32_t count, tw_error *error);
  uint32_t (*stream_arm)(tw_handle stream, tw_handle port, uint64_t token, uint32_t *ready, tw_error *error);
  uint32_t (*stream_close)(tw_handle stream, tw_error *error);
  void *transcode, *stream_subscribe, *stream_join, *stream_fd;
  uint32_t (*call_inline)(tw_handle client, uint32_t method, const uint8_t *args, uint64_t args_size, uint64_t
    deadline_ns, tw_completion *out, tw_error *error);
  uint32_t (*client_set_host)(tw_handle client, tw_handle port, uint64_t token, tw_error *error);
  uint32_t (*host_call_answer)(tw_handle call, uint32_t code, const uint8_t *data, uint64_t data_size, tw_error
    *error);
  void *host_call_deadline;
  uint32_t (*stream_tee)(tw_handle stream, tw_handle *reader, tw_error *error);
  uint32_t (*stream_stats)(tw_handle handle, uint32_t method, tw_stats *out, uint32_t size, tw_error *error);
  void *stream_retain_batch, *retained_batch_release;
  uint32_t (*stream_new)(tw_handle client, uint32_t method, uint32_t parameter, tw_handle *writer, tw_handle
    *reader, tw_error *error);
  uint32_t (*stream_send)(tw_handle writer, const uint8_t *element, uint64_t element_size, uint64_t deadline_ns,
    tw_error *error);
  uint32_t (*stream_finish)(tw_handle writer, tw_error *error);
  uint64_t imports_layout;
  uint32_t (*client_set_layouts)(tw_handle client, const tw_method *methods, uint32_t method_count, const tw_method
    *imports, uint32_t import_count, tw_error *error);
  uint32_t (*stream_error)(tw_handle stream, const uint8_t **data, uint64_t *size, tw_error *error);
  const tw_method *imports;
  uint32_t import_count;
  uint32_t reserved_imports;
  void *client_set_format, *release_all;
  uint32_t (*port_wake)(tw_handle port, int fd, tw_error *error);
  uint32_t (*log_set_sink)(tw_log_callback callback, void *ctx, void (*drop_ctx)(void *ctx), uint32_t level,
    tw_error *error);
  uint32_t (*counters)(tw_counters *out, uint32_t size, tw_error *error);
} tw_table;

typedef const tw_table *(*tw_library_function)(uint32_t abi);
]]

--- Any number in a message.
ffi.cdef [[
typedef union thalweg_number {
  uint8_t u8; int8_t s8; uint16_t u16; int16_t s16; uint32_t u32; int32_t s32;
  uint64_t u64; int64_t s64; float f32; double f64;
} thalweg_number;

typedef struct thalweg_handle { tw_handle number; } thalweg_handle;

void *thalweg_realloc(void *old, size_t size) __asm__("realloc");
void thalweg_free(void *memory) __asm__("free");
int thalweg_sched_yield(void) __asm__("sched_yield");
void *thalweg_dlopen(const char *path, int flags) __asm__("dlopen");
void *thalweg_dlsym(void *library, const char *name) __asm__("dlsym");
int thalweg_dlclose(void *library) __asm__("dlclose");
char *thalweg_dlerror(void) __asm__("dlerror");
]]

return {
  ABI = 2,
  -- Codes, as in tw_code.
  OK = 0,
  ERROR = 1,
  CANCELLED = 2,
  GUEST_LOST = 4,
  GUEST_PANICKED = 5,
  OVERLOADED = 6,
  CLOSED = 8,
  STALE = 9,
  ARGUMENT = 10,
  VERSION = 11,
  WOULD_PARK = 14,
  -- Kinds of completions.
  CALL = 1,
  STREAM_READY = 2,
  NOTICE = 3,
  HOST_CALL = 4,
  -- Flags.
  SUBMIT_NOTICES = 1,
  METHOD_INLINE = 2,
  BATCH_END = 1,
  BATCH_CONTROL = 2,
  FOREVER = 0xffffffffffffffffULL,
}
