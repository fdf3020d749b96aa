//! What is sent bit by bit, or later, or decided on the caller's thread.

use std::pin::Pin;
use std::sync::Mutex;
use thalweg::{CallError, Failure};

/// How a text is set.
#[thalweg::value(flags)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Style {
    /// Thicker.
    pub bold: bool,
    /// Aslant.
    pub italic: bool,
}

/// A piece of text.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// What it says.
    pub text: String,
    /// How it says it.
    pub style: Style,
}

/// The longest line that there was.
#[derive(Default)]
pub struct Longest(Mutex<u32>);

/// A measure of lines.
#[thalweg::resource]
impl Longest {
    /// Nothing is measured yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long this is.
    #[thalweg::method(inline)]
    pub fn measure(line: &str) -> u32 {
        line.len() as u32
    }

    /// Measures what comes; the longest is there when no more does.
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
#[thalweg::service(package = "a:more@0.1.0")]
pub trait Press {
    /// What it can do.
    #[thalweg::method(inline)]
    fn styles() -> Style;

    /// Whether it can set that.
    #[thalweg::method(inline, idempotent)]
    fn check(piece: Piece) -> Result<Piece, Style>;

    /// The pieces one after the other, in one.
    async fn join(
        &self,
        pieces: impl Iterator<Item = Result<Piece, Failure>> + Send + 'static,
    ) -> Result<Piece, Style>;

    /// In that style, as soon as it is known.
    async fn set(
        &self,
        text: String,
        style: impl Future<Output = Result<Style, Failure>> + Send + 'static,
    ) -> Piece;

    /// After those ticks, how many there were.
    async fn count(
        &self,
        ticks: impl Iterator<Item = Result<(), Failure>> + Send + 'static,
        go: Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>,
    ) -> u32;

    /// A proof, later.
    fn proof(&self, piece: Piece) -> impl Future<Output = Piece> + Send + 'static;

    /// The same, of what can be set at all.
    fn proof_of(&self, text: &str) -> Result<Pin<Box<dyn Future<Output = u32> + Send>>, Style>;

    /// So many ticks.
    fn ticks(&self, count: u32) -> impl Iterator<Item = ()> + Send + 'static;

    /// A piece for each word. The stream fails at a word that begins with a star, with the style that cannot be set.
    #[expect(clippy::type_complexity, reason = "what the caller gets is spelt out")]
    fn words(
        &self,
        text: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<Piece, CallError<Style>>> + Send>, Style>;
}
