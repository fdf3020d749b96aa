//! The types and constants of `thalweg.h`, under the same names. The header documents them.
//!
//! A binding that opens libraries needs these types and no other part of Thalweg, so this module
//! uses only `core::ffi`.

use core::ffi::{c_char, c_int, c_void};

/// The version of the layout of [`TwTable`]. A library with another one is incompatible.
pub const TW_ABI: u32 = 2;

/// The name of a library's one symbol, for `dlsym`.
pub const TW_LIBRARY_SYMBOL: &core::ffi::CStr = c"tw_library";

/// Success.
pub const TW_OK: u32 = 0;
/// The method's own error. The payload is the completion's data.
pub const TW_ERROR: u32 = 1;
/// The caller cancelled the call, or closed its client or port.
pub const TW_CANCELLED: u32 = 2;
/// The deadline passed.
pub const TW_TIMED_OUT: u32 = 3;
/// The service could not be started or restarted, or dropped the call.
pub const TW_GUEST_LOST: u32 = 4;
/// The service panicked in this call.
pub const TW_GUEST_PANICKED: u32 = 5;
/// A limit was reached, or memory is short. Try again later.
pub const TW_OVERLOADED: u32 = 6;
/// The runtime is shutting down.
pub const TW_SHUT_DOWN: u32 = 7;
/// The object was closed. For a stream: the regular end.
pub const TW_CLOSED: u32 = 8;
/// The handle's object no longer exists.
pub const TW_STALE: u32 = 9;
/// A null pointer, a handle of another kind, or a malformed message.
pub const TW_ARGUMENT: u32 = 10;
/// The caller and the library are incompatible.
pub const TW_VERSION: u32 = 11;
/// The handle was created before `fork()`.
pub const TW_FORKED: u32 = 12;
/// A signal was handled during the wait.
pub const TW_INTERRUPTED: u32 = 13;
/// Nothing is available, and the function must not wait.
pub const TW_WOULD_PARK: u32 = 14;

/// No deadline.
pub const TW_FOREVER: u64 = u64::MAX;

/// The kind of a completion: a call ended.
pub const TW_COMPLETION_CALL: u32 = 1;
/// The kind of a completion: an armed stream is ready.
pub const TW_COMPLETION_STREAM_READY: u32 = 2;
/// The kind of a completion: a progress notice of a running call.
pub const TW_COMPLETION_NOTICE: u32 = 3;
/// The kind of a completion: the service calls a host import.
pub const TW_COMPLETION_HOST_CALL: u32 = 4;
/// The kind of a completion: a log record.
pub const TW_COMPLETION_LOG: u32 = 5;

/// A flag of a batch: the stream ended, and the status is its outcome.
pub const TW_BATCH_END: u32 = 1;
/// A flag of a batch: the records are of the control lane.
pub const TW_BATCH_CONTROL: u32 = 2;

/// A gap reason: newer records replaced them.
pub const TW_GAP_CONFLATED: u32 = 1;
/// A gap reason: the stream was full, and the newest records were dropped.
pub const TW_GAP_DROPPED_NEWEST: u32 = 2;
/// A gap reason: the stream was full, and the oldest records were dropped.
pub const TW_GAP_DROPPED_OLDEST: u32 = 3;
/// A gap reason: the oldest records were in an open batch, so the newest ones were dropped.
pub const TW_GAP_BATCH_OPEN: u32 = 4;
/// A gap reason: the service reported the records as missing.
pub const TW_GAP_SERVICE: u32 = 5;

/// A flag of a method: an `async func`.
pub const TW_METHOD_ASYNC: u32 = 1;
/// A flag of a method: `call_inline` can call it.
pub const TW_METHOD_INLINE: u32 = 2;
/// A flag of a method: repeating it does no harm.
pub const TW_METHOD_IDEMPOTENT: u32 = 4;
/// A flag of a method: it supports [`TW_SUBMIT_NOTICES`].
pub const TW_METHOD_NOTICES: u32 = 8;
/// A flag of a method: it supports [`TW_SUBMIT_BLOCK`].
pub const TW_METHOD_CAN_BLOCK: u32 = 16;

