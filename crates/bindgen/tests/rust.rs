//! Errors of the Rust emitter, and its output.

use std::fs;
use std::path::Path;
use thalweg_bindgen::{Output, SourceError, parse, rust};

fn emit(lines: &str) -> Result<Vec<Output>, SourceError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("b.wit");
    let text =
        format!("package a:b@0.1.0;\ninterface i {{\n{lines}\n}}\nworld w {{ export i; }}\n");
    fs::write(&path, text).expect("a file can be written");
    rust::emit(&parse(&path).unwrap_or_else(|refused| panic!("{refused}")))
}

fn refusal(lines: &str) -> String {
    let mut refused = emit(lines).expect_err("it is refused");
    refused.position.file = "b.wit".into();
    refused.to_string()
}

#[test]
fn record_called_like_another_s_view() {
    assert_eq!(
        refusal("record r { a: string }\nrecord r-view { b: u8 }\nf: func(r: r, v: r-view);"),
        "b.wit:4:8: type `r-view`: in Rust its name would be `RView`, which is that of type `r`: rename one"
    );
}

#[test]
fn record_called_like_the_interface() {
    assert_eq!(
        refusal("record i { a: string }\nf: func(i: i);"),
        "b.wit:3:8: type `i`: in Rust its name would be `I`, which is that of interface `i`: rename one"
    );
}

#[test]
fn function_called_like_a_static_one() {
    assert_eq!(
        refusal("resource r { make: static func() -> r; }\nr-make: func();"),
        "b.wit:4:1: function `i.r-make`: in Rust its name would be `r_make`, which is that of function \
         `i.[static]r.make`: rename one"
    );
}

#[test]
fn method_that_takes_another_resource() {
    let wit = "resource r { t: func(s: borrow<s>); }\nresource s { m: func(r: borrow<r>) -> r; }";
    let output = emit(wit).unwrap_or_else(|refused| panic!("{refused}"));
    let text = &output[0].contents;
    assert!(text.contains("    type S: S<R = Self::R>;"), "{text}");
    assert!(text.contains("    type R: R<S = Self::S>;"), "{text}");
    let method = "fn m(&self, call: &port::Call, r: std::sync::Arc<Self::R>) -> Self::R;";
    assert!(text.contains(method), "{text}");
}

#[test]
fn more_parameters_than_a_tuple_has() {
    let params: Vec<_> = (0..13).map(|i| format!("p{i}: u8")).collect();
    let function = format!("f: func({});", params.join(", "));
    let output = emit(&function).unwrap_or_else(|refused| panic!("{refused}"));
    assert!(output[0].contents.contains("pub struct FParams {"));
    assert_eq!(
        refusal(&format!("record f-params {{ x: u8 }}\n{function}")),
        "b.wit:4:1: type `f-params`: in Rust its name would be `FParams`, which is that of type `f-params`: rename one"
    );
}

#[test]
fn policies_of_streams() {
    for (name, variant) in [
        ("block", "Block"),
        ("latest", "Latest"),
        ("drop-newest", "DropNewest"),
        ("drop-oldest", "DropOldest"),
        ("fail", "Fail"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("b.wit");
        let text =
            "package a:b@0.1.0;\ninterface i { s: func() -> stream<u8>; }\nworld w { export i; }\n";
        fs::write(&path, text).expect("a file can be written");
        let policy = format!("[i.s]\noverflow = \"{name}\"\ncapacity = 64\n");
        fs::write(folder.path().join("b.thalweg.toml"), policy).expect("a file can be written");
        let package = parse(&path).unwrap_or_else(|refused| panic!("{refused}"));
        let outputs = rust::emit(&package).unwrap_or_else(|refused| panic!("{refused}"));
        let expected = format!("overflow: port::Overflow::{variant},");
        assert!(
            outputs
                .iter()
                .any(|output| output.contents.contains(&expected)),
            "{name}"
        );
    }
}

#[test]
fn a_stream_that_conflates_writes_its_key() {
    for (field, write) in [
        (
            "name",
            "key.extend_from_slice(<String as wire::Decode>::view(bytes, at).as_bytes())",
        ),
        (
            "hash",
            "key.extend(<Vec<u8> as wire::Decode>::view(bytes, at + 8).iter())",
        ),
        (
            "side",
            "key.extend_from_slice(&<u8 as wire::Decode>::view(bytes, at + 16).to_le_bytes())",
        ),
        (
            "price",
            "key.extend_from_slice(&<u64 as wire::Decode>::view(bytes, at + 24).to_le_bytes())",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("b.wit");
        let text = "package a:b@0.1.0;
interface i {
  type text = string;
  enum side { bid, ask }
  record quote { name: text, hash: list<u8>, side: side, price: f64 }
  type tick = quote;
  s: func() -> stream<tick>;
}
world w { export i; }
";
        fs::write(&path, text).expect("a file can be written");
        let policy = format!("[i.s]\noverflow = \"conflate\"\nconflation_key = \"{field}\"\n");
        fs::write(folder.path().join("b.thalweg.toml"), policy).expect("a file can be written");
        let package = parse(&path).unwrap_or_else(|refused| panic!("{refused}"));
        let outputs = rust::emit(&package).unwrap_or_else(|refused| panic!("{refused}"));
        let words = |text: &str| text.split_whitespace().collect::<String>();
        let text = words(&outputs[0].contents);
        let policy =
            words("overflow: port::Overflow::Conflate(port::ConflationKey(|bytes, at, key|");
        assert!(text.contains(&policy), "{field}: {text}");
        assert!(text.contains(&words(write)), "{field}: {text}");
        let docs = words(&format!(
            "values of `{field}`; a newer record replaces it, which is counted"
        ));
        assert!(text.replace("///", "").contains(&docs), "{field}: {text}");
    }
}

#[test]
fn output_is_the_same_each_time_and_formatted() {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/wit/conformance.wit");
    let package = parse(&wit).unwrap_or_else(|refused| panic!("{refused}"));
    let first = rust::emit(&package).unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!(
        rust::emit(&package).unwrap_or_else(|refused| panic!("{refused}")),
        first
    );
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].path, Path::new("conformance.rs"));
    let third = first[0].contents.lines().nth(2);
    assert_eq!(
        third,
        Some("//! Generated by `thalweg gen` from conformance.wit. Do not edit.")
    );
}

