//! Stream elements that are computed from a number.

use crate::conformance::Item;

/// Characters of one, two, three and four bytes in UTF-8.
const LETTERS: [char; 4] = ['a', 'ß', '☃', '𐍈'];

pub(crate) fn bit(number: u32) -> bool {
    number % 2 == 1
}

pub(crate) fn letter(number: u32) -> char {
    LETTERS[number as usize % LETTERS.len()]
}

pub(crate) fn maybe(number: u32) -> Option<String> {
    (!bit(number)).then(|| number.to_string())
}

pub(crate) fn couple(number: u32) -> (u8, String) {
    (number as u8, number.to_string())
}

pub(crate) fn row(number: u32) -> Vec<u16> {
    (0..(number % 4) as u16).collect()
}

pub(crate) fn outcome(number: u32) -> Result<u32, String> {
    if bit(number) {
        Err(format!("no {number}"))
    } else {
        Ok(number)
    }
}

/// An item with one of `names` names.
pub(crate) fn named(number: u64, names: u32) -> Item {
    Item {
        number,
        name: (number % u64::from(names.max(1))).to_string(),
        tags: Vec::new(),
        blob: None,
    }
}
