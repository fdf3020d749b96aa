//! A host program: run once, it prints one line of JSON.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use crate::arguments::Arguments;

/// A host program, and the command that runs it.
#[derive(Debug)]
pub struct Host {
    /// The name in the table.
    pub name: &'static str,
    command: Vec<OsString>,
}

/// The result of one run of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Lines that matched.
    pub matches: u64,
    /// The sum of their line numbers, to compare results in any order.
    pub lines_sum: u64,
    /// From the call to the first match in the host's hands, in ns; without a match, to the end.
    pub first_match_ns: u64,
    /// From the call to the end of the stream, in ns.
    pub total_ns: u64,
}

impl Host {
    /// All hosts. The others are compared with the first one.
    pub fn all(arguments: &Arguments) -> Vec<Host> {
        let Arguments {
            pattern,
            directory,
            library,
            rust,
            c,
            cpp,
            python,
            script,
            node,
            nim,
        } = arguments;
        let word = |word| OsStr::new::<str>(word);
        let (pattern, directory) = (word(pattern), word(directory));
        let [library, rust, c, cpp, python, script] =
            [library, rust, c, cpp, python, script].map(|path| path.as_os_str());
        let [json, on_asyncio, direct] = ["--json", "--async", "--direct"].map(word);
        // Otherwise, argparse treats a pattern that begins with a dash as an option.
        let end = word("--");
        let host = |name, words: &[&OsStr]| Host {
            name,
            command: words.iter().map(|&word| word.to_owned()).collect(),
        };
        let mut hosts = vec![
            host("direct", &[rust, pattern, directory, direct]),
            host("Rust", &[rust, pattern, directory, json]),
            host("C", &[c, library, pattern, directory, json]),
            host("C++", &[cpp, library, pattern, directory, json]),
            host("C++ async", &[cpp, library, pattern, directory, on_asyncio]),
            host(
                "Python",
                &[python, script, json, end, library, pattern, directory],
            ),
            host(
                "Python async",
                &[
                    python, script, json, on_asyncio, end, library, pattern, directory,
                ],
            ),
        ];
        if let Some((node, script)) = node {
            let [node, script] = [node, script].map(|path| path.as_os_str());
            let words = [node, script, library, pattern, directory, json];
            hosts.push(host("Node", &words));
        }
        if let Some(nim) = nim {
            let words = [nim.as_os_str(), library, pattern, directory, json];
            hosts.push(host("Nim", &words));
        }
        hosts
    }

    /// Runs it once.
    ///
    /// # Errors
    /// A sentence for the user that names the host and contains its output.
    pub fn run(&self) -> Result<Measured, String> {
        let output = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: does not start: {error}", self.name))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!(
                "{}: {}: {}",
                self.name,
                output.status,
                errors.trim()
            ));
        }
        let line = String::from_utf8_lossy(&output.stdout);
        Measured::read(&line).ok_or_else(|| {
            format!(
                "{}: printed something else than was agreed: {:?}",
                self.name,
                line.trim()
            )
        })
    }
}

impl Measured {
    fn read(line: &str) -> Option<Measured> {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let number = |name| line.get(name)?.as_u64();
        Some(Measured {
            matches: number("matches")?,
            lines_sum: number("lines_sum")?,
            first_match_ns: number("first_match_ns")?,
            total_ns: number("total_ns")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Host {
        Host {
            name: "shell",
            command: ["sh", "-c", script].map(OsString::from).to_vec(),
        }
    }

    #[test]
    fn a_hosts_line_is_read() {
        let line = r#"{"host":"C","matches":3,"lines_sum":12,"first_match_ns":5,"total_ns":9}"#;
        let expected = Measured {
            matches: 3,
            lines_sum: 12,
            first_match_ns: 5,
            total_ns: 9,
        };
        assert_eq!(shell(&format!("echo '{line}'")).run(), Ok(expected));
    }

    #[test]
    fn a_host_that_fails_is_named_with_what_it_said() {
        let error = shell("echo no library >&2; exit 3").run().unwrap_err();
        assert!(error.contains("shell: ") && error.contains("no library") && error.contains('3'));
    }

    #[test]
    fn a_host_that_prints_something_else_is_named() {
        for script in ["true", "echo hello", r#"echo '{"matches":"3"}'"#] {
            assert!(shell(script).run().unwrap_err().contains("something else"));
        }
    }

    #[test]
    fn a_host_that_is_not_there_is_named() {
        let host = Host {
            name: "gone",
            command: vec!["/no/such/host".into()],
        };
        assert!(host.run().unwrap_err().contains("gone: does not start"));
    }
}
