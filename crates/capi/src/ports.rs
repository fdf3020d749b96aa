//! Ports and calls, as C sees them.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use thalweg_port::{
    Code, Completion, Failure, Kind, Object, Port, SubmitOptions, Submitter, answer_host_call,
    find, insert, remove,
};

use crate::abi::{
    TW_COMPLETION_CALL, TW_COMPLETION_HOST_CALL, TW_COMPLETION_NOTICE, TW_COMPLETION_STREAM_READY,
    TW_SUBMIT_BLOCK, TW_SUBMIT_NOTICES, TwCompletion, TwError, TwHandle, TwSubmission,
};
use crate::error::{argument, enter, out};
use crate::library::{find_client, wrong};

/// Completions whose memory is asked for together.
const REAPED_AT_ONCE: usize = 16;

pub(crate) fn find_port(handle: TwHandle) -> Result<Arc<Port>, Failure> {
    match find(handle)? {
        Object::Port(port) => Ok(port),
        other => Err(wrong(handle, &other, "a port")),
    }
}

pub(crate) unsafe extern "C" fn open(
    capacity: u32,
    port: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the header demands of the caller what `enter` and `out` demand; so in every function here.
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
    // SAFETY: see `open`; and the header says that `completions` has room for `max`.
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
                    completions.add(*count as usize).write(describe(completion));
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

fn describe(completion: Completion) -> TwCompletion {
    let mut described = TwCompletion {
        token: completion.token,
        call: completion.handle,
        kind: match completion.kind {
            Kind::CallEnded => TW_COMPLETION_CALL,
            Kind::StreamReady => TW_COMPLETION_STREAM_READY,
            Kind::StillRunning => TW_COMPLETION_NOTICE,
            Kind::HostCall => TW_COMPLETION_HOST_CALL,
        },
        code: match completion.kind {
            Kind::HostCall => completion.number,
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
        // The header promises it: allocators of 64-bit systems align to 16, whatever the layout asks for.
        debug_assert!(described.data.addr().is_multiple_of(8));
    }
    if !completion.message.is_empty() {
        described.message = completion.message.as_ptr().cast();
    }
    // Its buffers stay where they are.
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
        // The call was served: only the second run of an idempotent method does no harm.
        described.code = Code::GuestLost as u32;
        described.retryable = completion.is_idempotent().into();
    }
    const WHY: &str = "there is no memory for the result";
    (described.data, described.data_size) = (std::ptr::null(), 0);
    (described.message, described.message_size) = (WHY.as_ptr().cast(), WHY.len() as u32);
}

pub(crate) unsafe extern "C" fn release(completion: *mut TwCompletion) {
    // SAFETY: null, or a completion that `reap` filled, or a copy of one, that nobody else uses meanwhile. Its owner is a number: one that was
    // released before, by this copy or another, is stale.
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
    // SAFETY: see `open`; and the header says that `batch` has `count` entries.
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
            // Those of one client go together.
            for its in batch.chunk_by_mut(|one, next| one.client == next.client) {
                let instance = find_client(its[0].client)?;
                let mut submitter = Submitter::new(&instance, &port);
                for submission in its {
                    submit_one(&mut submitter, submission)?;
                    *accepted += 1;
                }
            }
            Ok(())
        })
    }
}

/// # Safety
/// `args` is null or points to `args_size` bytes.
unsafe fn submit_one(
    submitter: &mut Submitter<'_>,
    submission: &mut TwSubmission,
) -> Result<(), Failure> {
    let flags = submission.flags;
    if flags & !(TW_SUBMIT_NOTICES | TW_SUBMIT_BLOCK) != 0 {
        return Err(argument(format!(
            "flags {flags:#x} are none of this version's"
        )));
    }
    // SAFETY: the caller's promise.
    let args = unsafe { message(submission.args, submission.args_size) }?;
    let options = SubmitOptions {
        notices: flags & TW_SUBMIT_NOTICES != 0,
        waits: flags & TW_SUBMIT_BLOCK != 0,
    };
    submission.call = submitter.submit(
        submission.token,
        submission.method,
        args,
        deadline(submission.deadline_ns),
        options,
    )?;
    Ok(())
}

/// # Safety
/// `args` is null or points to `size` bytes, which nobody writes to meanwhile.
pub(crate) unsafe fn message<'a>(args: *const u8, size: u64) -> Result<&'a [u8], Failure> {
    if args.is_null() {
        return Err(argument("the message is a null pointer"));
    }
    // A message says its own size as a u32; more than that is not one.
    let size =
        u32::try_from(size).map_err(|_| argument("the size is beyond what a message can have"))?;
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(args, size as usize) })
}

/// A call's; 0 is none.
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
    // SAFETY: see `open`; and the header says that `args` has `args_size` bytes.
    unsafe {
        enter(error, || {
            let completion = out(completion, "out")?;
            let instance = find_client(client)?;
            let args = message(args, args_size)?;
            let ended = instance.call_inline(method, args, deadline(deadline_ns))?;
            *completion = describe(ended);
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
            other => Err(wrong(call, &other, "a call")),
        })
    }
}
