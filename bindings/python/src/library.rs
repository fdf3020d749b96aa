//! Opens a service library, and refuses one that is incompatible.
//!
//! A library is loaded once, with `RTLD_NOW | RTLD_LOCAL`, and never unloaded, because its runtime
//! has threads. The table and its data are constant for the life of the process, so a [`Library`]
//! is passed as `&'static`.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use thalweg_capi::abi::{
    TW_ABI, TW_LIBRARY_SYMBOL, TW_METHOD_BRIEF, TW_METHOD_CAN_BLOCK, TW_METHOD_INLINE, TW_OK,
    TwError, TwHandle, TwLibraryFunction, TwMethod, TwTable,
};

use crate::function_info::FunctionInfo;
use crate::{errors, guest, log_queue};

/// One opened library.
pub struct Library {
    /// Its table, which has the layout that this side expects.
    pub table: &'static TwTable,
    /// The layout hash of the package that opened it. The library itself may be of another version.
    pub layout: u64,
    /// The path with which it was opened first.
    pub path: PathBuf,
    /// The library's entries for the package's methods.
    methods: Vec<&'static TwMethod>,
    known: [Vec<Arc<FunctionInfo>>; 2],
}

/// The library that a generated package expects.
pub struct Expected<'a> {
    /// `thalweg:search`.
    pub package: &'a str,
    /// `0.1.0`.
    pub version: &'a str,
    /// A hash over all methods and host imports.
    pub layout: u64,
    /// A hash over the host imports.
    pub imports: u64,
    /// The methods, and the host imports.
    pub known: [Vec<Arc<FunctionInfo>>; 2],
}

impl Library {
    /// Whether a method may be called on the caller's thread.
    pub fn is_inline(&self, method: u32) -> bool {
        self.has_flag(method, TW_METHOD_INLINE)
    }

    /// Whether a method may run on the caller's thread while its service is idle.
    pub fn is_brief(&self, method: u32) -> bool {
        self.has_flag(method, TW_METHOD_BRIEF)
    }

    /// Whether a call of a method may wait for capacity.
    pub fn waits(&self, method: u32) -> bool {
        self.has_flag(method, TW_METHOD_CAN_BLOCK)
    }

    fn has_flag(&self, method: u32, flag: u32) -> bool {
        let known = self.methods.get(method as usize);
        known.is_some_and(|method| method.flags & flag != 0)
    }

    /// Opens an instance that accepts calls in the layout of the package.
    ///
    /// # Errors
    /// The errors of the table.
    pub fn client(&'static self, py: Python<'_>) -> PyResult<TwHandle> {
        let table = self.table;
        let (mut client, mut error) = (0, errors::blank());
        // SAFETY: both pointers are ours.
        let mut code =
            py.detach(|| unsafe { (table.client_open)(&raw mut client, &raw mut error) });
        if code == TW_OK && table.layout != self.layout {
            code = layouts(table, client, &self.known, &mut error);
            if code != TW_OK {
                // SAFETY: the handle is ours.
                py.detach(|| unsafe { (table.client_close)(client, std::ptr::null_mut()) });
            }
        }
        match code {
            TW_OK => Ok(client),
            code => Err(errors::from_table(py, code, &error)),
        }
    }
}

/// Passes the package's function layouts to the table. With client 0, it only checks that they are
/// compatible.
fn layouts(
    table: &TwTable,
    client: TwHandle,
    known: &[Vec<Arc<FunctionInfo>>; 2],
    error: &mut TwError,
) -> u32 {
    let [methods, imports] = known.each_ref().map(|all| {
        all.iter()
            .map(|known| known.as_method())
            .collect::<Vec<_>>()
    });
    // SAFETY: the arrays have these lengths. Their entries point into `known`, and the table copies
    // the parts that it keeps.
    unsafe {
        (table.client_set_layouts)(
            client,
            methods.as_ptr(),
            methods.len() as u32,
            imports.as_ptr(),
            imports.len() as u32,
            error,
        )
    }
}

/// All libraries of this process, by table. It is locked with the GIL held, and never while Python
/// code runs, so `os.fork()` cannot find it locked.
static OPENED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// Loads the library at `path` and checks it against what the generated package `expects`.
///
/// # Errors
/// `OSError` if the loader fails; `thalweg.VersionMismatch`, which names both versions, if the two
/// are incompatible.
pub fn open(py: Python<'_>, path: &Path, expected: &Expected<'_>) -> PyResult<&'static Library> {
    let table = match address(path) {
        Some(address) => guest::open(py, address)?,
        None => load(py, path)?,
    };
    let methods = check(table, path, expected).map_err(|text| errors::version(py, &text))?;
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = opened
        .iter()
        .find(|library| std::ptr::eq(library.table, table) && library.layout == expected.layout)
    {
        return Ok(known);
    }
    let library: &'static Library = Box::leak(Box::new(Library {
        table,
        layout: expected.layout,
        path: path.to_owned(),
        methods,
        known: expected.known.clone(),
    }));
    opened.push(library);
    drop(opened);
    log_queue::attach(py, library.table)?;
    Ok(library)
}

/// The libraries that were opened, one entry for each table.
pub fn opened(_: Python<'_>) -> Vec<&'static Library> {
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tables: Vec<&'static Library> = Vec::new();
    for library in opened.iter() {
        let is_known = |known: &&'static Library| std::ptr::eq(known.table, library.table);
        if !tables.iter().any(is_known) {
            tables.push(library);
        }
    }
    tables
}

/// The library that was opened with this path or address.
pub fn find(path: &Path) -> Option<&'static Library> {
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.iter().find(|library| library.path == path).copied()
}

