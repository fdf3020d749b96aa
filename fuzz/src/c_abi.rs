//! Passes any bytes as the arguments of any function of the conformance library, through its C
//! table. The call must be answered or fail, and a valid call after it must succeed.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::OnceLock;

use thalweg_capi::abi::{
    TW_ABI, TW_ARGUMENT, TW_ERROR, TW_FOREVER, TW_OK, TW_STALE, TwBatch, TwCompletion, TwHandle,
    TwMethod, TwSubmission, TwTable,
};
// Links the library that exports the symbol.
use thalweg_conformance as _;

unsafe extern "C" {
    fn tw_library(abi: u32) -> *const TwTable;
}

/// Functions that are skipped, because they end late or panic on purpose.
const LEFT_OUT: &[&str] = &["never", "sleep", "panic", "panic-later", "breaks", "latest"];

struct Host {
    table: &'static TwTable,
    client: TwHandle,
    port: TwHandle,
    /// The numbers of the functions under test.
    methods: Vec<u32>,
    /// The number of `nothing`, and the message of its parameters.
    good: (u32, Vec<u8>),
}

fn methods(table: &'static TwTable) -> &'static [TwMethod] {
    // SAFETY: a table has `method_count` methods, which live as long as the table.
    unsafe { std::slice::from_raw_parts(table.methods, table.method_count as usize) }
}

fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| {
        // SAFETY: a table lives as long as the process.
        let table = unsafe { &*tw_library(TW_ABI) };
        let named = |method: &TwMethod| {
            // SAFETY: a name is constant and ends with NUL.
            let name = unsafe { CStr::from_ptr(method.name) }
                .to_str()
                .expect("a name");
            name.split_once('.').expect("interface.name").1
        };
        let all = || (0..).zip(methods(table));
        let tried = all().filter(|(_, method)| !LEFT_OUT.contains(&named(method)));
        let nothing = all().find(|(_, method)| named(method) == "nothing");
        let (number, method) = nothing.expect("it is there");
        let words = [16, method.params as u32, 0, 16];
        let (mut client, mut port) = (0, 0);
        // SAFETY: both pointers refer to local variables; the error may be null.
        unsafe {
            assert_eq!((table.client_open)(&raw mut client, null_mut()), TW_OK);
            assert_eq!((table.port_open)(2, &raw mut port, null_mut()), TW_OK);
        }
        Host {
            table,
            client,
            port,
            methods: tried.map(|(number, _)| number).collect(),
            good: (
                number,
                words
                    .iter()
                    .flat_map(|word: &u32| word.to_le_bytes())
                    .collect(),
            ),
        }
    })
}

/// The first byte selects the function. In the second byte, bit 0 stores the size and bit 1 the
/// layout into the message, because random bytes rarely match them.
pub fn c_abi(data: &[u8]) {
    let [method, mode, rest @ ..] = data else {
        return;
    };
    let host = host();
    let method = host.methods[usize::from(*method) % host.methods.len()];
    // Exactly as long as the arguments, so that the sanitizer detects reads beyond the end.
    let mut arguments: Box<[u8]> = rest.into();
    let size = arguments.len() as u32;
    if mode & 1 != 0
        && let Some(place) = arguments.get_mut(..4)
    {
        place.copy_from_slice(&size.to_le_bytes());
    }
    if mode & 2 != 0
        && let Some(place) = arguments.get_mut(4..8)
    {
        let layout = methods(host.table)[method as usize].params as u32;
        place.copy_from_slice(&layout.to_le_bytes());
    }
    let submission = |token, method, arguments: &[u8]| TwSubmission {
        token,
        client: host.client,
        method,
        flags: 0,
        args: arguments.as_ptr(),
        args_size: arguments.len() as u64,
        deadline_ns: TW_FOREVER,
        call: 0,
    };
    let (good, nothing) = &host.good;
    let mut batch = [
        submission(0, method, &arguments),
        submission(1, *good, nothing),
    ];
    let mut accepted = 0;
    // SAFETY: two submissions, whose arguments live until the end of this function. The other
    // pointers refer to local variables.
    let code = unsafe {
        (host.table.submit)(
            host.port,
            batch.as_mut_ptr(),
            2,
            &raw mut accepted,
            null_mut(),
        )
    };
    assert_eq!(
        (code, accepted),
        (TW_OK, 2),
        "arguments are looked at by the service"
    );
    let mut codes = [None; 2];
    while codes.contains(&None) {
        let mut completion = std::mem::MaybeUninit::<TwCompletion>::uninit();
        let mut count = 0;
        // SAFETY: there is space for one completion. A completion is read only if it was counted,
        // and is released once.
        unsafe {
            assert_eq!(
                (host.table.port_wait)(host.port, TW_FOREVER, null_mut()),
                TW_OK
            );
            let place = completion.as_mut_ptr();
            assert_eq!(
                (host.table.port_reap)(host.port, place, 1, &raw mut count, null_mut()),
                TW_OK
            );
            if count == 1 {
                let completion = &mut *place;
                let told = codes[completion.token as usize].replace(completion.code);
                assert_eq!(told, None, "a call ends once");
                read(host.table, completion);
                (host.table.release)(completion);
            }
        }
    }
    assert_eq!(codes[1], Some(TW_OK), "the good call is answered");
    let known = [TW_OK, TW_ERROR, TW_ARGUMENT, TW_STALE];
    assert!(
        known.iter().any(|code| codes[0] == Some(*code)),
        "{codes:?}"
    );
}

/// Takes the handle out of the result, if there is one, and checks whether a stream has records.
fn read(table: &TwTable, completion: &mut TwCompletion) {
    let (mut handle, mut batch) = (0, std::mem::MaybeUninit::<TwBatch>::uninit());
    // SAFETY: the completion has not been released, and the pointers refer to local variables. A
    // handle of another kind returns an error.
    unsafe {
        if (table.take_handle)(completion, 0, &raw mut handle, null_mut()) != TW_OK {
            return;
        }
        match (table.stream_acquire)(handle, 8, 0, batch.as_mut_ptr(), null_mut()) {
            TW_ARGUMENT => {
                assert_eq!((table.resource_drop)(handle, null_mut()), TW_OK);
            }
            code => {
                if code == TW_OK {
                    let count = (*batch.as_ptr()).count;
                    assert_eq!((table.stream_release)(handle, count, null_mut()), TW_OK);
                }
                assert_eq!((table.stream_close)(handle, null_mut()), TW_OK);
            }
        }
    }
}
