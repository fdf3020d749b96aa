//! Whether a program that was generated from one package opens a library of a later one, as `tw_table_check` and the other languages' checks
//! decide when they open it.

use thalweg_wire::describe::Type;
use thalweg_wire::evolve::{Comparison, compare};

use crate::hash::Describer;
use crate::model::{Function, Package, Position};

/// A place where two packages differ.
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

/// What separates two packages: see [`compatible`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompatibilityReport {
    /// All for which a program of the one refuses a library of the other. Empty: it opens it.
    pub differences: Vec<Difference>,
    /// The parts that only one side has. They do not prevent a program from opening the library.
    pub additions: Vec<Difference>,
}

/// Compares the package that programs were generated from with the one that a library is built from.
///
/// # Panics
/// Either package has no function; a parsed one has.
pub fn compatible(program: &Package, library: &Package) -> CompatibilityReport {
    let mut found = CompatibilityReport::default();
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
        found.differ(first, format!("it is {theirs}, not {ours}"));
        return found;
    }
    if our_version != their_version
        && line(&our_version).is_none_or(|ours| line(&their_version) != Some(ours))
    {
        let what = format!("versions {our_version} and {their_version} are not of one line");
        found.differ(first, what);
    }
    let ours = described(program, &program.functions);
    let theirs = described(library, &library.functions);
    for (our, known) in &ours {
        match named(&theirs, our) {
            Some(theirs) => found.check((our, known), theirs, false),
            None => {
                let what = format!("`{}` is not there any more", our.full_name);
                found.differ(&our.position, what);
            }
        }
    }
    for (their, _) in &theirs {
        if named(&ours, their).is_none() {
            let what = format!("`{}` is only in the library", their.full_name);
            found.add(&their.position, what);
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
        found.differ(&first.position, what.to_owned());
    }
    let ours = described(program, &ours);
    for (theirs, there) in described(library, &theirs) {
        match named(&ours, theirs) {
            Some(ours) => found.check(ours, (theirs, &there), true),
            None => {
                let name = &theirs.full_name;
                let what = format!("it asks its host for `{name}`, which hosts do not have");
                found.differ(&theirs.position, what);
            }
        }
    }
    found
}

impl CompatibilityReport {
    fn differ(&mut self, position: &Position, what: String) {
        let position = position.clone();
        self.differences.push(Difference { position, what });
    }

    fn add(&mut self, position: &Position, what: String) {
        let position = position.clone();
        self.additions.push(Difference { position, what });
    }

    /// A function of each side with the texts of its types: what a program knows, and what the library has. `is_import`: the library calls it.
    fn check(
        &mut self,
        (ours, known): (&Function, &str),
        (theirs, there): (&Function, &str),
        is_import: bool,
    ) {
        for (was, is, what) in [
            (
                ours.options.is_inline,
                theirs.options.is_inline,
                "is not inline",
            ),
            (
                ours.options.notice_interval_ns > 0,
                theirs.options.notice_interval_ns > 0,
                "has no notices",
            ),
        ] {
            if was && !is {
                let what = format!("`{}` {what} any more", ours.full_name);
                self.differ(&theirs.position, what);
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
            let name = &ours.full_name;
            let (Ok(reader), Ok(writer)) = (Type::parse(reader), Type::parse(writer)) else {
                let what = format!("the {part} of `{name}` differ");
                self.differ(&theirs.position, what);
                continue;
            };
            let Comparison {
                differences,
                additions,
            } = compare(&reader, &writer);
            for difference in differences {
                let what = format!("the {part} of `{name}` differ: {difference}");
                self.differ(&theirs.position, what);
            }
            for addition in additions {
                // The reader of what is written there is the program.
                let side = match addition.is_reader == is_written_there {
                    true => "program",
                    false => "library",
                };
                let what = format!(
                    "the {part} of `{name}`: `{}` is only in the {side}",
                    addition.path
                );
                self.add(&theirs.position, what);
            }
        }
    }
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

/// The first texts of a description. The last one, the element's, is in the result's.
const PARTS: [&str; 3] = ["parameters", "result", "error"];

/// Functions of a package with the texts of their types.
fn described<'a>(package: &Package, functions: &'a [Function]) -> Vec<(&'a Function, String)> {
    let texts = Describer {
        types: &package.types,
        resources: &package.resources,
    };
    let described = functions.iter();
    described
        .map(|function| (function, texts.describe_function(function)))
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
