//! Archives that are the same whenever and wherever they are built from the same files.

use std::io::{self, Write};

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};

// Values of the zip format: <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>.

/// Version 2.0: deflate.
const ZIP_VERSION: u16 = 20;
/// The same, on Unix: the high half of the external attributes is the file's mode.
const ZIP_MADE_BY: u16 = 3 << 8 | ZIP_VERSION;
/// Bit 11: names are UTF-8.
const ZIP_UTF8: u16 = 1 << 11;
const ZIP_DEFLATED: u16 = 8;
/// Midnight.
const ZIP_TIME: u16 = 0;
/// 1980-01-01: years since 1980, month, day.
const ZIP_DATE: u16 = 1 << 5 | 1;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The path in the archive, with `/`.
    pub path: String,
    pub contents: Vec<u8>,
}

impl File {
    pub fn new(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            contents: contents.into(),
        }
    }

    /// The mode of a regular file. A shared library is executable, as linkers leave it.
    fn mode(&self) -> u32 {
        if self.path.ends_with(".so") {
            0o100_755
        } else {
            0o100_644
        }
    }
}

/// A zip archive. All files have the earliest time that the format has.
///
/// # Errors
/// The archive or a file would have more than 4 GiB, or there are more than 65,535 files.
pub fn zip(files: &[File]) -> io::Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for file in files {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&file.contents)?;
        let compressed = encoder.finish()?;
        let mut crc = Crc::new();
        crc.update(&file.contents);

        // The fields that both headers of a file have, from "version needed" on: APPNOTE 4.3.7.
        let mut fields = Vec::new();
        fields.extend(ZIP_VERSION.to_le_bytes());
        fields.extend(ZIP_UTF8.to_le_bytes());
        fields.extend(ZIP_DEFLATED.to_le_bytes());
        fields.extend(ZIP_TIME.to_le_bytes());
        fields.extend(ZIP_DATE.to_le_bytes());
        fields.extend(crc.sum().to_le_bytes());
        fields.extend(zip_size(compressed.len())?.to_le_bytes());
        fields.extend(zip_size(file.contents.len())?.to_le_bytes());
        fields.extend(zip_count(file.path.len())?.to_le_bytes());
        fields.extend(0_u16.to_le_bytes()); // no extra field

        // The central directory: APPNOTE 4.3.12.
        directory.extend(b"PK\x01\x02");
        directory.extend(ZIP_MADE_BY.to_le_bytes());
        directory.extend(&fields);
        directory.extend([0; 6]); // no comment, the first disk, no internal attributes
        directory.extend((file.mode() << 16).to_le_bytes());
        directory.extend(zip_size(archive.len())?.to_le_bytes());
        directory.extend(file.path.as_bytes());

        archive.extend(b"PK\x03\x04");
        archive.extend(&fields);
        archive.extend(file.path.as_bytes());
        archive.extend(compressed);
    }
    let (count, size, start) = (
        zip_count(files.len())?,
        zip_size(directory.len())?,
        zip_size(archive.len())?,
    );
    archive.extend(directory);
    // The end of the central directory: APPNOTE 4.3.16.
    archive.extend(b"PK\x05\x06");
    archive.extend([0; 4]); // one disk
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(size.to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend(0_u16.to_le_bytes()); // no comment
    Ok(archive)
}

/// A size or an offset. A library of a service is far below the limit, beyond which the format has
/// other fields.
fn zip_size(size: usize) -> io::Result<u32> {
    u32::try_from(size).map_err(|_| io::Error::other("a wheel has at most 4 GiB"))
}

fn zip_count(count: usize) -> io::Result<u16> {
    u16::try_from(count).map_err(|_| io::Error::other("a wheel has at most 65,535 files"))
}

/// A tar archive, compressed by gzip. All files have the time 0 and belong to root.
///
/// # Errors
/// A path that the format cannot express.
pub fn tar_gz(files: &[File]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(file.contents.len() as u64);
        header.set_mode(file.mode() & 0o777);
        archive.append_data(&mut header, &file.path, file.contents.as_slice())?;
    }
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{File, tar_gz, zip};

    fn files() -> Vec<File> {
        vec![
            File::new("a/empty.py", ""),
            File::new("a/\u{e4}.py", "print()\n".repeat(1_000)),
            File::new("a/lib.so", vec![7; 70_000]),
        ]
    }

    /// Python reads wheels, and this machine has one to test the binding with.
    #[test]
    fn zip_is_read_by_python() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.whl");
        std::fs::write(&path, zip(&files()).unwrap()).unwrap();
        let script = "import sys, zipfile\n\
            with zipfile.ZipFile(sys.argv[1]) as z:\n\
            \x20   assert z.testzip() is None\n\
            \x20   for i in z.infolist():\n\
            \x20       print(ascii(i.filename), len(z.read(i)), oct(i.external_attr >> 16), i.date_time[:3])\n";
        let output = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let expected = "'a/empty.py' 0 0o100644 (1980, 1, 1)\n\
            'a/\\xe4.py' 8000 0o100644 (1980, 1, 1)\n\
            'a/lib.so' 70000 0o100755 (1980, 1, 1)\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }

    #[test]
    fn tar_has_the_files() {
        let bytes = tar_gz(&files()).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mode = entry.header().mode().unwrap();
            found.push((File::new(path, contents), mode));
        }
        let expected: Vec<_> = files().into_iter().zip([0o644, 0o644, 0o755]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn archives_of_equal_files_are_equal() {
        assert_eq!(zip(&files()).unwrap(), zip(&files()).unwrap());
        assert_eq!(tar_gz(&files()).unwrap(), tar_gz(&files()).unwrap());
    }
}
