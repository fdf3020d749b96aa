//! Code first: the WIT that is generated from Rust, and the errors.
//!
//! `BLESS=1 cargo test -p thalweg-bindgen --test from_code` rewrites the golden files in
//! `generated`.

use std::fs;
use std::path::Path;
use thalweg_bindgen::{FromCode, Output, SourceError, from_code, parse, source_of};

fn read(code: &str) -> Result<FromCode, SourceError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("src")).expect("a folder can be made");
    let file = folder.path().join("src/api.rs");
    fs::write(&file, code).expect("a file can be written");
    from_code(&file).map_err(|refused| {
        let file = &refused.position.file;
        let below = file.strip_prefix(folder.path()).expect("it is below");
        let mut refused = refused.clone();
        refused.position.file = below.to_owned();
        refused
    })
}

fn wit(code: &str) -> String {
    match read(code) {
        Ok(read) => read.sources[0].contents.clone(),
        Err(refused) => panic!("{refused}"),
    }
}

/// The refusal of a file that begins with these lines and goes on with a service.
fn refusal(lines: &str) -> String {
    let service = "#[thalweg::service(package = \"a:b@0.1.0\")]\npub trait I { fn f(&self); }\n";
    match read(&format!("{lines}\n{service}")) {
        Ok(_) => panic!("not refused: {lines}"),
        Err(refused) => refused.to_string(),
    }
}

/// The refusal of a field of this type; its position is 2:23.
fn field(ty: &str) -> String {
    refusal(&format!(
        "#[thalweg::value]\npub struct R {{ pub a: {ty} }}"
    ))
}

/// The refusal of a function of the service; its position is in line 4.
fn function(function: &str) -> String {
    let code = format!(
        "pub struct Q;
#[thalweg::resource] impl Q {{ pub fn new() -> Self {{ Q }} }}
#[thalweg::service(package = \"a:b@0.1.0\")] pub trait I {{
{function}
}}\n"
    );
    match read(&code) {
        Ok(_) => panic!("not refused: {function}"),
        Err(refused) => refused.to_string(),
    }
}

#[test]
fn search_as_rust_has_the_layout_of_search_as_wit() {
    let by_code = read(include_str!("from_code/search.rs")).unwrap();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/search/wit/search.wit");
    let by_wit = parse(&wit).unwrap();
    assert_eq!(by_code.package.layout, by_wit.layout);
    assert_eq!(by_code.package.docs, by_wit.docs.lines().next().unwrap());
    for (code, wit) in by_code.package.functions.iter().zip(&by_wit.functions) {
        assert_eq!(
            (&code.full_name, code.hashes, code.stream, code.is_async),
            (&wit.full_name, wit.hashes, wit.stream, wit.is_async)
        );
    }
    assert_eq!(by_code.package.functions[2].docs, by_wit.functions[2].docs);
}

#[test]
fn every_type_and_kind_of_function_has_its_form() {
    let text = wit(include_str!("from_code/all.rs"));
    assert_eq!(text, include_str!("from_code/all.wit"));
}

#[test]
fn attributes_become_policy_options() {
    let read = read(include_str!("from_code/all.rs")).unwrap();
    assert_eq!(
        read.sources[1].contents,
        include_str!("from_code/all.thalweg.toml")
    );
}

/// Checks that `code` has the same model as WIT that was written by hand. The tests of
/// `conformance/codegen` compile and call the generated code.
fn equals_hand_written(code: &str, hand: [(&str, &str); 2]) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in hand {
        fs::write(folder.path().join(name), text).expect("a file can be written");
    }
    let by_wit = parse(&folder.path().join(hand[0].0)).unwrap();
    let by_code = read(code).unwrap();
    let rest = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(rest(&by_code.sources[0].contents), rest(hand[0].1));
    assert_eq!(by_code.sources[1].contents, hand[1].1);
    assert_eq!(by_code.package.layout, by_wit.layout);
    for (code, wit) in by_code.package.functions.iter().zip(&by_wit.functions) {
        assert_eq!(
            (&code.full_name, code.hashes, code.options, code.is_async),
            (&wit.full_name, wit.hashes, wit.options, wit.is_async)
        );
    }

    by_code.glue
}

