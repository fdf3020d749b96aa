//! A resource in the handle table: an object of the service, with the instance that it belongs to.
//!
//! The destructor is service code. It therefore runs on the instance's actor, in a turn, whichever
//! thread drops the last handle. If the resource has an async destructor, which is a method that
//! takes the resource, dropping the last handle calls that method once. If the call is refused, or
//! after it has ended, the object is dropped.

use std::any::Any;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_wire::Handle;

use crate::code::{Code, Failure};
use crate::handles::{self, HandleObject, Kind};

/// An object of the service.
pub(crate) type Value = Arc<dyn Any + Send + Sync>;

/// A resource without any handle.
pub(crate) struct DroppedResource {
    pub(crate) value: Value,
    /// The incarnation of the service that created it.
    pub(crate) incarnation: u64,
    /// The async destructor was called.
    pub(crate) destructor_called: bool,
}

/// What a resource needs of the instance that it belongs to.
pub(crate) trait ResourceOwner: Send + Sync {
    /// The number of the current service: it grows when the service is replaced.
    fn incarnation(&self) -> u64;

    /// Drops a resource in a turn of the instance.
    fn discard(self: Arc<Self>, dropped: DroppedResource);
}

/// An object of the service, with the instance that it belongs to.
#[derive(Clone)]
pub struct Resource(pub(crate) Arc<ResourceInner>);

/// Dropped with the last reference.
pub(crate) struct ResourceInner {
    instance: Arc<dyn ResourceOwner>,
    incarnation: u64,
    /// `None` once the service has taken it back.
    value: Option<Value>,
    /// The service has taken the object back, or its async destructor was called.
    destructor_called: AtomicBool,
}

impl Resource {
    /// A resource that this incarnation of the service created.
    pub(crate) fn new(instance: Arc<dyn ResourceOwner>, incarnation: u64, value: Value) -> Self {
        Self::build(instance, incarnation, value, false)
    }

    /// A resource that is passed to its async destructor.
    pub(crate) fn for_destructor(instance: Arc<dyn ResourceOwner>, value: Value) -> Self {
        let incarnation = instance.incarnation();
        Self::build(instance, incarnation, value, true)
    }

    fn build(
        instance: Arc<dyn ResourceOwner>,
        incarnation: u64,
        value: Value,
        destructor_called: bool,
    ) -> Self {
        Self(Arc::new(ResourceInner {
            instance,
            incarnation,
            value: Some(value),
            destructor_called: AtomicBool::new(destructor_called),
        }))
    }

    /// The incarnation of the service that created it.
    pub(crate) fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    pub(crate) fn value(&self) -> Option<Value> {
        self.0.value.clone()
    }

    /// Returns the object to the service. If other references exist at the moment, the object is
    /// shared, and dropping the last of them does not call the destructor.
    pub(crate) fn into_value(self) -> Option<Value> {
        match Arc::try_unwrap(self.0) {
            Ok(mut owned) => owned.value.take(),
            Err(shared) => {
                shared.destructor_called.store(true, Ordering::Relaxed);
                shared.value.clone()
            }
        }
    }
}

impl Drop for ResourceInner {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            Arc::clone(&self.instance).discard(DroppedResource {
                value,
                incarnation: self.incarnation,
                destructor_called: *self.destructor_called.get_mut(),
            });
        }
    }
}

// SAFETY: resources have no other type.
unsafe impl HandleObject for ResourceInner {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::Resource
    }

    /// Dropping the reference of the table is enough.
    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {}
}

impl Resource {
    /// Inserts it into the handle table.
    ///
    /// # Errors
    /// `overloaded`: too many handles are open.
    pub(crate) fn insert(self) -> Result<u64, Failure> {
        handles::insert(Kind::Resource, self.0)
    }
}

fn expect_resource(
    found: Result<Arc<ResourceInner>, Kind>,
    handle: Handle,
) -> Result<Resource, Failure> {
    let inner = found.map_err(|other| {
        let (number, kind) = (handle.0, other.name());
        Code::Argument.because(format!("handle {number:#x} is {kind}, not a resource"))
    })?;
    Ok(Resource(inner))
}

/// Checks that the resource belongs to the current incarnation of this instance.
fn check(resource: &Resource, instance: &dyn ResourceOwner) -> Result<(), Failure> {
    if !ptr::addr_eq(Arc::as_ptr(&resource.0.instance), instance) {
        return Err(Code::Argument.because("the resource belongs to another client"));
    }
    if resource.incarnation() != instance.incarnation() {
        return Err(Code::Stale.because("the service was restarted since the resource was made"));
    }
    Ok(())
}

/// The resource of a handle, after the checks that every use of it needs.
fn find(instance: &dyn ResourceOwner, handle: Handle) -> Result<Resource, Failure> {
    let found = handles::with(handle.0, |entry| Some(entry.get(Kind::Resource)))?;
    let resource = expect_resource(found, handle)?;
    check(&resource, instance)?;
    Ok(resource)
}

fn other_type() -> Failure {
    Code::Argument.because("the resource has another type")
}

fn downcast<R: Any + Send + Sync>(value: Option<Value>) -> Result<Arc<R>, Failure> {
    value
        .and_then(|value| value.downcast().ok())
        .ok_or_else(other_type)
}

/// The object of a handle.
///
/// # Errors
/// `stale`, `argument`.
pub(crate) fn borrow<R: Any + Send + Sync>(
    instance: &dyn ResourceOwner,
    handle: Handle,
) -> Result<Arc<R>, Failure> {
    downcast(find(instance, handle)?.value())
}

/// Calls `f` with the object of a handle. No other reference to the object is made, so that it is
/// dropped in a turn even if the handle is closed meanwhile.
///
/// # Errors
/// The errors of [`borrow`].
pub(crate) fn with_object<R: Any + Send + Sync, T>(
    instance: &dyn ResourceOwner,
    handle: Handle,
    f: impl FnOnce(&R) -> T,
) -> Result<T, Failure> {
    let resource = find(instance, handle)?;
    let object = resource
        .0
        .value
        .as_ref()
        .and_then(|value| value.downcast_ref());
    object.map(f).ok_or_else(other_type)
}

/// Calls `f` with the object of a handle if it is of this type, whatever it belongs to. As with
/// [`with_object`], no other reference to the object is made.
pub(crate) fn with_any_object<R: Any + Send + Sync>(handle: Handle, f: impl FnOnce(&R)) {
    let found = handles::with(handle.0, |entry| Some(entry.get(Kind::Resource)));
    if let Ok(Ok(inner)) = found {
        let inner: Arc<ResourceInner> = inner;
        if let Some(object) = inner.value.as_ref().and_then(|it| it.downcast_ref()) {
            f(object);
        }
    }
}

/// Removes the object of a handle from the table. The handle is stale afterwards.
///
/// # Errors
/// The errors of [`borrow`]. The handle stays valid in that case.
pub(crate) fn own<R: Any + Send + Sync>(
    instance: &dyn ResourceOwner,
    handle: Handle,
) -> Result<Arc<R>, Failure> {
    with_object(instance, handle, |_: &R| ())?;
    let removed = handles::remove(handle.0)?;
    downcast(expect_resource(removed.get(Kind::Resource), handle)?.into_value())
}
