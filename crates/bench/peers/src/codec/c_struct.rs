//! `c_struct`: structs in C with their tails, copied by C. Nothing is checked; it shows the cost of
//! a C library that passes pointers.

use std::slice;

use super::values::{BytesPayload, ComplexRequest, EchoRequest, EchoResponse};
use super::{Codec, Value};

/// `c_struct`.
#[derive(Debug)]
pub struct CStruct;

/// As `struct text`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

/// As `struct request`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    message: Text,
    delay_ms: i64,
}

/// As `struct response`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Response {
    echoed: Text,
    timer_name: Text,
}

/// As `struct complex_request`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Complex {
    messages: *mut Request,
    message_count: usize,
    tags: *mut Text,
    tag_count: usize,
    note: Text,
    retries: i64,
    has_retries: bool,
}

unsafe extern "C" {
    fn thalweg_codec_put_request(from: *const Request, to: *mut u8) -> usize;
    fn thalweg_codec_keep_request(from: *const Request, to: *mut Request) -> bool;
    fn thalweg_codec_free_request(it: *mut Request);
    fn thalweg_codec_put_response(from: *const Response, to: *mut u8) -> usize;
    fn thalweg_codec_keep_response(from: *const Response, to: *mut Response) -> bool;
    fn thalweg_codec_free_response(it: *mut Response);
    fn thalweg_codec_put_complex(from: *const Complex, to: *mut u8) -> usize;
    fn thalweg_codec_keep_complex(from: *const Complex, to: *mut Complex) -> bool;
    fn thalweg_codec_free_complex(it: *mut Complex);
    fn thalweg_codec_put_bytes(from: *const Text, to: *mut u8) -> usize;
    fn thalweg_codec_keep_bytes(from: *const Text, to: *mut Text) -> bool;
    fn thalweg_codec_free_bytes(it: *mut Text);
}

/// A struct in C and the three functions that handle its tails.
pub trait Struct: Copy + 'static {
    /// The corresponding Rust type.
    type Value: Value;

    /// A struct whose tails are borrowed from `value`; `parts` owns the arrays that `value` does
    /// not have.
    fn borrow(value: &Self::Value, parts: &mut Parts) -> Self;

    /// Converts the struct to Rust.
    ///
    /// # Safety
    /// Its tails must be valid.
    unsafe fn read(&self) -> Self::Value;

    /// Copies the struct to `to`, and its tails behind one another after it.
    ///
    /// # Safety
    /// Its tails must be valid, and `to` must have space for the struct and each tail, rounded up
    /// to 8 bytes.
    unsafe fn put(&self, to: *mut u8) -> usize;

    /// Copies the struct to `to`, and each tail into newly allocated memory.
    ///
    /// # Safety
    /// Its tails must be valid.
    unsafe fn keep(&self, to: *mut Self) -> bool;

    /// Frees the tails.
    ///
    /// # Safety
    /// The struct must come from [`keep`](Self::keep), and must not be freed twice.
    unsafe fn free(it: *mut Self);
}

/// Arrays of structs that a Rust value does not have.
#[derive(Default)]
pub struct Parts {
    requests: Vec<Request>,
    texts: Vec<Text>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Parts")
    }
}

/// A struct that owns its tails.
pub struct Kept<S: Struct>(S);

impl<S: Struct> std::fmt::Debug for Kept<S> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Kept")
    }
}

impl<S: Struct> Kept<S> {
    /// A copy of `from`.
    ///
    /// # Safety
    /// The tails of `from` must be valid.
    unsafe fn of(from: &S) -> Self {
        let mut to = *from;
        // SAFETY: the caller guarantees that the tails are valid.
        let kept = unsafe { from.keep(&raw mut to) };
        assert!(kept, "out of memory");
        Self(to)
    }
}

impl<S: Struct> Drop for Kept<S> {
    fn drop(&mut self) {
        // SAFETY: it came from `keep`, and nothing uses it after this.
        unsafe { S::free(&raw mut self.0) }
    }
}

/// Memory for a struct and its tails, aligned for both.
#[derive(Debug, Default)]
pub struct Room(Vec<u64>);

fn text(bytes: &[u8]) -> Text {
    Text {
        data: bytes.as_ptr().cast_mut(),
        size: bytes.len(),
    }
}

/// # Safety
/// Its bytes must be valid.
unsafe fn bytes(text: &Text) -> Vec<u8> {
    // SAFETY: the caller guarantees that the bytes are valid.
    unsafe { slice::from_raw_parts(text.data, text.size) }.to_vec()
}

/// # Safety
/// Its bytes must be valid.
unsafe fn string(text: &Text) -> String {
    // SAFETY: the caller guarantees that the bytes are valid.
    String::from_utf8(unsafe { bytes(text) }).expect("it was text before")
}

macro_rules! functions {
    ($put:ident, $keep:ident, $free:ident) => {
        unsafe fn put(&self, to: *mut u8) -> usize {
            // SAFETY: the caller upholds the contract of `Struct::put`.
            unsafe { $put(self, to) }
        }

        unsafe fn keep(&self, to: *mut Self) -> bool {
            // SAFETY: the caller upholds the contract of `Struct::keep`.
            unsafe { $keep(self, to) }
        }

        unsafe fn free(it: *mut Self) {
            // SAFETY: the caller upholds the contract of `Struct::free`.
            unsafe { $free(it) }
        }
    };
}