/// Compares glue with its golden file. `BLESS=1` writes the file.
fn check_golden(glue: &Output) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/from_code/generated")
        .join(&glue.path);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &glue.contents).expect("a file can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == glue.contents, "{} differs", path.display());
}

#[test]
fn flags_futures_streams_and_inline_functions_equal_hand_written_wit() {
    let glue = equals_hand_written(
        include_str!("../../../conformance/codegen/src/api/press.rs"),
        [
            ("press.wit", include_str!("from_code/press.wit")),
            (
                "press.thalweg.toml",
                include_str!("from_code/press.thalweg.toml"),
            ),
        ],
    );
    assert_eq!(glue.path, Path::new("press_from_code.rs"));
}

#[test]
fn resources_inside_values_and_async_destructors_equal_hand_written_wit() {
    let glue = equals_hand_written(
        include_str!("../../../conformance/codegen/src/api/hall.rs"),
        [
            ("hall.wit", include_str!("from_code/hall.wit")),
            (
                "hall.thalweg.toml",
                include_str!("from_code/hall.thalweg.toml"),
            ),
        ],
    );
    check_golden(&glue);
}

#[test]
fn host_imports_equal_hand_written_wit() {
    let glue = equals_hand_written(
        include_str!("../../../conformance/codegen/src/api/greeter.rs"),
        [
            ("greeter.wit", include_str!("from_code/greeter.wit")),
            (
                "greeter.thalweg.toml",
                include_str!("from_code/greeter.thalweg.toml"),
            ),
        ],
    );
    check_golden(&glue);
}

#[test]
fn host_import_with_a_handle_is_refused() {
    const VALUES: &str = "host imports take and return only values";
    const OPTIONS: &str = "host imports have no options";
    for (line, place, reason) in [
        ("fn f(&self, call: &Call);", "3:4: host `H`", VALUES),
        ("fn f(&self, q: &Q);", "3:4: host `H`", VALUES),
        ("fn f(&self, q: Arc<Q>);", "3:4: host `H`", VALUES),
        ("fn f(&self) -> Q;", "3:4: host `H`", VALUES),
        (
            "fn f(&self) -> Box<dyn Iterator<Item = u8>>;",
            "3:4: host `H`",
            VALUES,
        ),
        (
            "fn f(&self) -> impl Future<Output = u8>;",
            "3:4: host `H`",
            VALUES,
        ),
        (
            "fn f(&self, a: impl Future<Output = Result<u8, Failure>>);",
            "3:4: host `H`",
            VALUES,
        ),
        (
            "#[thalweg::method(idempotent)] fn f(&self);",
            "3:35: host `H`",
            OPTIONS,
        ),
        (
            "#[thalweg::method(inline)] fn f();",
            "3:31: host `H`",
            OPTIONS,
        ),
        (
            "type T;",
            "3:1: host `H`",
            "a trait of host imports contains only functions",
        ),
    ] {
        let lines = format!(
            "struct Q; #[thalweg::resource] impl Q {{}}\n#[thalweg::host] trait H {{\n{line}\n}}"
        );
        assert_eq!(refusal(&lines), format!("src/api.rs:{place}: {reason}"));
    }
    for (lines, refused) in [
        (
            "#[thalweg::host(max_queued_calls = 4)] trait H {}",
            "1:1: host `H`: it has no options",
        ),
        (
            "#[thalweg::host] trait H<T> {}",
            "1:26: host `H`: WIT has no generics: write one item per type",
        ),
        (
            "#[thalweg::host] trait G { fn f(&self); }\n#[thalweg::host] trait H { fn f(&self); }",
            "2:24: host `H`: a service has one trait of host imports, and this is another",
        ),
        (
            "#[thalweg::host] struct H;",
            "1:1: `#[thalweg::host]`: the attribute belongs on a trait",
        ),
    ] {
        assert_eq!(refusal(lines), format!("src/api.rs:{refused}"));
    }
}

