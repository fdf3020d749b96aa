//! `thalweg.h` and `abi.rs` say the same: every constant's value, every field's name, type and place.

use std::collections::BTreeMap;

const HEADER: &str = include_str!("../../../bindings/c/include/thalweg.h");
const MIRROR: &str = include_str!("../src/abi.rs");

/// What a file declares: constants by name, and by the name of a struct its fields in their order, as Rust's
/// types without spaces.
#[derive(Debug, Default, PartialEq)]
struct Declared {
    constants: BTreeMap<String, u64>,
    structs: BTreeMap<String, Vec<(String, String)>>,
}

/// The text between `begin` and `end`, wherever they stand, and what precedes it on its line is not looked at.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> impl Iterator<Item = &'a str> {
    text.split(begin)
        .skip(1)
        .map(move |rest| rest.split(end).next().unwrap_or(rest))
}

fn number(text: &str) -> u64 {
    match text.trim() {
        "UINT64_MAX" | "u64::MAX" => u64::MAX,
        digits => digits
            .trim_end_matches('u')
            .parse()
            .unwrap_or_else(|_| panic!("{digits} is no number")),
    }
}

/// `tw_completion` as `TwCompletion`.
fn rust_name(name: &str) -> String {
    name.split('_')
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect()
}

/// `const tw_method *` as `*constTwMethod`.
fn rust_type(c: &str) -> String {
    let words = c.replace('*', " * ");
    let mut constant = false;
    let mut out = String::new();
    for word in words.split_whitespace() {
        match word {
            "const" => constant = true,
            "*" => {
                let kind = if constant { "*const" } else { "*mut" };
                out.insert_str(0, kind);
                constant = false;
            }
            "void" => out.push_str("c_void"),
            "char" => out.push_str("c_char"),
            "int" => out.push_str("c_int"),
            other => match other.strip_suffix("_t") {
                Some(fixed) => {
                    out.push_str(&fixed.replace("uint", "u").replace("int", "i"));
                }
                None => out.push_str(&rust_name(other)),
            },
        }
    }
    out
}

/// `tw_handle port` as name and type; also `char message[248]`.
fn declarator(text: &str) -> (String, String) {
    let text = text.trim();
    let at = text
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '[' || c == ']'))
        .expect("a type and a name");
    let (of, name) = (&text[..=at], &text[at + 1..]);
    match name.split_once('[') {
        None => (name.to_owned(), rust_type(of)),
        Some((name, size)) => (
            name.to_owned(),
            format!("[{};{}]", rust_type(of), size.trim_end_matches(']')),
        ),
    }
}

/// A field of a struct of the header.
fn c_field(text: &str) -> (String, String) {
    let Some((result, rest)) = text.split_once("(*") else {
        return declarator(text);
    };
    let (name, parameters) = rest.split_once(")(").expect("a function's parameters");
    let parameters = match parameters.trim_end().trim_end_matches(')') {
        "void" => String::new(),
        some => some
            .split(',')
            .map(|parameter| declarator(parameter).1)
            .collect::<Vec<_>>()
            .join(","),
    };
    let result = match result.trim() {
        "void" => String::new(),
        some => format!("->{}", rust_type(some)),
    };
    (
        name.to_owned(),
        format!("unsafeextern\"C\"fn({parameters}){result}"),
    )
}

fn header() -> Declared {
    let mut code = String::new();
    for (at, part) in HEADER.split("/*").enumerate() {
        code += if at == 0 {
            part
        } else {
            part.split_once("*/").expect("comments end").1
        };
    }
    let mut found = Declared::default();
    for line in code.lines() {
        if let Some(define) = line.strip_prefix("#define TW_")
            && let Some((name, value)) = define.split_once(' ')
        {
            found.constants.insert(format!("TW_{name}"), number(value));
        }
    }
    for codes in between(&code, "enum tw_code {", "}") {
        for code in codes.split(',') {
            let (name, value) = code.split_once('=').expect("a code has a number");
            found
                .constants
                .insert(name.trim().to_owned(), number(value));
        }
    }
    for body in between(&code, "typedef struct ", "} tw_") {
        let (name, fields) = body.split_once('{').expect("a struct has a body");
        let fields = fields.split(';').map(str::trim);
        found.structs.insert(
            rust_name(name.trim()),
            fields.filter(|f| !f.is_empty()).map(c_field).collect(),
        );
    }
    found
}

fn mirror() -> Declared {
    let code: String = MIRROR
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut found = Declared::default();
    for constant in between(&code, "pub const ", ";") {
        let (name, value) = constant.split_once(':').expect("a type");
        let value = value.split_once('=').expect("a value").1;
        if !value.contains('"') {
            found.constants.insert(name.to_owned(), number(value));
        }
    }
    for body in between(&code, "pub struct ", "\n}") {
        let (name, fields) = body.split_once(" {").expect("a struct has a body");
        let fields = fields.split("pub ").map(|field| {
            let plain: String = field.chars().filter(|c| !c.is_whitespace()).collect();
            plain.trim_end_matches(',').to_owned()
        });
        let fields = fields.filter(|field| !field.is_empty()).map(|field| {
            let (name, of) = field.split_once(':').expect("a field has a type");
            // Where a function's parameters stand a line each, the last has a comma.
            (name.to_owned(), of.replace(",)", ")"))
        });
        found.structs.insert(name.to_owned(), fields.collect());
    }
    found
}

#[test]
fn the_mirror_is_the_header() {
    let (mut header, mirror) = (header(), mirror());
    // Of messages, which Rust reads with `thalweg_wire`.
    assert!(header.structs.remove("TwSlice").is_some());
    assert!(header.structs.remove("TwMessage").is_some());
    assert_eq!(header.constants, mirror.constants);
    assert_eq!(
        header.structs.keys().collect::<Vec<_>>(),
        mirror.structs.keys().collect::<Vec<_>>()
    );
    for (name, fields) in &header.structs {
        assert_eq!(fields, &mirror.structs[name], "fields of {name}");
    }
    assert!(header.structs["TwTable"].len() > 20 && header.constants["TW_WOULD_PARK"] == 14);
}

/// What the C test says of null pointers names each function of the table: a new one cannot be forgotten.
#[test]
fn every_function_is_tried_with_null_pointers() {
    let file = include_str!("../../../bindings/c/tests/ports.c");
    let test = "null_pointer_is_refused_by_every_function(void) {";
    let body = between(file, test, "\n}").next().expect("the test");
    let functions = header().structs["TwTable"].clone();
    let functions = functions
        .iter()
        .filter(|(_, of)| of.starts_with("unsafeextern"));
    for (name, of) in functions {
        let takes_nothing_to_be_null = of.contains("fn()");
        let tried = body.split(&format!("table->{name}(")).skip(1).any(|call| {
            call.split(';')
                .next()
                .is_some_and(|call| call.contains("NULL"))
        });
        assert!(
            tried || takes_nothing_to_be_null,
            "{name} is not tried with NULL"
        );
    }
}
