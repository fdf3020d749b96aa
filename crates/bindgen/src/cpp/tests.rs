//! Tests of the emitted header that need no compiler.

use std::fs;

use super::{emit, emit_guest};
use crate::model::Package;
use crate::{Output, SourceError, parse};

fn package(wit: &str) -> Package {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("p.wit");
    fs::write(&path, wit).expect("a file can be written");
    parse(&path).unwrap_or_else(|refused| panic!("{refused}"))
}

/// The words of the one file.
fn words(outputs: Result<Vec<Output>, SourceError>) -> String {
    let outputs = outputs.unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!(outputs.len(), 1);
    // Long lines are broken.
    let words: Vec<_> = outputs[0].contents.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn functions_that_a_guest_cannot_have_are_refused() {
    let package = package(
        "package a:p@0.1.0;
interface i {
    record feed { numbers: stream<u8> }
    a: func(numbers: stream<u8>);
    b: func() -> result<list<feed>, string>;
}
world w { export i; }
",
    );
    let refused = emit_guest(&package).expect_err("streams inside of a result");
    assert_eq!(refused.position.line, 5);
    assert_eq!(refused.construct, "function `i.b`");
    assert!(refused.reason.contains("inside of other"), "{refused}");
}

fn header(wit: &str) -> String {
    words(emit(&package(wit)))
}

#[test]
fn package_named_like_a_function_of_the_c_library_gets_an_underscore() {
    let text = header("package a:time@0.1.0;\ninterface i { f: func(); }\nworld w { export i; }\n");
    assert!(text.contains(" namespace time_ {"), "{text}");
}

#[test]
fn names_that_collide_in_cpp_get_an_underscore() {
    let text = header(
        "package a:p@0.1.0;
interface i {
    record client { client: u8, class: u8 }
    variant value { value(u8), other }
    resource dog { constructor(); close: func(); }
    open: func(run-options: u8) -> client;
}
world w { export i; }
",
    );
    for wanted in [
        "struct client_ {",
        "std::uint8_t client{};",
        "std::uint8_t class_{};",
        "struct value_ {",
        " struct value__ {",
        " close_(",
        " open_(std::uint8_t run_options_, ",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
}

#[test]
fn record_has_a_codec_with_its_offsets() {
    let text = header(
        "package a:p@0.1.0;\ninterface i { record r { a: u8, b: string } f: func(r: r) -> r; }\nworld w { export i; }\n",
    );
    let codec =
        "thalweg::detail::record_codec<::p::r, 12, 4, thalweg::detail::field<&::p::r::a, 0>,";
    assert!(text.contains(codec), "{text}");
    assert!(
        text.contains("thalweg::detail::field<&::p::r::b, 4>>"),
        "{text}"
    );
}

#[test]
fn functions_of_a_guest_do_not_clash_with_those_of_its_classes() {
    let text = words(emit_guest(&package(
        "package a:p@0.1.0;
interface i {
    record service { a: u8 }
    resource dog { constructor(); close: func(); }
    cancelled: func(call: u8);
    load: async func(dog: borrow<dog>) -> service;
}
world w { export i; }
",
    )));
    for wanted in [
        "struct service_ {",
        "virtual void close(thalweg::incoming<methods::dog_close> &call) = 0;",
        "virtual void cancelled_(thalweg::incoming<methods::cancelled> &call, std::uint8_t call_) = 0;",
        "virtual thalweg::task<> load_(thalweg::incoming<methods::load> &call, const \
         std::shared_ptr<::p::dog> &dog) = 0;",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
}

#[test]
fn guest_has_shares_of_the_objects_inside_of_values() {
    let text = words(emit_guest(&package(
        "package a:p@0.1.0;
interface i {
    resource dog { constructor(); }
    record pack { name: string, all: list<dog> }
    meet: func(pack: pack, guard: borrow<dog>) -> result<pack, dog>;
}
world w { export i; }
",
    )));
    for wanted in [
        "struct thalweg::codec<std::shared_ptr<::p::dog>> : thalweg::detail::object_codec<::p::dog, 0> {};",
        "std::vector<std::shared_ptr<::p::dog>> all{};",
        "thalweg::parameters<thalweg::parameter<::p::pack, 0>, thalweg::borrowed_parameter<::p::dog, 0, 16>>, \
         ::p::pack, std::shared_ptr<::p::dog>> {};",
        "virtual void meet(thalweg::incoming<methods::meet> &call, const ::p::pack &pack, \
         const std::shared_ptr<::p::dog> &guard) = 0;",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
}

#[test]
fn guest_reads_streams_and_calls_its_host() {
    let text = words(emit_guest(&package(
        "package a:p@0.1.0;
interface i {
    record host { a: u8 }
    f: func(names: stream<string>, done: future) -> host;
}
interface h {
    call: func(host: u8, words: list<string>) -> result<string, u32>;
    host: func();
}
world w { import h; export i; }
",
    )));
    for wanted in [
        "struct host_ {",
        "virtual void f(thalweg::incoming<methods::f> &call, thalweg::stream_reader<thalweg::text> &names, \
         thalweg::future_reader<thalweg::none> &done) = 0;",
        "class host : public thalweg::host_of_call {",
        "thalweg::import_result<imports::call> call_(std::uint8_t host, \
         const thalweg::list<thalweg::text> &words) const { return call<imports::call>(host, words); }",
        "thalweg::import_result<imports::host> host_() const { return call<imports::host>(); }",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
}

#[test]
fn guest_has_no_types_that_its_functions_cannot_use() {
    let text = words(emit_guest(&package(
        "package a:p@0.1.0;
interface i {
    record feeding { numbers: stream<u8> }
    record food { name: string }
    feed: func(food: food);
}
world w { export i; }
",
    )));
    assert!(text.contains("struct food {"), "{text}");
    assert!(!text.contains("struct feeding {"), "{text}");
}
