//! The host imports: protocols for sync code and for asyncio, and descriptions for the native
//! codec.

use super::annotation::{self, Place};
use super::client::{Face, pick};
use super::layout::{self, Spelling};
use super::methods;
use super::names;
use super::plan::Plan;
use super::source::{Doc, Source};
use crate::model::Function;
use crate::plan::ResultKind;
use crate::plan::names::Scope;

/// The functions, with the names of their methods.
fn functions<'p>(plan: &'p Plan<'_>) -> impl Iterator<Item = (&'p Function, String)> {
    let mut taken = Scope::default();
    let all = plan.package.host.iter().flat_map(|host| &host.functions);
    all.map(move |function| {
        let name = taken.claim(names::METHOD.of(&function.name));
        (function, name)
    })
}

/// The protocol of a host, if there are host imports.
pub(super) fn protocol(plan: &Plan<'_>, face: Face, out: &mut Source) {
    let (Some(host), Some(classes)) = (&plan.package.host, &plan.host) else {
        return;
    };
    out.gap();
    out.line_at(0, &format!("class {}(Protocol):", pick(classes, face)));
    let mut docs = host.docs.trim().to_owned();
    if !docs.is_empty() {
        docs.push_str("\n\n");
    }
    docs.push_str(match face {
        Face::Sync => {
            "The host imports of a client's service: pass an implementation to `open`. The functions\n\
             run on a thread that waits for a call of the client, and must not call the client."
        }
        Face::Async => {
            "The host imports of a client's service: pass an implementation to `open`. The functions\n\
             run on the loop that awaits the call."
        }
    });
    out.docstring(1, &docs);
    for (function, name) in functions(plan) {
        let mut taken = Scope::default();
        let mut signature = vec![Doc::from("self")];
        for param in &function.params {
            let name = taken.claim(names::PARAMETER.of(&param.name));
            let annotation = annotation::of(plan, &param.ty, Place::Value);
            signature.push(format!("{name}: {annotation}").into());
        }
        let result = match &function.ok {
            None => "None".to_owned(),
            Some(ok) => annotation::parameter(plan, ok, face),
        };
        let def = match face {
            Face::Sync => "def",
            Face::Async => "async def",
        };
        out.blank();
        out.definition(
            1,
            &format!("{def} {name}("),
            signature,
            &format!(") -> {result}:"),
        );
        out.docstring(2, &super::client::docs(plan, function, face));
        out.line_at(2, "...");
    }
}

/// Statements of `_methods.py`.
pub(super) fn describe(plan: &Plan<'_>, out: &mut Source) {
    for (planned, (function, name)) in plan.whole.imports.iter().zip(functions(plan)) {
        let mut items = vec![
            Doc::from(format!("\"{}\"", function.full_name)),
            Doc::from(format!("\"{name}\"")),
            methods::texts(plan, function),
            methods::parameters(plan, planned),
            match planned.ok {
                ResultKind::Value(ok) => layout::named(plan, ok, Spelling::Elsewhere),
                _ => "None".into(),
            },
        ];
        if let Some(error) = planned.error {
            items.push(layout::named(plan, error, Spelling::Elsewhere));
        }
        out.blank();
        out.statement(0, "", &Doc::call("PACKAGE.asks", items), "");
    }
}
