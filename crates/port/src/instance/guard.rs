//! Closing an instance that is not used any more.

use std::any::Any;
use std::sync::Arc;

use super::Instance;
use crate::package::Package;
use crate::stream::Guard;

/// Closes the instance when the last client, call, stream and resource that refers to it is
/// dropped.
#[derive(Debug)]
pub(crate) struct InstanceGuard {
    instance: Arc<Instance>,
    /// The package that the client was compiled for.
    package: &'static Package,
    /// Dropped after the instance was closed.
    _opening: Option<Box<dyn Any + Send + Sync>>,
}

impl InstanceGuard {
    /// A guard of an instance whose client was compiled for the instance's own package.
    pub(crate) fn new(instance: Arc<Instance>) -> Self {
        Self {
            package: instance.package,
            instance,
            _opening: None,
        }
    }

    /// A guard of an instance whose client was compiled for `package`.
    pub(crate) fn of_opened(
        instance: Arc<Instance>,
        package: &'static Package,
        opening: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            instance,
            package,
            _opening: Some(opening),
        }
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    pub(crate) fn package(&self) -> &'static Package {
        self.package
    }
}

impl Drop for InstanceGuard {
    fn drop(&mut self) {
        self.instance.close();
    }
}

impl Guard for InstanceGuard {}
