//! A wheel with the generated Python package and the library of the service.
//!
//! The format: <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>.

use std::fs;

use sha2::{Digest, Sha256};
use thalweg_bindgen::python;

use super::archive::{self, File};
use super::{Built, Error, Service, base};
use crate::new;

/// The oldest Python that the generic package supports: its wheel is `cp311-abi3`.
const PYTHON: &str = "3.11";

/// Builds the wheel.
///
/// # Errors
/// The interface has a construct that Python does not support; the version has no form in Python.
pub(super) fn wheel(service: &Service) -> Result<Built, Error> {
    let outputs = python::emit(&service.model)?;
    let module = outputs
        .first()
        .and_then(|output| output.path.iter().next())
        .unwrap_or_default();
    let module = module.to_string_lossy().into_owned();
    let version = version(&service.package.version)
        .ok_or_else(|| Error::Version(service.package.version.clone()))?;
    let platform = service.elf.platform();
    let info = format!("{module}-{version}.dist-info");

    let mut files: Vec<File> = outputs
        .iter()
        .map(|output| File::new(output.path.to_string_lossy(), output.contents.as_bytes()))
        .collect();
    // `open` of the generated client looks for it there.
    files.push(File::new(
        format!("{module}/{}", service.file_name()),
        service.bytes.clone(),
    ));
    for (name, contents) in service.licenses()? {
        files.push(File::new(format!("{info}/licenses/{name}"), contents));
    }
    let metadata = metadata(service, &module, &version)?;
    files.push(File::new(format!("{info}/METADATA"), metadata));
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: thalweg {}\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n",
        env!("CARGO_PKG_VERSION")
    );
    files.push(File::new(format!("{info}/WHEEL"), wheel));
    let record = record(&files, &info);
    files.push(File::new(format!("{info}/RECORD"), record));

    let contents =
        archive::zip(&files).map_err(|error| Error::File(service.library.clone(), error))?;
    Ok(Built {
        name: format!("{module}-{version}-py3-none-{platform}.whl"),
        contents,
        note: note(service),
    })
}

/// On which systems the wheel can be installed.
fn note(service: &Service) -> String {
    let needs = &service.elf.others;
    match needs.is_empty() {
        true => format!(
            "  for {} Linux with glibc {} or newer\n",
            service.elf.machine, service.elf.glibc
        ),
        false => format!(
            "  the tag is not manylinux, because the library also needs: {}\n",
            needs.join(", ")
        ),
    }
}

/// The file METADATA. A value of one line loses its line breaks, so that it cannot add a field.
fn metadata(service: &Service, module: &str, version: &str) -> Result<String, Error> {
    let package = &service.package;
    let ours = env!("CARGO_PKG_VERSION");
    let mut fields = vec![
        ("Metadata-Version", "2.4".to_owned()),
        ("Name", module.replace('_', "-")),
        ("Version", version.to_owned()),
    ];
    let optional = [
        ("Summary", package.description.clone()),
        (
            "License-Expression",
            // cargo also accepts `MIT/Apache-2.0`, which is no SPDX expression.
            package
                .license
                .clone()
                .filter(|license| !license.contains('/')),
        ),
        (
            "Project-URL",
            package
                .repository
                .as_ref()
                .map(|url| format!("Repository, {url}")),
        ),
    ];
    fields.extend(
        optional
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    for (name, _) in service.licenses()? {
        fields.push(("License-File", name));
    }
    fields.push(("Requires-Python", format!(">={PYTHON}")));
    fields.push((
        "Requires-Dist",
        format!("thalweg>={},<{}", base(ours), new::next_version(ours)),
    ));
    let readme = match &package.readme {
        Some(path) => {
            fields.push(("Description-Content-Type", "text/markdown".to_owned()));
            fs::read_to_string(path).map_err(|error| Error::File(path.clone(), error))?
        }
        None => String::new(),
    };
    let fields: String = fields
        .iter()
        .map(|(key, value)| {
            let value: Vec<_> = value.split_whitespace().collect();
            format!("{key}: {}\n", value.join(" "))
        })
        .collect();
    Ok(format!("{fields}\n{readme}"))
}

/// A version of cargo as Python writes it (PEP 440): `1.2.3-rc.1` is `1.2.3rc1`. `None`: it has no
/// form.
fn version(version: &str) -> Option<String> {
    // Build metadata does not take part in comparisons, and a local version of Python would.
    let version = version.split('+').next()?;
    let Some((base, pre)) = version.split_once('-') else {
        return Some(version.to_owned());
    };
    let (kind, number) = pre.split_once('.').unwrap_or((pre, "0"));
    let number: u64 = number.parse().ok()?;
    let kind = match kind {
        "alpha" => "a",
        "beta" => "b",
        "rc" => "rc",
        "dev" => ".dev",
        _ => return None,
    };
    Some(format!("{base}{kind}{number}"))
}

/// The file RECORD: every file with its hash and size, and itself without.
fn record(files: &[File], info: &str) -> String {
    let mut record = String::new();
    for File { path, contents } in files {
        let hash = base64url(&Sha256::digest(contents));
        record += &format!("{},sha256={hash},{}\n", quoted(path), contents.len());
    }
    record += &format!("{},,\n", quoted(&format!("{info}/RECORD")));
    record
}

/// A field of a CSV file.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Base64 for URLs, without padding (RFC 4648, section 5).
fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        // n bytes are n + 1 letters.
        for letter in 0..=chunk.len() {
            let index = (group >> (18 - 6 * letter)) & 63;
            text.push(char::from(LETTERS[index as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64url, quoted, version};

    #[test]
    fn version_has_the_form_of_python() {
        for (cargo, python) in [
            ("1.2.3", Some("1.2.3")),
            ("1.2.3-alpha.1", Some("1.2.3a1")),
            ("1.2.3-beta.2", Some("1.2.3b2")),
            ("1.2.3-rc.3", Some("1.2.3rc3")),
            ("1.2.3-rc", Some("1.2.3rc0")),
            ("1.2.3-dev.4", Some("1.2.3.dev4")),
            ("1.2.3+build", Some("1.2.3")),
            ("1.2.3-rc.1+build", Some("1.2.3rc1")),
            ("1.2.3-nightly", None),
            ("1.2.3-rc.1.2", None),
        ] {
            assert_eq!(version(cargo).as_deref(), python, "{cargo}");
        }
    }

    #[test]
    fn base64url_encodes_the_examples_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64url(bytes.as_bytes()), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn path_with_a_comma_is_quoted() {
        assert_eq!(quoted("a/b.py"), "a/b.py");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
