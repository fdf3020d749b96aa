//! The trace context and its header `traceparent`: <https://www.w3.org/TR/trace-context/>.
//!
//! ```text
//! 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//! |  trace id: 16 bytes               span id: 8       flags
//! version
//! ```

mod state;

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

pub use self::state::{TraceState, TraceStateError};

/// The length of a header of version 00.
const LEN: usize = 55;
/// The caller may have recorded the trace.
const SAMPLED: u8 = 1;
/// The last seven bytes of the trace id are random: level 2 of the recommendation.
const RANDOM: u8 = 2;

/// The id of a trace, that is, of one request in all systems. Not all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The id of a span, that is, of the part of one actor or service. Not all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// A span in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    flags: u8,
    parent: Option<SpanId>,
    state: TraceState,
}

/// Why a text is not a valid `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The length in bytes is less than 55, or greater in version 00.
    Length(usize),
    /// The version is `ff`, which is invalid.
    Version,
    /// The byte at this index is not one of `0` to `9` and `a` to `f`.
    Digit(usize),
    /// The byte at this index is not `-`.
    Dash(usize),
    /// The trace id is all zeros.
    NoTrace,
    /// The span id is all zeros.
    NoSpan,
}

impl TraceId {
    /// `None`: the bytes are all zeros.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// The bytes in the order of the header.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl SpanId {
    /// `None`: the bytes are all zeros.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// The bytes in the order of the header.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0
    }

    fn random() -> Self {
        loop {
            if let Some(id) = Self::from_bytes(random().to_be_bytes()) {
                return id;
            }
        }
    }
}

impl TraceContext {
    /// The first span of a new trace, with random ids. `sampled`: the trace is to be recorded.
    pub fn new(sampled: bool) -> Self {
        let trace_id = loop {
            let bytes = (u128::from(random()) << 64 | u128::from(random())).to_be_bytes();
            if let Some(id) = TraceId::from_bytes(bytes) {
                break id;
            }
        };
        let sampled = if sampled { SAMPLED } else { 0 };
        Self::of(trace_id, SpanId::random(), RANDOM | sampled)
    }

    fn of(trace_id: TraceId, span_id: SpanId, flags: u8) -> Self {
        Self {
            trace_id,
            span_id,
            flags: flags & (SAMPLED | RANDOM),
            parent: None,
            state: TraceState::default(),
        }
    }

    /// A span with these ids and without a parent.
    pub fn from_ids(trace_id: TraceId, span_id: SpanId, sampled: bool) -> Self {
        Self::of(trace_id, span_id, if sampled { SAMPLED } else { 0 })
    }

    /// Reads a `traceparent` header. The span is the sender's. In a version later than 00,
    /// everything after the flags is ignored.
    ///
    /// # Errors
    /// The header is not valid. Begin a new trace.
    pub fn parse(traceparent: impl AsRef<[u8]>) -> Result<Self, TraceError> {
        let text = traceparent.as_ref();
        if text.len() < LEN {
            return Err(TraceError::Length(text.len()));
        }
        let [version] = hex(text, 0)?;
        if version == 0xff {
            return Err(TraceError::Version);
        }
        if version == 0 && text.len() > LEN {
            return Err(TraceError::Length(text.len()));
        }
        for index in [2, 35, 52, LEN] {
            if text.get(index).is_some_and(|byte| *byte != b'-') {
                return Err(TraceError::Dash(index));
            }
        }
        let trace_id = TraceId::from_bytes(hex(text, 3)?).ok_or(TraceError::NoTrace)?;
        let span_id = SpanId::from_bytes(hex(text, 36)?).ok_or(TraceError::NoSpan)?;
        let [flags] = hex(text, 53)?;
        Ok(Self::of(trace_id, span_id, flags))
    }

    /// Reads both headers. An invalid `tracestate` is ignored, as the recommendation requires.
    ///
    /// ```
    /// use thalweg_runtime::trace::TraceContext;
    ///
    /// let incoming = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// let context = TraceContext::from_headers(incoming, Some("rojo=00f067aa0ba902b7"))?;
    /// assert!(context.is_sampled());
    /// assert_eq!(context.state().get("rojo"), Some("00f067aa0ba902b7"));
    /// assert_eq!(context.traceparent(), incoming);
    /// # Ok::<(), thalweg_runtime::trace::TraceError>(())
    /// ```
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_headers(
        traceparent: impl AsRef<[u8]>,
        tracestate: Option<impl AsRef<[u8]>>,
    ) -> Result<Self, TraceError> {
        let state = tracestate.and_then(|text| TraceState::parse(text).ok());
        Ok(Self::parse(traceparent)?.with_state(state.unwrap_or_default()))
    }

    /// Replaces the trace state.
    #[must_use]
    pub fn with_state(self, state: TraceState) -> Self {
        Self { state, ..self }
    }

    /// A child span in the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            span_id: SpanId::random(),
            parent: Some(self.span_id),
            ..self.clone()
        }
    }

    /// The `traceparent` header in version 00.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace_id, self.span_id, self.flags)
    }

    /// The id of the trace.
    pub fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// The id of the span. It is the parent id in the `traceparent` header that a receiver reads.
    pub fn span_id(&self) -> SpanId {
        self.span_id
    }

    /// The parent, if this span was created by [`child`](Self::child).
    pub fn parent(&self) -> Option<SpanId> {
        self.parent
    }

    /// Whether the sender may have recorded the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The `tracestate` header.
    pub fn state(&self) -> &TraceState {
        &self.state
    }
}

/// Reads `N` bytes of two lower-case hexadecimal digits each.
fn hex<const N: usize>(text: &[u8], from: usize) -> Result<[u8; N], TraceError> {
    let digit = |index: usize| match text.get(index) {
        Some(digit @ b'0'..=b'9') => Ok(digit - b'0'),
        Some(letter @ b'a'..=b'f') => Ok(letter - b'a' + 10),
        _ => Err(TraceError::Digit(index)),
    };
    let mut bytes = [0; N];
    for (nth, byte) in bytes.iter_mut().enumerate() {
        let index = from + 2 * nth;
        *byte = digit(index)? << 4 | digit(index + 1)?;
    }
    Ok(bytes)
}

/// Random enough for ids that must not collide by accident: `SipHash` of a counter, with keys that
/// the system gave this thread.
fn random() -> u64 {
    thread_local! {
        static KEYS: RandomState = RandomState::new();
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }
    let count = COUNT.get();
    COUNT.set(count.wrapping_add(1));
    // A forked child has its parent's keys and counter.
    KEYS.with(|keys| keys.hash_one((count, std::process::id())))
}

fn digits(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        digits(f, &self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        digits(f, &self.0)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent())
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(len) => write!(f, "a traceparent has {LEN} bytes, not {len}"),
            Self::Version => f.write_str("version ff is not valid"),
            Self::Digit(index) => write!(f, "byte {index} is not one of 0 to 9 and a to f"),
            Self::Dash(index) => write!(f, "byte {index} is not -"),
            Self::NoTrace => f.write_str("the trace id is all zeros"),
            Self::NoSpan => f.write_str("the span id is all zeros"),
        }
    }
}

impl std::error::Error for TraceError {}
