//! The program as it is called.

use std::process::Command;

#[test]
fn it_prints_what_the_others_print() {
    let output = Command::new(env!("CARGO_BIN_EXE_feed-rust"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = include_str!("../../../expected.txt");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
