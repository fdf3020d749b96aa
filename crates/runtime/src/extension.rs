//! A value that a layer above the scheduler keeps for each runtime. The scheduler stores it without
//! knowing its type.

use std::any::Any;
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct Extension(OnceLock<Box<dyn Any + Send + Sync>>);

impl Extension {
    /// Returns the value, which `make` creates at the first call. All calls use the same type.
    pub(crate) fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let value = self.0.get_or_init(|| Box::new(make()));
        value
            .downcast_ref()
            .expect("an extension has one owner, which uses one type")
    }
}
