//! Loads a guest library, which declares its package meanwhile.

use std::cell::RefCell;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_capi::abi::{
    TW_METHOD_ASYNC, TW_METHOD_BRIEF, TW_METHOD_CAN_BLOCK, TW_METHOD_CBOR, TW_METHOD_IDEMPOTENT,
    TW_METHOD_INLINE, TW_METHOD_NOTICES, TW_OK, TwError, TwHandle, TwMethod,
};
use thalweg_capi::enter;
use thalweg_capi::error::argument;
use thalweg_capi::pointers::out;
use thalweg_port::{
    Code, Failure, FunctionDescription, GuestPackage, MethodOptions, Overflow, PackageDescription,
    QueueLimits, StreamOptions, native,
};

use crate::abi::{
    TW_GUEST_ABI, TW_GUEST_ASYNC_MAY_BLOCK, TW_GUEST_BLOCK, TW_GUEST_STAYS_LOADED, TW_GUEST_SYMBOL,
    TW_OVERFLOW_BLOCK, TW_OVERFLOW_DROP_NEWEST, TW_OVERFLOW_DROP_OLDEST, TW_OVERFLOW_FAIL,
    TW_OVERFLOW_LATEST, TwGuestCore, TwGuestFunction, TwGuestFunctions, TwGuestPackage,
    TwGuestPolicy,
};
use crate::foreign::{ForeignGuest, ServedPort, WhileLoaded, no_error, refused};
use crate::library::GuestLibrary;

/// A guest that was opened.
pub(crate) struct OpenedGuest {
    pub package: &'static GuestPackage,
    pub guest: Arc<ForeignGuest>,
}

/// What a guest declares in its `tw_guest`.
struct Served {
    package: &'static GuestPackage,
    functions: TwGuestFunctions,
    ctx: *mut c_void,
    port: Option<ServedPort>,
}

struct Opening {
    number: u64,
    served: Option<Served>,
}

thread_local! {
    /// The guest that this thread is opening.
    static OPENING: RefCell<Option<Opening>> = const { RefCell::new(None) };
}

/// A loaded library and its function `tw_guest`.
pub(crate) struct Entry {
    library: GuestLibrary,
    function: TwGuestFunction,
}

impl Entry {
    /// Loads a library. `name` is the name by which the dynamic loader opens it, and `path` is its path for
    /// messages.
    ///
    /// # Errors
    /// `argument`.
    pub(crate) fn load(name: &OsStr, path: &str) -> Result<Self, Failure> {
        // Code of the guest runs from here on.
        native(|| {
            let cannot_load = |why: libloading::Error| {
                // The error's own text does not contain the loader's.
                let source = std::error::Error::source(&why).map(ToString::to_string);
                let why = source.unwrap_or_else(|| why.to_string());
                argument(format!("cannot load the guest {path}: {why}"))
            };
            // SAFETY: loading runs the initialisers of a library that the program trusts.
            let library = unsafe { GuestLibrary::open(name) };
            let library = library.map_err(cannot_load)?;
            // SAFETY: thalweg_guest.h gives the symbol this type.
            let function = unsafe { library.get::<TwGuestFunction>(TW_GUEST_SYMBOL) };
            let function = *function.map_err(|_| {
                argument(format!(
                    "{path} is not a guest: it does not export the function tw_guest"
                ))
            })?;
            Ok(Self { library, function })
        })
    }

    /// Whether the dynamic loader has loaded the function under this name. Otherwise it is in a library that
    /// was loaded before.
    pub(crate) fn has_name(&self, name: &OsStr) -> bool {
        let mut found = MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: it reads no memory at the address. `found` is written unless the result is 0.
        unsafe {
            libc::dladdr(self.function as *const c_void, found.as_mut_ptr()) != 0
                && CStr::from_ptr(found.assume_init().dli_fname).to_bytes() == name.as_bytes()
        }
    }
}

/// Lets a library declare its package and its functions. `path` is its path for messages.
///
/// # Errors
/// Those of `tw_address_open`.
pub(crate) fn open(
    entry: Entry,
    path: &str,
    core: &'static TwGuestCore,
    loaded: WhileLoaded,
) -> Result<OpenedGuest, Failure> {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    native(|| {
        let Entry { library, function } = entry;
        let opening = Opening {
            number,
            served: None,
        };
        let outer = OPENING.replace(Some(opening));
        let mut error = no_error();
        // SAFETY: the rules of thalweg_guest.h.
        let code = unsafe { function(TW_GUEST_ABI, core, number, &raw mut error) };
        let served = OPENING.replace(outer).and_then(|opening| opening.served);
        match (code, served) {
            (TW_OK, Some(served)) => Ok(OpenedGuest {
                package: served.package,
                guest: Arc::new(ForeignGuest::new(
                    served.functions,
                    served.ctx,
                    served.port,
                    (library, loaded),
                    path.to_owned(),
                )),
            }),
            (TW_OK, None) => Err(argument(format!("the guest {path} has not called serve"))),
            (code, _) => Err(refused(path, code, &error)),
        }
    })
}