/// The address of a guest, if that is what `path` is: `thread:PATH`.
fn address(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once(':')?;
    matches!(scheme, "thread" | "process" | "remote").then_some(text)
}

/// The table of the library at `path`, in the layout that this side expects.
fn load(py: Python<'_>, path: &Path) -> PyResult<&'static TwTable> {
    use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
    let name = path.to_owned();
    // SAFETY: loading runs the library's initialisers. Opening a service requires that; only the
    // caller's choice of file can make it sound.
    let loaded = py
        .detach(|| unsafe { Loaded::open(Some(&name), RTLD_NOW | RTLD_LOCAL) })
        .map_err(|error| errors::not_loaded(path, &error))?;
    let loaded = std::mem::ManuallyDrop::new(loaded);
    // SAFETY: the symbol has this type in every Thalweg library: the name is ours.
    let function = unsafe { loaded.get::<TwLibraryFunction>(TW_LIBRARY_SYMBOL.to_bytes_with_nul()) }.map_err(|_| {
        errors::version(
            py,
            &format!(
                "{} is not a Thalweg library: it does not export tw_library; this package speaks ABI {TW_ABI}",
                path.display()
            ),
        )
    })?;
    // SAFETY: the function accepts any number and returns a table that lives as long as the
    // process.
    let table = unsafe { function(TW_ABI) };
    if table.is_null() {
        return Err(errors::version(
            py,
            &format!("{}: tw_library returned no table", path.display()),
        ));
    }
    // SAFETY: the pointer is not null, and the first five fields never move, whatever the library's
    // ABI is.
    let (abi, size, package, version) = unsafe {
        (
            (*table).abi,
            (*table).size,
            text((*table).package),
            text((*table).version),
        )
    };
    if abi != TW_ABI || (size as usize) < size_of::<TwTable>() {
        return Err(errors::version(
            py,
            &format!(
                "{}: library {package} {version} speaks ABI {abi} (a table of {size} bytes), \
                 this package speaks ABI {TW_ABI} ({} bytes)",
                path.display(),
                size_of::<TwTable>()
            ),
        ));
    }
    // SAFETY: the ABI and the size are those of this side, so the whole table exists, and it is
    // constant.
    Ok(unsafe { &*table })
}

/// The library's entries for the expected methods, or the reason why it is incompatible, which
/// names both.
fn check(
    table: &'static TwTable,
    path: &Path,
    expected: &Expected<'_>,
) -> Result<Vec<&'static TwMethod>, String> {
    // SAFETY: strings of a table are NUL-terminated and constant.
    let (package, version) = unsafe { (text(table.package), text(table.version)) };
    let both = |why: &str| {
        format!(
            "{}: the library is {package} {version} (layout {:016x}), this package was generated for {} {} (layout \
             {:016x}): {why}",
            path.display(),
            table.layout,
            expected.package,
            expected.version,
            expected.layout
        )
    };
    if package != expected.package {
        return Err(both("another package"));
    }
    if !fits(expected.version, &version) {
        return Err(both("another version"));
    }
    let all = methods(table);
    let [known, _] = &expected.known;
    let mut there = Vec::with_capacity(known.len());
    for (place, known) in known.iter().enumerate() {
        // SAFETY: as above.
        let is_it = |method: &&TwMethod| unsafe { name(method) } == Some(&*known.name);
        let at_its_place = all.get(place).filter(is_it);
        let Some(method) = at_its_place.or_else(|| all.iter().find(is_it)) else {
            let name = known.name.to_string_lossy();
            return Err(both(&format!("the library has no {name}")));
        };
        there.push(method);
    }
    if table.layout == expected.layout {
        return Ok(there);
    }
    let hashes = |method: &TwMethod| [method.params, method.ok, method.error, method.element];
    let mut pairs = there.iter().zip(known);
    let same_types = pairs.all(|(method, known)| hashes(method) == known.hashes);
    if same_types && all.len() == known.len() && table.imports_layout == expected.imports {
        return Err(both("the methods differ"));
    }
    // Functions may have other numbers, and types may have grown: the library checks whether both
    // sides are compatible.
    let mut error = errors::blank();
    match layouts(table, 0, &expected.known, &mut error) {
        TW_OK => Ok(there),
        _ => Err(both(&errors::message(&error))),
    }
}

/// Whether two versions are compatible: `1.2.3` and `1.4.0`, `0.1.2` and `0.1.3`. In such versions,
/// functions are only added. Other versions are compatible only if they are equal.
fn fits(ours: &str, theirs: &str) -> bool {
    let line = |version: &str| {
        let numbers = version.split('.').map(str::parse::<u32>);
        let numbers: Vec<_> = numbers.collect::<Result<_, _>>().ok()?;
        match numbers[..] {
            [0, minor, _] if minor > 0 => Some((0, minor)),
            [major, _, _] if major > 0 => Some((major, 0)),
            _ => None,
        }
    };
    ours == theirs || line(ours).is_some_and(|ours| line(theirs) == Some(ours))
}

/// The table's methods.
fn methods(table: &'static TwTable) -> &'static [TwMethod] {
    if table.methods.is_null() {
        return &[];
    }
    // SAFETY: a table has `method_count` contiguous methods, which are constant.
    unsafe { std::slice::from_raw_parts(table.methods, table.method_count as usize) }
}

/// The name of a method.
///
/// # Safety
/// The name is null or NUL-terminated, and constant.
unsafe fn name(method: &TwMethod) -> Option<&CStr> {
    // SAFETY: the caller's promise.
    (!method.name.is_null()).then(|| unsafe { CStr::from_ptr(method.name) })
}

/// A string of the table.
///
/// # Safety
/// `from` is null or NUL-terminated.
unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::from("(nothing)");
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(from) }
        .to_string_lossy()
        .into_owned()
}
