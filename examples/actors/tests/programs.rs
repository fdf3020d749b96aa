//! Runs each program as a user does. The programs assert their results themselves.

use std::process::Command;

/// Returns the output of a program. Cargo puts the programs next to the folder of this test, and
/// `cargo test` builds both.
fn output(name: &str) -> String {
    let test = std::env::current_exe().expect("the path of the test is known");
    let built = test.ancestors().nth(2).expect("target/debug/deps/test");
    let output = Command::new(built.join("examples").join(name))
        .output()
        .expect("the program is built; run `cargo test` without --test");
    assert!(
        output.status.success(),
        "{name}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the programs write UTF-8")
}

#[test]
fn each_program_prints_its_asserted_result() {
    for (name, words) in [
        ("stages", "200000 lines, 20000 of them not numbers"),
        ("pool", "2^1999 has 602 digits"),
        ("timer", "none early"),
        ("check", "rounds on the same worker"),
        (
            "recursion",
            "1000000 levels with an explicit stack: 499999500000",
        ),
        ("accounts", "10000 accounts hold 1000000"),
        ("limits", "200 requests, 20 fetches"),
    ] {
        let output = output(name);
        assert!(output.contains(words), "{name}: {output}");
    }
}

#[test]
fn supervisor_prints_each_panic_and_gives_up() {
    let output = output("supervisor");
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 9, "{output}");
    assert!(lines[0].contains("the database is not ready"), "{output}");
    assert!(
        lines[0].contains("supervisor.rs:"),
        "the location is printed: {output}"
    );
    assert_eq!(lines[2], "attempt 3: succeeded");
    assert_eq!(lines[8], "given up after 5");
}