#[test]
fn package_without_types_imports_nothing_that_it_does_not_use() {
    let output = emit("f: func();").unwrap_or_else(|refused| panic!("{refused}"));
    assert!(
        !output[0].contents.contains("use thalweg::wire"),
        "{}",
        output[0].contents
    );
}

#[test]
fn streams_that_are_parameters() {
    let wit = "f: func(n: u8, s: stream<u64>, t: future<string>);\ng: func(s: stream);";
    let output = emit(wit).unwrap_or_else(|refused| panic!("{refused}"));
    let text = &output[0].contents;
    let contains = |wanted: &str| assert!(text.contains(wanted), "{wanted} in {text}");
    contains("n: u8,\n        s: port::Upstream<u64>,\n        t: port::UpstreamFuture<String>,");
    contains("|incoming, (n, s, t)| {");
    contains("let s = incoming.upstream(s)?;");
    contains("let t = port::UpstreamFuture::from(incoming.upstream(t)?);");
    contains("&(n, s, t.as_stream())");
    contains("s: port::Upstream<()>");
}

#[test]
fn streams_and_futures_inside_of_results() {
    let wit = "record feed { name: string, ticks: stream<u64>, last: option<future<string>> }\n\
               feeds: func() -> list<feed>;\nopen: async func() -> result<tuple<u8, future>, feed>;";
    let output = emit(wit).unwrap_or_else(|refused| panic!("{refused}"));
    let text = &output[0].contents;
    for line in [
        "    #[derive(Debug)]\n    pub struct Feed / FeedView<'a> {",
        "        pub ticks: port::Owned<port::StreamReader<u64>>\n            \
         as port::OwnedView<'a, port::StreamReader<u64>>\n            \
         => \"ticks\": \"stream<u64>\" @ 8;",
        "        pub last: Option<port::Owned<port::FutureReader<String>>>\n            \
         as Option<port::OwnedView<'a, port::FutureReader<String>>>\n            \
         => \"last\": \"option<future<string>>\" @ 12;",
        "fn feeds(&mut self, call: &port::Call) -> Vec<Feed>;",
        "port::Pending<(u8, port::Owned<port::FutureReader<()>>), Feed>",
        "-> port::Pending<Vec<Feed>> {",
        "    size 20, align 4, hash 0xcdcb_a69f_8ed9_29f6, impl Error\n}",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let docs = "/// Each stream in the result holds 8192 unread records; when it is full, the writer waits.";
    assert!(text.contains(docs), "{text}");
    let streams = text.matches(".with_stream(port::StreamOptions").count();
    assert_eq!(streams, 2, "{text}");
}

#[test]
fn adjacent_numbers_of_a_record_are_one_run() {
    let record = "type id = u32;\nrecord r { a: bool, b: u8, c: id, d: f64, e: char, f: s16 }";
    let output = emit(&format!("{record}\nf: func(r: r);")).unwrap_or_else(|refused| {
        panic!("{refused}");
    });
    let text = &output[0].contents;
    let fields = [
        "        pub a: bool => \"a\" @ 0;",
        "        pub b: u8 => \"b\" @ 1,",
        "        pub c: Id => \"c\" @ 4,",
        "        pub d: f64 => \"d\" @ 8;",
        "        pub e: char => \"e\" @ 16;",
        "        pub f: i16 => \"f\" @ 20;",
    ];
    assert!(text.contains(&fields.join("\n")), "{text}");
}

#[test]
fn list_parameter_of_a_client_accepts_any_list() {
    let wit = "type names = list<string>;\nf: func(n: names, numbers: list<u8>, o: option<names>);";
    let output = emit(wit).unwrap_or_else(|refused| panic!("{refused}"));
    let text = &output[0].contents;
    for part in [
        "n: impl wire::AsList<String>,",
        "numbers: &[u8],",
        "o: &dyn wire::Encode<As = Option<Names>>,",
        "&(n.as_list(), numbers, o)",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
