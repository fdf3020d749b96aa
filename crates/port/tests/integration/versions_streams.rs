//! Streams and stream parameters if the caller has another version than the library.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use thalweg_port::stream::{CallbackEvent, OpenBatch, StreamCore, UpstreamCore};
use thalweg_port::{
    Code, Completion, Counts, FutureReader, Incoming, Instance, Method, Object, Overflow, Owned,
    Package, Port, QueueLimits, Refusal, Service, StreamOptions, Upstream, find, insert, remove,
};
use thalweg_wire::{Bytes, Checker, Decode, Encode, Encoder, Handle, Malformed, Shape, message};

use crate::described::{Texts, encoded, known, method, same};

const EACH: u32 = 0;
const LATEST: u32 = 1;
const SLOWLY: u32 = 2;
const LISTS: u32 = 3;
const LATER: u32 = 4;
const SUM: u32 = 5;

/// An element of a stream parameter: `value` and `note`.
#[derive(Clone, Debug, PartialEq)]
struct Number((u64, String));

impl Encode for Number {
    type As = Self;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.0.encode(to, at);
    }
}

impl Decode for Number {
    const SIZE: u32 = <(u64, String)>::SIZE;
    const ALIGN: u32 = <(u64, String)>::ALIGN;
    const SHAPE: Shape = Shape::Text("record{value:u64,note:string}");
    const DEPTH: u32 = 1;

    type View<'a> = NumberView<'a>;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        <(u64, String)>::check(from, at)
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> NumberView<'a> {
        NumberView(<(u64, String)>::view(from, at))
    }

    fn owned(view: NumberView<'_>) -> Self {
        Self(<(u64, String)>::owned(view.0))
    }

    fn as_view(&self) -> NumberView<'_> {
        NumberView(self.0.as_view())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct NumberView<'a>((u64, &'a str));

impl Encode for NumberView<'_> {
    type As = Number;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.0.encode(to, at);
    }
}

type Entry = (String, u64, u8);
type OldEntry = (String, u64);
type NewEntry = (String, u64, u8, Vec<String>, u64);

const NUMBERS: &str = "record{numbers:stream<record{value:u64,note:string}>}";
const OLD_NUMBERS: &str = "record{numbers:stream<record{value:u64}>}";
const NEW_NUMBERS: &str =
    "record{numbers:stream<record{value:u64,note:string,more:list<string>}>,deep:bool}";

/// After the conversion, each element of the list has 8,008 bytes.
const LIST: &str = "stream<record{number:u64,list:list<record{a:u8}>}>";
const NEW_LIST: &str = "stream<record{number:u64,list:list<record{a:u8,b:list<u64,1000>}>}>";

/// Writes the number of entries that the caller passes.
const fn entries(name: &'static str, policy: Overflow, capacity: u32) -> Method {
    const ENTRY: &str = "record{path:string,line:u64,kind:enum{unknown,file,folder}}";
    const STREAM: &str = "stream<record{path:string,line:u64,kind:enum{unknown,file,folder}}>";
    Method {
        stream: Some(StreamOptions {
            overflow: policy,
            capacity,
            ..StreamOptions::DEFAULT
        }),
        ..method(
            name,
            ["record{count:u64}", STREAM, "", ENTRY],
            "record{count:u64}\nstream<record{path:string,line:u64,kind:enum{unknown,file,folder}}>\n\nrecord{path:string,line:u64,kind:enum{unknown,file,folder}}",
        )
    }
}

struct Feed;

impl Service for Feed {
    const PACKAGE: &'static Package = &Package {
        name: "test:feed",
        version: "0.1.0",
        layout: 1,
        limits: QueueLimits::DEFAULT,
        methods: &[
            entries("feed.each", Overflow::Block, 8192),
            entries("feed.latest", Overflow::Latest, 8192),
            entries("feed.slowly", Overflow::Block, 64),
            method(
                "feed.lists",
                [
                    "record{counts:list<u64>}",
                    LIST,
                    "",
                    "record{number:u64,list:list<record{a:u8}>}",
                ],
                "record{counts:list<u64>}\nstream<record{number:u64,list:list<record{a:u8}>}>\n\nrecord{number:u64,list:list<record{a:u8}>}",
            ),
            method(
                "feed.later",
                [
                    "record{}",
                    "record{at:u64,entry:future<record{path:string,line:u64,kind:enum{unknown,file,folder}}>}",
                    "",
                    "",
                ],
                "record{}\nrecord{at:u64,entry:future<record{path:string,line:u64,kind:enum{unknown,file,folder}}>}\n\n",
            ),
            method(
                "feed.sum",
                [NUMBERS, "tuple<u64,string>", "", ""],
                "record{numbers:stream<record{value:u64,note:string}>}\ntuple<u64,string>\n\n",
            ),
        ],
        imports: &[],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let done = match incoming.method() {
            EACH | LATEST | SLOWLY => each(incoming),
            LISTS => lists(incoming),
            LATER => later(incoming),
            _ => sum(incoming),
        };
        if let Err((incoming, refusal)) = done {
            incoming.refuse(refusal);
        }
    }
}

