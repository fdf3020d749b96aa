//! Conversion between messages and CBOR.

use thalweg_port::Code;
use thalweg_wire::cbor::{Untranslated, of_message, to_message};
use thalweg_wire::describe::Type;

use crate::abi::{TW_CBOR, TW_FLAT, TwError};
use crate::error::{argument, enter};
use crate::pointers::{bytes, out as target};

pub(crate) unsafe extern "C" fn transcode(
    description: *const u8,
    description_size: u64,
    to: u32,
    data: *const u8,
    data_size: u64,
    out: *mut u8,
    capacity: u64,
    size: *mut u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter`, `target` and `bytes` require, and that
    // `out` has capacity for `capacity` bytes.
    unsafe {
        enter(error, || {
            let size = target(size, "size")?;
            *size = 0;
            target(out, "out")?;
            let description = bytes(description, description_size, "description")?;
            let data = bytes(data, data_size, "data")?;
            let text = std::str::from_utf8(description)
                .map_err(|_| argument("the description is not UTF-8"))?;
            let ty = Type::parse(text).map_err(|error| argument(error.to_string()))?;
            let limit = usize::try_from(capacity).unwrap_or(usize::MAX);
            let made = match to {
                TW_CBOR => of_message(&ty, data, limit),
                TW_FLAT => to_message(&ty, data, limit),
                other => return Err(argument(format!("unknown format {other}"))),
            };
            let made = made.map_err(|error| match error {
                Untranslated::Limit => Code::Overloaded.because(error.to_string()),
                refused => argument(refused.to_string()),
            })?;
            out.copy_from_nonoverlapping(made.as_ptr(), made.len());
            *size = made.len() as u64;
            Ok(())
        })
    }
}
