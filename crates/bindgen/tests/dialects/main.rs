//! Prints a guest in Go and the codec of a package in Java, and compares both with `golden`. The codecs of Go, Lua
//! and Node run where the language is installed: against messages that `thalweg_wire` wrote, and against
//! damaged ones.
//!
//! `BLESS=1 cargo test -p thalweg-bindgen --test dialects` writes the golden files anew.

mod java;

use java::Java;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use thalweg_bindgen::hash::Describer;
use thalweg_bindgen::model::Package;
use thalweg_bindgen::plan::codec::{At, Codec, Dialect, routines};
use thalweg_bindgen::plan::source::Source;
use thalweg_bindgen::plan::{Function, ParameterKind, Plan, ResultKind, TypeIndex, Usage};
use thalweg_bindgen::{go, lua, node, parse, parse_text};
use thalweg_wire::describe::Type;
use thalweg_wire::{Malformed, Rule};

/// A value of each kind.
const KINDS: &str = "package a:kinds@0.1.0;
interface i {
  enum color { red, green }
  flags rights { read, write, run }
  record point { x: s32, y: s32 }
  type names = list<string>;
  variant shape { nothing, circle(f64), polygon(list<point>), part(tuple<point, option<string>>) }
  record every {
    flag: bool, letter: char, big: u64, bytes: list<u8>, numbers: list<f32>, letters: list<char>,
    name: option<string>, twice: option<option<u32>>, at: option<point>, grid: list<list<s32>>,
    pairs: list<tuple<string, option<u8>>>, outcome: result<u64, string>, bare: result,
    color: color, rights: rights, key: list<u8, 4>, both: list<string, 2>, places: list<point, 2>,
    names: names, shape: shape, colors: list<color>,
  }
  echo: func(value: every) -> every;
}
world w { export i; }
";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn package(wit: &str) -> Package {
    parse(&repository().join(wit)).unwrap_or_else(|refused| panic!("{refused}"))
}

fn kinds() -> Package {
    let path = Path::new("kinds.wit");
    parse_text(path, KINDS, "").unwrap_or_else(|refused| panic!("{refused}"))
}

/// Compares what is printed for two packages with the golden files.
fn compare(ending: &str, print: impl Fn(&Package) -> String) {
    for (name, package) in [
        ("search", package("examples/search/wit")),
        ("kinds", kinds()),
    ] {
        is_golden(&format!("{name}.{ending}"), &print(&package));
    }
}

fn is_golden(name: &str, text: &str) {
    let golden = folder().join("golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, text).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    for (number, (line, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "{name}:{}", number + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{name}");
}

/// A guest with everything besides plain arguments and results.
const BOXES: &str = "package a:boxes@0.1.0;
interface i {
  resource box { constructor(value: u64); }
  record pair { name: string, left: box, right: option<box> }
  swap: func(value: pair) -> result<pair, list<box>>;
  sum: async func(to: borrow<box>, numbers: stream<u64>, last: future<pair-name>) -> u64;
  record pair-name { name: string }
}
interface h {
  enum why { closed, busy }
  look-up: func(key: u64) -> result<string, why>;
  nod: func();
}
world w { import h; export i; }
";

fn go_guest(package: &Package) -> String {
    let mut files = go::emit_guest(package).unwrap_or_else(|refused| panic!("{refused}"));
    files.remove(0).contents
}

#[test]
fn go_guest_with_resources_streams_and_imports_is_as_the_golden_file() {
    let package = parse_text(Path::new("boxes.wit"), BOXES, "");
    let package = package.unwrap_or_else(|refused| panic!("{refused}"));
    is_golden("boxes.go", &go_guest(&package));
}

#[test]
fn go_guest_refuses_streams_inside_of_values() {
    for function in [
        "f: func() -> list<stream<u8>>;",
        "f: func() -> result<_, feed>;",
    ] {
        let wit = format!(
            "package a:b@0.1.0; interface i {{ record feed {{ last: option<future> }}\n{function} }}\n\
             world w {{ export i; }}"
        );
        let package = parse_text(Path::new("b.wit"), &wit, "");
        let package = package.unwrap_or_else(|refused| panic!("{refused}"));
        let refused = go::emit_guest(&package).expect_err("it is refused");
        assert_eq!(refused.position.line, 2);
        let reason = "a guest has no streams or futures inside of other values";
        assert_eq!(refused.reason, reason);
    }
}

#[test]
fn go_guest_is_as_the_golden_file() {
    compare("go", go_guest);
}

#[test]
fn java_codec_is_as_the_golden_file() {
    compare("java", |package| {
        let plan = &Plan::new(package);
        let mut out = Source::new(&java::FORMAT);
        routines(plan, &Java { plan }, &mut out);
        out.finish()
    });
}

/// The parameters or the result of a function, if they contain no handles.
struct Root {
    name: String,
    /// The description of the type, of which the header of a message has the hash.
    text: String,
    size: u32,
    members: Vec<(u32, TypeIndex)>,
}

