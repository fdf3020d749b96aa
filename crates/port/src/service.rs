//! The traits that generated code implements for a service.

use std::any::Any;

use crate::incoming::Incoming;
use crate::inline::Inline;
use crate::package::Package;

/// A service, as the core sees it. Generated code implements it on top of the trait that the author
/// implements.
pub trait Service: Send + 'static {
    /// The package that it implements.
    const PACKAGE: &'static Package;

    /// Serves one call, on the instance's actor.
    fn dispatch(&mut self, incoming: Incoming);

    /// The number of the async destructor of this value's resource type, if it has one.
    fn destructor(value: &(dyn Any + Send + Sync)) -> Option<u32> {
        let _ = value;
        None
    }

    /// Creates the object that serves the inline methods. Called once per instance, on the thread
    /// of the first inline call. `None` if there are no inline methods.
    fn inline() -> Option<Box<dyn Inline>> {
        None
    }
}

/// A type-erased service.
pub(crate) trait Dispatch: Send {
    fn dispatch(&mut self, incoming: Incoming);
    fn destructor(&self, value: &(dyn Any + Send + Sync)) -> Option<u32>;

    /// Called in a turn that looks for work beside the calls. Returns when to call it again at the
    /// latest.
    fn attend(&mut self) -> Option<u64> {
        None
    }
}

impl<S: Service> Dispatch for S {
    fn dispatch(&mut self, incoming: Incoming) {
        Service::dispatch(self, incoming);
    }

    fn destructor(&self, value: &(dyn Any + Send + Sync)) -> Option<u32> {
        S::destructor(value)
    }
}
