//! A resource as the table of handles has it: an object of the service, with whose it is.
//!
//! Its destructor is the service's code. So it runs on the instance's actor, in a turn, whichever thread lets go of the handle last.

use std::any::Any;
use std::sync::Arc;

use crate::instance::Instance;

/// An object of the service.
pub(crate) type Value = Arc<dyn Any + Send + Sync>;

/// An object of the service, with whose it is.
#[derive(Clone)]
pub struct Resource(Arc<Owned>);

struct Owned {
    instance: Arc<Instance>,
    incarnation: u64,
    /// Gone once it is the service's again.
    value: Option<Value>,
}

impl Resource {
    pub(crate) fn new(instance: &Arc<Instance>, value: Value) -> Self {
        Self(Arc::new(Owned {
            instance: Arc::clone(instance),
            incarnation: instance.incarnation(),
            value: Some(value),
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

    /// For the service, which has it only once if nobody else names it just now.
    pub(crate) fn into_value(self) -> Option<Value> {
        match Arc::try_unwrap(self.0) {
            Ok(mut owned) => owned.value.take(),
            Err(shared) => shared.value.clone(),
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.instance.discard(value);
        }
    }
}
