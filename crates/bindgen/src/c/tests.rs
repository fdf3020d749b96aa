//! Constructs that no WIT file of the repository has, and refused types.

use super::emit;
use crate::model::{Package, ResourceId, TypeDefKind, TypeKind};
use crate::parse_text;
use std::path::Path;

/// A package whose interface has these lines. The first one is line 3.
fn package(name: &str, lines: &str) -> Package {
    let wit = format!(
        "package thalweg:{name}@0.1.0;\ninterface {name} {{\n{lines}\n}}\nworld w {{ export {name}; }}\n"
    );
    parse_text(Path::new("test.wit"), &wit, "").unwrap_or_else(|refused| panic!("{refused}"))
}

fn header(name: &str, lines: &str) -> String {
    emit(&package(name, lines))
        .expect("all types have a form in C")
        .remove(0)
        .contents
}

/// The header with one space between words.
fn words(name: &str, lines: &str) -> String {
    let header = header(name, lines);
    header.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn refusal(package: &Package) -> (u32, String) {
    let refused = emit(package).expect_err("a type has no form in C");
    (refused.position.line, refused.construct)
}

#[test]
fn names_that_clash_get_underscores_in_a_fixed_order() {
    let lines = "record count-result { at: u32 }
        record client { %class: u32 }
        count: func(error: count-result, %new: client) -> u32;";
    let text = header("clash", lines);
    assert!(
        text.contains("typedef struct clash_client_ {\n  uint32_t class_;"),
        "{text}"
    );
    assert!(
        text.contains("typedef struct clash_count_result {\n  uint32_t at;"),
        "{text}"
    );
    assert!(
        text.contains("typedef struct clash_count_result_ {\n  tw_reply reply;"),
        "{text}"
    );
    assert!(text.contains("const clash_count_result *error_,"), "{text}");
    assert!(text.contains("const clash_client_ *new_,"), "{text}");
    assert_eq!(text, header("clash", lines));
}

/// The parser refuses it, too.
#[test]
fn borrow_inside_a_record_is_refused() {
    let mut package = package(
        "bad",
        "record holder { query: u32 }\nresource query;\nf: func();",
    );
    let TypeDefKind::Record(fields) = &mut package.types[0].kind else {
        panic!("it is a record")
    };
    fields[0].ty.kind = TypeKind::Borrow(ResourceId(0));
    assert_eq!(refusal(&package), (3, "type `borrow<query>`".to_owned()));
}

/// The parser refuses it, too.
#[test]
fn flags_without_members_are_refused() {
    let mut package = package("bad", "flags nothing { one }\nf: func();");
    package.types[0].kind = TypeDefKind::Flags(Vec::new());
    package.types[0].size = 0;
    assert_eq!(refusal(&package), (3, "type `nothing`".to_owned()));
}

#[test]
fn stream_or_future_inside_a_result_has_a_take_function() {
    let lines = "record line { text: string }
        record many { lines: stream<line>, last: option<future<u64>> }
        open: func() -> many;";
    let words = words("feed", lines);
    let contains = |wanted: &str| assert!(words.contains(wanted), "{wanted} in {words}");
    contains(
        "typedef struct feed_many { tw_handle_ref lines; feed_option_u64_future last; } feed_many;",
    );
    contains(
        "feed_line_stream_take(tw_reply *reply, tw_handle_ref ref, feed_line_stream *stream, ",
    );
    contains("feed_u64_future_take(tw_reply *reply, tw_handle_ref ref, feed_u64_future *stream, ");
    contains("tw_check_handle(checker, &value->lines) &&");
    // The accessors of its elements are written, too.
    contains("feed_line_text(");
}

#[test]
fn stream_or_future_without_elements_has_void_elements() {
    let lines = "ticks: func(until: future) -> stream;\nlater: func(stops: stream) -> future;";
    let words = words("tick", lines);
    let contains = |wanted: &str| assert!(words.contains(wanted), "{wanted} in {words}");
    contains("const void *tick_void_batch_at(const tick_void_batch *batch, uint32_t index)");
    contains(
        "tick_void_future_wait(const tick_void_future *future, uint64_t deadline_ns, tw_batch *batch, const void **value, ",
    );
    contains(
        "tick_void_stream_writer_send(const tick_void_stream_writer *stream, uint64_t deadline_ns, ",
    );
    contains("tick_void_future_writer_set(const tick_void_future_writer *future, tw_error *error)");
}

#[test]
fn enum_of_256_cases_has_no_check() {
    let labels = |count: u32| {
        let labels: Vec<_> = (0..count).map(|number| format!("c{number}")).collect();
        labels.join(", ")
    };
    let lines = format!(
        "enum full {{ {} }}\nenum most {{ {} }}\nget-full: func() -> full;\nget-most: func() -> most;",
        labels(256),
        labels(255)
    );
    let header = header("full", &lines);
    assert!(
        header.contains("return *(const uint8_t *)place < 255;"),
        "{header}"
    );
    assert!(!header.contains("< 256"), "{header}");
    assert!(
        header.contains("sizeof(result->ok), full_most_check);"),
        "{header}"
    );
    assert!(header.contains("sizeof(result->ok), NULL);"), "{header}");
}

#[test]
fn case_of_a_variant_is_written_and_checked_by_its_payload() {
    let lines = "variant figure { nothing, label(string) }\necho: func(figure: figure) -> figure;";
    let header = header("shape", lines);
    let write = "  case SHAPE_FIGURE_LABEL:\n    tw_put_text(writer, at + 4, value->value.label);";
    let check =
        "  case SHAPE_FIGURE_LABEL:\n    return tw_check_text(checker, &value->value.label);";
    assert!(header.contains(write), "{header}");
    assert!(header.contains(check), "{header}");
    assert!(header.contains("    return value->tag < 2;"), "{header}");
}

#[test]
fn stream_parameter_has_a_stream_writer() {
    let lines = "record line { text: string, number: u64 }
        take: func(lines: stream<line>, until: future<u64>);";
    let header = words("up", lines);
    let contains = |wanted: &str| assert!(header.contains(wanted), "{wanted} in {header}");
    contains(
        "up_take(const up_client *client, up_line_stream_writer *lines, up_u64_future_writer *until, ",
    );
    contains(
        "static inline uint32_t up_line_stream_writer_send(const up_line_stream_writer *stream, const up_line_in *element, uint64_t deadline_ns",
    );
    contains("tw_writer_begin(&writer, UINT64_C(0x");
    contains(
        "static inline uint32_t up_u64_future_writer_set(const up_u64_future_writer *future, uint64_t element, tw_error *error)",
    );
    contains("tw_stream_writer_open(&client->tw, UP_METHOD_TAKE, 1, &stream->tw, error)");
    contains("tw_request_put_stream(request, root, lines ? &lines->tw : NULL);");
    contains("tw_request_put_stream(request, root + 4, until ? &until->tw : NULL);");
}

/// The header of a guest with one space between words.
fn guest_words(name: &str, lines: &str) -> String {
    let header = super::emit_guest(&package(name, lines)).expect("a guest in C can have all of it");
    let header = &header[0].contents;
    header.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn members_of_a_guest_do_not_clash_with_its_own_functions() {
    let text = guest_words(
        "clash",
        "resource cell { drop: func(); } close: func(); %context: func(core: u8) -> string;",
    );
    for member in [
        "void (*cell_drop_)(void *state, const tw_incoming *call, void *self);",
        "void (*cell_drop)(void *state, void *object);",
        "void (*close_)(void *state, const tw_incoming *call);",
        "void (*context_)(void *state, const tw_incoming *call, uint8_t core);",
    ] {
        assert!(text.contains(member), "{member}: {text}");
    }
}

#[test]
fn guest_reads_arguments_in_place_and_writes_results_with_pointers() {
    let text = guest_words(
        "sides",
        "record pair { name: string, size: u8 } swap: func(pair: pair) -> result<pair, string>;",
    );
    for part in [
        "void (*swap)(void *state, const tw_incoming *call, const sides_pair *pair);",
        "sides_swap_answer(const tw_incoming *call, const sides_pair_in *value, tw_error *error)",
        "sides_swap_fail(const tw_incoming *call, tw_text value, tw_error *error)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn guest_has_the_type_that_only_a_stream_parameter_has() {
    let text = guest_words(
        "up",
        "record line { text: string } take: async func(lines: stream<line>);",
    );
    for part in [
        "} up_line; ",
        "static inline tw_text up_line_text(const uint8_t *base, const up_line *value)",
        "uint64_t deadline_ns, const up_line **element, tw_error *error)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn guest_counts_the_resources_in_a_result() {
    let text = guest_words(
        "p",
        "resource dog { constructor(); }
    record pair { left: dog, right: option<dog> }
    dogs: func() -> list<dog>;
    two: func() -> pair;",
    );
    for wanted in [
        "tw_writer_begin(&writer, p_methods[1].ok, p_list_dog_count_handles(value), 8);",
        "tw_writer_begin(&writer, p_methods[2].ok, value ? p_pair_count_handles(value) : 0, 12);",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
}

#[test]
fn guest_reads_streams_that_are_parameters() {
    let text = guest_words("reads", "sum: func(numbers: stream<u8>) -> u64;");
    let part = "void (*sum)(void *state, const tw_incoming *call, reads_u8_stream_reader numbers);";
    assert!(text.contains(part), "{part}: {text}");
}

#[test]
fn functions_that_a_guest_cannot_have_are_refused() {
    let mut package = package("not-yet", "a: func(); b: func();");
    package.functions[1].options.is_inline = true;
    let refused = super::emit_guest(&package).expect_err("it has an inline method");
    assert_eq!(refused.position.line, 3);
    assert_eq!(refused.construct, "function `not-yet.b`");
}
