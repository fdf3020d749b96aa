//! The table of a library, and opening and closing its clients.

use std::ffi::CString;
use std::sync::OnceLock;

use thalweg_port::{Instance, Method, Object, Package, Service, find, insert, remove};
use thalweg_queue::clock;
use thalweg_wire::Shape;

use crate::abi::{
    TW_ABI, TW_CBOR, TW_FLAT, TW_METHOD_ASYNC, TW_METHOD_BRIEF, TW_METHOD_CAN_BLOCK,
    TW_METHOD_CBOR, TW_METHOD_IDEMPOTENT, TW_METHOD_INLINE, TW_METHOD_NOTICES, TwError, TwHandle,
    TwMethod, TwTable,
};
use crate::error::{argument, enter};
use crate::export::Export;
use crate::handles::{find_client, wrong_kind};
use crate::layouts::ClientSetLayouts;
use crate::pointers::out;
use crate::{
    counters, host_calls, layouts, log_sink, panics, ports, stream_writers, streams, transcode,
};

/// The type of `tw_table.client_open`.
pub type ClientOpen = unsafe extern "C" fn(*mut TwHandle, *mut TwError) -> u32;

/// A library. Its table is built on first use.
pub struct Library {
    package: &'static Package,
    client_open: ClientOpen,
    client_set_layouts: ClientSetLayouts,
    table: OnceLock<TwTable>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Library").field(&self.package.name).finish()
    }
}

/// A C string for the table. It is never freed.
fn text(text: &str) -> *const std::ffi::c_char {
    // Names from WIT contain no NUL.
    CString::new(text).unwrap_or_default().into_raw()
}

/// The hash of all host imports, as in generated code.
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

/// The `flags` of a method in the table.
fn flags(package: &Package, method: &Method) -> u32 {
    let bit = |is: bool, bit: u32| if is { bit } else { 0 };
    bit(method.is_async, TW_METHOD_ASYNC)
        | bit(method.options.is_inline, TW_METHOD_INLINE)
        | bit(method.options.is_brief, TW_METHOD_BRIEF)
        | bit(method.options.is_idempotent, TW_METHOD_IDEMPOTENT)
        | bit(method.options.is_cbor, TW_METHOD_CBOR)
        | bit(method.options.notice_interval_ns > 0, TW_METHOD_NOTICES)
        | bit(package.limits.blocks_on_overflow, TW_METHOD_CAN_BLOCK)
}

/// The entries of functions in the table. They are never freed.
fn functions(all: &[Method], flags: impl Fn(&Method) -> u32) -> &'static [TwMethod] {
    let entry = |function: &Method| TwMethod {
        name: text(function.name),
        params: function.params,
        ok: function.ok,
        error: function.error,
        element: function.element,
        flags: flags(function),
        description_size: function.description.len() as u32,
        description: function.description.as_ptr(),
    };
    all.iter().map(entry).collect::<Vec<_>>().leak()
}

impl Library {
    /// A library that exports a service.
    pub const fn new<E: Export>() -> Self {
        Self {
            package: <E::Service as Service>::PACKAGE,
            client_open: client_open::<E>,
            client_set_layouts: layouts::client_set_layouts::<E>,
            table: OnceLock::new(),
        }
    }

    /// The table. Every call returns the same one.
    pub fn table(&self) -> &TwTable {
        self.table
            .get_or_init(|| new_table(self.package, self.client_open, self.client_set_layouts))
    }
}

/// A new table of a package. Its texts and arrays are never freed.
pub fn new_table(
    package: &'static Package,
    client_open: ClientOpen,
    client_set_layouts: ClientSetLayouts,
) -> TwTable {
    panics::set_hook();
    let methods = functions(package.methods, |method| flags(package, method));
    let imports = functions(package.imports, |_| 0);
    TwTable {
        abi: TW_ABI,
        size: size_of::<TwTable>() as u32,
        package: text(package.name),
        version: text(package.version),
        core: text(env!("CARGO_PKG_VERSION")),
        layout: package.layout,
        methods: methods.as_ptr(),
        method_count: methods.len() as u32,
        reserved: 0,
        now,
        client_open,
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
        transcode: transcode::transcode,
        stream_subscribe: streams::subscribe,
        stream_join: streams::join,
        stream_fd: streams::fd,
        call_inline: ports::call_inline,
        client_set_host: host_calls::client_set_host,
        host_call_answer: host_calls::host_call_answer,
        host_call_deadline: host_calls::host_call_deadline,
        stream_tee: streams::tee,
        stream_stats: streams::stats,
        stream_retain_batch: streams::retain_batch,
        retained_batch_release: streams::retained_batch_release,
        stream_new: stream_writers::new,
        stream_send: stream_writers::send,
        stream_finish: stream_writers::finish,
        imports_layout: imports_layout(package),
        client_set_layouts,
        stream_error: streams::error,
        imports: match imports {
            [] => std::ptr::null(),
            imports => imports.as_ptr(),
        },
        import_count: imports.len() as u32,
        reserved_imports: 0,
        client_set_format,
        release_all: ports::release_all,
        port_wake: ports::wake,
        log_set_sink: log_sink::set_sink,
        counters: counters::counters,
        log_set_port: log_sink::set_port,
        port_spin: ports::spin,
    }
}

unsafe extern "C" fn now() -> u64 {
    clock::now()
}

unsafe extern "C" fn client_open<E: Export>(client: *mut TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` and `out` require.
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
    // SAFETY: see `client_open`.
    unsafe {
        enter(error, || {
            find_client(client)?.close();
            remove(client).map(drop)
        })
    }
}

unsafe extern "C" fn client_set_format(client: TwHandle, format: u32, error: *mut TwError) -> u32 {
    // SAFETY: see `client_open`.
    unsafe {
        enter(error, || {
            let client = find_client(client)?;
            match format {
                TW_FLAT => Ok(()),
                TW_CBOR => client.set_cbor(),
                other => Err(argument(format!("unknown format {other}"))),
            }
        })
    }
}

unsafe extern "C" fn resource_drop(resource: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `client_open`.
    unsafe {
        enter(error, || match find(resource)? {
            Object::Resource(_) => remove(resource).map(drop),
            other => Err(wrong_kind(resource, &other, "a resource")),
        })
    }
}
