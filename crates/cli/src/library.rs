//! Opens a library and reads what its table says about its functions.

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use thalweg_capi::abi::{
    TW_ABI, TW_LIBRARY_SYMBOL, TW_OK, TwError, TwLibraryFunction, TwMethod, TwTable,
};

/// Why a library cannot be used.
#[derive(Debug)]
pub enum Error {
    /// There is no such file.
    File(PathBuf, io::Error),
    /// The system's loader refuses the file.
    Load(PathBuf, String),
    /// The library does not export `tw_library`, or that returns no table.
    NoTable(PathBuf),
    /// The library was built for another version of the ABI.
    Abi {
        path: PathBuf,
        package: String,
        abi: u32,
        size: u32,
    },
    /// A text in the table is not UTF-8, or is missing.
    Text(PathBuf, &'static str),
    /// A guest cannot be opened.
    Guest(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Load(path, why) => write!(f, "cannot load {}: {why}", path.display()),
            Error::NoTable(path) => write!(
                f,
                "{} is not a Thalweg library: it does not export the function tw_library",
                path.display()
            ),
            Error::Abi {
                path,
                package,
                abi,
                size,
            } => write!(
                f,
                "{}: {package} has ABI {abi} with a table of {size} bytes, and this command needs ABI {TW_ABI} with {} bytes: \
                 use the command and the library of one version of Thalweg",
                path.display(),
                size_of::<TwTable>()
            ),
            Error::Text(path, what) => {
                write!(f, "{}: {what} in its table is not UTF-8", path.display())
            }
            Error::Guest(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

/// An opened library. It is never unloaded, because its runtime has threads.
#[derive(Debug)]
pub struct Library {
    pub table: &'static TwTable,
    /// `thalweg:search`.
    pub package: &'static str,
    /// `0.1.0`.
    pub version: &'static str,
    /// The version of Thalweg that it was built with.
    pub core: &'static str,
    /// The methods, in the order of their numbers.
    pub methods: Vec<Function<'static>>,
    /// The host imports, in the order of their numbers.
    pub imports: Vec<Function<'static>>,
}

/// A method or a host import.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// `search.[method]query.progress`.
    pub name: &'a str,
    /// The four types, one per line: parameters, result, error payload, element.
    pub description: &'a str,
    /// `TW_METHOD_*`.
    pub flags: u32,
}

impl<'a> Function<'a> {
    /// Line `number` of the description. `None`: there is no such type.
    pub fn line(&self, number: usize) -> Option<&'a str> {
        let line = self.description.split('\n').nth(number)?;
        (!line.is_empty()).then_some(line)
    }

    /// The parameters, as a record.
    pub fn params(&self) -> &'a str {
        self.line(0).unwrap_or("record{}")
    }

    /// The result, without its error side.
    pub fn ok(&self) -> &'a str {
        self.line(1).unwrap_or("_")
    }

