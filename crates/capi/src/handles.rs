//! Looking up handles of each kind.

use thalweg_port::{Failure, Object};

pub(crate) use thalweg_port::{find_client, find_port, find_stream, find_stream_writer};

use crate::abi::TwHandle;
use crate::error::argument;

/// The failure for a handle of another kind than `wanted`.
pub(crate) fn wrong_kind(handle: TwHandle, object: &Object, wanted: &str) -> Failure {
    argument(format!(
        "handle {handle:#x} is {}, not {wanted}",
        object.kind()
    ))
}
