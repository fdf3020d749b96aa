//! Concurrent reaping, which a host cannot cause reliably.

use std::ptr::null_mut;

use thalweg_capi::abi::{TW_ARGUMENT, TW_OK, TwCompletion, TwError};
use thalweg_capi::{Export, Library};
use thalweg_port::{Incoming, Object, Package, QueueLimits, Service, find};

struct Nothing;

impl Service for Nothing {
    const PACKAGE: &'static Package = &Package {
        name: "test:nothing",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[],
    };

    fn dispatch(&mut self, _: Incoming) {}
}

struct Exported;

impl Export for Exported {
    type Service = Nothing;

    fn make() -> Nothing {
        Nothing
    }
}

static LIBRARY: Library = Library::new::<Exported>();

#[test]
fn second_reaper_is_refused() {
    let table = LIBRARY.table();
    let (mut port, mut count) = (0, 7);
    // SAFETY: the handle is a local variable, and the error pointer may be null.
    let opened = unsafe { (table.port_open)(1, &raw mut port, null_mut()) };
    assert_eq!(opened, TW_OK);
    let mut completion = std::mem::MaybeUninit::<TwCompletion>::uninit();
    let mut error = std::mem::MaybeUninit::<TwError>::uninit();
    let mut reap = || {
        // SAFETY: there is space for one completion, and all pointers are to local variables.
        unsafe {
            (table.port_reap)(
                port,
                completion.as_mut_ptr(),
                1,
                &raw mut count,
                error.as_mut_ptr(),
            )
        }
    };
    let Ok(Object::Port(core)) = find(port) else {
        panic!("{port:#x} is a port");
    };
    let first = core.reap().unwrap();
    assert_eq!(reap(), TW_ARGUMENT);
    drop(first);
    assert_eq!(reap(), TW_OK);
    assert_eq!(count, 0);
    // SAFETY: the error pointer may be null.
    let closed = unsafe { (table.port_close)(port, null_mut()) };
    assert_eq!(closed, TW_OK);
}
