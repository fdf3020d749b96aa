//! Whether a program that was generated from one package opens a library of a later one, as `tw_table_check` and the other languages' checks
//! decide when they open it.

use crate::model::{Function, Hashes, Package, Position};

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

/// How many functions `library` has behind those that `program` knows.
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
    for (place, ours) in program.functions.iter().enumerate() {
        let Some(theirs) = library.functions.get(place) else {
            return differ(
                &ours.position,
                format!("`{}` is not there any more", ours.full_name),
            );
        };
        check(ours, theirs)?;
    }
    let asks = |package: &Package| {
        package
            .host
            .as_ref()
            .map_or(Vec::new(), |host| host.functions.clone())
    };
    let (ours, theirs) = (asks(program), asks(library));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        check(ours, theirs)?;
    }
    if let Some(more) = theirs.get(ours.len()) {
        return differ(
            &more.position,
            format!(
                "it asks its host for `{}`, which hosts do not have",
                more.full_name
            ),
        );
    }
    if let Some(less) = ours.get(theirs.len()) {
        return differ(
            &less.position,
            format!("it does not ask its host for `{}` any more", less.full_name),
        );
    }
    Ok(library.functions.len() - program.functions.len())
}

fn check(ours: &Function, theirs: &Function) -> Result<(), Difference> {
    let differ = |what: String| {
        Err(Difference {
            position: theirs.position.clone(),
            what,
        })
    };
    if ours.full_name != theirs.full_name {
        return differ(format!(
            "`{}` stands where `{}` stood: functions are added at the end",
            theirs.full_name, ours.full_name
        ));
    }
    let parts = |hashes: Hashes| {
        [
            ("parameters", hashes.params),
            ("result", hashes.ok),
            ("error", hashes.error),
            ("element", hashes.element),
        ]
    };
    let mut both = parts(ours.hashes).into_iter().zip(parts(theirs.hashes));
    match both.find(|(ours, theirs)| ours != theirs) {
        Some(((part, _), _)) => differ(format!("the {part} of `{}` differ", ours.full_name)),
        None => Ok(()),
    }
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
