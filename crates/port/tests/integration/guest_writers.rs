//! Records that a guest writes into a stream's memory.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use thalweg_port::stream::{CallbackEvent, StreamCore};
use thalweg_port::{
    Code, CommitOptions, Failure, FunctionDescription, Guest, GuestCall, GuestObject, GuestPackage,
    Instance, MethodOptions, Object, Overflow, PackageDescription, Port, QueueLimits, RecordSpace,
    RecordWriter, StreamOptions, close_handle, find, find_record_writer, guest_answer_stream,
};
use thalweg_queue::clock;
use thalweg_wire::{Shape, message};

const TYPES: &str =
    "record{}\nstream<record{number:u64,name:string}>\n\nrecord{number:u64,name:string}";
const STRIDE: u32 = 16;
const MORE: CommitOptions = CommitOptions {
    has_more: true,
    is_trusted: false,
};
const CHECKED: CommitOptions = CommitOptions {
    has_more: false,
    is_trusted: false,
};

/// A guest that answers with a stream, and sends the handle of its writer.
struct Writing(Mutex<mpsc::Sender<u64>>);

impl Guest for Writing {
    fn open(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn call(&self, _: u64, call: GuestCall<'_>) {
        let writer = guest_answer_stream(call.call).unwrap();
        self.0.lock().unwrap().send(writer).unwrap();
    }

    fn cancel(&self, _: u64, _: u64) {}

    fn drop_resource(&self, _: u64, _: GuestObject) {}

    fn close(&self, _: u64) {}
}

/// Both ends of a stream, and what they need.
struct Pair {
    handles: [u64; 2],
    writer: Arc<RecordWriter>,
    reader: Arc<StreamCore>,
    instance: Arc<Instance>,
}

impl Pair {
    fn open(capacity: u32, overflow: Overflow) -> Self {
        let package = GuestPackage::of(&PackageDescription {
            name: "test:writers",
            version: "0.1.0",
            methods: vec![FunctionDescription {
                name: "writers.records",
                types: TYPES,
                is_async: false,
                options: MethodOptions::NONE,
                stream: StreamOptions {
                    capacity,
                    overflow,
                    ..StreamOptions::DEFAULT
                },
            }],
            imports: vec![],
            limits: QueueLimits::DEFAULT,
        });
        let (sender, writers) = mpsc::channel();
        let guest = Arc::new(Writing(Mutex::new(sender)));
        let instance = Instance::open_guest(package.unwrap(), guest, Instance::runtime().unwrap());
        let port = Port::open(1).unwrap();
        let [params, ..]: [u64; 4] = Shape::hash_lines(TYPES);
        let args = message::encode(&(), params, Vec::new()).unwrap();
        instance.submit(&port, 0, 0, &args, u64::MAX).unwrap();
        let soon = clock::deadline(Duration::from_secs(60));
        port.wait(soon).unwrap();
        let stream = port.reap().unwrap().next().unwrap().take(0).unwrap();
        let writer = writers.recv().unwrap();
        let Ok(Object::Stream(reader)) = find(stream) else {
            panic!("the call returns no stream");
        };
        Self {
            handles: [writer, stream],
            writer: find_record_writer(writer).unwrap(),
            reader,
            instance,
        }
    }

    fn reserve(&self) -> RecordSpace {
        self.writer.reserve(0, 0).unwrap().unwrap()
    }

