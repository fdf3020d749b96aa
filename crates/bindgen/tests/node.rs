//! The code for Node: golden files, errors, and what TypeScript and the formatter say about it.
//!
//! `BLESS=1 cargo test -p thalweg-bindgen --test node` writes the golden files anew.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use thalweg_bindgen::model::{Package, ResourceId, TypeDefKind, TypeKind};
use thalweg_bindgen::{Output, node, parse, parse_text};

/// Names that are reserved in JavaScript or used by the generic package, and types that the packages
/// of the repository do not have.
const ODD: &str = include_str!("odd-names.wit");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn odd() -> Package {
    let policy = "[i.timer]\ndestructor = \"async\"\n[i.odd]\nnotice_interval = \"1500ms\"\n";
    let package = parse_text("odd.wit".as_ref(), ODD, policy);
    package.unwrap_or_else(|refused| panic!("{refused}"))
}

/// A package whose interface has these lines.
fn package(lines: &str) -> Package {
    let wit = format!("package a:b@0.1.0;\ninterface i {{\n{lines}\n}}\nworld w {{ export i; }}\n");
    parse_text("b.wit".as_ref(), &wit, "").unwrap_or_else(|refused| panic!("{refused}"))
}

fn emit(package: &Package) -> Vec<Output> {
    node::emit(package).unwrap_or_else(|refused| panic!("{refused}"))
}

/// The files of all packages of the repository, and of the odd one.
fn all() -> Vec<Output> {
    let folders = [
        "conformance/wit",
        "crates/bench/wit",
        "examples/echo/wit",
        "examples/feed/wit",
        "examples/hello/wit",
        "examples/recipes/wit",
        "examples/search/wit",
    ];
    let packages = folders.map(|folder| {
        let package = parse(&repository().join(folder));
        package.unwrap_or_else(|refused| panic!("{refused}"))
    });
    packages.iter().chain([&odd()]).flat_map(emit).collect()
}

#[test]
fn odd_package_is_as_the_golden_files() {
    for output in emit(&odd()) {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/node")
            .join(&output.path);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, &output.contents).expect("the golden file can be written");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        let lines = output.contents.lines().zip(expected.lines());
        for (number, (line, expected)) in lines.enumerate() {
            assert_eq!(line, expected, "{}:{}", output.path.display(), number + 1);
        }
        assert_eq!(output.contents, expected, "{}", output.path.display());
    }
}

#[test]
fn functions_have_at_most_25_lines() {
    let mut count = 0;
    for Output { path, contents } in all() {
        let mut open = None;
        for (number, line) in contents.lines().enumerate() {
            let text = line.trim_start();
            let indent = line.len() - text.len();
            match open {
                None if indent <= 2 && text.contains('(') && text.ends_with(" {") => {
                    open = Some((number, indent));
                }
                Some((begin, level)) if level == indent && text.starts_with('}') => {
                    let lines = number + 1 - begin;
                    assert!(
                        lines <= 25,
                        "{}:{}: {lines} lines",
                        path.display(),
                        begin + 1
                    );
                    count += 1;
                    open = None;
                }
                _ => {}
            }
        }
    }
    assert!(count > 200, "{count} functions");
}

/// The parser refuses it, too.
#[test]
fn type_without_members_is_refused() {
    let mut package = package("record empty { a: u8 }\nf: func(value: empty);");
    package.types[0].kind = TypeDefKind::Record(Vec::new());
    package.types[0].size = 0;
    let refused = node::emit(&package).expect_err("it is refused").to_string();
    assert_eq!(
        refused,
        "b.wit:3:8: type `empty`: it has no members; give it one"
    );
}

/// The parser refuses it, too.
#[test]
fn borrowed_resource_inside_a_record_is_refused() {
    let mut package = package("record holder { r: u32 }\nresource query;\nf: func();");
    let TypeDefKind::Record(fields) = &mut package.types[0].kind else {
        panic!("it is a record")
    };
    fields[0].ty.kind = TypeKind::Borrow(ResourceId(0));
    let refused = node::emit(&package).expect_err("it is refused").to_string();
    let expected = "b.wit:3:8: type `borrow<query>`: a borrowed resource can only be a parameter";
    assert!(refused.starts_with(expected), "{refused}");
}

/// A tool of `bindings/node`, which `make setup` installs. Without it, the test fails if `CI` is set,
/// and is otherwise skipped.
fn tool(name: &str) -> Option<Command> {
    let path = repository()
        .join("bindings/node/node_modules/.bin")
        .join(name);
    if path.exists() {
        return Some(Command::new(path));
    }
    let missing = format!("{} is missing: run `make setup`", path.display());
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    // Written past the capture of the test's output.
    writeln!(std::io::stderr(), "SKIPPED: {missing}").expect("the terminal");
    None
}

fn assert_succeeds(command: &mut Command) {
    let output = command.output().expect("it is installed");
    let (stdout, stderr) = (&output.stdout, &output.stderr);
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{stdout}{stderr}");
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

/// All files, in a folder with a configuration.
fn written(configuration: &str, value: &serde_json::Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for output in all() {
        fs::write(folder.path().join(output.path), output.contents).expect("a file");
    }
    let text = value.to_string();
    fs::write(folder.path().join(configuration), text).expect("a file");
    folder
}

#[test]
fn declarations_pass_the_strict_check_of_typescript() {
    let Some(mut tsc) = tool("tsc") else { return };
    let package = repository().join("bindings/node");
    let text = fs::read_to_string(package.join("tsconfig.json")).expect("a file");
    let mut config = json(&text);
    let lib = |name: &str| [package.join("lib").join(name)];
    config["compilerOptions"]["paths"] = serde_json::json!({
        "thalweg": lib("index.d.ts"),
        "thalweg/generated": lib("generated.d.ts"),
    });
    config["include"] = serde_json::json!(["*.d.ts"]);
    let folder = written("tsconfig.json", &config);
    assert_succeeds(tsc.arg("-p").arg(folder.path()));
}

#[test]
fn files_are_formatted_like_those_of_the_package() {
    let Some(mut biome) = tool("biome") else {
        return;
    };
    let text = fs::read_to_string(repository().join("biome.json")).expect("a file");
    let mut config = json(&text);
    config.as_object_mut().expect("an object").remove("files");
    config["json"] = serde_json::json!({ "formatter": { "enabled": false } });
    let folder = written("biome.json", &config);
    assert_succeeds(biome.args(["format", "."]).current_dir(folder.path()));
}
