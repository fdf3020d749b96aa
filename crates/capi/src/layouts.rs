//! Callers that were built for another version of the package.

use std::ffi::CStr;

use thalweg_port::{Failure, FunctionSchema, Package, Service, check_compatible};

use crate::abi::{TwError, TwHandle, TwMethod};
use crate::error::{argument, enter};
use crate::export::Export;
use crate::handles::find_client;

/// The type of `tw_table.client_set_layouts`.
pub type ClientSetLayouts =
    unsafe extern "C" fn(TwHandle, *const TwMethod, u32, *const TwMethod, u32, *mut TwError) -> u32;

/// The caller's methods or host imports.
///
/// # Safety
/// `methods` is null or has `count` entries. Each name is NUL-terminated, and each description is
/// null or has `description_size` bytes.
unsafe fn schemas<'a>(
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
    // SAFETY: the caller guarantees it.
    let methods = unsafe { std::slice::from_raw_parts(methods, count as usize) };
    let schemas = methods.iter().map(|method| {
        if method.name.is_null() {
            return Err(argument(format!("a name of {what} is a null pointer")));
        }
        // SAFETY: the caller guarantees it.
        let name = unsafe { CStr::from_ptr(method.name) };
        let description = match method.description.is_null() {
            true => &[],
            // SAFETY: the caller guarantees it.
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
    schemas.collect()
}

pub(crate) unsafe extern "C" fn client_set_layouts<E: Export>(
    client: TwHandle,
    methods: *const TwMethod,
    method_count: u32,
    imports: *const TwMethod,
    import_count: u32,
    error: *mut TwError,
) -> u32 {
    let (methods, imports) = ((methods, method_count), (imports, import_count));
    // SAFETY: thalweg.h requires of the caller what `enter` and `set_layouts` require.
    unsafe {
        enter(error, || {
            set_layouts(E::Service::PACKAGE, client, methods, imports)
        })
    }
}

/// What `tw_table.client_set_layouts` does in the table of this package.
///
/// # Errors
/// `version`, with the first difference; `argument`, `stale`.
///
/// # Safety
/// The pointers are null, or valid for the number of entries next to them; the names and descriptions
/// are as in `tw_method`.
pub unsafe fn set_layouts(
    package: &'static Package,
    client: TwHandle,
    (methods, method_count): (*const TwMethod, u32),
    (imports, import_count): (*const TwMethod, u32),
) -> Result<(), Failure> {
    // SAFETY: the caller guarantees what `schemas` requires.
    let (methods, imports) = unsafe {
        (
            schemas(methods, method_count, "methods")?,
            schemas(imports, import_count, "imports")?,
        )
    };
    match client {
        0 => check_compatible(package, &methods, &imports),
        client => find_client(client)?.set_caller_schema(&methods, &imports),
    }
}
