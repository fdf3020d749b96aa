//! One client of a library, and its calls.

use std::io::{self, Write as _};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::Value;
use thalweg_capi::abi::{
    TW_BATCH_CONTROL, TW_BATCH_END, TW_CLOSED, TW_ERROR, TW_FOREVER, TW_GAP_BATCH_OPEN,
    TW_GAP_CONFLATED, TW_GAP_DROPPED_NEWEST, TW_GAP_DROPPED_OLDEST, TW_INTERRUPTED,
    TW_METHOD_INLINE, TW_OK, TW_TIMED_OUT, TwBatch, TwCompletion, TwHandle, TwSubmission, TwTable,
};

use super::failure::{Error, NO_ERROR, Outcome, check, outcome};
use super::input::Stdin;
use super::interrupt;
use super::upstream::{Elements, Upstream};
use crate::description::{Field, Kind, Type};
use crate::library::{Function, Library};
use crate::value::{self, Refused, decode, encode};

/// The interval at which a wait looks for Ctrl-C, because the signal may arrive on another thread.
const LOOK: Duration = Duration::from_millis(50);

/// Records that are printed together. A batch has at least one, so a slow stream is not delayed.
const MAX_RECORDS: u32 = 256;

/// How a call ended.
#[derive(Debug)]
pub enum Ended {
    /// Its result was printed.
    Returned,
    /// It returned its typed error, which is this JSON.
    Failed(String),
}

/// A client of a library, with a port.
#[derive(Debug)]
pub struct Session<'l> {
    library: &'l Library,
    table: &'static TwTable,
    client: TwHandle,
    port: TwHandle,
    /// The time at which all calls and streams end.
    deadline: u64,
    /// The resources that the calls returned: `$1` is the first.
    resources: Vec<TwHandle>,
}

impl<'l> Session<'l> {
    /// Opens a client.
    ///
    /// # Errors
    /// The errors of the table.
    pub fn open(library: &'l Library, limit: Option<Duration>) -> Result<Self, Error> {
        let table = library.table;
        let mut session = Self {
            library,
            table,
            client: 0,
            port: 0,
            deadline: TW_FOREVER,
            resources: Vec::new(),
        };
        if let Some(limit) = limit {
            session.deadline = session.after(limit);
        }
        let mut error = NO_ERROR;
        // SAFETY: both pointers are valid until the function returns; also in all calls below.
        let code = unsafe { (table.client_open)(&raw mut session.client, &raw mut error) };
        check(code, &error)?;
        // SAFETY: see above.
        let code = unsafe { (table.port_open)(1, &raw mut session.port, &raw mut error) };
        check(code, &error)?;
        Ok(session)
    }

    /// The time after this duration.
    fn after(&self, duration: Duration) -> u64 {
        // SAFETY: the function has no requirements.
        let now = unsafe { (self.table.now)() };
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(TW_FOREVER);
        now.saturating_add(ns)
    }

    /// The number of a method. Its name may be that of the table (`search.[method]query.progress`),
    /// or that without the interface and without the word in brackets (`query.progress`). The name
    /// of a constructor is that of its resource.
    ///
    /// # Errors
    /// There is no such method.
    pub fn method(&self, name: &str) -> Result<u32, Error> {
        let methods = &self.library.methods;
        let find = |is: fn(&str, &str) -> bool| {
            let mut methods = methods.iter();
            methods.position(|method| is(method.name, name))
        };
        let found = find(|known, name| known == name)
            .or_else(|| find(|known, name| without_interface(known) == name))
            .or_else(|| find(|known, name| plain(known) == Some(name)));
        found.map(|number| number as u32).ok_or_else(|| {
            let names: Vec<_> = methods
                .iter()
                .filter_map(|method| plain(method.name))
                .collect();
            Error::Usage(format!(
                "there is no function `{name}`; there are: {}",
                names.join(", ")
            ))
        })
    }

