//! The functions that lua-resty-ffi offers to its libraries. Any thread may call them.

use std::ffi::{c_char, c_int};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use thalweg::port::log::{Level, Limit};
use thalweg::port::{Code, Incoming, Object, find};

use thalweg::wire::ListView;

use crate::TASK;
use crate::pointer::{Pointer, to_handle};

/// A defect of this library ends the process otherwise, because foreign code cannot be unwound.
fn guard<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping the payload may panic.
        std::mem::forget(payload);
        otherwise
    })
}

#[cold]
fn complain(what: &str) {
    static COMPLAINTS: Limit = Limit::new();
    COMPLAINTS.write(
        Level::Warning,
        "resty_ffi",
        format_args!("a library {what}"),
    );
}

/// Waits for the next task of a runtime. NULL: the runtime was unloaded, or `tq` is not a queue.
// SAFETY: no other symbol has this name, unless lua-resty-ffi itself is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn ngx_http_lua_ffi_task_poll(tq: Pointer) -> Pointer {
    guard(std::ptr::null_mut(), || {
        let Ok(Object::Client(runtime)) = find(to_handle(tq)) else {
            return std::ptr::null_mut();
        };
        let Some(port) = runtime.guest_port() else {
            return std::ptr::null_mut();
        };
        loop {
            let ran = port.run_turn(1, u64::MAX);
            let task = TASK.replace(std::ptr::null_mut());
            let has_ended = ran.is_err_and(|why| why.code != Code::Interrupted);
            if has_ended || !task.is_null() {
                return task;
            }
        }
    })
}

/// The request of a task, with a NUL behind it, and its length. NULL: the request is nil, or `task`
/// is not a task that waits for its answer. The memory is valid until the answer, and the library may
/// write to it.
///
/// # Safety
/// `len` is null or valid for writes.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ngx_http_lua_ffi_get_req(task: Pointer, len: *mut c_int) -> *mut c_char {
    let (bytes, size) = guard((std::ptr::null_mut(), 0), || {
        let find = |(request,): (Option<ListView<'_, u8>>,), message: Range<*mut u8>| {
            let bytes = request?.as_bytes();
            let at = match bytes {
                [] => message.end,
                [first, ..] => message.start.with_addr((&raw const *first).addr()),
            };
            Some((at.cast(), bytes.len() as c_int))
        };
        let request = Incoming::with_lent::<(Option<Vec<u8>>,), _>(to_handle(task), find);
        request.ok().flatten().unwrap_or((std::ptr::null_mut(), 0))
    });
    if !len.is_null() {
        // SAFETY: the caller guarantees that it is valid.
        unsafe { len.write(size) };
    }
    bytes
}

/// Answers a task. `rc` is 0, or the library's code for a failure. `rsp` is the answer or the text of
/// the failure, `rsp_len` bytes from `malloc`, which are freed. If `rsp_len` is 0, it ends with a NUL.
/// NULL is nil.
///
/// A task that was answered before is not changed. `rsp` is then not freed, because it may be that of
/// the first answer.
///
/// # Safety
/// `rsp` is null, or was allocated by `malloc` with at least `rsp_len` bytes, and no other code uses
/// it.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ngx_http_lua_ffi_respond(
    task: Pointer,
    rc: c_int,
    rsp: *mut c_char,
    rsp_len: c_int,
) {
    guard((), || {
        let Ok(incoming) = Incoming::take_back(to_handle(task)) else {
            complain("answered a task twice, or something that is not a task");
            return;
        };
        // SAFETY: the caller guarantees it.
        match (rc, unsafe { bytes(rsp, rsp_len) }) {
            (0, Some(answer)) => incoming.reply(&answer),
            (rc, Some(answer)) => incoming.reply_error(&(rc, answer)),
            (_, None) => {
                complain("answered with a negative length");
                drop(incoming); // the call ends as `guest_lost`
            }
        }
        // SAFETY: the caller passes it on, and nothing refers to it any more.
        unsafe { libc::free(rsp.cast()) };
    });
}

/// The bytes of an answer; `Some(None)`: nil. A text without a NUL ends with its memory.
///
/// # Safety
/// As for [`ngx_http_lua_ffi_respond`].
unsafe fn bytes<'a>(rsp: *mut c_char, rsp_len: c_int) -> Option<Option<&'a [u8]>> {
    let size = usize::try_from(rsp_len).ok()?;
    if rsp.is_null() {
        return Some(None);
    }
    let size = match size {
        // SAFETY: `rsp` is from `malloc`, and `strnlen` reads only its memory.
        0 => unsafe { libc::strnlen(rsp, libc::malloc_usable_size(rsp.cast())) },
        size => size,
    };
    // SAFETY: the caller guarantees `size` bytes, or `strnlen` has found them.
    Some(Some(unsafe {
        std::slice::from_raw_parts(rsp.cast(), size)
    }))
}
