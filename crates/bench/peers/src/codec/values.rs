//! The values: those of a benchmark of another library, type by type.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

/// A value that codecs are compared by.
pub trait Value: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// Over every field: numbers as they are, of text and bytes length, first and last.
    fn sum(&self) -> u64;
}

/// A text's or a blob's part of a sum.
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
    /// What is to come back.
    pub message: String,
    /// After how many ms.
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
    /// What came.
    pub echoed: String,
    /// Who answered.
    pub timer_name: String,
}

/// A bit of everything.
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
    /// None or more.
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
    /// As many as the row says.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
}

impl EchoRequest {
    /// The one of the original benchmark.
    #[must_use]
    pub fn example() -> Self {
        Self {
            message: "hello world".to_owned(),
            delay_ms: 100,
        }
    }
}

impl EchoResponse {
    /// The one of the original benchmark.
    #[must_use]
    pub fn example() -> Self {
        Self {
            echoed: "hello world".to_owned(),
            timer_name: "timer-1".to_owned(),
        }
    }
}

impl ComplexRequest {
    /// As large as that of the original benchmark.
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
    /// `size` bytes, of which no two neighbours are alike.
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