    /// Makes a call, and prints its result.
    ///
    /// # Errors
    /// The JSON is refused, or the call ends otherwise than with a result or its typed error.
    pub fn call(&mut self, number: u32, json: &Value, stdin: &mut Stdin) -> Result<Ended, Error> {
        let method = self.library.methods[number as usize];
        let ok = Type::parse(method.ok())?;
        let error = method.error().map(Type::parse).transpose()?;
        check_supported(&method, &ok, error.as_ref())?;
        let (args, upstreams) = self.arguments(number, &method, json, stdin)?;

        interrupt::listen();
        let (sender, problems) = mpsc::channel();
        let mut completion = match method.has_flag(TW_METHOD_INLINE) {
            true => self.call_inline(number, &args)?,
            false => {
                let call = self.submit(number, &args)?;
                for upstream in upstreams {
                    upstream.start(self.table, call, sender.clone());
                }
                self.wait(call)?
            }
        };
        if let Ok(problem) = problems.try_recv() {
            return Err(Error::Input(problem));
        }
        match completion.raw.code {
            TW_OK if matches!(ok.kind, Kind::Stream(_) | Kind::Future(_)) => {
                let stream = completion.stream()?;
                let (Kind::Stream(element) | Kind::Future(element)) = &ok.kind else {
                    return Err(Error::Malformed("a result"));
                };
                self.read(&stream, element, error.as_ref(), &problems)
            }
            TW_OK => {
                let line = self.decode(&ok, &mut completion)?;
                print(&(line + "\n"))?;
                Ok(Ended::Returned)
            }
            TW_ERROR => {
                let error = error.ok_or(Error::Malformed("an error"))?;
                let json = self.decode(&error, &mut completion)?;
                Ok(Ended::Failed(json))
            }
            _ => Err(completion.outcome().into()),
        }
    }

    /// The message of the arguments, and the streams in it.
    fn arguments(
        &self,
        number: u32,
        method: &Function<'static>,
        json: &Value,
        stdin: &mut Stdin,
    ) -> Result<(Vec<u8>, Vec<Upstream>), Error> {
        let params = Type::parse(method.params())?;
        let mut upstreams = Vec::new();
        let args = encode(&params, json, &mut |ty, json, path| match ty.kind {
            Kind::Stream(_) | Kind::Future(_) => {
                let (upstream, reader) = self.upstream(number, &params, json, path, stdin)?;
                upstreams.push(upstream);
                Ok(reader)
            }
            _ => self.resource(json, path),
        })?;
        Ok((args, upstreams))
    }

    /// The resource that `"$1"` names.
    fn resource(&self, json: &Value, path: &str) -> Result<TwHandle, Refused> {
        let number = json.as_str().and_then(|text| text.strip_prefix('$'));
        let number = number.and_then(|digits| digits.parse::<usize>().ok());
        let index = number.and_then(|number| number.checked_sub(1));
        let handle = index.and_then(|index| self.resources.get(index));
        handle.copied().ok_or_else(|| Refused {
            path: path.to_owned(),
            reason: format!(
                "expected a resource that an earlier call of this command returned, such as \"$1\"; there are {}",
                self.resources.len()
            ),
        })
    }

    /// Makes the stream for a parameter. Returns it and its reading end.
    fn upstream(
        &self,
        method: u32,
        params: &Type<'static>,
        json: &Value,
        path: &str,
        stdin: &mut Stdin,
    ) -> Result<(Upstream, TwHandle), Refused> {
        let refused = |reason: String| Refused {
            path: path.to_owned(),
            reason,
        };
        let fields: &[Field<'static>] = match &params.kind {
            Kind::Record(fields) => fields,
            _ => &[],
        };
        let parameter = fields
            .iter()
            .position(|field| path.strip_prefix("$.") == Some(field.name));
        let parameter =
            parameter.ok_or_else(|| refused("a stream inside a parameter".to_owned()))?;
        let (element, elements) = match &fields[parameter].ty.kind {
            Kind::Stream(element) => {
                let elements = Elements::of_stream(element, json, path, stdin)?;
                (element.text, elements)
            }
            Kind::Future(element) => (element.text, Elements::of_future(element, json, path)?),
            _ => return Err(refused("it is not a stream".to_owned())),
        };
        let (mut writer, mut reader, mut error) = (0, 0, NO_ERROR);
        // SAFETY: see `open`.
        let code = unsafe {
            (self.table.stream_new)(
                self.client,
                method,
                parameter as u32,
                &raw mut writer,
                &raw mut reader,
                &raw mut error,
            )
        };
        check(code, &error).map_err(|outcome| refused(outcome.to_string()))?;
        let upstream = Upstream {
            writer,
            element,
            elements,
        };
        Ok((upstream, reader))
    }

