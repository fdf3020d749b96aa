//! CBOR of the sample types, written like generated code.

use super::{Match, MatchView, Rights, Step, StepView};
use thalweg_wire::cbor::{Cbor, Reader, Refused, Rule, Writer};

impl Cbor for Match {
    fn write(view: MatchView<'_>, to: &mut Writer) {
        to.map(7);
        to.text("cut");
        bool::write(view.cut, to);
        to.text("line");
        u64::write(view.line, to);
        to.text("path");
        String::write(view.path, to);
        to.text("text");
        String::write(view.text, to);
        to.text("column");
        u64::write(view.column, to);
        to.text("path-bytes");
        <Option<Vec<u8>>>::write(view.path_bytes, to);
        to.text("text-bytes");
        <Option<Vec<u8>>>::write(view.text_bytes, to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Match, Refused> {
        let (mut path, mut line, mut column, mut text) = (None, None, None, None);
        let (mut path_bytes, mut text_bytes, mut cut) = (None, None, None);
        let mut fields = from.map()?;
        while let Some(key) = from.key(&mut fields)? {
            match &*key {
                "path" => from.field(&mut path)?,
                "line" => from.field(&mut line)?,
                "column" => from.field(&mut column)?,
                "text" => from.field(&mut text)?,
                "path-bytes" => from.field(&mut path_bytes)?,
                "text-bytes" => from.field(&mut text_bytes)?,
                "cut" => from.field(&mut cut)?,
                _ => return Err(from.refused(Rule::Unknown)),
            }
        }
        Ok(Match {
            path: from.required(path)?,
            line: from.required(line)?,
            column: from.required(column)?,
            text: from.required(text)?,
            path_bytes: from.required(path_bytes)?,
            text_bytes: from.required(text_bytes)?,
            cut: from.required(cut)?,
        })
    }
}

impl Cbor for Step {
    fn write(view: StepView<'_>, to: &mut Writer) {
        match view {
            StepView::Jump(value) => {
                to.map(1);
                to.text("jump");
                <Vec<String>>::write(value, to);
            }
            StepView::Wait(value) => {
                to.map(1);
                to.text("wait");
                f64::write(value, to);
            }
            StepView::Stop => to.text("stop"),
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Step, Refused> {
        let case = from.case()?;
        let value = match (&*case.name, case.payload) {
            ("jump", true) => Step::Jump(Cbor::read(from)?),
            ("wait", true) => Step::Wait(Cbor::read(from)?),
            ("stop", false) => Step::Stop,
            _ => return Err(case.unknown()),
        };
        case.end(from)?;
        Ok(value)
    }
}

impl Cbor for Rights {
    fn write(view: Rights, to: &mut Writer) {
        to.flags(u32::from(view.0), ["read", "write", "run"].into_iter());
    }

    fn read(from: &mut Reader<'_>) -> Result<Rights, Refused> {
        from.flags(|name| match name {
            "read" => Some(0),
            "write" => Some(1),
            "run" => Some(2),
            _ => None,
        })
        .map(|bits| Rights(bits as u8))
    }
}
