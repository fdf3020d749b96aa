//! The functions that a guest calls: `tw_guest_core`.

use std::ffi::c_char;
use std::ptr;

use thalweg_capi::abi::{TwError, TwHandle, TwStats};
use thalweg_capi::enter;
use thalweg_capi::error::argument;
use thalweg_capi::pointers::{bytes, message, out, write_sized};
use thalweg_port::{
    Code, CommitOptions, Failure, GuestAnswers, GuestObject, GuestPort, RecordSpace, RecordWriter,
    close_handle, find_record_writer, guest_answer, guest_answer_resource, guest_answer_stream,
    guest_call_check, guest_fail, guest_resource, guest_resource_new, guest_resource_take,
};
use thalweg_queue::clock;

use crate::abi::{
    TW_GUEST_ABI, TW_WRITE_MORE, TW_WRITE_TRUSTED, TwGuestAnswer, TwGuestCore, TwRecordSpace,
};
use crate::{input, opening, port};

pub(crate) static CORE: TwGuestCore = TwGuestCore {
    abi: TW_GUEST_ABI,
    size: size_of::<TwGuestCore>() as u32,
    core: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
    now,
    serve: opening::serve,
    answer,
    answer_resource,
    fail,
    call_check,
    resource_new,
    resource_get,
    resource_take,
    answer_stream,
    stream_write,
    stream_finish,
    stream_fail,
    stream_abort,
    serve_port: opening::serve_port,
    port_fd: port::port_fd,
    port_take: port::port_take,
    event_release: port::event_release,
    reader_open: input::reader_open,
    reader_receive: input::reader_receive,
    reader_close: input::reader_close,
    import_call: input::import_call,
    message_release: input::message_release,
    reader_notify: input::reader_notify,
    import_begin: input::import_begin,
    import_answer: input::import_answer,
    import_cancel: input::import_cancel,
    writer_notify,
    answer_many,
    stream_reserve,
    stream_commit,
    writer_stats,
};

unsafe extern "C" fn now() -> u64 {
    clock::now()
}

unsafe extern "C" fn answer(
    call: TwHandle,
    code: u32,
    data: *const u8,
    data_size: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg_guest.h requires of the guest what `enter` and `message` require; also in all
    // functions below.
    unsafe {
        enter(error, || {
            let code = known_code(code)?;
            guest_answer(call, code, message(data, data_size)?)
        })
    }
}

unsafe extern "C" fn answer_many(answers: *mut TwGuestAnswer, count: u32) {
    if answers.is_null() {
        return;
    }
    // SAFETY: thalweg_guest.h requires of the guest that these are `count` answers.
    let answers = unsafe { std::slice::from_raw_parts_mut(answers, count as usize) };
    let mut all = GuestAnswers::default();
    for one in answers {
        // SAFETY: see `answer`.
        one.result = unsafe {
            enter(ptr::null_mut(), || {
                let code = known_code(one.code)?;
                all.add(one.call, code, message(one.message, one.message_size)?)
            })
        };
    }
}

unsafe extern "C" fn answer_resource(
    call: TwHandle,
    kind: u32,
    number: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            guest_answer_resource(call, GuestObject { kind, number })
        })
    }
}

unsafe extern "C" fn fail(
    call: TwHandle,
    code: u32,
    text: *const c_char,
    text_size: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let code = known_code(code)?;
            let text = match text_size {
                0 => &[],
                size => bytes(text.cast(), size, "text")?,
            };
            // A reason is for humans, so that a wrong byte in it must not hide it.
            guest_fail(call, code.because(String::from_utf8_lossy(text)))
        })
    }
}

unsafe extern "C" fn call_check(call: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `answer`.
    unsafe { enter(error, || guest_call_check(call)) }
}

unsafe extern "C" fn resource_new(
    call: TwHandle,
    kind: u32,
    number: u64,
    resource: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let resource = out(resource, "resource")?;
            *resource = guest_resource_new(call, GuestObject { kind, number })?;
            Ok(())
        })
    }
}

