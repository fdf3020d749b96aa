//! Parameters that are streams or futures: a thread sends the elements.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use serde_json::Value;
use thalweg_capi::abi::{TW_FOREVER, TW_INTERRUPTED, TW_OK, TwHandle, TwTable};

use super::failure::NO_ERROR;
use super::input::{self, Stdin};
use crate::description::Type;
use crate::value::{Refused, encode};

/// The elements of a parameter, before it has a stream.
#[derive(Debug)]
pub enum Elements {
    /// Encoded elements.
    Given(Vec<Vec<u8>>),
    /// A future that is dropped without a value.
    Dropped,
    /// Each line of standard input is one.
    Lines,
}

impl Elements {
    /// Reads the JSON of a stream: an array, or `"-"` for standard input.
    ///
    /// # Errors
    /// It is something else, or an element is not a value of the type `element`.
    pub fn of_stream(
        element: &Type<'_>,
        json: &Value,
        path: &str,
        stdin: &mut Stdin,
    ) -> Result<Self, Refused> {
        let refused = |reason: String| Refused {
            path: path.to_owned(),
            reason,
        };
        match json {
            Value::Array(items) => {
                let encoded = items.iter().enumerate().map(|(number, item)| {
                    encode_element(element, item).map_err(|refused| Refused {
                        path: format!("{path}[{number}]{}", below(&refused)),
                        ..refused
                    })
                });
                Ok(Elements::Given(encoded.collect::<Result<_, _>>()?))
            }
            Value::String(text) if text == "-" => {
                let taken = stdin.take();
                taken.map_err(|error| refused(error.to_string()))?;
                Ok(Elements::Lines)
            }
            _ => Err(refused(
                "expected an array, or \"-\" for lines of standard input".to_owned(),
            )),
        }
    }

    /// Reads the JSON of a future: `{"some": ..}`, or `null` for none.
    ///
    /// # Errors
    /// It is something else, or the value is not of the type `element`.
    pub fn of_future(element: &Type<'_>, json: &Value, path: &str) -> Result<Self, Refused> {
        let value = match json {
            Value::Null => return Ok(Elements::Dropped),
            Value::Object(members) if members.len() == 1 => members.get("some"),
            _ => None,
        };
        let value = value.ok_or_else(|| Refused {
            path: path.to_owned(),
            reason: "expected null, or an object with `some`".to_owned(),
        })?;
        let encoded = encode_element(element, value).map_err(|refused| Refused {
            path: format!("{path}.some{}", below(&refused)),
            ..refused
        })?;
        Ok(Elements::Given(vec![encoded]))
    }
}

/// The path of a refused part below its element, which is `$`.
fn below(refused: &Refused) -> &str {
    refused.path.strip_prefix('$').unwrap_or(&refused.path)
}

fn encode_element(element: &Type<'_>, json: &Value) -> Result<Vec<u8>, Refused> {
    encode(element, json, &mut |_, _, path| {
        Err(Refused {
            path: path.to_owned(),
            reason: "an element cannot contain a resource or a stream".to_owned(),
        })
    })
}

/// A stream or a future that is sent while its call runs.
#[derive(Debug)]
pub struct Upstream {
    pub writer: TwHandle,
    /// The description of an element.
    pub element: &'static str,
    pub elements: Elements,
}

impl Upstream {
    /// Sends the elements on a thread of its own. If a line of standard input is refused, the call
    /// is cancelled, and the reason goes to `problems`.
    pub fn start(self, table: &'static TwTable, call: TwHandle, problems: Sender<String>) {
        thread::spawn(move || {
            if let Err(problem) = self.send(table) {
                // The main thread may have finished.
                let _ = problems.send(problem);
                // SAFETY: the error may be null. A call that has ended is stale.
                unsafe { (table.cancel)(call, std::ptr::null_mut()) };
            }
            // SAFETY: as above. A writer that has not finished makes the service read `cancelled`.
            unsafe { (table.stream_close)(self.writer, std::ptr::null_mut()) };
        });
    }

    fn send(&self, table: &TwTable) -> Result<(), String> {
        let is_complete = match &self.elements {
            Elements::Given(messages) => messages
                .iter()
                .all(|message| self.send_message(table, message)),
            Elements::Dropped => false,
            Elements::Lines => self.send_lines(table)?,
        };
        if is_complete {
            // SAFETY: the error may be null. If the stream has ended, this has no effect.
            unsafe { (table.stream_finish)(self.writer, std::ptr::null_mut()) };
        }
        Ok(())
    }

    /// Sends the lines of standard input. Returns whether the service read to the end.
    fn send_lines(&self, table: &TwTable) -> Result<bool, String> {
        let element = Type::parse(self.element).map_err(|error| error.to_string())?;
        let mut input = io::stdin().lock();
        let mut number = 0;
        while let Some(json) = input::next_line(&mut input, &mut number)? {
            let message = encode_element(&element, &json)
                .map_err(|refused| format!("standard input, line {number}: {refused}"))?;
            if !self.send_message(table, &message) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends one element. Returns whether the stream continues.
    fn send_message(&self, table: &TwTable, message: &[u8]) -> bool {
        loop {
            let mut error = NO_ERROR;
            // SAFETY: the message and the error are valid until the function returns.
            let code = unsafe {
                (table.stream_send)(
                    self.writer,
                    message.as_ptr(),
                    message.len() as u64,
                    TW_FOREVER,
                    &raw mut error,
                )
            };
            if code != TW_INTERRUPTED {
                return code == TW_OK;
            }
        }
    }
}
