//! Looking up handles of each kind.

use std::sync::Arc;

use thalweg_port::stream::{StreamCore, UpstreamCore};
use thalweg_port::{Failure, Instance, Object, Port, find};

use crate::abi::TwHandle;
use crate::error::argument;

pub(crate) fn find_client(handle: TwHandle) -> Result<Arc<Instance>, Failure> {
    match find(handle)? {
        Object::Client(instance) => Ok(instance),
        other => Err(wrong_kind(handle, &other, "a client")),
    }
}

pub(crate) fn find_port(handle: TwHandle) -> Result<Arc<Port>, Failure> {
    match find(handle)? {
        Object::Port(port) => Ok(port),
        other => Err(wrong_kind(handle, &other, "a port")),
    }
}

pub(crate) fn find_stream(handle: TwHandle) -> Result<Arc<StreamCore>, Failure> {
    match find(handle)? {
        Object::Stream(stream) => Ok(stream),
        other => Err(wrong_kind(handle, &other, "a stream")),
    }
}

pub(crate) fn find_stream_writer(handle: TwHandle) -> Result<Arc<UpstreamCore>, Failure> {
    match find(handle)? {
        Object::UpstreamWriter(stream) => Ok(stream),
        other => Err(wrong_kind(handle, &other, "a stream's writer")),
    }
}

/// The failure for a handle of another kind than `wanted`.
pub(crate) fn wrong_kind(handle: TwHandle, object: &Object, wanted: &str) -> Failure {
    argument(format!(
        "handle {handle:#x} is {}, not {wanted}",
        object.kind()
    ))
}
