//! Enums and flags.

use super::super::defaults;
use super::super::names::{camel, shouted};
use super::super::{docs, line};
use super::{Layout, derives};
use crate::model::{Label, Package, TypeDef};

/// The integer type of the discriminant or the bits.
fn word(size: u32) -> &'static str {
    match size {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        other => {
            unreachable!("wit-parser allows at most 32 flags and 2^32 cases, not {other} bytes")
        }
    }
}

/// An enum.
pub fn enumeration(out: &mut String, package: &Package, def: &TypeDef, cases: &[Label]) {
    let name = camel(&def.name);
    let id = package
        .types
        .iter()
        .position(|other| other.name == def.name)
        .expect("the type is in the package");
    let word = word(def.size);
    line(out, "");
    docs(out, &def.docs);
    line(
        out,
        &format!(
            "{}\n#[repr({word})]\npub enum {name} {{",
            derives(package, id)
        ),
    );
    for (place, case) in cases.iter().enumerate() {
        docs(out, &case.docs);
        if place == defaults::first_label(cases) {
            line(out, "#[default]");
        }
        line(out, &format!("{},", camel(&case.name)));
    }
    line(out, "}");
    line(
        out,
        &format!(
            "
            impl wire::Encode for {name} {{
                type As = {name};

                #[inline]
                fn encode(&self, to: &mut wire::Encoder<'_>, at: u32) {{
                    to.{word}(at, *self as {word});
                }}
            }}"
        ),
    );
    Layout {
        package,
        id,
        depth: 0,
    }
    .begin(out);
    let (last, first) = cases.split_last().expect("WIT has no empty enum");
    let arms: String = first
        .iter()
        .enumerate()
        .map(|(i, case)| format!("{i} => {name}::{},\n", camel(&case.name)))
        .collect();
    // Every value of the word is a case.
    let check = if cases.len() as u64 == 1 << (8 * def.size) {
        "fn check(_: &mut wire::Checker<'_>, _: u32) -> Result<(), wire::Malformed> { Ok(()) }"
            .to_owned()
    } else {
        format!(
            "fn check(from: &mut wire::Checker<'_>, at: u32) -> Result<(), wire::Malformed> {{
                match from.bytes().{word}(at) {{
                    0..{} => Ok(()),
                    _ => Err(from.broken(wire::Rule::Discriminant, at)),
                }}
            }}",
            cases.len()
        )
    };
    let view = if first.is_empty() {
        format!(
            "fn view<'a>(_: wire::Bytes<'a>, _: u32) -> {name} {{ {name}::{} }}",
            camel(&last.name)
        )
    } else {
        format!(
            "fn view<'a>(from: wire::Bytes<'a>, at: u32) -> {name} {{
                match from.{word}(at) {{ {arms} _ => {name}::{}, }}
            }}",
            camel(&last.name)
        )
    };
    line(out, &format!("#[inline]\n{check}\n\n#[inline]\n{view}\n"));
    itself(out, &name);
}

/// Flags: a word with a constant for each bit.
pub fn flags(out: &mut String, package: &Package, def: &TypeDef, flags: &[Label]) {
    let name = camel(&def.name);
    let id = package
        .types
        .iter()
        .position(|other| other.name == def.name)
        .expect("the type is in the package");
    let word = word(def.size);
    let all = if flags.len() == 32 {
        u32::MAX
    } else {
        (1 << flags.len()) - 1
    };
    line(out, "");
    docs(out, &def.docs);
    line(
        out,
        &format!(
            "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]\npub struct {name}({word});"
        ),
    );
    line(out, &format!("\nimpl {name} {{"));
    for (bit, flag) in flags.iter().enumerate() {
        docs(out, &flag.docs);
        line(
            out,
            &format!(
                "pub const {}: Self = Self(1 << {bit});\n",
                shouted(&flag.name)
            ),
        );
    }
    line(
        out,
        &format!(
            "/// No flags.
            pub const fn empty() -> Self {{
                Self(0)
            }}

            /// All flags.
            pub const fn all() -> Self {{
                Self({all:#x})
            }}

            /// The bits; the first flag is bit 0.
            pub const fn bits(self) -> {word} {{
                self.0
            }}

            /// The flags of `bits`. `None` if a bit has no flag.
            pub const fn from_bits(bits: {word}) -> Option<Self> {{
                if bits & !Self::all().0 == 0 {{ Some(Self(bits)) }} else {{ None }}
            }}

            /// Whether all of `other` are set.
            pub const fn contains(self, other: Self) -> bool {{
                self.0 & other.0 == other.0
            }}

            /// Whether no flag is set.
            pub const fn is_empty(self) -> bool {{
                self.0 == 0
            }}
        }}

        impl std::ops::BitOr for {name} {{
            type Output = Self;

            fn bitor(self, other: Self) -> Self {{
                Self(self.0 | other.0)
            }}
        }}

        impl std::ops::BitOrAssign for {name} {{
            fn bitor_assign(&mut self, other: Self) {{
                self.0 |= other.0;
            }}
        }}

        impl std::ops::BitAnd for {name} {{
            type Output = Self;

            fn bitand(self, other: Self) -> Self {{
                Self(self.0 & other.0)
            }}
        }}

        impl std::ops::Not for {name} {{
            type Output = Self;

            fn not(self) -> Self {{
                Self(!self.0 & Self::all().0)
            }}
        }}

        impl wire::Encode for {name} {{
            type As = {name};

            #[inline]
            fn encode(&self, to: &mut wire::Encoder<'_>, at: u32) {{
                to.{word}(at, self.0);
            }}
        }}"
        ),
    );
    Layout {
        package,
        id,
        depth: 0,
    }
    .begin(out);
    let widened = if word == "u32" {
        "from.bytes().u32(at)".to_owned()
    } else {
        format!("u32::from(from.bytes().{word}(at))")
    };
    line(
        out,
        &format!(
            "#[inline]
            fn check(from: &mut wire::Checker<'_>, at: u32) -> Result<(), wire::Malformed> {{
                from.flags(at, {widened}, {})
            }}

            #[inline]
            fn view<'a>(from: wire::Bytes<'a>, at: u32) -> {name} {{
                {name}(from.{word}(at))
            }}
            ",
            flags.len()
        ),
    );
    itself(out, &name);
}

/// The functions of a type that is its own view.
fn itself(out: &mut String, name: &str) {
    line(
        out,
        &format!(
            "#[inline]
            fn owned(view: {name}) -> {name} {{
                view
            }}

            #[inline]
            fn as_view(&self) -> {name} {{
                *self
            }}
        }}"
        ),
    );
}