    fn call_inline(&self, method: u32, args: &[u8]) -> Result<Completion, Error> {
        let mut completion = Completion::empty(self.table);
        let mut error = NO_ERROR;
        // SAFETY: see `open`. The arguments are read until the function returns.
        let code = unsafe {
            (self.table.call_inline)(
                self.client,
                method,
                args.as_ptr(),
                args.len() as u64,
                self.deadline,
                &raw mut completion.raw,
                &raw mut error,
            )
        };
        check(code, &error)?;
        Ok(completion)
    }

    /// Submits a call and returns its handle.
    fn submit(&self, method: u32, args: &[u8]) -> Result<TwHandle, Error> {
        let mut submission = TwSubmission {
            token: 0,
            client: self.client,
            method,
            flags: 0,
            args: args.as_ptr(),
            args_size: args.len() as u64,
            deadline_ns: self.deadline,
            call: 0,
        };
        let (mut accepted, mut error) = (0, NO_ERROR);
        // SAFETY: see `open`. There is one submission.
        let code = unsafe {
            let batch = &raw mut submission;
            (self.table.submit)(self.port, batch, 1, &raw mut accepted, &raw mut error)
        };
        check(code, &error)?;
        Ok(submission.call)
    }

    /// Waits for the completion of a call. Ctrl-C cancels the call, which then completes soon.
    fn wait(&self, call: TwHandle) -> Result<Completion, Error> {
        let mut completion = Completion::empty(self.table);
        let mut is_cancelled = false;
        loop {
            let (mut count, mut error) = (0, NO_ERROR);
            // SAFETY: see `open`. There is room for one completion.
            let code = unsafe {
                let out = &raw mut completion.raw;
                (self.table.port_reap)(self.port, out, 1, &raw mut count, &raw mut error)
            };
            check(code, &error)?;
            if count > 0 {
                return Ok(completion);
            }
            if interrupt::is_interrupted() && !is_cancelled {
                is_cancelled = true;
                // SAFETY: the error may be null. A call that has ended is stale.
                unsafe { (self.table.cancel)(call, std::ptr::null_mut()) };
            }
            // SAFETY: see `open`.
            let code =
                unsafe { (self.table.port_wait)(self.port, self.after(LOOK), &raw mut error) };
            if !matches!(code, TW_TIMED_OUT | TW_INTERRUPTED) {
                check(code, &error)?;
            }
        }
    }

    /// Reads a value from a completion, as JSON. The resources in it become `$1`, `$2` ..
    fn decode(&mut self, ty: &Type<'_>, completion: &mut Completion) -> Result<String, Error> {
        // A copy, because taking a handle changes the message.
        let data = completion.data().to_vec();
        let malformed = || Error::Malformed("a value");
        let at = value::root(&data).ok_or_else(malformed)?;
        let json = decode(ty, &data, at, &mut |_, index| {
            self.resources.push(completion.take(index).ok()?);
            Some(format!("\"${}\"", self.resources.len()))
        });
        json.ok_or_else(malformed)
    }

