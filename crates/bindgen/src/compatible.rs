//! Checks whether a program that was generated from one version of a package can open a library of
//! another version. The result is the same as that of `tw_table_check`, and of the other languages'
//! checks when they open a library.

use thalweg_wire::describe::Type;
use thalweg_wire::evolve::{Comparison, compare};

use crate::hash::Describer;
use crate::model::{Function, Package, Position};

/// A difference between two packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The position of the difference in one of the two packages.
    pub position: Position,
    /// A description of the difference.
    pub what: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Position { file, line, column } = &self.position;
        write!(f, "{}:{line}:{column}: {}", file.display(), self.what)
    }
}

/// The result of [`check_compatibility`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompatibilityReport {
    /// The differences for which a program refuses to open the library. If there are none, it opens
    /// the library.
    pub differences: Vec<Difference>,
    /// The parts that only one side has. They do not prevent a program from opening the library.
    pub additions: Vec<Difference>,
}

/// Compares the package that a program was generated from with the package that a library is built
/// from.
///
/// # Panics
/// One of the packages has no functions. A parsed package always has one.
pub fn check_compatibility(program: &Package, library: &Package) -> CompatibilityReport {
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
        && compatible_range(&our_version)
            .is_none_or(|ours| compatible_range(&their_version) != Some(ours))
    {
        let what = format!("versions {our_version} and {their_version} are not compatible");
        found.differ(first, what);
    }
    let ours = described(program, &program.functions);
    let theirs = described(library, &library.functions);
    for (our, known) in &ours {
        match named(&theirs, our) {
            Some(theirs) => found.check((our, known), theirs, false),
            None => {
                let what = format!("`{}` is missing in the library", our.full_name);
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
    let imports = |package: &Package| {
        package
            .host
            .as_ref()
            .map_or(Vec::new(), |host| host.functions.clone())
    };
    let (ours, theirs) = (imports(program), imports(library));
    if let (Some(first), true) = (ours.first(), theirs.is_empty()) {
        let what = "it has no host imports any more";
        found.differ(&first.position, what.to_owned());
    }
    let ours = described(program, &ours);
    for (theirs, there) in described(library, &theirs) {
        match named(&ours, theirs) {
            Some(ours) => found.check(ours, (theirs, &there), true),
            None => {
                let name = &theirs.full_name;
                let what = format!(
                    "it has the host import `{name}`, which hosts of the program do not provide"
                );
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

    /// Compares a function of the program with that of the library, each with the description of
    /// its types. `is_import`: the library calls the function.
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
            // The program writes the parameters of functions, and the results of host imports.
            let is_written_there = (part == "parameters") == is_import;
            let (reader, writer) = match is_written_there {
                true => (known, there),
                false => (there, known),
            };
            let name = &ours.full_name;
            let (Ok(reader), Ok(writer)) = (Type::parse(reader), Type::parse(writer)) else {
                let what = format!("incompatible {part} of `{name}`");
                self.differ(&theirs.position, what);
                continue;
            };
            let Comparison {
                differences,
                additions,
            } = compare(&reader, &writer);
            for difference in differences {
                let what = format!("incompatible {part} of `{name}`: {difference}");
                self.differ(&theirs.position, what);
            }
            for addition in additions {
                // If the library is the writer, the reader is the program.
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

/// The function with the same name in `among`.
fn named<'a>(
    among: &'a [(&'a Function, String)],
    function: &Function,
) -> Option<(&'a Function, &'a str)> {
    let mut among = among.iter();
    let found = among.find(|(other, _)| other.full_name == function.full_name);
    found.map(|(function, text)| (*function, text.as_str()))
}

/// The first three lines of a description. The fourth, the stream element, is a part of the result.
const PARTS: [&str; 3] = ["parameters", "result", "error"];

/// The functions of a package, with the descriptions of their types.
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

/// The part that compatible versions have in common: the major number, or the minor number of 0.x.
/// `None`: only an equal version is compatible.
fn compatible_range(version: &str) -> Option<(u32, u32)> {
    let numbers = version.split('.').map(str::parse::<u32>);
    let numbers: Vec<_> = numbers.collect::<Result<_, _>>().ok()?;
    match numbers[..] {
        [0, minor, _] if minor > 0 => Some((0, minor)),
        [major, _, _] if major > 0 => Some((major, 0)),
        _ => None,
    }
}
