//! A tarball for nimble with the generated Nim module and the library of the service.
//!
//! The format: <https://nim-lang.github.io/nimble/nimble-reference.html>. The package depends on the
//! generic package `thalweg` and does not contain it, because the types of two copies in one program
//! would differ.

use std::fs;

use thalweg_bindgen::nim;

use super::archive::{self, File};
use super::{Built, Error, Service, base};
use crate::new;

/// The oldest Nim that the generic package supports.
const NIM: &str = "1.6.0";

/// The processor for which the generic package is tested.
const MACHINE: &str = "x86_64";

/// Builds the tarball.
///
/// # Errors
/// The interface has a construct that Nim does not support; the generic package does not support the
/// processor; the version or the name has no form in nimble.
pub(super) fn tarball(service: &Service) -> Result<Built, Error> {
    if service.elf.machine != MACHINE {
        return Err(Error::Processor("Nim", service.elf.machine));
    }
    let name = name(service)?;
    let version = version(&service.package.version)?;
    let folder = format!("{name}-{version}");
    let library = service.file_name();

    let mut files = vec![File::new(
        format!("{folder}/{name}.nimble"),
        manifest(service, &version),
    )];
    for output in nim::emit(&service.model)? {
        // In a folder of its own, where no name of a package can clash with the module of the package.
        let module = output.path.to_string_lossy().into_owned();
        let path = format!("{folder}/src/{name}/{module}");
        files.push(File::new(path, output.contents));
        let contents = module_of(&name, module.trim_end_matches(".nim"), &library);
        files.push(File::new(format!("{folder}/src/{name}.nim"), contents));
    }
    let path = format!("{folder}/src/{name}/{library}");
    files.push(File::new(path, service.bytes.clone()));
    for (license, contents) in service.licenses()? {
        files.push(File::new(format!("{folder}/{license}"), contents));
    }
    if let Some(path) = &service.package.readme {
        let contents = fs::read(path).map_err(|error| Error::File(path.clone(), error))?;
        files.push(File::new(format!("{folder}/README.md"), contents));
    }
    let contents =
        archive::tar_gz(&files).map_err(|error| Error::File(service.library.clone(), error))?;
    Ok(Built {
        name: format!("{folder}-{MACHINE}-linux-gnu.tar.gz"),
        contents,
        note: service.note(),
    })
}

/// The module that users import.
fn module_of(name: &str, generated: &str, library: &str) -> String {
    format!(
        "import std/os\n\
         import \"./{name}/{generated}\" as generated\n\n\
         export generated\n\n\
         const library* = currentSourcePath().parentDir / \"{name}\" / \"{library}\"\n  \
         ## The path of the service's library, for `open`.\n"
    )
}

/// `acme_image_store` of `acme:image-store`. nimble refuses dashes.
fn name(service: &Service) -> Result<String, Error> {
    let model = &service.model;
    let name = format!("{}_{}", model.namespace, model.name).to_lowercase();
    let name = name.replace('-', "_");
    // It is a module, so that Nim refuses it as the word without underscores.
    match nim::names::quoted(&name.replace('_', "")).starts_with('`') {
        true => Err(Error::Keyword(name)),
        false => Ok(name),
    }
}

/// nimble has versions of numbers only, without pre-releases and build metadata.
fn version(version: &str) -> Result<String, Error> {
    let version = version.split('+').next().unwrap_or(version);
    match base(version) == version {
        true => Ok(version.to_owned()),
        false => Err(Error::PreRelease(version.to_owned())),
    }
}

/// The file `NAME.nimble`, which must have each of these fields.
fn manifest(service: &Service, version: &str) -> String {
    let package = &service.package;
    let ours = env!("CARGO_PKG_VERSION");
    let description = package.description.clone();
    let description = description.unwrap_or_else(|| format!("The service {}", package.name));
    let license = package.license.as_deref().unwrap_or("not stated");
    let next = new::next_version(ours);
    let fields = [
        ("version", version),
        ("author", &service.model.namespace),
        ("description", &description),
        ("license", license),
        ("srcDir", "src"),
    ];
    let fields = fields.map(|(key, value)| format!("{key} = {}\n", quoted(value)));
    format!(
        "{}\nrequires \"nim >= {NIM}\"\nrequires \"thalweg >= {} & < {next}\"\n",
        fields.concat(),
        base(ours)
    )
}

/// A literal of a string in Nim.
fn quoted(text: &str) -> String {
    let mut literal = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            letter if letter.is_control() => literal.push(' '),
            letter => literal.push(letter),
        }
    }
    literal + "\""
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;
    use std::path::{Path, PathBuf};

    use flate2::read::GzDecoder;
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
                version: "1.2.3+build.5".to_owned(),
                description: Some("Stores \"images\"\nand C:\\files".to_owned()),
                license: None,
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
    fn tarball_has_the_code_the_library_and_the_manifest_of_nimble() {
        let folder = tempfile::tempdir().unwrap();
        let service = service(folder.path());
        let built = tarball(&service).unwrap();
        let name = "acme_image_store-1.2.3";
        assert_eq!(built.name, format!("{name}-x86_64-linux-gnu.tar.gz"));
        assert_eq!(built.note, "  for x86_64 Linux with glibc 2.34 or newer\n");
        assert_eq!(built.contents, tarball(&service).unwrap().contents);

        let files = contents(&built.contents);
        let paths: Vec<_> = files.keys().map(String::as_str).collect();
        let expected = [
            "LICENSE",
            "acme_image_store.nimble",
            "src/acme_image_store.nim",
            "src/acme_image_store/image_store.nim",
            "src/acme_image_store/libimage_store.so",
        ];
        assert_eq!(paths, expected.map(|path| format!("{name}/{path}")));
        let module = &files[&format!("{name}/src/acme_image_store.nim")];
        assert!(module.contains("\"./acme_image_store/image_store\""));
        assert!(module.contains("\"libimage_store.so\""));
        let manifest = &files[&format!("{name}/acme_image_store.nimble")];
        assert!(manifest.contains("version = \"1.2.3\"\n"));
        assert!(manifest.contains("description = \"Stores \\\"images\\\" and C:\\\\files\"\n"));
        assert!(manifest.contains("license = \"not stated\"\n"));
        assert!(manifest.contains("requires \"thalweg >= "));
    }

    #[test]
    fn what_nimble_cannot_express_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |change: fn(&mut Service)| {
            let mut service = service(folder.path());
            change(&mut service);
            tarball(&service).unwrap_err()
        };
        let error = refused(|service| service.package.version = "1.0.0-rc.1".to_owned());
        assert!(matches!(&error, Error::PreRelease(version) if version == "1.0.0-rc.1"));
        assert!(error.to_string().contains("1.0.0-rc.1"));
        let error = refused(|service| service.elf.machine = "aarch64");
        assert!(matches!(error, Error::Processor("Nim", "aarch64")));
        let error = refused(|service| {
            service.model.namespace = "not".to_owned();
            service.model.name = "in".to_owned();
        });
        assert!(matches!(error, Error::Keyword(name) if name == "not_in"));
    }
}
