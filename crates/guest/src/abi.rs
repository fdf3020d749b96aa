//! The types and constants of `thalweg_guest.h`, under the same names. The header documents them.

use std::ffi::{c_char, c_int, c_void};

use thalweg_capi::abi::{TwError, TwHandle, TwMethod, TwStats};

/// The version of the layouts.
pub(crate) const TW_GUEST_ABI: u32 = 1;

/// The name of a guest's one symbol.
pub(crate) const TW_GUEST_SYMBOL: &std::ffi::CStr = c"tw_guest";

pub(crate) const TW_OVERFLOW_BLOCK: u32 = 0;
pub(crate) const TW_OVERFLOW_LATEST: u32 = 1;
pub(crate) const TW_OVERFLOW_DROP_NEWEST: u32 = 2;
pub(crate) const TW_OVERFLOW_DROP_OLDEST: u32 = 3;
pub(crate) const TW_OVERFLOW_FAIL: u32 = 4;

/// A flag of a package.
pub(crate) const TW_GUEST_BLOCK: u32 = 1;

/// A flag of a guest's functions.
pub(crate) const TW_GUEST_STAYS_LOADED: u32 = 1;
/// A flag of a guest's functions.
pub(crate) const TW_GUEST_ASYNC_MAY_BLOCK: u32 = 2;

pub(crate) const TW_GUEST_OPEN: u32 = 1;
pub(crate) const TW_GUEST_CALL: u32 = 2;
pub(crate) const TW_GUEST_CANCEL: u32 = 3;
pub(crate) const TW_GUEST_DROP: u32 = 4;
pub(crate) const TW_GUEST_CLOSE: u32 = 5;
pub(crate) const TW_GUEST_READY: u32 = 6;

/// A flag of a write.
pub(crate) const TW_WRITE_MORE: u32 = 1;
pub(crate) const TW_WRITE_TRUSTED: u32 = 2;

/// The options of a method (`tw_guest_policy`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TwGuestPolicy {
    pub notice_interval_ns: u64,
    pub timeout_ns: u64,
    pub linger_ns: u64,
    pub overflow: u32,
    pub capacity: u32,
    pub max_record_size: u32,
    pub reserved: u32,
}

/// A package (`tw_guest_package`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwGuestPackage {
    pub size: u32,
    pub flags: u32,
    pub package: *const c_char,
    pub version: *const c_char,
    pub methods: *const TwMethod,
    pub policies: *const TwGuestPolicy,
    pub imports: *const TwMethod,
    pub method_count: u32,
    pub import_count: u32,
    pub max_queued_calls: u32,
    pub reserved: u32,
    pub max_queued_bytes: u64,
}

/// A call (`tw_guest_call`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwGuestCall {
    pub call: TwHandle,
    pub method: u32,
    pub reserved: u32,
    pub deadline_ns: u64,
    pub args: *mut u8,
    pub args_size: u64,
}

/// The functions of a guest (`tw_guest_functions`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwGuestFunctions {
    pub size: u32,
    pub flags: u32,
    pub open: Option<unsafe extern "C" fn(*mut c_void, *mut u64, *mut TwError) -> u32>,
    pub call: Option<unsafe extern "C" fn(*mut c_void, u64, *const TwGuestCall)>,
    pub cancel: Option<unsafe extern "C" fn(*mut c_void, u64, TwHandle)>,
    pub drop: Option<unsafe extern "C" fn(*mut c_void, u64, u32, u64)>,
    pub close: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub unload: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// An event (`tw_guest_event`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwGuestEvent {
    pub kind: u32,
    pub resource_type: u32,
    pub state: u64,
    pub object: u64,
    pub call: TwGuestCall,
    pub args_capacity: u64,
}

/// One of several answers (`tw_guest_answer`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwGuestAnswer {
    pub call: TwHandle,
    pub code: u32,
    pub result: u32,
    pub message: *const u8,
    pub message_size: u64,
}

/// A message that a guest receives (`tw_guest_message`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwGuestMessage {
    pub data: *mut u8,
    pub size: u64,
    pub capacity: u64,
}

/// Places for records in a stream (`tw_record_space`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwRecordSpace {
    pub base: *mut u8,
    pub first: u32,
    pub stride: u32,
    pub count: u32,
    pub tails: u32,
    pub tails_end: u32,
    pub reserved: u32,
}

