//! Writes `NAME_json.h`, the tables of the conformance runner in C: `conformance_tables WIT
//! FOLDER`.
//!
//! C has no reflection. So the runner needs a function per type that reads a value from JSON
//! (`T_from(json, &value)`), one that compares a value with JSON (`T_is(base, view, json)`), and a
//! table of the methods. They use the package's header and `conformance/c/values.h`.
//! `conformance/c/test.sh` runs this program.

mod compare;
mod fill;
mod methods;

use std::error::Error;
use std::path::Path;

use thalweg_bindgen::c::plan::Plan;
use thalweg_bindgen::c::shape::{Case, Form, Label, Member, Scalar, Shape, Shapes};
use thalweg_bindgen::parse;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [wit, folder] = &arguments[..] else {
        return Err("usage: conformance_tables WIT FOLDER".into());
    };
    let package = parse(Path::new(wit))?;
    let plan = Plan::new(&package)?;
    let path = Path::new(folder).join(format!("{}_json.h", plan.prefix()));
    std::fs::write(path, tables(&plan))?;
    Ok(())
}

/// The whole file.
fn tables(plan: &Plan<'_>) -> String {
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

/// The text of the file.
struct Source(String);

impl Source {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Writes lines in which `@key@` stands for its value, and a blank line after them.
    fn template(&mut self, template: &str, values: &[(&str, &str)]) {
        let mut text = template.to_owned();
        for (key, value) in values {
            text = text.replace(&format!("@{key}@"), value);
        }
        self.line(&text);
        self.line("");
    }

    /// Writes a function with this head and body.
    fn function(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.line(&format!("static inline {head} {{"));
        body(self);
        self.line("}\n");
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
