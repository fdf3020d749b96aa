//! `views.py`: records read in place.

use super::annotation::{self, Place};
use super::layout::{self, Spelling};
use super::names;
use super::plan::Plan;
use super::source::{self, Doc, Source, mentions};
use crate::model::TypeDefKind;

pub(super) fn emit(plan: &Plan<'_>) -> Source {
    let mut body = source::file(plan);
    let start = body.len();
    let mut used = Vec::new();
    for (def, planned) in plan.package.types.iter().zip(&plan.types) {
        let (Some(view), TypeDefKind::Record(fields)) = (&planned.view, &def.kind) else {
            continue;
        };
        used.push(planned.class.clone());
        body.gap();
        body.line_at(
            0,
            &format!("class {view}(thalweg.View[{}]):", planned.class),
        );
        body.docstring(
            1,
            &format!(
                "A `{}` in a batch. Its fields raise an exception after the batch is released.",
                planned.class
            ),
        );
        body.blank();
        body.line_at(1, "__slots__ = ()");
        body.blank();
        let own = fields
            .iter()
            .map(|field| names::FIELD.of(&field.name))
            .collect();
        for field in fields {
            let value = layout::named(plan, plan.whole.index_of(&field.ty), Spelling::InClass);
            let annotation = annotation::of(plan, &field.ty, Place::Value);
            let annotation = names::within(&annotation, &own);
            let annotation = format!("thalweg.layout.Field[{annotation}]");
            let call = Doc::call(
                "thalweg.layout.field",
                vec![field.offset.to_string().into(), value],
            );
            body.assign_in(
                1,
                &names::FIELD.of(&field.name),
                Some(annotation.into()),
                &call,
            );
            body.docstring(1, &field.docs);
        }
    }
    let body = body.tail(start);
    let names: Vec<String> = plan
        .type_names()
        .into_iter()
        .filter(|name| mentions(&body, name))
        .collect();
    let mut out = source::file(plan);
    out.docstring(
        0,
        &format!("Views of the records of {} in batches.", plan.id()),
    );
    out.blank();
    out.line_at(0, "from __future__ import annotations");
    out.blank();
    if mentions(&body, "builtins") {
        out.line_at(0, "import builtins");
        out.blank();
    }
    out.line_at(0, "import thalweg.layout");
    out.blank();
    if mentions(&body, "_layout") {
        out.line_at(0, "from . import _layout");
    }
    out.import(".types", &names);
    out.append(&body);
    out
}
