//! Formats generated code with the `rustfmt` of the toolchain, so that it passes `cargo fmt
//! --check`.

use std::io::Write;
use std::process::{Command, Stdio};

/// Formats a file in the default style of rustfmt. A `rustfmt.toml` has no effect.
pub fn rustfmt(source: &str) -> Result<String, String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path", "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            format!(
                "`rustfmt` cannot be run: {error}; install it with `rustup component add rustfmt`"
            )
        })?;
    let mut stdin = rustfmt.stdin.take().expect("the pipe was requested");
    // A separate thread, because rustfmt may write before it has read everything.
    let text = source.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = rustfmt
        .wait_with_output()
        .map_err(|error| format!("`rustfmt` failed: {error}"))?;
    let written = writer
        .join()
        .map_err(|_| "cannot write to `rustfmt`".to_owned())?;
    if !output.status.success() {
        return Err(format!(
            "`rustfmt` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    written.map_err(|error| format!("`rustfmt` failed: {error}"))?;
    String::from_utf8(output.stdout).map_err(|error| format!("`rustfmt` failed: {error}"))
}
