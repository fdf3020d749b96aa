//! The C table, as a host in C uses it.

mod host;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::Code;
use thalweg::runtime::{Handle as Runtime, Runtime as Global};
use thalweg::wire::{Decode, Encode, Handle, message};
use thalweg_capi::abi::{TW_CBOR, TW_CLOSED, TW_FOREVER, TwBatch, TwError};

use self::host::{Host, MANY, Stream, ask, problem, table};
use super::{Problem, Step};
use crate::fault::{during, during_on};
use crate::service::{COUNT, ECHO, HOLD, LATER, Record, SCAN};

/// Larger than any allocation that Thalweg makes for itself.
pub(super) const LARGE: usize = 1 << 20;
const RECORDS: u64 = 200;

pub(super) fn complete(count: u64) -> Result<(), Problem> {
    if count == RECORDS {
        return Ok(());
    }
    Err(Problem::violation(format!(
        "a stream of {RECORDS} records ended regularly after {count}"
    )))
}

fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|i| i as u8).collect()
}

fn encoded<P: Encode>(params: &P) -> Vec<u8> {
    encode(params).expect("nothing is refused yet")
}

fn encode<P: Encode>(params: &P) -> Result<Vec<u8>, Problem> {
    let encoded = message::encode(params, <P::As as Decode>::HASH, Vec::new());
    encoded.map_err(|why| Problem::new("encode", why))
}

/// The global runtime of the process, which the instances of the table use.
pub(super) fn global() -> Runtime {
    Global::global().expect("nothing is refused yet")
}

/// A host that is open and has already made a call.
fn opened() -> Host {
    let host = Host::open(1_024).expect("nothing is refused yet");
    let args = encoded(&(bytes(8),));
    drop(host.call(ECHO, &args, TW_FOREVER).expect("as above"));
    host
}

pub(super) fn open() -> Step {
    let args = encoded(&(bytes(64),));
    Box::new(move || {
        during(|| {
            let mut host = Host::open(64)?;
            host.call(ECHO, &args, TW_FOREVER)?;
            host.close()
        })
    })
}

/// A call with its answer. The client is opened for the call, so that nothing is cached.
fn calls(method: u32, size: usize) -> Step {
    let runtime = global();
    let expected = bytes(size);
    let args = encoded(&(&expected,));
    let answer = message::encode(&expected, <Vec<u8>>::HASH, Vec::new()).expect("small enough");
    Box::new(move || {
        let host = opened();
        during_on(&runtime, || {
            let called = host.call(method, &args, TW_FOREVER)?;
            if called.data() != answer {
                return Err(Problem::violation("the answer is another one"));
            }
            drop(called);
            Ok(())
        })?;
        // The same client must work for the next call.
        host.call(method, &args, TW_FOREVER)
            .map(drop)
            .map_err(|why| Problem::violation(format!("the next call: {why:?}")))
    })
}

pub(super) fn call() -> Step {
    calls(ECHO, 64)
}

pub(super) fn later() -> Step {
    calls(LATER, 64)
}

pub(super) fn large() -> Step {
    calls(ECHO, LARGE)
}

/// Calls that are submitted together. Each accepted call has one completion.
pub(super) fn batch() -> Step {
    let runtime = global();
    let args = encoded(&(bytes(600),));
    Box::new(move || {
        let host = opened();
        during_on(&runtime, || {
            let accepted = host.submit_many(LATER, &args, TW_FOREVER, MANY)?;
            let mut ended = Ok(());
            for _ in 0..accepted {
                let answer = host.next()?;
                if let Err(why) = answer.check() {
                    ended = Err(why);
                }
            }
            ended
        })?;
        host.call(ECHO, &args, TW_FOREVER)
            .map(drop)
            .map_err(|why| Problem::violation(format!("the next call: {why:?}")))
    })
}

pub(super) fn stream() -> Step {
    let runtime = global();
    let args = encoded(&(RECORDS, 3_000u64));
    Box::new(move || {
        let host = opened();
        during_on(&runtime, || {
            let mut answer = host.call(SCAN, &args, TW_FOREVER)?;
            let stream = answer.stream()?;
            complete(stream.count()?)
        })
    })
}