/// The functions that a guest calls (`tw_guest_core`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwGuestCore {
    pub abi: u32,
    pub size: u32,
    pub core: *const c_char,
    pub now: unsafe extern "C" fn() -> u64,
    pub serve: unsafe extern "C" fn(
        u64,
        *const TwGuestPackage,
        *const TwGuestFunctions,
        *mut c_void,
        *mut TwError,
    ) -> u32,
    pub answer: unsafe extern "C" fn(TwHandle, u32, *const u8, u64, *mut TwError) -> u32,
    pub answer_resource: unsafe extern "C" fn(TwHandle, u32, u64, *mut TwError) -> u32,
    pub fail: unsafe extern "C" fn(TwHandle, u32, *const c_char, u64, *mut TwError) -> u32,
    pub call_check: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub resource_new: unsafe extern "C" fn(TwHandle, u32, u64, *mut TwHandle, *mut TwError) -> u32,
    pub resource_get: unsafe extern "C" fn(TwHandle, TwHandle, u32, *mut u64, *mut TwError) -> u32,
    pub resource_take: unsafe extern "C" fn(TwHandle, TwHandle, u32, *mut u64, *mut TwError) -> u32,
    pub answer_stream: unsafe extern "C" fn(TwHandle, *mut TwHandle, *mut TwError) -> u32,
    pub stream_write: unsafe extern "C" fn(
        TwHandle,
        *const u8,
        u64,
        u32,
        u32,
        u32,
        u64,
        *mut u32,
        *mut TwError,
    ) -> u32,
    pub stream_finish: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub stream_fail: unsafe extern "C" fn(TwHandle, *const u8, u64, *mut TwError) -> u32,
    pub stream_abort: unsafe extern "C" fn(TwHandle, *const c_char, u64, *mut TwError) -> u32,
    pub serve_port: unsafe extern "C" fn(
        u64,
        *const TwGuestPackage,
        *const TwGuestFunctions,
        *mut c_void,
        *mut TwHandle,
        *mut TwError,
    ) -> u32,
    pub port_fd: unsafe extern "C" fn(TwHandle, *mut c_int, *mut TwError) -> u32,
    pub port_take:
        unsafe extern "C" fn(TwHandle, *mut TwGuestEvent, u32, u64, *mut u32, *mut TwError) -> u32,
    pub event_release: unsafe extern "C" fn(*mut TwGuestEvent, u32),
    pub reader_open: unsafe extern "C" fn(TwHandle, TwHandle, *mut TwHandle, *mut TwError) -> u32,
    pub reader_receive:
        unsafe extern "C" fn(TwHandle, u64, *mut TwGuestMessage, *mut TwError) -> u32,
    pub reader_close: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub import_call: unsafe extern "C" fn(
        TwHandle,
        u32,
        *const u8,
        u64,
        *mut TwGuestMessage,
        *mut TwError,
    ) -> u32,
    pub message_release: unsafe extern "C" fn(*mut TwGuestMessage),
    pub reader_notify: unsafe extern "C" fn(TwHandle, TwHandle, u64, *mut TwError) -> u32,
    pub import_begin: unsafe extern "C" fn(
        TwHandle,
        u32,
        *const u8,
        u64,
        TwHandle,
        u64,
        *mut TwHandle,
        *mut TwError,
    ) -> u32,
    pub import_answer: unsafe extern "C" fn(TwHandle, *mut TwGuestMessage, *mut TwError) -> u32,
    pub import_cancel: unsafe extern "C" fn(TwHandle, *mut TwError) -> u32,
    pub writer_notify: unsafe extern "C" fn(TwHandle, TwHandle, u64, *mut TwError) -> u32,
    pub answer_many: unsafe extern "C" fn(*mut TwGuestAnswer, u32),
    pub stream_reserve:
        unsafe extern "C" fn(TwHandle, u32, u64, *mut TwRecordSpace, *mut TwError) -> u32,
    pub stream_commit:
        unsafe extern "C" fn(TwHandle, u32, u32, u32, *mut TwRecordSpace, *mut TwError) -> u32,
    pub writer_stats: unsafe extern "C" fn(TwHandle, *mut TwStats, u32, *mut TwError) -> u32,
}

// SAFETY: the pointer is to a constant text.
unsafe impl Sync for TwGuestCore {}

/// The type of a guest's one symbol (`tw_guest_function`).
pub(crate) type TwGuestFunction =
    unsafe extern "C" fn(u32, *const TwGuestCore, u64, *mut TwError) -> u32;
