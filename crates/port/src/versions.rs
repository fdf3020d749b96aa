//! Conversion for a caller with another version of the package.
//!
//! ```text
//!   caller  -- arguments --> | converted at the submission |               --> mailbox
//!           <-- result ----- | converted when the service has answered |   <-- service
//!           <-- arguments -- | converted when the service calls its host | <-- service
//!           --- answer ----> | converted when the host answers |           --> service
//! ```
//!
//! The elements of a stream are converted when they are read:
//! [`StreamCore::set_conversion`](crate::stream::StreamCore::set_conversion). The elements of a
//! stream parameter are converted when they are sent.
//!
//! The description of a record lists all fields, so it contains more information than a hash for
//! each prefix of the fields would. The older version therefore need not be known in advance, and
//! either side may be the older one. An instance whose caller has the same types has no
//! conversions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Mutex;

use thalweg_queue::no_preempt::lock;
use thalweg_wire::describe::Type;
use thalweg_wire::evolve::{Conversion, Unconverted};

use crate::code::{Code, Failure, no_memory};
use crate::completion::{Outcome, close_handles, close_unread_stream};
use crate::handles::{self, Object};
use crate::instance::Instance;
use crate::package::{Method, Package};

/// A method or a host import in the caller's version. See [`Method`] for the fields.
#[derive(Clone, Copy, Debug)]
pub struct FunctionSchema<'a> {
    /// The WIT name.
    pub name: &'a str,
    /// Hashes of the layouts of the parameters, the result, the error's payload and the stream's
    /// element. A hash is 0 if there is no such layout.
    pub hashes: [u64; 4],
    /// The four texts of these hashes, one per line. If it is empty, only equal hashes are
    /// compatible.
    pub description: &'a str,
}

/// The differences between the two versions.
#[derive(Debug)]
pub(crate) struct VersionMap {
    methods: FunctionMap,
    imports: FunctionMap,
}

/// Functions are matched by name, because each side has its own numbers.
#[derive(Debug)]
struct FunctionMap {
    /// The library's number for each of the caller's numbers.
    library_numbers: Vec<u32>,
    /// For each of the library's numbers: the caller's number and the conversion. `None` if the
    /// caller does not have the function.
    by_library_number: Vec<Option<(u32, FunctionConversion)>>,
}

/// A field is `None` if both versions are equal.
#[derive(Debug, Default)]
struct FunctionConversion {
    params: Option<Conversion<'static>>,
    ok: Option<Conversion<'static>>,
    error: Option<Conversion<'static>>,
}

const PARTS: [&str; 4] = ["parameters", "result", "error", "element"];

/// Descriptions of callers. Each distinct text is kept for ever, and generated code has a fixed
/// number of them.
static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

fn intern(text: &str) -> &'static str {
    let mut known = lock(&INTERNED);
    match known.get(text) {
        Some(text) => text,
        None => {
            let text: &'static str = text.to_owned().leak();
            known.insert(text);
            text
        }
    }
}

fn incompatible(what: String) -> Failure {
    Code::Version.because(what)
}