    /// Prints the records of a stream while they arrive.
    fn read(
        &self,
        stream: &Stream,
        element: &Type<'_>,
        error_type: Option<&Type<'_>>,
        problems: &Receiver<String>,
    ) -> Result<Ended, Error> {
        loop {
            if let Ok(problem) = problems.try_recv() {
                return Err(Error::Input(problem));
            }
            if interrupt::is_interrupted() {
                return Err(Outcome::interrupted().into());
            }
            let mut batch = EMPTY_BATCH;
            let mut error = NO_ERROR;
            // SAFETY: see `open`.
            let code = unsafe {
                (self.table.stream_acquire)(
                    stream.handle,
                    MAX_RECORDS,
                    self.after(LOOK),
                    &raw mut batch,
                    &raw mut error,
                )
            };
            if batch.lost_before > 0 {
                report_gap(&batch);
            }
            match code {
                TW_OK => {}
                TW_CLOSED if batch.flags & TW_BATCH_END != 0 => return Ok(Ended::Returned),
                TW_ERROR if batch.flags & TW_BATCH_END != 0 => {
                    let error_type = error_type.ok_or(Error::Malformed("an error"))?;
                    return Ok(Ended::Failed(stream.error(error_type)?));
                }
                TW_TIMED_OUT | TW_INTERRUPTED if batch.flags & TW_BATCH_END == 0 => continue,
                code => return Err(outcome(code, &error).into()),
            }
            let lines = lines(&batch, element);
            // SAFETY: see `open`. The batch is not used after this.
            let code =
                unsafe { (self.table.stream_release)(stream.handle, batch.count, &raw mut error) };
            print(&lines?)?;
            check(code, &error)?;
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the error may be null, and a handle that is 0 is refused.
        unsafe {
            (self.table.port_close)(self.port, std::ptr::null_mut());
            (self.table.client_close)(self.client, std::ptr::null_mut());
        }
    }
}

/// The name of a function without its interface.
fn without_interface(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, rest)| rest)
}

/// The name of a function without its interface and the word in brackets. `None`: a destructor, whose
/// name would be that of the constructor.
fn plain(name: &str) -> Option<&str> {
    let rest = without_interface(name);
    match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(("destructor", _)) => None,
        Some((_, rest)) => Some(rest),
        None => Some(rest),
    }
}

/// Refuses a function that returns a stream inside a value, which has no line of its own.
fn check_supported(
    method: &Function<'_>,
    ok: &Type<'_>,
    error: Option<&Type<'_>>,
) -> Result<(), Error> {
    let is_stream = |kind: &Kind<'_>| matches!(kind, Kind::Stream(_) | Kind::Future(_));
    let is_inside = !is_stream(&ok.kind) && ok.contains(is_stream);
    match is_inside || error.is_some_and(|error| error.contains(is_stream)) {
        false => Ok(()),
        true => Err(Error::Unsupported(format!(
            "`{}` returns a stream or a future inside a value, which this command does not support",
            method.name
        ))),
    }
}

/// Writes a text to standard output.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Error::Stdout)
}

/// Reports missing records on standard error.
fn report_gap(batch: &TwBatch) {
    let reason = match batch.gap_reason {
        TW_GAP_CONFLATED => "newer records replaced them",
        TW_GAP_DROPPED_NEWEST | TW_GAP_DROPPED_OLDEST | TW_GAP_BATCH_OPEN => "the stream was full",
        _ => "the service reported it",
    };
    // An error of standard error cannot be reported.
    let _ = writeln!(
        io::stderr(),
        "records missing: {} ({reason})",
        batch.lost_before
    );
}

/// The records of a batch as JSON, one per line. A record of the control lane is in an object.
fn lines(batch: &TwBatch, element: &Type<'_>) -> Result<String, Error> {
    let bytes = match batch.base.is_null() {
        true => &[],
        // SAFETY: the batch is open, and has this number of readable bytes.
        false => unsafe { std::slice::from_raw_parts(batch.base, batch.size as usize) },
    };
    let first = batch.slots.addr().wrapping_sub(batch.base.addr());
    let mut lines = String::new();
    for number in 0..batch.count as usize {
        let at = first.wrapping_add(number * batch.stride as usize);
        let json = decode(element, bytes, at, &mut |_, _| None);
        let json = json.ok_or(Error::Malformed("a record"))?;
        match batch.flags & TW_BATCH_CONTROL {
            0 => lines += &json,
            _ => lines += &format!("{{\"control\": {json}}}"),
        }
        lines.push('\n');
    }
    Ok(lines)
}

