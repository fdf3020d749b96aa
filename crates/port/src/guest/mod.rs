//! Guests: services in foreign code, which are known only at run time.
//!
//! ```text
//!   core                                             foreign code
//!   a turn of the instance: Guest::call ----------> begins to serve the call
//!   guest_answer, guest_fail <--------------------- at once, or later on any thread
//! ```
//!
//! 1. Foreign code runs in the turns of its instance, so one function at a time, on a thread's own
//!    stack. Whatever would wait there returns `would_park`. The calls of an `async func` run at the
//!    same time on threads of the blocking pool if the guest [asks for it](Guest::async_may_block).
//! 2. Foreign code knows a call by its handle, which is stale when the call has ended. It gets a copy
//!    of the arguments that nothing else uses, until [`Guest::call`] returns.
//! 3. Foreign code is not trusted to write correct messages: each one is checked against the
//!    description of the package before anyone else sees it.
//! 4. An instance has one state at a time, and after a [reload](crate::Instance::reload_guest) also
//!    those that drain. Before [`Guest::close`] the resources of the state are dropped, its calls
//!    end, and those on the blocking pool return.

mod package;
mod port;
mod resource;
mod service;
mod states;

use std::sync::Arc;

use crate::code::Failure;

pub(crate) use package::MethodTypes;
pub use package::{FunctionDescription, GuestPackage, PackageDescription};
pub use port::{GuestEvent, GuestPort};
pub(crate) use resource::GuestResource;
pub(crate) use service::{GuestService, state_of, take_current, with_current};
pub(crate) use states::GuestInstance;

/// The functions of a guest. The core calls them as rules 1 and 4 of the module say: those of one
/// state one at a time, except on the blocking pool. The first is `open` and the last `close`.
pub trait Guest: Send + Sync + 'static {
    /// Creates the state of an instance, before its first call and again after a panic.
    ///
    /// # Errors
    /// Why there is no state. The call ends as `guest_lost` with this text.
    fn open(&self) -> Result<u64, Failure>;

    /// Begins to serve a call. It may be [answered](crate::guest_answer) before this returns or later.
    fn call(&self, state: u64, call: GuestCall<'_>);

    /// Whether [`call`](Self::call) may block for methods that are an `async func`. It is then called for
    /// them on a thread of the blocking pool, while other functions of the state run.
    fn async_may_block(&self) -> bool {
        false
    }

    /// A call ended before the guest answered it: it was cancelled, or its deadline passed. The guest
    /// may have answered it at the same time.
    fn cancel(&self, state: u64, call: u64);

    /// Drops a resource that no host has any more.
    fn drop_resource(&self, state: u64, resource: GuestObject);

    /// Ends the state. Its calls have ended, and its resources were dropped.
    fn close(&self, state: u64);

    /// The port from which threads of the guest take its events. `None`: the core calls the functions
    /// of the guest on its own threads.
    fn port(self: Arc<Self>) -> Option<Arc<GuestPort>> {
        None
    }
}

/// A call, as foreign code gets it.
#[derive(Debug)]
pub struct GuestCall<'a> {
    /// The handle.
    pub call: u64,
    /// The method's number.
    pub method: u32,
    /// The deadline in nanoseconds of [`thalweg_queue::clock`]; `u64::MAX` if there is none.
    pub deadline: u64,
    /// The message of the parameters. It was checked.
    /// The guest may take the memory.
    pub args: &'a mut Vec<u8>,
}

/// An object of a guest: the number of its type, and the guest's own number for the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestObject {
    /// The type's number. The core only compares it.
    pub kind: u32,
    /// The object's number.
    pub number: u64,
}
