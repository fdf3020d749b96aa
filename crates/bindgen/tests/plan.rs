//! The plan that the back ends read: types, layouts, directions, names and refusals.

use std::path::Path;

use thalweg_bindgen::model::Package;
use thalweg_bindgen::parse_text;
use thalweg_bindgen::plan::names::{Case, Scope, Style};
use thalweg_bindgen::plan::{Handle, Kind, ParameterKind, Plan, ResultKind, Type, Usage};

/// A package whose interface has these lines, and whose host has an interface with `imports`.
fn package(lines: &str, imports: &str) -> Package {
    let wit = format!(
        "package a:b@0.1.0;\ninterface h {{\n{imports}\n}}\ninterface i {{\n{lines}\n}}\n\
         world w {{ import h; export i; }}\n"
    );
    parse_text(Path::new("b.wit"), &wit, "").unwrap_or_else(|refused| panic!("{refused}"))
}

const IMPORTS: &str = "look-up: func(key: u64) -> string;";

fn find<'p>(plan: &'p Plan<'_>, wit: &str) -> &'p Type<'p> {
    let mut found = plan.types.iter().filter(|ty| ty.wit == wit);
    let ty = found.next().unwrap_or_else(|| panic!("no type {wit}"));
    assert!(found.next().is_none(), "{wit} has one entry");
    ty
}

#[test]
fn type_without_a_name_has_one_entry_however_often_it_is_used() {
    let lines = "type names = list<string>; record r { a: list<string>, b: names, c: list<names> }
        f: func(r: r, n: names) -> option<list<string>>;";
    let package = package(lines, IMPORTS);
    let plan = Plan::new(&package);
    assert_eq!(find(&plan, "list<string>").stem, "list-string");
    assert_eq!(find(&plan, "list<list<string>>").stem, "list-list-string");
    let (alias, record) = (plan.named[0], plan.named[1]);
    let Kind::Record(members) = &plan.get(record).kind else {
        panic!("it is a record")
    };
    assert_eq!((members[0].ty, members[1].ty), (alias, alias));
    assert!(plan.get(alias).id.is_none());
}

#[test]
fn layout_has_the_offsets_of_options_results_tuples_and_variants() {
    let lines = "variant v { a(u64), b }
        f: func(o: option<u16>, r: result<u8, u32>, t: tuple<u8, u64, u16>, v: v);";
    let package = package(lines, IMPORTS);
    let plan = Plan::new(&package);
    let Kind::Option { payload_offset, .. } = find(&plan, "option<u16>").kind else {
        panic!("it is an option")
    };
    assert_eq!(payload_offset, 2);
    let Kind::Variant {
        payload_offset,
        tag_size,
        ..
    } = find(&plan, "result<u8, u32>").kind
    else {
        panic!("it is a result")
    };
    assert_eq!((tag_size, payload_offset), (1, 4));
    let tuple = find(&plan, "tuple<u8, u64, u16>");
    let Kind::Record(parts) = &tuple.kind else {
        panic!("it is a tuple")
    };
    let offsets: Vec<_> = parts.iter().map(|part| part.offset).collect();
    assert_eq!((offsets, tuple.size, tuple.align), (vec![0, 8, 16], 24, 8));
    let Kind::Variant { payload_offset, .. } = find(&plan, "v").kind else {
        panic!("it is a variant")
    };
    assert_eq!(payload_offset, 8);
    let offsets = plan.functions[0].parameters.iter();
    let offsets: Vec<_> = offsets.map(|parameter| parameter.offset).collect();
    assert_eq!(offsets, [0, 4, 16, 40]);
}

#[test]
fn directions_are_those_of_the_caller() {
    let lines = "record sent { a: u8 } record got { a: u8 } record failed { a: u8 }
        record event { a: u8 } record later { a: u8 } record up { a: u8 } record unused { a: inner }
        record inner { a: u8 }
        f: func(s: list<sent>) -> result<option<got>, failed>;
        g: func(s: stream<up>) -> stream<event>;
        h: func() -> future<later>;";
    let imports = "record asked { a: string } record answered { a: u8 }
        ask: func(a: asked) -> answered;";
    let package = package(lines, imports);
    let plan = Plan::new(&package);
    let usage = |name: &str| find(&plan, name).usage;
    let none = Usage::default();
    let input = Usage {
        is_input: true,
        ..none
    };
    let output = Usage {
        is_output: true,
        ..none
    };
    let checked = Usage {
        is_checked: true,
        ..output
    };
    assert_eq!(usage("sent"), input);
    assert_eq!(usage("got"), checked);
    let raised = Usage {
        is_raised: true,
        ..checked
    };
    assert_eq!(usage("failed"), raised);
    let streamed = Usage {
        is_streamed: true,
        ..output
    };
    assert_eq!(usage("event"), streamed);
    assert_eq!(usage("later"), output);
    assert_eq!(usage("up"), input);
    assert_eq!((usage("unused"), usage("inner")), (output, output));
    assert_eq!((usage("asked"), usage("answered")), (checked, input));
}

#[test]
fn parameters_and_results_that_are_no_values_refer_to_resources_and_streams() {
    let lines = "resource r { constructor(); m: func(by: borrow<r>) -> r; }
        f: func(r: r, s: stream<u64>) -> stream<u64>;
        g: func(s: future<u64>, t: stream<u64>) -> list<r>;";
    let package = package(lines, IMPORTS);
    let plan = Plan::new(&package);
    let named = |name: &str| {
        let mut all = plan.functions.iter();
        all.find(|function| function.function.name == name)
            .expect("a function")
    };
    assert!(matches!(named("m").ok, ResultKind::Resource(id) if id.0 == 0));
    let borrowed = named("m").parameters[1].kind;
    assert!(matches!(
        borrowed,
        ParameterKind::Resource { is_own: false, .. }
    ));
    let f = named("f");
    let owned = f.parameters[0].kind;
    assert!(matches!(
        owned,
        ParameterKind::Resource { is_own: true, .. }
    ));
    assert_eq!(f.parameters[1].kind, ParameterKind::Stream(0));
    assert_eq!(f.ok, ResultKind::Stream(0));
    let streams = named("g").parameters.iter().map(|parameter| parameter.kind);
    let streams: Vec<_> = streams.collect();
    assert_eq!(
        streams,
        [ParameterKind::Stream(1), ParameterKind::Stream(0)]
    );
    assert_eq!((plan.streams.len(), plan.upstreams.len()), (1, 2));
    let list = find(&plan, "list<r>");
    assert!(list.has_handles && !list.is_plain && !list.is_trivial);
    assert!(matches!(
        find(&plan, "r").kind,
        Kind::Handle(Handle::Own(_))
    ));
}

#[test]
fn name_is_in_the_case_of_its_kind_and_unique_in_its_scope() {
    let cases = [Case::Snake, Case::Camel, Case::Pascal, Case::Constant];
    let names = cases.map(|case| case.of("HTTP-status-code"));
    let expected = [
        "http_status_code",
        "httpStatusCode",
        "HttpStatusCode",
        "HTTP_STATUS_CODE",
    ];
    assert_eq!(names, expected);
    const FIELD: Style = Style {
        case: Case::Camel,
        reserved: &["class\nawait", "toString"],
    };
    let names = ["class", "await", "to-string", "to-strings"].map(|name| FIELD.of(name));
    assert_eq!(names, ["class_", "await_", "toString_", "toStrings"]);
    let mut scope = Scope::default();
    let names = ["a", "a_", "a", "a"].map(|name| scope.claim(name));
    assert_eq!(names, ["a", "a_", "a__", "a___"]);
}
