//! The output of a command and its exit status.

use std::io::{self, Write};
use std::process::ExitCode;

/// The exit status that a shell reports for a program that was ended by SIGPIPE: 128 + 13.
pub const BROKEN_PIPE: u8 = 141;

/// The result of a command. It is printed after the command has finished, so a reader that closes
/// the pipe cannot interrupt the work.
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

    /// An error, with exit status 2.
    pub fn failed(error: impl ToString) -> Self {
        Self {
            stderr: error.to_string() + "\n",
            status: 2,
            ..Self::default()
        }
    }

    /// Prints the result. Returns 141 if the reader of standard output has closed it, 2 if standard
    /// output cannot be written, and the exit status otherwise.
    pub fn print(self) -> ExitCode {
        // An error of standard error cannot be reported.
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
