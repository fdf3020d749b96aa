//! Calls the service from Rust and C, and compares the code of the guide.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use thalweg::CallError;
use thalweg_hello::api::{self, Greeter};
use thalweg_hello::hello::{HelloClient, HelloError, Person, Tone};
use thalweg_hello::hello_from_code::HelloFromCode;

const EXPECTED: &str = include_str!("../expected.txt");

fn person(name: &str, age: Option<u8>) -> Person {
    Person {
        name: name.to_owned(),
        age,
    }
}

#[test]
fn rust_host_prints_the_expected_lines() -> Result<(), Box<dyn Error>> {
    let client = HelloClient::start(|| HelloFromCode::new(Greeter::default()))?;
    let (ada, grace) = (person("Ada", Some(36)), person("Grace", None));
    let mut out = String::new();
    writeln!(out, "{}", client.greet(&ada, Tone::Friendly).wait()?)?;
    writeln!(out, "{}", client.greet(&grace, Tone::Formal).wait()?)?;
    match client.greet(&person("", None), Tone::Formal).wait() {
        Err(CallError::Service(HelloError::NoName)) => writeln!(out, "refused: no name")?,
        other => panic!("not refused: {other:?}"),
    }
    let guests = client.guests(&vec![ada, grace]).wait()?;
    writeln!(out, "{} guests", guests.count().wait()?)?;
    for guest in guests.arrive().wait()? {
        let Person { name, age } = guest?;
        let age = age.map_or(String::new(), |age| format!(", {age}"));
        writeln!(out, "{name} arrives{age}")?;
    }
    for greeting in client.greet_all(&guests).wait()? {
        writeln!(out, "{greeting}")?;
    }
    writeln!(out, "greeted {}", client.greeted().wait()?)?;
    assert_eq!(out, EXPECTED);
    Ok(())
}

#[test]
fn values_convert_in_both_directions() {
    for theirs in [api::HelloError::NoName, api::HelloError::TooLong(64)] {
        assert_eq!(
            api::HelloError::from(HelloError::from(theirs.clone())),
            theirs
        );
    }
    let ours = person("Ada", Some(36));
    assert_eq!(Person::from(api::Person::from(ours.clone())), ours);
    assert_eq!(Tone::from(api::Tone::Formal), Tone::Formal);
}

#[test]
fn long_name_is_an_error_with_its_payload() {
    let client = HelloClient::start(|| HelloFromCode::new(Greeter::default())).unwrap();
    match client
        .greet(&person(&"a".repeat(65), None), Tone::Formal)
        .wait()
    {
        Err(CallError::Service(HelloError::TooLong(64))) => {}
        other => panic!("not refused: {other:?}"),
    }
    match client.guests(&vec![person("", None)]).wait() {
        Err(CallError::Service(HelloError::NoName)) => {}
        other => panic!("not refused: {other:?}"),
    }
}

/// The code in the guide is the code of the example.
#[test]
fn guide_shows_the_code_of_the_example() {
    let page = include_str!("../../../docs/code-first.md");
    let code = concat!(
        include_str!("../src/api.rs"),
        include_str!("../src/lib.rs"),
        include_str!("../src/library.rs"),
        include_str!("hello.rs"),
        include_str!("../hosts/python/hello.py"),
        include_str!("../hosts/c/hello.c"),
        include_str!("../wit/hello.wit"),
        include_str!("../../../conformance/codegen/src/api/press.rs"),
        include_str!("../../../conformance/codegen/src/api/greeter.rs"),
        include_str!("../../../conformance/codegen/src/api/hall.rs"),
    );
    let shown: Vec<_> = page.split("```").skip(1).step_by(2).collect();
    assert!(shown.len() >= 12);
    for block in shown {
        let (language, block) = block.split_once('\n').unwrap();
        if language != "sh" {
            assert!(code.contains(block), "not in the example:\n{block}");
        }
    }
}

/// The library is in the folder of the test binary.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libthalweg_hello.so")
}

#[test]
fn c_host_prints_the_expected_lines() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = library().with_file_name("hello-c");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("../../bindings/c/include"))
        .arg("-I")
        .arg(here.join("generated/c"))
        .arg(here.join("hosts/c/hello.c"))
        .arg("-o")
        .arg(&program)
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let ran = Command::new(program).arg(library()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), EXPECTED);
}
