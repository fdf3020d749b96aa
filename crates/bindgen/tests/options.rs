//! Options of the policy file: their representation in the model, and errors.

use std::fs;
use std::path::PathBuf;
use thalweg_bindgen::model::{Function, OverflowPolicy, StreamOptions};
use thalweg_bindgen::parse;

/// The path of a package with this policy file, in a folder that is gone when it is dropped.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        for (name, text) in files {
            fs::write(folder.path(name), text).expect("a file can be written");
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The refusal of `name`, without the folder.
    fn refusal(&self, name: &str) -> String {
        let mut refused = parse(&self.path(name)).expect_err("it is refused");
        refused.position.file = refused.position.file.file_name().unwrap_or_default().into();
        refused.to_string()
    }
}

#[test]
fn inline_function_with_a_handle() {
    let wit = "package a:b@0.1.0;
interface i {
  resource r { m: func(); }
  t: func(taken: r);
  g: func() -> result<r>;
  s: func() -> stream<u8>;
  n: func(several: list<option<r>>);
  e: func() -> result<u8, tuple<r>>;
  h: func() -> list<option<future>>;
  f: func(value: u8) -> u8;
}
world w { export i; }
";
    let refused = |table: &str| {
        let toml = format!("[{table}]\ninline = true\n");
        Folder::with(&[("b.wit", wit), ("b.thalweg.toml", &toml)]).refusal("b.wit")
    };
    let gives = "an inline function returns only values, no resource and no stream";
    for (table, reason) in [
        (
            "i.r.m",
            "an inline function takes only values, and `self` is a resource of the service",
        ),
        (
            "i.t",
            "an inline function takes only values, and `taken` is a resource of the service",
        ),
        ("i.g", gives),
        ("i.s", gives),
        ("i.h", gives),
        (
            "i.n",
            "an inline function takes only values, and `several` is a resource of the service",
        ),
        ("i.e", gives),
    ] {
        let expected = format!("b.thalweg.toml:2:1: key `{table}.inline`: {reason}");
        assert_eq!(refused(table), expected);
    }
    for (said, is_inline) in [("true", true), ("false", false)] {
        let toml = format!("[i.f]\ninline = {said}\n");
        let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", &toml)]);
        let package = parse(&folder.path("b.wit")).expect("it is right");
        let functions = package.functions.iter();
        let inline: Vec<_> = functions.map(|f| f.options.is_inline).collect();
        assert_eq!(
            inline,
            [false, false, false, false, false, false, false, is_inline]
        );
    }
}

#[test]
fn limits_and_idempotent_are_in_the_model() {
    let toml = "[i]\nmax_queued_calls = 7\nmax_queued_bytes = \"3MiB\"\noverflow = \"block\"\n[i.f]\nidempotent = true\n";
    let wit = "package a:b@0.1.0;\ninterface i { f: func(); g: func(); }\nworld w { export i; }\n";
    let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
    let package = parse(&folder.path("b.wit")).expect("it is right");
    assert_eq!(
        (
            package.limits.max_queued_calls,
            package.limits.max_queued_bytes
        ),
        (7, 3 << 20)
    );
    assert!(package.limits.block_when_full);
    let idempotent: Vec<_> = package
        .functions
        .iter()
        .map(|f| f.options.is_idempotent)
        .collect();
    assert_eq!(idempotent, [true, false]);
}

#[test]
fn conflate_without_a_valid_key() {
    let refused = |table: &str| {
        let wit = "package a:b@0.1.0;
interface i {
  record p { n: u8, f: list<string> }
  s: func() -> stream<p>;
  t: func() -> stream<u8>;
}
world w { export i; }
";
        Folder::with(&[("b.wit", wit), ("b.thalweg.toml", table)]).refusal("b.wit")
    };
    let conflate = "overflow = \"conflate\"\n";
    for (table, refusal) in [
        (
            format!("[i.s]\n{conflate}"),
            "2:12: key `i.s.overflow`: it needs a `conflation_key`: the field by which newer records replace older ones",
        ),
        (
            format!("[i.t]\n{conflate}conflation_key = \"path\"\n"),
            "3:18: key `i.t.conflation_key`: the elements of the stream are not records",
        ),
        (
            format!("[i.s]\nconflation_key = \"m\"\n{conflate}"),
            "2:18: key `i.s.conflation_key`: the records of the stream have no field `m`",
        ),
        (
            format!("[i.s]\nconflation_key = \"f\"\n{conflate}"),
            "2:18: key `i.s.conflation_key`: `f` is not a scalar, an enum, a string or a `list<u8>`",
        ),
        (
            "[i.s]\nconflation_key = \"n\"\n".to_owned(),
            "2:1: key `i.s.conflation_key`: it is an option of the overflow policy \"conflate\"",
        ),
    ] {
        assert_eq!(refused(&table), format!("b.thalweg.toml:{refusal}"));
    }
}

