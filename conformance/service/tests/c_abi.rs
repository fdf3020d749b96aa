//! The corpus of the fuzz target `c_abi`, without a fuzzer.

#[path = "../../../fuzz/src/c_abi.rs"]
mod host;

#[test]
fn corpus_arguments_leave_the_service_answering() {
    let corpus = include_str!("../../../fuzz/corpus/c_abi.hex");
    let mut count = 0;
    for line in corpus.lines() {
        let bytes: Vec<u8> = (0..line.len() / 2)
            .map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).expect("hex"))
            .collect();
        // The bytes unchanged, and with a correct size and layout hash.
        for mode in 0..4 {
            host::c_abi(&[&[bytes[0], mode], &bytes[2..]].concat());
        }
        count += 1;
    }
    assert!(count > 10, "the corpus has {count} inputs");
}
