//! The memory that a short item may cost its reader.

use thalweg_wire::cbor::{self, Cbor, Rule};

use crate::largest_allocation;

/// The largest allocation while reading, and the rule that the input breaks.
fn largest<T: Cbor + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> (usize, Rule) {
    largest_allocation::reset();
    let refused = cbor::decode::<T>(bytes).expect_err("it is no value");
    (largest_allocation::get(), refused.rule)
}

#[test]
fn false_length_allocates_no_memory() {
    let mut bytes = Vec::new();
    for head in [0x9a_u8, 0x9b, 0xba, 0xbb, 0x5a, 0x5b, 0x7a, 0x7b] {
        bytes.clear();
        bytes.push(head);
        bytes.extend_from_slice(&[0x7f; 8]);
        assert_eq!(largest::<Vec<String>>(&bytes).0, 0, "{head:#x}");
        assert_eq!(largest::<Vec<u8>>(&bytes).0, 0, "{head:#x}");
        assert_eq!(largest::<String>(&bytes).0, 0, "{head:#x}");
    }
}

#[test]
fn list_preallocates_no_more_than_its_input() {
    // The item promises 65,535 elements and has as many bytes, but the first element is not a text.
    let mut bytes = vec![0_u8; 3 + 65_535];
    bytes[..3].copy_from_slice(&[0x99, 0xff, 0xff]);
    let (size, rule) = largest::<Vec<String>>(&bytes);
    assert_eq!(rule, Rule::Type);
    assert!(size <= bytes.len(), "{size} of {}", bytes.len());
}
