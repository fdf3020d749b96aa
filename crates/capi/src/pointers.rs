//! Checks of the pointers that a caller passes.

use thalweg_port::Failure;

use crate::error::argument;

/// The target of a pointer for a result.
///
/// # Errors
/// `argument`: it is null.
///
/// # Safety
/// `pointer` is null, or valid for writes and used by no other thread.
pub unsafe fn out<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller guarantees that it is null or valid.
    unsafe { pointer.as_mut() }.ok_or_else(|| argument(format!("{name} is a null pointer")))
}

/// A message of `size` bytes.
///
/// # Errors
/// `argument`: it is null, or the size is beyond what a message can have.
///
/// # Safety
/// `data` is null, or points to `size` bytes that no thread writes to.
pub unsafe fn message<'a>(data: *const u8, size: u64) -> Result<&'a [u8], Failure> {
    if data.is_null() {
        return Err(argument("the message is a null pointer"));
    }
    // A message has its size in a u32.
    let size =
        u32::try_from(size).map_err(|_| argument("the size is beyond what a message can have"))?;
    // SAFETY: the caller guarantees it.
    Ok(unsafe { std::slice::from_raw_parts(data, size as usize) })
}

/// `size` bytes of any kind.
///
/// # Errors
/// `argument`: the pointer is null, or the size is larger than memory can be.
///
/// # Safety
/// `data` is null, or points to `size` bytes that no thread writes to.
pub unsafe fn bytes<'a>(data: *const u8, size: u64, name: &str) -> Result<&'a [u8], Failure> {
    if data.is_null() {
        return Err(argument(format!("{name} is a null pointer")));
    }
    let size = isize::try_from(size)
        .map_err(|_| argument(format!("{name} has {size} bytes, more than are possible")))?;
    // SAFETY: the caller guarantees it.
    Ok(unsafe { std::slice::from_raw_parts(data, size as usize) })
}

/// Writes a value to a caller whose version of the type has `size` bytes. Fields are only added at
/// the end of such a type: those that the caller does not know are left out, and those that only the
/// caller knows are 0. A type of this kind has no padding.
///
/// # Errors
/// `argument`: `to` is null.
///
/// # Safety
/// `to` is null, or valid for writes of `size` bytes and used by no other thread.
pub unsafe fn write_sized<T: Copy>(from: &T, to: *mut T, size: u32) -> Result<(), Failure> {
    if to.is_null() {
        return Err(argument("out is a null pointer"));
    }
    let written = size_of::<T>().min(size as usize);
    let (from, to) = (std::ptr::from_ref(from).cast::<u8>(), to.cast::<u8>());
    // SAFETY: the caller guarantees it.
    unsafe {
        to.copy_from_nonoverlapping(from, written);
        to.add(written).write_bytes(0, size as usize - written);
    }
    Ok(())
}
