//! A resource as the table of handles has it: an object of the service, with whose it is.
//!
//! Its destructor is the service's code. So it runs on the instance's actor, in a turn, whichever thread lets go of the handle last. Where it has an async
//! one, a method that takes the resource, letting go of the handle calls that, once: what is left when that is refused, or over, is dropped.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_wire::Handle;

use crate::call::CallCore;
use crate::code::{Code, Failure};
use crate::handles::{self, Object};
use crate::instance::Instance;

/// An object of the service.
pub(crate) type Value = Arc<dyn Any + Send + Sync>;

/// An object that nobody names any more.
pub(crate) struct DroppedResource {
    pub(crate) value: Value,
    /// Of the instance that made it.
    pub(crate) incarnation: u64,
    /// Its async destructor was called.
    pub(crate) destructor_called: bool,
}

/// An object of the service, with whose it is.
#[derive(Clone)]
pub struct Resource(Arc<Inner>);

struct Inner {
    instance: Arc<Instance>,
    incarnation: u64,
    /// Gone once it is the service's again.
    value: Option<Value>,
    /// The service has it again, or its async destructor was called.
    destructor_called: AtomicBool,
}

impl Resource {
    /// What a call made.
    pub(crate) fn new(call: &CallCore, value: Value) -> Self {
        Self::build(&call.instance, call.incarnation(), value, false)
    }

    /// For the call of its async destructor.
    pub(crate) fn for_destructor(instance: &Arc<Instance>, value: Value) -> Self {
        Self::build(instance, instance.incarnation(), value, true)
    }

    fn build(
        instance: &Arc<Instance>,
        incarnation: u64,
        value: Value,
        destructor_called: bool,
    ) -> Self {
        Self(Arc::new(Inner {
            instance: Arc::clone(instance),
            incarnation,
            value: Some(value),
            destructor_called: AtomicBool::new(destructor_called),
        }))
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.0.instance
    }

    /// Of the instance that made it.
    pub(crate) fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    pub(crate) fn value(&self) -> Option<Value> {
        self.0.value.clone()
    }

    /// For the service, which has it only once if nobody else names it just now; it is not ended by who lets go of it then.
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

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.instance.discard(DroppedResource {
                value,
                incarnation: self.incarnation,
                destructor_called: *self.destructor_called.get_mut(),
            });
        }
    }
}

fn expect_resource(object: Object, handle: Handle) -> Result<Resource, Failure> {
    match object {
        Object::Resource(resource) => Ok(resource),
        other => Err(Code::Argument.because(format!(
            "handle {:#x} is {}, not a resource",
            handle.0,
            other.kind()
        ))),
    }
}

/// Whether it is this instance's, as it is now.
fn check(resource: &Resource, instance: &Arc<Instance>) -> Result<(), Failure> {
    if !Arc::ptr_eq(resource.instance(), instance) {
        return Err(Code::Argument.because("the resource is another client's"));
    }
    if resource.incarnation() != instance.incarnation() {
        return Err(Code::Stale.because("the service was restarted since the resource was made"));
    }
    Ok(())
}

fn downcast<R: Any + Send + Sync>(value: Option<Value>) -> Result<Arc<R>, Failure> {
    value
        .and_then(|value| value.downcast().ok())
        .ok_or_else(|| Code::Argument.because("the resource is of another type"))
}

/// The object that a handle names.
///
/// # Errors
/// `stale`, `argument`.
pub(crate) fn borrow<R: Any + Send + Sync>(
    instance: &Arc<Instance>,
    handle: Handle,
) -> Result<Arc<R>, Failure> {
    let resource = expect_resource(handles::find(handle.0)?, handle)?;
    check(&resource, instance)?;
    downcast(resource.value())
}

/// The same, out of the table: the handle is stale from now on.
///
/// # Errors
/// As [`borrow`]; the handle is as it was then.
pub(crate) fn own<R: Any + Send + Sync>(
    instance: &Arc<Instance>,
    handle: Handle,
) -> Result<Arc<R>, Failure> {
    borrow::<R>(instance, handle)?;
    downcast(expect_resource(handles::remove(handle.0)?, handle)?.into_value())
}
