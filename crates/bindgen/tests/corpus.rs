//! The corpus of the fuzz targets `wit` and `policy`, without a fuzzer.

#[path = "../../../fuzz/src/bindgen.rs"]
mod targets;

fn run(corpus: &str, target: fn(&[u8])) {
    let mut count = 0;
    for line in corpus.lines() {
        let bytes: Vec<u8> = (0..line.len() / 2)
            .map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).expect("hex"))
            .collect();
        target(&bytes);
        count += 1;
    }
    assert!(count > 10, "the corpus has {count} inputs");
}

#[test]
fn wit_is_refused_at_its_place_or_emitted() {
    run(include_str!("../../../fuzz/corpus/wit.hex"), targets::wit);
}

#[test]
fn policy_file_is_refused_at_its_place_or_applied() {
    run(
        include_str!("../../../fuzz/corpus/policy.hex"),
        targets::policy,
    );
}
