//! `libthalweg.so`: opens guests for programs that are not written in Rust.
//!
//! It is a crate of its own so that a program in Rust does not export these functions.

use std::ffi::{CStr, c_char};

use thalweg_capi::abi::{TW_ABI, TwError, TwTable};
use thalweg_capi::enter;
use thalweg_capi::error::argument;
use thalweg_capi::pointers::out;
use thalweg_port::{Code, Failure};

/// Opens a guest by its address: see `thalweg_guest.h`.
///
/// # Safety
/// `address` is null or NUL-terminated. `table` is null or valid for writes. `error` is null or points
/// to a `tw_error`.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_address_open(
    abi: u32,
    address: *const c_char,
    table: *mut *const TwTable,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        enter(error, || {
            let table = out(table, "table")?;
            *table = std::ptr::null();
            if abi != TW_ABI {
                return Err(Code::Version.because(format!(
                    "the program has abi {abi}, and libthalweg.so has abi {TW_ABI}"
                )));
            }
            let address = text(address)?.ok_or_else(|| argument("address is a null pointer"))?;
            *table = thalweg_guest::open_table(address)?;
            Ok(())
        })
    }
}

/// # Safety
/// `address` is null or NUL-terminated.
unsafe fn text<'a>(address: *const c_char) -> Result<Option<&'a str>, Failure> {
    if address.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller guarantees it.
    let address = unsafe { CStr::from_ptr(address) }.to_str();
    address
        .map(Some)
        .map_err(|_| argument("the address is not UTF-8"))
}

/// Replaces the library of a guest: see `thalweg_guest.h`.
///
/// # Safety
/// `address` is null or NUL-terminated. `error` is null or points to a `tw_error`.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_address_reload(
    table: *const TwTable,
    address: *const c_char,
    drain_deadline_ns: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the caller guarantees that the pointers are valid. The table is only compared.
    unsafe {
        enter(error, || {
            thalweg_guest::reload_table(table, text(address)?, drain_deadline_ns)
        })
    }
}

/// Closes what [`tw_address_open`] has opened.
///
/// # Safety
/// `error` is null or points to a `tw_error`.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_address_close(table: *const TwTable, error: *mut TwError) -> u32 {
    // SAFETY: the caller guarantees that `error` is valid. The table is only compared.
    unsafe { enter(error, || thalweg_guest::close_table(table)) }
}
