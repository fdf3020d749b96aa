//! A tarball for C programs: the library, the headers, and files for pkg-config and CMake. It works
//! from whichever folder it is unpacked into.

use std::fs;
use std::path::Path;

use thalweg_bindgen::c;

use super::archive::{self, File};
use super::{Built, Error, Service};

const PKG_CONFIG: &str = include_str!("c/package.pc.in");
const CMAKE: &str = include_str!("c/packageConfig.cmake.in");
const CMAKE_VERSION: &str = include_str!("c/packageConfigVersion.cmake.in");

/// Builds the tarball. `headers` is the folder of the generic headers.
///
/// # Errors
/// The interface has a construct that C does not support; a header cannot be read.
pub(super) fn tarball(service: &Service, headers: &Path) -> Result<Built, Error> {
    let name = &service.package.name;
    let version = &service.package.version;
    let root = format!("{name}-{version}-{}-linux-gnu", service.elf.machine);

    let mut files = Vec::new();
    for (name, contents) in generic(headers)? {
        files.push(File::new(format!("{root}/include/{name}"), contents));
    }
    for output in c::emit(&service.model)? {
        let path = output.path.to_string_lossy();
        files.push(File::new(format!("{root}/include/{path}"), output.contents));
    }
    let library = service.file_name();
    files.push(File::new(
        format!("{root}/lib/{library}"),
        service.bytes.clone(),
    ));
    let fill = |text: &str| {
        let description = service.package.description.as_deref().unwrap_or(name);
        let description: Vec<_> = description.split_whitespace().collect();
        text.replace("@NAME@", name)
            .replace("@VERSION@", version)
            .replace("@LIBRARY@", &library)
            // pkg-config expands `$`, and `#` begins a comment.
            .replace(
                "@DESCRIPTION@",
                &description.join(" ").replace(['$', '#'], ""),
            )
    };
    for (path, text) in [
        (format!("pkgconfig/{name}.pc"), PKG_CONFIG),
        (format!("cmake/{name}/{name}Config.cmake"), CMAKE),
        (
            format!("cmake/{name}/{name}ConfigVersion.cmake"),
            CMAKE_VERSION,
        ),
    ] {
        files.push(File::new(format!("{root}/lib/{path}"), fill(text)));
    }
    let contents =
        archive::tar_gz(&files).map_err(|error| Error::File(service.library.clone(), error))?;
    Ok(Built {
        name: format!("{root}.tar.gz"),
        contents,
        note: service.note(),
    })
}

/// The generic headers, in order.
fn generic(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let failed = |error| Error::File(folder.to_owned(), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "h") {
            let contents = fs::read(&path).map_err(|error| Error::File(path.clone(), error))?;
            let name = path.file_name().unwrap_or_default();
            found.push((name.to_string_lossy().into_owned(), contents));
        }
    }
    found.sort();
    Ok(found)
}
