//! What a call and its client need of a stream.

use crate::code::Failure;

/// An object that ends with a call or with its client.
pub(crate) trait EndStream: Send + Sync {
    fn end(&self, why: Failure);
}
