//! Host calls: receiving and answering them.

use thalweg_port::{Code, answer_host_call};

use crate::abi::{TwError, TwHandle};
use crate::error::{argument, enter};
use crate::handles::{find_client, find_port};
use crate::pointers::{message, out};

pub(crate) unsafe extern "C" fn client_set_host(
    client: TwHandle,
    port: TwHandle,
    token: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` and `out` require; also in all
    // functions below.
    unsafe {
        enter(error, || {
            let client = find_client(client)?;
            match port {
                0 => client.set_host_to_caller(token),
                port => client.set_host_port(&find_port(port)?, token),
            }
        })
    }
}

pub(crate) unsafe extern "C" fn host_call_answer(
    call: TwHandle,
    code: u32,
    data: *const u8,
    data_size: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `client_set_host`; `data` has `data_size` bytes.
    unsafe {
        enter(error, || {
            let code = Code::from_number(code)
                .ok_or_else(|| argument(format!("{code} is not the code of an outcome")))?;
            // A text may be empty, and its pointer null.
            let data = match data_size {
                0 => &[],
                size => message(data, size)?,
            };
            answer_host_call(call, code, data)
        })
    }
}

pub(crate) unsafe extern "C" fn host_call_deadline(
    call: TwHandle,
    deadline_ns: *mut u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `client_set_host`.
    unsafe {
        enter(error, || {
            *out(deadline_ns, "deadline_ns")? = thalweg_port::host_call_deadline(call)?;
            Ok(())
        })
    }
}
