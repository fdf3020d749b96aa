//! Flags, streams and futures in both directions, and inline functions.

use std::pin::Pin;
use thalweg::port::{Upstream, UpstreamFuture};
use thalweg::{CallError, Code, Failure};
use thalweg_codegen_tests::api::press::{Piece, Press, Style};
use thalweg_codegen_tests::services::press::{self as generated, PressClient};
use thalweg_codegen_tests::services::press_from_code::PressFromCode;

const BOLD: Style = Style {
    bold: true,
    italic: false,
};

struct Lead;

impl Press for Lead {
    fn styles() -> Style {
        Style {
            bold: true,
            italic: true,
        }
    }

    fn check(piece: Piece) -> Result<Piece, Style> {
        match piece.style.italic {
            true => Err(piece.style),
            false => Ok(piece),
        }
    }

    async fn join(
        &self,
        pieces: impl Iterator<Item = Result<Piece, Failure>> + Send + 'static,
    ) -> Result<Piece, Style> {
        let (mut text, mut style) = (String::new(), Style::default());
        for piece in pieces {
            let piece = piece.map_err(|_| style)?;
            text += &piece.text;
            style = piece.style;
        }
        Ok(Piece { text, style })
    }

    async fn set(
        &self,
        text: String,
        style: impl Future<Output = Result<Style, Failure>> + Send + 'static,
    ) -> Piece {
        let style = style.await.unwrap_or_default();
        Piece { text, style }
    }

    async fn count(
        &self,
        ticks: impl Iterator<Item = Result<(), Failure>> + Send + 'static,
        go: Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>,
    ) -> u32 {
        go.await.map_or(0, |()| ticks.flatten().count() as u32)
    }

    fn proof(&self, piece: Piece) -> impl Future<Output = Piece> + Send + 'static {
        std::future::poll_fn(move |_| {
            assert!(!piece.text.is_empty(), "the text is empty");
            std::task::Poll::Ready(piece.clone())
        })
    }

    fn proof_of(&self, text: &str) -> Result<Pin<Box<dyn Future<Output = u32> + Send>>, Style> {
        let length = text.len() as u32;
        match length {
            0 => Err(BOLD),
            _ => Ok(Box::pin(async move { length })),
        }
    }

    fn ticks(&self, count: u32) -> impl Iterator<Item = ()> + Send + 'static {
        (0..count).map(drop)
    }

    fn words(
        &self,
        text: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<Piece, CallError<Style>>> + Send>, Style> {
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        Ok(Box::new(words.into_iter().map(
            |text| match text.chars().next() {
                Some('*') => Err(CallError::Service(BOLD)),
                Some('!') => Err(Code::Overloaded.because("no ink").into()),
                _ => Ok(Piece {
                    text,
                    style: Style::default(),
                }),
            },
        )))
    }
}

#[test]
fn stream_ends_with_the_first_error_of_its_iterator() {
    let press = client();
    let read = |text: &str| press.words(text).wait().unwrap();
    assert_eq!(read("a b c").map(Result::unwrap).count(), 3);
    let mut words = read("a *b c");
    assert_eq!(words.next().unwrap().unwrap().text, "a");
    let bold = generated::Style::BOLD;
    assert_eq!(words.next(), Some(Err(CallError::Service(bold))));
    assert_eq!(words.next(), None);
    let Err(CallError::Ended(why)) = read("!a").next().unwrap() else {
        panic!("the stream ends with a failure");
    };
    assert_eq!(why.code, Code::GuestLost);
    assert!(why.message.contains("no ink"), "{why}");
}

fn client() -> PressClient {
    PressClient::start(|| PressFromCode::new(Lead)).unwrap()
}

fn piece(text: &str, style: Style) -> generated::Piece {
    let text = text.to_owned();
    Piece { text, style }.into()
}

#[test]
fn flags_convert_in_both_directions() {
    for bits in 0..4 {
        let flags = generated::Style::from_bits(bits).unwrap();
        let style = Style {
            bold: bits & 1 != 0,
            italic: bits & 2 != 0,
        };
        assert_eq!(Style::from(flags), style);
        assert_eq!(generated::Style::from(style), flags);
    }
}

#[test]
fn inline_function_returns_its_result() {
    let client = client();
    assert_eq!(client.styles().unwrap(), generated::Style::all());
    assert_eq!(client.longest_measure("four").unwrap(), 4);
    let plain = piece("a", BOLD);
    assert_eq!(client.check(&plain).unwrap(), plain);
    match client.check(&piece("a", Lead::styles())) {
        Err(CallError::Service(flags)) => assert_eq!(flags, generated::Style::all()),
        other => panic!("unexpected result: {other:?}"),
    }
}

#[test]
fn stream_parameter_is_iterated() {
    let client = client();
    let (writer, pieces) = Upstream::pair().unwrap();
    let whole = client.join(pieces);
    for text in ["one ", "two ", "three"] {
        writer.send(&piece(text, BOLD)).unwrap();
    }
    writer.end().unwrap();
    assert_eq!(whole.wait().unwrap(), piece("one two three", BOLD));

    let (writer, lines) = Upstream::pair().unwrap();
    let longest = client.longest().wait().unwrap();
    let watched = longest.watch(lines);
    for line in ["one", "three", "two"] {
        writer.send(line).unwrap();
    }
    writer.end().unwrap();
    assert_eq!(watched.wait().unwrap(), 5);
}

#[test]
fn stream_parameter_that_is_dropped_ends_with_an_error() {
    let client = client();
    let (writer, pieces) = Upstream::pair().unwrap();
    let whole = client.join(pieces);
    writer.send(&piece("one ", BOLD)).unwrap();
    drop(writer);
    match whole.wait() {
        Err(CallError::Service(style)) => assert_eq!(Style::from(style), BOLD),
        other => panic!("unexpected result: {other:?}"),
    }
}

#[test]
fn future_parameter_is_awaited() {
    let client = client();
    let (writer, style) = UpstreamFuture::pair().unwrap();
    let set = client.set("late", style);
    writer.set(&generated::Style::from(BOLD)).unwrap();
    assert_eq!(set.wait().unwrap(), piece("late", BOLD));

    let (ticks, counted) = Upstream::pair().unwrap();
    let (go, gone) = UpstreamFuture::pair().unwrap();
    let count = client.count(counted, gone);
    (0..3).for_each(|_| ticks.send(&()).unwrap());
    ticks.end().unwrap();
    go.set(&()).unwrap();
    assert_eq!(count.wait().unwrap(), 3);
}

#[test]
fn future_result_is_readable() {
    let client = client();
    let proof = client.proof(&piece("a", BOLD)).wait().unwrap();
    assert_eq!(proof.wait().unwrap(), piece("a", BOLD));
    assert_eq!(client.proof_of("four").wait().unwrap().wait().unwrap(), 4);
    assert!(matches!(
        client.proof_of("").wait(),
        Err(CallError::Service(_))
    ));
    let ticks = client.ticks(300).wait().unwrap();
    assert_eq!(ticks.map(Result::unwrap).count(), 300);
}

#[test]
fn future_that_panics_ends_as_guest_panicked() {
    let code = match client().proof(&piece("", BOLD)).wait() {
        Ok(proof) => proof.wait().unwrap_err().code,
        // The future panicked before the call had its result.
        Err(CallError::Ended(failure)) => failure.code,
        Err(CallError::Service(never)) => match never {},
    };
    assert_eq!(code, Code::GuestPanicked);
}
