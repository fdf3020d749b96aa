//! The output of a command and its exit status.

use std::io::{self, Write};
use std::process::ExitCode;

/// The status with which a shell reports a program that SIGPIPE ended: 128 + 13.
const BROKEN_PIPE: u8 = 141;

/// The result of a command. It is printed once, after the command has done its work: a reader that leaves cannot stop it half-way.
#[derive(Debug, Default)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// The exit status.
    pub status: u8,
}

impl Output {
    pub fn done(stdout: String) -> Self {
        Self {
            stdout,
            ..Self::default()
        }
    }

    /// Exit status 2.
    pub fn failed(error: impl ToString) -> Self {
        Self {
            stderr: error.to_string() + "\n",
            status: 2,
            ..Self::default()
        }
    }

    /// Writes it and returns the exit status: 141 where the reader of standard output has left, 2 where it cannot be written.
    pub fn print(self) -> ExitCode {
        // Nobody is left to be told that standard error cannot be written.
        let _ = io::stderr().write_all(self.stderr.as_bytes());
        let mut out = io::stdout().lock();
        match out
            .write_all(self.stdout.as_bytes())
            .and_then(|()| out.flush())
        {
            Ok(()) => ExitCode::from(self.status),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(BROKEN_PIPE),
            Err(error) => {
                let _ = writeln!(io::stderr(), "cannot write to standard output: {error}");
                ExitCode::from(2)
            }
        }
    }
}
