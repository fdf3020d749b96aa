//! Resources and streams in a message.

use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Shape, message};

/// A resource or stream: a number with a generation, of the core's making. 0 is never valid.
///
/// In place it is a `u32`, its position in the message's table of handles. It exists in messages alone: a batch has no table. Which
/// resource it names is not part of its type, so its hash stands for none; the generators' constants do.
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
    const HOLDS: bool = true;

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
