//! The functions with which threads of a guest take its events.

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ptr;

use thalweg_capi::abi::{TwError, TwHandle};
use thalweg_capi::enter;
use thalweg_capi::error::argument;
use thalweg_capi::pointers::out;
use thalweg_port::{GuestEvent, GuestPort};

use crate::abi::{
    TW_GUEST_CALL, TW_GUEST_CANCEL, TW_GUEST_CLOSE, TW_GUEST_DROP, TW_GUEST_OPEN, TW_GUEST_READY,
    TwGuestCall, TwGuestEvent,
};

/// `tw_guest_core.port_fd`.
pub(crate) unsafe extern "C" fn port_fd(
    port: TwHandle,
    fd: *mut c_int,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg_guest.h requires of the guest what `enter` and `out` require; also below.
    unsafe {
        enter(error, || {
            *out(fd, "fd")? = GuestPort::find(port)?.descriptor();
            Ok(())
        })
    }
}

/// `tw_guest_core.port_take`.
pub(crate) unsafe extern "C" fn port_take(
    port: TwHandle,
    events: *mut TwGuestEvent,
    capacity: u32,
    deadline_ns: u64,
    count: *mut u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `port_fd`; `events` has room for `capacity` events.
    unsafe {
        enter(error, || {
            let count = out(count, "count")?;
            *count = 0;
            if events.is_null() || capacity == 0 {
                return Err(argument("there is no memory for events"));
            }
            let port = GuestPort::find(port)?;
            let give = |event| {
                events.add(*count as usize).write(written(event));
                *count += 1;
            };
            port.take(capacity as usize, deadline_ns, give).map(drop)
        })
    }
}

/// `tw_guest_core.event_release`.
pub(crate) unsafe extern "C" fn event_release(events: *mut TwGuestEvent, count: u32) {
    if events.is_null() {
        return;
    }
    // SAFETY: thalweg_guest.h requires of the guest that these are `count` events that it has taken.
    let events = unsafe { std::slice::from_raw_parts_mut(events, count as usize) };
    for event in events {
        let args = std::mem::replace(&mut event.call.args, ptr::null_mut());
        if !args.is_null() {
            // SAFETY: `written` has made these of a Vec, and nothing else uses its memory.
            GuestPort::reuse(unsafe { Vec::from_raw_parts(args, 0, event.args_capacity as usize) });
        }
    }
}

fn written(event: GuestEvent) -> TwGuestEvent {
    let mut written = TwGuestEvent {
        kind: 0,
        resource_type: 0,
        state: 0,
        object: 0,
        call: TwGuestCall {
            call: 0,
            method: 0,
            reserved: 0,
            deadline_ns: u64::MAX,
            args: ptr::null_mut(),
            args_size: 0,
        },
        args_capacity: 0,
    };
    match event {
        GuestEvent::Open { state } => (written.kind, written.state) = (TW_GUEST_OPEN, state),
        GuestEvent::Call {
            state,
            call,
            method,
            deadline,
            args,
        } => {
            (written.kind, written.state) = (TW_GUEST_CALL, state);
            let mut args = ManuallyDrop::new(args);
            written.args_capacity = args.capacity() as u64;
            written.call = TwGuestCall {
                call,
                method,
                reserved: 0,
                deadline_ns: deadline,
                args_size: args.len() as u64,
                args: args.as_mut_ptr(),
            };
        }
        GuestEvent::Cancel { state, call } => {
            (written.kind, written.state) = (TW_GUEST_CANCEL, state);
            written.call.call = call;
        }
        GuestEvent::Drop { state, object } => {
            (written.kind, written.state) = (TW_GUEST_DROP, state);
            (written.resource_type, written.object) = (object.kind, object.number);
        }
        GuestEvent::Close { state } => (written.kind, written.state) = (TW_GUEST_CLOSE, state),
        GuestEvent::Ready { token } => (written.kind, written.object) = (TW_GUEST_READY, token),
    }
    written
}
