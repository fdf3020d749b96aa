//! The host of the clients.

use thalweg::Call;
use thalweg_conformance::conformance::Oracle;

/// The host that `conformance/README.md` describes.
pub(crate) struct Book;

impl Oracle for Book {
    fn look_up(&mut self, _: &Call, key: u64) -> Result<String, u64> {
        assert!(key != 101, "at 101, on purpose");
        if key.is_multiple_of(2) {
            Ok(format!("number {key}"))
        } else {
            Err(key)
        }
    }

    fn tell(&mut self, _: &Call, words: Vec<String>, at: Option<u32>) -> u64 {
        let bytes: usize = words.iter().map(String::len).sum();
        bytes as u64 + u64::from(at.unwrap_or(0))
    }

    fn nod(&mut self, _: &Call) {}
}
