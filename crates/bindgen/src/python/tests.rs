//! Errors of the emitter, and output for constructs that the packages of the repository do not
//! have.

use std::path::{Path, PathBuf};

use super::emit;
use crate::hash::fnv1a;
use crate::model::{Package, ResourceId, TypeDefKind, TypeKind};
use crate::parse_text;

/// A package whose interface has these lines. The first one is line 3.
fn package(lines: &str) -> Package {
    let wit = format!(
        "package a:b-c@1.2.3;\ninterface thing {{\n{lines}\n}}\nworld w {{ export thing; }}\n"
    );
    parse_text(Path::new("a.wit"), &wit, "").unwrap_or_else(|refused| panic!("{refused}"))
}

fn file(package: &Package, name: &str) -> String {
    let outputs = emit(package).expect("nothing in it is refused");
    let path = PathBuf::from("a_b_c").join(name);
    let output = outputs.into_iter().find(|output| output.path == path);
    output.expect("a file of that name").contents
}

#[test]
fn stream_or_future_in_a_result_is_an_owned_handle() {
    let record = "record feed { words: stream<string>, stops: future }";
    let package = package(&format!("{record}\nf: func() -> list<feed>;"));
    let types = file(&package, "types.py");
    assert!(
        types.contains("    words: thalweg.OwnedStream[str, str]\n"),
        "{types}"
    );
    assert!(
        types.contains("    stops: thalweg.OwnedFuture[None]\n"),
        "{types}"
    );
    let layout = file(&package, "_layout.py");
    let text = fnv1a("string");
    let words = format!("layout.stream_of(layout.STRING, 0x{text:016X})");
    assert!(layout.contains(&words), "{layout}");
    for face in ["client.py", "aio.py"] {
        let face = file(&package, face);
        assert!(face.contains("-> list[Feed]:"), "{face}");
    }
}

#[test]
fn streams_and_futures_are_parameters_with_their_elements_layouts() {
    let params = "words: stream<string>, beats: stream, last: future<string>";
    let package = package(&format!("f: func({params}) -> stream;"));
    let methods = file(&package, "_methods.py");
    let (text, nothing) = (fnv1a("string"), fnv1a("_"));
    for expected in [
        format!("layout.stream_of(layout.STRING, 0x{text:016X})"),
        format!("layout.stream_of(layout.NOTHING, 0x{nothing:016X})"),
        format!("layout.future_of(layout.STRING, 0x{text:016X})"),
        "    layout.NOTHING,\n    None,\n)".to_owned(),
    ] {
        assert!(methods.contains(&expected), "{expected} in {methods}");
    }
    let sync = file(&package, "client.py");
    assert!(
        sync.contains("from collections.abc import Iterable\n"),
        "{sync}"
    );
    assert!(sync.contains("words: Iterable[str],"), "{sync}");
    assert!(sync.contains("last: thalweg.NoValue | str,"), "{sync}");
    assert!(sync.contains("-> thalweg.Stream[None, None]:"), "{sync}");
    let aio = file(&package, "aio.py");
    let many = "beats: AsyncIterable[None] | Iterable[None],";
    assert!(aio.contains(many), "{aio}");
    let last = "last: Awaitable[thalweg.NoValue | str] | thalweg.NoValue | str,";
    assert!(aio.contains(last), "{aio}");
}

/// The parser refuses it, too.
#[test]
fn a_borrowed_resource_inside_a_record_is_refused() {
    let mut package = package("record holder { r: u32 }\nresource query;\nf: func();");
    let TypeDefKind::Record(fields) = &mut package.types[0].kind else {
        panic!("it is a record")
    };
    fields[0].ty.kind = TypeKind::Borrow(ResourceId(0));
    let refused = emit(&package).expect_err("it is refused").to_string();
    let expected = "a.wit:3:8: type `borrow<query>`: a borrowed resource can only be a parameter";
    assert!(refused.starts_with(expected), "{refused}");
}

