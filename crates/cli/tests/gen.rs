//! `thalweg gen` as it is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WIT: &str = "package a:b@0.1.0;
interface i {
    record r { text: string }
    f: func(r: r) -> r;
}
world w { export i; }
";

fn thalweg(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the command can be run")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with one package in `wit/b.wit`.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("wit")).expect("a folder can be made");
    fs::write(folder.path().join("wit/b.wit"), WIT).expect("a file can be written");
    folder
}

/// All files below a folder, with their contents.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("a file can be read");
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_committed_is_what_the_generators_write() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = thalweg(&root, &["gen", "--check"]);
    assert!(
        output.status.success(),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}

#[test]
fn two_runs_write_the_same_bytes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let runs = [tempfile::tempdir(), tempfile::tempdir()]
        .map(|folder| folder.expect("a temporary folder"));
    for out in &runs {
        for wit in ["conformance/wit", "examples/search/wit/search.wit"] {
            let out = out.path().to_str().expect("its name is UTF-8");
            let output = thalweg(&root, &["gen", wit, "--out", out]);
            assert!(output.status.success(), "{}", stderr(&output));
        }
    }
    let [first, second] = runs.each_ref().map(|out| {
        let below = |path: PathBuf| {
            path.strip_prefix(out.path())
                .expect("it is below")
                .to_owned()
        };
        files(out.path())
            .into_iter()
            .map(|(path, bytes)| (below(path), bytes))
            .collect::<Vec<_>>()
    });
    assert!(first.len() >= 2);
    assert_eq!(first, second);
}

#[test]
fn file_and_folder_give_the_same() {
    let folder = project();
    assert!(
        thalweg(folder.path(), &["gen", "wit/b.wit"])
            .status
            .success()
    );
    let output = thalweg(folder.path(), &["gen", "--check", "wit"]);
    assert!(output.status.success(), "{}", stdout(&output));
    assert!(folder.path().join("generated/rust/b.rs").is_file());
}

#[test]
fn unchanged_file_is_not_touched() {
    let folder = project();
    let first = thalweg(folder.path(), &["gen", "--lang", "rust"]);
    assert_eq!(stdout(&first), "wrote generated/rust/b.rs\n");
    let path = folder.path().join("generated/rust/b.rs");
    let modified = |path: &Path| {
        fs::metadata(path)
            .and_then(|data| data.modified())
            .expect("it has a time")
    };
    let before = modified(&path);
    assert_eq!(
        stdout(&thalweg(folder.path(), &["gen", "--lang", "rust"])),
        ""
    );
    assert_eq!(modified(&path), before);
    assert_eq!(
        files(&folder.path().join("generated")).len(),
        1,
        "nothing is left beside it"
    );
}

#[test]
fn check_names_what_differs_what_is_missing_and_what_is_left_over() {
    let folder = project();
    let check = || thalweg(folder.path(), &["gen", "--check", "--lang", "rust"]);
    let missing = check();
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(
        stdout(&missing),
        "generated/rust/b.rs: is missing: run `thalweg gen`\n"
    );

    assert!(
        thalweg(folder.path(), &["gen", "--lang", "rust"])
            .status
            .success()
    );
    assert_eq!(check().status.code(), Some(0));

    let path = folder.path().join("generated/rust/b.rs");
    let text = fs::read_to_string(&path).expect("it was written");
    fs::write(&path, format!("{text} ")).expect("a file can be written");
    fs::write(folder.path().join("generated/rust/old.rs"), &text).expect("a file can be written");
    fs::write(folder.path().join("generated/rust/own.rs"), "// mine")
        .expect("a file can be written");
    let outdated = check();
    assert_eq!(outdated.status.code(), Some(1));
    assert_eq!(
        stdout(&outdated),
        "generated/rust/b.rs: differs from what `thalweg gen` writes\n\
         generated/rust/old.rs: was generated, but from nothing that is here now: remove it\n"
    );
}

