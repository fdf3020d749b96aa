//! Tests with packages built by hand: constructs that no WIT file here has, and refused types.

use super::emit;
use crate::model::{
    Case, Field, Function, FunctionKind, FunctionOptions, Hashes, Label, Limits, Package, Position,
    Resource, ResourceId, Type, TypeDef, TypeDefKind, TypeId, TypeKind,
};

fn position(line: u32) -> Position {
    Position {
        file: "test.wit".into(),
        line,
        column: 1,
    }
}

/// A package under construction. It computes the layouts.
struct Builder(Package);

impl Builder {
    fn new(name: &str) -> Self {
        Builder(Package {
            namespace: "thalweg".to_owned(),
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            interface: name.to_owned(),
            docs: String::new(),
            types: Vec::new(),
            resources: Vec::new(),
            functions: Vec::new(),
            host: None,
            limits: Limits::default(),
            closed: Vec::new(),
            layout: 7,
        })
    }

    /// A type with its canonical size and alignment.
    fn ty(&self, kind: TypeKind) -> Type {
        let variant = |payloads: &[Option<Box<Type>>]| {
            let payloads = || payloads.iter().flatten();
            let align = payloads().map(|ty| ty.align).max().unwrap_or(1);
            let size = payloads().map(|ty| ty.size).max().unwrap_or(0);
            ((align + size).next_multiple_of(align), align)
        };
        let (size, align) = match &kind {
            TypeKind::Bool | TypeKind::U8 | TypeKind::S8 => (1, 1),
            TypeKind::U16 | TypeKind::S16 => (2, 2),
            TypeKind::U64 | TypeKind::S64 | TypeKind::F64 => (8, 8),
            TypeKind::String | TypeKind::List(_) => (8, 4),
            TypeKind::Option(value) => variant(&[Some(value.clone())]),
            TypeKind::Result { ok, error } => {
                let (size, align) = variant(&[ok.clone(), error.clone()]);
                if ok.is_none() && error.is_none() {
                    (1, 1)
                } else {
                    (size, align)
                }
            }
            TypeKind::Tuple(types) => self.record(types),
            TypeKind::Named(id) => (self.0.types[id.0].size, self.0.types[id.0].align),
            _ => (4, 4),
        };
        Type { kind, size, align }
    }

    fn record(&self, types: &[Type]) -> (u32, u32) {
        let align = types.iter().map(|ty| ty.align).max().unwrap_or(1);
        let end = types
            .iter()
            .fold(0u32, |end, ty| end.next_multiple_of(ty.align) + ty.size);
        (end.next_multiple_of(align), align)
    }

    fn fields(&self, fields: Vec<(&str, Type)>) -> (Vec<Field>, (u32, u32)) {
        let types: Vec<_> = fields.iter().map(|(_, ty)| ty.clone()).collect();
        let mut end = 0u32;
        let fields = fields.into_iter().map(|(name, ty)| {
            let offset = end.next_multiple_of(ty.align);
            end = offset + ty.size;
            Field {
                name: name.to_owned(),
                docs: String::new(),
                ty,
                offset,
            }
        });
        (fields.collect(), self.record(&types))
    }

    fn define(&mut self, name: &str, kind: TypeDefKind, size: u32, align: u32) -> Type {
        self.0.types.push(TypeDef {
            name: name.to_owned(),
            docs: String::new(),
            kind,
            size,
            align,
            hash: 1,
            position: position(self.0.types.len() as u32 + 1),
        });
        self.ty(TypeKind::Named(TypeId(self.0.types.len() - 1)))
    }

    fn define_record(&mut self, name: &str, fields: Vec<(&str, Type)>) -> Type {
        let (fields, (size, align)) = self.fields(fields);
        self.define(name, TypeDefKind::Record(fields), size, align)
    }

    fn function(
        &mut self,
        name: &str,
        params: Vec<(&str, Type)>,
        ok: Option<Type>,
    ) -> &mut Function {
        let (params, params_layout) = self.fields(params);
        self.0.functions.push(Function {
            name: name.to_owned(),
            full_name: format!("{}.{name}", self.0.interface),
            docs: String::new(),
            kind: FunctionKind::Free,
            is_async: false,
            params,
            params_layout,
            ok,
            error: None,
            hashes: Hashes {
                params: 1,
                ok: 2,
                error: 3,
                element: 4,
            },
            options: FunctionOptions::default(),
            stream: None,
            position: position(100),
        });
        self.0.functions.last_mut().expect("just pushed")
    }

    fn header(&self) -> String {
        emit(&self.0)
            .expect("all types have a form in C")
            .remove(0)
            .contents
    }

    fn refusal(&self) -> (u32, String) {
        let refused = emit(&self.0).expect_err("a type has no form in C");
        (refused.position.line, refused.construct)
    }
}

