//! A service for tests with hand-written glue, and functions that call it.
#![allow(dead_code)]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg_port::{
    Call, Client, Code, Failure, FutureReader, Incoming, Method, MethodOptions, NoError, Overflow,
    Owned, OwnedHandle, Package, Pending, QueueLimits, ResourceClient, Service, StreamOptions,
    StreamReader, StreamWriter, Task, Upstream, UpstreamFuture,
};
use thalweg_queue::Parker;
use thalweg_runtime::native;
use thalweg_wire::{Decode, Encode, Handle, message};

/// The observable state of one lab, and flags that its methods wait for. Each test has its own,
/// because tests of one process run concurrently.
#[derive(Debug, Default)]
pub struct Seen {
    /// Tasks of `until-stopped` that began, and tasks that noticed the stop.
    pub begun: AtomicU32,
    pub stopped: AtomicU32,
    /// Records that `generate` has written.
    pub written: AtomicU64,
    /// Records that it could not send without waiting.
    pub refused: AtomicU32,
    /// Writers of `generate` that have ended, also before their last record.
    pub ended: AtomicU32,
    /// A `sleep` without an end may end.
    pub wakes: AtomicBool,
    /// `LATER` may set its value; and the number of `NEVER` futures that noticed that their reader
    /// is gone.
    pub says: AtomicBool,
    pub unwanted: AtomicU32,
    /// `PANICS` may panic. A panic before its call was answered would end the call.
    pub panics: AtomicBool,
    /// Streams of `sources` that noticed that their reader is gone.
    pub unread: AtomicU32,
    /// `HELD` may read.
    pub reads: AtomicBool,
    /// The names of the threads that dropped counters.
    pub dropped_by: Mutex<Vec<String>>,
}

/// Flags of `generate`: 1 panics at the end, and this one sends where it must not wait.
const NATIVE: u8 = 4;
pub const UNTIL_STOPPED: u32 = 6;
pub const NEW_COUNTER: u32 = 7;
/// For `sleep`: until the flag is set.
pub const FOR_EVER: u64 = u64::MAX;
pub const GIVE: u32 = 11;
/// How `later` sets its value.
pub const SAID: u8 = 0;
pub const DEFAULT: u8 = 1;
pub const LATER: u8 = 2;
pub const PANICS: u8 = 3;
pub const NEVER: u8 = 4;
pub const TAKE: u32 = 12;
pub const KEPT: u32 = 13;

const fn method<P: Decode, T: Decode>(name: &'static str, stream: Option<StreamOptions>) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: String::HASH,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream,
        description: "",
    }
}

const BLOCK: Option<StreamOptions> = Some(StreamOptions {
    overflow: Overflow::Block,
    capacity: 1024,
    ..StreamOptions::DEFAULT
});
const LATEST: Option<StreamOptions> = Some(StreamOptions {
    overflow: Overflow::Latest,
    capacity: 64,
    ..StreamOptions::DEFAULT
});

const PACKAGE: Package = Package {
    name: "test:lab",
    version: "0.1.0",
    layout: 1,
    imports: &[],
    limits: QueueLimits::DEFAULT,
    methods: &[
        method::<(String,), String>("lab.shout", None),
        method::<(String,), ()>("lab.fail", None),
        method::<(), u64>("lab.count-up", None),
        method::<(u8,), ()>("lab.panic", None),
        method::<(), ()>("lab.forget", None),
        method::<(u64,), ()>("lab.sleep", None),
        method::<(), ()>("lab.until-stopped", None),
        method::<(u64,), Handle>("lab.[constructor]counter", None),
        method::<(Handle, u64), u64>("lab.[method]counter.add", None),
        method::<(u64, u64, u8), Handle>("lab.generate", BLOCK),
        method::<(u64,), Handle>("lab.newest", LATEST),
        method::<(u64,), Vec<Handle>>("lab.give", None),
        method::<(Vec<Handle>, u64), u64>("lab.take", None),
        method::<(), u64>("lab.kept", None),
        method::<(u8,), Handle>("lab.later", None),
        method::<(Handle, u8), (u64, u64)>("lab.sum", None),
        method::<(Handle,), String>("lab.await", None),
        method::<(u64, u8), Sources>("lab.sources", BLOCK),
    ],
};

