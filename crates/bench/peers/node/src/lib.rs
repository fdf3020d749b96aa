//! The Node peer that uses napi-rs.

use napi_derive::napi;

/// An await that does nothing, on a tokio worker.
#[napi]
pub async fn nop() {}