/// A flag of a method: a client can use CBOR for it, see `client_set_format`.
pub const TW_METHOD_CBOR: u32 = 32;

/// A flag of a method: `call_inline` can call it while the client's service is idle.
pub const TW_METHOD_BRIEF: u32 = 64;

/// A flag of a submission: requests progress notices.
pub const TW_SUBMIT_NOTICES: u32 = 1;
/// A flag of a submission: waits for the client's capacity.
pub const TW_SUBMIT_BLOCK: u32 = 2;
/// A flag of a submission: `args` points to a [`TwBorrowedArgs`].
pub const TW_SUBMIT_BORROWED: u32 = 4;

/// The level of a log record: a part of the program failed.
pub const TW_LOG_ERROR: u32 = 1;
/// The level of a log record: a limit was reached, or work was lost or delayed.
pub const TW_LOG_WARNING: u32 = 2;
/// The level of a log record: a part of the runtime changed its state.
pub const TW_LOG_INFO: u32 = 3;

/// A format for `transcode` and `client_set_format`: a message.
pub const TW_FLAT: u32 = 0;
/// A format for `transcode` and `client_set_format`: RFC 8949.
pub const TW_CBOR: u32 = 1;

/// A handle: index and generation; 0 is never valid.
pub type TwHandle = u64;

/// A failure (`tw_error`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwError {
    pub code: u32,
    pub retryable: u32,
    pub message: [c_char; 248],
}

/// One entry of a completion queue (`tw_completion`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwCompletion {
    pub token: u64,
    pub call: TwHandle,
    pub kind: u32,
    pub code: u32,
    pub data: *const u8,
    pub data_size: u64,
    pub message: *const c_char,
    pub message_size: u32,
    pub retryable: u32,
    pub owner: u64,
}

/// One call to submit (`tw_submission`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwSubmission {
    pub token: u64,
    pub client: TwHandle,
    pub method: u32,
    pub flags: u32,
    pub args: *const u8,
    pub args_size: u64,
    pub deadline_ns: u64,
    pub call: TwHandle,
}

/// Arguments in two parts (`tw_borrowed_args`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwBorrowedArgs {
    pub head: *const u8,
    pub head_size: u64,
    pub tail: *const u8,
    pub tail_size: u64,
}

/// A batch view (`tw_batch`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwBatch {
    pub base: *const u8,
    pub slots: *const u8,
    pub count: u32,
    pub stride: u32,
    pub first_seq: u64,
    pub lost_before: u64,
    pub gap_reason: u32,
    pub flags: u32,
    pub size: u64,
}

/// Counters of the streams of a client's method (`tw_stats`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct TwStats {
    pub streams: u64,
    pub published: u64,
    pub delivered: u64,
    pub undelivered: u64,
    pub occupancy: u64,
    pub lost: [u64; 8],
    pub high_water: u64,
    pub control: u64,
    pub wakes: u64,
    pub parks: u64,
    pub waits: u64,
    pub faults: u64,
    pub age: [u64; 32],
}

/// Receives a stream's records (`tw_stream_callback`).
pub type TwStreamCallback =
    Option<unsafe extern "C" fn(*mut c_void, *const TwBatch, *const TwError) -> u32>;

/// Frees the `ctx` of a callback (`tw_drop_ctx`).
pub type TwDropCtx = Option<unsafe extern "C" fn(*mut c_void)>;

/// A log record (`tw_log_record`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwLogRecord {
    pub time_ns: u64,
    pub level: u32,
    pub target_size: u32,
    pub target: *const c_char,
    pub message: *const c_char,
    pub message_size: u64,
}

/// Receives log records (`tw_log_callback`).
pub type TwLogCallback = Option<unsafe extern "C" fn(*mut c_void, *const TwLogRecord)>;

