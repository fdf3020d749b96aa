//! Errors of the emitter, and output for constructs that the packages of the repository do not
//! have.

use std::path::PathBuf;

use super::emit;
use crate::SourceError;
use crate::hash::fnv1a;
use crate::model::{
    Case, Field, Function, FunctionKind, FunctionOptions, Hashes, Label, Limits, Package, Position,
    Type, TypeDef, TypeDefKind, TypeId, TypeKind,
};

fn ty(kind: TypeKind, size: u32, align: u32) -> Type {
    Type { kind, size, align }
}

fn string() -> Type {
    ty(TypeKind::String, 8, 4)
}

fn field(name: &str, ty: Type) -> Field {
    Field {
        name: name.into(),
        docs: String::new(),
        ty,
        offset: 0,
    }
}

fn position() -> Position {
    Position {
        file: PathBuf::from("a.wit"),
        line: 3,
        column: 5,
    }
}

fn def(name: &str, kind: TypeDefKind) -> TypeDef {
    TypeDef {
        name: name.into(),
        docs: String::new(),
        kind,
        size: 8,
        align: 4,
        hash: 1,
        position: position(),
    }
}

fn function(name: &str, params: Vec<Field>, ok: Option<Type>) -> Function {
    Function {
        name: name.into(),
        full_name: format!("thing.{name}"),
        docs: String::new(),
        kind: FunctionKind::Free,
        is_async: false,
        params,
        params_layout: (8, 4),
        ok,
        error: None,
        hashes: Hashes::default(),
        options: FunctionOptions::default(),
        stream: None,
        position: position(),
    }
}

fn package(types: Vec<TypeDef>, functions: Vec<Function>) -> Package {
    Package {
        namespace: "a".into(),
        name: "b-c".into(),
        version: "1.2.3".into(),
        interface: "thing".into(),
        docs: String::new(),
        types,
        resources: Vec::new(),
        functions,
        host: None,
        limits: Limits::default(),
        closed: Vec::new(),
        layout: 0xabc,
    }
}

fn file(package: &Package, name: &str) -> String {
    let outputs = emit(package).expect("nothing in it is refused");
    let path = PathBuf::from("a_b_c").join(name);
    let output = outputs.into_iter().find(|output| output.path == path);
    output.expect("a file of that name").contents
}

fn refusal(types: Vec<TypeDef>, functions: Vec<Function>) -> SourceError {
    emit(&package(types, functions)).expect_err("it is refused")
}

#[test]
fn stream_or_future_in_a_result_is_an_owned_handle() {
    let stream = ty(TypeKind::Stream(Some(Box::new(string()))), 4, 4);
    let future = ty(TypeKind::Future(None), 4, 4);
    let record = TypeDefKind::Record(vec![field("words", stream), field("stops", future)]);
    let feed = ty(TypeKind::Named(TypeId(0)), 8, 4);
    let list = ty(TypeKind::List(Box::new(feed)), 8, 4);
    let package = package(
        vec![def("feed", record)],
        vec![function("f", vec![], Some(list))],
    );
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
    let carrying = |kind: fn(Option<Box<Type>>) -> TypeKind, element: Option<Type>| {
        ty(kind(element.map(Box::new)), 4, 4)
    };
    let params = vec![
        field("words", carrying(TypeKind::Stream, Some(string()))),
        field("beats", carrying(TypeKind::Stream, None)),
        field("last", carrying(TypeKind::Future, Some(string()))),
    ];
    let beats = carrying(TypeKind::Stream, None);
    let package = package(vec![], vec![function("f", params, Some(beats))]);
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

#[test]
fn a_borrowed_resource_inside_a_record_is_refused() {
    let own = ty(TypeKind::Borrow(crate::model::ResourceId(0)), 4, 4);
    let record = TypeDefKind::Record(vec![field("r", own)]);
    let refused = refusal(vec![def("holder", record)], vec![]);
    assert!(
        refused
            .construct
            .contains("borrowed resource inside a value"),
        "{refused}"
    );
}

#[test]
fn an_error_that_is_no_variant_is_wrapped_in_an_exception() {
    let labels = ["missing", "io-error"].map(|name| Label {
        name: name.into(),
        docs: String::new(),
    });
    let mut fails = function("f", vec![], None);
    fails.error = Some(Some(ty(TypeKind::Named(TypeId(0)), 1, 1)));
    let package = package(
        vec![def("code", TypeDefKind::Enum(labels.into()))],
        vec![fails],
    );
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
    let cases = ["first", "second", "third", "fourth"].map(|name| Case {
        name: format!("the-{name}-of-them"),
        docs: String::new(),
        payload: Some(string()),
    });
    let variant = TypeDefKind::Variant {
        cases: cases.into(),
        tag_size: 1,
        payload_offset: 4,
    };
    let types = file(&package(vec![def("choice", variant)], vec![]), "types.py");
    let expected = "Choice: TypeAlias = (\n    ChoiceTheFirstOfThem\n    | ChoiceTheSecondOfThem\n    \
                    | ChoiceTheThirdOfThem\n    | ChoiceTheFourthOfThem\n)\n";
    assert!(types.contains(expected), "{types}");
}

#[test]
fn documentation_with_quotes_and_backslashes_is_escaped() {
    let mut says = function("f", vec![], None);
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
        says.docs = docs.into();
        let client = file(&package(vec![], vec![says.clone()]), "client.py");
        assert!(client.contains(expected), "{client}");
    }
}

#[test]
fn names_that_collide_stay_distinct() {
    let empty = || TypeDefKind::Record(vec![field("x", string())]);
    let cases = vec![Case {
        name: "b".into(),
        docs: String::new(),
        payload: None,
    }];
    let variant = TypeDefKind::Variant {
        cases,
        tag_size: 1,
        payload_offset: 1,
    };
    let package = package(vec![def("a-b", empty()), def("a", variant)], vec![]);
    let types = file(&package, "types.py");
    assert!(types.contains("class AB:"), "{types}");
    assert!(types.contains("class AB_:"), "{types}");
    assert!(types.contains("A: TypeAlias = AB_\n"), "{types}");
}

#[test]
fn package_without_types_has_no_types_or_views_file() {
    let package = package(vec![], vec![function("f", vec![], None)]);
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
    let mut long = function("long", vec![field("on-notice", string())], None);
    long.options.notice_interval_ns = 250_000_000;
    let package = package(vec![], vec![long, function("short", vec![], None)]);
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
    let long = ty(
        TypeKind::Result {
            ok: Some(Box::new(string())),
            error: Some(Box::new(string())),
        },
        12,
        4,
    );
    let stream = ty(TypeKind::Stream(Some(Box::new(long))), 4, 4);
    let package = package(vec![], vec![function("f", vec![], Some(stream))]);
    let text = file(&package, "client.py");
    let expected = "    ) -> thalweg.Stream[
        thalweg.Ok[str] | thalweg.Err[str],
        thalweg.Ok[str] | thalweg.Err[str],
    ]:
";
    assert!(text.contains(expected), "{text}");
}
