//! Strings.

use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Rule, Shape, memory};

impl Encode for str {
    type As = String;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        to.bytes(at, self.as_bytes());
    }
}

impl Encode for String {
    type As = String;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        to.bytes(at, self.as_bytes());
    }
}

impl Decode for String {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;
    const SHAPE: Shape = Shape::Text("string");
    const DEPTH: u32 = 0;
    const IS_DENSE: bool = true;

    type View<'a> = &'a str;

    #[inline]
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        from.list(at, 1, 1)?;
        match std::str::from_utf8(from.bytes().tail(at)) {
            Ok(_) => Ok(()),
            Err(_) => Err(from.broken(Rule::Utf8, at)),
        }
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> &'a str {
        match from.tail(at) {
            [] => "",
            bytes => std::str::from_utf8(bytes).expect("a checked string is UTF-8"),
        }
    }

    #[inline]
    fn owned(view: &str) -> String {
        memory::text(view)
    }

    #[inline]
    fn as_view(&self) -> &str {
        self
    }
}
