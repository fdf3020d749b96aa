//! Runs libraries that were written for lua-resty-ffi as Thalweg services.
//!
//! ```text
//!   Lua: runtime:echo(request)      this library                         threads of the foreign library
//!   submit --------------------> mailbox of an instance, its port --> ngx_http_lua_ffi_task_poll
//!   port_reap <----------------- completion <------------------------ ngx_http_lua_ffi_respond
//! ```
//!
//! 1. A *runtime* is an instance with a port, from which the foreign library's threads take its calls, as
//!    those of a guest do. `tq`, the queue of the runtime, is the handle of its client, and a task is the
//!    number of a lent call. Both are numbers with a generation, so a task that was answered, a queue that
//!    was closed, and a pointer that is neither are refused.
//! 2. The foreign library gets these numbers as pointers, which it must not dereference. They
//!    are outside of the addresses of a process, because a garbage collector like Go's looks up each
//!    pointer that it finds: see `pointer.rs`.
//! 3. A request stays where it is until its task is answered, also if its caller has given up.

mod api;
mod pointer;

use std::cell::Cell;
use std::ptr;

use thalweg::port::{
    Incoming, Instance, Method, Object, Package, QueueLimits, Service, close_handle, find, insert,
};
use thalweg::wire::Shape;
use thalweg_capi::abi::{TwError, TwHandle};

pub use api::{ngx_http_lua_ffi_get_req, ngx_http_lua_ffi_respond, ngx_http_lua_ffi_task_poll};
use pointer::to_pointer;
pub use pointer::{Pointer, to_handle};

/// The parameters, the result and the error of the only method. The error is the code and the text of the
/// foreign library. `lib/resty_ffi.lua` has the hashes.
const CALL: &str =
    "record{request:option<list<u8>>}\noption<list<u8>>\ntuple<s32,option<list<u8>>>\n";

/// What a runtime serves: it leaves each call to the thread that polls.
#[derive(Debug, Default)]
pub struct RestyFfi {
    /// Not for a client of `tw_table.client_open`, whose calls are dropped.
    has_library: bool,
}

thread_local! {
    /// The task that this thread has polled. NULL: none.
    static TASK: Cell<Pointer> = const { Cell::new(ptr::null_mut()) };
}

impl Service for RestyFfi {
    const PACKAGE: &'static Package = &Package {
        name: "thalweg:resty-ffi",
        version: "0.1.0",
        layout: Shape::hash_of(CALL),
        methods: &[Method::new("resty-ffi.call", CALL)],
        imports: &[],
        limits: QueueLimits {
            // Only the number of tasks is limited, by `max_queue`.
            max_queued_bytes: u64::MAX,
            ..QueueLimits::DEFAULT
        },
    };

    fn dispatch(&mut self, call: Incoming) {
        // A call that cannot be lent has ended.
        if self.has_library
            && let Ok(task) = call.lend()
        {
            match to_pointer(task) {
                Ok(task) => TASK.set(task),
                Err(_) => drop(Incoming::take_back(task)),
            }
        }
    }
}

thalweg_capi::export!(crate::RestyFfi, crate::RestyFfi::default());

/// Opens a runtime, for which at most `max_queue` tasks wait. `client` submits calls to it, and `tq`
/// is its queue for `libffi_init`.
///
/// # Safety
/// `client` and `tq` are valid for writes. `error` is null, or points to a `tw_error`.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thalweg_resty_ffi_open(
    max_queue: u32,
    client: *mut TwHandle,
    tq: *mut Pointer,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        thalweg_capi::enter(error, || {
            let make = || RestyFfi { has_library: true };
            let instance = Instance::open_on_port(max_queue, make, Instance::runtime()?)?;
            let handle = insert(Object::Client(instance))?;
            let pointer = to_pointer(handle).inspect_err(|_| drop(close_handle(handle)))?;
            client.write(handle);
            tq.write(pointer);
            Ok(())
        })
    }
}

/// Unloads a runtime. Its library gets the tasks that wait, and then NULL. Without effect if the
/// client is closed.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn thalweg_resty_ffi_finish(client: TwHandle) {
    if let Ok(Object::Client(instance)) = find(client) {
        instance.finish();
    }
}
