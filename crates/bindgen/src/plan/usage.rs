//! Marks the directions in which each type goes.

use super::types::{Handle, Kind, Type, TypeIndex, Usage};
use super::{Function, ParameterKind, Plan, ResultKind, Stream};

const NONE: Usage = Usage {
    is_input: false,
    is_output: false,
    is_checked: false,
    is_raised: false,
    is_streamed: false,
};

const INPUT: Usage = Usage {
    is_input: true,
    ..NONE
};

const OUTPUT: Usage = Usage {
    is_output: true,
    ..NONE
};

const CHECKED_OUTPUT: Usage = Usage {
    is_output: true,
    is_checked: true,
    ..NONE
};

/// Marks all types.
pub(super) fn mark(plan: &mut Plan<'_>) {
    let mut marker = Marker {
        types: &mut plan.types,
        streams: &plan.streams,
        upstreams: &plan.upstreams,
    };
    for function in &plan.functions {
        marker.values(function, INPUT, CHECKED_OUTPUT);
        if let ResultKind::Stream(index) = function.ok
            && let Stream {
                element: Some(element),
                is_future,
                ..
            } = plan.streams[index]
        {
            marker.mark(element, OUTPUT);
            marker.types[element.0].usage.is_streamed |= !is_future;
        }
    }
    for import in &plan.imports {
        marker.values(import, CHECKED_OUTPUT, INPUT);
        // Only a guest's functions return streams.
        if let ResultKind::Stream(index) = import.ok
            && let Some(element) = plan.streams[index].element
        {
            marker.mark(element, INPUT);
        }
    }
    for index in &plan.named {
        if marker.types[index.0].usage == NONE {
            marker.mark(*index, OUTPUT);
        }
    }
}

struct Marker<'m, 'a> {
    types: &'m mut [Type<'a>],
    streams: &'m [Stream],
    upstreams: &'m [Stream],
}

impl Marker<'_, '_> {
    /// Marks the values among the parameters and the elements of their streams with `to`, and the result
    /// and the error with `from`.
    fn values(&mut self, function: &Function<'_>, to: Usage, from: Usage) {
        for parameter in &function.parameters {
            match parameter.kind {
                ParameterKind::Value(ty) => self.mark(ty, to),
                ParameterKind::Resource { .. } => {}
                ParameterKind::Stream(index) => {
                    // The core has checked the elements.
                    let to = Usage {
                        is_checked: false,
                        ..to
                    };
                    let element = self.upstreams[index].element;
                    element.into_iter().for_each(|it| self.mark(it, to));
                }
            }
        }
        if let ResultKind::Value(ty) = function.ok {
            self.mark(ty, from);
        }
        if let Some(error) = function.error {
            self.mark(error, from);
            self.types[error.0].usage.is_raised = true;
        }
    }

    /// Marks a type and all types inside it. The caller reads the elements of a stream inside a
    /// value, whatever the direction of the value.
    fn mark(&mut self, index: TypeIndex, usage: Usage) {
        let ty = &mut self.types[index.0];
        ty.usage.is_input |= usage.is_input;
        ty.usage.is_output |= usage.is_output;
        ty.usage.is_checked |= usage.is_checked;
        if let Kind::Handle(Handle::Stream(stream)) = ty.kind {
            if let Some(element) = self.streams[stream].element {
                self.mark(element, OUTPUT);
            }
            return;
        }
        for part in ty.kind.parts() {
            self.mark(part, usage);
        }
    }
}