#[test]
fn generated_wit_names_its_source_and_a_hand_written_file_is_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("src")).expect("a folder can be made");
    fs::create_dir(at("wit")).expect("a folder can be made");
    fs::write(at("src/api.rs"), include_str!("from_code/all.rs")).expect("a file can be written");
    let read = from_code(&at("src/api.rs")).unwrap();
    for source in read.sources {
        fs::write(&source.path, source.contents).expect("a file can be written");
    }
    for wit in ["wit", "wit/all.wit"] {
        assert_eq!(source_of(&at(wit)), Some(at("src/api.rs")));
    }
    fs::write(at("wit/all.wit"), "package a:all@0.1.0;\n").expect("a file can be written");
    assert_eq!(source_of(&at("wit")), None);
    let refused = from_code(&at("src/api.rs")).unwrap_err().to_string();
    assert!(refused.contains("it was written by hand"), "{refused}");
}

#[test]
fn unsupported_types_are_refused_with_a_suggestion() {
    const GENERIC: &str = "WIT has no generic types: write one type per use";
    const INSIDE: &str = "a value is copied across the boundary: write the inner type";
    const OWNED: &str =
        "a reference cannot cross the boundary: write the owned type, such as `String` or `Vec<T>`";
    for (ty, reason) in [
        ("usize", "its size differs between machines: write `u64`"),
        ("isize", "its size differs between machines: write `i64`"),
        (
            "i128",
            "WIT has no 128-bit integers: write `[u64; 2]`, or a `String`",
        ),
        (
            "u128",
            "WIT has no 128-bit integers: write `[u64; 2]`, or a `String`",
        ),
        (
            "std::collections::HashMap<String, u8>",
            "WIT has no maps: write `Vec<(K, V)>`",
        ),
        ("BTreeSet<u8>", "WIT has only lists: write `Vec<T>`"),
        ("Arc<String>", INSIDE),
        ("Box<u8>", INSIDE),
        ("&'static str", OWNED),
        ("Cow<'static, str>", OWNED),
        ("Foo<3>", GENERIC),
        ("Foo<u8>", GENERIC),
        (
            "PathBuf",
            "it is platform-specific text: write `String`, or `Vec<u8>` if it may not be UTF-8",
        ),
        (
            "Duration",
            "WIT has no time types: write `u64`, with the unit in the name, as in `delay_ms`",
        ),
        ("()", "it has no value: remove it, or write `bool`"),
        (
            "[u8; N]",
            "the length must be a literal of at least 1: write `[T; 4]`",
        ),
        (
            "fn(u8)",
            "an address has no meaning in another language: use a `#[thalweg::resource]`",
        ),
        (
            "*const u8",
            "an address has no meaning in another language: use a `#[thalweg::resource]`",
        ),
        (
            "Other",
            "it is not a `#[thalweg::value]` of this file: declare it here with the attribute",
        ),
        (
            "Result<u8>",
            "the error type must be explicit: write `Result<T, E>`",
        ),
        (
            "StreamReader<u8>",
            "write a stream as `impl Iterator<Item = T>`, which must be a whole parameter, a whole result or its ok side; inside a result it is `thalweg::Owned<StreamReader<T>>`",
        ),
        (
            "UpstreamFuture<u8>",
            "write a future as `impl Future<Output = T>`, which must be a whole parameter, a whole result or its ok side; inside a result it is `thalweg::Owned<FutureReader<T>>`",
        ),
        ("<u8 as Tr>::T", "WIT has no equivalent"),
        ("Box<dyn Fn()>", INSIDE),
        (
            "dyn Fn()",
            "a trait is not a value: write the type; an iterator or a future must be a whole parameter, a whole result or its ok side",
        ),
    ] {
        assert_eq!(field(ty), format!("src/api.rs:2:23: type `{ty}`: {reason}"));
    }
    // Inside of another type, at its own place.
    assert_eq!(
        field("Vec<Option<usize>>"),
        "src/api.rs:2:34: type `usize`: its size differs between machines: write `u64`"
    );
}

