//! Streams and futures that are parameters: what the caller writes.

use super::call::hash;
use super::collect::Collector;
use super::names::Names;
use super::plan::{Passed, Plan};
use super::shape::{Form, Shapes};
use super::source::Source;
use super::write;
use crate::SourceError;
use crate::hash::{Describer, fnv1a};
use crate::model::{Function, Package, Type, TypeKind};

/// One per type of element.
pub(super) struct Upstream {
    /// `None`: it carries nothing but that it comes.
    pub(super) element: Option<Form>,
    /// `search_match_stream_writer`: the functions add `_send` and so on.
    pub(super) name: String,
    /// It has one element: a future.
    pub(super) is_future: bool,
    size: u32,
    hash: u64,
}

/// The parameter's, where it is one.
pub(super) fn passed(
    package: &Package,
    collector: &mut Collector<'_>,
    all: &mut Vec<Upstream>,
    function: &Function,
    ty: &Type,
) -> Result<Option<Passed>, SourceError> {
    let (element, is_future) = match &ty.kind {
        TypeKind::Stream(element) => (element, false),
        TypeKind::Future(element) => (element, true),
        _ => return Ok(None),
    };
    let form = element
        .as_ref()
        .map(|ty| collector.form(ty, &function.position))
        .transpose()?;
    let texts = Describer {
        types: &package.types,
        resources: &package.resources,
    };
    let known = |up: &Upstream| up.element == form && up.is_future == is_future;
    let upstream = all.iter().position(known).unwrap_or_else(|| {
        all.push(Upstream {
            element: form,
            name: String::new(),
            is_future,
            size: element.as_ref().map_or(0, |ty| ty.size),
            hash: fnv1a(
                &element
                    .as_ref()
                    .map_or("_".to_owned(), |ty| texts.describe(ty)),
            ),
        });
        all.len() - 1
    });
    Ok(Some(Passed::Upstream {
        upstream,
        open: String::new(),
    }))
}

/// Names of all.
pub(super) fn name(all: &mut [Upstream], shapes: &Shapes, names: &mut Names) {
    for up in all {
        let what = if up.is_future {
            "future_writer"
        } else {
            "stream_writer"
        };
        up.name = names.claim(&format!("{}_{what}", shapes.stem_of(up.element)));
        let functions: &[&str] = match up.is_future {
            true => &["set", "close"],
            false => &["send", "finish", "arm", "close"],
        };
        for function in functions {
            names.claim(&format!("{}_{function}", up.name));
        }
    }
}

/// What writes them, and what makes them, for each parameter.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    if plan.upstreams.is_empty() {
        return;
    }
    out.banner("Streams that are parameters");
    for up in &plan.upstreams {
        let (template, word) = match up.is_future {
            true => (FUTURE, "set"),
            false => (STREAM, "send"),
        };
        let (parameter, put) = element(&plan.shapes, up.element);
        let begin = format!("tw_writer_begin(writer, {}, 0, {})", hash(up.hash), up.size);
        let words = [
            ("name", up.name.as_str()),
            ("client", &plan.fixed.client),
            ("element", &parameter),
            ("begin", &begin),
            ("put", &put),
            ("word", word),
        ];
        out.template(template, &words);
    }
    for call in &plan.calls {
        for (number, parameter) in call.parameters.iter().enumerate() {
            let Passed::Upstream { upstream, open } = &parameter.passed else {
                continue;
            };
            let words = [
                ("parameter", parameter.name.as_str()),
                ("call", &call.blocking),
                ("open", open),
                ("client", &plan.fixed.client),
                ("name", &plan.upstreams[*upstream].name),
                ("method", &call.method),
                ("number", &number.to_string()),
            ];
            out.template(OPEN, &words);
        }
    }
}

/// Of what is sent: "uint64_t element, ", and C that writes it.
fn element(shapes: &Shapes, form: Option<Form>) -> (String, String) {
    let Some(form) = form else {
        return (String::new(), "(void)root;".to_owned());
    };
    let ty = shapes.input(form);
    if !shapes.is_struct(form) {
        let put = write::put(shapes, form, "root", "element");
        return (format!("{ty} element, "), put);
    }
    let put = write::put(shapes, form, "root", "*element");
    let put = format!(
        "if (element) {{\n    {put}\n  }} else {{\n    writer->status = TW_ARGUMENT;\n  }}"
    );
    (format!("const {ty} *element, "), put)
}

const OPEN: &str = "\
/* Makes `@parameter@` of `@call@`: write it before the call, or from another thread, or between the turns of a loop. */
static inline uint32_t @open@(const @client@ *client, @name@ *stream, tw_error *error) {
  return tw_stream_writer_open(&client->tw, @method@, @number@, &stream->tw, error);
}";

const FUTURE: &str = "\
/* A value that comes later, for one call. Closed without a value, the service has TW_CANCELLED. */
typedef struct @name@ {
  tw_stream_writer tw;
} @name@;

/* Says what it is, once; never waits. TW_CLOSED: the service does not wait for it any more. */
static inline uint32_t @name@_set(const @name@ *future, @element@tw_error *error) {
  tw_writer state;
  tw_writer *writer = &state;
  uint32_t root = @begin@;
  @put@
  return tw_stream_writer_send(&future->tw, writer, 0, error);
}

/* When it is set, or will not be. Harmless twice. */
static inline uint32_t @name@_close(@name@ *future, tw_error *error) {
  return tw_stream_writer_close(&future->tw, error);
}";

const STREAM: &str = "\
/* A stream for one call, whose service reads it:
 *
 *   the call's _open(&client, &stream, &error), then its _submit with `stream`
 *   while ((code = @name@_send(&stream, element, TW_FOREVER, &error)) == TW_OK) ...
 *   @name@_finish(&stream, &error);
 *   @name@_close(&stream, &error);
 */
typedef struct @name@ {
  tw_stream_writer tw;
} @name@;

/* Sends one element, and waits for room: see stream_send in thalweg.h. TW_CLOSED: the service reads no more. */
static inline uint32_t @name@_send(const @name@ *stream, @element@uint64_t deadline_ns, tw_error *error) {
  tw_writer state;
  tw_writer *writer = &state;
  uint32_t root = @begin@;
  @put@
  return tw_stream_writer_send(&stream->tw, writer, deadline_ns, error);
}

/* Nothing more comes. */
static inline uint32_t @name@_finish(const @name@ *stream, tw_error *error) {
  return tw_stream_writer_finish(&stream->tw, error);
}

/* One TW_COMPLETION_STREAM_READY with `token` comes to the client's port as soon as there is room. */
static inline uint32_t @name@_arm(const @name@ *stream, const @client@ *client, uint64_t token, uint32_t *ready, tw_error *error) {
  return tw_stream_writer_arm(&stream->tw, &client->tw, token, ready, error);
}

/* Legal anywhere. Not ended before, the service has TW_CANCELLED behind what was sent. Harmless twice. */
static inline uint32_t @name@_close(@name@ *stream, tw_error *error) {
  return tw_stream_writer_close(&stream->tw, error);
}";
