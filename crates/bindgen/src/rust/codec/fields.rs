//! Records and variants.

use super::super::defaults;
use super::super::names::{camel, snake};
use super::super::types::{self, owned, view};
use super::super::{docs, has_view, line};
use super::words::{FieldRun, field_runs};
use super::{Layout, borrow, check, derives, own, place, read};
use crate::model::{self, Case, Field, Package, Type, TypeDef, TypeDefKind, TypeKind};

/// A record, and its view if it has tails.
pub fn record(out: &mut String, package: &Package, id: usize, def: &TypeDef, fields: &[Field]) {
    let name = camel(&def.name);
    let viewed = has_view(package, id);
    let view_name = if viewed {
        format!("{name}View")
    } else {
        name.clone()
    };
    let lifetime = if viewed { "<'_>" } else { "" };

    line(out, "");
    docs(out, &def.docs);
    line(
        out,
        &format!("{}\npub struct {name} {{", derives(package, id)),
    );
    for field in fields {
        docs(out, &field.docs);
        line(
            out,
            &format!("pub {}: {},", snake(&field.name), owned(package, &field.ty)),
        );
    }
    line(out, "}");
    if viewed {
        line(
            out,
            &format!("\n/// [`{name}`] in place: the view of a reader. A writer may also send it."),
        );
        line(
            out,
            &format!("#[derive(Clone, Copy, Debug, PartialEq)]\npub struct {view_name}<'a> {{"),
        );
        for field in fields {
            docs(out, &field.docs);
            line(
                out,
                &format!("pub {}: {},", snake(&field.name), view(package, &field.ty)),
            );
        }
        line(out, "}");
    }

    let runs: Vec<_> = field_runs(package, fields).collect();
    let encode: String = runs.iter().map(FieldRun::encode).collect();
    let holding = fields
        .iter()
        .filter(|field| model::contains_handle(&package.types, &field.ty))
        .map(|field| format!("self.{}.handles(given)", snake(&field.name)));
    let handles = holding.collect::<Vec<_>>().join(" + ");
    encode_impl(
        out,
        &format!("{view_name}{lifetime}"),
        &name,
        &encode,
        &handles,
    );
    if viewed {
        by_view(out, &name, &handles);
    }

    let depth = types::depth(
        package,
        &Type {
            kind: TypeKind::Named(crate::model::TypeId(id)),
            size: 0,
            align: 1,
        },
    );
    Layout { package, id, depth }.begin(out);
    let checks: Vec<_> = fields
        .iter()
        .filter_map(|field| check(package, &field.ty, field.offset))
        .collect();
    let checks = checks.split_last().map(|(last, first)| {
        let first: String = first.iter().map(|check| format!("{check}?;\n")).collect();
        first + last
    });
    let each = |expression: &dyn Fn(&Field) -> String| -> String {
        fields
            .iter()
            .map(|field| initialised(&snake(&field.name), &expression(field)))
            .collect()
    };
    let loads: String = runs.iter().map(FieldRun::load).collect();
    let reads: String = runs
        .iter()
        .flat_map(|run| run.read(package))
        .map(|(name, value)| initialised(&name, &value))
        .collect();
    functions(
        out,
        &name,
        viewed,
        checks.as_deref(),
        &format!("{loads}{view_name} {{ {reads} }}"),
        &format!(
            "{name} {{ {} }}",
            each(&|field| own(package, &field.ty, &format!("view.{}", snake(&field.name))))
        ),
        &format!(
            "{view_name} {{ {} }}",
            each(&|field| borrow(
                package,
                &field.ty,
                &format!("self.{}", snake(&field.name)),
                false
            ))
        ),
    );
}

fn initialised(name: &str, expression: &str) -> String {
    format!("{name}: {expression},\n")
}

