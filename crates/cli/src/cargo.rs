//! Reads the metadata of a service's package from cargo, and builds its library.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Why cargo gave no answer, or not the expected one.
#[derive(Debug)]
pub enum Error {
    /// cargo cannot be started.
    Start(io::Error),
    /// cargo failed, and printed the reason unless it is here.
    Failed {
        command: &'static str,
        reason: String,
    },
    /// cargo's answer cannot be understood.
    Answer(&'static str),
    /// The manifest is not one of a package.
    NoPackage(PathBuf),
    /// The package does not depend on this crate.
    NoDependency { package: PathBuf, name: String },
    /// Several versions of this crate are used.
    Versions(String),
    /// The package builds no library for other languages.
    NoLibrary(PathBuf),
    /// A file that belongs to a package is missing.
    Missing(PathBuf),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Start(error) => write!(f, "cargo does not start: {error}"),
            Error::Failed { command, reason } if reason.is_empty() => {
                write!(f, "`{command}` failed")
            }
            Error::Failed { command, reason } => write!(f, "`{command}` failed: {reason}"),
            Error::Answer(command) => write!(f, "the output of `{command}` is not understood"),
            Error::NoPackage(path) => write!(f, "{} has no [package]", path.display()),
            Error::NoDependency { package, name } => {
                write!(f, "{} does not depend on {name}", package.display())
            }
            Error::Versions(name) => {
                write!(
                    f,
                    "several versions of {name} are used; `cargo tree -d` shows why"
                )
            }
            Error::NoLibrary(path) => write!(
                f,
                "{} builds no shared library: `crate-type` in [lib] must contain \"cdylib\"",
                path.display()
            ),
            Error::Missing(path) => write!(f, "{} is missing", path.display()),
        }
    }
}

impl std::error::Error for Error {}

/// The cargo that runs this command, or the one on PATH.
fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs cargo and returns its standard output. An error contains its standard error.
fn answer(mut command: Command, shown: &'static str) -> Result<String, Error> {
    let output = command.output().map_err(Error::Start)?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Failed {
            command: shown,
            reason,
        });
    }
    String::from_utf8(output.stdout).map_err(|_| Error::Answer(shown))
}

/// The manifest of the package: `given`, or the nearest one in this folder and those above it.
///
/// # Errors
/// There is none.
pub fn locate(given: Option<&Path>) -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args(["locate-project", "--message-format", "plain"]);
    if let Some(path) = given {
        command.arg("--manifest-path").arg(path);
    }
    let path = answer(command, "cargo locate-project")?;
    Ok(PathBuf::from(path.trim_end_matches('\n')))
}

/// The answer of `cargo metadata`.
#[derive(Debug)]
pub struct Metadata {
    json: Value,
    manifest: PathBuf,
}

/// A package, as its manifest describes it.
#[derive(Debug)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub description: Option<String>,
    pub license: Option<String>,
    pub repository: Option<String>,
    pub readme: Option<PathBuf>,
    /// The folder of its manifest.
    pub folder: PathBuf,
}

impl Metadata {
    /// Asks cargo about the package at `manifest` and its dependencies.
    ///
    /// # Errors
    /// cargo fails, for example because it cannot download a dependency.
    pub fn read(manifest: &Path) -> Result<Self, Error> {
        const SHOWN: &str = "cargo metadata";
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--manifest-path"]);
        let json = answer(
            {
                command.arg(manifest);
                command
            },
            SHOWN,
        )?;
        let json = serde_json::from_str(&json).map_err(|_| Error::Answer(SHOWN))?;
        Ok(Self {
            json,
            manifest: manifest.to_owned(),
        })
    }

    fn packages(&self) -> impl Iterator<Item = &Value> {
        self.json["packages"].as_array().into_iter().flatten()
    }

    /// The package at the manifest.
    ///
    /// # Errors
    /// The manifest is one of a workspace only, or no library for other languages is built from it.
    pub fn package(&self) -> Result<Package, Error> {
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let found = self
            .packages()
            .find(|package| path(&package["manifest_path"]).as_ref() == Some(&self.manifest))
            .ok_or_else(|| Error::NoPackage(self.manifest.clone()))?;
        let targets = found["targets"].as_array().into_iter().flatten();
        let mut kinds =
            targets.flat_map(|target| target["crate_types"].as_array().into_iter().flatten());
        if !kinds.any(|kind| kind == "cdylib") {
            return Err(Error::NoLibrary(self.manifest.clone()));
        }
        let folder = self.manifest.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Package {
            id: text(&found["id"]).unwrap_or_default(),
            name: text(&found["name"]).unwrap_or_default(),
            version: text(&found["version"]).unwrap_or_default(),
            description: text(&found["description"]),
            license: text(&found["license"]),
            repository: text(&found["repository"]),
            readme: path(&found["readme"]).map(|readme| folder.join(readme)),
            folder,
        })
    }

    /// The manifest of a crate that the package depends on, directly or not.
    ///
    /// # Errors
    /// The package does not depend on it, or on several versions.
    pub fn dependency(&self, name: &str) -> Result<PathBuf, Error> {
        let mut found = self.packages().filter(|package| package["name"] == name);
        let Some(one) = found.next() else {
            return Err(Error::NoDependency {
                package: self.manifest.clone(),
                name: name.to_owned(),
            });
        };
        if found.next().is_some() {
            return Err(Error::Versions(name.to_owned()));
        }
        let path = one["manifest_path"].as_str();
        path.map(PathBuf::from)
            .ok_or(Error::Answer("cargo metadata"))
    }
}

/// Builds the shared library of a package with optimisation and returns its path. cargo's messages
/// go to standard error. `arguments` are further arguments for `cargo build`.
///
/// # Errors
/// It does not build.
pub fn build(manifest: &Path, package: &Package, arguments: &[OsString]) -> Result<PathBuf, Error> {
    const SHOWN: &str = "cargo build";
    let output = cargo()
        .args(["build", "--release", "--lib", "--message-format"])
        .arg("json-render-diagnostics")
        .arg("--manifest-path")
        .arg(manifest)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::Start)?;
    if !output.status.success() {
        return Err(Error::Failed {
            command: SHOWN,
            reason: String::new(),
        });
    }
    let text = String::from_utf8(output.stdout).map_err(|_| Error::Answer(SHOWN))?;
    library(&text, &package.id).ok_or(Error::Answer(SHOWN))
}

/// The shared library of a package, in the messages of cargo.
fn library(messages: &str, package: &str) -> Option<PathBuf> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let artifacts = messages.filter(|message| {
        message["reason"] == "compiler-artifact" && message["package_id"] == package
    });
    artifacts
        .flat_map(|artifact| {
            artifact["filenames"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .find(|path| path.extension().is_some_and(|extension| extension == "so"))
}

#[cfg(test)]
mod tests {
    use super::library;
    use std::path::PathBuf;

    #[test]
    fn library_is_found_among_the_messages_of_cargo() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"package_id\":\"other\",\"filenames\":[\"/t/libother.so\"]}\n",
            "not JSON\n",
            "{\"reason\":\"compiler-artifact\",\"package_id\":\"ours\",\"filenames\":[\"/t/libours.rlib\",\"/t/libours.so\"]}\n",
            "{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        assert_eq!(
            library(messages, "ours"),
            Some(PathBuf::from("/t/libours.so"))
        );
        assert_eq!(library(messages, "missing"), None);
    }
}
