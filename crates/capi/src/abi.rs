//! The C table as Rust sees it: `thalweg.h` field by field, under the same names.
//!
//! A binding that opens a library needs these shapes and nothing of the core, so this module uses nothing but
//! `core::ffi`. What each field means, until when a pointer is valid and what releases it stands in the header.

use core::ffi::{c_char, c_int, c_void};

/// The number of this table's shape (`TW_ABI`). A library with another one is refused.
pub const TW_ABI: u32 = 2;

/// The one symbol of a library, as `dlsym` wants it.
pub const TW_LIBRARY_SYMBOL: &core::ffi::CStr = c"tw_library";

/// Done.
pub const TW_OK: u32 = 0;
/// The service's own typed error: its payload is the data.
pub const TW_ERROR: u32 = 1;
/// Cancelled by the caller, or its port closed.
pub const TW_CANCELLED: u32 = 2;
/// The deadline passed.
pub const TW_TIMED_OUT: u32 = 3;
/// The service could not be (re)started, or dropped the call.
pub const TW_GUEST_LOST: u32 = 4;
/// The service panicked in this call.
pub const TW_GUEST_PANICKED: u32 = 5;
/// No room: try again later.
pub const TW_OVERLOADED: u32 = 6;
/// The runtime is shutting down.
pub const TW_SHUT_DOWN: u32 = 7;
/// Closed, or a stream's end.
pub const TW_CLOSED: u32 = 8;
/// The handle's object is gone.
pub const TW_STALE: u32 = 9;
/// A null pointer, a wrong handle, a malformed message.
pub const TW_ARGUMENT: u32 = 10;
/// The two sides do not fit.
pub const TW_VERSION: u32 = 11;
/// The handle was made before `fork()`.
pub const TW_FORKED: u32 = 12;
/// A signal arrived while waiting.
pub const TW_INTERRUPTED: u32 = 13;
/// Nothing there now, and waiting was not allowed.
pub const TW_WOULD_PARK: u32 = 14;

/// A wait without an end.
pub const TW_FOREVER: u64 = u64::MAX;

/// A completion of a call.
pub const TW_COMPLETION_CALL: u32 = 1;
/// A completion of `stream_arm`.
pub const TW_COMPLETION_STREAM_READY: u32 = 2;
/// A call has not ended yet.
pub const TW_COMPLETION_NOTICE: u32 = 3;
/// The service asks its host.
pub const TW_COMPLETION_HOST_CALL: u32 = 4;

/// In a batch's flags: the status is the stream's ending, not the wait's.
pub const TW_BATCH_END: u32 = 1;
/// In a batch's flags: the records are of the control lane.
pub const TW_BATCH_CONTROL: u32 = 2;

/// Records were overtaken by newer ones (policy `latest`).
pub const TW_GAP_CONFLATED: u32 = 1;
/// The stream was full, and the new ones were dropped.
pub const TW_GAP_DROPPED_NEWEST: u32 = 2;
/// The stream was full, and the oldest ones were dropped.
pub const TW_GAP_DROPPED_OLDEST: u32 = 3;
/// The stream was full, and the reader held what would have been dropped: so the new ones were.
pub const TW_GAP_BATCH_OPEN: u32 = 4;
/// The service had them not.
pub const TW_GAP_SERVICE: u32 = 5;

/// In a method's flags: an `async func`.
pub const TW_METHOD_ASYNC: u32 = 1;
/// May be called by `call_inline`, on the caller's thread.
pub const TW_METHOD_INLINE: u32 = 2;
/// A second run does no harm.
pub const TW_METHOD_IDEMPOTENT: u32 = 4;
/// Its calls can say that they still run (`TW_SUBMIT_NOTICES`).
pub const TW_METHOD_NOTICES: u32 = 8;
/// Its calls can wait for room (`TW_SUBMIT_BLOCK`).
pub const TW_METHOD_CAN_BLOCK: u32 = 16;

/// In a submission's flags: completions `TW_COMPLETION_NOTICE` are wanted.
pub const TW_SUBMIT_NOTICES: u32 = 1;
/// In a submission's flags: it waits for room where the policy file has `overflow = "block"`.
pub const TW_SUBMIT_BLOCK: u32 = 2;

/// The form of a message (`transcode`).
pub const TW_FLAT: u32 = 0;
/// The form of RFC 8949 (`transcode`).
pub const TW_CBOR: u32 = 1;

/// A handle: index and generation; 0 is never valid.
pub type TwHandle = u64;

/// What went wrong (`tw_error`).
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

/// Records of a stream, in place (`tw_batch`).
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

/// What the streams of a client's method did (`tw_stats`).
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

/// Takes a stream's records (`tw_stream_callback`).
pub type TwStreamCallback =
    Option<unsafe extern "C" fn(*mut c_void, *const TwBatch, *const TwError) -> u32>;

/// Gives a callback's `ctx` up (`tw_drop_ctx`).
pub type TwDropCtx = Option<unsafe extern "C" fn(*mut c_void)>;

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

/// What a library offers (`tw_table`). The first five fields never move.
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
}

// SAFETY: a table is constant for the life of the process and its strings with it; all functions may be called
// from any thread (the header says which object wants one thread at a time).
unsafe impl Send for TwTable {}
// SAFETY: see `Send`.
unsafe impl Sync for TwTable {}
// SAFETY: as the table's.
unsafe impl Send for TwMethod {}
// SAFETY: as the table's.
unsafe impl Sync for TwMethod {}

/// The one exported function: `tw_library_function`.
pub type TwLibraryFunction = unsafe extern "C" fn(abi: u32) -> *const TwTable;

// What the header's compiler would say on a 64-bit machine: a field that moved fails here.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<TwError>() == 256);
    assert!(size_of::<TwCompletion>() == 64);
    assert!(size_of::<TwSubmission>() == 56);
    assert!(size_of::<TwBatch>() == 56);
    assert!(size_of::<TwStats>() == 51 * 8);
    assert!(size_of::<TwMethod>() == 56);
    assert!(size_of::<TwTable>() == 56 + 36 * 8);
    assert!(core::mem::offset_of!(TwCompletion, owner) == 56);
    assert!(core::mem::offset_of!(TwSubmission, deadline_ns) == 40);
    assert!(core::mem::offset_of!(TwBatch, size) == 48);
    assert!(core::mem::offset_of!(TwTable, now) == 56);
    assert!(core::mem::offset_of!(TwTable, transcode) == 56 + 18 * 8);
    assert!(core::mem::offset_of!(TwTable, retained_batch_release) == 56 + 29 * 8);
    assert!(core::mem::offset_of!(TwTable, imports_layout) == 56 + 33 * 8);
    assert!(core::mem::offset_of!(TwTable, client_set_layouts) == 56 + 34 * 8);
    assert!(core::mem::offset_of!(TwTable, stream_error) == 56 + 35 * 8);
};
