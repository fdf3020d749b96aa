//! `thalweg gen`.

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
fn committed_code_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples = fs::read_dir(root.join("examples")).expect("a folder can be read");
    let wit: Vec<_> = examples
        .map(|entry| entry.expect("an entry can be read").path().join("wit"))
        .filter(|wit| wit.is_dir())
        .collect();
    assert!(!wit.is_empty());
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    let output = command
        .current_dir(&root)
        .args(["gen", "--check"])
        .args(wit)
        .output()
        .expect("the command can be run");
    assert!(
        output.status.success(),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}

#[test]
fn two_runs_generate_equal_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let runs = [tempfile::tempdir(), tempfile::tempdir()]
        .map(|folder| folder.expect("a temporary folder"));
    for out in &runs {
        for wit in [
            "conformance/wit",
            "crates/bench/wit",
            "examples/search/wit/search.wit",
        ] {
            let out = out.path().to_str().expect("the path is UTF-8");
            let output = thalweg(&root, &["gen", wit, "--out", out]);
            assert!(output.status.success(), "{}", stderr(&output));
        }
    }
    let [first, second] = runs.each_ref().map(|out| {
        let below = |path: PathBuf| {
            path.strip_prefix(out.path())
                .expect("the file is below the folder")
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
fn file_and_folder_generate_the_same() {
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
fn unchanged_file_is_not_written() {
    let folder = project();
    let first = thalweg(folder.path(), &["gen", "--lang", "rust"]);
    assert_eq!(stdout(&first), "wrote generated/rust/b.rs\n");
    let path = folder.path().join("generated/rust/b.rs");
    let modified = |path: &Path| {
        fs::metadata(path)
            .and_then(|data| data.modified())
            .expect("the file has a modification time")
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
        "no other file remains"
    );
}

#[test]
fn check_lists_outdated_missing_and_leftover_files() {
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
    let text = fs::read_to_string(&path).expect("the file was written");
    fs::write(&path, format!("{text} ")).expect("a file can be written");
    fs::write(folder.path().join("generated/rust/old.rs"), &text).expect("a file can be written");
    fs::write(folder.path().join("generated/rust/own.rs"), "// mine")
        .expect("a file can be written");
    let outdated = check();
    assert_eq!(outdated.status.code(), Some(1));
    assert_eq!(
        stdout(&outdated),
        "generated/rust/b.rs: is out of date: run `thalweg gen`\n\
         generated/rust/old.rs: was generated from a package that no longer exists: remove it\n"
    );
}

#[test]
fn unsupported_construct_is_reported_and_nothing_is_written() {
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
fn folder_without_wit_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = thalweg(folder.path(), &["gen"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("there is no folder below this one that is called `wit`"),
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
fn code_first_generates_wit_and_glue_and_check_compares_with_the_code() {
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
    // The generated WIT names the Rust file.
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
        "generated/rust/b.rs: is out of date: run `thalweg gen`\n\
         generated/rust/b_from_code.rs: is out of date: run `thalweg gen`\n\
         wit/b.wit: is out of date: run `thalweg gen`\n"
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
fn closed_standard_output_ends_each_command_silently_after_its_work() {
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
        "all files are written"
    );
}

#[test]
fn full_standard_output_is_an_error() {
    let folder = project();
    let full = fs::File::create("/dev/full").expect("/dev/full exists on Linux");
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

/// A project whose WIT was changed after its code was generated, and its files.
fn changed_project() -> (tempfile::TempDir, Vec<(PathBuf, Vec<u8>)>) {
    let folder = project();
    assert!(thalweg(folder.path(), &["gen"]).status.success());
    let text = WIT.replace("text: string", "text: string, more: u32");
    fs::write(folder.path().join("wit/b.wit"), text).expect("a file can be written");
    let before = files(folder.path());
    (folder, before)
}

#[test]
fn read_only_file_is_an_error_and_no_file_is_changed() {
    let (folder, before) = changed_project();
    let path = folder.path().join("generated/rust/b.rs");
    let mut permissions = fs::metadata(&path).expect("the file exists").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).expect("permissions can be set");
    let output = thalweg(folder.path(), &["gen"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "generated/rust/b.rs: it is read-only\n");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn folder_that_cannot_be_created_is_an_error_and_no_file_is_changed() {
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

/// Runs `thalweg gen` with a file size limit of 512 bytes. `ignored`: a larger file is an error, as
/// on a full disk. Otherwise the process is killed.
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
fn full_disk_is_an_error_and_no_file_is_changed() {
    let (folder, before) = changed_project();
    let output = gen_on_a_full_disk(folder.path(), true);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(files(folder.path()), before);
}

#[test]
fn killed_run_changes_no_file_and_the_next_run_cleans_up() {
    let (folder, before) = changed_project();
    let output = gen_on_a_full_disk(folder.path(), false);
    assert_eq!(output.status.code(), None, "it ends by a signal");
    let is_staged = |path: &Path| path.to_string_lossy().contains("/.thalweg-gen.");
    let staged = |files: Vec<(PathBuf, Vec<u8>)>| {
        let (staged, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(path, _)| is_staged(path));
        (staged.len(), others)
    };
    let (left, others) = staged(files(folder.path()));
    assert!(left > 0);
    assert_eq!(others, before);
    // A leftover staging folder is not reported as a leftover file.
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
fn staging_folder_of_a_concurrent_run_is_kept() {
    let (folder, _) = changed_project();
    let other = folder.path().join("generated/rust/.thalweg-gen.1");
    fs::create_dir(&other).expect("a folder can be made");
    let lock = fs::File::open(&other).expect("the folder can be opened");
    lock.lock().expect("the lock is free");
    assert!(thalweg(folder.path(), &["gen"]).status.success());
    assert!(other.is_dir());
    drop(lock);
    let text = WIT.replace("text: string", "text: string, much: u32");
    fs::write(folder.path().join("wit/b.wit"), text).expect("a file can be written");
    assert!(thalweg(folder.path(), &["gen"]).status.success());
    assert!(!other.exists());
}

#[test]
fn enum_or_variant_without_unknown_is_a_warning_unless_it_is_closed() {
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
            "wit/b.wit:{place}: warning: `{name}` has no case `unknown`, so older programs cannot read a case that a later version \
             adds. Add the case, or list the type in the option `closed` of the interface if it never gets another case\n"
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
