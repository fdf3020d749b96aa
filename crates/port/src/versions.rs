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
//!
//! A caller without generated code uses the same conversions for CBOR: [`Instance::set_cbor`].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Mutex;

use thalweg_queue::no_preempt::lock;
use thalweg_wire::describe::Type;
use thalweg_wire::evolve::{Conversion, Unconverted};
use thalweg_wire::{MAX_SIZE, cbor};

use crate::code::{Code, Failure, no_memory};
use crate::completion::{CBOR_PREFIX, Outcome};
use crate::handles::{self, Kind};
use crate::instance::Instance;
use crate::message_handles::{close_handles, close_unread_stream};
use crate::package::{Method, Package};
use crate::stream::StreamCore;

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
    params: Option<MessageConversion>,
    ok: Option<MessageConversion>,
    error: Option<MessageConversion>,
}

#[derive(Debug)]
enum MessageConversion {
    /// Between two versions of a type.
    Version(Conversion<'static>),
    /// Between a message of this type and its CBOR.
    Cbor(Type<'static>),
}

impl MessageConversion {
    /// The conversion between two versions. CBOR has none.
    fn version(&self) -> Option<&Conversion<'static>> {
        match self {
            Self::Version(conversion) => Some(conversion),
            Self::Cbor(_) => None,
        }
    }
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
    /// The conversions of a caller that uses CBOR.
    fn of_cbor(methods: &'static [Method]) -> Self {
        let function = |method: &'static Method| {
            let line = |number| {
                let text = method.description.split('\n').nth(number)?;
                Type::parse(text).ok().map(MessageConversion::Cbor)
            };
            match method.options.is_cbor {
                true => FunctionConversion {
                    params: line(0),
                    ok: line(1),
                    error: line(2),
                },
                false => FunctionConversion::default(),
            }
        };
        let numbers = 0..methods.len() as u32;
        let functions = numbers.clone().zip(methods);
        Self {
            methods: FunctionMap {
                by_library_number: functions
                    .map(|(number, method)| Some((number, function(method))))
                    .collect(),
                library_numbers: numbers.collect(),
            },
            // Host calls are not converted.
            imports: FunctionMap {
                by_library_number: Vec::new(),
                library_numbers: Vec::new(),
            },
        }
    }

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
        let converted = match conversion {
            None => Ok(()),
            Some(MessageConversion::Version(conversion)) => {
                convert_in_place(conversion, &mut outcome.data).map_err(|error| error.to_string())
            }
            Some(MessageConversion::Cbor(ty)) => convert_to_cbor(ty, &mut outcome.data),
        };
        if let Err(error) = converted {
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
        let conversion =
            conversion.map_err(|difference| has_differences(format!(": {difference}")))?;
        *made = Some(MessageConversion::Version(conversion));
    }
    // The conversion of the value that contains a stream includes the stream's elements.
    let [params, ok, error, _] = made;
    Ok(FunctionConversion { params, ok, error })
}

/// Converts a message to CBOR in place, after [`CBOR_PREFIX`].
fn convert_to_cbor(ty: &Type<'static>, data: &mut Vec<u8>) -> Result<(), String> {
    let cbor = cbor::of_message(ty, data, MAX_SIZE as usize).map_err(|error| error.to_string())?;
    let size = CBOR_PREFIX + cbor.len();
    // Reuses the memory of the message.
    data.clear();
    data.try_reserve(size)
        .map_err(|_| Unconverted::Memory(size).to_string())?;
    data.resize(CBOR_PREFIX, 0);
    data.extend_from_slice(&cbor);
    Ok(())
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
        let stream = handles::with(handle.0, |entry| entry.get::<StreamCore>(Kind::Stream).ok());
        if let Ok(stream) = stream {
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

    /// From now on, the caller passes CBOR as the arguments of the methods with
    /// [`MethodOptions::is_cbor`](crate::MethodOptions::is_cbor), and receives
    /// [CBOR](crate::Outcome::cbor) from them. Other methods are not affected. Call it once, before
    /// the first call.
    ///
    /// # Errors
    /// `argument`: no method is one for CBOR, or the caller's version was already set. `closed`,
    /// `forked`.
    pub fn set_cbor(&self) -> Result<(), Failure> {
        self.check_open()?;
        let methods = self.package.methods;
        if !methods.iter().any(|method| method.options.is_cbor) {
            let why = "no method of the library has the format CBOR";
            return Err(Code::Argument.because(why));
        }
        self.versions
            .set(VersionMap::of_cbor(methods))
            .map_err(|_| Code::Argument.because("the client's version is already set"))
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

    /// The same for arguments that a caller in Rust has just written.
    ///
    /// # Errors
    /// The errors of [`convert_arguments`](Self::convert_arguments).
    #[inline]
    pub(crate) fn convert_written_arguments(
        &self,
        method: u32,
        args: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match self.versions.get() {
            None => Ok(()),
            Some(versions) => {
                *args = versions.convert_arguments(method, args)?.into_owned();
                Ok(())
            }
        }
    }

    /// The conversion of the elements of a stream parameter. `None` if both versions are equal.
    pub(crate) fn upstream_conversion(
        &self,
        method: u32,
        parameter: u32,
    ) -> Option<Conversion<'static>> {
        let (_, method) = self.versions.get()?.methods.get(method)?;
        method.params.as_ref()?.version()?.of_parameter(parameter)
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
        let Some(conversion) = method.and_then(|(_, method)| method.error.as_ref()?.version())
        else {
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
        if let Some(conversion) = function.params.as_ref().and_then(|it| it.version()) {
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
        if let Some(conversion) = conversion.as_ref().and_then(|it| it.version()) {
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
        if let Some(MessageConversion::Cbor(ty)) = conversion {
            let message = cbor::to_message(ty, args, MAX_SIZE as usize);
            return message.map(Cow::Owned).map_err(|refused| {
                Code::Argument.because(format!(
                    "the arguments are not CBOR of their type: {refused}"
                ))
            });
        }
        let conversion = conversion.and_then(|it| it.version());
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
