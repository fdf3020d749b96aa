//! Whole messages: header, table of handles, root, tails.
//!
//! ```text
//!   0   u32 size       whole message
//!   4   u32 layout     low half of the root's hash
//!   8   u32 handles    how many
//!   12  u32 root       16 + 8 * handles
//!   16  u64 handles[]
//!   ..  root, then tails
//! ```

use crate::{
    Bytes, Checker, Decode, Encode, Encoder, Handle, MAX_SIZE, Malformed, NoRoom, Rule, memory,
};

/// Values of messages of at most this many bytes (one page) are made without a fallible allocation;
/// the standard library makes similar allocations anyway.
const SMALL: usize = 4096;

/// Bytes of the header.
pub const HEADER: u32 = 16;

/// Offset of the root in a message with this many handles.
pub const fn root(handles: u32) -> u32 {
    HEADER + 8 * handles
}

/// Writes `value` as a message into `buffer`. The header contains the low half of `layout`, the
/// hash of the value's type. The previous contents of `buffer` are discarded and its memory is
/// reused.
///
/// # Errors
/// The message is larger than [`MAX_SIZE`], or there is no memory for it; the contents of `buffer`
/// are then unspecified.
#[inline(always)]
pub fn encode_into<T: Encode + ?Sized>(
    value: &T,
    layout: u64,
    buffer: &mut Vec<u8>,
) -> Result<(), NoRoom> {
    let handles = match <T::As as Decode>::HAS_HANDLES {
        true => value.handles(false),
        false => 0,
    };
    if <T::As as Decode>::HAS_HANDLES {
        let fixed = root(handles) + <T::As as Decode>::SIZE;
        buffer.clear();
        let reserved = buffer.try_reserve(fixed as usize);
        reserved.map_err(|_| NoRoom {
            needed: Some(fixed),
        })?;
    }
    let mut encoder = Encoder::message(layout, handles, <T::As as Decode>::SIZE, buffer);
    value.encode(&mut encoder, root(handles));
    encoder.finish_message()
}

/// The same for a buffer that is passed by value and returned.
///
/// # Errors
/// The message is larger than [`MAX_SIZE`], or there is no memory for it; the buffer is dropped.
pub fn encode<T: Encode + ?Sized>(
    value: &T,
    layout: u64,
    mut buffer: Vec<u8>,
) -> Result<Vec<u8>, NoRoom> {
    encode_into(value, layout, &mut buffer)?;
    Ok(buffer)
}

/// A message whose header and table of handles are valid. [`view`](Message::view) checks its root.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    handles: u32,
}

/// Opens a message whose root has the type with the hash `layout`.
///
/// # Errors
/// The header is malformed, or the message has another type.
pub fn open(bytes: &[u8], layout: u64) -> Result<Message<'_>, Malformed> {
    let message = open_any(bytes)?;
    if Bytes::message(bytes).u32(4) != layout as u32 {
        return Err(Malformed {
            rule: Rule::Layout,
            at: 4,
        });
    }
    Ok(message)
}

/// Opens a message of any type, to read its handles.
///
/// # Errors
/// The header is malformed.
#[inline]
pub fn open_any(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let handles = check_header(bytes, bytes.len())?;
    Ok(Message { bytes, handles })
}

/// Like [`open_any`], for the first part of a message (see [`owned_of_parts`]) or a whole message.
///
/// # Errors
/// The header is malformed.
pub fn open_head(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let size = match bytes.first_chunk() {
        Some(size) => u32::from_le_bytes(*size) as usize,
        None => 0,
    };
    let handles = check_header(bytes, size.max(bytes.len()))?;
    Ok(Message { bytes, handles })
}

