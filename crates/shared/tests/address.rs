//! The library exports its functions, and they check their arguments. `bindings/c/tests/guests.c`
//! tests them with guests.

use std::ffi::{CString, c_char};
use std::path::PathBuf;

use libloading::Library;
use thalweg_capi::abi::{TW_ABI, TW_ARGUMENT, TW_STALE, TW_VERSION, TwError, TwTable};

type Open = unsafe extern "C" fn(u32, *const c_char, *mut *const TwTable, *mut TwError) -> u32;
type Reload = unsafe extern "C" fn(*const TwTable, *const c_char, u64, *mut TwError) -> u32;
type Close = unsafe extern "C" fn(*const TwTable, *mut TwError) -> u32;

fn library() -> Library {
    let program = std::env::current_exe().expect("a test has a path");
    let path: PathBuf = program.with_file_name("libthalweg_shared.so");
    // SAFETY: loading it runs nothing but the initialisers of Rust's standard library.
    unsafe { Library::new(path) }.expect("cargo builds the library with its tests")
}

fn no_error() -> TwError {
    TwError {
        code: 0,
        retryable: 0,
        message: [0; 248],
    }
}

fn text(error: &TwError) -> String {
    let bytes = error.message.iter().map(|byte| *byte as u8);
    String::from_utf8(bytes.take_while(|byte| *byte != 0).collect()).expect("it is UTF-8")
}

#[test]
fn wrong_arguments_are_refused() {
    let library = library();
    // SAFETY: thalweg_guest.h gives the symbols these types.
    let (open, reload, close) = unsafe {
        (
            library
                .get::<Open>(b"tw_address_open")
                .expect("it is exported"),
            library
                .get::<Reload>(b"tw_address_reload")
                .expect("it is exported"),
            library
                .get::<Close>(b"tw_address_close")
                .expect("it is exported"),
        )
    };
    let mut error = no_error();
    let mut table = std::ptr::null();
    for (abi, address, code, why) in [
        (TW_ABI + 1, "thread:x", TW_VERSION, "abi"),
        (TW_ABI, "", TW_ARGUMENT, "not the address"),
        (
            TW_ABI,
            "path/without/a/scheme.so",
            TW_ARGUMENT,
            "not the address",
        ),
        (TW_ABI, "thread:", TW_ARGUMENT, "no path"),
        (
            TW_ABI,
            "process:x",
            TW_ARGUMENT,
            "only guests in the process",
        ),
        (
            TW_ABI,
            "thread:/no/such/guest.so",
            TW_ARGUMENT,
            "/no/such/guest.so",
        ),
    ] {
        let address = CString::new(address).expect("it has no NUL");
        // SAFETY: all pointers are valid.
        let found = unsafe { open(abi, address.as_ptr(), &raw mut table, &raw mut error) };
        assert_eq!(found, code, "{address:?}");
        assert!(text(&error).contains(why), "{}", text(&error));
        assert!(table.is_null());
    }
    // SAFETY: null pointers are allowed.
    unsafe {
        let null = std::ptr::null();
        assert_eq!(
            open(TW_ABI, null, &raw mut table, std::ptr::null_mut()),
            TW_ARGUMENT
        );
        let address = c"thread:x".as_ptr();
        assert_eq!(
            open(TW_ABI, address, std::ptr::null_mut(), &raw mut error),
            TW_ARGUMENT
        );
        assert_eq!(close(null.cast(), &raw mut error), TW_STALE);
        assert_eq!(reload(null.cast(), null, 0, &raw mut error), TW_STALE);
        assert!(text(&error).contains("no guest"), "{}", text(&error));
        let wrong = c"process:x".as_ptr();
        let code = reload(null.cast(), wrong, 0, std::ptr::null_mut());
        assert_eq!(code, TW_ARGUMENT);
        let not_utf8 = c"thread:\xff".as_ptr();
        let code = reload(null.cast(), not_utf8, 0, &raw mut error);
        assert_eq!(code, TW_ARGUMENT);
        assert!(text(&error).contains("UTF-8"), "{}", text(&error));
    }
}