/// Counters of the library's runtime (`tw_counters`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct TwCounters {
    pub workers: u64,
    pub stacks: u64,
    pub actors: u64,
    pub actors_started: u64,
    pub actors_failed: u64,
    pub actors_waiting: u64,
    pub slices: u64,
    pub waits: u64,
    pub remote_wakes: u64,
    pub deadlines: u64,
    pub timers: u64,
    pub steals: u64,
    pub sleeps: u64,
    pub messages: u64,
    pub messages_dropped: u64,
    pub restarts: u64,
    pub clients: u64,
    pub ports: u64,
    pub calls: u64,
    pub calls_queued: u64,
    pub streams: u64,
    pub resources: u64,
    pub batches: u64,
    pub completions: u64,
}

/// A method (`tw_method`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwMethod {
    pub name: *const c_char,
    pub params: u64,
    pub ok: u64,
    pub error: u64,
    pub element: u64,
    pub flags: u32,
    pub description_size: u32,
    pub description: *const u8,
}

/// The functions of a library (`tw_table`). The first five fields are at the same place in every
/// version.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TwTable {
    pub abi: u32,
    pub size: u32,
    pub package: *const c_char,
    pub version: *const c_char,
    pub core: *const c_char,
    pub layout: u64,
    pub methods: *const TwMethod,
    pub method_count: u32,
    pub reserved: u32,
    pub now: unsafe extern "C" fn() -> u64,
    pub client_open: unsafe extern "C" fn(*mut TwHandle, *mut TwError) -> u32,
    pub client_close: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub port_open: unsafe extern "C" fn(u32, *mut TwHandle, *mut TwError) -> u32,
    pub port_close: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub port_fd: unsafe extern "C" fn(TwHandle, *mut c_int, *mut TwError) -> u32,
    pub port_arm: unsafe extern "C" fn(TwHandle, *mut u32, *mut TwError) -> u32,
    pub port_wait: unsafe extern "C" fn(TwHandle, u64, *mut TwError) -> u32,
    pub port_reap:
        unsafe extern "C" fn(TwHandle, *mut TwCompletion, u32, *mut u32, *mut TwError) -> u32,
    pub release: unsafe extern "C" fn(*mut TwCompletion),
    pub submit:
        unsafe extern "C" fn(TwHandle, *mut TwSubmission, u32, *mut u32, *mut TwError) -> u32,
    pub cancel: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub take_handle:
        unsafe extern "C" fn(*mut TwCompletion, u32, *mut TwHandle, *mut TwError) -> u32,
    pub resource_drop: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub stream_acquire: unsafe extern "C" fn(TwHandle, u32, u64, *mut TwBatch, *mut TwError) -> u32,
    pub stream_release: unsafe extern "C" fn(TwHandle, u32, *mut TwError) -> u32,
    pub stream_arm: unsafe extern "C" fn(TwHandle, TwHandle, u64, *mut u32, *mut TwError) -> u32,
    pub stream_close: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub transcode: unsafe extern "C" fn(
        *const u8,
        u64,
        u32,
        *const u8,
        u64,
        *mut u8,
        u64,
        *mut u64,
        *mut TwError,
    ) -> u32,
    pub stream_subscribe: unsafe extern "C" fn(
        TwHandle,
        TwStreamCallback,
        *mut c_void,
        TwDropCtx,
        u32,
        *mut TwError,
    ) -> u32,
    pub stream_join: unsafe extern "C" fn(TwHandle, u64, *mut TwError) -> u32,
    pub stream_fd: unsafe extern "C" fn(TwHandle, *mut c_int, *mut TwError) -> u32,
    pub call_inline: unsafe extern "C" fn(
        TwHandle,
        u32,
        *const u8,
        u64,
        u64,
        *mut TwCompletion,
        *mut TwError,
    ) -> u32,
    pub client_set_host: unsafe extern "C" fn(TwHandle, TwHandle, u64, *mut TwError) -> u32,
    pub host_call_answer: unsafe extern "C" fn(TwHandle, u32, *const u8, u64, *mut TwError) -> u32,
    pub host_call_deadline: unsafe extern "C" fn(TwHandle, *mut u64, *mut TwError) -> u32,
    pub stream_tee: unsafe extern "C" fn(TwHandle, *mut TwHandle, *mut TwError) -> u32,
    pub stream_stats: unsafe extern "C" fn(TwHandle, u32, *mut TwStats, u32, *mut TwError) -> u32,
    pub stream_retain_batch: unsafe extern "C" fn(TwHandle, *mut TwHandle, *mut TwError) -> u32,
    pub retained_batch_release: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub stream_new:
        unsafe extern "C" fn(TwHandle, u32, u32, *mut TwHandle, *mut TwHandle, *mut TwError) -> u32,
    pub stream_send: unsafe extern "C" fn(TwHandle, *const u8, u64, u64, *mut TwError) -> u32,
    pub stream_finish: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub imports_layout: u64,
    pub client_set_layouts: unsafe extern "C" fn(
        TwHandle,
        *const TwMethod,
        u32,
        *const TwMethod,
        u32,
        *mut TwError,
    ) -> u32,
    pub stream_error: unsafe extern "C" fn(TwHandle, *mut *const u8, *mut u64, *mut TwError) -> u32,
    pub imports: *const TwMethod,
    pub import_count: u32,
    pub reserved_imports: u32,
    pub client_set_format: unsafe extern "C" fn(TwHandle, u32, *mut TwError) -> u32,
    pub release_all: unsafe extern "C" fn(*mut TwCompletion, u32),
    pub port_wake: unsafe extern "C" fn(TwHandle, c_int, *mut TwError) -> u32,
    pub log_set_sink:
        unsafe extern "C" fn(TwLogCallback, *mut c_void, TwDropCtx, u32, *mut TwError) -> u32,
    pub counters: unsafe extern "C" fn(*mut TwCounters, u32, *mut TwError) -> u32,
    pub log_set_port: unsafe extern "C" fn(TwHandle, u64, u32, *mut TwError) -> u32,
    pub port_spin: unsafe extern "C" fn(TwHandle, u64, *mut u32, *mut TwError) -> u32,
}

