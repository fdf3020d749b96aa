//! `option<T>`: a discriminant byte, then the value.

use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Rule, Shape, layout::align_up};

/// Offset of the value.
const fn payload<T: Decode>() -> u32 {
    align_up(1, T::ALIGN)
}

impl<T: Encode> Encode for Option<T> {
    type As = Option<T::As>;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        if let Some(value) = self {
            to.u8(at, 1);
            value.encode(to, at + payload::<T::As>());
        }
    }

    fn handles(&self, given: bool) -> u32 {
        self.as_ref().map_or(0, |value| value.handles(given))
    }
}

impl<T: Decode> Decode for Option<T> {
    const SIZE: u32 = align_up(payload::<T>() + T::SIZE, T::ALIGN);
    const ALIGN: u32 = T::ALIGN;
    const SHAPE: Shape = Shape::Parts(&[Shape::Text("option<"), T::SHAPE, Shape::Text(">")]);
    const HAS_HANDLES: bool = T::HAS_HANDLES;
    const DEPTH: u32 = T::DEPTH + 1;

    type View<'a> = Option<T::View<'a>>;

    #[inline]
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        match from.bytes().u8(at) {
            0 => Ok(()),
            1 => T::check(from, at + payload::<T>()),
            _ => Err(from.broken(Rule::Discriminant, at)),
        }
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> Option<T::View<'a>> {
        (from.u8(at) != 0).then(|| T::view(from, at + payload::<T>()))
    }

    #[inline]
    fn owned(view: Option<T::View<'_>>) -> Option<T> {
        view.map(T::owned)
    }

    #[inline]
    fn as_view(&self) -> Option<T::View<'_>> {
        self.as_ref().map(T::as_view)
    }
}
