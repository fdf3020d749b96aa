//! Prints the list as a table.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::actor_info::{ActorInfo, ActorKind, ActorList, ActorState};

const TITLES: [&str; 10] = [
    "actor", "name", "kind", "state", "worker", "mailbox", "slices", "time", "stack", "parent",
];

/// The left-aligned columns. The others contain numbers and are right-aligned.
const WORDS: std::ops::Range<usize> = 1..4;

type Row = [String; TITLES.len()];

/// One line per actor. The `stack` column contains the bytes in use and, after the bar, the
/// high-water mark.
///
/// ```text
/// actor  name     kind       state         worker  mailbox  slices  time    stack       parent
///  4097  -        stack      running            0        -       1  310us   1K|8K            -
///  4098  sleeper  stack      waits 3600s        0        -       1  12us    1K|8K         4097
///     2  counter  behaviour  resting            -   0/1024       3  9us     -             4097
/// ```
impl fmt::Display for ActorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Row> = std::iter::once(TITLES.map(str::to_owned))
            .chain(self.actors.iter().map(row))
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: [usize; TITLES.len()] = std::array::from_fn(width);
        for row in &rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                if WORDS.contains(&column) {
                    write!(line, "{cell:<width$}  ")?;
                } else {
                    write!(line, "{cell:>width$}  ")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        for unresponsive in &self.unresponsive {
            write!(f, "worker {} did not answer", unresponsive.worker)?;
            match unresponsive.running_actor {
                Some(actor) => writeln!(f, ": actor {actor} blocks it")?,
                None => writeln!(f)?,
            }
        }
        if !self.includes_idle {
            writeln!(
                f,
                "idle behaviour actors are not listed; set THALWEG_INSPECT=on"
            )?;
        }
        Ok(())
    }
}

fn row(actor: &ActorInfo) -> Row {
    [
        actor.id.to_string(),
        actor.name.as_deref().map_or_else(none, printable),
        actor.kind.to_string(),
        actor.state.to_string(),
        or_none(actor.worker),
        or_none(
            actor
                .mailbox
                .map(|mailbox| format!("{}/{}", mailbox.len, mailbox.capacity)),
        ),
        or_none(actor.slices),
        or_none(actor.worker_time.map(short)),
        or_none(actor.stack.map(|stack| {
            let depth = kibi(stack.depth);
            let most = stack.high_water().map_or_else(|| "?".into(), kibi);
            format!("{depth}|{most}")
        })),
        or_none(actor.parent),
    ]
}

fn none() -> String {
    String::from("-")
}

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(none, |value| value.to_string())
}

/// Escapes a user's name, so that it contains no control characters and fits into one line.
pub(crate) fn printable(name: &str) -> String {
    one_line(name, 32)
}

/// Escapes a user's text and shortens it to `longest` characters.
pub(crate) fn one_line(text: &str, longest: usize) -> String {
    let mut line: String = text.escape_debug().take(longest).collect();
    if text.escape_debug().count() > longest {
        line.push('…');
    }
    line
}

fn kibi(bytes: usize) -> String {
    format!("{}K", bytes.div_ceil(1 << 10))
}

/// Three or four digits and the unit.
fn short(time: Duration) -> String {
    match time.as_nanos() {
        ns @ 0..10_000 => format!("{ns}ns"),
        ns @ 10_000..10_000_000 => format!("{}us", ns / 1_000),
        ns @ 10_000_000..10_000_000_000 => format!("{}ms", ns / 1_000_000),
        ns => format!("{}s", ns / 1_000_000_000),
    }
}

impl fmt::Display for ActorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stack => "stack",
            Self::Behaviour => "behaviour",
            Self::Scheduled => "scheduled",
        })
    }
}

impl fmt::Display for ActorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("new"),
            Self::Runnable => f.write_str("runnable"),
            Self::Running => f.write_str("running"),
            Self::Waiting { timeout: None } => f.write_str("waits"),
            Self::Waiting {
                timeout: Some(timeout),
            } => write!(f, "waits {}", short(*timeout)),
            Self::Idle => f.write_str("idle"),
            Self::Stopped => f.write_str("stopped"),
            Self::Ending => f.write_str("ending"),
        }
    }
}
