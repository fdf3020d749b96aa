//! `thalweg gen`.

use crate::files::{self, State};
use crate::find;
use crate::output::Output;
use clap::builder::PossibleValuesParser;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thalweg_bindgen::model::{Position, TypeDef};
use thalweg_bindgen::{
    FromCode, LANGUAGES, SourceError, from_code as from_code_in, parse, source_of,
    types_without_unknown,
};

/// What `thalweg gen` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A .wit file, or a folder with the files of one package [default: every folder called `wit` below this one]
    paths: Vec<PathBuf>,

    /// A Rust file with a `#[thalweg::service]`: writes its WIT, too, into the folder `wit` beside its `src`. Such WIT knows its code: after the first time `thalweg gen` is enough
    #[arg(long, value_name = "FILE", conflicts_with = "paths")]
    from_code: Option<PathBuf>,

    /// The languages [default: all]
    #[arg(
        long = "lang",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(LANGUAGES.iter().map(|language| language.name))
    )]
    languages: Vec<String>,

    /// Where a folder per language goes [default: `generated` beside the folder `wit`]
    #[arg(long)]
    out: Option<PathBuf>,

    /// Write nothing; name what differs, is missing, or belongs to no package any more
    #[arg(long)]
    check: bool,
}

impl Arguments {
    /// Writes all languages of the package in a folder, beside it.
    pub fn of_wit(folder: PathBuf) -> Self {
        Self {
            paths: vec![folder],
            from_code: None,
            languages: Vec::new(),
            out: None,
            check: false,
        }
    }

    /// Writes the WIT of a Rust file, and all languages.
    pub fn of_code(file: PathBuf) -> Self {
        Self {
            from_code: Some(file),
            paths: Vec::new(),
            ..Self::of_wit(PathBuf::new())
        }
    }

    /// Compares the Rust code of the package in a folder.
    pub fn check_rust(folder: PathBuf) -> Self {
        Self {
            languages: vec!["rust".to_owned()],
            check: true,
            ..Self::of_wit(folder)
        }
    }
}

/// Why nothing could be said or written.
#[derive(Debug)]
pub enum Error {
    /// A construct that cannot be written.
    SourceError(SourceError),
    /// A file that cannot be read or written.
    File(PathBuf, io::Error),
    /// Two packages have the same file.
    Clash(PathBuf),
    /// No path, and no folder `wit` below this one.
    Nothing,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::SourceError(refused) => refused.fmt(f),
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Clash(path) => write!(
                f,
                "{}: two packages have this file: give each its own --out",
                path.display()
            ),
            Error::Nothing => write!(
                f,
                "there is no folder called `wit` with a .wit file in it below this one"
            ),
        }
    }
}

impl From<SourceError> for Error {
    fn from(refused: SourceError) -> Self {
        Error::SourceError(refused)
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::File(path, error)
}

/// What a package is generated from.
enum Input<'a> {
    Wit(&'a PathBuf),
    Code(PathBuf),
}

impl<'a> Input<'a> {
    /// WIT that was written from code goes by the code.
    fn of(path: &'a PathBuf) -> Self {
        source_of(path).map_or(Input::Wit(path), Input::Code)
    }
}

/// Writes or checks. Nothing is written before all packages were read and emitted without an error. Status 1: with `--check`, not everything
/// is up to date.
///
/// # Errors
/// A package cannot be generated; a file cannot be read or written.
pub fn run(arguments: &Arguments) -> Result<Output, Error> {
    let mut paths = arguments.paths.clone();
    if paths.is_empty() && arguments.from_code.is_none() {
        paths = find::packages(Path::new(".")).map_err(at(Path::new(".")))?;
    }
    if paths.is_empty() && arguments.from_code.is_none() {
        return Err(Error::Nothing);
    }
    let named = &arguments.languages;
    let wanted = |name: &str| named.is_empty() || named.iter().any(|named| named == name);

    let mut warnings = String::new();
    let mut files = BTreeMap::new();
    let mut folders = BTreeSet::new();
    let from_code = arguments.from_code.iter();
    for input in paths
        .iter()
        .map(Input::of)
        .chain(from_code.cloned().map(Input::Code))
    {
        let (package, wit, mut glue) = match input {
            Input::Wit(path) => (parse(path)?, path.clone(), None),
            Input::Code(file) => {
                let FromCode {
                    package,
                    sources,
                    glue,
                } = from_code_in(&file)?;
                let wit = sources[0].path.clone();
                for source in sources {
                    if files.insert(source.path.clone(), source.contents).is_some() {
                        return Err(Error::Clash(source.path));
                    }
                }
                (package, wit, Some(glue))
            }
        };
        for def in types_without_unknown(&package) {
            warnings += &warning(def);
        }
        let out = arguments.out.clone().unwrap_or_else(|| find::output(&wit));
        for language in LANGUAGES.iter().filter(|language| wanted(language.name)) {
            let folder = out.join(language.name);
            let glue = glue.take_if(|_| language.name == "rust");
            for output in (language.emit)(&package)?.into_iter().chain(glue) {
                let path = folder.join(&output.path);
                if files.insert(path.clone(), output.contents).is_some() {
                    return Err(Error::Clash(path));
                }
            }
            folders.insert(folder);
        }
    }
    let output = if arguments.check {
        check(&files, &folders)
    } else {
        write(&files)
    };
    output.map(|output| Output {
        stderr: warnings,
        ..output
    })
}

/// Of an enum or a variant without the case `unknown`.
fn warning(def: &TypeDef) -> String {
    let TypeDef { name, position, .. } = def;
    let Position { file, line, column } = position;
    format!(
        "{}:{line}:{column}: warning: `{name}` has no case `unknown`: a program cannot read a case that a later version adds. Add \
         the case, or name the type in the interface's option `closed` if it never gets another\n",
        file.display()
    )
}

fn write(files: &BTreeMap<PathBuf, String>) -> Result<Output, Error> {
    let mut changed = Vec::new();
    for (path, contents) in files {
        if files::compare(path, contents).map_err(at(path))? != State::Same {
            changed.push((path.as_path(), contents.as_str()));
        }
    }
    files::write(&changed).map_err(|(path, error)| Error::File(path, error))?;
    let wrote = changed
        .iter()
        .map(|(path, _)| format!("wrote {}\n", path.display()));
    Ok(Output::done(wrote.collect()))
}

fn check(files: &BTreeMap<PathBuf, String>, folders: &BTreeSet<PathBuf>) -> Result<Output, Error> {
    let mut output = Output::default();
    let mut complain = |path: &Path, what: &str| {
        output.stdout += &format!("{}: {what}\n", path.display());
        output.status = 1;
    };
    for (path, contents) in files {
        match files::compare(path, contents).map_err(at(path))? {
            State::Same => {}
            State::Differs => complain(path, "differs from what `thalweg gen` writes"),
            State::Missing => complain(path, "is missing: run `thalweg gen`"),
        }
    }
    let known: BTreeSet<PathBuf> = files.keys().cloned().collect();
    for folder in folders {
        for orphan in files::orphans(folder, &known).map_err(at(folder))? {
            complain(
                &orphan,
                "was generated, but from nothing that is here now: remove it",
            );
        }
    }
    Ok(output)
}
