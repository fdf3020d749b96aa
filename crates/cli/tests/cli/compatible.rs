//! `thalweg compatible`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const OLD: &str = "package a:b@0.1.0;
interface host { ask: func(key: u32) -> string; }
interface i {
    record r { a: u32 }
    f: func(a: r) -> u32;
    g: async func() -> result<stream<u8>, string>;
    record each { x: u8 }
    s: func(up: stream<each>) -> stream<each>;
}
world w { import host; export i; }
";

/// The exit status and output for the old package and a copy in which each pair was replaced.
fn run(changes: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut new = OLD.to_owned();
    for (from, to) in changes {
        assert!(new.contains(from), "{from}");
        new = new.replace(from, to);
    }
    write(folder.path(), "old", OLD);
    write(folder.path(), "new", &new);
    result(&command(folder.path()))
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::create_dir(folder.join(name)).expect("a folder can be made");
    fs::write(folder.join(name).join("b.wit"), text).expect("a file can be written");
}

fn command(folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command
        .current_dir(folder)
        .args(["compatible", "old", "new"]);
    command.output().expect("the command can be run")
}

fn result(output: &Output) -> (Option<i32>, String) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    let text = String::from_utf8(text).expect("the output is UTF-8");
    (output.status.code(), text.trim_end().to_owned())
}

#[test]
fn added_functions_are_compatible_and_listed() {
    let compatible = |text: &str| (Some(0), text.to_owned());
    assert_eq!(
        run(&[]),
        compatible("b 0.1.0 is compatible with programs of 0.1.0: no additional functions")
    );
    assert_eq!(
        run(&[
            ("@0.1.0", "@0.1.4"),
            ("-> stream<each>;\n", "-> stream<each>;\n    h: func();\n"),
        ]),
        compatible(
            "b 0.1.4 is compatible with programs of 0.1.0: 1 additional function\nnew/b.wit:9:5: `i.h` is only in the library"
        )
    );
    assert_eq!(
        run(&[(
            "-> stream<each>;\n",
            "-> stream<each>;\n    h: func();\n    k: func();\n"
        )]),
        compatible(
            "b 0.1.0 is compatible with programs of 0.1.0: 2 additional functions\nnew/b.wit:9:5: `i.h` is only in the library\n\
             new/b.wit:10:5: `i.k` is only in the library"
        )
    );
    // Each side has its own numbers for functions; they are matched by name.
    assert_eq!(
        run(&[("    f: func", "    e: func();\n    f: func")]),
        compatible(
            "b 0.1.0 is compatible with programs of 0.1.0: 1 additional function\nnew/b.wit:5:5: `i.e` is only in the library"
        )
    );
}

#[test]
fn added_fields_and_parameters_are_compatible_and_listed() {
    for (from, to, added) in [
        (
            "record r { a: u32 }",
            "record r { a: u32, b: string, c: u8 }",
            &[
                "new/b.wit:5:5: the parameters of `i.f`: `a.b` is only in the library",
                "new/b.wit:5:5: the parameters of `i.f`: `a.c` is only in the library",
            ][..],
        ),
        (
            "f: func(a: r)",
            "f: func(a: r, b: u8)",
            &["new/b.wit:5:5: the parameters of `i.f`: `b` is only in the library"],
        ),
        (
            "record each { x: u8 }",
            "record each { x: u8, y: u8 }",
            &[
                "new/b.wit:8:5: the parameters of `i.s`: `up.y` is only in the library",
                "new/b.wit:8:5: the result of `i.s`: `y` is only in the library",
            ],
        ),
        (
            "ask: func(key: u32)",
            "ask: func(key: u32, more: u32)",
            &["new/b.wit:2:18: the parameters of `host.ask`: `more` is only in the library"],
        ),
    ] {
        let first = "b 0.1.0 is compatible with programs of 0.1.0: no additional functions";
        let expected = [&[first], added].concat().join("\n");
        assert_eq!(run(&[(from, to)]), (Some(0), expected), "{to}");
    }
}

#[test]
fn addition_of_the_program_is_listed_as_such() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(
        folder.path(),
        "old",
        &OLD.replace("record r { a: u32 }", "record r { a: u32, b: string }"),
    );
    write(folder.path(), "new", OLD);
    let expected = "b 0.1.0 is compatible with programs of 0.1.0: no additional functions\n\
                  new/b.wit:5:5: the parameters of `i.f`: `a.b` is only in the program";
    assert_eq!(
        result(&command(folder.path())),
        (Some(0), expected.to_owned())
    );
}

