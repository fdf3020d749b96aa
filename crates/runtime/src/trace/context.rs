//! A context, and its header `traceparent`: <https://www.w3.org/TR/trace-context/>.
//!
//! ```text
//! 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//! |  trace id: 16 bytes               span id: 8       flags
//! version
//! ```

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use super::state::TraceState;

/// Characters of a header of version 00.
const LEN: usize = 55;
/// Who began the trace, or passed it on, may have recorded it.
const SAMPLED: u8 = 1;
/// The trace id is random in its last seven bytes: level 2 of the recommendation.
const RANDOM: u8 = 2;

/// A trace: what one request does anywhere. Not all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// A span: what one actor, or one service, does for it. Not all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// Which span of which trace this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    flags: u8,
    parent: Option<SpanId>,
    state: TraceState,
}

/// Why a text is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// It has so many bytes: fewer than 55, or more although it is of version 00.
    Length(usize),
    /// It is of version `ff`, which there is not.
    Version,
    /// The byte in this place is neither a digit nor one of `a` to `f`.
    Digit(usize),
    /// The byte in this place is no `-`.
    Dash(usize),
    /// The trace id is all zeros.
    NoTrace,
    /// The span id is all zeros.
    NoSpan,
}

impl TraceId {
    /// `None`: it is all zeros.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// As they are sent, first byte first.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl SpanId {
    /// `None`: it is all zeros.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// As they are sent, first byte first.
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
    /// The first span of a new trace, with random numbers. `sampled`: it is to be recorded.
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

    /// A span of these numbers, which is none's child here.
    pub fn from_ids(trace_id: TraceId, span_id: SpanId, sampled: bool) -> Self {
        Self::of(trace_id, span_id, if sampled { SAMPLED } else { 0 })
    }

    /// Reads a header `traceparent`: the span is that of who sent it. Of a version later than 00 what comes behind the flags is not looked at.
    ///
    /// # Errors
    /// It is none, and a new trace begins.
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
        for place in [2, 35, 52, LEN] {
            if text.get(place).is_some_and(|byte| *byte != b'-') {
                return Err(TraceError::Dash(place));
            }
        }
        let trace_id = TraceId::from_bytes(hex(text, 3)?).ok_or(TraceError::NoTrace)?;
        let span_id = SpanId::from_bytes(hex(text, 36)?).ok_or(TraceError::NoSpan)?;
        let [flags] = hex(text, 53)?;
        Ok(Self::of(trace_id, span_id, flags))
    }

    /// Reads both headers. A `tracestate` that is not good is left out, as the recommendation wants it.
    ///
    /// ```
    /// use thalweg_runtime::trace::TraceContext;
    ///
    /// let came = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// let context = TraceContext::from_headers(came, Some("rojo=00f067aa0ba902b7"))?;
    /// assert!(context.is_sampled());
    /// assert_eq!(context.state().get("rojo"), Some("00f067aa0ba902b7"));
    /// assert_eq!(context.traceparent(), came);
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

    /// With this state.
    #[must_use]
    pub fn with_state(self, state: TraceState) -> Self {
        Self { state, ..self }
    }

    /// A span of its own in the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            span_id: SpanId::random(),
            parent: Some(self.span_id),
            ..self.clone()
        }
    }

    /// The header `traceparent`, of version 00.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace_id, self.span_id, self.flags)
    }

    /// Which trace.
    pub fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// Which span: what `traceparent` calls the parent, as seen from who gets it.
    pub fn span_id(&self) -> SpanId {
        self.span_id
    }

    /// The span that this one is a [child](Self::child) of. `None`: it was not made from another one here.
    pub fn parent(&self) -> Option<SpanId> {
        self.parent
    }

    /// Whether who sent it may have recorded it.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The header `tracestate`.
    pub fn state(&self) -> &TraceState {
        &self.state
    }
}

/// So many bytes, from two small digits each.
fn hex<const N: usize>(text: &[u8], from: usize) -> Result<[u8; N], TraceError> {
    let digit = |place: usize| match text.get(place) {
        Some(digit @ b'0'..=b'9') => Ok(digit - b'0'),
        Some(letter @ b'a'..=b'f') => Ok(letter - b'a' + 10),
        _ => Err(TraceError::Digit(place)),
    };
    let mut bytes = [0; N];
    for (nth, byte) in bytes.iter_mut().enumerate() {
        let place = from + 2 * nth;
        *byte = digit(place)? << 4 | digit(place + 1)?;
    }
    Ok(bytes)
}

/// Random enough for ids that nobody may meet by accident: `SipHash` of a count, under keys that the system gave this thread.
fn random() -> u64 {
    thread_local! {
        static KEYS: RandomState = RandomState::new();
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }
    let count = COUNT.get();
    COUNT.set(count.wrapping_add(1));
    // A forked child has its parent's keys and count.
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
            Self::Length(len) => write!(f, "a traceparent has {LEN} bytes, this has {len}"),
            Self::Version => f.write_str("there is no version ff"),
            Self::Digit(place) => write!(f, "byte {place} is none of 0 to 9 and a to f"),
            Self::Dash(place) => write!(f, "byte {place} is not -"),
            Self::NoTrace => f.write_str("the trace id is all zeros"),
            Self::NoSpan => f.write_str("the span id is all zeros"),
        }
    }
}

impl std::error::Error for TraceError {}