#[test]
fn names_that_clash_get_underscores_in_a_fixed_order() {
    let mut builder = Builder::new("clash");
    let number = builder.ty(TypeKind::U32);
    let count = builder.define_record("count", vec![("at", number.clone())]);
    let client = builder.define_record("client", vec![("class", number.clone())]);
    builder.function(
        "count",
        vec![("error", count), ("new", client)],
        Some(number),
    );
    let header = builder.header();
    assert!(
        header.contains("typedef struct clash_client_ {\n  uint32_t class_;"),
        "{header}"
    );
    assert!(header.contains("typedef struct clash_count {"), "{header}");
    assert!(
        header.contains("static inline uint32_t clash_count_("),
        "{header}"
    );
    assert!(header.contains("const clash_count *error_,"), "{header}");
    assert!(header.contains("const clash_client_ *new_,"), "{header}");
    assert_eq!(header, builder.header());
}

#[test]
fn borrow_inside_a_record_is_refused() {
    let mut builder = Builder::new("bad");
    builder.0.resources.push(Resource {
        name: "query".to_owned(),
        docs: String::new(),
        position: position(9),
        destructor: None,
    });
    let borrow = builder.ty(TypeKind::Borrow(ResourceId(0)));
    builder.define_record("holder", vec![("query", borrow)]);
    assert_eq!(builder.refusal(), (1, "type `borrow<query>`".to_owned()));
}

#[test]
fn stream_or_future_inside_a_result_has_a_take_function() {
    let mut builder = Builder::new("feed");
    let text = builder.ty(TypeKind::String);
    let line = builder.define_record("line", vec![("text", text)]);
    let lines = builder.ty(TypeKind::Stream(Some(Box::new(line))));
    let number = builder.ty(TypeKind::U64);
    let last = builder.ty(TypeKind::Future(Some(Box::new(number))));
    let last = builder.ty(TypeKind::Option(Box::new(last)));
    let many = builder.define_record("many", vec![("lines", lines), ("last", last)]);
    builder.function("open", vec![], Some(many));
    let header = builder.header();
    let words = header.split_whitespace().collect::<Vec<_>>().join(" ");
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
    let mut builder = Builder::new("tick");
    let stream = builder.ty(TypeKind::Stream(None));
    let future = builder.ty(TypeKind::Future(None));
    builder.function(
        "ticks",
        vec![("until", future.clone())],
        Some(stream.clone()),
    );
    builder.function("later", vec![("stops", stream)], Some(future));
    let header = builder.header();
    let words = header.split_whitespace().collect::<Vec<_>>().join(" ");
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
fn flags_without_members_are_refused() {
    let mut builder = Builder::new("bad");
    builder.define("nothing", TypeDefKind::Flags(Vec::new()), 0, 1);
    assert_eq!(builder.refusal(), (1, "type `nothing`".to_owned()));
}

#[test]
fn enum_of_256_cases_has_no_check() {
    let mut builder = Builder::new("full");
    let labels = |count: u32| {
        (0..count)
            .map(|i| Label {
                name: format!("c{i}"),
                docs: String::new(),
            })
            .collect::<Vec<_>>()
    };
    let full = builder.define("full", TypeDefKind::Enum(labels(256)), 1, 1);
    let most = builder.define("most", TypeDefKind::Enum(labels(255)), 1, 1);
    builder.function("get-full", vec![], Some(full));
    builder.function("get-most", vec![], Some(most));
    let header = builder.header();
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
    let mut builder = Builder::new("shape");
    let text = builder.ty(TypeKind::String);
    let cases = vec![
        Case {
            name: "nothing".to_owned(),
            docs: String::new(),
            payload: None,
        },
        Case {
            name: "label".to_owned(),
            docs: String::new(),
            payload: Some(text),
        },
    ];
    let kind = TypeDefKind::Variant {
        cases,
        tag_size: 1,
        payload_offset: 4,
    };
    let figure = builder.define("figure", kind, 12, 4);
    builder.function("echo", vec![("figure", figure.clone())], Some(figure));
    let header = builder.header();
    let write = "  case SHAPE_FIGURE_LABEL:\n    tw_put_text(writer, at + 4, value->value.label);";
    let check =
        "  case SHAPE_FIGURE_LABEL:\n    return tw_check_text(checker, &value->value.label);";
    assert!(header.contains(write), "{header}");
    assert!(header.contains(check), "{header}");
    assert!(header.contains("    return value->tag < 2;"), "{header}");
}

#[test]
fn stream_parameter_has_a_stream_writer() {
    let mut builder = Builder::new("up");
    let text = builder.ty(TypeKind::String);
    let number = builder.ty(TypeKind::U64);
    let line = builder.define_record("line", vec![("text", text), ("number", number.clone())]);
    let lines = builder.ty(TypeKind::Stream(Some(Box::new(line))));
    let later = builder.ty(TypeKind::Future(Some(Box::new(number))));
    let params = vec![("lines", lines), ("until", later)];
    builder.function("take", params, None);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let header = words(&builder.header());
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