    /// The records that are visible.
    fn read(&self) -> Vec<(u64, String)> {
        let Ok(batch) = self.reader.try_acquire(u32::MAX) else {
            return Vec::new();
        };
        // SAFETY: the batch is open, and these are its bytes.
        let bytes = |at: u32, size: u32| unsafe {
            std::slice::from_raw_parts(batch.base().add(at as usize), size as usize)
        };
        let word = |at| u32::from_le_bytes(bytes(at, 4).try_into().unwrap());
        let record = |number| {
            let at = batch.first() + number * batch.stride();
            let name = match word(at + 12) {
                0 => String::new(),
                size => String::from_utf8(bytes(word(at + 8), size).to_vec()).unwrap(),
            };
            (u64::from(word(at)), name)
        };
        let records = (0..batch.count).map(record).collect();
        self.reader.release(batch.count).unwrap();
        records
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for handle in self.handles {
            let _ = close_handle(handle);
        }
        self.instance.close();
    }
}

/// Writes a record into the next place. Its name is at `name_at`.
fn put(space: &mut RecordSpace, number: u64, name: &[u8]) {
    let offset = if name.is_empty() { 0 } else { space.tails };
    let mut record = [0; STRIDE as usize];
    record[..8].copy_from_slice(&number.to_le_bytes());
    record[8..12].copy_from_slice(&offset.to_le_bytes());
    record[12..].copy_from_slice(&(name.len() as u32).to_le_bytes());
    assert!(space.count > 0 && name.len() as u32 <= space.tails_end - space.tails);
    // SAFETY: both places are in the space.
    unsafe {
        let place = space.base.add(space.first as usize);
        place.copy_from(record.as_ptr(), record.len());
        let place = space.base.add(space.tails as usize);
        place.copy_from(name.as_ptr(), name.len());
    }
    space.first += space.stride;
    space.tails += name.len() as u32;
    space.count -= 1;
}

fn commit(
    writer: &RecordWriter,
    count: u32,
    space: &RecordSpace,
    options: CommitOptions,
) -> Result<RecordSpace, Failure> {
    // SAFETY: `put` has written the records.
    unsafe { writer.commit(count, space.tails, options) }
}

fn named(records: &[(u64, &str)]) -> Vec<(u64, String)> {
    let record = |(number, name): &(u64, &str)| (*number, (*name).to_owned());
    records.iter().map(record).collect()
}

#[test]
fn records_become_visible_when_a_commit_has_no_more() {
    let pair = Pair::open(4096, Overflow::Block);
    let mut space = pair.reserve();
    assert_eq!(space.stride, STRIDE);
    put(&mut space, 1, b"one");
    put(&mut space, 2, b"");
    assert_eq!(pair.read(), []);
    let mut left = commit(&pair.writer, 2, &space, MORE).unwrap();
    assert_eq!(
        (left.first, left.tails, left.count),
        (space.first, space.tails, space.count)
    );
    assert_eq!(pair.read(), []);
    put(&mut left, 3, b"three");
    commit(&pair.writer, 1, &left, CHECKED).unwrap();
    assert_eq!(pair.read(), named(&[(1, "one"), (2, ""), (3, "three")]));

    // Records that are copied follow, and end the reservation.
    let mut space = pair.reserve();
    put(&mut space, 9, b"");
    let record = [4_u64.to_le_bytes(), [0; 8]].concat();
    assert_eq!(pair.writer.write(&record, 0, 1, false, 0), (1, Ok(())));
    let refused = commit(&pair.writer, 1, &space, CHECKED).unwrap_err();
    assert_eq!(refused.code, Code::Argument);
    assert_eq!(pair.read(), named(&[(4, "")]));

    // Without new records, earlier ones become visible.
    assert_eq!(pair.writer.write(&record, 0, 1, true, 0), (1, Ok(())));
    assert_eq!(pair.read(), []);
    commit(&pair.writer, 0, &space, CHECKED).unwrap();
    assert_eq!(pair.read(), named(&[(4, "")]));
}

#[test]
fn malformed_records_are_left_out_and_the_others_are_written() {
    let pair = Pair::open(4096, Overflow::Block);
    let mut space = pair.reserve();
    put(&mut space, 1, b"one");
    put(&mut space, 2, b"\xff\xff");
    put(&mut space, 3, b"three");
    let refused = commit(&pair.writer, 3, &space, CHECKED).unwrap_err();
    assert_eq!(refused.code, Code::Argument);
    assert!(
        refused.message.starts_with("1 of 3 records are malformed"),
        "{}",
        refused.message
    );
    assert_eq!(pair.read(), named(&[(1, "one"), (3, "three")]));

    // A name outside of what was written, and one in the names of earlier records.
    for name_at in [space.tails_end, space.tails - 5] {
        let mut space = pair.reserve();
        put(&mut space, 4, b"four");
        // SAFETY: the record is in the space.
        unsafe {
            let place = space.base.add((space.first - space.stride + 8) as usize);
            place.copy_from(name_at.to_le_bytes().as_ptr(), 4);
        }
        let refused = commit(&pair.writer, 1, &space, CHECKED).unwrap_err();
        assert_eq!(refused.code, Code::Argument);
        assert_eq!(pair.read(), []);
    }
}

#[test]
fn commit_of_what_was_not_reserved_is_refused() {
    let pair = Pair::open(4096, Overflow::Block);
    let refuse = |count, tails_end| {
        // SAFETY: nothing is committed.
        let refused = unsafe { pair.writer.commit(count, tails_end, CHECKED) };
        assert_eq!(refused.unwrap_err().code, Code::Argument);
    };
    refuse(1, 0);
    let space = pair.reserve();
    refuse(space.count + 1, space.tails);
    pair.reserve();
    refuse(1, space.tails - 1);
    pair.reserve();
    refuse(1, space.tails_end + 1);
    // The reservation ends with what was refused.
    refuse(1, space.tails);
    pair.reserve();
    let left = commit(&pair.writer, 0, &space, CHECKED).unwrap();
    assert_eq!(left.count, space.count);
    assert_eq!(pair.read(), []);
    let why = pair.writer.reserve(512 << 20, 0).unwrap_err();
    assert_eq!(why.code, Code::Argument);
}

#[test]
fn full_stream_refuses_or_drops_a_reservation() {
    for overflow in [Overflow::Block, Overflow::DropNewest, Overflow::Fail] {
        let pair = Pair::open(4, overflow);
        let mut written = 0;
        let full = loop {
            let mut space = match pair.writer.reserve(0, 0) {
                Ok(Some(space)) => space,
                other => break other.map(|none| none.is_none()),
            };
            let count = space.count;
            for _ in 0..count {
                put(&mut space, written, b"name");
                written += 1;
            }
            commit(&pair.writer, count, &space, CHECKED).unwrap();
        };
        match overflow {
            Overflow::Block => assert_eq!(full.unwrap_err().code, Code::TimedOut),
            Overflow::Fail => assert_eq!(full.unwrap_err().code, Code::Overloaded),
            _ => assert_eq!(full, Ok(true)),
        }
        assert_eq!(written, 4);
        let mut read = Vec::new();
        while read.len() < 4 {
            let next = pair.read();
            assert!(!next.is_empty());
            read.extend(next);
        }
        let numbers: Vec<_> = read.iter().map(|record| record.0).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert!(pair.reserve().count > 0);
    }
}

#[test]
fn stream_that_has_ended_takes_no_records() {
    let pair = Pair::open(4096, Overflow::Block);
    let mut space = pair.reserve();
    put(&mut space, 1, b"one");
    close_handle(pair.handles[1]).unwrap();
    let refused = commit(&pair.writer, 1, &space, CHECKED).unwrap_err();
    assert_eq!(refused.code, Code::Closed);
    // The memory is there until the handle is closed.
    put(&mut space, 2, b"two");
    assert_eq!(pair.writer.reserve(0, 0).unwrap_err().code, Code::Closed);
}

#[test]
fn each_record_is_passed_to_a_callback() {
    let pair = Pair::open(4096, Overflow::Block);
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let subscribed = pair.reader.subscribe(|| {
        Box::new(move |event| {
            if let CallbackEvent::Records(batch) = event {
                *count.lock().unwrap() += batch.count;
            }
            ControlFlow::Continue(())
        })
    });
    subscribed.unwrap();
    let mut space = pair.reserve();
    for number in 0..1_000 {
        if space.count == 0 {
            space = pair.reserve();
        }
        put(&mut space, number, b"");
        space = commit(&pair.writer, 1, &space, CHECKED).unwrap();
    }
    assert_eq!(pair.writer.finish(), Ok(()));
    let deadline = Instant::now() + Duration::from_secs(60);
    while *seen.lock().unwrap() < 1_000 {
        assert!(Instant::now() < deadline, "records are missing");
        std::thread::yield_now();
    }
}