/// Checks whether a caller with these `methods` and `imports` can use a library with this package.
///
/// # Errors
/// `version`, with the first difference.
pub fn check_compatible(
    package: &'static Package,
    methods: &[FunctionSchema<'_>],
    imports: &[FunctionSchema<'_>],
) -> Result<(), Failure> {
    VersionMap::new(package, methods, imports).map(drop)
}

impl VersionMap {
    fn new(
        package: &'static Package,
        methods: &[FunctionSchema<'_>],
        imports: &[FunctionSchema<'_>],
    ) -> Result<Option<Self>, Failure> {
        let versions = Self {
            methods: FunctionMap::new(methods, package.methods, false)?,
            imports: FunctionMap::new(imports, package.imports, true)?,
        };
        let incompatible = versions.methods.has_differences() || versions.imports.has_differences();
        Ok(incompatible.then_some(versions))
    }

    /// Converts the message of an outcome to the caller's version.
    fn convert_outcome(&self, method: u32, outcome: &mut Outcome) {
        let Some((_, method)) = self.methods.get(method) else {
            return;
        };
        let conversion = match outcome.code {
            Code::Ok => &method.ok,
            Code::Error => &method.error,
            _ => return,
        };
        if let Some(conversion) = conversion
            && let Err(error) = convert_in_place(conversion, &mut outcome.data)
        {
            close_handles(&outcome.data);
            let why = format!("the result cannot be sent: {error}");
            outcome.fail(Code::GuestLost.because(why));
        }
    }
}

impl FunctionMap {
    fn new(
        ours: &[FunctionSchema<'_>],
        theirs: &'static [Method],
        is_import: bool,
    ) -> Result<Self, Failure> {
        let mut library_numbers = Vec::with_capacity(ours.len());
        let mut by_library_number = Vec::new();
        by_library_number.resize_with(theirs.len(), || None);
        if is_import && theirs.is_empty() && !ours.is_empty() {
            return Err(incompatible("the service has no imports".to_owned()));
        }
        for (number, ours) in (0u32..).zip(ours) {
            // Usually the function is at the same position or near it.
            let from = library_numbers
                .last()
                .map_or(0, |last| *last as usize + 1)
                .min(theirs.len());
            let behind = (from..theirs.len()).chain(0..from);
            let place = behind
                .into_iter()
                .find(|place| theirs[*place].name == ours.name);
            match place {
                Some(place) => {
                    library_numbers.push(place as u32);
                    by_library_number[place] =
                        Some((number, function(ours, &theirs[place], is_import)?));
                }
                // The library never calls it.
                None if is_import => {}
                None => return Err(incompatible(format!("the library has no {}", ours.name))),
            }
        }
        let unanswered = || {
            theirs
                .iter()
                .zip(&by_library_number)
                .find(|(_, known)| known.is_none())
        };
        match unanswered() {
            Some((theirs, _)) if is_import => Err(incompatible(format!(
                "the service imports {}, which the host does not provide",
                theirs.name
            ))),
            _ => Ok(Self {
                library_numbers,
                by_library_number,
            }),
        }
    }

    fn get(&self, library_numbers: u32) -> Option<&(u32, FunctionConversion)> {
        self.by_library_number
            .get(library_numbers as usize)?
            .as_ref()
    }

    fn has_differences(&self) -> bool {
        let known = self.by_library_number.iter().flatten();
        let is_other =
            |it: &FunctionConversion| it.params.is_some() || it.ok.is_some() || it.error.is_some();
        let is_renumbered =
            |(caller_number, library_numbers): (u32, &u32)| caller_number != *library_numbers;
        (0u32..).zip(&self.library_numbers).any(is_renumbered)
            || known.into_iter().any(|(_, it)| is_other(it))
    }
}

/// The conversions between the two versions of a function.
fn function(
    ours: &FunctionSchema<'_>,
    theirs: &'static Method,
    is_import: bool,
) -> Result<FunctionConversion, Failure> {
    let hashes = [theirs.params, theirs.ok, theirs.error, theirs.element];
    let mut made = [None, None, None, None];
    for (part, made) in made.iter_mut().enumerate() {
        if ours.hashes[part] == hashes[part] {
            continue;
        }
        let has_differences = |why: String| {
            let (part, name) = (PARTS[part], ours.name);
            incompatible(format!("the {part} of {name} differ{why}"))
        };
        let of = |description: &'static str, hash: u64| {
            let text = description.split('\n').nth(part)?;
            Type::parse(text).ok().filter(|ty| ty.hash() == hash)
        };
        let types = (
            of(intern(ours.description), ours.hashes[part]),
            of(theirs.description, hashes[part]),
        );
        let (Some(known), Some(library_numbers)) = types else {
            return Err(has_differences(String::new()));
        };
        // The caller writes the parameters of a method and the answer to a host call.
        let is_theirs = (part == 0) == is_import;
        let conversion = match is_theirs {
            true => Conversion::new(library_numbers, known),
            false => Conversion::new(known, library_numbers),
        };
        *made = Some(conversion.map_err(|difference| has_differences(format!(": {difference}")))?);
    }
    // The conversion of the value that contains a stream includes the stream's elements.
    let [params, ok, error, _] = made;
    Ok(FunctionConversion { params, ok, error })
}

/// Converts a message in place, closes the handles that the other version does not have, and sets
/// the conversions of streams.
fn convert_in_place(
    conversion: &Conversion<'static>,
    data: &mut Vec<u8>,
) -> Result<(), Unconverted> {
    let converted = conversion.convert(data)?;
    // Reuses the message's memory.
    data.clear();
    let bytes = converted.message.len();
    data.try_reserve(bytes)
        .map_err(|_| Unconverted::Memory(bytes))?;
    data.extend_from_slice(&converted.message);
    for handle in converted.dropped {
        // A handle that is already closed needs no further action.
        let _ = handles::close_handle(handle.0);
    }
    for (handle, conversion) in converted.streams {
        if let Ok(Object::Stream(stream)) = handles::find(handle.0) {
            stream.set_conversion(conversion);
        }
    }
    Ok(())
}

impl Instance {
    /// Sets the caller's version of the package: arguments arrive in the layouts of `methods`, and
    /// results are sent in them. Host calls use the layouts of `imports`. Call it once, before the
    /// first call.
    ///
    /// # Errors
    /// `version`: the versions are not compatible; the message has the first difference.
    /// `argument`: the version was already set. `closed`, `forked`.
    pub fn set_caller_schema(
        &self,
        methods: &[FunctionSchema<'_>],
        imports: &[FunctionSchema<'_>],
    ) -> Result<(), Failure> {
        self.check_open()?;
        match VersionMap::new(self.package, methods, imports)? {
            None => Ok(()),
            Some(versions) => self
                .versions
                .set(versions)
                .map_err(|_| Code::Argument.because("the client's version is already set")),
        }
    }

    /// The library's number of the caller's method `method`.
    ///
    /// # Errors
    /// `argument`: there is no such method.
    #[inline]
    pub(crate) fn library_method(&self, method: u32) -> Result<u32, Failure> {
        match self.versions.get() {
            None => Ok(method),
            Some(versions) => versions.library_method(method),
        }
    }

    /// Converts arguments to the library's version. Malformed arguments are not changed, so that
    /// the service refuses them.
    ///
    /// # Errors
    /// `overloaded`: there is not enough memory.
    #[inline]
    pub(crate) fn convert_arguments<'a>(
        &self,
        method: u32,
        args: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, Failure> {
        match self.versions.get() {
            None => Ok(Cow::Borrowed(args)),
            Some(versions) => versions.convert_arguments(method, args),
        }
    }

    /// The conversion of the elements of a stream parameter. `None` if both versions are equal.
    pub(crate) fn upstream_conversion(
        &self,
        method: u32,
        parameter: u32,
    ) -> Option<Conversion<'static>> {
        let (_, method) = self.versions.get()?.methods.get(method)?;
        method.params.as_ref()?.of_parameter(parameter)
    }

    /// Converts a call's outcome to the caller's version.
    #[inline]
    pub(crate) fn convert_outcome(&self, method: u32, outcome: &mut Outcome) {
        if let Some(versions) = self.versions.get() {
            versions.convert_outcome(method, outcome);
        }
    }

    /// Converts the error at the end of a stream of this method to the caller's version. `None` if
    /// both versions are equal.
    ///
    /// # Errors
    /// `guest_lost`: the error has no counterpart in the caller's version.
    pub(crate) fn convert_stream_error(
        &self,
        method: u32,
        error: &[u8],
    ) -> Result<Option<Vec<u8>>, Failure> {
        let method = self.versions.get().and_then(|it| it.methods.get(method));
        let Some(conversion) = method.and_then(|(_, method)| method.error.as_ref()) else {
            return Ok(None);
        };
        let converted = conversion.convert(error).map_err(|refused| {
            Code::GuestLost.because(format!("the stream's error cannot be sent: {refused}"))
        })?;
        Ok(Some(converted.message))
    }

    /// Converts the arguments of a host call to the host's version. Returns the host's number of
    /// the import.
    ///
    /// # Errors
    /// `argument`: the result would be too large.
    pub(crate) fn convert_host_call(
        &self,
        import: u32,
        args: &mut Vec<u8>,
    ) -> Result<u32, Failure> {
        let versions = self.versions.get();
        let Some((number, function)) = versions.and_then(|it| it.imports.get(import)) else {
            return Ok(import);
        };
        if let Some(conversion) = &function.params {
            convert_in_place(conversion, args).map_err(|error| match error {
                Unconverted::Memory(bytes) => no_memory(bytes),
                error => Code::Argument.because(format!("the arguments: {error}")),
            })?;
        }
        Ok(*number)
    }

    /// Converts a host's answer to the service's version. A malformed answer is not changed.
    pub(crate) fn convert_host_answer(&self, import: u32, outcome: &mut Outcome) {
        let versions = self.versions.get();
        let Some((_, import)) = versions.and_then(|it| it.imports.get(import)) else {
            return;
        };
        let conversion = match outcome.code {
            Code::Ok => &import.ok,
            Code::Error => &import.error,
            _ => return,
        };
        if let Some(conversion) = conversion {
            let _ = convert_in_place(conversion, &mut outcome.data);
        }
    }
}

impl VersionMap {
    #[cold]
    fn library_method(&self, method: u32) -> Result<u32, Failure> {
        let none = || Code::Argument.because(format!("the caller has no method {method}"));
        self.methods
            .library_numbers
            .get(method as usize)
            .copied()
            .ok_or_else(none)
    }

    #[cold]
    fn convert_arguments<'a>(&self, method: u32, args: &'a [u8]) -> Result<Cow<'a, [u8]>, Failure> {
        let conversion = self
            .methods
            .get(method)
            .and_then(|(_, it)| it.params.as_ref());
        match conversion.map(|conversion| conversion.convert(args)) {
            Some(Ok(converted)) => {
                // Closed like the streams of arguments that the service does not read.
                converted.dropped.into_iter().for_each(close_unread_stream);
                Ok(Cow::Owned(converted.message))
            }
            Some(Err(Unconverted::Memory(bytes))) => Err(no_memory(bytes)),
            _ => Ok(Cow::Borrowed(args)),
        }
    }
}