#[test]
fn unsupported_shapes_are_refused_with_a_suggestion() {
    for (lines, refused) in [
        (
            "#[thalweg::value] struct R<'a> { a: u8 }",
            "1:28: struct `R`: borrowed data cannot cross the boundary: write owned types such as `String` and `Vec<T>`",
        ),
        (
            "#[thalweg::value] struct R<T> { a: T }",
            "1:28: struct `R`: WIT has no generics: write one item per type",
        ),
        (
            "#[thalweg::value] enum E<T> { A(T) }",
            "1:26: enum `E`: WIT has no generics: write one item per type",
        ),
        (
            "#[thalweg::value] struct R(u8);",
            "1:26: struct `R`: a record needs named fields: write `struct NAME { field: T }`",
        ),
        (
            "#[thalweg::value] struct R;",
            "1:26: struct `R`: a record needs named fields: write `struct NAME { field: T }`",
        ),
        (
            "#[thalweg::value] enum E { A { b: u8 } }",
            "1:28: case `A`: a case in WIT has one payload: move the fields into a struct",
        ),
        (
            "#[thalweg::value] struct R { a_1: u8 }",
            "1:30: name `a_1`: a name in WIT is ASCII, and each of its words begins with a letter: rename it",
        ),
        (
            "#[thalweg::value] struct R { #[cfg(unix)] a: u8 }",
            "1:30: name `a`: the interface is the same in every build: remove the `#[cfg]`",
        ),
        (
            "#[thalweg::value(flags)] struct R { a: u8 }",
            "1:40: type `u8`: a flag is a `bool`: write `bool`",
        ),
        (
            "#[thalweg::value(flags)] enum E { A }",
            "1:31: enum `E`: an enum cannot be flags: write a struct with one `bool` per flag",
        ),
        (
            "#[thalweg::value(open)] enum E { A }",
            "1:1: `#[thalweg::value(open)]`: `open = true` is not an option; the only option is `flags`, on a struct",
        ),
        (
            "#[thalweg::value] fn f() {}",
            "1:1: `#[thalweg::value]`: the attribute belongs on a struct or an enum",
        ),
        (
            "#[thalweg::resource] struct R;",
            "1:1: `#[thalweg::resource]`: the attribute belongs on an `impl`",
        ),
        (
            "#[thalweg::resource] impl T for R {}",
            "1:1: `#[thalweg::resource]`: the attribute belongs on an inherent `impl`: write `impl NAME {`",
        ),
    ] {
        assert_eq!(refusal(lines), format!("src/api.rs:{refused}"));
    }
    let refused = refusal("struct R {");
    assert!(refused.contains(": file: it is not Rust: "), "{refused}");
    // Found in the WIT that it makes.
    let refused = refusal("#[thalweg::value]\nstruct R { a: Vec<R> }");
    assert!(refused.starts_with("src/api.rs:2:"), "{refused}");
}

