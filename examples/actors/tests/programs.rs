//! Each program is run as a person runs it. It asserts its own claims.

use std::process::Command;

/// Where cargo puts the programs: beside the folder of this test. `cargo test` builds both.
fn output(name: &str) -> String {
    let test = std::env::current_exe().expect("the test knows where it is");
    let built = test.ancestors().nth(2).expect("target/debug/deps/test");
    let output = Command::new(built.join("examples").join(name))
        .output()
        .expect("the program is built: run `cargo test` without --test");
    assert!(
        output.status.success(),
        "{name}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the programs write UTF-8")
}

#[test]
fn each_program_keeps_what_it_claims() {
    for (name, words) in [
        ("stages", "200000 lines, of which 20000 are no numbers"),
        ("pool", "2^1999 has 602 digits"),
        ("timer", "none early"),
        ("check", "turns on the same worker"),
        (
            "recursion",
            "1000000 levels with an explicit stack: 499999500000",
        ),
        ("accounts", "10000 accounts hold 1000000"),
        ("limits", "200 requests, 20 fetches"),
    ] {
        let said = output(name);
        assert!(said.contains(words), "{name}: {said}");
    }
}

#[test]
fn the_supervisor_says_what_it_heard() {
    let said = output("supervisor");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 9, "{said}");
    assert!(lines[0].contains("the database is not there yet"), "{said}");
    assert!(
        lines[0].contains("supervisor.rs:"),
        "the place is in it: {said}"
    );
    assert_eq!(lines[2], "attempt 3: it went well");
    assert_eq!(lines[8], "given up after 5");
}