    /// The payload of the error. `None`: the function does not return a `result`.
    pub fn error(&self) -> Option<&'a str> {
        self.line(2)
    }

    pub fn has_flag(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

impl Library {
    /// Loads a library, which runs its initialisers, and reads its table.
    ///
    /// `path` may also be the address of a guest, `thread:PATH`.
    ///
    /// # Errors
    /// The file cannot be loaded, is not a Thalweg library or guest, or has another ABI.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let owned = || path.to_owned();
        if let Some(address) = guest_address(path) {
            return Self::of_table(path, open_guest(address)?);
        }
        // Without a `/` in its name, the loader would search the system's folders.
        let full = path
            .canonicalize()
            .map_err(|error| Error::File(owned(), error))?;
        // SAFETY: loading runs the library's initialisers. The user chose the file for that.
        let loaded = unsafe { Loaded::open(Some(&full), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| Error::Load(owned(), reason(&error, &full)))?;
        let loaded = std::mem::ManuallyDrop::new(loaded);
        // SAFETY: in every Thalweg library the symbol has this type.
        let function =
            unsafe { loaded.get::<TwLibraryFunction>(TW_LIBRARY_SYMBOL.to_bytes_with_nul()) };
        let function = function.map_err(|_| Error::NoTable(owned()))?;
        // SAFETY: the function accepts any number, and the table lives as long as the process.
        Self::of_table(path, unsafe { function(TW_ABI) })
    }

    /// `table` is null, or constant and lives as long as the process.
    fn of_table(path: &Path, table: *const TwTable) -> Result<Self, Error> {
        let owned = || path.to_owned();
        if table.is_null() {
            return Err(Error::NoTable(owned()));
        }
        // SAFETY: the first five fields never move, whatever the library's ABI is.
        let (abi, size, package) = unsafe { ((*table).abi, (*table).size, (*table).package) };
        let missing = |what| Error::Text(owned(), what);
        // SAFETY: a text of the table is NUL-terminated and constant.
        let package = unsafe { text(package) }.ok_or_else(|| missing("the name of the package"))?;
        if abi != TW_ABI || (size as usize) < size_of::<TwTable>() {
            return Err(Error::Abi {
                path: owned(),
                package: package.to_owned(),
                abi,
                size,
            });
        }
        // SAFETY: the ABI and the size are those of this program, so the whole table exists.
        let table = unsafe { &*table };
        // SAFETY: as above.
        let version = unsafe { text(table.version) };
        // SAFETY: as above.
        let core = unsafe { text(table.core) };
        // SAFETY: the table has this number of methods and imports, which are constant.
        let (methods, imports) = unsafe {
            (
                functions(table.methods, table.method_count),
                functions(table.imports, table.import_count),
            )
        };
        Ok(Self {
            table,
            package,
            version: version.ok_or_else(|| missing("its version"))?,
            core: core.ok_or_else(|| missing("the version of Thalweg"))?,
            methods: methods.ok_or_else(|| missing("a method"))?,
            imports: imports.ok_or_else(|| missing("a host import"))?,
        })
    }
}

/// The address of a guest, if that is what `path` is: `thread:PATH`.
fn guest_address(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once(':')?;
    matches!(scheme, "thread" | "process" | "remote").then_some(text)
}

/// The table of a guest, which `libthalweg.so` opens: the one that THALWEG_LIBRARY names, or that the
/// loader finds.
fn open_guest(address: &str) -> Result<*const TwTable, Error> {
    type Open = unsafe extern "C" fn(u32, *const c_char, *mut *const TwTable, *mut TwError) -> u32;
    let core = std::env::var_os("THALWEG_LIBRARY").unwrap_or_else(|| "libthalweg.so".into());
    let core = PathBuf::from(core);
    // SAFETY: loading runs the library's initialisers, which start nothing.
    let loaded = unsafe { Loaded::open(Some(&core), RTLD_NOW | RTLD_LOCAL) };
    let loaded = loaded.map_err(|error| Error::Load(core.clone(), reason(&error, &core)))?;
    let loaded = std::mem::ManuallyDrop::new(loaded);
    // SAFETY: thalweg_guest.h gives the symbol this type.
    let open = unsafe { loaded.get::<Open>(b"tw_address_open\0") };
    let open = open.map_err(|_| Error::NoTable(core))?;
    let address = CString::new(address).map_err(|why| Error::Guest(why.to_string()))?;
    let mut table = std::ptr::null();
    let mut error = TwError {
        code: TW_OK,
        retryable: 0,
        message: [0; 248],
    };
    // SAFETY: all pointers are ours.
    let code = unsafe { open(TW_ABI, address.as_ptr(), &raw mut table, &raw mut error) };
    match code {
        TW_OK => Ok(table),
        _ => {
            // SAFETY: the function has written a NUL-terminated text.
            let text = unsafe { CStr::from_ptr(error.message.as_ptr()) };
            Err(Error::Guest(text.to_string_lossy().into_owned()))
        }
    }
}

/// The reason of the system's loader, without the path.
fn reason(error: &libloading::Error, path: &Path) -> String {
    // The error's own text does not contain the loader's text.
    let why = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let prefix = format!("{}: ", path.display());
    why.strip_prefix(&prefix).unwrap_or(&why).to_owned()
}

/// The functions in the table. `None`: a text is missing or not UTF-8.
///
/// # Safety
/// `first` is null or points to `count` functions, whose texts are constant.
unsafe fn functions(first: *const TwMethod, count: u32) -> Option<Vec<Function<'static>>> {
    if first.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: the caller's promise.
    let methods = unsafe { std::slice::from_raw_parts(first, count as usize) };
    let functions = methods.iter().map(|method| {
        let size = method.description_size as usize;
        let description = match method.description.is_null() {
            true => &[],
            // SAFETY: the caller's promise.
            false => unsafe { std::slice::from_raw_parts(method.description, size) },
        };
        Some(Function {
            // SAFETY: the caller's promise.
            name: unsafe { text(method.name) }?,
            description: std::str::from_utf8(description).ok()?,
            flags: method.flags,
        })
    });
    functions.collect()
}

/// A text of the table. `None`: it is null or not UTF-8.
///
/// # Safety
/// `from` is null, or NUL-terminated and constant.
unsafe fn text(from: *const c_char) -> Option<&'static str> {
    if from.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(from) }.to_str().ok()
}
