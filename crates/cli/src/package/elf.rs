//! The requirements of a shared library: the processor, other libraries, and the version of glibc.

use std::fmt;

use object::elf::{self, FileHeader64};
use object::endian::LittleEndian;
use object::read::elf::{FileHeader, Sym as _};

/// The function that every library of a service exports.
const SYMBOL: &[u8] = b"tw_library";

/// The oldest glibc that the tag of a wheel names. pip knows no older one for aarch64, and no
/// processor here runs a system with an older one.
const OLDEST: Version = Version(2, 17);

/// Libraries that every Linux system with glibc has: those of PEP 600's policies that come from
/// glibc and from GCC. libstdc++ is missing because it depends on symbols that this module does not
/// compare.
const COMMON: &[&str] = &[
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libutil.so.1",
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
];

/// The newest version of libgcc's symbols that systems with glibc 2.17 have.
const GCC: Version = Version(4, 8);

/// A version of two numbers: 2.34.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The result of reading a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// `x86_64` or `aarch64`, as Python and GNU call it.
    pub machine: &'static str,
    /// The oldest glibc on which the library loads, if nothing else decides it.
    pub glibc: Version,
    /// What the library needs that not every system with this glibc has.
    pub others: Vec<String>,
}

/// Why a library is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not an ELF file for a 64-bit little-endian processor, or it is damaged.
    Format(String),
    /// The processor is not supported.
    Machine(u16),
    /// It is linked with another C library than glibc.
    NotGlibc,
    /// It does not export `tw_library`.
    NoService,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Format(why) => {
                write!(f, "this is not a shared library for 64-bit Linux: {why}")
            }
            Error::Machine(number) => write!(
                f,
                "the processor with the ELF number {number} is not supported, only x86-64 and aarch64 are"
            ),
            Error::NotGlibc => f.write_str("the library is not linked with glibc (libc.so.6)"),
            Error::NoService => f.write_str(
                "the library is no service: it does not export tw_library; call `thalweg_capi::export!` once",
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<object::read::Error> for Error {
    fn from(error: object::read::Error) -> Self {
        Error::Format(error.to_string())
    }
}

/// Reads a library.
///
/// # Errors
/// It is no library of a service for a supported system.
pub fn read(bytes: &[u8]) -> Result<Library, Error> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    if header.e_type(endian) != elf::ET_DYN {
        return Err(Error::Format("it is another kind of ELF file".to_owned()));
    }
    let machine = match header.e_machine(endian) {
        elf::EM_X86_64 => "x86_64",
        elf::EM_AARCH64 => "aarch64",
        other => return Err(Error::Machine(other.0)),
    };
    let sections = header.sections(endian, bytes)?;

    let symbols = sections.symbols(endian, bytes, elf::SHT_DYNSYM)?;
    let exported = symbols.iter().any(|symbol| {
        !symbol.is_undefined(endian) && symbol.name(endian, symbols.strings()) == Ok(SYMBOL)
    });
    if !exported {
        return Err(Error::NoService);
    }

    let mut library = Library {
        machine,
        glibc: OLDEST,
        others: Vec::new(),
    };
    let dynamic = sections.dynamic_table(endian, bytes)?;
    let mut has_glibc = false;
    for entry in dynamic.iter().filter(|entry| entry.tag == elf::DT_NEEDED) {
        let name = text(dynamic.string(entry)?);
        has_glibc |= name == "libc.so.6";
        if !COMMON.contains(&name.as_str()) {
            library.others.push(name);
        }
    }
    if !has_glibc {
        return Err(Error::NotGlibc);
    }

    if let Some((mut needs, link)) = sections.gnu_verneed(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        while let Some((_, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                library.needs(&text(version.name(endian, strings)?));
            }
        }
    }
    Ok(library)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Library {
    /// Takes a version of symbols into account: `GLIBC_2.34`, `GCC_3.0`. One that a weak reference
    /// needs counts like the others.
    fn needs(&mut self, version: &str) {
        let number = |prefix| version.strip_prefix(prefix).and_then(numbers);
        if version == "GLIBC_ABI_DT_RELR" {
            self.glibc = self.glibc.max(Version(2, 36));
        } else if let Some(glibc) = number("GLIBC_") {
            self.glibc = self.glibc.max(glibc);
        } else if number("GCC_").is_none_or(|gcc| gcc > GCC) {
            self.others.push(version.to_owned());
        }
    }

    /// The platform tag of a wheel: `manylinux_2_34_x86_64`, or `linux_x86_64` if the library needs
    /// something that not every system with a certain glibc has (PEP 600).
    pub fn platform(&self) -> String {
        let Version(major, minor) = self.glibc;
        match self.others.is_empty() {
            true => format!("manylinux_{major}_{minor}_{}", self.machine),
            false => format!("linux_{}", self.machine),
        }
    }
}

/// The first two numbers of `4.2.0`.
fn numbers(version: &str) -> Option<Version> {
    let mut numbers = version.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some(Version(major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Library, OLDEST, Version, read};

    fn library() -> Library {
        Library {
            machine: "x86_64",
            glibc: OLDEST,
            others: Vec::new(),
        }
    }

    #[test]
    fn platform_is_that_of_the_newest_glibc_version() {
        let mut library = library();
        assert_eq!(library.platform(), "manylinux_2_17_x86_64");
        for version in [
            "GLIBC_2.2.5",
            "GLIBC_2.34",
            "GLIBC_2.28",
            "GCC_3.0",
            "GCC_4.2.0",
        ] {
            library.needs(version);
        }
        assert_eq!(library.glibc, Version(2, 34));
        assert_eq!(library.platform(), "manylinux_2_34_x86_64");
        library.needs("GLIBC_ABI_DT_RELR");
        assert_eq!(library.platform(), "manylinux_2_36_x86_64");
    }

    #[test]
    fn platform_is_not_manylinux_if_anything_else_is_needed() {
        for version in [
            "GLIBC_PRIVATE",
            "GCC_14.0.0",
            "GLIBCXX_3.4.30",
            "OPENSSL_3.0.0",
            "",
        ] {
            let mut library = library();
            library.needs(version);
            assert_eq!(library.platform(), "linux_x86_64", "{version}");
        }
        let mut library = library();
        library.others.push("libz.so.1".to_owned());
        assert_eq!(library.platform(), "linux_x86_64");
    }

    #[test]
    fn file_that_is_no_library_is_refused() {
        for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0; 4096]] {
            assert!(matches!(read(bytes), Err(Error::Format(_))), "{bytes:?}");
        }
    }

    #[test]
    fn program_is_no_service() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(read(&program), Err(Error::NoService));
        for cut in (0..program.len()).step_by(program.len() / 100 + 1) {
            assert!(read(&program[..cut]).is_err());
        }
    }
}