#[test]
fn unsupported_functions_are_refused_with_a_suggestion() {
    for (line, refused) in [
        (
            "fn f<T>(&self, a: T);",
            "4:6: function `f`: WIT has no generics: write one item per type",
        ),
        (
            "fn f<'a>(&'a self);",
            "4:6: function `f`: borrowed data cannot cross the boundary: write owned types such as `String` and `Vec<T>`",
        ),
        (
            "fn f(&mut self);",
            "4:6: function `f`: calls run concurrently on one object: write `&self`, and put mutable state into a lock or an atomic",
        ),
        (
            "fn f(self);",
            "4:6: function `f`: calls run concurrently on one object: write `&self`, and put mutable state into a lock or an atomic",
        ),
        (
            "fn f(a: u8);",
            "4:4: function `f`: a function of a service needs a receiver: write `&self`",
        ),
        (
            "fn f(&self) -> &str;",
            "4:16: type `&str`: a reference cannot cross the boundary: write the owned type, such as `String` or `Vec<T>`",
        ),
        (
            "fn f(&self) -> Option<Q>;",
            "4:23: type `Q`: a resource must be a whole parameter, a whole result or its ok side; inside a value it is `thalweg::Owned<R>`",
        ),
        (
            "fn f(&self) -> Vec<Owned<u8>>;",
            "4:20: type `Owned<u8>`: `Owned` is for a `#[thalweg::resource]` of this file, a `StreamReader<T>` or a `FutureReader<T>`",
        ),
        (
            "fn f(&self) -> Vec<Owned<StreamReader<Owned<Q>>>>;",
            "4:39: type `Owned<Q>`: a stream or a future inside a value carries only numbers, `bool`, `char`, `String`, and lists, options, results and tuples of these",
        ),
        (
            "fn f(&self) -> Owned<StreamReader<u8>>;",
            "4:16: type `Owned<StreamReader<u8>>`: `Owned` is for fields of a value: write `impl Iterator<Item = T>` or `impl Future<Output = T>`",
        ),
        (
            "fn f(&self) -> Result<Box<dyn Iterator<Item = Result<u8, CallError<u8>>> + Send>, u16>;",
            "4:68: type `u8`: a stream has the error type of its function: write `Result<impl Iterator<Item = Result<T, CallError<E>>>, E>`",
        ),
        (
            "fn f(&self, q: Owned<FutureReader<u8>>);",
            "4:16: type `Owned<FutureReader<u8>>`: `Owned` is for fields of a result: write `impl Iterator<Item = Result<T, thalweg::Failure>>` or `impl Future`",
        ),
        (
            "fn f(&self, q: Vec<Owned<StreamReader<u8>>>);",
            "4:4: type `list<stream<u8>>`: a stream or a future is a parameter of its own, and cannot be inside another one",
        ),
        (
            "fn f(&self) -> Owned<Q>;",
            "4:16: type `Owned<Q>`: `Owned` is for fields of a value: write `Q`",
        ),
        (
            "fn f(&self, q: Owned<Q>);",
            "4:16: type `Owned<Q>`: `Owned` is for fields of a value: write `&Q` to borrow it, or `Arc<Q>` to take it",
        ),
        (
            "fn f(&self, q: Q);",
            "4:16: type `Q`: a resource is shared: write `&R` to borrow it, or `Arc<R>` to take it",
        ),
        (
            "fn f(&self, a: &mut u8);",
            "4:16: type `&mut u8`: a parameter cannot return data: return the value",
        ),
        (
            "fn f(&self, a: &String);",
            "4:16: type `&String`: the allowed references are `&str`, `&[T]`, `&Call` and `&R` of a resource: write the owned type",
        ),
        (
            "fn f(&self, a: &'static str);",
            "4:16: type `&'static str`: a parameter is borrowed for the call only: remove the lifetime",
        ),
        (
            "fn f(&self, (a, b): (u8, u8));",
            "4:13: function `f`: a parameter must be a plain name: destructure it in the body",
        ),
        (
            "fn f(&self) -> Option<impl Future<Output = u8>>;",
            "4:23: type `impl Future<Output = u8>`: a trait is not a value: write the type; an iterator or a future must be a whole parameter, a whole result or its ok side",
        ),
        (
            "fn f(&self, a: impl Iterator<Item = u8>);",
            "4:37: type `u8`: the caller may stop sending: write `Result<T, thalweg::Failure>` here",
        ),
        (
            "fn f(&self, a: Pin<Box<dyn Future<Output = Result<u8, String>>>>);",
            "4:44: type `Result<u8, String>`: the caller may stop sending: write `Result<T, thalweg::Failure>` here",
        ),
        (
            "fn f(&self, a: impl Future<Output = Result<usize, Failure>>);",
            "4:44: type `usize`: its size differs between machines: write `u64`",
        ),
        (
            "#[thalweg::method(inline)] fn f(&self);",
            "4:33: function `f`: an inline function runs on the caller's thread, without the instance and the call: remove `&self` and `&Call`",
        ),
        (
            "#[thalweg::method(inline)] fn f(call: &Call);",
            "4:39: function `f`: an inline function runs on the caller's thread, without the instance and the call: remove `&self` and `&Call`",
        ),
        (
            "#[thalweg::method(other)] fn f(&self);",
            "4:1: function `f`: `other` is not an option; the options are brief, capacity, conflation_key, format, idempotent, inline, linger, max_record_size, notice_interval, overflow, timeout",
        ),
        (
            "type T;",
            "4:1: service `I`: a service trait contains only functions",
        ),
    ] {
        assert_eq!(function(line), format!("src/api.rs:{refused}"));
    }
}