type Done = Result<(), (Incoming, Refusal)>;

fn params<T: Decode>(incoming: Incoming) -> Result<(Incoming, T), (Incoming, Refusal)> {
    match incoming.params::<T>() {
        Ok(params) => Ok((incoming, params)),
        Err(refusal) => Err((incoming, refusal)),
    }
}

fn entry(number: u64) -> Entry {
    let path = "/".repeat((number % 5) as usize);
    (path, number, (number % 3) as u8)
}

/// Writes a control record and `count` other records.
fn each(incoming: Incoming) -> Done {
    let (incoming, (count,)) = params::<(u64,)>(incoming)?;
    let (writer, reader) = incoming.call().stream::<Entry, thalweg_port::Untyped>();
    incoming.call().spawn(move |_| {
        let _ = writer.control(&entry(1 << 40));
        let _ = writer.send_all((0..count).map(entry));
    });
    incoming.reply_stream(reader);
    Ok(())
}

fn lists(incoming: Incoming) -> Done {
    let (incoming, (counts,)) = params::<(Vec<u64>,)>(incoming)?;
    let (writer, reader) = incoming
        .call()
        .stream::<(u64, Vec<(u8,)>), thalweg_port::Untyped>();
    for (number, count) in (0u64..).zip(counts) {
        writer
            .send(&(number, vec![(7u8,); count as usize]))
            .unwrap();
    }
    writer.finish().unwrap();
    incoming.reply_stream(reader);
    Ok(())
}

fn later(incoming: Incoming) -> Done {
    let (writer, reader) = incoming.call().future::<Entry, thalweg_port::Untyped>();
    let held: Owned<FutureReader<Entry>> = incoming.call().own_future(reader).unwrap();
    incoming.reply(&(5u64, held));
    writer.set(&entry(4)).unwrap();
    Ok(())
}

/// Returns the sum of the numbers, and the concatenated notes.
fn sum(incoming: Incoming) -> Done {
    let (incoming, (numbers,)) = params::<(Upstream<Number>,)>(incoming)?;
    let numbers = match incoming.upstream(numbers) {
        Ok(numbers) => numbers,
        Err(refusal) => return Err((incoming, refusal)),
    };
    let (mut sum, mut notes) = (0, String::new());
    for element in numbers {
        match element {
            Ok(Number((value, note))) => {
                sum += value;
                notes += &note;
            }
            Err(why) => notes += why.code.name(),
        }
    }
    incoming.reply(&(sum, notes));
    Ok(())
}

/// A caller and its port.
struct Host {
    instance: Arc<Instance>,
    port: Arc<Port>,
}

impl Host {
    fn knows(change: impl FnOnce(&mut Vec<Texts>)) -> Self {
        let mut methods = same(Feed::PACKAGE.methods);
        change(&mut methods);
        let instance = Instance::open(|| Feed, Instance::runtime().unwrap());
        instance.set_caller_schema(&known(&methods), &[]).unwrap();
        let port = Port::open(4).unwrap();
        Self { instance, port }
    }

    fn older() -> Self {
        Self::knows(|methods| {
            for each in &mut methods[..3] {
                each.1[1] = "stream<record{path:string,line:u64}>";
                each.1[3] = "record{path:string,line:u64}";
            }
            methods[LATER as usize].1[1] =
                "record{at:u64,entry:future<record{path:string,line:u64}>}";
            methods[SUM as usize].1[0] = OLD_NUMBERS;
        })
    }

    fn newer() -> Self {
        Self::knows(|methods| {
            for each in &mut methods[..3] {
                each.1[1] = "stream<record{path:string,line:u64,kind:enum{unknown,file,folder,link},tags:list<string>,size:u64}>";
                each.1[3] = "record{path:string,line:u64,kind:enum{unknown,file,folder,link},tags:list<string>,size:u64}";
            }
            let lists = &mut methods[LISTS as usize].1;
            lists[1] = NEW_LIST;
            lists[3] = "record{number:u64,list:list<record{a:u8,b:list<u64,1000>}>}";
            methods[SUM as usize].1[0] = NEW_NUMBERS;
        })
    }

