//! The command-line arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The arguments of a run.
#[derive(Debug)]
pub struct Arguments {
    /// The text to search for: one line, not empty.
    pub pattern: String,
    /// The directory to search, which exists.
    pub directory: String,
    /// The service's library.
    pub library: PathBuf,
    /// The host programs.
    pub rust: PathBuf,
    /// See `rust`.
    pub c: PathBuf,
    /// See `rust`.
    pub cpp: PathBuf,
    /// The interpreter.
    pub python: PathBuf,
    /// The host program that it runs.
    pub script: PathBuf,
    /// Node and the host program that it runs, if Node is installed.
    pub node: Option<(PathBuf, PathBuf)>,
    /// The host program in Nim, if Nim is installed.
    pub nim: Option<PathBuf>,
}

/// The usage line.
pub const USAGE: &str = "usage: search-run --library FILE --rust PROGRAM --c PROGRAM --cpp PROGRAM \
                         --python INTERPRETER --script FILE [--node INTERPRETER --node-script FILE] \
                         [--nim PROGRAM] [--pattern TEXT] [--dir DIRECTORY]";

/// The default pattern. It is frequent enough for a long stream, but not in every line.
const PATTERN: &str = "unsafe";

impl Arguments {
    /// Reads and checks the process's arguments. An empty directory means the default one; an empty
    /// pattern is an error, because it would match every line of the default.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, String> {
        let mut pattern = None;
        let mut directory = None;
        let [
            mut library,
            mut rust,
            mut c,
            mut cpp,
            mut python,
            mut script,
            mut node,
            mut node_script,
            mut nim,
        ] = [const { None }; 9];
        let mut parser = lexopt::Parser::from_iter(arguments);
        let wrong = |error: lexopt::Error| format!("{error}\n{USAGE}");
        while let Some(argument) = parser.next().map_err(wrong)? {
            use lexopt::prelude::*;
            let place = match argument {
                Long("pattern") => &mut pattern,
                Long("dir") => &mut directory,
                Long("library") => &mut library,
                Long("rust") => &mut rust,
                Long("c") => &mut c,
                Long("cpp") => &mut cpp,
                Long("python") => &mut python,
                Long("script") => &mut script,
                Long("node") => &mut node,
                Long("node-script") => &mut node_script,
                Long("nim") => &mut nim,
                other => return Err(wrong(other.unexpected())),
            };
            *place = Some(parser.value().map_err(wrong)?);
        }
        let file = |name: &str, path: Option<OsString>| {
            let path = path
                .map(PathBuf::from)
                .ok_or(format!("--{name} is missing\n{USAGE}"))?;
            if path.exists() {
                Ok(path)
            } else {
                Err(format!("{}: not there", path.display()))
            }
        };
        Ok(Arguments {
            pattern: checked_pattern(pattern)?,
            directory: checked_directory(directory)?,
            library: file("library", library)?,
            rust: file("rust", rust)?,
            c: file("c", c)?,
            cpp: file("cpp", cpp)?,
            python: file("python", python)?,
            script: file("script", script)?,
            node: match (node, node_script) {
                (None, None) => None,
                (node, script) => Some((file("node", node)?, file("node-script", script)?)),
            },
            nim: nim.map(|nim| file("nim", Some(nim))).transpose()?,
        })
    }
}

fn checked_pattern(pattern: Option<OsString>) -> Result<String, String> {
    let Some(pattern) = pattern else {
        return Ok(PATTERN.to_owned());
    };
    let pattern = pattern
        .into_string()
        .map_err(|_| "the pattern is not UTF-8".to_owned())?;
    if pattern.is_empty() {
        return Err("the pattern is empty: PATTERN= must say what to look for".to_owned());
    }
    if pattern.contains('\n') {
        // grep would take it as two patterns, the service refuses it.
        return Err("the pattern contains a line's end: lines are what is searched".to_owned());
    }
    Ok(pattern)
}

fn checked_directory(directory: Option<OsString>) -> Result<String, String> {
    let directory = match directory.filter(|directory| !directory.is_empty()) {
        Some(directory) => PathBuf::from(directory),
        None => sources_of_dependencies()
            .ok_or("no sources of Rust dependencies to search: say where with DIR=".to_owned())?,
    };
    let name = directory.display();
    if !directory.exists() {
        return Err(format!("{name}: there is no such directory"));
    }
    if !directory.is_dir() {
        return Err(format!("{name}: not a directory"));
    }
    match directory.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!(
            "{name}: the directory's name is not UTF-8, as an interface's text must be"
        )),
    }
}

/// The folder with the sources of the crates that cargo has downloaded.
fn sources_of_dependencies() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")))?;
    Some(home.join("registry/src")).filter(|sources| sources.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads arguments in which only these two matter.
    fn read(pattern: &str, directory: &str) -> Result<Arguments, String> {
        let mut arguments = vec!["search-run"];
        for name in [
            "--library",
            "--rust",
            "--c",
            "--cpp",
            "--python",
            "--script",
        ] {
            arguments.extend([name, "/dev/null"]);
        }
        arguments.extend(["--pattern", pattern, "--dir", directory]);
        Arguments::read(arguments.into_iter().map(OsString::from))
    }

    #[test]
    fn a_pattern_that_begins_with_a_dash_is_a_pattern() {
        assert_eq!(read("--dir", "/").unwrap().pattern, "--dir");
    }

    #[test]
    fn an_empty_pattern_and_one_with_a_newline_are_refused() {
        assert!(read("", "/").unwrap_err().contains("empty"));
        assert!(read("a\nb", "/").unwrap_err().contains("line's end"));
    }

    #[test]
    fn a_directory_that_is_none_is_refused_with_its_name() {
        assert!(
            read("x", "/no/such")
                .unwrap_err()
                .contains("/no/such: there is no")
        );
        assert!(
            read("x", "/dev/null")
                .unwrap_err()
                .contains("/dev/null: not a directory")
        );
    }

    #[test]
    fn a_host_that_is_not_built_is_named() {
        let error = Arguments::read(["search-run", "--rust", "/no/host"].map(OsString::from));
        assert!(error.unwrap_err().contains("--library is missing"));
        let error = Arguments::read(
            ["search-run", "--library", "/dev/null", "--rust", "/no/host"].map(OsString::from),
        );
        assert!(error.unwrap_err().contains("/no/host: not there"));
    }

    #[test]
    fn node_without_its_program_is_refused_and_both_are_optional() {
        assert_eq!(read("x", "/").unwrap().node, None);
        let mut arguments = vec!["search-run", "--node", "/dev/null"];
        for name in [
            "--library",
            "--rust",
            "--c",
            "--cpp",
            "--python",
            "--script",
        ] {
            arguments.extend([name, "/dev/null"]);
        }
        arguments.extend(["--dir", "/"]);
        let error = Arguments::read(arguments.into_iter().map(OsString::from)).unwrap_err();
        assert!(error.contains("--node-script is missing"), "{error}");
    }

    #[test]
    fn an_unknown_option_is_named_and_the_usage_shown() {
        let error = Arguments::read(["search-run", "--frob"].map(OsString::from)).unwrap_err();
        assert!(error.contains("--frob") && error.contains("usage:"));
    }
}
