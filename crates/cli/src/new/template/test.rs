//! Tests of the service from Rust: `cargo test`.

use std::process::Command;

use thalweg::CallError;

use my_service::my_service::{MyServiceClient, MyServiceError};

fn client() -> MyServiceClient {
    my_service::start().expect("the service starts")
}

#[test]
fn greet_numbers_the_greetings() {
    let client = client();
    assert_eq!(client.greet("Ada").wait().unwrap().number, 1);
    let second = client.greet("Grace").wait().unwrap();
    assert_eq!((second.number, second.text.as_str()), (2, "Hello, Grace!"));
}

#[test]
fn greet_refuses_empty_and_long_names() {
    let client = client();
    for (name, expected) in [
        (String::new(), MyServiceError::EmptyName),
        ("a".repeat(65), MyServiceError::TooLong(64)),
    ] {
        match client.greet(&name).wait() {
            Err(CallError::Service(error)) => assert_eq!(error, expected),
            other => panic!("not refused: {other:?}"),
        }
    }
}

#[test]
fn greet_all_streams_one_greeting_per_name() {
    let names = vec!["Grace".to_owned(), "Barbara".to_owned()];
    let stream = client().greet_all(&names).wait().unwrap();
    let texts: Vec<_> = stream.map(|greeting| greeting.unwrap().text).collect();
    assert_eq!(texts, ["Hello, Grace!", "Hello, Barbara!"]);
}

#[test]
fn host_prints_the_greetings() {
    let output = Command::new(env!("CARGO_BIN_EXE_my-service-host"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = "1: Hello, Ada!\n2: Hello, Grace!\n3: Hello, Barbara!\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