#[test]
fn all_differences_and_additions_are_listed() {
    let expected = "new/b.wit:5:5: the parameters of `i.f`: `a.c` is only in the library\n\
                  new/b.wit:5:5: incompatible parameters of `i.f`: `a.a` is `u64` on one side, `u32` on the other\n\
                  new/b.wit:5:5: incompatible result of `i.f`: it is `u32` on one side, `u8` on the other\n\
                  new/b.wit:6:5: incompatible result of `i.g`: it is `u8` on one side, `u16` on the other\n\
                  old/b.wit:8:5: `i.s` is missing in the library\n\
                  new/b.wit:2:18: incompatible result of `host.ask`: it is `u8` on one side, `string` on the other";
    assert_eq!(
        run(&[
            ("record r { a: u32 }", "record r { a: u64, c: u8 }"),
            ("(a: r) -> u32", "(a: r) -> u8"),
            ("stream<u8>", "stream<u16>"),
            ("    s: func(up: stream<each>) -> stream<each>;\n", ""),
            ("-> string;", "-> u8;"),
        ]),
        (Some(1), expected.to_owned())
    );
}

#[test]
fn unused_host_import_is_compatible() {
    let old = OLD.replace("-> string; }", "-> string; tell: func(); }");
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "old", &old);
    write(folder.path(), "new", OLD);
    let compatible = "b 0.1.0 is compatible with programs of 0.1.0: no additional functions";
    assert_eq!(
        result(&command(folder.path())),
        (Some(0), compatible.to_owned())
    );
}

#[test]
fn each_difference_is_reported_with_its_position() {
    for (changes, expected) in [
        (vec![("a:b@", "a:c@")], "new/b.wit:5:5: it is a:c, not a:b"),
        (
            vec![("@0.1.0", "@0.2.0")],
            "new/b.wit:5:5: versions 0.1.0 and 0.2.0 are not compatible",
        ),
        (
            vec![("record r { a: u32 }", "record r { b: u32, a: u32 }")],
            "new/b.wit:5:5: incompatible parameters of `i.f`: `a.a` is `a.b` on the other side",
        ),
        (
            vec![("f: func(a: r) -> u32", "f: func(a: r) -> u64")],
            "new/b.wit:5:5: incompatible result of `i.f`: it is `u32` on one side, `u64` on the other",
        ),
        (
            vec![("stream<u8>", "stream<u16>")],
            "new/b.wit:6:5: incompatible result of `i.g`: it is `u8` on one side, `u16` on the other",
        ),
        (
            vec![("    s: func(up: stream<each>) -> stream<each>;\n", "")],
            "old/b.wit:8:5: `i.s` is missing in the library",
        ),
        (
            vec![("key: u32", "key: u64")],
            "new/b.wit:2:18: incompatible parameters of `host.ask`: `key` is `u32` on one side, `u64` on the other",
        ),
        (
            vec![("-> string; }", "-> string; tell: func(); }")],
            "new/b.wit:2:49: it has the host import `host.tell`, which hosts of the program do not provide",
        ),
        (
            vec![
                ("interface host { ask: func(key: u32) -> string; }\n", ""),
                ("import host; ", ""),
            ],
            "old/b.wit:2:18: it has no host imports any more",
        ),
    ] {
        assert_eq!(run(&changes), (Some(1), expected.to_owned()), "{changes:?}");
    }
}

#[test]
fn removed_inline_or_notices_is_a_difference() {
    for (option, what) in [
        ("inline = true", "is not inline any more"),
        ("notice_interval = \"1s\"", "has no notices any more"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path(), "old", OLD);
        write(folder.path(), "new", OLD);
        let policy = |name: &str| {
            let file = folder.path().join(name).join("b.thalweg.toml");
            fs::write(file, format!("[i.f]\n{option}\n")).expect("a file can be written");
        };
        policy("old");
        let expected = format!("new/b.wit:5:5: `i.f` {what}");
        assert_eq!(result(&command(folder.path())), (Some(1), expected));
        policy("new");
        assert_eq!(result(&command(folder.path())).0, Some(0));
    }
}

#[test]
fn invalid_wit_is_an_error() {
    let (status, text) = run(&[("record r", "recrd r")]);
    assert_eq!(status, Some(2));
    assert!(text.starts_with("new/b.wit:4:"), "{text}");
}