/// A batch for `stream_acquire` to fill in.
const EMPTY_BATCH: TwBatch = TwBatch {
    base: std::ptr::null(),
    slots: std::ptr::null(),
    count: 0,
    stride: 0,
    first_seq: 0,
    lost_before: 0,
    gap_reason: 0,
    flags: 0,
    size: 0,
};

/// A completion, which is released on drop.
struct Completion {
    table: &'static TwTable,
    raw: TwCompletion,
}

impl Completion {
    /// One to fill in.
    fn empty(table: &'static TwTable) -> Self {
        Self {
            table,
            raw: TwCompletion {
                token: 0,
                call: 0,
                kind: 0,
                code: TW_OK,
                data: std::ptr::null(),
                data_size: 0,
                message: std::ptr::null(),
                message_size: 0,
                retryable: 0,
                owner: 0,
            },
        }
    }

    fn data(&self) -> &[u8] {
        match self.raw.data.is_null() {
            true => &[],
            // SAFETY: the data are valid until the release.
            false => unsafe {
                std::slice::from_raw_parts(self.raw.data, self.raw.data_size as usize)
            },
        }
    }

    /// Takes a handle out of the message.
    fn take(&mut self, index: u32) -> Result<TwHandle, Error> {
        let (mut handle, mut error) = (0, NO_ERROR);
        // SAFETY: all pointers are valid until the function returns.
        let code = unsafe {
            (self.table.take_handle)(&raw mut self.raw, index, &raw mut handle, &raw mut error)
        };
        check(code, &error)?;
        Ok(handle)
    }

    /// Takes the stream that is the whole result.
    fn stream(&mut self) -> Result<Stream, Error> {
        Ok(Stream {
            table: self.table,
            handle: self.take(0)?,
        })
    }

    fn outcome(&self) -> Outcome {
        let message = match self.raw.message.is_null() {
            true => &[],
            // SAFETY: the message is valid until the release.
            false => unsafe {
                let bytes = self.raw.message.cast::<u8>();
                std::slice::from_raw_parts(bytes, self.raw.message_size as usize)
            },
        };
        Outcome {
            code: self.raw.code,
            message: String::from_utf8_lossy(message).into_owned(),
            is_retryable: self.raw.retryable != 0,
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        // SAFETY: the completion was filled in by the table, or has no contents.
        unsafe { (self.table.release)(&raw mut self.raw) };
    }
}

/// A stream, which is closed on drop.
struct Stream {
    table: &'static TwTable,
    handle: TwHandle,
}

impl Stream {
    /// The service's own error, after the stream has ended as `TW_ERROR`.
    fn error(&self, ty: &Type<'_>) -> Result<String, Error> {
        let (mut data, mut size, mut error) = (std::ptr::null(), 0, NO_ERROR);
        // SAFETY: all pointers are valid until the function returns.
        let code = unsafe {
            let out = (&raw mut data, &raw mut size);
            (self.table.stream_error)(self.handle, out.0, out.1, &raw mut error)
        };
        check(code, &error)?;
        // SAFETY: the message is valid until the stream is closed.
        let message = unsafe { std::slice::from_raw_parts(data, size as usize) };
        let json = value::root(message).and_then(|at| decode(ty, message, at, &mut |_, _| None));
        json.ok_or(Error::Malformed("an error"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the error may be null.
        unsafe { (self.table.stream_close)(self.handle, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, without_interface};

    #[test]
    fn plain_name_has_no_interface_and_no_brackets() {
        for (name, short, expected) in [
            ("search.count", "count", Some("count")),
            (
                "search.[constructor]query",
                "[constructor]query",
                Some("query"),
            ),
            (
                "search.[method]query.progress",
                "[method]query.progress",
                Some("query.progress"),
            ),
            ("search.[destructor]query", "[destructor]query", None),
        ] {
            assert_eq!(without_interface(name), short);
            assert_eq!(plain(name), expected);
        }
    }
}
