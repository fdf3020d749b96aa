//! The layout of gofmt: aligned columns, comments, and spaces in expressions.

use super::DOCS;
use crate::plan::codec::At;
use crate::plan::source::Source;

/// A line of two columns, with its documentation.
pub(super) struct Row {
    pub docs: String,
    pub left: String,
    pub right: String,
}

/// Writes rows. A comment ends the alignment of the rows before it.
pub(super) fn rows(all: &[Row], out: &mut Source) {
    let mut rest = all;
    while let Some(first) = rest.first() {
        docs(out, "", &first.docs);
        let next = rest[1..].iter().position(|row| !row.docs.is_empty());
        let (block, others) = rest.split_at(next.map_or(rest.len(), |next| next + 1));
        let width = block.iter().map(|row| row.left.chars().count()).max();
        let width = width.unwrap_or(0);
        for Row { left, right, .. } in block {
            out.line(format!("{left:width$} {right}").trim_end());
        }
        rest = others;
    }
}

/// Writes a comment at the current level: a first sentence, and the documentation in WIT.
pub(super) fn docs(out: &mut Source, first: &str, docs: &str) {
    let docs = docs.trim();
    let separator = if first.is_empty() || docs.is_empty() {
        ""
    } else {
        "\n\n"
    };
    let mut comment = Source::new(&DOCS);
    comment.docs("", &format!("{first}{separator}{}", listed(docs)));
    let comment = comment.tail(0);
    comment.lines().for_each(|line| out.line(line));
}

/// The items of lists in a comment have an indentation of their own in Go.
fn listed(docs: &str) -> String {
    let mut is_list = false;
    let lines = docs.lines().map(|line| {
        let is_item = line.starts_with("- ") || line.starts_with("* ");
        is_list = is_item || is_list && line.starts_with("  ");
        match (is_item, is_list) {
            (true, _) => format!("  - {}", &line[2..]),
            (false, true) => format!("    {}", line.trim_start()),
            (false, false) => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// An offset that is the only argument of a call.
pub(super) fn alone(at: &At) -> String {
    at.to_string().replace(" * ", "*")
}

/// An offset among several arguments.
pub(super) fn among(at: &At) -> String {
    at.to_string().replace(' ', "")
}
