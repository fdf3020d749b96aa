//! Marks where each shape is used. This decides which structs and functions are written for it.

use super::collect::Alias;
use super::plan::{Call, ParameterKind, ResultKind, Stream, StreamWriter};
use super::shape::{Form, ShapeKind, Shapes, Usage};

const INPUT: Usage = Usage {
    is_input: true,
    is_output: false,
    is_checked: false,
};

const OUTPUT: Usage = Usage {
    is_input: false,
    is_output: true,
    is_checked: false,
};

const CHECKED_OUTPUT: Usage = Usage {
    is_input: false,
    is_output: true,
    is_checked: true,
};

/// Marks all shapes.
pub(super) fn mark(
    shapes: &mut Shapes,
    aliases: &[Alias],
    calls: &[Call<'_>],
    imports: &[Call<'_>],
    streams: &[Stream],
    stream_writers: &[StreamWriter],
) {
    for call in calls {
        mark_call(shapes, call, streams);
    }
    for form in stream_writers.iter().filter_map(|writer| writer.element) {
        mark_form(shapes, form, INPUT);
    }
    for import in imports {
        mark_import(shapes, import);
    }
    for index in 0..shapes.all.len() {
        let form = Form::Shape(index);
        let has_name = shapes.get(index).is_named || aliases.iter().any(|alias| alias.form == form);
        if has_name && shapes.get(index).usage == Usage::default() {
            mark_form(shapes, form, OUTPUT);
        }
    }
}

fn mark_call(shapes: &mut Shapes, call: &Call<'_>, streams: &[Stream]) {
    for parameter in &call.parameters {
        if let ParameterKind::Value(form) = parameter.kind {
            mark_form(shapes, form, INPUT);
        }
    }
    match call.ok {
        ResultKind::Value(form) => mark_form(shapes, form, CHECKED_OUTPUT),
        ResultKind::Stream(index) => {
            if let Some(form) = streams[index].element {
                mark_form(shapes, form, OUTPUT);
            }
        }
        ResultKind::Nothing | ResultKind::Own(_) => {}
    }
    if let Some(form) = call.error {
        mark_form(shapes, form, CHECKED_OUTPUT);
    }
}

/// In a host import, the parameters are output for C and the results are input.
fn mark_import(shapes: &mut Shapes, import: &Call<'_>) {
    for parameter in &import.parameters {
        if let ParameterKind::Value(form) = parameter.kind {
            mark_form(shapes, form, CHECKED_OUTPUT);
        }
    }
    if let ResultKind::Value(form) = import.ok {
        mark_form(shapes, form, INPUT);
    }
    if let Some(form) = import.error {
        mark_form(shapes, form, INPUT);
    }
}

/// Marks a form and all forms in it.
fn mark_form(shapes: &mut Shapes, form: Form, usage: Usage) {
    let index = match form {
        Form::Handle(index) => {
            let stream = shapes.handles[index].stream.as_ref();
            if let Some(element) = stream.and_then(|stream| stream.element) {
                mark_form(shapes, element, OUTPUT);
            }
            return;
        }
        Form::Shape(index) => index,
        Form::Scalar(_) | Form::Text | Form::Bytes => return,
    };
    let shape = &mut shapes.all[index];
    shape.usage.is_input |= usage.is_input;
    shape.usage.is_output |= usage.is_output;
    shape.usage.is_checked |= usage.is_checked;
    let inner: Vec<Form> = match &shape.kind {
        ShapeKind::Record(members) => members.iter().map(|member| member.form).collect(),
        ShapeKind::Variant { cases, .. } => cases.iter().filter_map(|case| case.payload).collect(),
        ShapeKind::Enum(_) | ShapeKind::Flags(_) => Vec::new(),
        ShapeKind::Option { value, .. } => vec![*value],
        ShapeKind::List { element, .. } | ShapeKind::Array { element, .. } => vec![*element],
    };
    for form in inner {
        mark_form(shapes, form, usage);
    }
}
