//! `thalweg package`: a service as a file that others install, without a Rust compiler.

mod archive;
mod c;
mod elf;
mod nim;
mod node;
mod python;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_bindgen::model;
use thalweg_bindgen::{SourceError, from_code, parse, source_of};

use crate::cargo::{self, Metadata, Package};
use crate::files;
use crate::find;
use crate::generate;
use crate::headers;
use crate::output::Output;

/// The arguments of `thalweg package`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    kind: Kind,

    /// The folder with the service's WIT [default: `wit` beside its Cargo.toml]
    #[arg(long, value_name = "FOLDER")]
    wit: Option<PathBuf>,

    /// The Cargo.toml of the service [default: the one in this folder, or in the nearest folder
    /// above]
    #[arg(long, value_name = "FILE")]
    manifest_path: Option<PathBuf>,

    /// Where the file goes [default: `dist` beside the Cargo.toml]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Further arguments for `cargo build --release --lib`, such as `--locked` or `--target TRIPLE`
    #[arg(last = true, value_name = "ARGUMENT")]
    cargo: Vec<OsString>,
}

/// What is built. At least one.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Kind {
    /// A Python wheel with the library and the generated package
    #[arg(long)]
    python: bool,

    /// A tarball for C with the library, headers, and files for pkg-config and CMake
    #[arg(long)]
    c: bool,

    /// An npm package with the library, the generated JavaScript and its types
    #[arg(long)]
    node: bool,

    /// A tarball for nimble with the library and the generated Nim module
    #[arg(long)]
    nim: bool,
}

/// Why there is no package.
#[derive(Debug)]
pub enum Error {
    /// cargo failed, or the package is not a service.
    Cargo(cargo::Error),
    /// The WIT cannot be read, or has a construct that a language does not support.
    Source(SourceError),
    /// The committed code is not what `thalweg gen` writes.
    OutOfDate(String),
    /// Comparing the committed code failed.
    Generate(generate::Error),
    /// The library is not one that the package can contain.
    Library(PathBuf, elf::Error),
    /// The version has no form in Python.
    Version(String),
    /// The generic package of this language does not support the processor of the library.
    Processor(&'static str, &'static str),
    /// The version is a pre-release, which nimble does not know.
    PreRelease(String),
    /// The name is a keyword of Nim.
    Keyword(String),
    /// The name is longer than npm accepts.
    Name(String),
    /// A file cannot be read or written.
    File(PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cargo(error) => error.fmt(f),
            Error::Source(error) => error.fmt(f),
            Error::OutOfDate(differences) => write!(
                f,
                "{differences}the library would not match the package; run `thalweg gen`"
            ),
            Error::Generate(error) => error.fmt(f),
            Error::Library(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Version(version) => write!(
                f,
                "the version {version} has no form in Python; of the pre-releases only `alpha`, `beta`, `rc` and \
                 `dev` with one number have, such as 1.0.0-rc.1"
            ),
            Error::Processor(language, machine) => write!(
                f,
                "the {language} package `thalweg` supports x86_64 only, and the library is for {machine}"
            ),
            Error::PreRelease(version) => write!(
                f,
                "the version {version} has no form in nimble, whose versions consist of numbers; package a release, \
                 such as 1.0.0"
            ),
            Error::Keyword(name) => {
                write!(
                    f,
                    "the name {name} is a keyword of Nim, which ignores underscores"
                )
            }
            Error::Name(name) => write!(
                f,
                "the name {name} is too long for npm: it has {} characters",
                name.len()
            ),
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

impl From<cargo::Error> for Error {
    fn from(error: cargo::Error) -> Self {
        Error::Cargo(error)
    }
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        Error::Source(error)
    }
}

/// A service that is built: what every kind of package consists of.
struct Service {
    package: Package,
    model: model::Package,
    /// The path of the library, and its contents.
    library: PathBuf,
    bytes: Vec<u8>,
    elf: elf::Library,
}

impl Service {
    /// The file name of the library.
    fn file_name(&self) -> String {
        let name = self.library.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// On which systems the library can be loaded: lines.
    fn note(&self) -> String {
        let mut note = format!(
            "  for {} Linux with glibc {} or newer\n",
            self.elf.machine, self.elf.glibc
        );
        if !self.elf.others.is_empty() {
            note += &format!("  the library also needs: {}\n", self.elf.others.join(", "));
        }
        note
    }

    /// Files called LICENSE or COPYING beside the manifest, in order.
    fn licenses(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let folder = &self.package.folder;
        let failed = |error| Error::File(folder.clone(), error);
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if (name.starts_with("LICENSE") || name.starts_with("COPYING"))
                && entry.path().is_file()
            {
                let path = entry.path();
                let contents = fs::read(&path).map_err(|error| Error::File(path, error))?;
                found.push((name, contents));
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Builds the library and writes the packages. Each is a file that is written as a whole.
///
/// # Errors
/// The service does not build, or cannot be packaged.
pub fn run(arguments: &Arguments) -> Result<Output, Error> {
    let manifest = cargo::locate(arguments.manifest_path.as_deref())?;
    let metadata = Metadata::read(&manifest)?;
    let package = metadata.package()?;
    let wit = match &arguments.wit {
        Some(path) => path.clone(),
        None => package.folder.join("wit"),
    };
    let model = match source_of(&wit) {
        Some(code) => from_code(&code)?.package,
        None => parse(&wit)?,
    };
    check_generated(&wit)?;
    let library = cargo::build(&manifest, &package, &arguments.cargo)?;
    let bytes = fs::read(&library).map_err(|error| Error::File(library.clone(), error))?;
    let elf = elf::read(&bytes).map_err(|error| Error::Library(library.clone(), error))?;
    let service = Service {
        package,
        model,
        library,
        bytes,
        elf,
    };

    let out = match &arguments.out {
        Some(folder) => folder.clone(),
        None => service.package.folder.join("dist"),
    };
    let mut built = Vec::new();
    if arguments.kind.python {
        built.push(python::wheel(&service)?);
    }
    if arguments.kind.c {
        built.push(c::tarball(&service, &headers::folder(&metadata)?)?);
    }
    if arguments.kind.node {
        built.push(node::tarball(&service)?);
    }
    if arguments.kind.nim {
        built.push(nim::tarball(&service)?);
    }
    let mut stdout = String::new();
    for Built {
        name,
        contents,
        note,
    } in built
    {
        let path = out.join(name);
        files::write(&[(&path, &contents)]).map_err(|(path, error)| Error::File(path, error))?;
        stdout += &format!("wrote {}\n{note}", shown(&path));
    }
    Ok(Output::done(stdout))
}

/// A package before it is written.
#[derive(Debug)]
struct Built {
    /// The file name.
    name: String,
    contents: Vec<u8>,
    /// What to know about it: lines, or nothing.
    note: String,
}

/// `1.2.3` of `1.2.3-rc.1`.
fn base(version: &str) -> &str {
    version.split(['-', '+']).next().unwrap_or(version)
}

/// The path from here, if the file is below this folder.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(here).unwrap_or(path);
    path.display().to_string()
}

/// The Rust code in `generated` must be what the library is compiled from. A service that generates
/// it in a build script has no such folder.
fn check_generated(wit: &Path) -> Result<(), Error> {
    if !find::output(wit).join("rust").is_dir() {
        return Ok(());
    }
    let checked = generate::run(&generate::Arguments::check_rust(wit.to_owned()));
    let checked = checked.map_err(Error::Generate)?;
    match checked.status {
        0 => Ok(()),
        _ => Err(Error::OutOfDate(checked.stdout)),
    }
}