impl Struct for Request {
    type Value = EchoRequest;

    fn borrow(value: &EchoRequest, _: &mut Parts) -> Self {
        Self {
            message: text(value.message.as_bytes()),
            delay_ms: value.delay_ms,
        }
    }

    unsafe fn read(&self) -> EchoRequest {
        EchoRequest {
            // SAFETY: the caller guarantees that the tails are valid.
            message: unsafe { string(&self.message) },
            delay_ms: self.delay_ms,
        }
    }

    functions!(
        thalweg_codec_put_request,
        thalweg_codec_keep_request,
        thalweg_codec_free_request
    );
}

impl Struct for Response {
    type Value = EchoResponse;

    fn borrow(value: &EchoResponse, _: &mut Parts) -> Self {
        Self {
            echoed: text(value.echoed.as_bytes()),
            timer_name: text(value.timer_name.as_bytes()),
        }
    }

    unsafe fn read(&self) -> EchoResponse {
        // SAFETY: the caller guarantees that the tails are valid.
        let (echoed, timer_name) = unsafe { (string(&self.echoed), string(&self.timer_name)) };
        EchoResponse { echoed, timer_name }
    }

    functions!(
        thalweg_codec_put_response,
        thalweg_codec_keep_response,
        thalweg_codec_free_response
    );
}

impl Struct for Complex {
    type Value = ComplexRequest;

    fn borrow(value: &ComplexRequest, parts: &mut Parts) -> Self {
        let mut none = Parts::default();
        parts.requests = value
            .messages
            .iter()
            .map(|message| Request::borrow(message, &mut none))
            .collect();
        parts.texts = value.tags.iter().map(|tag| text(tag.as_bytes())).collect();
        let no_text = Text {
            data: std::ptr::null_mut(),
            size: 0,
        };
        Self {
            messages: parts.requests.as_mut_ptr(),
            message_count: parts.requests.len(),
            tags: parts.texts.as_mut_ptr(),
            tag_count: parts.texts.len(),
            note: value
                .note
                .as_ref()
                .map_or(no_text, |note| text(note.as_bytes())),
            retries: value.retries.unwrap_or(0),
            has_retries: value.retries.is_some(),
        }
    }

    unsafe fn read(&self) -> ComplexRequest {
        // SAFETY: the caller guarantees that the tails are valid.
        let (messages, tags) = unsafe {
            (
                slice::from_raw_parts(self.messages, self.message_count),
                slice::from_raw_parts(self.tags, self.tag_count),
            )
        };
        ComplexRequest {
            messages: messages
                .iter()
                // SAFETY: the caller guarantees that the tails are valid.
                .map(|message| unsafe { message.read() })
                .collect(),
            // SAFETY: the caller guarantees that the tails are valid.
            tags: tags.iter().map(|tag| unsafe { string(tag) }).collect(),
            note: (!self.note.data.is_null())
                // SAFETY: the caller guarantees that the tails are valid.
                .then(|| unsafe { string(&self.note) }),
            retries: self.has_retries.then_some(self.retries),
        }
    }

    functions!(
        thalweg_codec_put_complex,
        thalweg_codec_keep_complex,
        thalweg_codec_free_complex
    );
}

impl Struct for Text {
    type Value = BytesPayload;

    fn borrow(value: &BytesPayload, _: &mut Parts) -> Self {
        text(&value.data)
    }

    unsafe fn read(&self) -> BytesPayload {
        BytesPayload {
            // SAFETY: the caller guarantees that the bytes are valid.
            data: unsafe { bytes(self) },
        }
    }

    functions!(
        thalweg_codec_put_bytes,
        thalweg_codec_keep_bytes,
        thalweg_codec_free_bytes
    );
}

macro_rules! codec {
    ($value:ty, $struct:ty) => {
        impl Codec<$value> for CStruct {
            const NAME: &'static str = "c_struct";
            type Own = Kept<$struct>;
            type Buffer = Room;

            fn own(value: &$value) -> Kept<$struct> {
                let mut parts = Parts::default();
                let borrowed = <$struct as Struct>::borrow(value, &mut parts);
                // SAFETY: its tails belong to `value` and `parts`, which are alive.
                unsafe { Kept::of(&borrowed) }
            }

            fn value(own: &Kept<$struct>) -> $value {
                // SAFETY: it owns its tails.
                unsafe { own.0.read() }
            }

            fn encode(own: &Kept<$struct>, buffer: &mut Room) -> usize {
                if buffer.0.is_empty() {
                    // Twice the size of the largest value.
                    buffer.0 = vec![0; 1 << 18];
                }
                // SAFETY: it owns its tails, and the largest payload is 1 MiB.
                unsafe { own.0.put(buffer.0.as_mut_ptr().cast()) }
            }

            fn decode(buffer: &Room) -> Kept<$struct> {
                // SAFETY: `encode` has written a struct to the start of the buffer, and its tails
                // behind it.
                unsafe { Kept::of(&*buffer.0.as_ptr().cast::<$struct>()) }
            }
        }
    };
}

codec!(EchoRequest, Request);
codec!(EchoResponse, Response);
codec!(ComplexRequest, Complex);
codec!(BytesPayload, Text);
