//! The record, variant, enum and flags that the tests use, written like generated code.
#![allow(dead_code, reason = "each test uses a part")]

mod cbor;
pub mod nested;

use thalweg_wire::{Bytes, Checker, Decode, Encode, Encoder, ListView, Malformed, Rule, Shape};

#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    pub path: String,
    pub line: u64,
    pub column: u64,
    pub text: String,
    pub path_bytes: Option<Vec<u8>>,
    pub text_bytes: Option<Vec<u8>>,
    pub cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchView<'a> {
    pub path: &'a str,
    pub line: u64,
    pub column: u64,
    pub text: &'a str,
    pub path_bytes: Option<ListView<'a, u8>>,
    pub text_bytes: Option<ListView<'a, u8>>,
    pub cut: bool,
}

impl Encode for MatchView<'_> {
    type As = Match;

    #[inline]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.path.encode(to, at);
        self.line.encode(to, at + 8);
        self.column.encode(to, at + 16);
        self.text.encode(to, at + 24);
        self.path_bytes.encode(to, at + 32);
        self.text_bytes.encode(to, at + 44);
        self.cut.encode(to, at + 56);
    }
}

impl Encode for Match {
    type As = Match;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.as_view().encode(to, at);
    }
}

impl Decode for Match {
    const SIZE: u32 = 64;
    const ALIGN: u32 = 8;
    const SHAPE: Shape = Shape::Parts(&[
        Shape::Text("record{path:"),
        String::SHAPE,
        Shape::Text(",line:u64,column:u64,text:string,path-bytes:"),
        Option::<Vec<u8>>::SHAPE,
        Shape::Text(",text-bytes:option<list<u8>>,cut:bool}"),
    ]);
    const DEPTH: u32 = 3;
    type View<'a> = MatchView<'a>;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        String::check(from, at)?;
        String::check(from, at + 24)?;
        Option::<Vec<u8>>::check(from, at + 32)?;
        Option::<Vec<u8>>::check(from, at + 44)?;
        bool::check(from, at + 56)
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> MatchView<'a> {
        MatchView {
            path: String::view(from, at),
            line: u64::view(from, at + 8),
            column: u64::view(from, at + 16),
            text: String::view(from, at + 24),
            path_bytes: Option::<Vec<u8>>::view(from, at + 32),
            text_bytes: Option::<Vec<u8>>::view(from, at + 44),
            cut: bool::view(from, at + 56),
        }
    }

    fn owned(view: MatchView<'_>) -> Match {
        Match {
            path: String::owned(view.path),
            line: view.line,
            column: view.column,
            text: String::owned(view.text),
            path_bytes: Decode::owned(view.path_bytes),
            text_bytes: Decode::owned(view.text_bytes),
            cut: view.cut,
        }
    }

    fn as_view(&self) -> MatchView<'_> {
        MatchView {
            path: &self.path,
            line: self.line,
            column: self.column,
            text: &self.text,
            path_bytes: self.path_bytes.as_view(),
            text_bytes: self.text_bytes.as_view(),
            cut: self.cut,
        }
    }
}

/// `variant step { jump(list<string>), wait(f64), stop }`
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Jump(Vec<String>),
    Wait(f64),
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepView<'a> {
    Jump(ListView<'a, String>),
    Wait(f64),
    Stop,
}

impl Encode for StepView<'_> {
    type As = Step;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        match self {
            StepView::Jump(value) => value.encode(to, at + 8),
            StepView::Wait(value) => {
                to.u8(at, 1);
                value.encode(to, at + 8);
            }
            StepView::Stop => to.u8(at, 2),
        }
    }
}

impl Encode for Step {
    type As = Step;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.as_view().encode(to, at);
    }
}

impl Decode for Step {
    const SIZE: u32 = 16;
    const ALIGN: u32 = 8;
    const SHAPE: Shape = Shape::Text("variant{jump(list<string>),wait(f64),stop}");
    const DEPTH: u32 = 2;
    type View<'a> = StepView<'a>;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        match from.bytes().u8(at) {
            0 => <Vec<String>>::check(from, at + 8),
            1 => f64::check(from, at + 8),
            2 => Ok(()),
            _ => Err(from.broken(Rule::Discriminant, at)),
        }
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> StepView<'a> {
        match from.u8(at) {
            0 => StepView::Jump(<Vec<String>>::view(from, at + 8)),
            1 => StepView::Wait(f64::view(from, at + 8)),
            _ => StepView::Stop,
        }
    }

    fn owned(view: StepView<'_>) -> Step {
        match view {
            StepView::Jump(value) => Step::Jump(Decode::owned(value)),
            StepView::Wait(value) => Step::Wait(value),
            StepView::Stop => Step::Stop,
        }
    }

    fn as_view(&self) -> StepView<'_> {
        match self {
            Step::Jump(value) => StepView::Jump(value.as_view()),
            Step::Wait(value) => StepView::Wait(*value),
            Step::Stop => StepView::Stop,
        }
    }
}

/// `flags rights { read, write, run }`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rights(pub u8);

impl Encode for Rights {
    type As = Rights;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        to.u8(at, self.0);
    }
}

impl Decode for Rights {
    const SIZE: u32 = 1;
    const ALIGN: u32 = 1;
    const SHAPE: Shape = Shape::Text("flags{read,write,run}");
    const DEPTH: u32 = 0;
    type View<'a> = Rights;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        from.flags(at, u32::from(from.bytes().u8(at)), 3)
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> Rights {
        Rights(from.u8(at))
    }

    fn owned(view: Rights) -> Rights {
        view
    }

    fn as_view(&self) -> Rights {
        *self
    }
}
