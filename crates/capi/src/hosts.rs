//! What a service asks of its host, as C sees it.

use thalweg_port::{Code, answer_host_call};

use crate::abi::{TwError, TwHandle};
use crate::error::{argument, enter, out};
use crate::library::find_client;
use crate::ports::{find_port, message};

pub(crate) unsafe extern "C" fn client_set_host(
    client: TwHandle,
    port: TwHandle,
    token: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the header demands of the caller what `enter` demands; so in every function here.
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
    // SAFETY: see `client_set_host`; and the header says that `data` has `data_size` bytes.
    unsafe {
        enter(error, || {
            let code = Code::from_number(code)
                .ok_or_else(|| argument(format!("{code} is no code of an ending")))?;
            // A text may be empty.
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
