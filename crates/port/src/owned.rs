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
use crate::client::OwnedHandle;
use crate::code::Failure;
use crate::handles;
use crate::instance::guard::InstanceGuard;
use crate::resource;

/// A typed client of a resource. Generated code has one for each resource type.
pub trait ResourceClient: Sized {
    /// Wraps an owned resource.
    fn from_own(own: OwnedHandle) -> Self;
    /// The owned resource.
    fn into_own(self) -> OwnedHandle;
}

/// A resource in a value. `R` is its typed client and also identifies the resource type. For a
/// stream, `R` is a [`StreamReader`](crate::StreamReader), and for a future a
/// [`FutureReader`](crate::FutureReader).
///
/// A caller converts a client into a `Owned` with `into()`, and a `Owned` into a client with
/// [`into_client`](Self::into_client). A service creates one with [`Call::own`], and takes the
/// object out with [`take`](Self::take).
pub struct Owned<R> {
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

impl<R> Owned<R> {
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

    fn view(&self) -> OwnedView<'_, R> {
        // A value that was already sent contains no handle.
        let given = self.given.load(Ordering::Relaxed);
        OwnedView {
            handle: Handle(if given { 0 } else { self.handle }),
            owned: Some(self),
        }
    }

    /// Takes the object out, in the service. The service owns it again.
    ///
    /// # Errors
    /// `stale`; `argument` if the object belongs to another client or has another type. The
    /// resource is closed in both cases.
    pub fn take<T: Any + Send + Sync>(self, call: &Call) -> Result<Arc<T>, Failure> {
        let value = resource::own(&*call.core.instance, Handle(self.view().handle.0))?;
        self.given.store(true, Ordering::Relaxed);
        Ok(value)
    }

    /// The same resource with another type parameter. In code-first services, the author's own type
    /// and the generated typed client identify the same resource type.
    pub fn cast<Q>(mut self) -> Owned<Q> {
        let given = self.given.swap(true, Ordering::Relaxed);
        let handle = if given { 0 } else { self.handle };
        Owned::new(handle, self.guard.take())
    }
}

impl<R: ResourceClient> Owned<R> {
    /// The typed client, on the caller's side. `None` in a service, which has the objects
    /// themselves.
    pub fn into_client(self) -> Option<R> {
        let (handle, guard) = self.into_parts()?;
        Some(R::from_own(OwnedHandle::new(handle, guard)))
    }
}

impl<R: ResourceClient> From<R> for Owned<R> {
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
    pub fn own<R, T: Any + Send + Sync>(&self, object: T) -> Result<Owned<R>, Failure> {
        let resource = self.core.new_resource(Arc::new(object));
        Ok(Owned::new(resource.insert()?, None))
    }
}

impl<R> Drop for Owned<R> {
    fn drop(&mut self) {
        if !*self.given.get_mut() {
            // If the client is closed, the handle is stale and nothing is left to close.
            let _ = handles::close_handle(self.handle);
        }
    }
}

impl<R> fmt::Debug for Owned<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({:#x})", self.view().handle.0)
    }
}

/// A view of a [`Owned`] in a message.
pub struct OwnedView<'a, R> {
    handle: Handle,
    owned: Option<&'a Owned<R>>,
}

impl<R> Clone for OwnedView<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for OwnedView<'_, R> {}

impl<R> fmt::Debug for OwnedView<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedView({:#x})", self.handle.0)
    }
}

impl<R> PartialEq for OwnedView<'_, R> {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle
    }
}

impl<R: 'static> Encode for OwnedView<'_, R> {
    type As = Owned<R>;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.handle.encode(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        if let Some(owned) = self.owned.filter(|_| given) {
            owned.given.store(true, Ordering::Relaxed);
        }
        1
    }
}

impl<R: 'static> Encode for Owned<R> {
    type As = Owned<R>;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.view().encode(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        self.view().handles(given)
    }
}

impl<R: 'static> Decode for Owned<R> {
    const SIZE: u32 = Handle::SIZE;
    const ALIGN: u32 = Handle::ALIGN;
    const SHAPE: Shape = Handle::SHAPE;
    const DEPTH: u32 = Handle::DEPTH;
    const HAS_HANDLES: bool = true;

    type View<'a> = OwnedView<'a, R>;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        Handle::check(from, at)
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> OwnedView<'a, R> {
        OwnedView {
            handle: Handle::view(from, at),
            owned: None,
        }
    }

    fn owned(view: OwnedView<'_, R>) -> Owned<R> {
        Owned::new(view.handle.0, CURRENT_GUARD.with_borrow(Clone::clone))
    }

    fn as_view(&self) -> OwnedView<'_, R> {
        self.view()
    }
}
