//! Closing an instance that is not used any more.

use std::sync::Arc;

use super::Instance;
use crate::stream::Guard;

/// Closes the instance when the last client, call, stream and resource that refers to it is
/// dropped.
#[derive(Debug)]
pub(crate) struct InstanceGuard(Arc<Instance>);

impl InstanceGuard {
    pub(crate) fn new(instance: Arc<Instance>) -> Self {
        Self(instance)
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.0
    }
}

impl Drop for InstanceGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Guard for InstanceGuard {}
