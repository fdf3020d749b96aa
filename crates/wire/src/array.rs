//! Lists of a fixed length: the elements are stored in place, one after the other, without a tail.

use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Shape};

impl<T: Encode, const N: usize> Encode for [T; N] {
    type As = [T::As; N];

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        T::encode_items(self, to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        self.iter().map(|item| item.handles(given)).sum()
    }
}

impl<T: Decode, const N: usize> Decode for [T; N] {
    const SIZE: u32 = {
        assert!(N > 0 && T::SIZE > 0, "a list of a fixed length has bytes");
        T::SIZE * N as u32
    };
    const ALIGN: u32 = T::ALIGN;
    const SHAPE: Shape = Shape::Parts(&[
        Shape::Text("list<"),
        T::SHAPE,
        Shape::Text(","),
        Shape::Number(N as u32),
        Shape::Text(">"),
    ]);
    const HAS_HANDLES: bool = T::HAS_HANDLES;
    const IS_DENSE: bool = T::IS_DENSE;
    const DEPTH: u32 = T::DEPTH + 1;

    type View<'a> = [T::View<'a>; N];

    #[inline]
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        T::check_items(from, at, N as u32)
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> Self::View<'a> {
        T::view_items(from, at)
    }

    #[inline]
    fn owned(view: Self::View<'_>) -> Self {
        view.map(T::owned)
    }

    #[inline]
    fn as_view(&self) -> Self::View<'_> {
        self.each_ref().map(T::as_view)
    }
}
