//! Properties that must be true for any input. `make prove-fuzz` fuzzes each function, and `make
//! test` runs it over its corpus.

use thalweg_wire::cbor::{self, Untranslated, of_message, to_message};
use thalweg_wire::describe::Type;
use thalweg_wire::{Decode, message};

/// The largest result, so that no input is slow.
const LIMIT: usize = 1 << 16;

/// One type of each kind. The first byte of the input selects one.
const TYPES: &[&str] = &[
    "bool",
    "string",
    "list<u8>",
    "list<s64>",
    "list<list<string>>",
    "option<option<u32>>",
    "result<u64,string>",
    "list<result<_,char>>",
    "tuple<u8,f64,option<tuple<u16,f32>>>",
    "variant{circle(f64),line(tuple<s32,s32>),label(string),polygon(list<s16>),nothing}",
    "list<enum{red,green,blue}>",
    "record{rights:flags{read,write,run},days:flags{a,b,c,d,e,f,g,h,i},name:string}",
    "record{path:string,line:u64,column:u64,text:string,path-bytes:option<list<u8>>,cut:bool}",
    "list<record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}>",
    "list<record{}>",
    // Elements of one byte of CBOR that take 136 bytes in the message.
    "list<option<tuple<u64,u64,u64,u64,u64,u64,u64,u64,u64,u64,u64,u64,u64,u64,u64,u64>>>",
];

/// Splits the input into a type and the rest.
fn split(data: &[u8]) -> Option<(Type<'static>, &[u8])> {
    let (first, rest) = data.split_first()?;
    let text = TYPES[usize::from(*first) % TYPES.len()];
    Some((Type::parse(text).expect("a type"), rest))
}

/// A valid message can be read completely, and converting it to CBOR and back keeps its value.
pub fn message(data: &[u8]) {
    if let Ok(message) = message::open_any(data) {
        let _ = message.handles().map(|handle| handle.0).max();
    }
    let Some((ty, rest)) = split(data) else {
        return;
    };
    // The size and the layout are stored, because random bytes rarely match them.
    let mut bytes = rest.to_vec();
    if bytes.len() >= 8 {
        bytes[..4].copy_from_slice(&(rest.len() as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&(ty.hash() as u32).to_le_bytes());
    }
    let checked = ty.check(&bytes);
    match of_message(&ty, &bytes, LIMIT) {
        Ok(written) => match to_message(&ty, &written, LIMIT) {
            // Gaps between tails and padding are not kept.
            Ok(again) => assert_eq!(of_message(&ty, &again, LIMIT), Ok(written)),
            Err(error) => assert_eq!(error, Untranslated::Limit),
        },
        Err(Untranslated::Message(malformed)) => assert_eq!(checked.map(drop), Err(malformed)),
        Err(error) => assert_eq!(error, Untranslated::Limit),
    }
}

/// Accepted CBOR is a message, and is written in exactly one form.
pub fn cbor(data: &[u8]) {
    let Some((ty, rest)) = split(data) else {
        return;
    };
    if let Ok(made) = to_message(&ty, rest, LIMIT) {
        assert!(ty.check(&made).is_ok());
        let written = of_message(&ty, &made, usize::MAX).expect("a message that was made");
        assert_eq!(to_message(&ty, &written, LIMIT), Ok(made));
    }
}

/// Whether [`cbor`] accepts an input as a message.
pub fn is_cbor(data: &[u8]) -> bool {
    split(data).is_some_and(|(ty, rest)| to_message(&ty, rest, LIMIT).is_ok())
}

/// Generated types and type descriptions behave the same.
pub fn typed(data: &[u8]) {
    type Much = (
        Vec<(String, Option<Vec<u8>>)>,
        Result<Vec<f32>, ()>,
        Option<Option<char>>,
        Vec<bool>,
        (i8, f64),
    );
    let text = Much::SHAPE.to_string();
    let ty = Type::parse(&text).expect("a type");
    let described = to_message(&ty, data, LIMIT);
    match cbor::decode::<Much>(data) {
        Ok(value) => {
            let flat = message::encode(&value, ty.hash(), Vec::new()).expect("room");
            if flat.len() <= LIMIT {
                assert_eq!(described.as_ref(), Ok(&flat));
            }
            assert_eq!(
                of_message(&ty, &flat, usize::MAX),
                Ok(cbor::encode(&value, Vec::new()))
            );
        }
        Err(_) => assert!(described.is_err()),
    }
    let view = message::open(data, ty.hash()).and_then(|message| message.view::<Much>().map(drop));
    if ty.check(data).is_ok() {
        assert_eq!(view, Ok(()));
    }
}

/// Any text describes a type or is an error.
pub fn description(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(ty) = Type::parse(text) {
        assert!(ty.align().is_power_of_two() && ty.size().is_multiple_of(ty.align()));
        let _ = to_message(&ty, b"\xa0", LIMIT);
        let _ = ty.check(&[0; 64]);
    }
}
