//! The emitter for Node: `NAME.js`, an ECMAScript module over the generic package in
//! `bindings/node`, and `NAME.d.ts`, its types for TypeScript.
//!
//! `names` finds all names. `codec` writes the functions that put and get values, `functions` the
//! descriptions of the package's functions, `types` the types of values, and `classes` the classes in
//! both files. The output is formatted like that of Biome and Prettier with 100 columns and single
//! quotes.

mod classes;
mod codec;
mod functions;
mod names;
mod source;
mod types;

use crate::model::Package;
use crate::plan::{Plan, Unsupported};
use crate::{Output, SourceError};
use names::Names;
use source::{Doc, FORMAT, Source, mentions, object};

/// Emits the files of a package.
///
/// # Errors
/// A type without members, such as `tuple<>`, or a borrowed resource inside a value.
pub fn emit(package: &Package) -> Result<Vec<Output>, SourceError> {
    let plan = &Plan::new(package);
    plan.refuse(&[Unsupported::NoMembers, Unsupported::BorrowInValue])?;
    let names = &Names::new(plan);
    let emitter = Emitter { plan, names };

    let mut types = Source::new(&FORMAT);
    let mut head = Source::new(&FORMAT);
    emitter.types(&mut types);
    emitter.package(&mut head);
    emitter.exceptions(&mut head, &mut types);
    emitter.host(&mut types);
    let mut script = Source::new(&FORMAT);
    emitter.functions(&mut script);
    emitter.imports(&mut script);
    emitter.classes(&mut script, &mut types);
    let (script, types) = (script.tail(0), types.tail(0));
    let [labels, codec, constants] = emitter.definitions(&script);
    let script = [head.tail(0), labels, codec, constants, script].concat();

    let mut js = source::file(package);
    let all = "Client call Package Resource readFuture ServiceError Stream";
    import(&mut js, "thalweg/generated", all, &script);
    js.blank();
    js.append(&script);
    let mut ts = source::file(package);
    let all = "CallOptions Column NoticeOptions NoValue ServiceError Stream";
    import(&mut ts, "thalweg", all, &types);
    import(&mut ts, "thalweg/generated", "Client Resource", &types);
    ts.blank();
    ts.append(&types);

    let output = |ending: &str, source: Source| Output {
        path: format!("{}.{ending}", package.name).into(),
        contents: source.finish(),
    };
    Ok(vec![output("js", js), output("d.ts", ts)])
}

/// Imports those names that `code` uses. In a declaration, only classes that it extends are more than
/// types.
fn import(out: &mut Source, module: &str, names: &str, code: &str) {
    let is_comment = |line: &&str| line.trim_start().starts_with(['/', '*']);
    let code: String = code.lines().filter(|line| !is_comment(line)).collect();
    let used = names.split(' ').filter(|name| mentions(&code, name));
    let used = used.map(|name| match module == "thalweg" && name != "ServiceError" {
        true => format!("type {name}").into(),
        false => name.into(),
    });
    let used: Vec<Doc> = used.collect();
    if !used.is_empty() {
        out.statement(0, "import ", &object(used), &format!(" from '{module}';"));
    }
}

/// Writes the parts of a package.
struct Emitter<'p> {
    plan: &'p Plan<'p>,
    names: &'p Names,
}