    fn next(&self) -> Completion {
        self.port.wait(u64::MAX).unwrap();
        self.port.reap().unwrap().next().unwrap()
    }

    fn call(&self, method: u32, args: &[u8]) -> Completion {
        let submitted = self.instance.submit(&self.port, 0, method, args, u64::MAX);
        submitted.unwrap();
        self.next()
    }

    /// The stream in the result of such a call.
    fn stream<P: Encode>(&self, method: u32, params: &P) -> Stream {
        let text = Feed::PACKAGE.methods[method as usize].description;
        let args = encoded(text.split('\n').next().unwrap(), params);
        let mut ended = self.call(method, &args);
        assert_eq!(ended.code, Code::Ok, "{}", ended.message);
        let handle = ended.take(0).unwrap();
        match find(handle).unwrap() {
            Object::Stream(core) => Stream { handle, core },
            other => panic!("{other:?}"),
        }
    }
}

struct Stream {
    handle: u64,
    core: Arc<StreamCore>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.core.close();
        let _ = remove(self.handle);
    }
}

/// The records of a batch, read as a host in another language reads them.
fn read<T: Decode>(batch: &OpenBatch) -> Vec<T> {
    // SAFETY: the caller has the batch open.
    let bytes = unsafe { std::slice::from_raw_parts(batch.base(), batch.size() as usize) };
    assert_eq!(batch.stride(), T::SIZE);
    let at = |number| batch.first() + number * batch.stride();
    let view = |number| T::owned(T::view(Bytes::message(bytes), at(number)));
    (0..batch.count).map(view).collect()
}

/// All records, in batches of at most `max`, each released in two parts. Control records come
/// first.
fn drain<T: Decode>(core: &Arc<StreamCore>, max: u32) -> Vec<T> {
    let (mut all, mut control) = (Vec::new(), Vec::new());
    loop {
        match core.acquire(max, u64::MAX) {
            Ok(batch) if batch.control => control.extend(read::<T>(&batch)),
            Ok(batch) => {
                assert_eq!(batch.first_sequence, all.len() as u64);
                all.extend(read::<T>(&batch));
                core.release(batch.count / 2).unwrap();
                core.release(batch.count - batch.count / 2).unwrap();
                continue;
            }
            Err((why, is_ending)) => {
                assert_eq!((why.code, is_ending), (Code::Closed, true));
                control.extend(all);
                return control;
            }
        }
        core.release(1).unwrap();
    }
}

const COUNT: u64 = if cfg!(miri) { 300 } else { 3000 };

fn all() -> impl Iterator<Item = Entry> {
    std::iter::once(1 << 40).chain(0..COUNT).map(entry)
}

fn as_old((path, line, _): Entry) -> OldEntry {
    (path, line)
}

fn as_new((path, line, kind): Entry) -> NewEntry {
    (path, line, kind, Vec::new(), 0)
}

#[test]
fn records_are_converted_for_their_reader() {
    for max in [1, 7, u32::MAX] {
        let stream = Host::older().stream(EACH, &(COUNT,));
        let older = drain::<OldEntry>(&stream.core, max);
        assert!(older.into_iter().eq(all().map(as_old)));
        let stream = Host::newer().stream(EACH, &(COUNT,));
        let newer = drain::<NewEntry>(&stream.core, max);
        assert!(newer.into_iter().eq(all().map(as_new)));
        let counts = stream.core.counts();
        assert_eq!((counts.published, counts.delivered), (COUNT, COUNT));
    }
}

#[test]
fn latest_record_is_converted_for_its_reader() {
    let host = Host::older();
    let stream = host.stream(LATEST, &(COUNT,));
    let mut last = None;
    while let Ok(batch) = stream.core.acquire(u32::MAX, u64::MAX) {
        if !batch.control {
            last = read::<OldEntry>(&batch).pop();
        }
        stream.core.release(1).unwrap();
    }
    assert_eq!(last, Some(as_old(entry(COUNT - 1))));
}