/// `tw_guest_core.serve`.
pub(crate) unsafe extern "C" fn serve(
    opening: u64,
    package: *const TwGuestPackage,
    functions: *const TwGuestFunctions,
    ctx: *mut c_void,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg_guest.h requires of the guest what `enter`, `described` and `copied` require.
    unsafe {
        enter(error, || {
            let functions = copied(functions)?;
            if functions.call.is_none() {
                return Err(argument("functions.call is a null pointer"));
            }
            declare(
                opening,
                Served {
                    package: GuestPackage::of(&described(package)?)?,
                    functions,
                    ctx,
                    port: None,
                },
            )
        })
    }
}

/// `tw_guest_core.serve_port`.
pub(crate) unsafe extern "C" fn serve_port(
    opening: u64,
    package: *const TwGuestPackage,
    functions: *const TwGuestFunctions,
    ctx: *mut c_void,
    port: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `serve`.
    unsafe {
        enter(error, || {
            let port = out(port, "port")?;
            let mut package = described(package)?;
            // Threads of the guest serve all calls.
            for method in &mut package.methods {
                method.options.is_brief = false;
            }
            let served = ServedPort::open()?;
            let handle = served.handle();
            declare(
                opening,
                Served {
                    package: GuestPackage::of(&package)?,
                    functions: copied(functions)?,
                    ctx,
                    port: Some(served),
                },
            )?;
            *port = handle;
            Ok(())
        })
    }
}

/// # Errors
/// `argument`: this thread is not in the `tw_guest` of this opening, or the guest has declared itself
/// already.
fn declare(opening: u64, served: Served) -> Result<(), Failure> {
    OPENING.with_borrow_mut(|current| match current {
        Some(current) if current.number == opening && current.served.is_none() => {
            current.served = Some(served);
            Ok(())
        }
        _ => Err(argument(
            "a guest is declared once, in tw_guest, with the opening that it was called with",
        )),
    })
}

/// # Safety
/// `functions` is null, or has the size that it says.
unsafe fn copied(functions: *const TwGuestFunctions) -> Result<TwGuestFunctions, Failure> {
    if functions.is_null() {
        return Err(argument("functions is a null pointer"));
    }
    // SAFETY: every version has this field.
    check_size::<TwGuestFunctions>(unsafe { (*functions).size }, "tw_guest_functions")?;
    // SAFETY: it has at least this size.
    let functions = unsafe { functions.read() };
    match functions.flags & !(TW_GUEST_STAYS_LOADED | TW_GUEST_ASYNC_MAY_BLOCK) {
        0 => Ok(functions),
        unknown => Err(argument(format!("unknown flags {unknown:#x} of functions"))),
    }
}

fn check_size<T>(size: u32, name: &str) -> Result<(), Failure> {
    match size as usize >= size_of::<T>() {
        true => Ok(()),
        false => Err(Code::Version.because(format!(
            "the guest has a {name} of {size} bytes, and libthalweg.so needs {}",
            size_of::<T>()
        ))),
    }
}

/// # Safety
/// `package` is null, or has the size that it says. Its pointers are as `thalweg_guest.h` requires.
unsafe fn described<'a>(package: *const TwGuestPackage) -> Result<PackageDescription<'a>, Failure> {
    if package.is_null() {
        return Err(argument("package is a null pointer"));
    }
    // SAFETY: every version has this field.
    check_size::<TwGuestPackage>(unsafe { (*package).size }, "tw_guest_package")?;
    // SAFETY: it has at least this size.
    let package = unsafe { package.read() };
    if package.flags & !TW_GUEST_BLOCK != 0 {
        return Err(argument(format!(
            "unknown flags {:#x} of the package",
            package.flags
        )));
    }
    let or = |value: u64, default: u64| if value == 0 { default } else { value };
    let defaults = QueueLimits::DEFAULT;
    // SAFETY: the caller guarantees it.
    unsafe {
        let methods = list(package.methods, package.method_count, "methods")?;
        let policies = match package.policies.is_null() {
            true => &[],
            false => list(package.policies, package.method_count, "policies")?,
        };
        let imports = list(package.imports, package.import_count, "imports")?;
        Ok(PackageDescription {
            name: name(package.package, "the name of the package")?,
            version: name(package.version, "the version of the package")?,
            methods: (methods.iter().enumerate())
                .map(|(number, method)| {
                    let policy = policies.get(number).copied().unwrap_or_default();
                    method_of(method, policy)
                })
                .collect::<Result<_, _>>()?,
            imports: imports
                .iter()
                .map(|import| function_of(import))
                .collect::<Result<_, _>>()?,
            limits: QueueLimits {
                max_queued_calls: or(
                    package.max_queued_calls.into(),
                    defaults.max_queued_calls.into(),
                ) as u32,
                max_queued_bytes: or(package.max_queued_bytes, defaults.max_queued_bytes),
                blocks_on_overflow: package.flags & TW_GUEST_BLOCK != 0,
            },
        })
    }
}

