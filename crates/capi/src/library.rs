//! The table, and opening and closing clients.

use std::ffi::CString;
use std::sync::{Arc, OnceLock};

use thalweg_port::{Failure, Instance, Method, Object, Package, Service, find, insert, remove};
use thalweg_queue::clock;
use thalweg_wire::Shape;

use crate::abi::{
    TW_ABI, TW_METHOD_ASYNC, TW_METHOD_CAN_BLOCK, TW_METHOD_IDEMPOTENT, TW_METHOD_INLINE,
    TW_METHOD_NOTICES, TwError, TwHandle, TwMethod, TwTable,
};
use crate::error::{argument, enter, out};
use crate::{codec, hosts, panics, ports, streams, upstreams, versions};

/// What [`export!`](crate::export) implements.
pub trait Export: 'static {
    /// The service.
    type Service: Service;

    /// A new one.
    fn make() -> Self::Service;
}

/// A library's table, made when it is first asked for.
pub struct Library {
    package: &'static Package,
    client_open: unsafe extern "C" fn(*mut TwHandle, *mut TwError) -> u32,
    client_set_layouts: versions::ClientLayouts,
    table: OnceLock<TwTable>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Library").field(&self.package.name).finish()
    }
}

fn text(text: &str) -> *const std::ffi::c_char {
    // Names of packages and methods come from WIT, which has no NUL. The table lives as long as the process.
    CString::new(text).unwrap_or_default().into_raw()
}

/// The hash over what a service asks of its host, as generated code has it.
fn imports_layout(package: &Package) -> u64 {
    let line = |import: &Method| {
        let Method {
            name,
            params,
            ok,
            error,
            element,
            ..
        } = import;
        format!("{name} {params} {ok} {error} {element}")
    };
    match package.imports {
        [] => 0,
        imports => {
            let lines: Vec<_> = imports.iter().map(line).collect();
            Shape::hash_of(&lines.join("\n"))
        }
    }
}

/// What a table says of a method.
fn flags(package: &Package, method: &Method) -> u32 {
    let bit = |is: bool, bit: u32| if is { bit } else { 0 };
    bit(method.is_async, TW_METHOD_ASYNC)
        | bit(method.options.is_inline, TW_METHOD_INLINE)
        | bit(method.options.is_idempotent, TW_METHOD_IDEMPOTENT)
        | bit(method.options.notice_ns > 0, TW_METHOD_NOTICES)
        | bit(package.bounds.waits, TW_METHOD_CAN_BLOCK)
}

impl Library {
    /// Of a service.
    pub const fn new<E: Export>() -> Self {
        Self {
            package: <E::Service as Service>::PACKAGE,
            client_open: client_open::<E>,
            client_set_layouts: versions::client_set_layouts::<E>,
            table: OnceLock::new(),
        }
    }

    /// The table; the same one each time.
    pub fn table(&self) -> &TwTable {
        self.table.get_or_init(|| {
            panics::set_hook();
            let methods: Vec<TwMethod> = self
                .package
                .methods
                .iter()
                .map(|method| TwMethod {
                    name: text(method.name),
                    params: method.params,
                    ok: method.ok,
                    error: method.error,
                    element: method.element,
                    flags: flags(self.package, method),
                    description_size: method.description.len() as u32,
                    description: method.description.as_ptr(),
                })
                .collect();
            let methods = methods.leak();
            TwTable {
                abi: TW_ABI,
                size: size_of::<TwTable>() as u32,
                package: text(self.package.name),
                version: text(self.package.version),
                core: text(env!("CARGO_PKG_VERSION")),
                layout: self.package.layout,
                methods: methods.as_ptr(),
                method_count: methods.len() as u32,
                reserved: 0,
                now,
                client_open: self.client_open,
                client_close,
                port_open: ports::open,
                port_close: ports::close,
                port_fd: ports::fd,
                port_arm: ports::arm,
                port_wait: ports::wait,
                port_reap: ports::reap,
                release: ports::release,
                submit: ports::submit,
                cancel: ports::cancel,
                take_handle: ports::take_handle,
                resource_drop,
                stream_acquire: streams::acquire,
                stream_release: streams::release,
                stream_arm: streams::arm,
                stream_close: streams::close,
                transcode: codec::transcode,
                stream_subscribe: streams::subscribe,
                stream_join: streams::join,
                stream_fd: streams::fd,
                call_inline: ports::call_inline,
                client_set_host: hosts::client_set_host,
                host_call_answer: hosts::host_call_answer,
                host_call_deadline: hosts::host_call_deadline,
                stream_tee: streams::reader,
                stream_stats: streams::stats,
                stream_retain_batch: streams::keep,
                retained_batch_release: streams::retained_batch_release,
                stream_new: upstreams::new,
                stream_send: upstreams::send,
                stream_finish: upstreams::end,
                imports_layout: imports_layout(self.package),
                client_set_layouts: self.client_set_layouts,
                stream_error: streams::error,
            }
        })
    }
}

unsafe extern "C" fn now() -> u64 {
    clock::now()
}

unsafe extern "C" fn client_open<E: Export>(client: *mut TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: the header demands of the caller what `enter` and `out` demand.
    unsafe {
        enter(error, || {
            let client = out(client, "client")?;
            let instance = Instance::open(E::make, Instance::runtime()?);
            *client = insert(Object::Client(instance))?;
            Ok(())
        })
    }
}

unsafe extern "C" fn client_close(client: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: as in `client_open`.
    unsafe {
        enter(error, || {
            find_client(client)?.close();
            remove(client).map(drop)
        })
    }
}

unsafe extern "C" fn resource_drop(resource: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: as in `client_open`.
    unsafe {
        enter(error, || match find(resource)? {
            Object::Resource(_) => remove(resource).map(drop),
            other => Err(wrong(resource, &other, "a resource")),
        })
    }
}

pub(crate) fn wrong(handle: TwHandle, is: &Object, wanted: &str) -> Failure {
    argument(format!("handle {handle:#x} is {}, not {wanted}", is.kind()))
}

pub(crate) fn find_client(handle: TwHandle) -> Result<Arc<Instance>, Failure> {
    match find(handle)? {
        Object::Client(instance) => Ok(instance),
        other => Err(wrong(handle, &other, "a client")),
    }
}
