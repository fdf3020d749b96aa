//! Functions by their texts, as a library of a package has them and a caller knows them.

use thalweg_port::{FunctionSchema, Method, MethodOptions};
use thalweg_wire::{Encode, Shape, message};

/// Of four texts, parameters, result, error and element; empty: none.
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

/// What the library has, and nothing else.
pub fn same(methods: &'static [Method]) -> Vec<Texts> {
    let of = |method: &'static Method| {
        let mut lines = method.description.split('\n');
        (method.name, [(); 4].map(|()| lines.next().unwrap()))
    };
    methods.iter().map(of).collect()
}

/// As a caller says it.
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