/// The data that a callback has received.
#[derive(Default)]
struct Heard {
    records: AtomicU64,
    /// The code of the end.
    ended: AtomicU64,
    retryable: AtomicU64,
    dropped: AtomicU64,
}

unsafe extern "C" fn hear(ctx: *mut c_void, batch: *const TwBatch, ending: *const TwError) -> u32 {
    // SAFETY: `ctx` is the operation's `Heard`, which it keeps until `drop_ctx` has been called.
    // The batch and the outcome are valid during the call.
    unsafe {
        let heard = &*ctx.cast::<Heard>();
        let batch = &*batch;
        let records = u64::from(batch.count) + batch.lost_before;
        heard.records.fetch_add(records, Ordering::SeqCst);
        if let Some(ending) = ending.as_ref() {
            let retryable = ending.retryable.into();
            heard.retryable.store(retryable, Ordering::SeqCst);
            heard.ended.store(ending.code.into(), Ordering::SeqCst);
        }
    }
    0
}

unsafe extern "C" fn dropped(ctx: *mut c_void) {
    // SAFETY: see `hear`.
    unsafe { &*ctx.cast::<Heard>() }
        .dropped
        .fetch_add(1, Ordering::SeqCst);
}

pub(super) fn subscribe() -> Step {
    let runtime = global();
    let args = encoded(&(RECORDS, 100u64));
    Box::new(move || {
        let host = opened();
        let heard = Heard::default();
        let mut subscribed = false;
        let ended = during_on(&runtime, || {
            let mut answer = host.call(SCAN, &args, TW_FOREVER)?;
            let stream = answer.stream()?;
            // SAFETY: see `Host::open`. `heard` lives until `drop_ctx` has been called, which
            // `stream_close` waits for.
            unsafe {
                let ctx = (&raw const heard).cast_mut().cast();
                ask(|error| {
                    (table().stream_subscribe)(stream.0, Some(hear), ctx, Some(dropped), 0, error)
                })?;
                subscribed = true;
                ask(|error| (table().stream_join)(stream.0, TW_FOREVER, error))
            }
        });
        drop(host);
        if heard.dropped.load(Ordering::SeqCst) != u64::from(subscribed) {
            return Err(Problem::violation("drop_ctx was not called once"));
        }
        ended?;
        match heard.ended.load(Ordering::SeqCst) as u32 {
            TW_CLOSED => complete(heard.records.load(Ordering::SeqCst)),
            code => {
                let retryable = heard.retryable.load(Ordering::SeqCst) != 0;
                Err(problem(code, retryable, "the stream's end".to_owned()))
            }
        }
    })
}

pub(super) fn upstream() -> Step {
    let runtime = global();
    let record: Record = (7, bytes(3_000));
    let element = message::encode(&record, Record::HASH, Vec::new()).expect("it is small");
    Box::new(move || {
        let host = opened();
        during_on(&runtime, || {
            let (mut writer, mut reader) = (0, 0);
            // SAFETY: see `Host::open`.
            unsafe {
                ask(|error| {
                    let (writer, reader) = (&raw mut writer, &raw mut reader);
                    (table().stream_new)(host.client, COUNT, 0, writer, reader, error)
                })?;
            }
            let (writer, mut reader) = (Stream(writer), Some(Stream(reader)));
            let args = encode(&(Handle(reader.as_ref().map_or(0, |r| r.0)),))?;
            host.submit(COUNT, &args, TW_FOREVER)?;
            // The service owns it now.
            if let Some(reader) = reader.take() {
                std::mem::forget(reader);
            }
            let mut sent = Ok(());
            // SAFETY: see `Host::open`.
            unsafe {
                for _ in 0..RECORDS {
                    sent = ask(|error| {
                        let size = element.len() as u64;
                        (table().stream_send)(writer.0, element.as_ptr(), size, TW_FOREVER, error)
                    });
                    if sent.is_err() {
                        break;
                    }
                }
                if sent.is_ok() {
                    sent = ask(|error| (table().stream_finish)(writer.0, error));
                }
            }
            drop(writer);
            let answer = host.next()?;
            answer.check()?;
            let counted = message::open(answer.data(), u64::HASH)
                .and_then(|message| message.owned::<u64>())
                .map_err(Problem::violation)?;
            match sent {
                Ok(()) => complete(counted),
                Err(why) => Err(why),
            }
        })
    })
}