#[test]
fn invalid_policy_is_refused_at_its_function() {
    let refused = function(
        "#[thalweg::method(capacity = 3)]\nfn f(&self) -> Box<dyn Iterator<Item = u8> + Send>;",
    );
    assert!(
        refused.starts_with("src/api.rs:5:4: key `i.f.capacity`: "),
        "{refused}"
    );
}

#[test]
fn inline_function_with_a_handle_is_refused() {
    for (line, refused) in [
        (
            "fn f() -> Q;",
            "an inline function returns only values, no resource and no stream",
        ),
        (
            "fn f(a: impl Iterator<Item = Result<u8, Failure>>);",
            "an inline function takes only values, and `a` is a stream or a future",
        ),
        (
            "fn f(a: &Q);",
            "an inline function takes only values, and `a` is a resource of the service",
        ),
    ] {
        let said = function(&format!("#[thalweg::method(inline)]\n{line}"));
        let begin = "src/api.rs:5:4: key `i.f.inline`: ";
        assert_eq!(said, format!("{begin}{refused}"));
    }
}

#[test]
fn constructor_and_destructor_signatures_are_checked() {
    let resource = |line: &str| {
        refusal(&format!(
            "struct Q;\n#[thalweg::resource] impl Q {{\n{line}\n}}"
        ))
    };
    assert_eq!(
        resource("pub fn new() -> u8 { 0 }"),
        "src/api.rs:3:8: function `new`: `new` is the constructor: write `-> Self` or `-> Result<Self, E>`"
    );
    let takes = "only the async destructor takes its resource by value: write `pub async fn destroy(self: Arc<Self>)`, or `&self`";
    for (line, place, name) in [
        ("pub fn destroy(self: Arc<Self>) {}", 8, "destroy"),
        ("pub async fn close(self: Arc<Self>) {}", 14, "close"),
        (
            "pub async fn destroy(self: Arc<Self>, a: u8) {}",
            14,
            "destroy",
        ),
        (
            "pub async fn destroy(self: Arc<Self>) -> u8 { 0 }",
            14,
            "destroy",
        ),
    ] {
        assert_eq!(
            resource(line),
            format!("src/api.rs:3:{place}: function `{name}`: {takes}")
        );
    }
}

#[test]
fn a_file_has_one_service_with_a_package() {
    let refused = |code: &str| read(code).unwrap_err().to_string();
    assert!(refused("struct A;").starts_with("src/api.rs:1:1: file: no trait has the attribute "));
    assert_eq!(
        refused("#[thalweg::service]\ntrait I { fn f(&self); }"),
        "src/api.rs:1:1: service `I`: it has no package: write `#[thalweg::service(package = \"me:name@0.1.0\")]`"
    );
    assert_eq!(
        refused("#[thalweg::service(package = \"b\")]\ntrait I { fn f(&self); }"),
        "src/api.rs:1:1: service `I`: the package must be a name with a version: write `me:name@0.1.0`"
    );
    let one = "#[thalweg::service(package = \"a:b@0.1.0\")] trait I { fn f(&self); }\n";
    assert_eq!(
        refused(&format!("{one}{one}")),
        "src/api.rs:2:50: file: a package has one service, and this is another"
    );
}
