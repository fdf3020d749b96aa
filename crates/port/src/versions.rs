//! A caller of another version: what it writes is converted to what the library reads, and back.
//!
//! ```text
//!   caller  -- arguments --> | converted at the submission |            --> mailbox
//!           <-- the result - | converted when the service has answered | <-- service
//!           <-- arguments -- | converted when the host is asked |       <-- service
//!           --- answer ----> | converted when the host answers |        --> service
//! ```
//!
//! A description's fields say at least what a chain of hashes, one for each of its prefixes, would; so the older side need not be known in advance, and each
//! side may be the older one. An instance whose caller knows all types as the library does has nothing of this.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Mutex;

use thalweg_queue::quiet::lock;
use thalweg_wire::describe::Type;
use thalweg_wire::evolve::{Conversion, Unconverted};

use crate::code::{Code, Failure};
use crate::handles;
use crate::instance::Instance;
use crate::parcel::{Ending, close_handles, close_unread_handle};
use crate::service::{Method, Package};

/// A method, or what is asked of the host, as a caller knows it. As [`Method`] has it.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// As WIT writes it.
    pub name: &'a str,
    /// Of the parameters, the result, the error's payload and the stream's element; 0 where there is none.
    pub hashes: [u64; 4],
    /// The four texts that they are of, a line each; empty: who calls does not say, so only what is the same fits.
    pub description: &'a str,
}

/// What is not the same on both sides.
#[derive(Debug)]
pub(crate) struct Versions {
    methods: Vec<Function>,
    imports: Vec<Function>,
}

/// `None`: the same on both sides.
#[derive(Debug, Default)]
struct Function {
    params: Option<Conversion<'static>>,
    ok: Option<Conversion<'static>>,
    error: Option<Conversion<'static>>,
}

const PARTS: [&str; 4] = ["parameters", "result", "error", "element"];

/// Descriptions of callers, each once and for good: there are as many as there are functions in generated code.
static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

fn interned(text: &str) -> &'static str {
    let mut known = lock(&KNOWN);
    match known.get(text) {
        Some(text) => text,
        None => {
            let text: &'static str = text.to_owned().leak();
            known.insert(text);
            text
        }
    }
}

fn differs(what: String) -> Failure {
    Code::Version.because(what)
}

