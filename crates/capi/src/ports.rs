//! Ports, submissions and completions.

use std::ffi::c_int;
use std::os::fd::AsRawFd;

use thalweg_port::{
    Code, Completion, Failure, Kind, Object, Port, SubmitOptions, Submitter, answer_host_call,
    find, insert, remove,
};

use crate::abi::{
    TW_COMPLETION_CALL, TW_COMPLETION_HOST_CALL, TW_COMPLETION_LOG, TW_COMPLETION_NOTICE,
    TW_COMPLETION_STREAM_READY, TW_SUBMIT_BLOCK, TW_SUBMIT_BORROWED, TW_SUBMIT_NOTICES,
    TwBorrowedArgs, TwCompletion, TwError, TwHandle, TwSubmission,
};
use crate::error::{argument, enter};
use crate::handles::{find_client, find_port, wrong_kind};
use crate::pointers::{message, out};

/// Completions whose memory is prefetched together: see `Reap::fill`.
const REAPED_AT_ONCE: usize = 16;

pub(crate) unsafe extern "C" fn open(
    capacity: u32,
    port: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` and `out` require; also in all
    // functions below.
    unsafe {
        enter(error, || {
            let port = out(port, "port")?;
            *port = insert(Object::Port(Port::open(capacity)?))?;
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn close(port: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `open`.
    unsafe {
        enter(error, || {
            find_port(port)?.close();
            remove(port).map(drop)
        })
    }
}

pub(crate) unsafe extern "C" fn fd(port: TwHandle, fd: *mut c_int, error: *mut TwError) -> u32 {
    // SAFETY: see `open`.
    unsafe {
        enter(error, || {
            *out(fd, "fd")? = find_port(port)?.fd().as_raw_fd();
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn arm(port: TwHandle, ready: *mut u32, error: *mut TwError) -> u32 {
    // SAFETY: see `open`.
    unsafe {
        enter(error, || {
            let ready = out(ready, "ready")?;
            *ready = find_port(port)?.arm()?.into();
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn spin(
    port: TwHandle,
    max_ns: u64,
    ready: *mut u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `open`.
    unsafe {
        enter(error, || {
            let ready = out(ready, "ready")?;
            *ready = find_port(port)?.spin_or_arm(max_ns)?.into();
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn wake(port: TwHandle, fd: c_int, error: *mut TwError) -> u32 {
    // SAFETY: see `open`.
    unsafe {
        enter(error, || {
            let port = find_port(port)?;
            port.set_wake_fd(Some(fd).filter(|fd| *fd != -1))
        })
    }
}

pub(crate) unsafe extern "C" fn wait(port: TwHandle, deadline_ns: u64, error: *mut TwError) -> u32 {
    // SAFETY: see `open`.
    unsafe { enter(error, || find_port(port)?.wait(deadline_ns)) }
}

pub(crate) unsafe extern "C" fn reap(
    port: TwHandle,
    completions: *mut TwCompletion,
    max: u32,
    count: *mut u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `open`; `completions` has capacity for `max`.
    unsafe {
        enter(error, || {
            let count = out(count, "count")?;
            *count = 0;
            out(completions, "out")?;
            let port = find_port(port)?;
            let mut reap = port.reap()?;
            while *count < max {
                let mut some = [const { None }; REAPED_AT_ONCE];
                let most = some.len().min((max - *count) as usize);
                reap.fill(&mut some[..most]);
                let before = *count;
                for completion in some.into_iter().flatten() {
                    completions
                        .add(*count as usize)
                        .write(to_tw_completion(completion));
                    *count += 1;
                }
                if *count - before < most as u32 {
                    break;
                }
            }
            Ok(())
        })
    }
}

fn to_tw_completion(completion: Completion) -> TwCompletion {
    let mut described = TwCompletion {
        token: completion.token,
        call: completion.handle,
        kind: match completion.kind {
            Kind::CallEnded => TW_COMPLETION_CALL,
            Kind::StreamReady => TW_COMPLETION_STREAM_READY,
            Kind::StillRunning => TW_COMPLETION_NOTICE,
            Kind::HostCall => TW_COMPLETION_HOST_CALL,
            Kind::LogRecord => TW_COMPLETION_LOG,
        },
        code: match completion.kind {
            Kind::HostCall | Kind::LogRecord => completion.number,
            _ => completion.code as u32,
        },
        data: std::ptr::null(),
        data_size: completion.data.len() as u64,
        message: std::ptr::null(),
        message_size: completion.message.len() as u32,
        retryable: completion.retryable().into(),
        owner: 0,
    };
    if !completion.data.is_empty() {
        described.data = completion.data.as_ptr();
        if let Some(cbor) = completion.cbor() {
            (described.data, described.data_size) = (cbor.as_ptr(), cbor.len() as u64);
        }
        // thalweg.h guarantees this alignment. Allocators of 64-bit systems align to 16.
        debug_assert!(described.data.addr().is_multiple_of(8));
    }
    if !completion.message.is_empty() {
        described.message = completion.message.as_ptr().cast();
    }
    // Lending does not move the buffers.
    if !described.data.is_null() || !described.message.is_null() {
        match completion.lend() {
            Ok(number) => described.owner = number,
            Err((completion, failure)) => without_contents(&mut described, &completion, &failure),
        }
    }
    described
}

/// A completion that cannot be lent. The remaining fields need no release.
#[cold]
fn without_contents(described: &mut TwCompletion, completion: &Completion, failure: &Failure) {
    if completion.kind == Kind::HostCall {
        // The host cannot read the request, so the service gets the failure.
        let _ = answer_host_call(completion.handle, failure.code, failure.message.as_bytes());
    } else {
        // The service has run, so that only an idempotent method may be repeated.
        described.code = Code::GuestLost as u32;
        described.retryable = completion.is_idempotent().into();
    }
    const WHY: &str = "there is no memory for the result";
    (described.data, described.data_size) = (std::ptr::null(), 0);
    (described.message, described.message_size) = (WHY.as_ptr().cast(), WHY.len() as u32);
}

pub(crate) unsafe extern "C" fn release(completion: *mut TwCompletion) {
    // SAFETY: null, or a completion that `reap` filled in, or a copy of one, which no other thread
    // uses. Its `owner` is a handle: after a release of this completion or a copy it is stale.
    unsafe {
        enter(std::ptr::null_mut(), || {
            let completion = out(completion, "completion")?;
            let owner = std::mem::take(&mut completion.owner);
            completion.data = std::ptr::null();
            completion.data_size = 0;
            completion.message = std::ptr::null();
            completion.message_size = 0;
            if owner != 0 {
                drop(Completion::take_back(owner)?);
            }
            Ok(())
        });
    }
}

pub(crate) unsafe extern "C" fn release_all(completions: *mut TwCompletion, count: u32) {
    if completions.is_null() {
        return;
    }
    for index in 0..count as usize {
        // SAFETY: as in `release`; there are `count` completions.
        unsafe { release(completions.add(index)) };
    }
}

pub(crate) unsafe extern "C" fn take_handle(
    completion: *mut TwCompletion,
    index: u32,
    handle: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: as in `release`.
    unsafe {
        enter(error, || {
            let completion = out(completion, "completion")?;
            let handle = out(handle, "out")?;
            if completion.owner == 0 {
                return Err(argument("the completion has no message, or was released"));
            }
            *handle = Completion::take_of_lent(completion.owner, index)?;
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn submit(
    port: TwHandle,
    batch: *mut TwSubmission,
    count: u32,
    accepted: *mut u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `open`; `batch` has `count` entries.
    unsafe {
        enter(error, || {
            let accepted = out(accepted, "accepted")?;
            *accepted = 0;
            if count == 0 {
                return Ok(());
            }
            out(batch, "batch")?;
            let port = find_port(port)?;
            let batch = std::slice::from_raw_parts_mut(batch, count as usize);
            // Consecutive calls of one client are submitted together.
            for calls in batch.chunk_by_mut(|one, next| one.client == next.client) {
                let instance = find_client(calls[0].client)?;
                let mut submitter = Submitter::for_calls(&instance, &port, calls.len());
                for submission in calls {
                    submit_one(&mut submitter, submission)?;
                    *accepted += 1;
                }
            }
            Ok(())
        })
    }
}

/// # Safety
/// `args` is null, or points to `args_size` bytes, or to a `TwBorrowedArgs` as thalweg.h requires.
unsafe fn submit_one(
    submitter: &mut Submitter<'_>,
    submission: &mut TwSubmission,
) -> Result<(), Failure> {
    let flags = submission.flags;
    if flags & !(TW_SUBMIT_NOTICES | TW_SUBMIT_BLOCK | TW_SUBMIT_BORROWED) != 0 {
        return Err(argument(format!("flags {flags:#x} are unknown")));
    }
    let options = SubmitOptions {
        notices: flags & TW_SUBMIT_NOTICES != 0,
        waits: flags & TW_SUBMIT_BLOCK != 0,
    };
    let (token, method) = (submission.token, submission.method);
    let deadline = deadline(submission.deadline_ns);
    submission.call = if flags & TW_SUBMIT_BORROWED == 0 {
        // SAFETY: the caller guarantees it.
        let args = unsafe { message(submission.args, submission.args_size) }?;
        submitter.submit(token, method, args, deadline, options)?
    } else {
        // SAFETY: the caller guarantees it.
        unsafe {
            let parts = borrowed_args(submission.args, submission.args_size)?;
            submitter.submit_borrowed(token, method, parts, deadline, options)?
        }
    };
    Ok(())
}

/// The two parts of borrowed arguments.
///
/// # Safety
/// `args` is null, or points to a `TwBorrowedArgs` with valid pointers.
unsafe fn borrowed_args<'a>(args: *const u8, size: u64) -> Result<(&'a [u8], &'a [u8]), Failure> {
    if size != size_of::<TwBorrowedArgs>() as u64 {
        return Err(argument(format!(
            "{size} is not the size of tw_borrowed_args"
        )));
    }
    if args.is_null() {
        return Err(argument("the arguments are a null pointer"));
    }
    // SAFETY: the caller guarantees it. The struct may lie anywhere.
    unsafe {
        let args = args.cast::<TwBorrowedArgs>().read_unaligned();
        let head = message(args.head, args.head_size)?;
        Ok((head, message(args.tail, args.tail_size)?))
    }
}

/// The deadline of a call; 0 means none.
fn deadline(ns: u64) -> u64 {
    match ns {
        0 => u64::MAX,
        deadline => deadline,
    }
}

pub(crate) unsafe extern "C" fn call_inline(
    client: TwHandle,
    method: u32,
    args: *const u8,
    args_size: u64,
    deadline_ns: u64,
    completion: *mut TwCompletion,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `open`; `args` has `args_size` bytes.
    unsafe {
        enter(error, || {
            let completion = out(completion, "out")?;
            let instance = find_client(client)?;
            let args = message(args, args_size)?;
            let ended = instance.call_inline(method, args, deadline(deadline_ns))?;
            *completion = to_tw_completion(ended);
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn cancel(call: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `open`.
    unsafe {
        enter(error, || match find(call)? {
            Object::Call(core) => {
                core.cancel();
                Ok(())
            }
            other => Err(wrong_kind(call, &other, "a call")),
        })
    }
}
