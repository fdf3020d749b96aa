//! Functions described by their texts, as in the package of a library and in a caller's version.

use thalweg_port::{FunctionSchema, Method, MethodOptions};
use thalweg_wire::{Encode, Shape, message};

/// A method with four texts: parameters, result, error and element. Empty: none.
pub const fn method(
    name: &'static str,
    texts: [&'static str; 4],
    description: &'static str,
) -> Method {
    const fn hash(text: &str) -> u64 {
        match text.is_empty() {
            true => 0,
            false => Shape::hash_of(text),
        }
    }
    Method {
        name,
        params: hash(texts[0]),
        ok: hash(texts[1]),
        error: hash(texts[2]),
        element: hash(texts[3]),
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description,
    }
}

/// A function's name and its four texts.
pub type Texts = (&'static str, [&'static str; 4]);

/// The functions of the library.
pub fn same(methods: &'static [Method]) -> Vec<Texts> {
    let of = |method: &'static Method| {
        let mut lines = method.description.split('\n');
        (method.name, [(); 4].map(|()| lines.next().unwrap()))
    };
    methods.iter().map(of).collect()
}

/// The same in the form in which a caller passes them.
pub fn known(all: &[Texts]) -> Vec<FunctionSchema<'static>> {
    let hash = |text: &'static str| match text {
        "" => 0,
        text => Shape::hash_of(text),
    };
    let of = |(name, texts): &Texts| FunctionSchema {
        name,
        hashes: texts.map(hash),
        description: texts.join("\n").leak(),
    };
    all.iter().map(of).collect()
}

pub fn encoded<P: Encode>(layout: &str, value: &P) -> Vec<u8> {
    message::encode(value, Shape::hash_of(layout), Vec::new()).unwrap()
}