/// Whether who knows these `methods`, and answers these `imports`, can call a library of this package.
///
/// # Errors
/// `version`, with the first difference.
pub fn fits(
    package: &'static Package,
    methods: &[Known<'_>],
    imports: &[Known<'_>],
) -> Result<(), Failure> {
    Versions::new(package, methods, imports).map(drop)
}

impl Versions {
    fn new(
        package: &'static Package,
        methods: &[Known<'_>],
        imports: &[Known<'_>],
    ) -> Result<Option<Self>, Failure> {
        let functions = |ours: &[Known<'_>], theirs: &'static [Method], is_import| {
            let pairs = ours.iter().enumerate().map(|(place, ours)| {
                let theirs = theirs.get(place).ok_or_else(|| {
                    differs(match is_import {
                        false => format!("the library has no {}", ours.name),
                        true => format!("it does not ask its host for {}", ours.name),
                    })
                })?;
                function(ours, theirs, is_import)
            });
            pairs.collect::<Result<Vec<_>, _>>()
        };
        if let Some(more) = package.imports.get(imports.len()) {
            return Err(differs(format!(
                "it asks its host for {}, which the host does not have",
                more.name
            )));
        }
        let versions = Self {
            methods: functions(methods, package.methods, false)?,
            imports: functions(imports, package.imports, true)?,
        };
        let all = versions.methods.iter().chain(&versions.imports);
        let is_other = |it: &Function| it.params.is_some() || it.ok.is_some() || it.error.is_some();
        Ok(all.into_iter().any(is_other).then_some(versions))
    }

    /// Puts the message of an ending into the caller's version.
    fn answered(&self, method: u32, ending: &mut Ending) {
        let Some(method) = self.methods.get(method as usize) else {
            return;
        };
        let conversion = match ending.code {
            Code::Ok => &method.ok,
            Code::Error => &method.error,
            _ => return,
        };
        if let Some(conversion) = conversion
            && let Err(error) = replace(conversion, &mut ending.data)
        {
            close_handles(&ending.data);
            let why = format!("the result cannot be sent: {error}");
            ending.fail(Code::GuestLost.because(why));
        }
    }
}

/// What the two sides of a function need.
fn function(
    ours: &Known<'_>,
    theirs: &'static Method,
    is_import: bool,
) -> Result<Function, Failure> {
    if ours.name != theirs.name {
        return Err(differs(format!(
            "{} stands where {} is known",
            theirs.name, ours.name
        )));
    }
    let hashes = [theirs.params, theirs.ok, theirs.error, theirs.element];
    let mut made = [None, None, None, None];
    for (part, made) in made.iter_mut().enumerate() {
        if ours.hashes[part] == hashes[part] {
            continue;
        }
        let differ = |why: String| {
            let (part, name) = (PARTS[part], ours.name);
            differs(format!("the {part} of {name} differ{why}"))
        };
        let of = |description: &'static str, hash: u64| {
            let text = description.split('\n').nth(part)?;
            Type::parse(text).ok().filter(|ty| ty.hash() == hash)
        };
        let types = (
            of(interned(ours.description), ours.hashes[part]),
            of(theirs.description, hashes[part]),
        );
        let (Some(known), Some(there)) = types else {
            return Err(differ(String::new()));
        };
        // Whose message it is: the caller writes the parameters of a method, and what it answers.
        let is_theirs = (part == 0) == is_import;
        let conversion = match is_theirs {
            true => Conversion::new(there, known),
            false => Conversion::new(known, there),
        };
        let conversion = conversion.map_err(|difference| differ(format!(": {difference}")))?;
        if part == 3 {
            return Err(differ(
                ": a stream's elements must be the same on both sides".to_owned(),
            ));
        }
        *made = Some(conversion);
    }
    let [params, ok, error, _] = made;
    Ok(Function { params, ok, error })
}

/// Converts a message in its place, and closes what was left out.
fn replace(conversion: &Conversion<'_>, data: &mut Vec<u8>) -> Result<(), Unconverted> {
    let converted = conversion.convert(data)?;
    // Into the memory that is there: a message's is used again.
    data.clear();
    data.extend_from_slice(&converted.message);
    for handle in converted.dropped {
        // What is closed already needs no closing.
        let _ = handles::close_handle(handle.0);
    }
    Ok(())
}

impl Instance {
    /// From now on arguments come as these `methods` have them, and results go so; what is asked of the host is asked as `imports` have it. To be said once,
    /// before the first call.
    ///
    /// # Errors
    /// `version`: they are no versions of what the library has, with the first difference; `argument`: it was said before; `closed`; `forked`.
    pub fn known_as(&self, methods: &[Known<'_>], imports: &[Known<'_>]) -> Result<(), Failure> {
        self.check_open()?;
        match Versions::new(self.package, methods, imports)? {
            None => Ok(()),
            Some(versions) => self
                .versions
                .set(versions)
                .map_err(|_| Code::Argument.because("the client's layouts were said before")),
        }
    }

    /// Arguments as the library reads them. What is no message of the caller's version is left as it is: the service refuses it.
    #[inline]
    pub(crate) fn arguments<'a>(&self, method: u32, args: &'a [u8]) -> Cow<'a, [u8]> {
        match self.versions.get() {
            None => Cow::Borrowed(args),
            Some(versions) => versions.arguments(method, args),
        }
    }

    /// A call's result as its caller reads it.
    #[inline]
    pub(crate) fn answered(&self, method: u32, ending: &mut Ending) {
        if let Some(versions) = self.versions.get() {
            versions.answered(method, ending);
        }
    }

    /// What a host is asked, as it reads it.
    ///
    /// # Errors
    /// `argument`: it would be too large.
    pub(crate) fn asked(&self, import: u32, args: &mut Vec<u8>) -> Result<(), Failure> {
        let versions = self.versions.get();
        match versions.and_then(|versions| versions.imports[import as usize].params.as_ref()) {
            None => Ok(()),
            Some(conversion) => replace(conversion, args)
                .map_err(|error| Code::Argument.because(format!("the arguments: {error}"))),
        }
    }

    /// What a host answered, as the service reads it. What is no message of the host's version is left as it is.
    pub(crate) fn host_answered(&self, import: u32, ending: &mut Ending) {
        let Some(versions) = self.versions.get() else {
            return;
        };
        let import = &versions.imports[import as usize];
        let conversion = match ending.code {
            Code::Ok => &import.ok,
            Code::Error => &import.error,
            _ => return,
        };
        if let Some(conversion) = conversion {
            let _ = replace(conversion, &mut ending.data);
        }
    }
}

impl Versions {
    #[cold]
    fn arguments<'a>(&self, method: u32, args: &'a [u8]) -> Cow<'a, [u8]> {
        let conversion = self
            .methods
            .get(method as usize)
            .and_then(|it| it.params.as_ref());
        match conversion.map(|conversion| conversion.convert(args)) {
            Some(Ok(converted)) => {
                // As with arguments that nobody reads.
                converted.dropped.into_iter().for_each(close_unread_handle);
                Cow::Owned(converted.message)
            }
            _ => Cow::Borrowed(args),
        }
    }
}
