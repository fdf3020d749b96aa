//! The named types: structs, variants, enums, flags and aliases, each with its codec.

use super::names::{Names, Scope, identifier};
use super::source::Source;
use crate::model::{Case, Field, Label, Type, TypeDef, TypeDefKind};

/// Declares the types that resources refer to.
pub(super) fn forward(names: &Names<'_>, out: &mut Source) {
    out.open(&names.namespace);
    out.lines(
        "/// The tables of the methods and host imports in the C header.\n\
         struct package_tables {",
    );
    for (function, what) in [("methods", "functions"), ("imports", "host imports")] {
        let is_empty = match what {
            "functions" => names.package.functions.is_empty(),
            _ => names.package.host.is_none(),
        };
        if !is_empty {
            out.line(&format!(
                "  static const tw_method *{function}() noexcept {{"
            ));
            out.line(&format!("    return ::{}_{function};", names.prefix));
            out.line("  }");
        }
    }
    out.line("};");
    out.blank();
    for (definition, name) in names.package.types.iter().zip(&names.types) {
        match definition.kind {
            TypeDefKind::Record(_) | TypeDefKind::Variant { .. } => {
                out.line(&format!("struct {name};"));
            }
            TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => {
                if let Some(number) = number(definition) {
                    out.line(&format!("enum class {name} : {number};"));
                } else {
                    out.line(&format!("struct {name};"));
                }
            }
            TypeDefKind::Alias(_) => {}
        }
    }
    out.close(&names.namespace);
}

/// The number that an enum or flags are in messages; none for flags of several words.
fn number(definition: &TypeDef) -> Option<&'static str> {
    match definition.size {
        1 => Some("std::uint8_t"),
        2 => Some("std::uint16_t"),
        4 => Some("std::uint32_t"),
        _ => None,
    }
}

/// Writes all types, each after those that it uses.
pub(super) fn emit(names: &Names<'_>, out: &mut Source) {
    emit_if(names, |_| true, out);
}

/// The same for a guest, whose functions use no types with streams inside.
pub(super) fn emit_for_guest(names: &Names<'_>, out: &mut Source) {
    emit_if(
        names,
        |definition| !names.definition_has_streams(definition),
        out,
    );
}

fn emit_if(names: &Names<'_>, is_used: impl Fn(&TypeDef) -> bool, out: &mut Source) {
    let all = names.package.types.iter().zip(&names.types);
    for (definition, name) in all.filter(|(definition, _)| is_used(definition)) {
        out.open(&names.namespace);
        let codec = match &definition.kind {
            TypeDefKind::Record(fields) => Some(record(names, definition, name, fields, out)),
            TypeDefKind::Variant {
                cases,
                tag_size,
                payload_offset,
            } => {
                let layout = (*tag_size, *payload_offset);
                Some(variant(names, definition, name, cases, layout, out))
            }
            TypeDefKind::Enum(labels) => Some(enumeration(names, definition, name, labels, out)),
            TypeDefKind::Flags(labels) => Some(flags(names, definition, name, labels, out)),
            TypeDefKind::Alias(target) => {
                alias(names, definition, name, target, out);
                None
            }
        };
        out.blank();
        out.close(&names.namespace);
        if let Some(codec) = codec {
            out.line("template <>");
            out.line(&format!(
                "struct thalweg::codec<{}> : {codec} {{}};",
                names.qualified(name)
            ));
            out.blank();
        }
    }
}

fn alias(names: &Names<'_>, definition: &TypeDef, name: &str, target: &Type, out: &mut Source) {
    out.docs("", &definition.docs);
    out.line(&format!("using {name} = {};", names.ty(target)));
}

/// Compares two values of a struct, unless it contains handles.
fn comparison(names: &Names<'_>, definition: &TypeDef, name: &str, out: &mut Source) {
    if !names.definition_has_handles(definition) {
        out.line(&format!(
            "  friend bool operator==(const {name} &, const {name} &) = default;"
        ));
    }
}

fn record(
    names: &Names<'_>,
    definition: &TypeDef,
    name: &str,
    fields: &[Field],
    out: &mut Source,
) -> String {
    let qualified = names.qualified(name);
    let mut codec = format!(
        "thalweg::detail::record_codec<{qualified}, {}, {}",
        definition.size, definition.align
    );
    let mut scope = Scope::default();
    scope.claim(name.to_owned()); // a member must not have the name of its class
    out.docs("", &definition.docs);
    out.line(&format!("struct {name} {{"));
    for field in fields {
        let member = scope.claim(identifier(&field.name));
        out.docs("  ", &field.docs);
        out.line(&format!("  {} {member}{{}};", names.ty(&field.ty)));
        codec.push_str(&format!(
            ", thalweg::detail::field<&{qualified}::{member}, {}>",
            field.offset
        ));
    }
    comparison(names, definition, name, out);
    out.line("};");
    codec + ">"
}

