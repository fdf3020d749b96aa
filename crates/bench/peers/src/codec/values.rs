//! The values to encode: those of another library's benchmark, type by type.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

/// A value that codecs are compared with.
pub trait Value: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// The sum over every field: numbers as they are; for text and bytes the length, the first and
    /// the last byte.
    fn sum(&self) -> u64;
}

/// The contribution of a text or a blob to a sum.
#[must_use]
#[inline]
pub fn ends(bytes: &[u8]) -> u64 {
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => bytes.len() as u64 + u64::from(*first) + u64::from(*last),
        _ => 0,
    }
}

/// A text and a number.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Serialize,
    Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct EchoRequest {
    /// The text to send back.
    pub message: String,
    /// The delay of the reply in ms.
    pub delay_ms: i64,
}

/// Two texts.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Serialize,
    Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct EchoResponse {
    /// The received text.
    pub echoed: String,
    /// The name of the responder.
    pub timer_name: String,
}

/// A value with fields of many kinds.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Serialize,
    Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct ComplexRequest {
    /// Four of them.
    pub messages: Vec<EchoRequest>,
    /// Three of them.
    pub tags: Vec<String>,
    /// 53 bytes.
    pub note: Option<String>,
    /// Zero or more.
    pub retries: Option<i64>,
}

/// Bytes.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Serialize,
    Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct BytesPayload {
    /// The length depends on the row.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
}

impl EchoRequest {
    /// The value of the original benchmark.
    #[must_use]
    pub fn example() -> Self {
        Self {
            message: "hello world".to_owned(),
            delay_ms: 100,
        }
    }
}

impl EchoResponse {
    /// The value of the original benchmark.
    #[must_use]
    pub fn example() -> Self {
        Self {
            echoed: "hello world".to_owned(),
            timer_name: "timer-1".to_owned(),
        }
    }
}

impl ComplexRequest {
    /// A value of the same size as in the original benchmark.
    #[must_use]
    pub fn example() -> Self {
        Self {
            messages: (0..4)
                .map(|n| EchoRequest {
                    message: format!("message number {n}"),
                    delay_ms: 10 * n,
                })
                .collect(),
            tags: ["fast", "checked", "in place"].map(str::to_owned).to_vec(),
            note: Some("a note of fifty-three bytes, as many as theirs has..!".to_owned()),
            retries: Some(3),
        }
    }
}

impl BytesPayload {
    /// `size` bytes; neighbouring bytes differ.
    #[must_use]
    pub fn of(size: usize) -> Self {
        Self {
            data: (0..size).map(|n| (n * 7 % 251) as u8).collect(),
        }
    }
}

impl Value for EchoRequest {
    fn sum(&self) -> u64 {
        ends(self.message.as_bytes()).wrapping_add_signed(self.delay_ms)
    }
}

impl Value for EchoResponse {
    fn sum(&self) -> u64 {
        ends(self.echoed.as_bytes()) + ends(self.timer_name.as_bytes())
    }
}

impl Value for ComplexRequest {
    fn sum(&self) -> u64 {
        let messages: u64 = self.messages.iter().map(EchoRequest::sum).sum();
        let tags: u64 = self.tags.iter().map(|tag| ends(tag.as_bytes())).sum();
        let note = self.note.as_ref().map_or(0, |note| ends(note.as_bytes()));
        (messages + tags + note).wrapping_add_signed(self.retries.unwrap_or(0))
    }
}

impl Value for BytesPayload {
    fn sum(&self) -> u64 {
        ends(&self.data)
    }
}
