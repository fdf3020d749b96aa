//! Tuples, with the layout of records; `()` takes no bytes.
//!
//! The longest has twelve elements, as in the standard library's traits.

use crate::layout::{align_up, max};
use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Shape};

impl Encode for () {
    type As = ();

    fn encode(&self, _: &mut Encoder<'_>, _: u32) {}
}

impl Decode for () {
    const SIZE: u32 = 0;
    const ALIGN: u32 = 1;
    const SHAPE: Shape = Shape::Text("_");
    const DEPTH: u32 = 0;

    type View<'a> = ();

    fn check(_: &mut Checker<'_>, _: u32) -> Result<(), Malformed> {
        Ok(())
    }

    fn view<'a>(_: Bytes<'a>, _: u32) {}

    fn owned(_: ()) {}

    fn as_view(&self) {}
}

macro_rules! tuple {
    ($first:ident $at0:tt $(, $rest:ident $at:tt)*) => {
        impl<$first: Encode $(, $rest: Encode)*> Encode for ($first, $($rest,)*) {
            type As = ($first::As, $($rest::As,)*);

            #[inline]
            fn encode(&self, to: &mut Encoder<'_>, at: u32) {
                self.$at0.encode(to, at);
                #[allow(unused_mut, unused_variables, reason = "a tuple of one has no second field")]
                let mut end = at + <$first::As as Decode>::SIZE;
                $(
                    let place = align_up(end, <$rest::As as Decode>::ALIGN);
                    self.$at.encode(to, place);
                    #[allow(unused_assignments, reason = "the last field has no next")]
                    { end = place + <$rest::As as Decode>::SIZE; }
                )*
            }

            fn handles(&self, given: bool) -> u32 {
                self.$at0.handles(given) $(+ self.$at.handles(given))*
            }
        }

        impl<$first: Decode $(, $rest: Decode)*> Decode for ($first, $($rest,)*) {
            const SIZE: u32 = {
                let end = $first::SIZE;
                $( let end = align_up(end, $rest::ALIGN) + $rest::SIZE; )*
                align_up(end, Self::ALIGN)
            };
            const ALIGN: u32 = {
                let align = $first::ALIGN;
                $( let align = max(align, $rest::ALIGN); )*
                align
            };
            const SHAPE: Shape = Shape::Parts(&[
                Shape::Text("tuple<"), $first::SHAPE, $(Shape::Text(","), $rest::SHAPE,)* Shape::Text(">"),
            ]);
            const DEPTH: u32 = {
                let depth = $first::DEPTH;
                $( let depth = max(depth, $rest::DEPTH); )*
                depth + 1
            };
            const HAS_HANDLES: bool = $first::HAS_HANDLES $(|| $rest::HAS_HANDLES)*;

            type View<'a> = ($first::View<'a>, $($rest::View<'a>,)*);

            #[inline]
            fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
                $first::check(from, at)?;
                #[allow(unused_mut, unused_variables, reason = "a tuple of one has no second field")]
                let mut end = at + $first::SIZE;
                $(
                    let place = align_up(end, $rest::ALIGN);
                    $rest::check(from, place)?;
                    #[allow(unused_assignments, reason = "the last field has no next")]
                    { end = place + $rest::SIZE; }
                )*
                Ok(())
            }

            #[inline]
            #[allow(non_snake_case, reason = "fields are named after their types")]
            fn view<'a>(from: Bytes<'a>, at: u32) -> Self::View<'a> {
                #[allow(unused_variables, reason = "a tuple of one has no second field")]
                let end = at + $first::SIZE;
                let $first = $first::view(from, at);
                $(
                    let place = align_up(end, $rest::ALIGN);
                    let $rest = $rest::view(from, place);
                    #[allow(unused_variables, reason = "the last field has no next")]
                    let end = place + $rest::SIZE;
                )*
                ($first, $($rest,)*)
            }

            #[inline]
            fn owned(view: Self::View<'_>) -> Self {
                ($first::owned(view.$at0), $($rest::owned(view.$at),)*)
            }

            #[inline]
            fn as_view(&self) -> Self::View<'_> {
                (self.$at0.as_view(), $(self.$at.as_view(),)*)
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
