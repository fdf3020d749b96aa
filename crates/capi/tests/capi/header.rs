//! Compares `thalweg.h` with `abi.rs`, and `thalweg_guest.h` with its mirror in `crates/guest`: the values of all constants, and the names, types and order
//! of all fields.

use std::collections::BTreeMap;

const HEADER: &str = include_str!("../../../../bindings/c/include/thalweg.h");
const MIRROR: &str = include_str!("../../src/abi.rs");
const GUEST_HEADER: &str = include_str!("../../../../bindings/c/include/thalweg_guest.h");
const GUEST_MIRROR: &str = include_str!("../../../guest/src/abi.rs");

/// The declarations of a file: constants by name, and the fields of each struct in their order.
/// Types are Rust types without spaces.
#[derive(Debug, Default, PartialEq)]
struct Declared {
    constants: BTreeMap<String, u64>,
    structs: BTreeMap<String, Vec<(String, String)>>,
}

/// All texts between `begin` and the next `end`.
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
            .unwrap_or_else(|_| panic!("{digits} is not a number")),
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

/// The name and type of a declaration such as `tw_handle port` or `char message[248]`.
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

/// The name and type of a field in the header.
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

fn header(text: &str) -> Declared {
    let mut code = String::new();
    for (at, part) in text.split("/*").enumerate() {
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

fn mirror(text: &str) -> Declared {
    let code: String = text
        .replace("pub(crate) ", "pub ")
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
            // rustfmt writes a comma after the last of several lines of parameters.
            (name.to_owned(), of.replace(",)", ")"))
        });
        found.structs.insert(name.to_owned(), fields.collect());
    }
    found
}

#[test]
fn abi_rs_declares_the_same_as_the_header() {
    let (mut header, mirror) = (header(HEADER), mirror(MIRROR));
    // Rust reads messages with `thalweg_wire`.
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

#[test]
fn mirror_of_the_guest_abi_declares_the_same_as_its_header() {
    let (header, mut mirror) = (header(GUEST_HEADER), mirror(GUEST_MIRROR));
    for fields in mirror.structs.values_mut() {
        for (_, of) in fields {
            // A function that the guest may leave out is an option.
            if let Some(function) = of.strip_prefix("Option<") {
                *of = function.trim_end_matches('>').to_owned();
            }
        }
    }
    assert_eq!(header, mirror);
    assert!(header.structs["TwGuestCore"].len() > 10);
}

/// Ensures that the C test of null pointers covers every function of the table.
#[test]
fn c_test_calls_every_function_with_null_pointers() {
    let file = include_str!("../../../../bindings/c/tests/ports.c");
    let test = "null_pointer_is_refused_by_every_function(void) {";
    let body = between(file, test, "\n}").next().expect("the test");
    let functions = header(HEADER).structs["TwTable"].clone();
    let functions = functions
        .iter()
        .filter(|(_, of)| of.starts_with("unsafeextern"));
    for (name, of) in functions {
        let has_no_parameters = of.contains("fn()");
        let is_tested = body.split(&format!("table->{name}(")).skip(1).any(|call| {
            call.split(';')
                .next()
                .is_some_and(|call| call.contains("NULL"))
        });
        assert!(
            is_tested || has_no_parameters,
            "{name} is not called with NULL"
        );
    }
}
