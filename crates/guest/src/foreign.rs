//! A guest library's functions as the core calls them.

use std::ffi::{CStr, c_void};
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use thalweg_capi::abi::{TW_OK, TwError};
use thalweg_port::{Code, Failure, Guest, GuestCall, GuestObject, GuestPort, close_handle};

use crate::abi::{TW_GUEST_ASYNC_MAY_BLOCK, TW_GUEST_STAYS_LOADED, TwGuestCall, TwGuestFunctions};
use crate::library::GuestLibrary;

/// What is dropped once a library is unloaded.
pub(crate) type WhileLoaded = Box<dyn Send + Sync>;

/// A loaded guest library. Dropping it unloads the library.
pub(crate) struct ForeignGuest {
    functions: TwGuestFunctions,
    ctx: *mut c_void,
    /// From which the guest takes its events. `None`: the core calls its functions.
    port: Option<ServedPort>,
    /// `None` while this is being dropped.
    library: Option<(GuestLibrary, WhileLoaded)>,
    name: String,
    /// A thread reloads it.
    is_reloading: AtomicBool,
}

/// A guest's port, which has a handle until the guest is unloaded.
pub(crate) struct ServedPort {
    port: Arc<GuestPort>,
    handle: u64,
}

impl ServedPort {
    /// # Errors
    /// `overloaded`: too many handles or descriptors are open.
    pub(crate) fn open() -> Result<Self, Failure> {
        let port = GuestPort::new()?;
        let handle = port.insert()?;
        Ok(Self { port, handle })
    }

    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }
}

impl Drop for ServedPort {
    fn drop(&mut self) {
        let _ = close_handle(self.handle);
    }
}

// SAFETY: thalweg_guest.h requires of the guest that its functions may run on any thread, those of
// different states at the same time. The core only passes `ctx` to them.
unsafe impl Send for ForeignGuest {}
// SAFETY: as above.
unsafe impl Sync for ForeignGuest {}

impl ForeignGuest {
    pub(crate) fn new(
        functions: TwGuestFunctions,
        ctx: *mut c_void,
        port: Option<ServedPort>,
        library: (GuestLibrary, WhileLoaded),
        name: String,
    ) -> Self {
        Self {
            functions,
            ctx,
            port,
            library: Some(library),
            name,
            is_reloading: AtomicBool::new(false),
        }
    }

    /// Why another library cannot replace it.
    pub(crate) fn stays(&self) -> Option<&'static str> {
        if self.functions.flags & TW_GUEST_STAYS_LOADED != 0 {
            return Some("the runtime of its language cannot be unloaded");
        }
        (self.port.is_some()).then_some("it takes its calls from a port")
    }

    /// Lets one thread at a time reload the guest. `false`: another thread does.
    pub(crate) fn begin_reload(&self) -> bool {
        !self.is_reloading.swap(true, Ordering::Acquire)
    }

    pub(crate) fn end_reload(&self) {
        self.is_reloading.store(false, Ordering::Release);
    }
}

impl Guest for ForeignGuest {
    fn port(self: Arc<Self>) -> Option<Arc<GuestPort>> {
        Some(Arc::clone(&self.port.as_ref()?.port))
    }

    fn open(&self) -> Result<u64, Failure> {
        if let Some(served) = &self.port {
            return served.port.open();
        }
        let Some(open) = self.functions.open else {
            return Ok(0);
        };
        let (mut state, mut error) = (0, no_error());
        // SAFETY: the rules of thalweg_guest.h for the guest's functions, which the core keeps; also
        // in all functions below.
        let code = unsafe { open(self.ctx, &raw mut state, &raw mut error) };
        match code {
            TW_OK => Ok(state),
            code => Err(refused(&self.name, code, &error)),
        }
    }

    fn call(&self, state: u64, call: GuestCall<'_>) {
        if let Some(served) = &self.port {
            return served.port.call(state, call);
        }
        let GuestCall {
            call,
            method,
            deadline,
            args,
        } = call;
        let seen = TwGuestCall {
            call,
            method,
            reserved: 0,
            deadline_ns: deadline,
            args_size: args.len() as u64,
            args: args.as_mut_ptr(),
        };
        if let Some(function) = self.functions.call {
            // SAFETY: see `open`.
            unsafe { function(self.ctx, state, &raw const seen) };
        }
    }

    fn async_may_block(&self) -> bool {
        self.port.is_none() && self.functions.flags & TW_GUEST_ASYNC_MAY_BLOCK != 0
    }

    fn cancel(&self, state: u64, call: u64) {
        if let Some(served) = &self.port {
            return served.port.cancel(state, call);
        }
        if let Some(cancel) = self.functions.cancel {
            // SAFETY: see `open`.
            unsafe { cancel(self.ctx, state, call) };
        }
    }

    fn drop_resource(&self, state: u64, resource: GuestObject) {
        if let Some(served) = &self.port {
            return served.port.drop_resource(state, resource);
        }
        if let Some(drop) = self.functions.drop {
            // SAFETY: see `open`.
            unsafe { drop(self.ctx, state, resource.kind, resource.number) };
        }
    }

    fn close(&self, state: u64) {
        if let Some(served) = &self.port {
            return served.port.close(state);
        }
        if let Some(close) = self.functions.close {
            // SAFETY: see `open`.
            unsafe { close(self.ctx, state) };
        }
    }
}

impl Drop for ForeignGuest {
    /// On a thread of its own. The guest waits for its threads in `unload`, and this may be one of them,
    /// or a worker that they wait for.
    fn drop(&mut self) {
        let Some((library, loaded)) = self.library.take() else {
            return;
        };
        let port = self.port.take();
        if let Some(served) = &port {
            served.port.end();
        }
        // Without a thread, the library stays loaded: its own threads run.
        let unloading = ManuallyDrop::new(Unloading {
            unload: self.functions.unload,
            stays_loaded: self.functions.flags & TW_GUEST_STAYS_LOADED != 0,
            ctx: self.ctx,
            port,
            library,
            loaded,
        });
        let _ = thread::Builder::new()
            .name("tw-unload".to_owned())
            .spawn(move || ManuallyDrop::into_inner(unloading).run());
    }
}

/// What is left of a guest that is not used any more.
struct Unloading {
    unload: Option<unsafe extern "C" fn(*mut c_void)>,
    stays_loaded: bool,
    ctx: *mut c_void,
    port: Option<ServedPort>,
    library: GuestLibrary,
    loaded: WhileLoaded,
}

// SAFETY: as for `ForeignGuest`.
unsafe impl Send for Unloading {}

impl Unloading {
    fn run(self) {
        if let Some(unload) = self.unload {
            // SAFETY: see `open`; it is the last call.
            unsafe { unload(self.ctx) };
        }
        drop(self.port);
        match self.stays_loaded {
            true => mem::forget(self.library),
            false => drop(self.library),
        }
        drop(self.loaded);
    }
}

pub(crate) fn no_error() -> TwError {
    TwError {
        code: 0,
        retryable: 0,
        message: [0; 248],
    }
}

/// The failure of a guest's function that has returned `code` and filled in `error`.
pub(crate) fn refused(name: &str, code: u32, error: &TwError) -> Failure {
    let bytes = error.message.map(|byte| byte as u8);
    // The guest may have forgotten the terminator.
    let text = CStr::from_bytes_until_nul(&bytes).map_or(&bytes[..], CStr::to_bytes);
    let text = String::from_utf8_lossy(text);
    let code = Code::from_number(code).unwrap_or(Code::GuestLost);
    code.because(format!("the guest {name} refuses to be opened: {text}"))
}