// SAFETY: the table and its strings are constant until the process ends, and all functions may be
// called on any thread.
unsafe impl Send for TwTable {}
// SAFETY: see `Send`.
unsafe impl Sync for TwTable {}
// SAFETY: see the table.
unsafe impl Send for TwMethod {}
// SAFETY: see the table.
unsafe impl Sync for TwMethod {}

/// The type of `tw_library` (`tw_library_function`).
pub type TwLibraryFunction = unsafe extern "C" fn(abi: u32) -> *const TwTable;

// The layout on 64-bit machines.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<TwError>() == 256);
    assert!(size_of::<TwCompletion>() == 64);
    assert!(size_of::<TwSubmission>() == 56);
    assert!(size_of::<TwBatch>() == 56);
    assert!(size_of::<TwStats>() == 51 * 8);
    assert!(size_of::<TwMethod>() == 56);
    assert!(size_of::<TwLogRecord>() == 40);
    assert!(size_of::<TwCounters>() == 24 * 8);
    assert!(size_of::<TwTable>() == 56 + 45 * 8);
    assert!(core::mem::offset_of!(TwCompletion, owner) == 56);
    assert!(core::mem::offset_of!(TwSubmission, deadline_ns) == 40);
    assert!(core::mem::offset_of!(TwBatch, size) == 48);
    assert!(core::mem::offset_of!(TwTable, now) == 56);
    assert!(core::mem::offset_of!(TwTable, transcode) == 56 + 18 * 8);
    assert!(core::mem::offset_of!(TwTable, retained_batch_release) == 56 + 29 * 8);
    assert!(core::mem::offset_of!(TwTable, imports_layout) == 56 + 33 * 8);
    assert!(core::mem::offset_of!(TwTable, client_set_layouts) == 56 + 34 * 8);
    assert!(core::mem::offset_of!(TwTable, stream_error) == 56 + 35 * 8);
    assert!(core::mem::offset_of!(TwTable, imports) == 56 + 36 * 8);
    assert!(core::mem::offset_of!(TwTable, release_all) == 56 + 39 * 8);
    assert!(core::mem::offset_of!(TwTable, counters) == 56 + 42 * 8);
};
