//! The files of a new service.
//!
//! The files in `template` are those of a service `my-org:my-service`, so that formatters can read
//! them. A new service gets its own name in their place.

use std::path::PathBuf;

use super::name::Name;
use super::origin::Origin;

/// The version of the crates and of the Python package: they are released together.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Files of every service: the place in the new folder, and the contents.
const FILES: &[(&str, &str)] = &[
    (".gitignore", include_str!("template/gitignore")),
    ("Cargo.toml", include_str!("template/Cargo.toml.in")),
    ("Makefile", include_str!("template/Makefile.in")),
    ("build.rs", include_str!("template/build.rs")),
    ("hosts/rust/main.rs", include_str!("template/host.rs")),
    ("hosts/c/main.c", include_str!("template/host.c")),
    ("hosts/c/test.c", include_str!("template/test.c")),
    ("hosts/python/main.py", include_str!("template/host.py")),
    (
        "hosts/python/test_my_service.py",
        include_str!("template/test.py"),
    ),
    ("tests/service.rs", include_str!("template/test.rs")),
];

/// Files of a service that begins with WIT.
const WIT_FIRST: &[(&str, &str)] = &[
    ("README.md", include_str!("template/README.md")),
    ("wit/my-service.wit", include_str!("template/service.wit")),
    (
        "wit/my-service.thalweg.toml",
        include_str!("template/service.thalweg.toml"),
    ),
    ("src/lib.rs", include_str!("template/lib.rs")),
    ("src/library.rs", include_str!("template/library.rs")),
    ("src/service.rs", include_str!("template/service.rs")),
];

/// Files of a service that begins with Rust.
const CODE_FIRST: &[(&str, &str)] = &[
    ("README.md", include_str!("template/code-first/README.md")),
    ("src/api.rs", include_str!("template/code-first/api.rs")),
    ("src/lib.rs", include_str!("template/code-first/lib.rs")),
    (
        "src/library.rs",
        include_str!("template/code-first/library.rs"),
    ),
];

/// The files of a service, by their place in its folder.
pub fn files(name: &Name, origin: &Origin, code_first: bool) -> Vec<(PathBuf, String)> {
    let Name { namespace, name } = name;
    let dependencies = ["thalweg", "thalweg-capi"].map(|name| origin.dependency(name, VERSION));
    let names = [
        ("MY_SERVICE", Name::snake(name).to_ascii_uppercase()),
        ("my_service", Name::snake(name)),
        ("my-service", name.clone()),
        ("MyService", Name::camel(name)),
        ("my_org", Name::snake(namespace)),
        ("my-org", namespace.clone()),
        ("RUST_VERSION", env!("CARGO_PKG_RUST_VERSION").to_owned()),
        ("THALWEG_VERSION", VERSION.to_owned()),
        ("THALWEG_NEXT", next(VERSION)),
        // The last, because its text is not a template.
        ("DEPENDENCIES\n", dependencies.concat()),
    ];
    let fill = |text: &str| {
        names
            .iter()
            .fold(text.to_owned(), |text, (placeholder, name)| {
                text.replace(placeholder, name)
            })
    };
    let first = if code_first { CODE_FIRST } else { WIT_FIRST };
    FILES
        .iter()
        .chain(first)
        .map(|(path, contents)| (PathBuf::from(fill(path)), fill(contents)))
        .collect()
}

/// The first version that is not compatible: of `0.1.4` it is `0.2`, of `1.2.3` it is `2`.
pub fn next(version: &str) -> String {
    let mut numbers = version
        .split('.')
        .map(|number| number.parse::<u64>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match major {
        0 => format!("0.{}", minor + 1),
        _ => format!("{}", major + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{Origin, files, next};

    #[test]
    fn files_have_the_name_in_every_form() {
        let name = "acme:image-store".parse().unwrap();
        for code_first in [false, true] {
            let files = files(&name, &Origin::CratesIo, code_first);
            for (path, contents) in &files {
                for left in [
                    "my-",
                    "my_",
                    "MyS",
                    "MY_",
                    "RUST_VERSION",
                    "THALWEG_",
                    "DEPENDENCIES",
                ] {
                    assert!(!contents.contains(left), "{left} in {}", path.display());
                    assert!(!path.to_string_lossy().contains(left), "{}", path.display());
                }
            }
            let manifest = &files
                .iter()
                .find(|(path, _)| path.ends_with("Cargo.toml"))
                .unwrap()
                .1;
            let manifest: toml_edit::DocumentMut = manifest.parse().unwrap();
            assert_eq!(manifest["package"]["name"].as_str(), Some("image-store"));
            assert!(manifest["dependencies"]["thalweg-capi"].is_value());
        }
    }

    #[test]
    fn next_is_the_first_incompatible_version() {
        assert_eq!(next("0.1.4"), "0.2");
        assert_eq!(next("1.2.3"), "2");
        assert_eq!(next("1.2.3-rc.1"), "2");
    }
}
