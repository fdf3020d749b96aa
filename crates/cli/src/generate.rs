//! `thalweg gen`.

use crate::files::{self, FileState};
use crate::find;
use crate::output::Output;
use clap::builder::PossibleValuesParser;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thalweg_bindgen::model::{Position, TypeDef};
use thalweg_bindgen::{
    FromCode, GUESTS, LANGUAGES, SourceError, from_code as from_code_in, parse, source_of,
    types_without_unknown,
};

/// The arguments of `thalweg gen`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A .wit file, or a folder with the files of one package [default: all folders below this one
    /// that are called `wit`]
    paths: Vec<PathBuf>,

    /// A Rust file with a `#[thalweg::service]`. Also generates its WIT, into the folder `wit` next
    /// to `src`. The WIT refers to the file, so later a plain `thalweg gen` generates from the file
    /// again
    #[arg(long, value_name = "FILE", conflicts_with = "paths")]
    from_code: Option<PathBuf>,

    /// Target languages, separated by commas [default: all]
    #[arg(
        long = "lang",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(LANGUAGES.iter().map(|language| language.name))
    )]
    languages: Vec<String>,

    /// Languages of a guest, which implements the package, separated by commas. Without --lang, nothing
    /// else is generated. The folders are called `guest-LANG`
    #[arg(
        long = "guest",
        value_name = "LANG",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(GUESTS.iter().map(|language| language.name))
    )]
    guests: Vec<String>,

    /// The output folder, with one folder per language [default: `generated` next to the folder
    /// `wit`]
    #[arg(long)]
    out: Option<PathBuf>,

    /// Write nothing, and list the files that are out of date, missing or left over
    #[arg(long)]
    check: bool,
}

impl Arguments {
    /// Arguments that generate all languages of the package in a folder.
    pub fn of_wit(folder: PathBuf) -> Self {
        Self {
            paths: vec![folder],
            from_code: None,
            languages: Vec::new(),
            guests: Vec::new(),
            out: None,
            check: false,
        }
    }

    /// Arguments that generate the WIT of a Rust file, and all languages.
    pub fn of_code(file: PathBuf) -> Self {
        Self {
            from_code: Some(file),
            paths: Vec::new(),
            ..Self::of_wit(PathBuf::new())
        }
    }

    /// Arguments that check the Rust code of the package in a folder.
    pub fn check_rust(folder: PathBuf) -> Self {
        Self {
            languages: vec!["rust".to_owned()],
            check: true,
            ..Self::of_wit(folder)
        }
    }
}

/// An error of `thalweg gen`.
#[derive(Debug)]
pub enum Error {
    /// A construct that is wrong or not supported.
    Source(SourceError),
    /// A file that cannot be read or written.
    File(PathBuf, io::Error),
    /// Two packages would write the same file.
    Clash(PathBuf),
    /// There is no path argument, and no folder `wit`.
    NoPackage,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source(error) => error.fmt(f),
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Clash(path) => write!(
                f,
                "{}: two packages would write this file: use a separate --out for each",
                path.display()
            ),
            Error::NoPackage => write!(
                f,
                "there is no folder below this one that is called `wit` and contains a .wit file"
            ),
        }
    }
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        Error::Source(error)
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::File(path, error)
}

/// The source of a package.
enum Input<'a> {
    Wit(&'a PathBuf),
    Code(PathBuf),
}

impl<'a> Input<'a> {
    /// The source of the WIT at `path`. If the WIT was generated from code, this is the code.
    fn of(path: &'a PathBuf) -> Self {
        source_of(path).map_or(Input::Wit(path), Input::Code)
    }
}

/// Generates all packages, and then writes or compares the files. Exit status 1: with `--check`, a
/// file is out of date.
///
/// # Errors
/// A package has an error, or a file cannot be read or written. If a package has an error, nothing
/// is written.
pub fn run(arguments: &Arguments) -> Result<Output, Error> {
    let mut paths = arguments.paths.clone();
    if paths.is_empty() && arguments.from_code.is_none() {
        paths = find::packages(Path::new(".")).map_err(at(Path::new(".")))?;
    }
    if paths.is_empty() && arguments.from_code.is_none() {
        return Err(Error::NoPackage);
    }
    let named = &arguments.languages;
    let has_all = named.is_empty() && arguments.guests.is_empty();
    let hosts = LANGUAGES
        .iter()
        .filter(|language| has_all || named.iter().any(|named| named == language.name))
        .map(|language| (language, language.name.to_owned()));
    let guests = GUESTS
        .iter()
        .filter(|language| arguments.guests.iter().any(|named| named == language.name))
        .map(|language| (language, format!("guest-{}", language.name)));
    let targets: Vec<_> = hosts.chain(guests).collect();

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
        for (language, folder) in &targets {
            let glue = glue.take_if(|_| folder == "rust");
            let folder = out.join(folder);
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

/// The warning about an enum or a variant without a case `unknown`.
fn warning(def: &TypeDef) -> String {
    let TypeDef { name, position, .. } = def;
    let Position { file, line, column } = position;
    format!(
        "{}:{line}:{column}: warning: `{name}` has no case `unknown`, so older programs cannot read a case that a later version adds. \
         Add the case, or list the type in the option `closed` of the interface if it never gets another case\n",
        file.display()
    )
}

fn write(files: &BTreeMap<PathBuf, String>) -> Result<Output, Error> {
    let mut changed = Vec::new();
    for (path, contents) in files {
        if files::compare(path, contents).map_err(at(path))? != FileState::Same {
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
    let mut report = |path: &Path, what: &str| {
        output.stdout += &format!("{}: {what}\n", path.display());
        output.status = 1;
    };
    for (path, contents) in files {
        match files::compare(path, contents).map_err(at(path))? {
            FileState::Same => {}
            FileState::Differs => report(path, "is out of date: run `thalweg gen`"),
            FileState::Missing => report(path, "is missing: run `thalweg gen`"),
        }
    }
    let known: BTreeSet<PathBuf> = files.keys().cloned().collect();
    for folder in folders {
        for orphan in files::orphans(folder, &known).map_err(at(folder))? {
            report(
                &orphan,
                "was generated from a package that no longer exists: remove it",
            );
        }
    }
    Ok(output)
}