/// Checks the header of a message of `size` bytes that begins with `bytes`. Returns the number of
/// handles.
#[inline(always)]
fn check_header(bytes: &[u8], size: usize) -> Result<u32, Malformed> {
    let header = Bytes::message(bytes);
    if bytes.len() < HEADER as usize || size > MAX_SIZE as usize || header.u32(0) as usize != size {
        return Err(Malformed {
            rule: Rule::Size,
            at: 0,
        });
    }
    let (handles, root) = (header.u32(8), header.u32(12));
    let end = u64::from(HEADER) + 8 * u64::from(handles);
    if end > bytes.len() as u64 {
        return Err(Malformed {
            rule: Rule::Handles,
            at: 8,
        });
    }
    if u64::from(root) != end {
        return Err(Malformed {
            rule: Rule::Root,
            at: 12,
        });
    }
    Ok(handles)
}

/// Checks a message in two parts, and returns its root as an owned value. Each string and each list is
/// in one part, and the header with the root is in the first one. The type has the hash `layout`.
///
/// ```
/// use thalweg_wire::message;
///
/// let bytes = message::encode(&("a text".to_owned(),), 7, Vec::new()).expect("it is small");
/// let (head, tail) = bytes.split_at(bytes.len() - 6);
/// assert_eq!(tail, b"a text");
/// assert_eq!(message::owned_of_parts(head, tail, 7), Ok(("a text".to_owned(),)));
/// ```
///
/// # Errors
/// The first rule that the message breaks, or [`Rule::Memory`] if there is not enough memory for the
/// value.
pub fn owned_of_parts<T: Decode>(head: &[u8], tail: &[u8], layout: u64) -> Result<T, Malformed> {
    let broken = |rule, at| Err(Malformed { rule, at });
    let handles = check_header(head, head.len().saturating_add(tail.len()))?;
    if Bytes::message(head).u32(4) != layout as u32 {
        return broken(Rule::Layout, 4);
    }
    let at = root(handles);
    if u64::from(at) + u64::from(T::SIZE) > head.len() as u64 {
        return broken(Rule::Root, at);
    }
    // The sum of both lengths is at most `MAX_SIZE`.
    let bytes = Bytes::batch(head, 0, tail, head.len() as u32);
    Checker::new(bytes, at + T::SIZE, handles).whole::<T>(at)?;
    let owned = memory::fallibly(|| T::owned(T::view(bytes, at)));
    owned.map_or_else(|| broken(Rule::Memory, at), Ok)
}

impl<'a> Message<'a> {
    /// Checks the whole message and returns a view of the root.
    ///
    /// # Errors
    /// The first rule that the message breaks.
    pub fn view<T: Decode>(self) -> Result<T::View<'a>, Malformed> {
        let bytes = Bytes::message(self.bytes);
        let at = root(self.handles);
        if u64::from(at) + u64::from(T::SIZE) > self.bytes.len() as u64 {
            return Err(Malformed {
                rule: Rule::Root,
                at,
            });
        }
        Checker::new(bytes, at + T::SIZE, self.handles).whole::<T>(at)?;
        Ok(T::view(bytes, at))
    }

    /// Checks the whole message and returns the root as an owned value.
    ///
    /// # Errors
    /// The first rule that the message breaks, or [`Rule::Memory`] if there is not enough memory
    /// for the value of a message of more than 4 KiB.
    pub fn owned<T: Decode>(self) -> Result<T, Malformed> {
        let view = self.view::<T>()?;
        if self.bytes.len() <= SMALL {
            return Ok(T::owned(view));
        }
        memory::fallibly(|| T::owned(view)).ok_or(Malformed {
            rule: Rule::Memory,
            at: root(self.handles),
        })
    }

    /// The handles, for code that closes them without knowing the type.
    pub fn handles(self) -> impl ExactSizeIterator<Item = Handle> + 'a {
        let table = self.bytes[HEADER as usize..root(self.handles) as usize].chunks_exact(8);
        table.map(|word| {
            Handle(u64::from_le_bytes(
                word.try_into().expect("a chunk is a word"),
            ))
        })
    }
}
