//! Guests, which `libthalweg.so` opens and reloads.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use thalweg_capi::abi::{TW_ABI, TW_OK, TwError, TwTable};

use crate::errors;

/// The table of a guest. It stays open. Opening it again returns the same table.
///
/// # Errors
/// `OSError`: `libthalweg.so` cannot be loaded. The errors of `tw_address_open`.
pub fn open(py: Python<'_>, address: &str) -> PyResult<&'static TwTable> {
    type Open = unsafe extern "C" fn(u32, *const c_char, *mut *const TwTable, *mut TwError) -> u32;
    let address = text(address)?;
    py.detach(|| {
        // SAFETY: thalweg_guest.h gives the symbol this type.
        let open = unsafe { function::<Open>(c"tw_address_open")? };
        let (mut table, mut error) = (ptr::null(), errors::blank());
        // SAFETY: all pointers are ours.
        let code = unsafe { open(TW_ABI, address.as_ptr(), &raw mut table, &raw mut error) };
        match code {
            // SAFETY: the table has this layout, because the call passed its ABI, and is never freed.
            TW_OK => Ok(unsafe { &*table }),
            code => Python::attach(|py| Err(errors::from_table(py, code, &error))),
        }
    })
}

/// Replaces the library of a guest by the one at `address`, or at its own address.
///
/// # Errors
/// The errors of `tw_address_reload`.
pub fn reload(
    py: Python<'_>,
    table: &'static TwTable,
    address: Option<&str>,
    drain_deadline: u64,
) -> PyResult<()> {
    type Reload = unsafe extern "C" fn(*const TwTable, *const c_char, u64, *mut TwError) -> u32;
    let address = address.map(text).transpose()?;
    py.detach(|| {
        let address = address.as_deref().map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: thalweg_guest.h gives the symbol this type.
        let reload = unsafe { function::<Reload>(c"tw_address_reload")? };
        let mut error = errors::blank();
        // SAFETY: all pointers are ours.
        match unsafe { reload(table, address, drain_deadline, &raw mut error) } {
            TW_OK => Ok(()),
            code => Python::attach(|py| Err(errors::from_table(py, code, &error))),
        }
    })
}

fn text(address: &str) -> PyResult<CString> {
    CString::new(address).map_err(|_| PyOSError::new_err("the address of a guest has no NUL"))
}

/// A function of `libthalweg.so`, which stays loaded.
///
/// # Safety
/// The function has this type.
unsafe fn function<F: Copy>(name: &CStr) -> PyResult<F> {
    let (core, loaded) = load()?;
    let loaded = ManuallyDrop::new(loaded);
    // SAFETY: the caller guarantees it.
    let function = unsafe { loaded.get::<F>(name.to_bytes_with_nul()) };
    function
        .map(|function| *function)
        .map_err(|error| errors::not_loaded(&core, &error))
}

/// `libthalweg.so` and its path: the one of THALWEG_LIBRARY, or one that the process has loaded already, or
/// the one in this package, or one that the loader finds.
fn load() -> PyResult<(PathBuf, Library)> {
    let open = |path: &PathBuf, flags| {
        // SAFETY: loading runs the library's initialisers, which start nothing.
        unsafe { Library::open(Some(path), flags) }
    };
    let named = std::env::var_os("THALWEG_LIBRARY").filter(|path| !path.is_empty());
    let core = match named {
        Some(path) => PathBuf::from(path),
        None => {
            let name = PathBuf::from("libthalweg.so");
            if let Ok(loaded) = open(&name, RTLD_NOW | libc::RTLD_NOLOAD) {
                return Ok((name, loaded));
            }
            packaged().unwrap_or(name)
        }
    };
    match open(&core, RTLD_NOW | RTLD_LOCAL) {
        Ok(loaded) => Ok((core, loaded)),
        Err(error) => Err(errors::not_loaded(&core, &error)),
    }
}

/// The `libthalweg.so` next to this extension, if the package contains one.
fn packaged() -> Option<PathBuf> {
    let mut extension = MaybeUninit::<libc::Dl_info>::uninit();
    let address = packaged as *const c_void;
    // SAFETY: dladdr writes the struct if it returns another number than 0. Its text belongs to the
    // loader and stays valid, because an extension module is not unloaded.
    let path = unsafe {
        if libc::dladdr(address, extension.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(extension.assume_init().dli_fname)
    };
    let path = Path::new(OsStr::from_bytes(path.to_bytes())).with_file_name("libthalweg.so");
    path.is_file().then_some(path)
}