/// A call whose deadline passes while it runs.
pub(super) fn deadline() -> Step {
    let runtime = global();
    let args = encoded(&());
    Box::new(move || {
        let host = opened();
        during_on(&runtime, || {
            // SAFETY: any thread may read the time.
            let soon = unsafe { (table().now)() } + 2_000_000;
            match host.call(HOLD, &args, soon) {
                Ok(_) => Err(Problem::violation("it ended before its deadline")),
                Err(why) if why.code == Code::TimedOut.name() => Ok(()),
                Err(why) => Err(why),
            }
        })
    })
}

/// A port in an event loop.
pub(super) fn fd() -> Step {
    let runtime = global();
    let args = encoded(&(bytes(64),));
    Box::new(move || {
        let client = opened();
        during_on(&runtime, || {
            let mut host = Host {
                client: client.client,
                port: 0,
            };
            let mut fd = -1;
            // SAFETY: see `Host::open`.
            unsafe {
                ask(|error| (table().port_open)(64, &raw mut host.port, error))?;
                let host = Closes(host);
                ask(|error| (table().port_fd)(host.0.port, &raw mut fd, error))?;
                host.0.submit(ECHO, &args, TW_FOREVER)?;
                let mut ready = 0;
                ask(|error| (table().port_arm)(host.0.port, &raw mut ready, error))?;
                if ready == 0 {
                    let mut poll = libc::pollfd {
                        fd,
                        events: libc::POLLIN,
                        revents: 0,
                    };
                    while libc::poll(&raw mut poll, 1, -1) < 1 {}
                }
                host.0.next()?.check()
            }
        })
    })
}

/// Closes only the port.
struct Closes(Host);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.client = 0;
    }
}

/// Calls and streams are in flight when their client and port are closed.
pub(super) fn close() -> Step {
    let runtime = global();
    let hold = encoded(&());
    let scan = encoded(&(1_000_000u64, 100u64));
    Box::new(move || {
        let mut host = opened();
        let broken = |why: Problem| Problem::violation(format!("before any shortage: {why:?}"));
        let mut answer = host.call(SCAN, &scan, TW_FOREVER).map_err(broken)?;
        let stream = answer.stream().map_err(broken)?;
        host.submit_many(HOLD, &hold, TW_FOREVER, 4)
            .map_err(broken)?;
        let closed = during_on(&runtime, || host.close());
        // It ends, whatever values it still has.
        let read = stream.count();
        match read {
            Err(why) if why.code == Code::Cancelled.name() => closed,
            other => Err(Problem::violation(format!(
                "a stream of a closed client: {other:?}"
            ))),
        }
    })
}

/// Converts a message to another format.
pub(super) fn transcode() -> Step {
    let value = bytes(LARGE);
    let message = message::encode(&value, <Vec<u8>>::HASH, Vec::new()).expect("small enough");
    let description = "list<u8>";
    // The item has a head of 5 bytes.
    let mut out = vec![0; LARGE + 5];
    Box::new(move || {
        let mut size = 0;
        // SAFETY: see `Host::open`.
        during(|| unsafe {
            ask(|error| {
                (table().transcode)(
                    description.as_ptr(),
                    description.len() as u64,
                    TW_CBOR,
                    message.as_ptr(),
                    message.len() as u64,
                    out.as_mut_ptr(),
                    out.len() as u64,
                    &raw mut size,
                    error,
                )
            })
        })?;
        if out[..size as usize].ends_with(&value) {
            return Ok(());
        }
        Err(Problem::violation("the bytes are others"))
    })
}
