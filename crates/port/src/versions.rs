//! A caller of another version: what it writes is converted to what the library reads, and back.
//!
//! ```text
//!   caller  -- convert_arguments --> | converted at the submission |            --> mailbox
//!           <-- the result - | converted when the service has convert_outcome | <-- service
//!           <-- convert_arguments -- | converted when the host is convert_host_call |       <-- service
//!           --- answer ----> | converted when the host answers |        --> service
//! ```
//!
//! Of a stream the elements are converted where they are read: [`StreamCore::set_conversion`](crate::stream::StreamCore::read_as); of one that is sent up,
//! where they are sent.
//!
//! A description's fields say at least what a chain of hashes, one for each of its prefixes, would; so the older side need not be known in advance, and each
//! side may be the older one. An instance whose caller knows all types as the library does has nothing of this.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Mutex;

use thalweg_queue::quiet::lock;
use thalweg_wire::describe::Type;
use thalweg_wire::evolve::{Conversion, Unconverted};

use crate::code::{Code, Failure, no_memory};
use crate::completion::{Outcome, close_handles, close_unread_stream};
use crate::handles::{self, Object};
use crate::instance::Instance;
use crate::service::{Method, Package};

/// A method, or what is asked of the host, as a caller knows it. As [`Method`] has it.
#[derive(Clone, Copy, Debug)]
pub struct FunctionSchema<'a> {
    /// As WIT writes it.
    pub name: &'a str,
    /// Of the parameters, the result, the error's payload and the stream's element; 0 where there is none.
    pub hashes: [u64; 4],
    /// The four texts that they are of, a line each; empty: who calls does not say, so only what is the same fits.
    pub description: &'a str,
}

/// What is not the same on both sides.
#[derive(Debug)]
pub(crate) struct VersionMap {
    methods: FunctionMap,
    imports: FunctionMap,
}

/// Functions are known by their names: each side numbers its own.
#[derive(Debug)]
struct FunctionMap {
    /// By the caller's numbers: the library's.
    library_numbers: Vec<u32>,
    /// By the library's numbers: what the two sides need, with the caller's number. `None`: the caller does not know it.
    by_library_number: Vec<Option<(u32, FunctionConversion)>>,
}

/// `None`: the same on both sides.
#[derive(Debug, Default)]
struct FunctionConversion {
    params: Option<Conversion<'static>>,
    ok: Option<Conversion<'static>>,
    error: Option<Conversion<'static>>,
}

const PARTS: [&str; 4] = ["parameters", "result", "error", "element"];

/// Descriptions of callers, each once and for good: there are as many as there are functions in generated code.
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

/// Whether who knows these `methods`, and answers these `imports`, can call a library of this package.
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

    /// Puts the message of an ending into the caller's version.
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
            return Err(incompatible(
                "it does not ask its host for anything".to_owned(),
            ));
        }
        for (number, ours) in (0u32..).zip(ours) {
            // Most often at the same place, or near it.
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
                // It is never asked for.
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
                "it asks its host for {}, which the host does not have",
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

/// What the two sides of a function need.
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
        // Whose message it is: the caller writes the parameters of a method, and what it answers.
        let is_theirs = (part == 0) == is_import;
        let conversion = match is_theirs {
            true => Conversion::new(library_numbers, known),
            false => Conversion::new(known, library_numbers),
        };
        *made = Some(conversion.map_err(|difference| has_differences(format!(": {difference}")))?);
    }
    // A stream's elements are in what it is a part of, too.
    let [params, ok, error, _] = made;
    Ok(FunctionConversion { params, ok, error })
}

/// Converts a message in its place, closes what was left out, and has streams give what their reader knows.
fn convert_in_place(
    conversion: &Conversion<'static>,
    data: &mut Vec<u8>,
) -> Result<(), Unconverted> {
    let converted = conversion.convert(data)?;
    // Into the memory that is there: a message's is used again.
    data.clear();
    let bytes = converted.message.len();
    data.try_reserve(bytes)
        .map_err(|_| Unconverted::Memory(bytes))?;
    data.extend_from_slice(&converted.message);
    for handle in converted.dropped {
        // What is closed already needs no closing.
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
    /// From now on arguments come as these `methods` have them, and results go so; what is asked of the host is asked as `imports` have it. To be said once,
    /// before the first call.
    ///
    /// # Errors
    /// `version`: they are no versions of what the library has, with the first difference; `argument`: it was said before; `closed`; `forked`.
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
                .map_err(|_| Code::Argument.because("the client's layouts were said before")),
        }
    }

    /// The library's number of what is the caller's method `method`.
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

    /// Arguments as the library reads them. What is no message of the caller's version is left as it is: the service refuses it.
    ///
    /// # Errors
    /// `overloaded`: there is no memory for them.
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

    /// Of a parameter that is a stream: its elements as the library reads them; `None`: the caller has the same.
    pub(crate) fn upstream_conversion(
        &self,
        method: u32,
        parameter: u32,
    ) -> Option<Conversion<'static>> {
        let (_, method) = self.versions.get()?.methods.get(method)?;
        method.params.as_ref()?.of_parameter(parameter)
    }

    /// A call's result as its caller reads it.
    #[inline]
    pub(crate) fn convert_outcome(&self, method: u32, outcome: &mut Outcome) {
        if let Some(versions) = self.versions.get() {
            versions.convert_outcome(method, outcome);
        }
    }

    /// The error at the end of a stream of this method, a message, as the stream's caller reads it. `None`: as it is.
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

    /// What a host is asked, as it reads it, and which import that is to it.
    ///
    /// # Errors
    /// `argument`: it would be too large.
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

    /// What a host answered, as the service reads it. What is no message of the host's version is left as it is.
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
                // As with arguments that nobody reads.
                converted.dropped.into_iter().for_each(close_unread_stream);
                Ok(Cow::Owned(converted.message))
            }
            Some(Err(Unconverted::Memory(bytes))) => Err(no_memory(bytes)),
            _ => Ok(Cow::Borrowed(args)),
        }
    }
}
