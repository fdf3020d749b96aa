//! Messages: the header and the region that readers may touch. See `thalweg.h`, "Messages".

/// The maximum number of elements of a list whose elements have size 0.
pub const MAX_EMPTY_ELEMENTS: u32 = 65_536;

/// Bytes from a library are malformed.
#[derive(Clone, Copy, Debug)]
pub struct Malformed(pub &'static str);

/// Memory of a message or of a batch. Offsets count from `base`, and every read is checked against
/// `size`.
///
/// It contains a raw pointer and not a slice, because the service writes to other parts of a
/// batch's memory at the same time.
#[derive(Clone, Copy)]
pub struct Region {
    base: *const u8,
    size: usize,
}

impl Region {
    /// The region of `size` bytes from `base`.
    ///
    /// # Safety
    /// The bytes at offsets that are stored in the region stay readable and unmodified while the
    /// region is used; `size` bytes from `base` lie in one object.
    pub unsafe fn new(base: *const u8, size: usize) -> Self {
        Self {
            base,
            size: if base.is_null() { 0 } else { size },
        }
    }

    /// `length` bytes at `at`. They are valid as long as the region's memory.
    pub fn bytes(&self, at: u32, length: usize) -> Result<&[u8], Malformed> {
        let at = at as usize;
        match at.checked_add(length) {
            Some(end) if end <= self.size => {
                // SAFETY: within `size` bytes from `base`, which `new`'s caller promised.
                Ok(unsafe { std::slice::from_raw_parts(self.base.add(at), length) })
            }
            _ => Err(Malformed("an offset leads outside")),
        }
    }

    /// `N` bytes at `at`, to be converted into a number.
    pub fn array<const N: usize>(&self, at: u32) -> Result<[u8; N], Malformed> {
        let bytes = self.bytes(at, N)?;
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        Ok(array)
    }

    /// A little-endian `u32`.
    pub fn u32(&self, at: u32) -> Result<u32, Malformed> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// The offset of `pointer` from the base.
    pub fn offset_of(&self, pointer: *const u8) -> Option<u32> {
        let distance = (pointer as usize).checked_sub(self.base as usize)?;
        u32::try_from(distance)
            .ok()
            .filter(|_| distance <= self.size)
    }
}

/// Checks a message's header and returns the offset of its root.
pub fn root(message: Region, layout: u64, root_size: u32) -> Result<u32, Malformed> {
    if message.u32(0)? as usize != message.size {
        return Err(Malformed("its size is not the one it says"));
    }
    // The header contains the low half of the hash.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the header holds the hash's low half"
    )]
    let low = layout as u32;
    if message.u32(4)? != low {
        return Err(Malformed("another layout"));
    }
    let handles = message.u32(8)?;
    let at = message.u32(12)?;
    if u64::from(at) != u64::from(handles) * 8 + u64::from(handle_at(0)) {
        return Err(Malformed("its root is not behind its handles"));
    }
    message.bytes(at, root_size as usize)?;
    Ok(at)
}

/// The number of handles of a message whose header was checked.
pub fn handles(message: Region) -> Result<u32, Malformed> {
    message.u32(8)
}

/// Begins a message of `layout` in `buffer`: the header, zeroed entries for `handles` handles, and
/// a zeroed root of `root_size` bytes. Returns the root's offset.
pub fn begin(buffer: &mut Vec<u8>, layout: u64, handles: u32, root_size: u32) -> u32 {
    buffer.clear();
    let at = handle_at(handles);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the header holds the hash's low half"
    )]
    let low = layout as u32;
    for word in [0, low, handles, at] {
        buffer.extend_from_slice(&word.to_le_bytes());
    }
    buffer.resize(at as usize + root_size as usize, 0);
    at
}

/// Writes `handle` into an entry of the table of handles of the message in `buffer`. The entry must
/// exist.
pub fn set_handle(buffer: &mut [u8], place: u32, handle: u64) {
    let at = handle_at(place) as usize;
    buffer[at..at + 8].copy_from_slice(&handle.to_le_bytes());
}

/// The offset of the entry with index `place` in the table of handles. For the number of handles,
/// it is the offset of the root.
pub const fn handle_at(place: u32) -> u32 {
    16 + 8 * place
}

/// Writes the size into the header of a finished message. False if it is longer than 2^31 - 1
/// bytes.
pub fn finish(buffer: &mut [u8]) -> bool {
    match i32::try_from(buffer.len()) {
        Ok(size) => {
            buffer[..4].copy_from_slice(&size.to_le_bytes());
            true
        }
        Err(_) => false,
    }
}
