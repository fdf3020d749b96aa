//! The functions that call the host.

use super::Go;
use super::layout::{self, alone};
use super::serve::layout as layout_of;
use crate::plan::codec::{At, Codec};
use crate::plan::source::Source;
use crate::plan::{Function, Kind, ParameterKind, ResultKind, TypeIndex, spell_signature};

/// Writes a function for each host import.
pub(super) fn calls(go: &Go<'_>, out: &mut Source) {
    for (number, import) in go.plan.functions.iter().enumerate() {
        call(go, number, import, out);
    }
}

fn call(go: &Go<'_>, number: usize, import: &Function<'_>, out: &mut Source) {
    let model = import.function;
    let name = &go.names.host_calls[number];
    let about = format!(
        "{name} calls `{}` of the host, `{}`, and waits for the answer. ctx is the context of a call, or \
         derived from it.",
        model.name,
        spell_signature(go.plan.package, model)
    );
    layout::docs(out, &about, &model.docs);
    let parameters = go.names.parameters(import);
    let mut head = String::from("ctx context.Context");
    for (parameter, name) in import.parameters.iter().zip(&parameters) {
        head += &format!(", {name} {}", go.ty(value_of(parameter.kind)));
    }
    let ok = match import.ok {
        ResultKind::Value(ty) => Some(ty),
        // The parser refuses host imports with handles.
        _ => None,
    };
    let (results, returned) = match ok {
        Some(ty) => (format!("(result {}, err error)", go.ty(ty)), "result, "),
        None => ("error".to_owned(), ""),
    };
    out.open(&format!("func {name}({head}) {results} {{"));
    let has_parameters = !import.parameters.is_empty();
    out.line(&format!("call, w := guest.CallHost(ctx, {number})"));
    out.line(&format!(
        "{}w.Begin({}, {})",
        if has_parameters { "to := " } else { "" },
        layout_of(model.hashes.params),
        model.params_layout.0
    ));
    let mut codec = Codec::new(go.plan, go, out);
    for (parameter, name) in import.parameters.iter().zip(&parameters) {
        let at = At::new("to").plus(parameter.offset);
        codec.put(value_of(parameter.kind), &at, name);
    }
    let message = if ok.is_some() || import.error.is_some() {
        "m"
    } else {
        "_"
    };
    let is_ok = if model.error.is_some() { "isOk" } else { "_" };
    out.line(&format!("{message}, {is_ok}, err := call.Answer()"));
    if ok.is_none() && model.error.is_none() {
        out.line("return err");
        out.close("}");
        out.blank();
        return;
    }
    out.open("if err != nil {");
    out.line(&format!("return {returned}err"));
    out.close("}");
    if model.error.is_some() {
        out.open("if !isOk {");
        match import.error {
            Some(ty) => {
                let error = read(go, ty, model.hashes.error, returned, out);
                let error = match (&go.plan.get(ty).kind, go.plan.get(ty).id) {
                    (Kind::Record(_), _) | (_, Some(_)) => error,
                    _ => format!("guest.Failure[{}]{{Value: {error}}}", go.ty(ty)),
                };
                out.line(&format!("return {returned}{error}"));
            }
            None => out.line(&format!("return {returned}guest.ErrHost")),
        }
        out.close("}");
    }
    let result = ok.map(|ty| read(go, ty, model.hashes.ok, returned, out));
    let result = result.map_or(String::new(), |result| format!("{result}, "));
    out.line(&format!("return {result}nil"));
    out.close("}");
    out.blank();
}

fn value_of(parameter: ParameterKind) -> TypeIndex {
    match parameter {
        ParameterKind::Value(ty) => ty,
        _ => unreachable!("the parser refuses host imports with handles"),
    }
}

/// Writes code that checks the message of an answer. Returns the expression of its value.
fn read(go: &Go<'_>, ty: TypeIndex, hash: u64, returned: &str, out: &mut Source) -> String {
    let at = At::new("at");
    out.line(&format!(
        "{} := m.Open({}, {})",
        alone(&at),
        layout_of(hash),
        go.plan.get(ty).size
    ));
    let mut codec = Codec::new(go.plan, go, out);
    codec.check(ty, &at);
    codec.line("if err := m.Close(); err != nil {");
    codec.line(&format!("\treturn {returned}err"));
    codec.line("}");
    codec.get(ty, &at)
}