impl Root {
    fn layout(&self) -> u32 {
        Type::parse(&self.text).expect("a description").hash() as u32
    }
}

/// The roots that the caller writes or reads, by function.
fn roots(plan: &Plan<'_>) -> Vec<Root> {
    let texts = Describer {
        types: &plan.package.types,
        resources: &plan.package.resources,
    };
    let mut roots = Vec::new();
    for Function {
        function,
        parameters,
        ok,
        ..
    } in &plan.functions
    {
        let name = function.full_name.split_once('.').expect("an interface").1;
        let members = parameters.iter().map(|parameter| match parameter.kind {
            ParameterKind::Value(ty) => Some((parameter.offset, ty)),
            _ => None,
        });
        if let Some(members) = members.collect() {
            roots.push(Root {
                name: format!("{name}:arguments"),
                text: texts.describe_record(&function.params),
                size: function.params_layout.0,
                members,
            });
        }
        if let (ResultKind::Value(ty), Some(model)) = (ok, &function.ok) {
            roots.push(Root {
                name: format!("{name}:reply"),
                text: texts.describe(model),
                size: model.size,
                members: vec![(0, *ty)],
            });
        }
    }
    let has_handles = |(_, ty): &(u32, TypeIndex)| plan.get(*ty).has_handles;
    roots.retain(|root| !root.members.iter().any(has_handles));
    roots
}

fn unhex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}

/// The messages of the conformance scenarios, whole and damaged at each byte, with the verdict of
/// `thalweg_wire`: `=` for a whole message, `+` for another well-formed one, `utf8` if a text is not
/// UTF-8, and `-`. Returns the lines for the driver, and their number.
fn messages(roots: &[Root], utf8: char) -> (String, usize) {
    let (mut lines, mut count) = (String::new(), 0);
    let mut add = |root: &Root, bytes: &[u8], is_whole: bool| {
        let ty = Type::parse(&root.text).expect("a description");
        let verdict = match (ty.check(bytes), is_whole) {
            (Ok(_), true) => '=',
            (Ok(_), false) => '+',
            (
                Err(Malformed {
                    rule: Rule::Utf8, ..
                }),
                _,
            ) => utf8,
            (Err(_), _) => '-',
        };
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(lines, "{} {hex} {verdict}", root.name).expect("a string takes it");
        count += 1;
    };
    let read = |file: &str| {
        let text = std::fs::read_to_string(repository().join("conformance").join(file));
        let all: Value = serde_json::from_str(&text.expect("the scenarios")).expect("JSON");
        all.as_array().expect("a list").clone()
    };
    let scenarios = read("scenarios.json");
    let steps = scenarios
        .iter()
        .flat_map(|scenario| scenario["steps"].as_array().expect("steps").clone());
    for step in steps.chain(read("hostile.json")) {
        for kind in ["arguments", "reply"] {
            let (Some(function), Some(hex)) = (step["call"].as_str(), step[kind].as_str()) else {
                continue;
            };
            let name = format!("{function}:{kind}");
            let Some(root) = roots.iter().find(|root| root.name == name) else {
                continue;
            };
            if kind == "reply" && step["ends"] == "error" {
                continue;
            }
            let bytes = unhex(hex);
            add(root, &bytes, true);
            for at in 0..bytes.len() {
                for mask in [0x01, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= mask;
                    add(root, &damaged, false);
                }
            }
            for length in 0..bytes.len() {
                add(root, &bytes[..length], false);
            }
        }
    }
    (lines, count)
}

