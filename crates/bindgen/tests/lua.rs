//! The code for Lua: a golden file, errors, and the opinion of luacheck.
//!
//! `BLESS=1 cargo test -p thalweg-bindgen --test lua` writes the golden file anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use thalweg_bindgen::model::{Package, TypeDefKind};
use thalweg_bindgen::{Output, lua, parse, parse_text};

/// Names that are reserved in a language or used by its generic package, and types that the packages of
/// the repository do not have.
const ODD: &str = include_str!("odd-names.wit");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn package(wit: &str, policy: &str) -> Package {
    let package = parse_text("odd.wit".as_ref(), wit, policy);
    package.unwrap_or_else(|refused| panic!("{refused}"))
}

fn odd() -> Package {
    let policy = "[i.timer]\ndestructor = \"async\"\n[i.odd]\nnotice_interval = \"1500ms\"\n";
    package(ODD, policy)
}

fn emit(package: &Package) -> Output {
    let outputs = lua::emit(package).unwrap_or_else(|refused| panic!("{refused}"));
    outputs.into_iter().next().expect("a file")
}

#[test]
fn odd_package_is_as_the_golden_file() {
    let Output { path, contents } = emit(&odd());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/lua")
        .join(path);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&golden, &contents).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    for (number, (line, expected)) in contents.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    assert_eq!(contents, expected);
}

#[test]
fn keyword_is_not_a_name() {
    let wit = "package a:b@0.1.0; interface i {
        record end { then: u8, not: u8 }
        resource until { nil: func(w: u8, at: u8, put: end, options: u8); }
        repeat: func(self-: u8) -> end; }
        world w { export i; }"
        .replace("self-", "false");
    let text = emit(&package(&wit, "")).contents;
    for part in [
        "function put.end_(",
        "value.then_",
        "function client:repeat_(false_, options)",
        "function classes.until_:nil_(w_, at_, put_, options, options_)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// The parser refuses it, too.
#[test]
fn type_without_members_is_refused_at_its_place() {
    let wit = "package a:b@0.1.0;\ninterface i {\nrecord empty { a: u8 }\nf: func(value: empty);\n}\nworld w { export i; }\n";
    let mut package = package(wit, "");
    package.types[0].kind = TypeDefKind::Record(Vec::new());
    package.types[0].size = 0;
    let refused = lua::emit(&package).expect_err("it is refused").to_string();
    assert_eq!(
        refused,
        "odd.wit:3:8: type `empty`: it has no members; give it one"
    );
}

#[test]
fn luacheck_has_no_warning() {
    let is_installed = Command::new("luacheck").arg("--version").output();
    if !is_installed.is_ok_and(|output| output.status.success()) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folders = [
        "conformance",
        "crates/bench",
        "examples/feed",
        "examples/hello",
        "examples/search",
    ];
    let packages = folders.map(|folder| parse(&repository().join(folder).join("wit")));
    let packages = packages.map(|package| package.unwrap_or_else(|refused| panic!("{refused}")));
    for package in packages.iter().chain([&odd()]) {
        let Output { path, contents } = emit(package);
        fs::write(folder.path().join(path), contents).expect("a file");
    }
    let mut luacheck = Command::new("luacheck");
    luacheck.args(["--std", "ngx_lua", "--no-max-line-length", "--quiet"]);
    let output = luacheck
        .arg(folder.path())
        .output()
        .expect("it is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}
