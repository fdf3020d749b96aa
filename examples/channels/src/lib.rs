//! Seven programs with Thalweg's channels, in `examples/`, and their number formatting.
//!
//! ```text
//! cargo run -p thalweg-example-channels --example pipeline
//! ```
//!
//! This crate also tests the pages about channels: every Rust snippet of
//! `docs/migrating/nimsync.md` is compiled and run.

/// Formats a whole number with thousands separators.
///
/// ```
/// use thalweg_example_channels::grouped;
/// assert_eq!(grouped(999), "999");
/// assert_eq!(grouped(10_000), "10,000");
/// assert_eq!(grouped(1_234_567), "1,234,567");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The page for users of nimsync.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrating/nimsync.md")]
struct FromNimsync;
