//! The generic Python package: opens a Thalweg library, calls it, and reads its streams.
//!
//! It knows the table of `thalweg.h` and no service. A generated package describes its types and
//! methods once, when it is imported (`describe`). From then on, a call is one native function.
//!
//! | concern | file |
//! | --- | --- |
//! | a library, and handles of it | `library`, `handle`, `client`, `resource` |
//! | guests | `guest`, `reload` |
//! | what libraries report | `log_queue`, `counters` |
//! | one process, one interpreter | `fork`, `interpreter`, `gil` |
//! | from values to messages and back | `describe`, `kind`, `encode`, `decode`, `message`, `results`, `cbor` |
//! | calls | `package`, `method`, `submission`, `completion`; sync: `thread_port`; asyncio: `loop_port`, `pending_call`, `awaitable`, `armed`, `together` |
//! | streams as parameters | `upstream` |
//! | streams | `reader`, `batch`, `stats`, `view`, `columns`, `arrow`, `arrow_data`, `arrow_stream`; sync: `stream`; asyncio: `async_stream` |

mod armed;
mod arrow;
mod arrow_data;
mod arrow_stream;
mod async_stream;
mod awaitable;
mod batch;
mod cbor;
mod client;
mod columns;
mod completion;
mod counters;
mod decode;
mod describe;
mod encode;
mod errors;
mod fork;
mod function_info;
mod gil;
mod guest;
mod handle;
mod host;
mod inline;
mod interpreter;
mod kind;
mod library;
mod log_queue;
mod loop_port;
mod message;
mod method;
mod owned;
mod package;
mod pending_call;
mod raw_type;
mod reader;
mod reload;
mod resource;
mod results;
mod stats;
mod stream;
mod submission;
mod thread_port;
mod together;
mod upstream;
mod view;

use pyo3::prelude::*;

/// The native half of `thalweg`.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    interpreter::claim(py)?;
    fork::watch();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ABI", thalweg_capi::abi::TW_ABI)?;
    describe::register(module)?;
    module.add_function(wrap_pyfunction!(view::field, module)?)?;
    module.add("View", view::class(py)?)?;
    module.add("Field", view::field_class(py)?)?;
    module.add("Awaitable", awaitable::class(py)?)?;
    module.add_class::<package::Package>()?;
    module.add_class::<method::Method>()?;
    module.add_class::<client::Client>()?;
    module.add_class::<host::HostCall>()?;
    module.add_class::<upstream::Writer>()?;
    module.add_class::<resource::Resource>()?;
    module.add_class::<owned::OwnedStream>()?;
    module.add_class::<owned::OwnedFuture>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<async_stream::AsyncStream>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<together::Together>()?;
    module.add_class::<stats::StreamStats>()?;
    module.add_class::<log_queue::LogQueue>()?;
    module.add_function(wrap_pyfunction!(counters::counters, module)?)?;
    module.add_function(wrap_pyfunction!(reload::reload, module)?)?;
    Ok(())
}
