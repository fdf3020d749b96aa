//! Where a new service gets the crates of Thalweg from.

use std::fmt;
use std::path::{Path, PathBuf};

/// The options of `thalweg new` that choose the origin of the crates. At most one is set.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Use this registry instead of crates.io, by its name in cargo's configuration
    #[arg(long, value_name = "NAME", group = "origin")]
    registry: Option<String>,

    /// Use the crates in this checkout of Thalweg
    #[arg(long, value_name = "FOLDER", group = "origin")]
    path: Option<PathBuf>,

    /// Use the crates in this git repository
    #[arg(long, value_name = "URL", group = "origin")]
    git: Option<String>,

    /// The commit, branch or tag of --git [default: its default branch]
    #[arg(long, value_name = "REV", requires = "git")]
    rev: Option<String>,
}

/// The origin of the crates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    CratesIo,
    Registry(String),
    /// An absolute path.
    Path(PathBuf),
    Git {
        url: String,
        rev: Option<String>,
    },
}

/// Why an origin is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum OriginError {
    /// cargo has no registry with such a name.
    Registry(String),
    /// The folder does not contain this file, so it is not a checkout of Thalweg.
    NoCheckout(PathBuf),
    /// cargo reads the paths in a manifest as UTF-8.
    NotUtf8(PathBuf),
    /// The URL of the repository is empty.
    NoUrl,
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OriginError::Registry(name) => write!(
                f,
                "--registry {name:?}: the name of a registry has letters, digits, `-` and `_`"
            ),
            OriginError::NoCheckout(path) => write!(
                f,
                "--path: this is not a checkout of Thalweg: {} is missing",
                path.display()
            ),
            OriginError::NotUtf8(path) => {
                write!(f, "--path: {} is not UTF-8", path.display())
            }
            OriginError::NoUrl => f.write_str("--git: the URL is empty"),
        }
    }
}

impl std::error::Error for OriginError {}

impl Options {
    /// Checks the options.
    ///
    /// # Errors
    /// The chosen origin is invalid.
    pub fn origin(&self) -> Result<Origin, OriginError> {
        if let Some(name) = &self.registry {
            let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(valid) {
                return Err(OriginError::Registry(name.clone()));
            }
            return Ok(Origin::Registry(name.clone()));
        }
        if let Some(path) = &self.path {
            for name in ["thalweg", "thalweg-capi"] {
                let manifest = folder(path, name).join("Cargo.toml");
                if !manifest.is_file() {
                    return Err(OriginError::NoCheckout(manifest));
                }
            }
            let path = path
                .canonicalize()
                .map_err(|_| OriginError::NoCheckout(path.clone()))?;
            if path.to_str().is_none() {
                return Err(OriginError::NotUtf8(path));
            }
            return Ok(Origin::Path(path));
        }
        match &self.git {
            Some(url) if url.is_empty() => Err(OriginError::NoUrl),
            Some(url) => Ok(Origin::Git {
                url: url.clone(),
                rev: self.rev.clone(),
            }),
            None => Ok(Origin::CratesIo),
        }
    }
}

/// The folder of a crate in a checkout.
fn folder(checkout: &Path, name: &str) -> PathBuf {
    let name = name.strip_prefix("thalweg-").unwrap_or(name);
    checkout.join("crates").join(name)
}

impl Origin {
    /// The line of `[dependencies]` for a crate.
    pub fn dependency(&self, name: &str, version: &str) -> String {
        let text = |text: &str| toml_edit::Value::from(text).to_string();
        let value = match self {
            Origin::CratesIo => text(version),
            Origin::Registry(registry) => format!(
                "{{ version = {}, registry = {} }}",
                text(version),
                text(registry)
            ),
            Origin::Path(path) => {
                let folder = folder(path, name);
                format!("{{ path = {} }}", text(&folder.to_string_lossy()))
            }
            Origin::Git { url, rev: None } => format!("{{ git = {} }}", text(url)),
            Origin::Git {
                url,
                rev: Some(rev),
            } => format!("{{ git = {}, rev = {} }}", text(url), text(rev)),
        };
        format!("{name} = {value}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, Origin, OriginError};
    use std::path::PathBuf;

    #[test]
    fn dependency_names_its_origin() {
        let line = |origin: Origin| origin.dependency("thalweg-capi", "0.1.0");
        assert_eq!(line(Origin::CratesIo), "thalweg-capi = \"0.1.0\"\n");
        assert_eq!(
            line(Origin::Registry("local".to_owned())),
            "thalweg-capi = { version = \"0.1.0\", registry = \"local\" }\n"
        );
        assert_eq!(
            line(Origin::Path(PathBuf::from("/a \"b\""))),
            "thalweg-capi = { path = '/a \"b\"/crates/capi' }\n"
        );
        let git = |rev: Option<&str>| Origin::Git {
            url: "https://a/b".to_owned(),
            rev: rev.map(str::to_owned),
        };
        assert_eq!(
            line(git(None)),
            "thalweg-capi = { git = \"https://a/b\" }\n"
        );
        assert_eq!(
            line(git(Some("v1"))),
            "thalweg-capi = { git = \"https://a/b\", rev = \"v1\" }\n"
        );
    }

    #[test]
    fn invalid_origin_is_refused() {
        let options = Options {
            registry: Some("a b".to_owned()),
            ..Options::default()
        };
        assert_eq!(
            options.origin(),
            Err(OriginError::Registry("a b".to_owned()))
        );
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            path: Some(folder.path().to_owned()),
            ..Options::default()
        };
        assert_eq!(
            options.origin(),
            Err(OriginError::NoCheckout(
                folder.path().join("crates/thalweg/Cargo.toml")
            ))
        );
        let options = Options {
            git: Some(String::new()),
            ..Options::default()
        };
        assert_eq!(options.origin(), Err(OriginError::NoUrl));
    }
}
