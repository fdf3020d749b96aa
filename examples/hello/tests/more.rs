//! What the page shows besides: flags, streams and futures both ways, and functions on the caller's thread.

#[path = "../../../crates/bindgen/tests/from_code/more.rs"]
mod api;
#[path = "../../../crates/bindgen/tests/from_code/generated/more.rs"]
mod more;
#[path = "../../../crates/bindgen/tests/from_code/generated/more_from_code.rs"]
mod more_from_code;

use api::{Piece, Press, Style};
use more::PressClient;
use more_from_code::PressFromCode;
use std::pin::Pin;
use thalweg::port::{Upstream, UpstreamFuture};
use thalweg::{CallError, Code, Failure};

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
            assert!(!piece.text.is_empty(), "there is no text");
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
    let bold = more::Style::BOLD;
    assert_eq!(words.next(), Some(Err(CallError::Service(bold))));
    assert_eq!(words.next(), None);
    let Err(CallError::Ended(why)) = read("!a").next().unwrap() else {
        panic!("the stream has a failure");
    };
    assert_eq!(why.code, Code::GuestLost);
    assert!(why.message.contains("no ink"), "{why}");
}

fn client() -> PressClient {
    PressClient::start(|| PressFromCode::new(Lead)).unwrap()
}

fn piece(text: &str, style: Style) -> more::Piece {
    let text = text.to_owned();
    Piece { text, style }.into()
}

#[test]
fn flags_go_both_ways() {
    for bits in 0..4 {
        let flags = more::Style::from_bits(bits).unwrap();
        let theirs = Style {
            bold: bits & 1 != 0,
            italic: bits & 2 != 0,
        };
        assert_eq!(Style::from(flags), theirs);
        assert_eq!(more::Style::from(theirs), flags);
    }
}

#[test]
fn a_function_on_the_caller_s_thread_is_answered() {
    let client = client();
    assert_eq!(client.styles().unwrap(), more::Style::all());
    assert_eq!(client.longest_measure("four").unwrap(), 4);
    let plain = piece("a", BOLD);
    assert_eq!(client.check(&plain).unwrap(), plain);
    match client.check(&piece("a", Lead::styles())) {
        Err(CallError::Service(flags)) => assert_eq!(flags, more::Style::all()),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn what_the_caller_sends_is_iterated() {
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
fn a_stream_that_breaks_off_is_no_end() {
    let client = client();
    let (writer, pieces) = Upstream::pair().unwrap();
    let whole = client.join(pieces);
    writer.send(&piece("one ", BOLD)).unwrap();
    drop(writer);
    match whole.wait() {
        Err(CallError::Service(style)) => assert_eq!(Style::from(style), BOLD),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn what_the_caller_says_later_is_awaited() {
    let client = client();
    let (writer, style) = UpstreamFuture::pair().unwrap();
    let set = client.set("late", style);
    writer.set(&more::Style::from(BOLD)).unwrap();
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
fn what_the_service_says_later_arrives() {
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
fn a_future_that_panics_ends_as_its_call_would() {
    let proof = client().proof(&piece("", BOLD)).wait().unwrap();
    assert_eq!(proof.wait().unwrap_err().code, Code::GuestPanicked);
}
