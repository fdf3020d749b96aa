//! `thalweg new`: creates a service in a new folder.

mod name;
mod origin;
mod template;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::Staging;
use crate::generate;
use crate::output::Output;
use name::Name;
use origin::OriginError;

pub use template::next as next_version;

/// The arguments of `thalweg new`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The name of the service and of its folder, such as `image-store`, or with a namespace
    /// `acme:image-store`
    name: Name,

    /// Begin with a Rust trait instead of WIT
    #[arg(long)]
    code_first: bool,

    #[command(flatten)]
    origin: origin::Options,
}

/// Why no service was created.
#[derive(Debug)]
pub enum Error {
    /// A file or folder has the name of the service.
    Exists(PathBuf),
    /// The chosen origin of the crates is invalid.
    Origin(OriginError),
    /// No code can be generated from the interface.
    Generate(generate::Error),
    /// A file or folder cannot be written.
    File(PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Exists(path) => write!(
                f,
                "{} exists already; choose another name, or remove it",
                path.display()
            ),
            Error::Origin(error) => error.fmt(f),
            Error::Generate(error) => error.fmt(f),
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

/// Creates the folder. All files are written and all code is generated in a staging folder, which
/// then gets its name: the folder appears complete, or not at all.
///
/// # Errors
/// The folder exists, or something cannot be read or written.
pub fn run(arguments: &Arguments) -> Result<Output, Error> {
    let origin = arguments.origin.origin().map_err(Error::Origin)?;
    let name = &arguments.name.name;
    let folder = Path::new(name);
    if folder.symlink_metadata().is_ok() {
        return Err(Error::Exists(folder.to_owned()));
    }
    let file = |path: &Path| {
        let path = path.to_owned();
        move |error| Error::File(path, error)
    };
    let staging = Staging::new(Path::new("")).map_err(file(Path::new(".")))?;
    let root = staging.path().join(name);
    for (path, contents) in template::files(&arguments.name, &origin, arguments.code_first) {
        let to = root.join(&path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(file(&path))?;
        }
        fs::write(&to, contents).map_err(file(&path))?;
    }
    let interface = match arguments.code_first {
        true => generate::Arguments::of_code(root.join("src/api.rs")),
        false => generate::Arguments::of_wit(root.join("wit")),
    };
    generate::run(&interface).map_err(Error::Generate)?;
    match fs::rename(&root, folder) {
        Ok(()) => {}
        // It appeared meanwhile.
        Err(_) if folder.symlink_metadata().is_ok() => {
            return Err(Error::Exists(folder.to_owned()));
        }
        Err(error) => return Err(Error::File(folder.to_owned(), error)),
    }
    Ok(Output::done(format!(
        "created {name}\n\nnext:\n  cd {name}\n  make test\n"
    )))
}