#[test]
fn kept_converted_batch_stays_unchanged() {
    let stream = Host::newer().stream(EACH, &(COUNT,));
    let first = loop {
        let batch = stream.core.acquire(100, u64::MAX).unwrap();
        if !batch.control {
            break batch;
        }
        stream.core.release(1).unwrap();
    };
    let (place, seen) = (first.base(), read::<NewEntry>(&first));
    let kept = stream.core.keep().unwrap();
    stream.core.release(first.count).unwrap();
    let (count, stride) = (first.count, first.stride());
    let whole = first.size() as usize;
    // The batch would itself keep the memory.
    drop(first);
    while let Ok(batch) = stream.core.acquire(u32::MAX, u64::MAX) {
        stream.core.release(batch.count).unwrap();
    }
    // SAFETY: the memory is kept.
    let bytes = unsafe { std::slice::from_raw_parts(place, whole) };
    let view = |number| NewEntry::view(Bytes::message(bytes), number * stride);
    assert!((0..count).map(|n| NewEntry::owned(view(n))).eq(seen));
    drop(kept);
}

#[test]
fn additional_reader_receives_converted_records() {
    let stream = Host::newer().stream(SLOWLY, &(COUNT,));
    // From here on the writer waits for both readers.
    let tee = stream.core.tee().unwrap();
    let (mut all, mut over) = ([0, 0], [false, false]);
    while over != [true, true] {
        for (reader, core) in [&stream.core, &tee].into_iter().enumerate() {
            match core.acquire(u32::MAX, 0) {
                Ok(batch) => {
                    for (path, line, kind, tags, size) in read::<NewEntry>(&batch) {
                        assert_eq!((path, line, kind), entry(line));
                        assert_eq!((tags, size), (vec![], 0));
                    }
                    all[reader] += u64::from(batch.count);
                    core.release(batch.count).unwrap();
                }
                Err((why, _)) if why.code == Code::WouldPark => std::thread::yield_now(),
                Err((why, _)) => {
                    assert_eq!(why.code, Code::Closed);
                    over[reader] = true;
                }
            }
        }
    }
    // The additional reader does not receive records from before it was created.
    assert_eq!(all[0], COUNT + 1);
    assert!(all[1] + 100 > COUNT && all[1] <= COUNT + 1, "{all:?}");
    tee.close();
}

enum Said<T> {
    Records(Vec<T>),
    Ended(Code),
}

/// A callback's events: its records, then its outcome. The channel is disconnected when the
/// callback is dropped.
fn called<T: Decode + Send + 'static>(stream: &Stream) -> Receiver<Said<T>> {
    let (said, hears) = channel();
    let callback = move |delivered: CallbackEvent<'_>| {
        let what = match delivered {
            CallbackEvent::Records(batch) => Said::Records(read::<T>(batch)),
            CallbackEvent::Ended { why, .. } => Said::Ended(why.code),
        };
        said.send(what).unwrap();
        ControlFlow::Continue(())
    };
    let subscribed = stream.core.subscribe(|| Box::new(callback));
    subscribed.unwrap();
    hears
}

#[test]
fn callback_receives_converted_records() {
    let host = Host::older();
    let stream = host.stream(EACH, &(COUNT,));
    let (mut records, mut endings) = (Vec::new(), Vec::new());
    for said in called::<OldEntry>(&stream) {
        match said {
            Said::Records(some) => records.extend(some),
            Said::Ended(code) => endings.push(code),
        }
    }
    assert_eq!(endings, [Code::Closed]);
    records.sort_by_key(|(_, line)| *line);
    assert!(
        records[..COUNT as usize]
            .iter()
            .cloned()
            .eq((0..COUNT).map(|n| as_old(entry(n))))
    );
}

/// Nine of these records are too large together, and ten are too large for one record: more than 64
/// MiB.
const HALF: u64 = 1_000;

type NewList = (u64, Vec<(u8, [u64; 1000])>);

#[test]
#[cfg_attr(miri, ignore = "this test needs a gigabyte")]
fn converted_records_too_large_together_come_in_smaller_batches() {
    let stream = Host::newer().stream(LISTS, &(vec![HALF; 30],));
    let mut next = 0;
    while let Ok(batch) = stream.core.acquire(u32::MAX, u64::MAX) {
        assert!(batch.count < 9);
        for (number, list) in read::<NewList>(&batch) {
            assert_eq!((number, list.len() as u64), (next, HALF));
            assert!(list.iter().all(|item| *item == (7, [0; 1000])));
            next += 1;
        }
        stream.core.release(batch.count).unwrap();
    }
    assert_eq!(next, 30);
    let counts = stream.core.counts();
    assert_eq!((counts.published, counts.delivered), (30, 30));
}

