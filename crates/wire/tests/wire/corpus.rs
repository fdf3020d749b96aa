//! Runs the corpus of the fuzz targets without a fuzzer. Every input passes its target's check and
//! uses memory in proportion to its size.

#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use crate::largest_allocation;

/// The largest allocation that a target may make for a shorter input: its result is limited to 64
/// KiB, in a buffer that doubles.
const MOST: usize = 1 << 17;

fn hex(line: &str) -> Vec<u8> {
    (0..line.len() / 2)
        .map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).expect("hex"))
        .collect()
}

fn run(corpus: &str, target: fn(&[u8])) {
    let mut count = 0;
    for line in corpus.lines() {
        let bytes = hex(line);
        largest_allocation::reset();
        target(&bytes);
        let largest = largest_allocation::get();
        assert!(largest <= MOST, "{largest} bytes for {line}");
        count += 1;
    }
    assert!(count > 10, "the corpus has {count} inputs");
}

#[test]
fn message_corpus_passes() {
    run(
        include_str!("../../../../fuzz/corpus/message.hex"),
        targets::message,
    );
}

#[test]
fn cbor_corpus_passes() {
    run(
        include_str!("../../../../fuzz/corpus/cbor.hex"),
        targets::cbor,
    );
}

#[test]
fn typed_corpus_passes_in_both_readers() {
    run(
        include_str!("../../../../fuzz/corpus/typed.hex"),
        targets::typed,
    );
}

#[test]
fn description_corpus_passes() {
    run(
        include_str!("../../../../fuzz/corpus/description.hex"),
        targets::description,
    );
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Heads of CBOR items with special lengths and kinds: indefinite, longest, floats, tags, break.
const HEADS: [u8; 16] = [
    0x00, 0x17, 0x18, 0x1b, 0x20, 0x3b, 0x40, 0x5b, 0x5f, 0x60, 0x7f, 0x9b, 0x9f, 0xbb, 0xfb, 0xff,
];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 if at < bytes.len() => bytes[at] = HEADS[random.below(HEADS.len())],
            3 => bytes.insert(at, HEADS[random.below(HEADS.len())]),
            4 if at < bytes.len() => drop(bytes.remove(at)),
            5 => bytes.truncate(at.max(1)),
            // The end of another input after the beginning of this one.
            _ => {
                let from = random.below(other.len());
                bytes.truncate(at.max(1));
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// An input and its target.
type Input = (Vec<u8>, fn(&[u8]));

/// Inputs of the corpus that are CBOR values.
fn valid() -> Vec<Input> {
    let inputs = |corpus: &'static str, target: fn(&[u8])| {
        corpus.lines().map(move |line| (hex(line), target))
    };
    let cbor = inputs(
        include_str!("../../../../fuzz/corpus/cbor.hex"),
        targets::cbor,
    );
    let typed = inputs(
        include_str!("../../../../fuzz/corpus/typed.hex"),
        targets::typed,
    );
    let valid: Vec<_> = cbor.filter(|(input, _)| targets::is_cbor(input)).collect();
    assert!(valid.len() > 30, "{} inputs are valid", valid.len());
    valid.into_iter().chain(typed).collect()
}

/// `THALWEG_TEST_MUTATIONS` sets the number of mutations (default 50,000), `THALWEG_TEST_SEED`
/// another sequence. A failure reports its input.
#[test]
fn mutated_cbor_is_an_error_or_keeps_its_value() {
    let seeds = valid();
    let count = number(
        "THALWEG_TEST_MUTATIONS",
        if cfg!(miri) { 100 } else { 50_000 },
    );
    let seed = number("THALWEG_TEST_SEED", 1);
    let mut random = Random(seed);
    for round in 0..count {
        let (first, target) = &seeds[random.below(seeds.len())];
        let (other, _) = &seeds[random.below(seeds.len())];
        let mut bytes = first.clone();
        mutate(&mut random, &mut bytes, other);
        std::panic::catch_unwind(|| target(&bytes))
            .unwrap_or_else(|_| panic!("seed {seed}, mutation {round}: {bytes:02x?}"));
    }
}
