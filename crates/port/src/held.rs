//! Resources inside values, and streams and futures inside results. In the message, each is an
//! entry of the handle table.
//!
//! The owner of the value owns the resource. Sending a value transfers the resource. Dropping a
//! value closes it. A message that is never read closes all resources in it.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_wire::{Bytes, Checker, Decode, Encode, Encoder, Handle, Malformed, Shape};

use crate::call::Call;
use crate::client::{InstanceGuard, Own};
use crate::code::Failure;
use crate::handles::{self, Object};
use crate::resource::{self, Resource};

/// A typed client of a resource. Generated code has one for each resource type.
pub trait ResourceClient: Sized {
    /// Wraps an owned resource.
    fn from_own(own: Own) -> Self;
    /// The owned resource.
    fn into_own(self) -> Own;
}

/// A resource in a value. `R` is its typed client and also identifies the resource type. For a
/// stream, `R` is a [`StreamReader`](crate::StreamReader), and for a future a
/// [`FutureReader`](crate::FutureReader).
///
/// A caller converts a client into a `Held` with `into()`, and a `Held` into a client with
/// [`into_client`](Self::into_client). A service creates one with [`Call::hold`], and takes the
/// object out with [`take`](Self::take).
pub struct Held<R> {
    handle: u64,
    /// The handle was sent, so the receiver owns it.
    given: AtomicBool,
    /// Keeps the instance open, on the caller's side.
    guard: Option<Arc<InstanceGuard>>,
    resource: PhantomData<fn() -> R>,
}

thread_local! {
    /// The instance of the values that this thread is decoding.
    static CURRENT_GUARD: RefCell<Option<Arc<InstanceGuard>>> = const { RefCell::new(None) };
}

/// Runs `read`, which decodes values for a caller.
pub(crate) fn for_caller<T>(guard: &Arc<InstanceGuard>, read: impl FnOnce() -> T) -> T {
    struct RestoreGuard(Option<Arc<InstanceGuard>>);
    impl Drop for RestoreGuard {
        fn drop(&mut self) {
            CURRENT_GUARD.replace(self.0.take());
        }
    }
    let _before = RestoreGuard(CURRENT_GUARD.replace(Some(Arc::clone(guard))));
    read()
}

impl<R> Held<R> {
    pub(crate) fn new(handle: u64, guard: Option<Arc<InstanceGuard>>) -> Self {
        Self {
            handle,
            given: AtomicBool::new(false),
            guard,
            resource: PhantomData,
        }
    }

    /// The handle and its instance, on the caller's side. The handle is 0 if it was already
    /// transferred. The caller of this function owns the handle afterwards.
    pub(crate) fn into_parts(mut self) -> Option<(u64, Arc<InstanceGuard>)> {
        let guard = self.guard.take()?;
        let given = self.given.swap(true, Ordering::Relaxed);
        Some((if given { 0 } else { self.handle }, guard))
    }

    fn view(&self) -> HeldView<'_, R> {
        // A value that was already sent contains no handle.
        let given = self.given.load(Ordering::Relaxed);
        HeldView {
            handle: Handle(if given { 0 } else { self.handle }),
            held: Some(self),
        }
    }

    /// Takes the object out, in the service. The service owns it again.
    ///
    /// # Errors
    /// `stale`; `argument` if the object belongs to another client or has another type. The
    /// resource is closed in both cases.
    pub fn take<T: Any + Send + Sync>(self, call: &Call) -> Result<Arc<T>, Failure> {
        let value = resource::own(&call.core.instance, Handle(self.view().handle.0))?;
        self.given.store(true, Ordering::Relaxed);
        Ok(value)
    }

    /// The same resource with another type parameter. In code-first services, the author's own type
    /// and the generated typed client identify the same resource type.
    pub fn cast<Q>(mut self) -> Held<Q> {
        let given = self.given.swap(true, Ordering::Relaxed);
        let handle = if given { 0 } else { self.handle };
        Held::new(handle, self.guard.take())
    }
}

impl<R: ResourceClient> Held<R> {
    /// The typed client, on the caller's side. `None` in a service, which has the objects
    /// themselves.
    pub fn into_client(self) -> Option<R> {
        let (handle, guard) = self.into_parts()?;
        Some(R::from_own(Own::new(handle, guard)))
    }
}

impl<R: ResourceClient> From<R> for Held<R> {
    fn from(client: R) -> Self {
        let (handle, guard) = client.into_own().into_parts();
        Self::new(handle, Some(guard))
    }
}

impl Call {
    /// Puts an object of the service into a value. The receiver of the value can call the object's
    /// methods.
    ///
    /// # Errors
    /// `overloaded`: too many handles are open.
    pub fn hold<R, T: Any + Send + Sync>(&self, object: T) -> Result<Held<R>, Failure> {
        let resource = Resource::new(self.core.core(), Arc::new(object));
        Ok(Held::new(
            handles::insert(Object::Resource(resource))?,
            None,
        ))
    }
}

impl<R> Drop for Held<R> {
    fn drop(&mut self) {
        if !*self.given.get_mut() {
            // If the client is closed, the handle is stale and nothing is left to close.
            let _ = handles::close_handle(self.handle);
        }
    }
}

impl<R> fmt::Debug for Held<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({:#x})", self.view().handle.0)
    }
}

/// A view of a [`Held`] in a message.
pub struct HeldView<'a, R> {
    handle: Handle,
    held: Option<&'a Held<R>>,
}

impl<R> Clone for HeldView<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for HeldView<'_, R> {}

impl<R> fmt::Debug for HeldView<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldView({:#x})", self.handle.0)
    }
}

impl<R> PartialEq for HeldView<'_, R> {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle
    }
}

impl<R: 'static> Encode for HeldView<'_, R> {
    type As = Held<R>;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.handle.encode(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        if let Some(held) = self.held.filter(|_| given) {
            held.given.store(true, Ordering::Relaxed);
        }
        1
    }
}

impl<R: 'static> Encode for Held<R> {
    type As = Held<R>;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.view().encode(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        self.view().handles(given)
    }
}

impl<R: 'static> Decode for Held<R> {
    const SIZE: u32 = Handle::SIZE;
    const ALIGN: u32 = Handle::ALIGN;
    const SHAPE: Shape = Handle::SHAPE;
    const DEPTH: u32 = Handle::DEPTH;
    const HOLDS: bool = true;

    type View<'a> = HeldView<'a, R>;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        Handle::check(from, at)
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> HeldView<'a, R> {
        HeldView {
            handle: Handle::view(from, at),
            held: None,
        }
    }

    fn owned(view: HeldView<'_, R>) -> Held<R> {
        Held::new(view.handle.0, CURRENT_GUARD.with_borrow(Clone::clone))
    }

    fn as_view(&self) -> HeldView<'_, R> {
        self.view()
    }
}
