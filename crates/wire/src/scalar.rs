//! Numbers, `bool`, `char`.

use crate::{Bytes, Checker, Decode, Encode, Encoder, ListView, Malformed, Rule, Shape, memory};

/// Numbers: every bit pattern is valid, and a list is copied with one `memcpy`.
macro_rules! number {
    ($type:ty, $text:literal, $size:literal, $read:ident, $word:ty) => {
        impl Encode for $type {
            type As = $type;

            #[inline(always)]
            fn encode(&self, to: &mut Encoder<'_>, at: u32) {
                to.$read(at, <$word>::from_le_bytes(self.to_le_bytes()));
            }

            #[inline]
            fn encode_items(items: &[$type], to: &mut Encoder<'_>, at: u32) {
                let Some(place) = to.items::<$size>(at, items.len()) else {
                    return; // the encoder has noted that there is no room
                };
                for (place, item) in place.chunks_exact_mut($size).zip(items) {
                    place.copy_from_slice(&item.to_le_bytes());
                }
            }
        }

        impl Decode for $type {
            const SIZE: u32 = $size;
            const ALIGN: u32 = $size;
            const SHAPE: Shape = Shape::Text($text);
            const DEPTH: u32 = 0;
            const IS_DENSE: bool = true;

            type View<'a> = $type;

            #[inline]
            fn check(_: &mut Checker<'_>, _: u32) -> Result<(), Malformed> {
                Ok(())
            }

            #[inline]
            fn check_items(_: &mut Checker<'_>, _: u32, _: u32) -> Result<(), Malformed> {
                Ok(())
            }

            #[inline]
            fn view<'a>(from: Bytes<'a>, at: u32) -> $type {
                <$type>::from_le_bytes(from.$read(at).to_le_bytes())
            }

            #[inline]
            fn view_items<'a, const N: usize>(from: Bytes<'a>, at: u32) -> [$type; N] {
                let mut items = [<$type>::default(); N];
                let bytes = from.items(at, N * $size);
                for (item, word) in items.iter_mut().zip(bytes.chunks_exact($size)) {
                    *item = <$type>::from_le_bytes(word.try_into().expect("a chunk is a word"));
                }
                items
            }

            #[inline]
            fn owned(view: $type) -> $type {
                view
            }

            #[inline]
            fn as_view(&self) -> $type {
                *self
            }

            fn owned_items(list: ListView<'_, $type>) -> Vec<$type> {
                let mut items = memory::with_room(list.len());
                let Some(bytes) = list.encoded() else {
                    items.extend(list);
                    return items;
                };
                let words = bytes.chunks_exact($size);
                items.extend(words.map(|word| {
                    <$type>::from_le_bytes(word.try_into().expect("a chunk is a word"))
                }));
                items
            }
        }
    };
}

number!(u16, "u16", 2, u16, u16);
number!(u32, "u32", 4, u32, u32);
number!(u64, "u64", 8, u64, u64);
number!(i8, "s8", 1, u8, u8);
number!(i16, "s16", 2, u16, u16);
number!(i32, "s32", 4, u32, u32);
number!(i64, "s64", 8, u64, u64);
number!(f32, "f32", 4, u32, u32);
number!(f64, "f64", 8, u64, u64);

impl Encode for u8 {
    type As = u8;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        to.u8(at, *self);
    }

    #[inline]
    fn encode_items(items: &[u8], to: &mut Encoder<'_>, at: u32) {
        if let Some(place) = to.items::<1>(at, items.len()) {
            place.copy_from_slice(items);
        }
    }

    /// A target that is overwritten completely does not need to be zeroed first.
    #[inline(always)]
    fn encode_list(items: &[u8], to: &mut Encoder<'_>, at: u32) {
        to.bytes(at, items);
    }
}

impl Decode for u8 {
    const SIZE: u32 = 1;
    const ALIGN: u32 = 1;
    const SHAPE: Shape = Shape::Text("u8");
    const DEPTH: u32 = 0;
    const IS_DENSE: bool = true;

    type View<'a> = u8;

    #[inline]
    fn check(_: &mut Checker<'_>, _: u32) -> Result<(), Malformed> {
        Ok(())
    }

    #[inline]
    fn check_items(_: &mut Checker<'_>, _: u32, _: u32) -> Result<(), Malformed> {
        Ok(())
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> u8 {
        from.u8(at)
    }

    #[inline]
    fn view_items<'a, const N: usize>(from: Bytes<'a>, at: u32) -> [u8; N] {
        from.words(at)
    }

    #[inline]
    fn owned(view: u8) -> u8 {
        view
    }

    #[inline]
    fn as_view(&self) -> u8 {
        *self
    }

    fn owned_items(list: ListView<'_, u8>) -> Vec<u8> {
        let mut items = memory::with_room(list.len());
        items.extend_from_slice(list.as_bytes());
        items
    }
}

impl Encode for bool {
    type As = bool;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        to.u8(at, u8::from(*self));
    }
}

impl Decode for bool {
    const SIZE: u32 = 1;
    const ALIGN: u32 = 1;
    const SHAPE: Shape = Shape::Text("bool");
    const DEPTH: u32 = 0;
    const IS_DENSE: bool = true;

    type View<'a> = bool;

    #[inline]
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        if from.bytes().u8(at) > 1 {
            return Err(from.broken(Rule::Bool, at));
        }
        Ok(())
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> bool {
        from.u8(at) != 0
    }

    #[inline]
    fn owned(view: bool) -> bool {
        view
    }

    #[inline]
    fn as_view(&self) -> bool {
        *self
    }
}

impl Encode for char {
    type As = char;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        to.u32(at, u32::from(*self));
    }
}

impl Decode for char {
    const SIZE: u32 = 4;
    const ALIGN: u32 = 4;
    const SHAPE: Shape = Shape::Text("char");
    const DEPTH: u32 = 0;
    const IS_DENSE: bool = true;

    type View<'a> = char;

    #[inline]
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        match char::from_u32(from.bytes().u32(at)) {
            Some(_) => Ok(()),
            None => Err(from.broken(Rule::Char, at)),
        }
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> char {
        char::from_u32(from.u32(at)).expect("a checked char is a scalar value")
    }

    #[inline]
    fn owned(view: char) -> char {
        view
    }

    #[inline]
    fn as_view(&self) -> char {
        *self
    }
}
