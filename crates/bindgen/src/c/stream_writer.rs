//! Streams and futures that are parameters: the caller writes them.

use super::library::hash;
use super::names::Names;
use super::plan::{ParameterKind, Plan, StreamWriter};
use super::shape::{Form, Shapes};
use super::write;
use crate::plan::source::Source;

/// Names all stream writers.
pub(super) fn name(all: &mut [StreamWriter], names: &mut Names) {
    for writer in all {
        let (word, functions): (_, &[&str]) = match writer.is_future {
            true => ("future_writer", &["set", "close"]),
            false => ("stream_writer", &["send", "finish", "arm", "close"]),
        };
        let stem = &writer.stem;
        writer.name = names.claim(&format!("{stem}_{word}"));
        for function in functions {
            names.claim(&format!("{}_{function}", writer.name));
        }
    }
}

/// Writes the structs and their functions, and a function per parameter that creates one.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    if plan.stream_writers.is_empty() {
        return;
    }
    out.banner("Streams and futures that are parameters");
    out.docs("", LEGEND);
    out.blank();
    for writer in &plan.stream_writers {
        let (element, put) = element(&plan.shapes, writer.element);
        let words = [
            ("name", writer.name.as_str()),
            ("client", &plan.fixed.client),
            ("element", &element),
            ("hash", &hash(writer.hash)),
            ("size", &writer.size.to_string()),
            ("put", &put),
        ];
        out.template(if writer.is_future { FUTURE } else { STREAM }, &words);
    }
    for call in &plan.calls {
        for (number, parameter) in call.parameters.iter().enumerate() {
            let ParameterKind::StreamWriter { writer, open } = &parameter.kind else {
                continue;
            };
            let words = [
                ("open", open.as_str()),
                ("client", &plan.fixed.client),
                ("name", &plan.stream_writers[*writer].name),
                ("method", &call.method),
                ("number", &number.to_string()),
            ];
            out.template(OPEN, &words);
        }
    }
}

/// The parameter of the element, such as `uint64_t element, `, and C that writes it.
fn element(shapes: &Shapes, form: Option<Form>) -> (String, String) {
    let Some(form) = form else {
        return (String::new(), "(void)root;".to_owned());
    };
    let ty = shapes.input(form);
    if !shapes.is_struct(form) {
        let put = write::put(shapes, "&writer", form, "root", "element");
        return (format!("{ty} element, "), put);
    }
    let put = write::put(shapes, "&writer", form, "root", "*element");
    let put = format!("if (tw_writer_require(&writer, element)) {{\n    {put}\n  }}");
    (format!("const {ty} *element, "), put)
}

const LEGEND: &str = "\
You write a stream or future that is a parameter, and the service reads it. For a stream S of
the parameter P of a function F:

  F_P_open(&client, &stream, &error)            creates it; then call F with `&stream`
  S_send(&stream, element, TW_FOREVER, &error)  sends an element, before or after the call
  S_finish(&stream, &error)                     ends it regularly
  S_close(&stream, &error)                      frees it; if it was not finished, the service
                                                reads TW_CANCELLED
  S_arm                                         notifies a port when there is capacity again

S_send returns TW_CLOSED if the service stopped reading. A future has S_set instead of S_send
and S_finish; it never waits. thalweg_stream.h describes the functions.";

const OPEN: &str = "\
static inline uint32_t @open@(const @client@ *client, @name@ *stream, tw_error *error) {
  return tw_stream_writer_open(&client->tw, @method@, @number@, &stream->tw, error);
}";

const FUTURE: &str = "\
typedef struct @name@ {
  tw_stream_writer tw;
} @name@;

static inline uint32_t @name@_set(const @name@ *future, @element@tw_error *error) {
  tw_writer writer;
  uint32_t root = tw_writer_begin(&writer, @hash@, 0, @size@);
  @put@
  return tw_stream_writer_send(&future->tw, &writer, 0, error);
}

static inline uint32_t @name@_close(@name@ *future, tw_error *error) {
  return tw_stream_writer_close(&future->tw, error);
}";

const STREAM: &str = "\
typedef struct @name@ {
  tw_stream_writer tw;
} @name@;

static inline uint32_t @name@_send(const @name@ *stream, @element@uint64_t deadline_ns, tw_error *error) {
  tw_writer writer;
  uint32_t root = tw_writer_begin(&writer, @hash@, 0, @size@);
  @put@
  return tw_stream_writer_send(&stream->tw, &writer, deadline_ns, error);
}

static inline uint32_t @name@_finish(const @name@ *stream, tw_error *error) {
  return tw_stream_writer_finish(&stream->tw, error);
}

static inline uint32_t @name@_arm(const @name@ *stream, const @client@ *client, uint64_t token, uint32_t *ready, tw_error *error) {
  return tw_stream_writer_arm(&stream->tw, &client->tw, token, ready, error);
}

static inline uint32_t @name@_close(@name@ *stream, tw_error *error) {
  return tw_stream_writer_close(&stream->tw, error);
}";
