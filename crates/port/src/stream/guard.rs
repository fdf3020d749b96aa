//! What a reader needs of the client that it belongs to.

use std::fmt::Debug;

/// An object that keeps the client of a stream open as long as it exists.
pub(crate) trait Guard: Debug + Send + Sync {}
