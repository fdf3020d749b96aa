//! Writes `NAME_calls.nim`, the table of the methods for the conformance runner in Nim: a template
//! that makes the call of a step. Nim has reflection for the types of values.

use thalweg_bindgen::model::{FunctionKind, Package};
use thalweg_bindgen::nim::names::{Names, quoted};
use thalweg_bindgen::plan::{Function, ParameterKind, Plan};
use thalweg_bindgen::{Output, SourceError, nim};

/// The table of a package.
///
/// # Errors
/// The package has a construct that Nim does not support.
pub fn tables(package: &Package) -> Result<Output, SourceError> {
    nim::emit(package)?;
    let plan = &Plan::new(package);
    let names = &Names::new(plan);
    let mut out = format!(
        "# Generated from {}:{} for the conformance runner. Do not edit.\n\
         template callByName(name: string, by, params, options, use: untyped) =\n  case name\n",
        package.namespace, package.name
    );
    for (number, function) in plan.functions.iter().enumerate() {
        out.push_str(&method(names, plan, number, function));
    }
    out.push_str("  else: fail(\"no such method: \" & name)\n");
    Ok(Output {
        path: format!("{}_calls.nim", names.module).into(),
        contents: out,
    })
}

/// The branch of a method.
fn method(names: &Names, plan: &Plan<'_>, number: usize, function: &Function<'_>) -> String {
    let full = &function.function.full_name;
    let name = full.split_once('.').map_or(full.as_str(), |(_, name)| name);
    let mut out = format!("  of \"{name}\":\n");
    let mut receiver = "by".to_owned();
    let mut arguments = Vec::new();
    let mut writers = Vec::new();
    for (index, parameter) in function.parameters.iter().enumerate() {
        let json = format!("params[{index}]");
        let made = match parameter.kind {
            ParameterKind::Value(ty) => format!("fromJson({json}, {})", names.ty(plan, ty)),
            ParameterKind::Resource { id, .. } => {
                format!("fromJson({json}, {})", names.resources[id.0])
            }
            ParameterKind::Stream(_) => {
                writers.push(format!("a{index}"));
                format!(
                    "written(by.{}, {json})",
                    names.writer(number, parameter.name)
                )
            }
        };
        out.push_str(&format!("    let a{index} = {made}\n"));
        if index == 0 && matches!(function.function.kind, FunctionKind::Method(_)) {
            receiver = "a0".to_owned();
        } else {
            arguments.push(format!("a{index}"));
        }
    }
    arguments.push("options".to_owned());
    let (name, arguments) = (&names.functions[number], arguments.join(", "));
    out.push_str(&format!(
        "    use({receiver}.{}({arguments}), {receiver}.{name}Async({arguments}))\n",
        quoted(name)
    ));
    out
}