/// A variant, and its view if it has tails.
pub fn variant(
    out: &mut String,
    package: &Package,
    id: usize,
    def: &TypeDef,
    cases: &[Case],
    tag_size: u32,
    payload_offset: u32,
) {
    let name = camel(&def.name);
    let viewed = has_view(package, id);
    let view_name = if viewed {
        format!("{name}View")
    } else {
        name.clone()
    };
    let lifetime = if viewed { "<'_>" } else { "" };
    let word = match tag_size {
        1 => "u8",
        2 => "u16",
        _ => "u32",
    };

    line(out, "");
    docs(out, &def.docs);
    line(
        out,
        &format!("{}\npub enum {name} {{", derives(package, id)),
    );
    let default = defaults::first_case(cases);
    let default = Some(default).filter(|place| cases[*place].payload.is_none());
    declare_cases(out, cases, default, &|ty| owned(package, ty));
    if viewed {
        line(
            out,
            &format!("\n/// [`{name}`] in place: the view of a reader. A writer may also send it."),
        );
        line(
            out,
            &format!("#[derive(Clone, Copy, Debug, PartialEq)]\npub enum {view_name}<'a> {{"),
        );
        declare_cases(out, cases, None, &|ty| view(package, ty));
    }

    let arms = |arm: &dyn Fn(usize, &Case, &str) -> String| -> String {
        cases
            .iter()
            .enumerate()
            .map(|(number, case)| arm(number, case, &camel(&case.name)))
            .collect()
    };
    let encode = arms(&|number, case, case_name| {
        // The tag is already zero.
        let tag = if number == 0 {
            String::new()
        } else {
            format!("to.{word}(at, {number});")
        };
        match &case.payload {
            None => format!("{view_name}::{case_name} => {{ {tag} }}\n"),
            Some(_) => {
                let payload = format!("value.encode(to, {});", place(payload_offset));
                format!("{view_name}::{case_name}(value) => {{ {tag} {payload} }}\n")
            }
        }
    });
    let holding = |case: &&Case| {
        let payload = case.payload.as_ref();
        payload.is_some_and(|ty| model::contains_handle(&package.types, ty))
    };
    let holding: Vec<_> = cases.iter().filter(holding).collect();
    let arm = |case: &&Case| {
        let case = camel(&case.name);
        format!("{view_name}::{case}(value) => value.handles(given),\n")
    };
    let rest = match holding.len() {
        some if some < cases.len() => "_ => 0,",
        _ => "",
    };
    let handles = match holding.as_slice() {
        [] => String::new(),
        some => format!(
            "match self {{ {} {rest} }}",
            some.iter().map(arm).collect::<String>()
        ),
    };
    encode_impl(
        out,
        &format!("{view_name}{lifetime}"),
        &name,
        &format!("match self {{ {encode} }}"),
        &handles,
    );
    if viewed {
        by_view(out, &name, &handles);
    }

    let depth = types::depth(
        package,
        &Type {
            kind: TypeKind::Named(crate::model::TypeId(id)),
            size: 0,
            align: 1,
        },
    );
    Layout { package, id, depth }.begin(out);
    let checks: Vec<_> = cases
        .iter()
        .map(|case| {
            case.payload
                .as_ref()
                .and_then(|ty| check(package, ty, payload_offset))
        })
        .collect();
    let nothing: Vec<_> = (0..cases.len())
        .filter(|number| checks[*number].is_none())
        .collect();
    let mut check_arms: String = checks
        .iter()
        .enumerate()
        .filter_map(|(number, check)| {
            check
                .as_ref()
                .map(|check| format!("{number} => {check},\n"))
        })
        .collect();
    if !nothing.is_empty() {
        check_arms += &format!("{} => Ok(()),\n", pattern(&nothing));
    }
    if cases.len() as u64 != 1 << (8 * tag_size) {
        check_arms += "_ => Err(from.broken(wire::Rule::Discriminant, at)),\n";
    }
    let read_arms = arms(&|number, case, case_name| {
        let number = if number + 1 == cases.len() {
            "_".to_owned()
        } else {
            number.to_string()
        };
        match &case.payload {
            None => format!("{number} => {view_name}::{case_name},\n"),
            Some(ty) => format!(
                "{number} => {view_name}::{case_name}({}),\n",
                read(package, ty, payload_offset)
            ),
        }
    });
    let read = match cases {
        // One case needs no `match`.
        [case] => match &case.payload {
            None => format!("let _ = (from, at); {view_name}::{}", camel(&case.name)),
            Some(ty) => format!(
                "{view_name}::{}({})",
                camel(&case.name),
                read(package, ty, payload_offset)
            ),
        },
        _ => format!("match from.{word}(at) {{ {read_arms} }}"),
    };
    let own = arms(&|_, case, case_name| match &case.payload {
        None => format!("{view_name}::{case_name} => {name}::{case_name},\n"),
        Some(ty) => format!(
            "{view_name}::{case_name}(value) => {name}::{case_name}({}),\n",
            own(package, ty, "value")
        ),
    });
    let borrowed = arms(&|_, case, case_name| match &case.payload {
        None => format!("{name}::{case_name} => {view_name}::{case_name},\n"),
        Some(ty) => {
            let value = borrow(package, ty, "value", true);
            format!("{name}::{case_name}(value) => {view_name}::{case_name}({value}),\n")
        }
    });
    functions(
        out,
        &name,
        viewed,
        Some(&format!("match from.bytes().{word}(at) {{ {check_arms} }}")),
        &read,
        &format!("match view {{ {own} }}"),
        &format!("match self {{ {borrowed} }}"),
    );
}

/// A pattern of ascending numbers. Three or more consecutive numbers are a range, as clippy
/// requires.
fn pattern(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let patterns: Vec<_> = runs
        .flat_map(|run| match run {
            [first, _, .., last] => vec![format!("{first}..={last}")],
            few => few.iter().map(ToString::to_string).collect(),
        })
        .collect();
    patterns.join(" | ")
}

