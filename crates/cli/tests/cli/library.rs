//! The libraries of the examples and of the conformance service, for the commands that open one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder with the libraries, which are built now if they are not there.
pub fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_thalweg"));
        let target = program.ancestors().nth(2).expect("target/debug/thalweg");
        let status = Command::new(root().join("scripts/build-services.sh"))
            .env("CARGO_TARGET_DIR", target)
            .status()
            .expect("the script can be started");
        assert!(status.success(), "the libraries cannot be built");
        target.join("debug")
    });
    &FOLDER
}

/// The path of a library: `hello`.
pub fn path(name: &str) -> PathBuf {
    folder().join(format!("libthalweg_{name}.so"))
}

/// The command, which runs in the folder with the libraries.
pub fn thalweg<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.current_dir(folder()).args(arguments);
    command
}

/// Runs the command, and returns its exit status, standard output and standard error.
pub fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> (i32, String, String) {
    parts(&thalweg(arguments).output().expect("the command can be run"))
}

/// The exit status, standard output and standard error.
pub fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let status = output.status.code().expect("the command has exited");
    (status, text(&output.stdout), text(&output.stderr))
}

/// Compiles a library whose table is fake.
pub fn fake(folder: &Path, definitions: &[&str]) -> PathBuf {
    let path = folder.join("libfake.so");
    let status = Command::new("cc")
        .args(["-std=c99", "-shared", "-fPIC", "-o"])
        .arg(&path)
        .arg("-I")
        .arg(root().join("bindings/c/include"))
        .args(definitions)
        .arg(root().join("bindings/python/tests/fake.c"))
        .status()
        .expect("cc can be started");
    assert!(status.success());
    path
}

/// The commands of a page and their output: the lines of its blocks of the language `console`. A
/// command begins with `$ `, and continues after a `\` at the end of a line.
pub fn commands(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::<(String, String)>::new();
    let mut is_inside = false;
    let mut continues = false;
    for line in page.lines() {
        match (is_inside, line) {
            (_, "```console") => is_inside = true,
            (true, "```") => is_inside = false,
            (true, line) if continues => {
                let (command, _) = found.last_mut().expect("a command");
                command.push('\n');
                command.push_str(line);
                continues = line.ends_with('\\');
            }
            (true, line) => match line.strip_prefix("$ ") {
                Some(command) => {
                    continues = command.ends_with('\\');
                    found.push((command.to_owned(), String::new()));
                }
                None => {
                    let (_, output) = found.last_mut().expect("output follows a command");
                    output.push_str(line);
                    output.push('\n');
                }
            },
            _ => {}
        }
    }
    found
}

#[test]
fn commands_of_the_page_print_what_it_shows() {
    let page = std::fs::read_to_string(root().join("docs/call.md")).expect("the page");
    let commands = commands(&page);
    assert!(commands.len() > 8, "{}", commands.len());
    let program = Path::new(env!("CARGO_BIN_EXE_thalweg"));
    let programs = program.parent().expect("a folder");
    let path = std::env::var("PATH").expect("PATH is set");
    for (command, expected) in commands {
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .current_dir(folder())
            .env("PATH", format!("{}:{path}", programs.display()))
            .output()
            .expect("sh can be started");
        let (_, printed, _) = parts(&output);
        assert_eq!(printed, expected, "{command}");
    }
}