unsafe extern "C" fn resource_get(
    call: TwHandle,
    resource: TwHandle,
    kind: u32,
    object: *mut u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let object = out(object, "object")?;
            *object = guest_resource(call, resource, kind)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn resource_take(
    call: TwHandle,
    resource: TwHandle,
    kind: u32,
    object: *mut u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let object = out(object, "object")?;
            *object = guest_resource_take(call, resource, kind)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn answer_stream(
    call: TwHandle,
    writer: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let writer = out(writer, "writer")?;
            *writer = guest_answer_stream(call)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn stream_write(
    writer: TwHandle,
    base: *const u8,
    size: u64,
    first: u32,
    count: u32,
    flags: u32,
    deadline_ns: u64,
    written: *mut u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`; `base` has `size` bytes.
    unsafe {
        enter(error, || {
            if flags & !TW_WRITE_MORE != 0 {
                return Err(unknown_flags(flags));
            }
            let records = match (count, size) {
                // A record may have no bytes.
                (0, _) | (_, 0) => &[],
                _ => bytes(base, size, "base")?,
            };
            let has_more = flags & TW_WRITE_MORE != 0;
            let writer = find_record_writer(writer)?;
            let (number, wrote) = writer.write(records, first, count, has_more, deadline_ns);
            if let Some(written) = written.as_mut() {
                *written = number;
            }
            wrote
        })
    }
}

unsafe extern "C" fn stream_reserve(
    writer: TwHandle,
    tails: u32,
    deadline_ns: u64,
    space: *mut TwRecordSpace,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let space = out(space, "space")?;
            *space = NO_SPACE;
            if let Some(reserved) = find_record_writer(writer)?.reserve(tails, deadline_ns)? {
                *space = reserved.into();
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn stream_commit(
    writer: TwHandle,
    count: u32,
    tails_end: u32,
    flags: u32,
    space: *mut TwRecordSpace,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`; the guest has written the records.
    unsafe {
        enter(error, || {
            let space = out(space, "space")?;
            *space = NO_SPACE;
            if flags & !(TW_WRITE_MORE | TW_WRITE_TRUSTED) != 0 {
                return Err(unknown_flags(flags));
            }
            let options = CommitOptions {
                has_more: flags & TW_WRITE_MORE != 0,
                is_trusted: flags & TW_WRITE_TRUSTED != 0,
            };
            let left = find_record_writer(writer)?.commit(count, tails_end, options)?;
            *space = left.into();
            Ok(())
        })
    }
}

unsafe extern "C" fn writer_stats(
    writer: TwHandle,
    stats: *mut TwStats,
    size: u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`; `stats` has capacity for `size` bytes.
    unsafe {
        enter(error, || {
            let found = find_record_writer(writer)?.stats();
            write_sized(&TwStats::from(&found), stats, size)
        })
    }
}

const NO_SPACE: TwRecordSpace = TwRecordSpace {
    base: ptr::null_mut(),
    first: 0,
    stride: 0,
    count: 0,
    tails: 0,
    tails_end: 0,
    reserved: 0,
};

impl From<RecordSpace> for TwRecordSpace {
    fn from(space: RecordSpace) -> Self {
        let RecordSpace {
            base,
            first,
            stride,
            count,
            tails,
            tails_end,
        } = space;
        Self {
            base,
            first,
            stride,
            count,
            tails,
            tails_end,
            reserved: 0,
        }
    }
}

fn unknown_flags(flags: u32) -> Failure {
    argument(format!("unknown flags {flags:#x} of a write"))
}

unsafe extern "C" fn writer_notify(
    writer: TwHandle,
    port: TwHandle,
    token: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let waker = GuestPort::find(port)?.waker(token);
            find_record_writer(writer)?.notify(waker)
        })
    }
}

unsafe extern "C" fn stream_finish(writer: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `answer`.
    unsafe { enter(error, || end_stream(writer, |writer| writer.finish())) }
}

unsafe extern "C" fn stream_fail(
    writer: TwHandle,
    data: *const u8,
    data_size: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let message = message(data, data_size)?;
            end_stream(writer, |writer| writer.fail(message))
        })
    }
}

unsafe extern "C" fn stream_abort(
    writer: TwHandle,
    text: *const c_char,
    text_size: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `answer`.
    unsafe {
        enter(error, || {
            let text = match text_size {
                0 => &[],
                size => bytes(text.cast(), size, "text")?,
            };
            let text = String::from_utf8_lossy(text);
            end_stream(writer, |writer| writer.abort(&text))
        })
    }
}

/// Ends a stream, and closes the handle of its writer unless `end` was refused as `argument`.
fn end_stream(
    writer: TwHandle,
    end: impl FnOnce(&RecordWriter) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let ended = end(&*find_record_writer(writer)?);
    if !matches!(&ended, Err(why) if why.code == Code::Argument) {
        close_handle(writer)?;
    }
    ended
}

fn known_code(code: u32) -> Result<Code, Failure> {
    Code::from_number(code).ok_or_else(|| argument(format!("{code} is not the code of an outcome")))
}