/// Declares the cases. `default` is the case with `#[default]`.
fn declare_cases(
    out: &mut String,
    cases: &[Case],
    default: Option<usize>,
    ty: &dyn Fn(&Type) -> String,
) {
    for (place, case) in cases.iter().enumerate() {
        docs(out, &case.docs);
        if default == Some(place) {
            line(out, "#[default]");
        }
        let payload = case
            .payload
            .as_ref()
            .map_or(String::new(), |payload| format!("({})", ty(payload)));
        line(out, &format!("{}{payload},", camel(&case.name)));
    }
    line(out, "}");
}

/// Encodes an owned value as its view.
fn by_view(out: &mut String, name: &str, handles: &str) {
    let handles = match handles {
        "" => "",
        _ => "self.as_view().handles(given)",
    };
    encode_impl(out, name, name, "self.as_view().encode(to, at);", handles);
}

/// `handles` is empty if the type has no handles.
fn encode_impl(out: &mut String, who: &str, name: &str, body: &str, handles: &str) {
    let handles = match handles {
        "" => String::new(),
        count => format!(
            "
                fn handles(&self, given: bool) -> u32 {{
                    {count}
                }}"
        ),
    };
    line(
        out,
        &format!(
            "
            impl wire::Encode for {who} {{
                type As = {name};

                #[inline(always)]
                fn encode(&self, to: &mut wire::Encoder<'_>, at: u32) {{
                    {body}
                }}
                {handles}
            }}"
        ),
    );
}

/// The four functions of `wire::Decode`, and the brace after them.
fn functions(
    out: &mut String,
    name: &str,
    viewed: bool,
    check: Option<&str>,
    read: &str,
    own: &str,
    borrowed: &str,
) {
    let check = match check {
        Some(body) => format!(
            "fn check(from: &mut wire::Checker<'_>, at: u32) -> Result<(), wire::Malformed> {{ {body} }}"
        ),
        None => {
            "fn check(_: &mut wire::Checker<'_>, _: u32) -> Result<(), wire::Malformed> { Ok(()) }"
                .to_owned()
        }
    };
    let (of_a, of_any) = if viewed {
        (format!("{name}View<'a>"), format!("{name}View<'_>"))
    } else {
        (name.to_owned(), name.to_owned())
    };
    let (own, borrowed) = if viewed {
        (own, borrowed)
    } else {
        ("view", "*self")
    };
    line(
        out,
        &format!(
            "#[inline]
            {check}

            #[inline(always)]
            fn view<'a>(from: wire::Bytes<'a>, at: u32) -> {of_a} {{
                {read}
            }}

            fn owned(view: {of_any}) -> {name} {{
                {own}
            }}

            #[inline]
            fn as_view(&self) -> {of_any} {{
                {borrowed}
            }}
        }}"
        ),
    );
}

/// `std::error::Error` for an error type.
pub fn error(out: &mut String, package: &Package, def: &TypeDef) {
    let name = camel(&def.name);
    let words = |name: &str| name.replace('-', " ");
    let body = match &def.kind {
        TypeDefKind::Variant { cases, .. } => {
            let arms: String = cases
                .iter()
                .map(|case| {
                    let case_name = camel(&case.name);
                    let words = words(&case.name);
                    match &case.payload {
                        None => format!("{name}::{case_name} => f.write_str({words:?}),\n"),
                        Some(ty) if types::resolve_alias(package, ty).kind == TypeKind::String => {
                            format!(
                                "{name}::{case_name}(text) => write!(f, \"{words}: {{text}}\"),\n"
                            )
                        }
                        Some(_) => format!(
                            "{name}::{case_name}(value) => write!(f, \"{words}: {{value:?}}\"),\n"
                        ),
                    }
                })
                .collect();
            format!("match self {{ {arms} }}")
        }
        TypeDefKind::Enum(labels) => {
            let arms: String = labels
                .iter()
                .map(|label| {
                    format!(
                        "{name}::{} => {:?},\n",
                        camel(&label.name),
                        words(&label.name)
                    )
                })
                .collect();
            format!("f.write_str(match self {{ {arms} }})")
        }
        _ => "write!(f, \"{self:?}\")".to_owned(),
    };
    line(
        out,
        &format!(
            "
            impl std::fmt::Display for {name} {{
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{
                    {body}
                }}
            }}

            impl std::error::Error for {name} {{}}"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn three_numbers_in_a_row_are_a_range() {
        assert_eq!(pattern(&[0]), "0");
        assert_eq!(pattern(&[0, 1, 3]), "0 | 1 | 3");
        assert_eq!(pattern(&[0, 1, 2, 4, 6, 7, 8, 9]), "0..=2 | 4 | 6..=9");
    }
}
