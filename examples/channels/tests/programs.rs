//! Runs each program as a user would. The programs assert their own results; these tests compare
//! the output with independent sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The path of an example program: cargo puts it next to this test's folder. `cargo test` builds
/// both.
fn program(name: &str) -> Command {
    let test = std::env::current_exe().expect("the test knows where it is");
    let built = test.ancestors().nth(2).expect("target/debug/deps/test");
    let path = built.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo test` without --test",
        path.display()
    );
    Command::new(path)
}

fn output(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program starts");
    assert!(
        status.success(),
        "{status}: {}",
        String::from_utf8_lossy(&stderr)
    );
    String::from_utf8(stdout).expect("the programs write UTF-8")
}

/// The numbers of the first line that contains `word`, without thousands separators.
fn numbers(text: &str, word: &str) -> Vec<u64> {
    let line = text.lines().find(|line| line.contains(word));
    let line = line.unwrap_or_else(|| panic!("no line with {word:?} in\n{text}"));
    let parts = line.split(|c: char| !c.is_ascii_digit() && c != ',');
    parts
        .filter_map(|part| part.replace(',', "").parse().ok())
        .collect()
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_pipeline_ends_with_as_many_samples_as_it_says() {
    let text = output(&mut program("pipeline"));
    assert_eq!(numbers(&text, "source")[0], 1_000_000);
    assert_eq!(numbers(&text, "meter")[0], 250_000);
    assert!(text.ends_with("bit for bit.\n"), "{text}");
}

#[test]
fn the_log_has_every_line_and_each_services_in_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("requests.log");
    let text = output(program("log_lines").arg(&path));
    assert_eq!(numbers(&text, "written")[0], 100_000);

    let log = fs::read_to_string(&path).unwrap();
    let mut of_service: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in log.lines() {
        let (service, rest) = line.split_once(' ').unwrap();
        of_service.entry(service).or_default().push(rest);
    }
    let expected: Vec<String> = (1..=25_000)
        .map(|n| format!("request {n} answered"))
        .collect();
    assert_eq!(
        of_service.keys().copied().collect::<Vec<_>>(),
        ["auth", "billing", "mail", "search"]
    );
    for (service, lines) in of_service {
        assert!(lines == expected, "{service} is not as it was sent");
    }
}

#[test]
fn a_log_without_a_name_is_taken_away_again() {
    let directory = tempfile::tempdir().unwrap();
    output(program("log_lines").env("TMPDIR", directory.path()));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_log_that_cannot_be_made_is_an_error_and_not_a_hang() {
    let Output { status, stderr, .. } = program("log_lines")
        .arg("no/such/folder/log")
        .output()
        .unwrap();
    assert!(!status.success());
    assert!(String::from_utf8_lossy(&stderr).contains("No such file"));
}

#[test]
fn the_workers_count_what_wc_counts() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("below");
    fs::create_dir(&below).unwrap();
    for n in 0..300 {
        let folder = if n % 2 == 0 { directory.path() } else { &below };
        // Some files end without a newline, and one is empty.
        fs::write(
            folder.join(format!("{n}.txt")),
            "a line\n".repeat(n) + &"x".repeat(n % 3),
        )
        .unwrap();
    }
    let text = output(program("workers").arg(directory.path()));
    let counted = output(
        Command::new("sh")
            .args(["-c", r#"cat "$0"/*.txt "$0"/below/*.txt | wc -lc"#])
            .arg(directory.path()),
    );
    let counted: Vec<u64> = counted
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    assert_eq!(numbers(&text, "total"), counted);

    let shares = numbers(&text, "files by");
    assert_eq!(shares[0], 300);
    assert_eq!(shares[2..].iter().sum::<u64>(), 300);
    assert_eq!(shares[2..].len() as u64, shares[1]);
}

#[test]
fn a_file_that_is_not_there_is_an_error_and_not_a_hang() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let Output { status, stderr, .. } = program("workers").arg(missing).output().unwrap();
    assert!(!status.success());
    assert!(String::from_utf8_lossy(&stderr).contains("No such file"));
}

#[test]
fn the_collector_received_what_the_sensors_sent() {
    let text = output(&mut program("select"));
    let figures = numbers(&text, "readings sent");
    assert_eq!(figures[0], figures[1]);
    assert!(figures[2] <= figures[1]);
    assert!(
        text.contains("asked:") && text.contains("told to stop"),
        "{text}"
    );
}

#[test]
fn every_policy_adds_up() {
    let text = output(&mut program("overflow"));
    let (before, beside) = text.split_once("The same").unwrap();
    for (part, policies) in [(before, 5), (beside, 6)] {
        let rows: Vec<&str> = part
            .lines()
            .filter(|line| line.starts_with("  ") && line.contains(" to "))
            .collect();
        assert_eq!(rows.len(), policies, "{part}");
        for row in rows {
            let figures = numbers(row, " to ");
            assert_eq!(figures[1..4].iter().sum::<u64>(), 10_000, "{row}");
        }
    }
    assert_eq!(
        numbers(before, "DropOldest"),
        [16, 16, 9_984, 0, 9_984, 9_999]
    );
    assert_eq!(numbers(beside, "Block "), [16, 10_000, 0, 0, 0, 9_999]);
}

#[test]
fn the_server_finds_the_primes_that_there_are() {
    let text = output(&mut program("event_loop"));
    let is_prime = |n: u64| {
        (2..)
            .take_while(|d| d * d <= n)
            .all(|d| !n.is_multiple_of(d))
    };
    let primes = (1_000_000_000..1_000_002_000)
        .filter(|n| is_prime(*n))
        .count();
    assert_eq!(numbers(&text, "answered"), [2_000, primes as u64]);
    let (slept, woken) = (numbers(&text, "slept")[0], numbers(&text, "woken"));
    assert!(
        woken.iter().all(|times| (1..=slept).contains(times)),
        "{text}"
    );
}

#[test]
fn the_tasks_count_the_lines_that_are_there() {
    let text = output(&mut program("tokio_bridge"));
    let (mut files, mut lines) = (0, 0);
    for entry in fs::read_dir(here("../../crates/queue/src")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            files += 1;
            lines += fs::read_to_string(path).unwrap().matches('\n').count() as u64;
        }
    }
    assert_eq!(numbers(&text, "lines "), [lines, files]);
    assert_eq!(numbers(&text, "reports"), [files]);
}

#[test]
fn the_readme_has_every_program() {
    let readme = fs::read_to_string(here("README.md")).unwrap();
    for entry in fs::read_dir(here("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            readme.contains(&format!("--example {name}")),
            "{name} is not in README.md"
        );
    }
}