#[test]
fn notice_interval_is_in_the_model() {
    let wit = "package a:b@0.1.0;\ninterface i { f: func(); g: func(); }\nworld w { export i; }\n";
    for (said, ns) in [
        ("1ms", 1_000_000),
        ("2500us", 2_500_000),
        ("5s", 5_000_000_000_u64),
        ("2min", 120_000_000_000),
    ] {
        let toml = format!("[i.f]\nnotice_interval = \"{said}\"\n");
        let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", &toml)]);
        let package = parse(&folder.path("b.wit")).expect("it is right");
        let functions = package.functions.iter();
        let notices: Vec<_> = functions.map(|f| f.options.notice_interval_ns).collect();
        assert_eq!(notices, [ns, 0]);
    }
}

#[test]
fn timeout_of_a_function_is_in_the_model() {
    let wit = "package a:b@0.1.0;\ninterface i { f: func(); g: func() -> stream<u8>; }\nworld w { export i; }\n";
    // Longer than the clock counts is for ever.
    let toml = "[i.f]\nformat = \"flat\"\ntimeout = \"4294967295min\"\n[i.g]\ntimeout = \"3us\"\n";
    let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
    let package = parse(&folder.path("b.wit")).expect("it is right");
    let functions = package.functions.iter();
    let deadlines: Vec<_> = functions.map(|f| f.options.timeout_ns).collect();
    assert_eq!(deadlines, [u64::MAX, 3_000]);
}

#[test]
fn an_async_constructor_and_destructor() {
    let wit = "package a:b@0.1.0;
interface i {
  resource r { constructor(x: u8); m: func(); }
  resource bare { m: func(); }
  resource taken { destroy: func(); }
  last: func();
}
world w { export i; }
";
    let folder = |toml: &str| Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
    let said = folder("[i.r]\nconstructor = \"async\"\ndestructor = \"async\"\n");
    let package = parse(&said.path("b.wit")).expect("it is right");
    let named = |name: &str| {
        let mut all = package.functions.iter();
        all.find(|f| f.full_name == name).expect("there is one")
    };
    assert!(named("i.[constructor]r").is_async);
    assert!(!named("i.[method]r.m").is_async);
    // It comes last, so that no other function has another number.
    let destructor = package.functions.last().expect("there are some");
    assert_eq!(destructor.full_name, "i.[destructor]r");
    assert!(destructor.is_async && destructor.params[0].name == "self");
    let of = |name: &str| package.resources.iter().find(|r| r.name == name);
    let number = package.functions.len() - 1;
    assert_eq!(of("r").expect("there is one").destructor, Some(number));
    assert_eq!(of("bare").expect("there is one").destructor, None);

    for (toml, refused) in [
        (
            "[i.bare]\nconstructor = \"async\"\n",
            "b.thalweg.toml:2:1: key `i.bare.constructor`: it has no constructor",
        ),
        (
            "[i.taken]\ndestructor = \"async\"\n",
            "b.thalweg.toml:2:1: key `i.taken.destructor`: it has a method `destroy`, which is the name of the destructor",
        ),
    ] {
        assert_eq!(folder(toml).refusal("b.wit"), refused);
    }
}