/// The element type of `sum`.
pub type Element = (u64, Vec<u8>);
pub const SUM: u32 = 15;
pub const AWAIT: u32 = 16;
pub const SOURCES: u32 = 17;
/// The result of `sources`: streams, each with one more number than the previous one, and a future.
/// With `ENDS`, a stream ends after its numbers; with `GOES_ON`, it continues until its reader is
/// gone.
pub type Sources = (
    Vec<Owned<StreamReader<u64>>>,
    Option<Owned<FutureReader<String>>>,
);
pub const ENDS: u8 = 0;
pub const GOES_ON: u8 = 1;
/// How many elements to read: all; all, after the flag is set; three; all, with a panic at the
/// third.
pub const ALL: u8 = 0;
pub const HELD: u8 = 1;
pub const THREE: u8 = 2;
pub const PANICKING: u8 = 3;

#[derive(Debug, Default)]
pub struct Lab {
    ups: u64,
    /// One reference per existing object of `give`.
    kept: Arc<()>,
    seen: Arc<Seen>,
}

/// A resource that `give` returns, with its number. It is counted while it exists.
struct Kept(
    u64,
    #[expect(dead_code, reason = "the counter exists")] Arc<()>,
);

/// The client of such a resource.
pub struct KeptClient(pub OwnedHandle);

impl ResourceClient for KeptClient {
    fn from_own(own: OwnedHandle) -> Self {
        Self(own)
    }