#[test]
fn an_error_that_is_no_variant_is_wrapped_in_an_exception() {
    let package = package("enum code { missing, io-error }\nf: func() -> result<_, code>;");
    let types = file(&package, "types.py");
    assert!(types.contains("class Code(enum.Enum):"), "{types}");
    assert!(types.contains("    IO_ERROR = \"io-error\"\n"), "{types}");
    assert!(
        types.contains("class CodeException(thalweg.ServiceError):"),
        "{types}"
    );
    assert!(types.contains("    payload: Code\n"), "{types}");
    let methods = file(&package, "_methods.py");
    assert!(
        methods.contains("    None,\n    _layout.CODE,\n    CodeException,\n)"),
        "{methods}"
    );
    assert!(file(&package, "client.py").contains("Raises `CodeException`."));
}

#[test]
fn a_union_that_is_too_long_for_a_line_is_wrapped() {
    let cases = ["first", "second", "third", "fourth"];
    let cases = cases.map(|name| format!("the-{name}-of-them(string)"));
    let package = package(&format!(
        "variant choice {{ {} }}\nf: func();",
        cases.join(", ")
    ));
    let types = file(&package, "types.py");
    let expected = "Choice: TypeAlias = (\n    ChoiceTheFirstOfThem\n    | ChoiceTheSecondOfThem\n    \
                    | ChoiceTheThirdOfThem\n    | ChoiceTheFourthOfThem\n)\n";
    assert!(types.contains(expected), "{types}");
}

#[test]
fn documentation_with_quotes_and_backslashes_is_escaped() {
    let mut package = package("f: func();");
    for (docs, expected) in [
        ("Says \"no\"", "        \"\"\"Says \"no\" \"\"\"\n"),
        ("A \\d pattern", "        r\"\"\"A \\d pattern\"\"\"\n"),
        (
            "Three \"\"\" of them",
            "        \"\"\"Three ''' of them\"\"\"\n",
        ),
        (
            "First.\n\nSecond.  ",
            "        \"\"\"First.\n\n        Second.\n        \"\"\"\n",
        ),
    ] {
        package.functions[0].docs = docs.into();
        let client = file(&package, "client.py");
        assert!(client.contains(expected), "{client}");
    }
}

#[test]
fn names_that_collide_stay_distinct() {
    let package = package("record a-b { x: string }\nvariant a { b }\nf: func();");
    let types = file(&package, "types.py");
    assert!(types.contains("class AB:"), "{types}");
    assert!(types.contains("class AB_:"), "{types}");
    assert!(types.contains("A: TypeAlias = AB_\n"), "{types}");
}

#[test]
fn package_without_types_has_no_types_or_views_file() {
    let package = package("f: func();");
    let names: Vec<_> = emit(&package)
        .expect("nothing in it is refused")
        .into_iter()
        .map(|output| output.path)
        .collect();
    assert!(
        !names
            .iter()
            .any(|path| path.ends_with("types.py") || path.ends_with("views.py"))
    );
    assert!(names.iter().any(|path| path.ends_with("py.typed")));
    assert_eq!(emit(&package), emit(&package));
}

#[test]
fn function_with_notices_has_an_on_notice_parameter() {
    let mut package = package("long: func(on-notice: string);\nshort: func();");
    package.functions[0].options.notice_interval_ns = 250_000_000;
    for (name, call) in [("client.py", "call"), ("aio.py", "start")] {
        let text = file(&package, name);
        for expected in [
            "from collections.abc import Callable\n".to_owned(),
            "        on_notice: Callable[[float], object] | None = None,\n".to_owned(),
            "`on_notice` is called every 0.25 s during".to_owned(),
            format!("_methods.LONG.{call}(self, timeout, on_notice_, on_notice=on_notice)"),
            format!("_methods.SHORT.{call}(self, timeout)"),
        ] {
            assert!(text.contains(&expected), "{expected} in {text}");
        }
    }
}

#[test]
fn a_result_that_is_too_long_for_a_line_is_wrapped() {
    let package = package("f: func() -> stream<result<string, string>>;");
    let text = file(&package, "client.py");
    let expected = "    ) -> thalweg.Stream[
        thalweg.Ok[str] | thalweg.Err[str],
        thalweg.Ok[str] | thalweg.Err[str],
    ]:
";
    assert!(text.contains(expected), "{text}");
}