/// # Safety
/// `first` is null, or there are `count` items.
unsafe fn list<'a, T>(first: *const T, count: u32, what: &str) -> Result<&'a [T], Failure> {
    match (count, first.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(argument(format!("{what} is a null pointer"))),
        // SAFETY: the caller guarantees it.
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count as usize) }),
    }
}

/// # Safety
/// `text` is null, or NUL-terminated.
unsafe fn name<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(argument(format!("{what} is a null pointer")));
    }
    // SAFETY: the caller guarantees it.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| argument(format!("{what} is not UTF-8")))
}

/// # Safety
/// As [`described`].
unsafe fn function_of<'a>(function: &TwMethod) -> Result<FunctionDescription<'a>, Failure> {
    // SAFETY: the caller guarantees it.
    let name = unsafe { name(function.name, "the name of a function")? };
    if function.description.is_null() {
        return Err(argument(format!(
            "the description of {name} is a null pointer"
        )));
    }
    // SAFETY: the caller guarantees it.
    let types = unsafe {
        std::slice::from_raw_parts(function.description, function.description_size as usize)
    };
    let types = std::str::from_utf8(types)
        .map_err(|_| argument(format!("the description of {name} is not UTF-8")))?;
    Ok(FunctionDescription {
        name,
        types,
        is_async: function.flags & TW_METHOD_ASYNC != 0,
        options: MethodOptions::NONE,
        stream: StreamOptions::DEFAULT,
    })
}

/// # Safety
/// As [`described`].
unsafe fn method_of<'a>(
    method: &TwMethod,
    policy: TwGuestPolicy,
) -> Result<FunctionDescription<'a>, Failure> {
    // SAFETY: the caller guarantees it.
    let function = unsafe { function_of(method)? };
    let flags = method.flags;
    let has = |flag| flags & flag != 0;
    // The last two follow from the policies.
    let known = TW_METHOD_ASYNC
        | TW_METHOD_BRIEF
        | TW_METHOD_CBOR
        | TW_METHOD_IDEMPOTENT
        | TW_METHOD_INLINE
        | TW_METHOD_CAN_BLOCK
        | TW_METHOD_NOTICES;
    let name = function.name;
    if flags & !known != 0 {
        return Err(argument(format!("unknown flags {flags:#x} of {name}")));
    }
    let defaults = StreamOptions::DEFAULT;
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    let overflow = match policy.overflow {
        TW_OVERFLOW_BLOCK => Overflow::Block,
        TW_OVERFLOW_LATEST => Overflow::Latest,
        TW_OVERFLOW_DROP_NEWEST => Overflow::DropNewest,
        TW_OVERFLOW_DROP_OLDEST => Overflow::DropOldest,
        TW_OVERFLOW_FAIL => Overflow::Fail,
        other => {
            return Err(argument(format!(
                "unknown overflow policy {other} of {name}"
            )));
        }
    };
    Ok(FunctionDescription {
        options: MethodOptions {
            is_inline: has(TW_METHOD_INLINE),
            is_brief: has(TW_METHOD_BRIEF),
            is_idempotent: has(TW_METHOD_IDEMPOTENT),
            is_cbor: has(TW_METHOD_CBOR),
            notice_interval_ns: policy.notice_interval_ns,
            timeout_ns: policy.timeout_ns,
        },
        stream: StreamOptions {
            overflow,
            capacity: or(policy.capacity, defaults.capacity),
            linger_ns: policy.linger_ns,
            max_record_size: or(policy.max_record_size, defaults.max_record_size),
        },
        ..function
    })
}
