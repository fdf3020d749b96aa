//! A deeply nested type and values of it.

use super::{Match, Rights, Step};
use proptest::prelude::*;

pub type Nested = (
    Vec<Match>,
    Option<Result<Vec<Step>, ()>>,
    (Rights, char),
    Option<Option<u32>>,
    (Vec<u16>, Vec<i8>, Vec<f64>, Vec<bool>),
    ([u8; 3], [u64; 2], [Option<String>; 2], Vec<[i16; 2]>),
);

pub fn nested() -> impl Strategy<Value = Nested> {
    use proptest::collection::vec;
    use proptest::option::of;
    let text = "\\PC{0,6}";
    let bytes = || of(vec(any::<u8>(), 0..9));
    let matches = (
        text,
        any::<u64>(),
        any::<u64>(),
        text,
        bytes(),
        bytes(),
        any::<bool>(),
    )
        .prop_map(
            |(path, line, column, text, path_bytes, text_bytes, cut)| Match {
                path,
                line,
                column,
                text,
                path_bytes,
                text_bytes,
                cut,
            },
        );
    let steps = prop_oneof![
        vec(text, 0..4).prop_map(Step::Jump),
        any::<f64>().prop_map(Step::Wait),
        Just(Step::Stop),
    ];
    let result = prop_oneof![vec(steps, 0..4).prop_map(Ok), Just(Err(()))];
    (
        vec(matches, 0..4),
        of(result),
        (
            (0u8..8).prop_map(|bits| Rights::from_bits(bits).expect("three flags")),
            any::<char>(),
        ),
        of(of(any::<u32>())),
        (
            vec(any::<u16>(), 0..9),
            vec(any::<i8>(), 0..9),
            vec(any::<f64>(), 0..9),
            vec(any::<bool>(), 0..9),
        ),
        (
            any::<[u8; 3]>(),
            any::<[u64; 2]>(),
            [of(text), of(text)],
            vec(any::<[i16; 2]>(), 0..9),
        ),
    )
}