#[test]
#[cfg_attr(miri, ignore = "this test needs a gigabyte")]
fn record_too_large_after_conversion_ends_its_stream() {
    let host = Host::newer();
    let stream = host.stream(LISTS, &(vec![1, 10 * HALF, 1],));
    let batch = stream.core.acquire(u32::MAX, u64::MAX).unwrap();
    assert_eq!(read::<NewList>(&batch).len(), 1);
    stream.core.release(1).unwrap();
    let (why, is_ending) = stream.core.acquire(u32::MAX, u64::MAX).unwrap_err();
    assert_eq!((why.code, is_ending), (Code::GuestLost, true));
    assert!(why.message.contains("too large"), "{}", why.message);
    // The writer adds its records to the counts when it is dropped.
    let counts = loop {
        match stream.core.counts() {
            Counts { published: 0, .. } => std::thread::yield_now(),
            counts => break counts,
        }
    };
    let told = (counts.published, counts.delivered, counts.undelivered);
    assert_eq!(told, (3, 1, 2));
    let (again, _) = stream.core.acquire(u32::MAX, u64::MAX).unwrap_err();
    assert_eq!(again.code, Code::Stale);

    let stream = host.stream(LISTS, &(vec![10 * HALF],));
    let said: Vec<Said<NewList>> = called(&stream).into_iter().collect();
    assert!(matches!(said[..], [Said::Ended(Code::GuestLost)]));
}

#[test]
fn batch_left_open_by_a_converting_reader_is_closed_with_it() {
    let stream = Host::older().stream(EACH, &(COUNT,));
    let batch = stream.core.acquire(1, u64::MAX).unwrap();
    let busy = stream.core.try_acquire(1).unwrap_err();
    assert_eq!(busy.0.code, Code::Argument);
    stream.core.close();
    assert_eq!(stream.core.release(1).unwrap_err().code, Code::Argument);
    assert_eq!(read::<OldEntry>(&batch).len(), 1);
}

#[test]
fn future_in_a_result_is_converted_for_its_reader() {
    let stream = Host::older().stream(LATER, &());
    assert_eq!(drain::<OldEntry>(&stream.core, 1), [as_old(entry(4))]);
}

/// The sum over such elements, sent by a caller whose parameter has this type, in messages of this
/// layout.
fn summed<T: Encode>(host: &Host, params: &str, element: &str, sent: &[T]) -> (u64, String) {
    let up: Arc<UpstreamCore> = host.instance.upstream(SUM, 0).unwrap();
    let handle = Handle(insert(Object::Upstream(Arc::clone(&up))).unwrap());
    let args = match params {
        NEW_NUMBERS => encoded(params, &(handle, true)),
        _ => encoded(params, &(handle,)),
    };
    let submitted = host.instance.submit(&host.port, 0, SUM, &args, u64::MAX);
    submitted.unwrap();
    let other = up.send(&encoded("record{value:u64,note:u8}", &(1u64, 1u8)), 0);
    assert_eq!(other.unwrap_err().code, Code::Argument);
    for element_sent in sent {
        let message = encoded(element, element_sent);
        let cut = up.send(&message[..message.len() - 1], 0);
        assert_eq!(cut.unwrap_err().code, Code::Argument);
        up.send(&message, u64::MAX).unwrap();
    }
    up.finish().unwrap();
    let ended = host.next();
    assert_eq!(ended.code, Code::Ok, "{}", ended.message);
    let message = message::open(&ended.data, Shape::hash_of("tuple<u64,string>"));
    message.unwrap().owned().unwrap()
}

#[test]
fn upstream_elements_are_converted_for_the_service() {
    let older: Vec<_> = (0..500u64).map(|value| (value,)).collect();
    let sum = summed(&Host::older(), OLD_NUMBERS, "record{value:u64}", &older);
    assert_eq!(sum, (500 * 499 / 2, String::new()));
    let of = |value: u64| (value, value.to_string(), vec!["more".to_owned()]);
    let newer: Vec<_> = (0..500).map(of).collect();
    let element = "record{value:u64,note:string,more:list<string>}";
    let (sum, notes) = summed(&Host::newer(), NEW_NUMBERS, element, &newer);
    assert_eq!(sum, 500 * 499 / 2);
    assert!(notes.starts_with("0123456789101112") && notes.ends_with("498499"));
}

#[test]
fn upstream_unknown_to_the_library_is_refused() {
    let host = Host::newer();
    let none = host.instance.upstream(SUM, 1).unwrap_err();
    assert_eq!(none.code, Code::Argument);
}
