//! Callers of another version of the package, as C sees them.

use std::ffi::CStr;

use thalweg_port::{Failure, FunctionSchema, Service, check_compatible};

use crate::abi::{TwError, TwHandle, TwMethod};
use crate::error::{argument, enter};
use crate::library::{Export, find_client};

/// The type of `tw_table.client_set_layouts`.
pub(crate) type ClientLayouts =
    unsafe extern "C" fn(TwHandle, *const TwMethod, u32, *const TwMethod, u32, *mut TwError) -> u32;

/// Methods as the caller has them.
///
/// # Safety
/// `methods` is null or has `count` entries, each with a name that ends with NUL, and a description, or none, of the size that stands there.
unsafe fn known<'a>(
    methods: *const TwMethod,
    count: u32,
    what: &str,
) -> Result<Vec<FunctionSchema<'a>>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if methods.is_null() {
        return Err(argument(format!("{what} is a null pointer")));
    }
    // SAFETY: the caller's promise.
    let methods = unsafe { std::slice::from_raw_parts(methods, count as usize) };
    let known = methods.iter().map(|method| {
        if method.name.is_null() {
            return Err(argument(format!("a name of {what} is a null pointer")));
        }
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(method.name) };
        let description = match method.description.is_null() {
            true => &[],
            // SAFETY: the caller's promise.
            false => unsafe {
                std::slice::from_raw_parts(method.description, method.description_size as usize)
            },
        };
        let not_utf8 = |_| argument(format!("{what} are not UTF-8"));
        Ok(FunctionSchema {
            name: name.to_str().map_err(not_utf8)?,
            hashes: [method.params, method.ok, method.error, method.element],
            description: std::str::from_utf8(description).map_err(not_utf8)?,
        })
    });
    known.collect()
}

pub(crate) unsafe extern "C" fn client_set_layouts<E: Export>(
    client: TwHandle,
    methods: *const TwMethod,
    method_count: u32,
    imports: *const TwMethod,
    import_count: u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the header demands of the caller what `enter` and `known` demand.
    unsafe {
        enter(error, || {
            let methods = known(methods, method_count, "methods")?;
            let imports = known(imports, import_count, "imports")?;
            match client {
                0 => check_compatible(E::Service::PACKAGE, &methods, &imports),
                client => find_client(client)?.set_caller_schema(&methods, &imports),
            }
        })
    }
}
