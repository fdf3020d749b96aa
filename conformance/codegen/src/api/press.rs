//! Flags, streams and futures in both directions, and inline functions.

use std::pin::Pin;
use std::sync::Mutex;
use thalweg::{CallError, Failure};

/// The style of a text.
#[thalweg::value(flags)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Style {
    /// Bold.
    pub bold: bool,
    /// Italic.
    pub italic: bool,
}

/// A piece of text.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Its style.
    pub style: Style,
}

/// The length of the longest line so far.
#[derive(Default)]
pub struct Longest(Mutex<u32>);

/// Measures lines.
#[thalweg::resource]
impl Longest {
    /// Starts with a length of 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of a line.
    #[thalweg::method(inline)]
    pub fn measure(line: &str) -> u32 {
        line.len() as u32
    }

    /// Measures lines until their stream ends. The result is the longest length so far.
    pub fn watch(
        &self,
        lines: Box<dyn Iterator<Item = Result<String, Failure>> + Send>,
    ) -> Result<u32, Style> {
        let mut longest = self.0.lock().unwrap();
        for line in lines {
            let line = line.map_err(|_| Style::default())?;
            *longest = u32::max(*longest, Self::measure(&line));
        }
        Ok(*longest)
    }
}

/// Sets text.
#[thalweg::service(package = "a:press@0.1.0")]
pub trait Press {
    /// The supported styles.
    #[thalweg::method(inline)]
    fn styles() -> Style;

    /// Whether a piece can be set.
    #[thalweg::method(inline, idempotent)]
    fn check(piece: Piece) -> Result<Piece, Style>;

    /// All pieces, joined into one.
    async fn join(
        &self,
        pieces: impl Iterator<Item = Result<Piece, Failure>> + Send + 'static,
    ) -> Result<Piece, Style>;

    /// Sets a text, as soon as its style is known.
    async fn set(
        &self,
        text: String,
        style: impl Future<Output = Result<Style, Failure>> + Send + 'static,
    ) -> Piece;

    /// The number of ticks, counted after `go`.
    async fn count(
        &self,
        ticks: impl Iterator<Item = Result<(), Failure>> + Send + 'static,
        go: Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>,
    ) -> u32;

    /// A proof of a piece, when it is ready.
    fn proof(&self, piece: Piece) -> impl Future<Output = Piece> + Send + 'static;

    /// The length of the proof of a text, or the unsupported style.
    fn proof_of(&self, text: &str) -> Result<Pin<Box<dyn Future<Output = u32> + Send>>, Style>;

    /// `count` ticks.
    fn ticks(&self, count: u32) -> impl Iterator<Item = ()> + Send + 'static;

    /// One piece per word. The stream fails at a word that begins with a star, with the unsupported style.
    #[expect(clippy::type_complexity, reason = "the signature shows the full types")]
    fn words(
        &self,
        text: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<Piece, CallError<Style>>> + Send>, Style>;
}
