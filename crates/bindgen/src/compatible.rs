//! Whether a program that was generated from one package opens a library of a later one, as `tw_table_check` and the other languages' checks
//! decide when they open it.

use thalweg_wire::describe::Type;
use thalweg_wire::evolve::fits;

use crate::hash::Texts;
use crate::model::{Function, Package, Position};

/// The first thing for which a program of one package refuses a library of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In which file it is seen.
    pub position: Position,
    /// What differs.
    pub what: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Position { file, line, column } = &self.position;
        write!(f, "{}:{line}:{column}: {}", file.display(), self.what)
    }
}

/// How many functions `library` has besides those that `program` knows.
///
/// # Errors
/// It does not have all that `program` knows as it knows it, or asks its host for something else.
///
/// # Panics
/// Either package has no function; a parsed one has.
pub fn compatible(program: &Package, library: &Package) -> Result<usize, Difference> {
    let differ = |position: &Position, what: String| {
        Err(Difference {
            position: position.clone(),
            what,
        })
    };
    let first = &library.functions[0].position;
    let id = |package: &Package| {
        let Package {
            namespace,
            name,
            version,
            ..
        } = package;
        (format!("{namespace}:{name}"), version.clone())
    };
    let ((ours, our_version), (theirs, their_version)) = (id(program), id(library));
    if ours != theirs {
        return differ(first, format!("it is {theirs}, not {ours}"));
    }
    if our_version != their_version
        && line(&our_version).is_none_or(|ours| line(&their_version) != Some(ours))
    {
        return differ(
            first,
            format!("versions {our_version} and {their_version} are not of one line"),
        );
    }
    let theirs = described(library, &library.functions);
    for (ours, known) in described(program, &program.functions) {
        match named(&theirs, ours) {
            Some(theirs) => check((ours, &known), theirs, false)?,
            None => {
                let what = format!("`{}` is not there any more", ours.full_name);
                return differ(&ours.position, what);
            }
        }
    }
    let asks = |package: &Package| {
        package
            .host
            .as_ref()
            .map_or(Vec::new(), |host| host.functions.clone())
    };
    let (ours, theirs) = (asks(program), asks(library));
    if let (Some(first), true) = (ours.first(), theirs.is_empty()) {
        let what = "it does not ask its host for anything any more";
        return differ(&first.position, what.to_owned());
    }
    let ours = described(program, &ours);
    for (theirs, there) in described(library, &theirs) {
        match named(&ours, theirs) {
            Some(ours) => check(ours, (theirs, &there), true)?,
            None => {
                let name = &theirs.full_name;
                let what = format!("it asks its host for `{name}`, which hosts do not have");
                return differ(&theirs.position, what);
            }
        }
    }
    Ok(library.functions.len() - program.functions.len())
}

/// A function of each side with the texts of its types: what a program knows, and what the library has. `is_import`: the library calls it.
fn check(
    (ours, known): (&Function, &str),
    (theirs, there): (&Function, &str),
    is_import: bool,
) -> Result<(), Difference> {
    let differ = |what: String| {
        Err(Difference {
            position: theirs.position.clone(),
            what,
        })
    };
    for (was, is, what) in [
        (
            ours.options.is_inline,
            theirs.options.is_inline,
            "is not inline",
        ),
        (
            ours.options.notice_ns > 0,
            theirs.options.notice_ns > 0,
            "has no notices",
        ),
    ] {
        if was && !is {
            return differ(format!("`{}` {what} any more", ours.full_name));
        }
    }
    let texts = known.split('\n').zip(there.split('\n'));
    for (part, (known, there)) in PARTS.into_iter().zip(texts) {
        if known == there {
            continue;
        }
        // Whose value it is: the program writes the parameters, but of what it is asked the results.
        let is_written_there = (part == "parameters") == is_import;
        let (reader, writer) = match is_written_there {
            true => (known, there),
            false => (there, known),
        };
        let why = match (Type::parse(reader), Type::parse(writer)) {
            (Ok(reader), Ok(writer)) => match fits(&reader, &writer) {
                Ok(()) => continue,
                Err(difference) => format!(": {difference}"),
            },
            _ => String::new(),
        };
        return differ(format!("the {part} of `{}` differ{why}", ours.full_name));
    }
    Ok(())
}

/// The function that has the same name among these.
fn named<'a>(
    among: &'a [(&'a Function, String)],
    function: &Function,
) -> Option<(&'a Function, &'a str)> {
    let mut among = among.iter();
    let found = among.find(|(other, _)| other.full_name == function.full_name);
    found.map(|(function, text)| (*function, text.as_str()))
}

const PARTS: [&str; 4] = ["parameters", "result", "error", "element"];

/// Functions of a package with the texts of their types.
fn described<'a>(package: &Package, functions: &'a [Function]) -> Vec<(&'a Function, String)> {
    let texts = Texts {
        types: &package.types,
        resources: &package.resources,
    };
    let described = functions.iter();
    described
        .map(|function| (function, texts.of_description(function)))
        .collect()
}

/// What the versions have in common in which functions are only added: the major number, and of 0.x the minor one. `None`: only the same
/// version fits.
fn line(version: &str) -> Option<(u32, u32)> {
    let numbers = version.split('.').map(str::parse::<u32>);
    let numbers: Vec<_> = numbers.collect::<Result<_, _>>().ok()?;
    match numbers[..] {
        [0, minor, _] if minor > 0 => Some((0, minor)),
        [major, _, _] if major > 0 => Some((major, 0)),
        _ => None,
    }
}
