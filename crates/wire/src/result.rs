//! `result<T, E>`: a discriminant byte, then the value or the error.

use crate::layout::{align_up, max};
use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Rule, Shape};

/// Offset of the value and of the error.
const fn payload<T: Decode, E: Decode>() -> u32 {
    align_up(1, max(T::ALIGN, E::ALIGN))
}

impl<T: Encode, E: Encode> Encode for Result<T, E> {
    type As = Result<T::As, E::As>;

    #[inline]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        match self {
            Ok(value) => value.encode(to, at + payload::<T::As, E::As>()),
            Err(error) => {
                to.u8(at, 1);
                error.encode(to, at + payload::<T::As, E::As>());
            }
        }
    }

    fn handles(&self, given: bool) -> u32 {
        match self {
            Ok(value) => value.handles(given),
            Err(error) => error.handles(given),
        }
    }
}

impl<T: Decode, E: Decode> Decode for Result<T, E> {
    const SIZE: u32 = align_up(payload::<T, E>() + max(T::SIZE, E::SIZE), Self::ALIGN);
    const ALIGN: u32 = max(T::ALIGN, E::ALIGN);
    const SHAPE: Shape = Shape::Parts(&[
        Shape::Text("result<"),
        T::SHAPE,
        Shape::Text(","),
        E::SHAPE,
        Shape::Text(">"),
    ]);
    const HAS_HANDLES: bool = T::HAS_HANDLES || E::HAS_HANDLES;
    const DEPTH: u32 = max(T::DEPTH, E::DEPTH) + 1;

    type View<'a> = Result<T::View<'a>, E::View<'a>>;

    #[inline]
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        match from.bytes().u8(at) {
            0 => T::check(from, at + payload::<T, E>()),
            1 => E::check(from, at + payload::<T, E>()),
            _ => Err(from.broken(Rule::Discriminant, at)),
        }
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> Self::View<'a> {
        match from.u8(at) {
            0 => Ok(T::view(from, at + payload::<T, E>())),
            _ => Err(E::view(from, at + payload::<T, E>())),
        }
    }

    #[inline]
    fn owned(view: Self::View<'_>) -> Self {
        view.map(T::owned).map_err(E::owned)
    }

    #[inline]
    fn as_view(&self) -> Self::View<'_> {
        self.as_ref().map(T::as_view).map_err(E::as_view)
    }
}
