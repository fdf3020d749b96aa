//! `types.py`: the classes of values, and the exceptions.

use super::annotation::{self, Place};
use super::names;
use super::plan::{Plan, TypeNames};
use super::source::{self, Source, mentions};
use crate::model::{Case, Field, Label, TypeDef, TypeDefKind};
use crate::plan::names::Scope;

const FROZEN: &str = "@dataclass(frozen=True, slots=True)";

pub(super) fn emit(plan: &Plan<'_>) -> Source {
    let mut body = source::file(plan);
    let start = body.len();
    for (def, planned) in plan.package.types.iter().zip(&plan.types) {
        match &def.kind {
            TypeDefKind::Record(fields) => record(plan, def, planned, fields, &mut body),
            TypeDefKind::Variant { cases, .. } if planned.exception.is_some() => {
                exceptions(plan, def, planned, cases, &mut body);
            }
            TypeDefKind::Variant { cases, .. } => variant(plan, def, planned, cases, &mut body),
            TypeDefKind::Enum(labels) => enumeration(def, planned, labels, &mut body),
            TypeDefKind::Flags(labels) => flags(def, planned, labels, &mut body),
            TypeDefKind::Alias(target) => {
                body.gap();
                body.union(
                    &planned.class,
                    &[annotation::of(plan, target, Place::Value)],
                );
                body.docstring(0, &def.docs);
            }
        }
        if let Some(exception) = planned
            .exception
            .as_ref()
            .filter(|exception| **exception != planned.class)
        {
            body.gap();
            body.line_at(0, &format!("class {exception}(thalweg.ServiceError):"));
            body.docstring(1, &format!("The error `{}`.", def.name));
            body.blank();
            body.line_at(1, &format!("payload: {}", planned.class));
        }
    }
    let body = body.tail(start);
    let mut out = source::file(plan);
    out.docstring(0, &format!("The types of {}.", plan.id()));
    out.blank();
    imports(&body, &mut out);
    out.append(&body);
    out
}

/// The modules and names that `body` uses.
fn imports(body: &str, out: &mut Source) {
    out.line_at(0, "from __future__ import annotations");
    out.blank();
    let standard = [
        ("import builtins", mentions(body, "builtins")),
        ("import enum", body.contains("(enum.")),
        ("from dataclasses import dataclass", body.contains(FROZEN)),
        (
            "from typing import TypeAlias",
            body.contains(": TypeAlias = "),
        ),
    ];
    for (import, _) in standard.iter().filter(|(_, used)| *used) {
        out.line_at(0, import);
    }
    if mentions(body, "thalweg") {
        if standard.iter().any(|(_, used)| *used) {
            out.blank();
        }
        out.line_at(0, "import thalweg");
    }
}

fn record(plan: &Plan<'_>, def: &TypeDef, planned: &TypeNames, fields: &[Field], out: &mut Source) {
    out.gap();
    out.line_at(0, FROZEN);
    out.line_at(0, &format!("class {}:", planned.class));
    out.docstring(1, &def.docs);
    if !def.docs.trim().is_empty() {
        out.blank();
    }
    let own = fields
        .iter()
        .map(|field| names::FIELD.of(&field.name))
        .collect();
    let defaults = annotation::defaults(plan, fields.iter().map(|field| &field.ty));
    for (field, has_default) in fields.iter().zip(defaults) {
        let name = names::FIELD.of(&field.name);
        let annotation = annotation::of(plan, &field.ty, Place::Value);
        let annotation = names::within(&annotation, &own);
        let default = if has_default { " = None" } else { "" };
        out.line_at(1, &format!("{name}: {annotation}{default}"));
        out.docstring(1, &field.docs);
    }
}

fn variant(plan: &Plan<'_>, def: &TypeDef, planned: &TypeNames, cases: &[Case], out: &mut Source) {
    for (case, class) in cases.iter().zip(&planned.cases) {
        out.gap();
        out.line_at(0, FROZEN);
        out.line_at(0, &format!("class {class}:"));
        out.docstring(1, &docs_of_case(def, case));
        if let Some(payload) = &case.payload {
            out.blank();
            out.line_at(
                1,
                &format!("value: {}", annotation::of(plan, payload, Place::Value)),
            );
        }
    }
    out.gap();
    out.union(&planned.class, &planned.cases);
    out.docstring(0, &def.docs);
}

fn exceptions(
    plan: &Plan<'_>,
    def: &TypeDef,
    planned: &TypeNames,
    cases: &[Case],
    out: &mut Source,
) {
    out.gap();
    out.line_at(
        0,
        &format!("class {}(thalweg.ServiceError):", planned.class),
    );
    let docs = if def.docs.trim().is_empty() {
        format!("The error `{}`.", def.name)
    } else {
        def.docs.clone()
    };
    out.docstring(1, &docs);
    for (case, class) in cases.iter().zip(&planned.cases) {
        out.gap();
        out.line_at(0, &format!("class {class}({}):", planned.class));
        out.docstring(1, &docs_of_case(def, case));
        out.blank();
        let payload = case.payload.as_ref().map_or("None".into(), |payload| {
            annotation::of(plan, payload, Place::Value)
        });
        out.line_at(1, &format!("payload: {payload}"));
    }
}

fn docs_of_case(def: &TypeDef, case: &Case) -> String {
    if case.docs.trim().is_empty() {
        format!("Case `{}` of `{}`.", case.name, def.name)
    } else {
        case.docs.clone()
    }
}

fn enumeration(def: &TypeDef, planned: &TypeNames, labels: &[Label], out: &mut Source) {
    out.gap();
    out.line_at(0, &format!("class {}(enum.Enum):", planned.class));
    members(def, labels, |_, label| format!("\"{}\"", label.name), out);
}

fn flags(def: &TypeDef, planned: &TypeNames, labels: &[Label], out: &mut Source) {
    out.gap();
    out.line_at(0, &format!("class {}(enum.Flag):", planned.class));
    members(def, labels, |place, _| format!("1 << {place}"), out);
}

fn members(
    def: &TypeDef,
    labels: &[Label],
    value: impl Fn(usize, &Label) -> String,
    out: &mut Source,
) {
    out.docstring(1, &def.docs);
    if !def.docs.trim().is_empty() {
        out.blank();
    }
    let mut names = Scope::default();
    for (place, label) in labels.iter().enumerate() {
        let name = names.claim(names::CONSTANT.of(&label.name));
        out.line_at(1, &format!("{name} = {}", value(place, label)));
        out.docstring(1, &label.docs);
    }
}
