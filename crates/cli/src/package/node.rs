//! A tarball for npm with the generated JavaScript, its types, and the library of the service.
//!
//! The format: <https://docs.npmjs.com/cli/configuring-npm/package-json>. The package depends on the
//! generic package `thalweg` and does not contain it, because two copies of that in one program
//! would have two classes for each error.

use std::fs;

use serde_json::{Value, json};
use thalweg_bindgen::node;

use super::archive::{self, File};
use super::{Built, Error, Service, base};
use crate::new;

/// The oldest Node that the generic package supports.
const NODE: &str = ">=20";

/// The processor for which the generic package has a native part, as GNU and as Node call it.
const MACHINE: (&str, &str) = ("x86_64", "x64");

/// The maximum length of a name in npm.
const LONGEST_NAME: usize = 214;

/// Builds the tarball.
///
/// # Errors
/// The interface has a construct that Node does not support; the generic package does not support
/// the processor; the name is too long for npm.
pub(super) fn tarball(service: &Service) -> Result<Built, Error> {
    if service.elf.machine != MACHINE.0 {
        return Err(Error::Processor("Node", service.elf.machine));
    }
    let name = name(service)?;
    let version = version(&service.package.version);
    let module = &service.model.name;
    let library = service.file_name();

    let mut files = vec![File::new("package/package.json", manifest(service, &name))];
    files.push(File::new(
        "package/index.js",
        format!(
            "import {{ fileURLToPath }} from 'node:url';\n\n\
             export * from './generated/{module}.js';\n\n\
             /** The path of the service's library, for `open`. */\n\
             export const library = fileURLToPath(new URL('./{library}', import.meta.url));\n"
        ),
    ));
    files.push(File::new(
        "package/index.d.ts",
        format!(
            "export * from './generated/{module}.js';\n\n\
             /** The path of the service's library, for `open`. */\n\
             export declare const library: string;\n"
        ),
    ));
    // In a folder of their own, where no name of a package can clash with the files above.
    for output in node::emit(&service.model)? {
        let path = format!("package/generated/{}", output.path.to_string_lossy());
        files.push(File::new(path, output.contents));
    }
    let path = format!("package/{library}");
    files.push(File::new(path, service.bytes.clone()));
    for (name, contents) in service.licenses()? {
        files.push(File::new(format!("package/{name}"), contents));
    }
    if let Some(path) = &service.package.readme {
        let contents = fs::read(path).map_err(|error| Error::File(path.clone(), error))?;
        files.push(File::new("package/README.md", contents));
    }
    let contents =
        archive::tar_gz(&files).map_err(|error| Error::File(service.library.clone(), error))?;
    Ok(Built {
        name: format!("{name}-{version}.tgz"),
        contents,
        note: service.note(),
    })
}

/// `acme-image-store` of `acme:image-store`. npm accepts only lowercase letters.
fn name(service: &Service) -> Result<String, Error> {
    let model = &service.model;
    let name = format!("{}-{}", model.namespace, model.name).to_lowercase();
    match name.len() <= LONGEST_NAME {
        true => Ok(name),
        false => Err(Error::Name(name)),
    }
}

/// A version of cargo is one of npm, which ignores build metadata.
fn version(version: &str) -> &str {
    version.split('+').next().unwrap_or(version)
}

/// The file package.json.
fn manifest(service: &Service, name: &str) -> String {
    let package = &service.package;
    let ours = env!("CARGO_PKG_VERSION");
    let mut fields = json!({
        "name": name,
        "version": version(&package.version),
        "type": "module",
        "engines": { "node": NODE },
        "os": ["linux"],
        "cpu": [MACHINE.1],
        "libc": ["glibc"],
        "exports": { ".": { "types": "./index.d.ts", "default": "./index.js" } },
        "dependencies": { "thalweg": format!(">={} <{}", base(ours), new::next_version(ours)) },
    });
    // cargo also accepts `MIT/Apache-2.0`, which is no SPDX expression.
    let license = package.license.clone();
    let optional = [
        ("description", package.description.clone()),
        ("license", license.filter(|license| !license.contains('/'))),
        ("repository", package.repository.clone()),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            fields[key] = Value::String(value);
        }
    }
    format!("{fields:#}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;
    use std::path::{Path, PathBuf};

    use flate2::read::GzDecoder;
    use serde_json::Value;
    use thalweg_bindgen::parse_text;

    use super::tarball;
    use crate::cargo::Package;
    use crate::package::elf::{Library, Version};
    use crate::package::{Error, Service};

    fn service(folder: &Path) -> Service {
        std::fs::write(folder.join("LICENSE"), "Do as you like.\n").unwrap();
        let wit = "package acme:image-STORE@0.1.0;\n\
            interface store { count: func() -> u32; }\n\
            world library { export store; }\n";
        Service {
            package: Package {
                id: String::new(),
                name: "image-store".to_owned(),
                version: "1.2.3-rc.1+build.5".to_owned(),
                description: Some("Stores \"images\"".to_owned()),
                license: Some("MIT/Apache-2.0".to_owned()),
                repository: None,
                readme: None,
                folder: folder.to_owned(),
            },
            model: parse_text(Path::new("image-STORE.wit"), wit, "").unwrap(),
            library: PathBuf::from("target/release/libimage_store.so"),
            bytes: b"not really a library".to_vec(),
            elf: Library {
                machine: "x86_64",
                glibc: Version(2, 34),
                others: Vec::new(),
            },
        }
    }

    fn contents(tarball: &[u8]) -> BTreeMap<String, String> {
        let mut archive = tar::Archive::new(GzDecoder::new(tarball));
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (path, text)
        });
        entries.collect()
    }

    #[test]
    fn tarball_has_the_code_the_library_and_the_manifest_of_npm() {
        let folder = tempfile::tempdir().unwrap();
        let service = service(folder.path());
        let built = tarball(&service).unwrap();
        assert_eq!(built.name, "acme-image-store-1.2.3-rc.1.tgz");
        assert_eq!(built.note, "  for x86_64 Linux with glibc 2.34 or newer\n");
        assert_eq!(built.contents, tarball(&service).unwrap().contents);

        let files = contents(&built.contents);
        let paths: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "package/LICENSE",
                "package/generated/image-STORE.d.ts",
                "package/generated/image-STORE.js",
                "package/index.d.ts",
                "package/index.js",
                "package/libimage_store.so",
                "package/package.json",
            ]
        );
        assert_eq!(files["package/libimage_store.so"], "not really a library");
        assert!(files["package/index.js"].contains("'./generated/image-STORE.js'"));
        assert!(files["package/index.js"].contains("'./libimage_store.so'"));

        let manifest: Value = serde_json::from_str(&files["package/package.json"]).unwrap();
        assert_eq!(manifest["name"], "acme-image-store");
        assert_eq!(manifest["version"], "1.2.3-rc.1");
        assert_eq!(manifest["description"], "Stores \"images\"");
        assert_eq!(manifest["license"], Value::Null);
        assert_eq!(manifest["cpu"][0], "x64");
        assert!(manifest["dependencies"]["thalweg"].is_string());
    }

    #[test]
    fn processor_without_a_native_part_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut service = service(folder.path());
        service.elf.machine = "aarch64";
        let error = tarball(&service).unwrap_err();
        assert!(matches!(error, Error::Processor("Node", "aarch64")));
        assert!(error.to_string().contains("aarch64"));
    }

    #[test]
    fn name_that_npm_does_not_accept_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut service = service(folder.path());
        service.model.namespace = "a".repeat(300);
        assert!(matches!(tarball(&service), Err(Error::Name(_))));
    }
}
