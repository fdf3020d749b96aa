//! Compares the tables of `docs/reliability.md` with the code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use thalweg::channel::mpsc;
use thalweg::port::{Port, QueueLimits, StreamOptions};
use thalweg::runtime::{Config, Mailbox, Value};
use thalweg::wire;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/reliability.md")).expect("the page is there")
}

/// The part of the page from this heading to the next heading of its level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("the page has {heading}"));
    rest.split("\n## ").next().unwrap_or_default()
}

/// The rows of its tables: the second and third cell by the first cell.
fn rows(section: &str) -> BTreeMap<String, [String; 2]> {
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    let lines = section.lines().filter(|line| line.starts_with("| "));
    let rows = lines.map(cells).filter(|cells| {
        !cells[0].starts_with("---") && !["limit", "name", "resource"].contains(&&*cells[0])
    });
    rows.map(|cells| (cells[0].clone(), [cells[1].clone(), cells[2].clone()]))
        .collect()
}

/// Formats a number like 1,048,576.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a size like 64 MiB.
fn bytes(number: u64) -> String {
    match number.trailing_zeros() {
        0..20 => format!("{} KiB", grouped(number >> 10)),
        _ => format!("{} MiB", grouped(number >> 20)),
    }
}

fn time(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1_000_000_000 == 0 => format!("{} s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{} ms", ns / 1_000_000),
        ns => format!("{} us", ns / 1_000),
    }
}

/// Checks a constant that is private to its module: the file must contain this line.
fn source(file: &str, line: &str) {
    let text = fs::read_to_string(root().join(file)).expect("the file is there");
    assert!(
        text.contains(line),
        "{file} has no {line:?}: change the page, too"
    );
}

const NONE: &str = "–";

#[test]
fn limits_of_the_page_are_those_of_the_code() {
    let page = page();
    let mut rows = rows(section(&page, "## Limits"));
    let mut holds = |limit: &str, default: &str, range: &str| {
        let row = rows.remove(limit);
        let expected = [default.to_owned(), range.to_owned()];
        assert_eq!(row, Some(expected), "the row of {limit}");
    };

    let settings = Config::default()
        .describe()
        .expect("no variable is set")
        .settings;
    for setting in settings {
        let default = match (setting.name, setting.value) {
            ("workers", _) => "the processors that the process may use".to_owned(),
            ("stall", _) => "100 ms in debug builds, else off".to_owned(),
            (_, Value::Count(count)) => grouped(count),
            (_, Value::Bytes(size)) => bytes(size),
            (_, Value::Time(value)) => time(value),
            // A switch is not a limit.
            _ => continue,
        };
        holds(&format!("`{}`", setting.name), &default, setting.range);
    }

    let mailbox = u64::from(Mailbox::default().capacity);
    holds(
        "messages that wait for an actor",
        &grouped(mailbox),
        "1 to 2^31",
    );
    source(
        "crates/runtime/src/behaviour/mod.rs",
        "const CALL_TIMEOUT: Duration = Duration::from_secs(5);",
    );
    holds("a call to an actor", "5 s", "any `Duration`");
    source(
        "crates/runtime/src/supervisor/spec.rs",
        "intensity: Some(1),\n            period: Duration::from_secs(5),",
    );
    holds(
        "restarts of a supervisor's children",
        "1 in 5 s",
        "`intensity`, or `unlimited_restarts`",
    );
    source(
        "crates/runtime/src/supervisor/spec.rs",
        "const SHUTDOWN: Duration = Duration::from_secs(5);",
    );
    holds("the orderly shutdown of a child", "5 s", "`Shutdown`");
    source("crates/runtime/src/name.rs", "const MAX_LEN: usize = 255;");
    holds("bytes of a registered name", NONE, "1 to 255");
    source(
        "crates/runtime/src/actor_info/crash.rs",
        "const MAX_CRASHES: usize = 64;",
    );
    holds("crashes that `inspect` keeps", "64", NONE);
    source(
        "crates/runtime/src/blocking_pool.rs",
        "const IDLE_TIMEOUT: Duration = Duration::from_secs(10);",
    );
    holds("an idle thread of `io::blocking`", "10 s", NONE);

    assert!(mpsc::channel::<()>(0).is_err() && mpsc::channel::<()>((1 << 30) + 1).is_err());
    source("crates/queue/src/error.rs", "const MAX: usize = 1 << 30;");
    holds(
        "values in a channel",
        "the capacity that you give",
        "1 to 2^30",
    );
    source(
        "crates/queue/src/mpsc/lanes.rs",
        "const MAX_LANES: usize = if cfg!(loom) { 128 } else { 256 };",
    );
    holds(
        "lanes of an `mpsc` channel",
        "one for a sender that sends often",
        "256",
    );

    let QueueLimits {
        max_queued_calls,
        max_queued_bytes: size,
        ..
    } = QueueLimits::DEFAULT;
    holds(
        "calls that wait for one client",
        &grouped(max_queued_calls.into()),
        "`max_queued_calls` in the policy file",
    );
    holds(
        "bytes of arguments that wait for one client, and of results that wait in one port",
        &bytes(size),
        "`max_queued_bytes` in the policy file",
    );
    assert!(Port::open(65_536).is_ok() && Port::open(65_537).is_err() && Port::open(0).is_err());
    holds(
        "calls under way on one port",
        "the capacity that you give",
        "1 to 65,536",
    );
    source("crates/port/src/handles.rs", "1 << 24");
    holds("open handles of a process", NONE, &grouped(1 << 24));
    source(
        "crates/port/src/package.rs",
        "self.max_queued_bytes.saturating_mul(4)",
    );
    holds(
        "bytes of results in one port, with those of calls that have begun",
        "four times `max_queued_bytes`",
        NONE,
    );
    let StreamOptions {
        capacity,
        linger_ns: 0,
        max_record_size,
        ..
    } = StreamOptions::DEFAULT
    else {
        panic!("the reader of a slow stream waits");
    };
    holds(
        "records in a stream",
        &grouped(capacity.into()),
        "`capacity` in the policy file",
    );
    source(
        "crates/port/src/stream/waking.rs",
        "const MAX_LINGER_NS: u64 = 512_000;",
    );
    holds(
        "how long the reader of a fast stream waits for more records",
        "512 us",
        "`linger` in the policy file",
    );
    holds(
        "bytes of one record",
        &bytes(max_record_size.into()),
        "`max_record_size` in the policy file",
    );
    source(
        "crates/port/src/stream/sending.rs",
        "const MAX_CONTROL_RECORDS: usize = 64;",
    );
    holds("control records that wait", "64", NONE);
    source(
        "crates/port/src/stream/upstream_core.rs",
        "const ELEMENTS: usize = 256;",
    );
    source(
        "crates/port/src/stream/upstream_core.rs",
        "const BYTES: usize = 1 << 20;",
    );
    holds(
        "elements of a parameter stream that wait",
        "256 elements or 1 MiB",
        NONE,
    );

    assert_eq!(wire::MAX_SIZE, (1 << 31) - 1);
    holds("bytes of a message", NONE, "2^31 - 1");
    holds("nesting of a type", NONE, &grouped(wire::MAX_DEPTH.into()));
    holds(
        "elements of a list whose elements have no size",
        NONE,
        &grouped(wire::MAX_UNSIZED.into()),
    );
    assert!(
        rows.is_empty(),
        "nothing holds these rows: {:?}",
        rows.keys()
    );
}
