//! The functions that a host needs to submit calls and to reap their completions, with the C
//! signatures of `thalweg.h`. Thalweg's are those of the table that a library exports; the peers
//! ([`super::table_peers`]) have the same signatures.

use std::ffi::CStr;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use thalweg_capi::abi::{
    TW_ABI, TW_OK, TwCompletion, TwError, TwHandle, TwLibraryFunction, TwSubmission, TwTable,
};

use crate::hosts;
use crate::problem::Problem;

type Open = unsafe extern "C" fn(*mut TwHandle, *mut TwError) -> u32;
type PortOpen = unsafe extern "C" fn(u32, *mut TwHandle, *mut TwError) -> u32;
type Close = unsafe extern "C" fn(TwHandle, *mut TwError) -> u32;
type Wait = unsafe extern "C" fn(TwHandle, u64, *mut TwError) -> u32;
type Reap = unsafe extern "C" fn(TwHandle, *mut TwCompletion, u32, *mut u32, *mut TwError) -> u32;
type Submit = unsafe extern "C" fn(TwHandle, *mut TwSubmission, u32, *mut u32, *mut TwError) -> u32;

/// The functions, which `thalweg.h` describes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names are those of the C table")]
pub struct Functions {
    pub client_open: Open,
    pub client_close: Close,
    pub port_open: PortOpen,
    pub port_close: Close,
    pub port_wait: Wait,
    pub port_reap: Reap,
    pub release: unsafe extern "C" fn(*mut TwCompletion),
    pub submit: Submit,
    /// The number of the called method, `lab.parity`.
    pub method: u32,
    /// The beginning of the names of the threads that serve calls.
    pub threads: &'static str,
}

/// The symbol of `crates/bench/service` that returns its table with a large mailbox.
const SYMBOL: &str = "lab_deep_library";
/// The method that every call calls.
const METHOD: &CStr = c"lab.parity";

/// The functions of the lab's library, which is opened as a file, as a foreign host does.
///
/// # Errors
/// The library was not built, or is another one.
pub fn thalweg() -> Result<Functions, Problem> {
    static OPENED: OnceLock<Functions> = OnceLock::new();
    if let Some(functions) = OPENED.get() {
        return Ok(*functions);
    }
    let path = hosts::library("thalweg-lab")?;
    let broken = |what: String| Problem::NotReady(format!("{}: {what}", path.display()));
    // SAFETY: the library has no initialisers besides those of the Rust standard library.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| broken(error.to_string()))?;
    // SAFETY: the lab's service exports the symbol with this type.
    let symbol: Symbol<TwLibraryFunction> =
        unsafe { library.get(SYMBOL) }.map_err(|error| broken(error.to_string()))?;
    // SAFETY: the function may be called with any number; the table is valid until the process
    // ends, because the library is never unloaded.
    let table: &'static TwTable = unsafe { &*symbol(TW_ABI) };
    std::mem::forget(library);
    // SAFETY: the table says how many methods there are, and each has a name.
    let mut methods = unsafe {
        let methods = std::slice::from_raw_parts(table.methods, table.method_count as usize);
        methods.iter().map(|method| CStr::from_ptr(method.name))
    };
    let method = methods
        .position(|name| name == METHOD)
        .ok_or_else(|| broken(format!("there is no {METHOD:?}")))?;
    Ok(*OPENED.get_or_init(|| Functions {
        client_open: table.client_open,
        client_close: table.client_close,
        port_open: table.port_open,
        port_close: table.port_close,
        port_wait: table.port_wait,
        port_reap: table.port_reap,
        release: table.release,
        submit: table.submit,
        method: method as u32,
        threads: "tw-",
    }))
}

/// Checks the code that a function returned.
///
/// # Errors
/// It is not `TW_OK`.
pub fn checked(what: &str, code: u32) -> Result<(), Problem> {
    match code {
        TW_OK => Ok(()),
        code => Err(Problem::Check(format!("{what} returned {code}"))),
    }
}