/// Prints code that checks the members of a root.
fn check_all(plan: &Plan<'_>, dialect: &dyn Dialect, root: &Root, out: &mut Source) {
    let mut codec = Codec::new(plan, dialect, out);
    for (offset, ty) in &root.members {
        codec.check(*ty, &At::new("at").plus(*offset));
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it was installed a moment ago");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn is_installed(program: &str, argument: &str) -> bool {
    let status = Command::new(program).arg(argument).output();
    status.is_ok_and(|output| output.status.success())
}

#[test]
fn go_codec_agrees_with_the_codec_in_rust() {
    if !is_installed("go", "version") {
        return;
    }
    let package = package("conformance/wit");
    let mut plan = Plan::new(&package);
    // The driver has no calls whose resources it could read.
    for ty in plan.types.iter_mut().filter(|ty| ty.has_handles) {
        ty.usage = Usage::default();
    }
    let roots = roots(&plan);
    let names = go::names::Names::new(&plan);
    let dialect = go::Go::new(&plan, &names);
    let mut body = Source::new(&go::FORMAT);
    for resource in &names.resources {
        body.line(&format!("type {resource} any"));
    }
    dialect.types(&mut body);
    routines(&plan, &dialect, &mut body);
    body.open("var roots = map[string]root{");
    for root in &roots {
        body.open(&format!("\"{}\": {{", root.name));
        body.line(&format!("layout: {}, size: {},", root.layout(), root.size));
        body.open("check: func(m *wire.Message, at int) {");
        check_all(&plan, &dialect, root, &mut body);
        body.close("},");
        body.open("trip: func(m *wire.Message, at int, w *wire.Writer, to int) {");
        let mut codec = Codec::new(&plan, &dialect, &mut body);
        for (number, (offset, ty)) in root.members.iter().enumerate() {
            let value = codec.get(*ty, &At::new("at").plus(*offset));
            codec.line(&format!("value{number} := {value}"));
            codec.put(*ty, &At::new("to").plus(*offset), &format!("value{number}"));
        }
        body.close("},");
        body.close("},");
    }
    body.close("}");
    let body = body.finish();
    let mut out = Source::new(&go::FORMAT);
    out.line("package main");
    go::imports(&body, &mut out);
    out.append(&body);
    let work = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| work.path().join(name);
    std::fs::copy(folder().join("driver.go"), place("driver.go")).expect("a copy");
    std::fs::write(place("codec.go"), out.finish()).expect("a file");
    let module = repository().join("bindings/go");
    let module = module.canonicalize().expect("it exists");
    let manifest = format!(
        "module codec\n\ngo 1.24\n\nrequire thalweg.dev/go/thalweg v0.0.0\n\n\
         replace thalweg.dev/go/thalweg => {}\n",
        module.display()
    );
    std::fs::write(place("go.mod"), manifest).expect("a file");
    let (lines, count) = messages(&roots, '-');
    std::fs::write(place("messages"), lines).expect("a file");
    let go = |arguments: &[&str]| run(Command::new("go").args(arguments).current_dir(work.path()));
    go(&["vet", "."]);
    assert_eq!(go(&["run", ".", "messages"]).trim(), count.to_string());
}

#[test]
fn node_codec_agrees_with_the_codec_in_rust() {
    if !is_installed("node", "--version") {
        return;
    }
    let package = package("conformance/wit");
    let plan = Plan::new(&package);
    let mut roots = roots(&plan);
    roots.retain(|root| root.name.ends_with(":reply"));
    let work = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| work.path().join(name);
    for output in node::emit(&package).unwrap_or_else(|refused| panic!("{refused}")) {
        std::fs::write(place("").join(output.path), output.contents).expect("a file");
    }
    // The Reader and the Writer of the generic package, without its native part and its calls.
    let generic = place("node_modules/thalweg");
    std::fs::create_dir_all(&generic).expect("a folder");
    let lib = repository().join("bindings/node/lib");
    std::os::unix::fs::symlink(lib, generic.join("lib")).expect("a link");
    let manifest = r#"{"type":"module","exports":{"./generated":"./generated.js"}}"#;
    std::fs::write(generic.join("package.json"), manifest).expect("a file");
    std::fs::write(place("package.json"), r#"{"type":"module"}"#).expect("a file");
    std::fs::write(
        place("native.cjs"),
        "exports.error = new ArrayBuffer(1024);\n",
    )
    .expect("a file");
    for (from, to) in [
        ("generated.mjs", generic.join("generated.js")),
        ("driver.mjs", place("driver.mjs")),
    ] {
        std::fs::copy(folder().join(from), to).expect("a copy");
    }
    // The package leaves UTF-8 to the core.
    let (lines, count) = messages(&roots, '?');
    std::fs::write(place("messages"), lines).expect("a file");
    let mut driver = Command::new("node");
    driver.args([place("driver.mjs"), place("messages")]);
    let checked = run(driver.env("THALWEG_NATIVE", place("native.cjs")));
    assert_eq!(checked.trim(), count.to_string());
    assert!(count > 5_000, "{count} messages");
}

#[test]
fn lua_codec_agrees_with_the_codec_in_rust() {
    if !is_installed("luajit", "-v") {
        return;
    }
    let package = package("conformance/wit");
    let plan = Plan::new(&package);
    let mut roots = roots(&plan);
    roots.retain(|root| root.name.ends_with(":reply"));
    let work = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| work.path().join(name);
    for output in lua::emit(&package).unwrap_or_else(|refused| panic!("{refused}")) {
        std::fs::write(place("").join(output.path), output.contents).expect("a file");
    }
    // The package leaves UTF-8 to the core.
    let (lines, count) = messages(&roots, '?');
    std::fs::write(place("messages"), lines).expect("a file");
    let lib = repository().join("bindings/lua/lib");
    let path = format!("{}/?.lua;{}/?.lua", lib.display(), work.path().display());
    let mut driver = Command::new("luajit");
    driver
        .arg(folder().join("driver.lua"))
        .arg(place("messages"));
    let checked = run(driver.env("LUA_PATH", path));
    assert_eq!(checked.trim(), count.to_string());
    assert!(count > 5_000, "{count} messages");
}