#[test]
fn policy_of_streams_inside_a_result() {
    let wit = "package a:b@0.1.0;
interface i {
  record feed { name: string, numbers: stream<u64>, last: option<future> }
  feeds: func() -> list<feed>;
  fails: func() -> result<u8, feed>;
  waits: func() -> tuple<u8, future>;
}
world w { export i; }
";
    let toml = "[i.feeds]\noverflow = \"drop-oldest\"\ncapacity = 64\n[i.fails]\ncapacity = 128\n";
    let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
    let package = parse(&folder.path("b.wit")).unwrap_or_else(|refused| panic!("{refused}"));
    let said: Vec<_> = package.functions.iter().map(|f| f.stream).collect();
    let options = |overflow, capacity| {
        Some(StreamOptions {
            overflow,
            capacity,
            linger_ns: 0,
            max_record_size: 64 << 20,
        })
    };
    let wanted = [
        options(OverflowPolicy::DropOldest, 64),
        options(OverflowPolicy::Block, 128),
        None,
    ];
    assert_eq!(said, wanted);
    for (toml, reason) in [
        (
            "[i.waits]\ncapacity = 64\n",
            "b.thalweg.toml:2:1: key `i.waits.capacity`: it is an option of a function that returns a stream",
        ),
        (
            "[i.feeds]\noverflow = \"conflate\"\nconflation_key = \"name\"\n",
            "b.thalweg.toml:3:18: key `i.feeds.conflation_key`: the elements of the stream are not records",
        ),
    ] {
        let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
        assert_eq!(folder.refusal("b.wit"), reason);
    }
}

#[test]
fn linger_is_an_option_of_a_stream() {
    let wit = "package a:b@0.1.0;
interface i {
  s: func() -> stream<u8>;
  t: func() -> stream<u8>;
}
world w { export i; }
";
    let parsed = |toml: &str| {
        let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
        let package = parse(&folder.path("b.wit")).map_err(|refused| refused.to_string())?;
        let lingers = |function: &Function| function.stream.unwrap().linger_ns;
        Ok::<Vec<_>, String>(package.functions.iter().map(lingers).collect())
    };
    let said = "[i.s]\nlinger = \"1us\"\n";
    assert_eq!(parsed(said), Ok(vec![1_000, 0]));
    let said = "[i.s]\nlinger = \"1s\"\ncapacity = 64\n";
    assert_eq!(parsed(said), Ok(vec![1_000_000_000, 0]));
    let too_long = parsed("[i.s]\nlinger = \"2s\"\n").unwrap_err();
    assert!(too_long.ends_with("it must be at most 1s"), "{too_long}");
}

#[test]
fn max_record_size_is_an_option_of_a_stream() {
    let wit = "package a:b@0.1.0;
interface i {
  s: func() -> stream<u8>;
  f: func() -> u8;
}
world w { export i; }
";
    let parsed = |toml: &str| {
        let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
        let package = parse(&folder.path("b.wit")).map_err(|refused| refused.to_string())?;
        Ok::<_, String>(
            package.functions[0]
                .stream
                .map(|options| options.max_record_size),
        )
    };
    assert_eq!(parsed(""), Ok(Some(64 << 20)));
    for (said, bytes) in [("64KiB", 64 << 10), ("512MiB", 512 << 20)] {
        let said = format!("[i.s]\nmax_record_size = \"{said}\"\n");
        assert_eq!(parsed(&said), Ok(Some(bytes)));
    }
    for refused in ["63KiB", "513MiB", "4GiB"] {
        let why = parsed(&format!("[i.s]\nmax_record_size = \"{refused}\"\n")).unwrap_err();
        assert!(why.ends_with("it must be \"64KiB\" to \"512MiB\""), "{why}");
    }
    let why = parsed("[i.f]\nmax_record_size = \"64MiB\"\n").unwrap_err();
    assert!(
        why.ends_with("it is an option of a function that returns a stream"),
        "{why}"
    );
}

#[test]
fn format_of_a_function_is_in_the_model() {
    let wit = "package a:b@0.1.0;\ninterface i { f: func() -> result<string, u8>; g: async func(x: list<u8>); h: func(); }\nworld w { export i; }\n";
    let toml = "[i.f]\nformat = \"cbor\"\n[i.g]\nformat = \"cbor\"\n[i.h]\nformat = \"flat\"\n";
    let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
    let package = parse(&folder.path("b.wit")).expect("it is right");
    let functions = package.functions.iter();
    let formats: Vec<_> = functions.map(|f| f.options.is_cbor).collect();
    assert_eq!(formats, [true, true, false]);
}
