//! Resources and streams in a message.

use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Shape, message};

/// A resource or stream: a number with a generation, assigned by the core. 0 is never valid.
///
/// Its fixed part is a `u32`, the position in the message's table of handles. Handles exist only in
/// messages, because a batch has no table. The resource that a handle names is not part of the
/// type's hash; the constants of the generators contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

impl Encode for Handle {
    type As = Handle;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        to.handle(at, *self);
    }

    fn handles(&self, _: bool) -> u32 {
        1
    }
}

impl Decode for Handle {
    const SIZE: u32 = 4;
    const ALIGN: u32 = 4;
    const SHAPE: Shape = Shape::Text("handle");
    const DEPTH: u32 = 0;
    const HAS_HANDLES: bool = true;

    type View<'a> = Handle;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        from.handle(at)
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> Handle {
        Handle(from.u64(message::HEADER + 8 * from.u32(at)))
    }

    fn owned(view: Handle) -> Handle {
        view
    }

    fn as_view(&self) -> Handle {
        *self
    }
}
