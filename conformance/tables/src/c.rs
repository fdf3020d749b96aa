//! The tables of the runner in C: `NAME_json.h`.
//!
//! They are a function per type that reads a value from JSON (`T_from(json, &value)`), one that
//! compares a value with JSON (`T_is(base, view, json)`), and a table of the methods. They use the
//! package's header and `conformance/c/values.h`.

mod compare;
mod fill;
mod methods;

use thalweg_bindgen::c::plan::Plan;
use thalweg_bindgen::c::shape::{Case, Form, Label, Member, Scalar, Shape, Shapes};
use thalweg_bindgen::model::Package;
use thalweg_bindgen::{Output, SourceError};

use crate::source::Source;

/// The tables of a package.
///
/// # Errors
/// The package has a construct that C does not support.
pub fn tables(package: &Package) -> Result<Output, SourceError> {
    let plan = Plan::new(package)?;
    Ok(Output {
        path: format!("{}_json.h", plan.prefix()).into(),
        contents: tables_of(&plan),
    })
}

/// The whole file.
fn tables_of(plan: &Plan<'_>) -> String {
    let (prefix, package) = (plan.prefix(), plan.package);
    let mut out = Source(String::new());
    out.line(&format!(
        "/* Generated from {}:{} for the conformance runner. Do not edit. */",
        package.namespace, package.name
    ));
    out.line(&format!("#include \"{prefix}.h\""));
    out.line("#include \"values.h\"\n");
    // A value that contains a stream is compared after the elements of the stream, which contain no
    // streams.
    let shapes = plan.shapes.all.iter().enumerate();
    let (with_handles, without): (Vec<_>, Vec<_>) =
        shapes.partition(|(_, shape)| shape.has_handles);
    for_shapes(&plan.shapes, &without, &mut out);
    for stream in &plan.streams {
        compare::element(plan, stream, &mut out);
        if !stream.take.is_empty() {
            compare::stream_in_value(stream, &mut out);
        }
    }
    for_shapes(&plan.shapes, &with_handles, &mut out);
    for writer in &plan.stream_writers {
        fill::stream_writer(&plan.shapes, writer, &mut out);
    }
    for call in &plan.calls {
        methods::prepare(plan, call, &mut out);
        methods::read(plan, call, &mut out);
    }
    methods::table(plan, &mut out);
    out.0
}

fn for_shapes(shapes: &Shapes, selected: &[(usize, &Shape)], out: &mut Source) {
    for (index, shape) in selected {
        if shape.usage.is_input {
            fill::shape(shapes, *index, shape, out);
        }
        if shape.usage.is_output {
            compare::shape(shapes, *index, shape, out);
        }
    }
}

/// The prefix of a form's functions: `u8`, `text`, `conformance_shape`.
fn stem(shapes: &Shapes, form: Form) -> String {
    match form {
        Form::Scalar(scalar) => scalar.wit().to_owned(),
        Form::Text => "text".to_owned(),
        Form::Bytes => "bytes".to_owned(),
        Form::Handle(index) => match &shapes.handles[index].stream {
            Some(stream) => format!("{}_handle", stream.name),
            None => "handle".to_owned(),
        },
        Form::Shape(index) => shapes.get(index).flat.clone(),
    }
}

/// A list of these elements is bytes.
fn is_byte(element: Form) -> bool {
    element == Form::Scalar(Scalar::U8)
}

/// The JSON of a record's field or a tuple's element.
fn json_of_member(member: &Member, number: usize) -> String {
    match member.wit.as_str() {
        "" => format!("json_array_get(json, {number})"),
        name => format!("json_object_get(json, \"{name}\")"),
    }
}

/// The JSON of a case's payload. A result is an object with one member, named by its side.
fn json_of_payload(shape: &Shape, case: &Case) -> String {
    let key = if shape.is_named { "value" } else { &case.wit };
    format!("json_object_get(json, \"{key}\")")
}

/// Two C arguments: an array of names, and their number.
fn label_list(labels: &[Label]) -> String {
    let names: Vec<_> = labels
        .iter()
        .map(|label| format!("\"{}\"", label.wit))
        .collect();
    format!(
        "(const char *const[]){{{}}}, {}",
        names.join(", "),
        labels.len()
    )
}