fn variant(
    names: &Names<'_>,
    definition: &TypeDef,
    name: &str,
    cases: &[Case],
    (tag_size, payload_offset): (u32, u32),
    out: &mut Source,
) -> String {
    let qualified = names.qualified(name);
    let mut codec = format!(
        "thalweg::detail::variant_codec<{qualified}, {tag_size}, {payload_offset}, {}, {}",
        definition.size, definition.align
    );
    let mut scope = Scope::default();
    for taken in [name, "value", "get_if"] {
        scope.claim(taken.to_owned());
    }
    let mut all = Vec::new();
    out.docs("", &definition.docs);
    out.line(&format!("struct {name} {{"));
    for case in cases {
        let class = scope.claim(identifier(&case.name));
        out.docs("  ", &case.docs);
        out.line(&format!("  struct {class} {{"));
        if let Some(payload) = &case.payload {
            out.line(&format!("    {} value;", names.ty(payload)));
        }
        if !case
            .payload
            .as_ref()
            .is_some_and(|ty| names.has_handles(ty))
        {
            out.line(&format!(
                "    friend bool operator==(const {class} &, const {class} &) = default;"
            ));
        }
        out.line("  };");
        codec.push_str(&format!(", {qualified}::{class}"));
        all.push(class);
    }
    out.line(&format!("  std::variant<{}> value{{}};", all.join(", ")));
    out.line("  /// The case, or NULL.");
    out.line("  template <class Case> const Case *get_if() const noexcept {");
    out.line("    return std::get_if<Case>(&value);");
    out.line("  }");
    comparison(names, definition, name, out);
    out.line("};");
    codec + ">"
}

fn enumeration(
    names: &Names<'_>,
    definition: &TypeDef,
    name: &str,
    labels: &[Label],
    out: &mut Source,
) -> String {
    let number = number(definition).unwrap_or("std::uint32_t");
    let mut scope = Scope::default();
    out.docs("", &definition.docs);
    out.line(&format!("enum class {name} : {number} {{"));
    for (index, label) in labels.iter().enumerate() {
        out.docs("  ", &label.docs);
        let label = scope.claim(identifier(&label.name));
        out.line(&format!("  {label} = {index},"));
    }
    out.line("};");
    format!(
        "thalweg::detail::enum_codec<{}, {}>",
        names.qualified(name),
        labels.len()
    )
}

/// Flags of up to 32 labels are an enum of bits; others are words, with constants for their bits.
fn flags(
    names: &Names<'_>,
    definition: &TypeDef,
    name: &str,
    labels: &[Label],
    out: &mut Source,
) -> String {
    let qualified = names.qualified(name);
    let mut scope = Scope::default();
    out.docs("", &definition.docs);
    let Some(number) = number(definition) else {
        for taken in [name, "words", "has", "set"] {
            scope.claim(taken.to_owned());
        }
        out.line(&format!("struct {name} {{"));
        for (index, label) in labels.iter().enumerate() {
            out.docs("  ", &label.docs);
            let label = scope.claim(identifier(&label.name));
            out.line(&format!(
                "  static constexpr std::size_t {label} = {index};"
            ));
        }
        out.line(&format!(
            "  std::array<std::uint32_t, {}> words{{}};",
            definition.size.div_ceil(4)
        ));
        out.lines(
            "  [[nodiscard]] constexpr bool has(std::size_t flag) const noexcept {\n    \
               return (words[flag / 32] >> flag % 32 & 1) != 0;\n  \
             }\n  \
             constexpr void set(std::size_t flag) noexcept {\n    \
               words[flag / 32] |= std::uint32_t{1} << flag % 32;\n  \
             }",
        );
        comparison(names, definition, name, out);
        out.line("};");
        return format!(
            "thalweg::detail::record_codec<{qualified}, {}, {}, thalweg::detail::field<&{qualified}::words, 0>>",
            definition.size, definition.align
        );
    };
    out.line(&format!("enum class {name} : {number} {{"));
    for (index, label) in labels.iter().enumerate() {
        out.docs("  ", &label.docs);
        let label = scope.claim(identifier(&label.name));
        out.line(&format!("  {label} = 0x{:x},", 1u64 << index));
    }
    out.line("};");
    out.line(&format!("THALWEG_FLAGS({name})"));
    let mask = u64::MAX >> (64 - labels.len().clamp(1, 64));
    format!("thalweg::detail::flags_codec<{qualified}, 0x{mask:x}>")
}
