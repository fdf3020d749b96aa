//! The code for Nim: a golden file, and the names that Nim does not permit. `bindings/nim/test.sh`
//! compiles it.
//!
//! `BLESS=1 cargo test -p thalweg-bindgen --test nim` writes the golden file anew.

use std::fs;
use std::path::Path;
use thalweg_bindgen::model::{Package, ResourceId, TypeDefKind, TypeKind};
use thalweg_bindgen::{Output, SourceError, nim, parse_text};

/// Names that are reserved in Nim or used by the generic package, and types that the packages of the
/// repository do not have.
const ODD: &str = "package a:odd-names@0.1.0;
/// The host.
interface %stream {
  /// Looks up.
  end: func(key: u64, args: string) -> result<string, u8>;
  nod: func();
}
/// The interface.
interface i {
  /// A color.
  enum color { red, /// Not light.
    dark-green }
  /// Its flags.
  flags rights { read, %end }
  record %message { %type: u8, a-b: u8, addr: option<string>, %list: list<f32> }
  record deep { a: option<option<u32>>, b: list<option<option<u8>>>, c: list<result<_, color>> }
  record session { x: s32 }
  type points = list<session>;
  variant kind { kind, one(u8), both(tuple<u8, string>), all(points) }
  /// A resource.
  resource timer {
    constructor(at: u8, root: string, call-options: bool) -> result<timer, kind>;
    close: func(client: u8, self-time: u8);
    handle: func() -> list<timer>;
    take: static func(timers: list<timer>, other: borrow<timer>, %own: option<timer>);
  }
  /// A resource without methods.
  resource handle-only;
  open: func(v1: list<rights>, nil: stream<tuple<u8, string>>, last: future) -> result<stream<tuple<u8, string>>>;
  x: func(value: deep, rest: option<%message>) -> deep;
  x-async: func() -> list<list<u16, 3>>;
  soon: func() -> future<list<color>>;
  feeds: func() -> list<tuple<string, stream<bool>, option<future<session>>>>;
}
world w { import %stream; export i; }
";

/// The same for a guest: names that it uses itself, and every kind of type and result.
const GUEST: &str = "package a:odd@0.1.0;
/// The host.
interface host {
  /// An import with names that the guest uses.
  cancelled: func(call: u8, args: string) -> result<list<tuple<u8, string>>, option<char>>;
  end: func();
}
interface i {
  enum color { red, dark-green }
  flags rights { read, %end }
  record service { call: u8, %type: option<string> }
  record message { root: list<service>, m: tuple<u8, string>, at: list<u16, 3>, letter: char }
  variant writer { nothing, one(u8), many(list<option<option<u32>>>) }
  type texts = list<string>;
  record holder { one: echo, others: list<echo>, at: option<kept> }
  variant kept { nothing, old(old-echo) }
  type holders = list<holder>;
  resource old-echo;
  resource echo {
    constructor(self: u8, call: string) -> result<echo, color>;
    close: func() -> result<texts, writer>;
    open: func(other: borrow<echo>, mine: own<echo>) -> result<_, string>;
    both: static func() -> echo;
  }
  load: func(writer: message) -> message;
  close: func(value: writer, rights: rights) -> tuple<writer, rights, color>;
  sing: async func(r: result<u8, string>) -> result<u8, color>;
  sing-async: func() -> result;
  ticks: func(writer: u32) -> stream;
  rows: func() -> result<stream<tuple<u8, string>>, color>;
  last: func() -> future<list<message>>;
  hold: func(value: holders, other: option<tuple<kept>>) -> result<holder, kept>;
  read: func(writer: stream<tuple<u8, string>>, m: stream<message>, last: future) -> u8;
}
world w { import host; export i; }
";

#[test]
fn odd_package_is_as_the_golden_file() {
    is_golden(nim::emit, ODD, "[i.timer]\ndestructor = \"async\"\n");
}

#[test]
fn odd_guest_is_as_the_golden_file() {
    let policy = "[i]\noverflow = \"block\"\n[i.close]\nbrief = true\n[i.rows]\noverflow = \"drop-oldest\"\ncapacity = 64\n";
    is_golden(nim::emit_guest, GUEST, policy);
}

/// Functions that a guest cannot have are refused.
#[test]
fn stream_inside_a_value_of_a_guest_is_refused() {
    let wit = "package a:b@0.1.0; interface i { f: func() -> list<stream<u8>>; }
world w { export i; }";
    let package = parse_text("b.wit".as_ref(), wit, "");
    let package = package.unwrap_or_else(|refused| panic!("{refused}"));
    let refused = nim::emit_guest(&package)
        .expect_err("it is refused")
        .to_string();
    assert!(
        refused.contains("streams or futures inside of other values"),
        "{refused}"
    );
}

fn is_golden(emit: fn(&Package) -> Result<Vec<Output>, SourceError>, wit: &str, policy: &str) {
    let package = parse_text("odd.wit".as_ref(), wit, policy);
    let package = package.unwrap_or_else(|refused| panic!("{refused}"));
    let outputs = emit(&package).unwrap_or_else(|refused| panic!("{refused}"));
    let [output] = &outputs[..] else {
        panic!("it is one file")
    };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/nim/golden")
        .join(&output.path);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&golden, &output.contents).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    for (number, (line, expected)) in output.contents.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    assert_eq!(output.contents, expected);
}

/// The parser refuses it, too.
#[test]
fn borrowed_resource_inside_a_record_is_refused() {
    let wit =
        "package a:b@0.1.0; interface i { record holder { r: u32 } resource query; f: func(); }
world w { export i; }";
    let package = parse_text("b.wit".as_ref(), wit, "");
    let mut package = package.unwrap_or_else(|refused| panic!("{refused}"));
    let TypeDefKind::Record(fields) = &mut package.types[0].kind else {
        panic!("it is a record")
    };
    fields[0].ty.kind = TypeKind::Borrow(ResourceId(0));
    let refused = nim::emit(&package).expect_err("it is refused").to_string();
    assert!(refused.contains("can only be a parameter"), "{refused}");
}
