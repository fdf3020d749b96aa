//! Handles as pointers.
//!
//! ```text
//!   63    62   61 .. 56   55 .. 24     23 .. 0
//!   0     1    0          generation   index
//! ```
//!
//! Bit 62 is not in any address of a process: those have at most 57 bits. Go's garbage collector ends
//! the process if it finds a pointer into its own heap, where no object is. A handle alone
//! can look like one: Go's heap begins at 0xc0 << 32, the 192nd generation of handle 0.

use std::ffi::c_void;

use thalweg::port::{Code, Failure};

/// An opaque pointer of the foreign library.
pub type Pointer = *mut c_void;

const MARK: u64 = 1 << 62;
const INDEX_BITS: u32 = 24;
const INDEX: u64 = (1 << INDEX_BITS) - 1;

const _: () = assert!(size_of::<Pointer>() == 8, "a handle has 64 bits");

/// The pointer for a handle.
///
/// # Errors
/// `overloaded`: its index is too large. A process has at most 2^24 handles, but the indices of a
/// process that was forked begin after those of its parent.
pub(crate) fn to_pointer(handle: u64) -> Result<Pointer, Failure> {
    let (generation, index) = (handle >> 32, handle & u64::from(u32::MAX));
    if index > INDEX {
        return Err(Code::Overloaded.because("the parent process had too many handles"));
    }
    let address = MARK | generation << INDEX_BITS | index;
    Ok(std::ptr::without_provenance_mut(address as usize))
}

/// The handle of a pointer. Every other pointer gives 0, which is no handle.
#[must_use]
pub fn to_handle(pointer: Pointer) -> u64 {
    let address = pointer.addr() as u64;
    if address >> 56 != MARK >> 56 {
        return 0;
    }
    (address >> INDEX_BITS & u64::from(u32::MAX)) << 32 | address & INDEX
}

#[cfg(test)]
mod tests {
    use super::{Pointer, to_handle, to_pointer};

    #[test]
    fn handle_is_found_again_and_is_no_address() {
        for handle in [1 << 32, 0xc0 << 32 | 5, u64::MAX << 32 | 0x00ff_ffff] {
            let pointer = to_pointer(handle).unwrap();
            assert_eq!(to_handle(pointer), handle);
            assert!(pointer.addr() > 1 << 57);
        }
    }

    #[test]
    fn index_beyond_24_bits_is_refused() {
        assert!(to_pointer(1 << 32 | 1 << 24).is_err());
    }

    #[test]
    fn other_pointer_is_no_handle() {
        let local = 7;
        for address in [0, 1, (&raw const local).addr(), usize::MAX, 1 << 63] {
            assert_eq!(
                to_handle(std::ptr::without_provenance_mut(address) as Pointer),
                0
            );
        }
    }
}
