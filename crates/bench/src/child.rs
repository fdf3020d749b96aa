//! Programs in other languages as sides: a long-lived child process that takes one sample per line.
//!
//! The lab writes a command and its numbers as one line (`call 1000 0`). The program takes that
//! sample, times it itself, and answers with one line of JSON. Its first line is sent unprompted
//! and reports that the program has opened its library: `{"ready": true}`. Between samples the
//! program waits on standard input and uses no processor time, so samples of programs in different
//! languages can be interleaved. The program exits when its input ends.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::placement::Placement;
use crate::problem::Problem;

/// The lab's own program of this name, which is in the same folder as this one.
///
/// # Errors
/// The program was not built.
pub fn beside(name: &str) -> Result<PathBuf, Problem> {
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    // A test's executable is one folder deeper.
    let folders = exe.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
        .ok_or_else(|| {
            Problem::NotReady(format!(
                "{name} is not beside {}: cargo build --release -p thalweg-bench",
                exe.display()
            ))
        })
}

/// A running program of one host language.
#[derive(Debug)]
pub struct HostProgram {
    name: String,
    child: Child,
    // `None` after the input was closed.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Ready {
    ready: bool,
}

impl HostProgram {
    /// Starts `command` at `placement` and waits until it is ready. `name` is used in messages.
    ///
    /// # Errors
    /// The program cannot be started, or it does not report that it is ready.
    pub fn start(name: &str, mut command: Command, placement: Placement) -> Result<Self, Problem> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = placement.spawn(&mut command)?;
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its output was just piped");
        let mut program = Self {
            name: name.to_owned(),
            child,
            input,
            output: BufReader::new(output),
        };
        match program.answer::<Ready>()? {
            Ready { ready: true } => Ok(program),
            Ready { ready: false } => Err(program.problem("says that it is not ready")),
        }
    }

    /// Requests one sample.
    ///
    /// # Errors
    /// The program died, or its answer has an unexpected form.
    pub fn ask<A: DeserializeOwned>(&mut self, line: &str) -> Result<A, Problem> {
        let written = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        match written {
            Some(Ok(())) => self.answer(),
            _ => Err(self.problem(&format!("is gone before `{line}`"))),
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes its input and waits for it to exit.
    ///
    /// # Errors
    /// The program failed. A crash during shutdown also fails the run.
    pub fn finish(mut self) -> Result<(), Problem> {
        drop(self.input.take());
        let status = self.child.wait().map_err(Problem::io(self.name.clone()))?;
        if status.success() {
            Ok(())
        } else {
            Err(self.problem(&format!("ended with {status}")))
        }
    }

    fn answer<A: DeserializeOwned>(&mut self) -> Result<A, Problem> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(self.problem("ended without an answer; what it said is above")),
            Ok(_) => serde_json::from_str(&line)
                .map_err(|error| self.problem(&format!("answered `{}`: {error}", line.trim_end()))),
            Err(error) => Err(Problem::Io(self.name.clone(), error)),
        }
    }

    fn problem(&self, what: &str) -> Problem {
        Problem::Host(format!("{} {what}", self.name))
    }
}

impl Drop for HostProgram {
    /// Kills a program whose run failed: it receives no further requests.
    fn drop(&mut self) {
        if self.input.take().is_some() {
            // Both fail only if the program has already exited.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<HostProgram, Problem> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        HostProgram::start("shell", command, Placement::Free)
    }

    #[test]
    fn a_program_answers_line_by_line_and_ends_with_its_input() {
        let script = r#"echo '{"ready": true}'; while read a b; do echo "[$b, 1]"; done"#;
        let mut program = shell(script).unwrap();
        assert_eq!(program.ask::<Vec<u32>>("x 7").unwrap(), [7, 1]);
        assert_eq!(program.ask::<Vec<u32>>("x 8").unwrap(), [8, 1]);
        program.finish().unwrap();
    }

    #[test]
    fn a_program_that_dies_is_a_problem_with_its_name() {
        let mut program = shell(r#"echo '{"ready": true}'; read a; exit 3"#).unwrap();
        let problem = program.ask::<Vec<u32>>("x").unwrap_err().to_string();
        assert!(
            problem.contains("shell ended without an answer"),
            "{problem}"
        );
        let failed = shell(r#"echo '{"ready": true}'; read a; exit 3"#)
            .unwrap()
            .finish();
        assert!(failed.unwrap_err().to_string().contains("exit status: 3"));
    }

    #[test]
    fn a_program_that_never_gets_ready_is_a_problem() {
        assert!(shell("exit 0").is_err());
        assert!(shell(r#"echo '{"ready": false}'; read a"#).is_err());
        assert!(shell("echo cannot open the library").is_err());
    }
}