    fn into_own(self) -> OwnedHandle {
        self.0
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Boom {
    AtOnce,
    InTask,
    InWriter,
}

struct Counter(AtomicU64, Arc<Seen>);

/// A counter that starts at this number panics when it is dropped.
pub const UNLUCKY: u64 = 13;

impl Drop for Counter {
    fn drop(&mut self) {
        let thread = std::thread::current().name().unwrap_or("").to_owned();
        self.1.dropped_by.lock().unwrap().push(thread);
        assert!(*self.0.get_mut() != UNLUCKY, "while dropped, on purpose");
    }
}

/// A record of `generate`.
pub type Record = (u64, String);

impl Service for Lab {
    const PACKAGE: &'static Package = &PACKAGE;

    fn dispatch(&mut self, incoming: Incoming) {
        if let Err(refused) = self.serve(incoming) {
            let (incoming, refusal) = *refused;
            incoming.refuse(refusal);
        }
    }
}

type Refused = Box<(Incoming, thalweg_port::Refusal)>;

fn params<P: Decode>(incoming: Incoming) -> Result<(Incoming, P), Refused> {
    match incoming.params() {
        Ok(params) => Ok((incoming, params)),
        Err(refusal) => Err(Box::new((incoming, refusal))),
    }
}

impl Lab {
    fn serve(&mut self, incoming: Incoming) -> Result<(), Refused> {
        match incoming.method() {
            0 => {
                let (incoming, (text,)) = params::<(String,)>(incoming)?;
                incoming.reply(&text.to_uppercase());
            }
            1 => {
                let (incoming, (text,)) = params::<(String,)>(incoming)?;
                incoming.reply_error(&text);
            }
            2 => {
                self.ups += 1;
                incoming.reply(&self.ups);
            }
            3 => {
                let (incoming, (how,)) = params::<(u8,)>(incoming)?;
                assert!(how != 0, "at once, on purpose");
                incoming.run(
                    Task::<()>::new(|_| panic!("in a task, on purpose")),
                    |incoming, ()| incoming.reply(&()),
                );
            }
            4 => drop(incoming),
            5 => {
                let (incoming, (ms,)) = params::<(u64,)>(incoming)?;
                match ms {
                    FOR_EVER => wait_while_not(&self.seen.wakes),
                    ms => std::thread::sleep(Duration::from_millis(ms)),
                }
                incoming.reply(&());
            }
            6 => {
                let seen = Arc::clone(&self.seen);
                let task = Task::new(move |call: &Call| {
                    seen.begun.fetch_add(1, Ordering::SeqCst);
                    while call.check().is_ok() {}
                    seen.stopped.fetch_add(1, Ordering::SeqCst);
                });
                incoming.run(task, |incoming, ()| incoming.reply(&()));
            }
            7 => {
                let (incoming, (start,)) = params::<(u64,)>(incoming)?;
                incoming.reply_own(Counter(start.into(), Arc::clone(&self.seen)));
            }
            8 => {
                let (incoming, (counter, by)) = params::<(Handle, u64)>(incoming)?;
                match incoming.borrow::<Counter>(counter) {
                    Ok(counter) => {
                        let sum = counter.0.fetch_add(by, Ordering::SeqCst) + by;
                        incoming.reply(&sum);
                    }
                    Err(refusal) => return Err(Box::new((incoming, refusal))),
                }
            }
            9 => {
                let (incoming, (count, writers, how)) = params::<(u64, u64, u8)>(incoming)?;
                let (writer, reader) = incoming.call().stream::<Record, thalweg_port::Untyped>();
                for w in 0..writers {
                    let (writer, seen) = (writer.clone(), Arc::clone(&self.seen));
                    let generate = move |_: &Call| generate(writer, &seen, w, count, how);
                    incoming.call().spawn(generate);
                }
                writer.finish().unwrap();
                incoming.reply_stream(reader);
            }
            10 => {
                let (incoming, (count,)) = params::<(u64,)>(incoming)?;
                let (writer, reader) = incoming.call().stream::<u64, thalweg_port::Untyped>();
                for i in 0..count {
                    writer.send(&i).expect("latest never waits");
                }
                writer.finish().unwrap();
                incoming.reply_stream(reader);
            }
            11 => {
                let (incoming, (count,)) = params::<(u64,)>(incoming)?;
                let hold = |i| {
                    let kept = Kept(i, Arc::clone(&self.kept));
                    incoming.call().own::<KeptClient, _>(kept).unwrap()
                };
                let held: Vec<_> = (0..count).map(hold).collect();
                incoming.reply(&held);
            }
            12 => {
                let (incoming, (held, count)) = params::<(Vec<Owned<KeptClient>>, u64)>(incoming)?;
                let taken = held.into_iter().take(count as usize);
                let sum = taken
                    .map(|held| held.take::<Kept>(incoming.call()).map(|kept| kept.0))
                    .sum::<Result<u64, Failure>>();
                match sum {
                    Ok(sum) => incoming.reply(&sum),
                    Err(failure) => incoming.reply_error(&failure.to_string()),
                }
            }
            13 => incoming.reply(&(Arc::strong_count(&self.kept) as u64 - 1)),
            14 => {
                let (incoming, (how,)) = params::<(u8,)>(incoming)?;
                let (writer, reader) = incoming.call().future::<String, thalweg_port::Untyped>();
                let seen = Arc::clone(&self.seen);
                match how {
                    SAID => writer.set("said").unwrap(),
                    DEFAULT => drop(writer),
                    _ => incoming.call().spawn(move |call| match how {
                        LATER => {
                            while !seen.says.load(Ordering::SeqCst) {
                                let _ = call.check();
                            }
                            writer.set("later").unwrap();
                        }
                        PANICS => {
                            while !seen.panics.load(Ordering::SeqCst) {
                                let _ = call.check();
                            }
                            panic!("on purpose");
                        }
                        _ => {
                            while writer.check().is_ok() {
                                let _ = call.check();
                            }
                            seen.unwanted.fetch_add(1, Ordering::SeqCst);
                        }
                    }),
                }
                incoming.reply_stream(reader.into_stream());
            }
            SOURCES => {
                let (incoming, (count, how)) = params::<(u64, u8)>(incoming)?;
                let call = incoming.call();
                let source = |last: u64| {
                    let (writer, reader) = call.stream();
                    for number in 0..=last {
                        writer.send(&number).unwrap();
                    }
                    if how == ENDS {
                        writer.finish().unwrap();
                    } else {
                        let seen = Arc::clone(&self.seen);
                        call.spawn(move |_| {
                            while writer.check().is_ok() {
                                thalweg_runtime::yield_now();
                            }
                            seen.unread.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                    call.own_stream(reader).unwrap()
                };
                let streams = (0..count).map(source).collect::<Vec<_>>();
                let (writer, reader) = call.future();
                writer.set("said").unwrap();
                let said = Some(call.own_future(reader).unwrap());
                incoming.reply(&(streams, said));
            }
            SUM => {
                let (incoming, (numbers, how)) = params::<(Upstream<Element>, u8)>(incoming)?;
                let numbers = match incoming.upstream(numbers) {
                    Ok(numbers) => numbers,
                    Err(refusal) => return Err(Box::new((incoming, refusal))),
                };
                let seen = Arc::clone(&self.seen);
                let task = Task::new(move |call: &Call| sum(call, &seen, numbers, how));
                incoming.run(task, |incoming, result| match result {
                    Ok(sum) => incoming.reply(&sum),
                    Err(why) => incoming.reply_error(&format!("{:?}", why.code)),
                });
            }
            AWAIT => {
                let (incoming, (text,)) = params::<(Upstream<String>,)>(incoming)?;
                let text = match incoming.upstream(text) {
                    Ok(text) => UpstreamFuture::from(text),
                    Err(refusal) => return Err(Box::new((incoming, refusal))),
                };
                incoming.run(
                    Task::new(|_: &Call| text.wait()),
                    |incoming, text| match text {
                        Ok(text) => incoming.reply(&text),
                        Err(why) => incoming.reply_error(&format!("{:?}", why.code)),
                    },
                );
            }
            other => unreachable!("method {other} is not in the package"),
        }
        Ok(())
    }
}

/// The number of elements and the sum of their numbers.
fn sum(
    call: &Call,
    seen: &Seen,
    numbers: Upstream<Element>,
    how: u8,
) -> Result<(u64, u64), Failure> {
    while how == HELD && !seen.reads.load(Ordering::SeqCst) {
        call.check()?;
    }
    let (mut count, mut sum) = (0, 0);
    for element in numbers {
        sum += element?.0;
        count += 1;
        assert!(how != PANICKING || count < 3, "while it reads, on purpose");
        if how == THREE && count == 3 {
            break;
        }
    }
    Ok((count, sum))
}

fn generate(writer: StreamWriter<Record>, seen: &Seen, w: u64, count: u64, how: u8) {
    for i in 0..count {
        let text = format!("{w}:{i}:{}", "x".repeat((i % 50) as usize));
        let record = (w << 32 | i, text);
        let sent = match how {
            NATIVE => native(|| writer.send(&record)),
            _ => writer.send(&record),
        };
        if let Err(failure) = sent {
            let refused = failure.code == Code::WouldPark;
            seen.refused.fetch_add(refused.into(), Ordering::SeqCst);
            break;
        }
        seen.written.fetch_add(1, Ordering::SeqCst);
    }
    seen.ended.fetch_add(1, Ordering::SeqCst);
    assert!(how != 1, "in a writer, on purpose");
    // Records that were refused where the writer must not wait are missing intentionally.
    let _ = writer.finish();
}

/// Waits until the flag is set.
pub fn wait_while_not(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

/// Waits until the count is reached.
pub fn wait_until(count: &AtomicU32, at_least: u32) {
    while count.load(Ordering::SeqCst) < at_least {
        std::thread::yield_now();
    }
}

/// A client of a new lab, and the lab's state.
pub fn seen() -> (Client, Arc<Seen>) {
    let seen = Arc::default();
    (Client::start(make(&seen)).unwrap(), seen)
}

/// A constructor of labs with this state.
pub fn make(seen: &Arc<Seen>) -> impl Fn() -> Lab + Send + Sync + 'static {
    let seen = Arc::clone(seen);
    move || Lab {
        seen: Arc::clone(&seen),
        ..Lab::default()
    }
}

pub fn client() -> Client {
    Client::start(Lab::default).unwrap()
}

pub fn encode<P: Encode>(method: u32, params: &P) -> Vec<u8> {
    message::encode(params, PACKAGE.methods[method as usize].params, Vec::new()).unwrap()
}

pub fn shout(client: &Client, text: &str) -> Pending<String, NoError> {
    client.call(0, &(text,), |reply| reply.value())
}

pub fn fail(client: &Client, text: &str) -> Pending<(), String> {
    client.call(1, &(text,), |reply| reply.value())
}

pub fn count_up(client: &Client) -> Pending<u64, NoError> {
    client.call(2, &(), |reply| reply.value())
}

pub fn panic(client: &Client, boom: Boom) -> Pending<(), NoError> {
    client.call(3, &(boom as u8,), |reply| reply.value())
}

pub fn forget(client: &Client) -> Pending<(), NoError> {
    client.call(4, &(), |reply| reply.value())
}

pub fn sleep(client: &Client, ms: u64) -> Pending<(), NoError> {
    client.call(5, &(ms,), |reply| reply.value())
}

pub fn until_stopped(client: &Client) -> Pending<(), NoError> {
    client.call(UNTIL_STOPPED, &(), |reply| reply.value())
}

pub fn new_counter(client: &Client, start: u64) -> Pending<OwnedHandle, NoError> {
    client.call(NEW_COUNTER, &(start,), |reply| reply.own())
}

pub fn give(client: &Client, count: u64) -> Pending<Vec<Owned<KeptClient>>, NoError> {
    client.call(GIVE, &(count,), |reply| reply.value())
}

pub fn take(client: &Client, held: &[Owned<KeptClient>], count: u64) -> Pending<u64, String> {
    client.call(TAKE, &(held, count), |reply| reply.value())
}

pub fn kept(client: &Client) -> u64 {
    let kept: Pending<u64, NoError> = client.call(KEPT, &(), |reply| reply.value());
    kept.wait().unwrap()
}

pub fn later(client: &Client, how: u8) -> Pending<FutureReader<String>, NoError> {
    client.call(14, &(how,), |reply| reply.stream().map(FutureReader::from))
}

pub fn sources(client: &Client, count: u64, how: u8) -> Pending<Sources, NoError> {
    client.call(SOURCES, &(count, how), |reply| reply.value())
}

pub fn sum_up(client: &Client, numbers: Upstream<Element>, how: u8) -> Pending<(u64, u64), String> {
    client.call(SUM, &(numbers, how), |reply| reply.value())
}

pub fn wait_for(client: &Client, text: &UpstreamFuture<String>) -> Pending<String, String> {
    client.call(AWAIT, &(text.as_stream(),), |reply| reply.value())
}

pub fn add(client: &Client, counter: Handle, by: u64) -> Pending<u64, NoError> {
    client.call(8, &(counter, by), |reply| reply.value())
}

pub fn stream(
    client: &Client,
    count: u64,
    writers: u64,
    boom: bool,
) -> Pending<StreamReader<Record>, NoError> {
    client.call(9, &(count, writers, u8::from(boom)), |reply| reply.stream())
}

/// A stream whose writer must not wait. It ends where the writer would have to wait.
pub fn hasty(client: &Client, count: u64) -> Pending<StreamReader<Record>, NoError> {
    client.call(9, &(count, 1u64, NATIVE), |reply| reply.stream())
}

pub fn newest(client: &Client, count: u64) -> Pending<StreamReader<u64>, NoError> {
    client.call(10, &(count,), |reply| reply.stream())
}

/// A minimal executor.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let parker = Parker::new();
    let waker = parker.waker();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        parker.park(None);
    }
}