#[test]
fn refusal_names_the_place_and_nothing_is_written() {
    let folder = project();
    let text = WIT.replace("-> r", "-> error-context");
    fs::write(folder.path().join("wit/b.wit"), text).expect("a file can be written");
    let output = thalweg(folder.path(), &["gen", "wit/b.wit"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "wit/b.wit:4:5: type `error-context`: error contexts are not supported: use a string or a variant\n"
    );
    assert!(!folder.path().join("generated").exists());
}

#[test]
fn policy_file_with_an_unknown_key_is_an_error() {
    let folder = project();
    fs::write(folder.path().join("wit/b.thalweg.toml"), "[i.g]\n").expect("a file can be written");
    let output = thalweg(folder.path(), &["gen"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("wit/b.thalweg.toml:1:4: key `i.g`: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn no_wit_at_all_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = thalweg(folder.path(), &["gen"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("there is no folder called `wit`"),
        "{}",
        stderr(&output)
    );
}

const CODE: &str = "#[thalweg::service(package = \"a:b@0.1.0\")]
pub trait I {
    fn f(&self, text: String) -> String;
}
";

#[test]
fn code_first_writes_wit_and_glue_and_check_follows_the_code() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let code = folder.path().join("src/api.rs");
    fs::create_dir(folder.path().join("src")).expect("a folder can be made");
    fs::write(&code, CODE).expect("a file can be written");
    let first = thalweg(
        folder.path(),
        &["gen", "--from-code", "src/api.rs", "--lang", "rust"],
    );
    assert_eq!(
        (stdout(&first).as_str(), stderr(&first).as_str()),
        (
            "wrote generated/rust/b.rs\nwrote generated/rust/b_from_code.rs\nwrote wit/b.thalweg.toml\nwrote wit/b.wit\n",
            ""
        )
    );
    // From then on the WIT knows where it is from.
    let check = || thalweg(folder.path(), &["gen", "--check", "--lang", "rust"]);
    assert_eq!(
        (check().status.code(), stdout(&check())),
        (Some(0), String::new())
    );

    fs::write(&code, CODE.replace("text: String", "text: u64")).expect("a file can be written");
    let outdated = check();
    assert_eq!(outdated.status.code(), Some(1));
    assert_eq!(
        stdout(&outdated),
        "generated/rust/b.rs: differs from what `thalweg gen` writes\n\
         generated/rust/b_from_code.rs: differs from what `thalweg gen` writes\n\
         wit/b.wit: differs from what `thalweg gen` writes\n"
    );
    assert!(
        thalweg(folder.path(), &["gen", "--lang", "rust"])
            .status
            .success()
    );
    assert_eq!(check().status.code(), Some(0));

    fs::write(&code, CODE.replace("text: String", "text: usize")).expect("a file can be written");
    let refused = check();
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        stderr(&refused),
        "src/api.rs:3:23: type `usize`: its size differs between machines: write `u64`\n"
    );
}

#[test]
fn standard_output_that_nobody_reads_ends_each_command_quietly_after_its_work() {
    let folder = project();
    fs::create_dir(folder.path().join("other")).expect("a folder can be made");
    fs::write(folder.path().join("other/b.wit"), WIT).expect("a file can be written");
    for arguments in [
        &["gen"][..],
        &["compatible", "wit", "other"],
        &["config"],
        &["config", "--json"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_thalweg"))
            .current_dir(folder.path())
            .args(arguments)
            .stdout(writer)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .expect("the command can be run");
        assert_eq!(
            (output.status.code(), stderr(&output).as_str()),
            (Some(141), ""),
            "{arguments:?}"
        );
    }
    assert!(
        thalweg(folder.path(), &["gen", "--check"]).status.success(),
        "the tree is whole"
    );
}

#[test]
fn standard_output_that_is_full_is_an_error() {
    let folder = project();
    let full = fs::File::create("/dev/full").expect("Linux has it");
    let output = Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .current_dir(folder.path())
        .arg("config")
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("the command can be run");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("cannot write to standard output: "),
        "{}",
        stderr(&output)
    );
}

/// A project whose tree was generated, and whose WIT then changed; and its files.
fn changed_project() -> (tempfile::TempDir, Vec<(PathBuf, Vec<u8>)>) {
    let folder = project();
    assert!(thalweg(folder.path(), &["gen"]).status.success());
    let text = WIT.replace("text: string", "text: string, more: u32");
    fs::write(folder.path().join("wit/b.wit"), text).expect("a file can be written");
    let before = files(folder.path());
    (folder, before)
}

#[test]
fn tree_is_left_alone_where_a_generated_file_is_read_only() {
    let (folder, before) = changed_project();
    let path = folder.path().join("generated/rust/b.rs");
    let mut permissions = fs::metadata(&path).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).expect("they can be set");
    let output = thalweg(folder.path(), &["gen"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "generated/rust/b.rs: it is read-only\n");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn tree_is_left_alone_where_a_folder_cannot_be_made() {
    let folder = project();
    fs::create_dir(folder.path().join("generated")).expect("a folder can be made");
    fs::write(folder.path().join("generated/rust"), "mine").expect("a file can be written");
    let before = files(folder.path());
    let output = thalweg(folder.path(), &["gen"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("generated/rust/b.rs: "),
        "{}",
        stderr(&output)
    );
    assert_eq!(files(folder.path()), before);
    assert!(!folder.path().join("generated/c").exists());
}

/// Runs `thalweg gen` where no file may have more than 512 bytes. `ignored`: to write more is an error, as on a full disk; otherwise
/// the process is killed.
fn gen_on_a_full_disk(folder: &Path, ignored: bool) -> Output {
    let trap = if ignored { "trap '' XFSZ; " } else { "" };
    Command::new("sh")
        .current_dir(folder)
        .arg("-c")
        .arg(format!("{trap}ulimit -c 0; ulimit -f 1; exec \"$0\" gen"))
        .arg(env!("CARGO_BIN_EXE_thalweg"))
        .output()
        .expect("a shell can be run")
}

#[test]
fn tree_is_left_alone_where_the_disk_is_full() {
    let (folder, before) = changed_project();
    let output = gen_on_a_full_disk(folder.path(), true);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(files(folder.path()), before);
}

#[test]
fn tree_is_left_alone_by_a_run_that_is_killed_and_the_next_one_cleans_up() {
    let (folder, before) = changed_project();
    let output = gen_on_a_full_disk(folder.path(), false);
    assert_eq!(output.status.code(), None, "a signal ends it");
    let is_staged = |path: &Path| path.to_string_lossy().contains("/.thalweg-gen.");
    let staged = |files: Vec<(PathBuf, Vec<u8>)>| {
        let (staged, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(path, _)| is_staged(path));
        (staged.len(), others)
    };
    let (left, others) = staged(files(folder.path()));
    assert!(left > 0);
    assert_eq!(others, before);
    // What was left is of no language, and belongs to no package.
    let check = thalweg(folder.path(), &["gen", "--check"]);
    assert!(
        !stdout(&check).contains("was generated"),
        "{}",
        stdout(&check)
    );
    assert!(thalweg(folder.path(), &["gen"]).status.success());
    assert_eq!(staged(files(folder.path())).0, 0);
}

#[test]
fn staging_folder_of_a_run_that_goes_on_is_kept() {
    let (folder, _) = changed_project();
    let other = folder.path().join("generated/rust/.thalweg-gen.1");
    fs::create_dir(&other).expect("a folder can be made");
    let lock = fs::File::open(&other).expect("it can be opened");
    lock.lock().expect("nobody else has it");
    assert!(thalweg(folder.path(), &["gen"]).status.success());
    assert!(other.is_dir());
    drop(lock);
    let text = WIT.replace("text: string", "text: string, much: u32");
    fs::write(folder.path().join("wit/b.wit"), text).expect("a file can be written");
    assert!(thalweg(folder.path(), &["gen"]).status.success());
    assert!(!other.exists());
}

#[test]
fn enum_or_variant_without_unknown_is_a_warning_that_a_policy_file_answers() {
    let folder = project();
    let types = "enum closed-one { a, b }
    enum open-one { unknown, a }
    variant either { unknown(u32), b }
    variant open-either { unknown, b }
    f: func(a: closed-one, b: open-one, c: either, d: open-either)";
    let text = WIT.replace("f: func(r: r)", types);
    fs::write(folder.path().join("wit/b.wit"), text).expect("a file can be written");
    let warning = |place: &str, name: &str| {
        format!(
            "wit/b.wit:{place}: warning: `{name}` has no case `unknown`: a program cannot read a case that a later version \
             adds. Add the case, or name the type in the interface's option `closed` if it never gets another\n"
        )
    };
    let output = thalweg(folder.path(), &["gen"]);
    assert!(output.status.success());
    let (first, second) = (warning("4:10", "closed-one"), warning("6:13", "either"));
    assert_eq!(stderr(&output), format!("{first}{second}"));

    let policy = folder.path().join("wit/b.thalweg.toml");
    fs::write(&policy, "[i]\nclosed = \"closed-one, either\"\n").expect("a file can be written");
    let output = thalweg(folder.path(), &["gen", "--check"]);
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "")
    );

    fs::write(&policy, "[i]\nclosed = \"closed-one, r\"\n").expect("a file can be written");
    let output = thalweg(folder.path(), &["gen"]);
    assert_eq!(
        stderr(&output),
        "wit/b.thalweg.toml:2:1: key `i.closed`: there is no enum or variant `r`\n"
    );
}
