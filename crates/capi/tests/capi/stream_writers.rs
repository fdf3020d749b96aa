//! Streams and futures that the caller writes, through the table.

use std::ptr::null_mut;

use thalweg_capi::abi::{
    TW_ARGUMENT, TW_CANCELLED, TW_CLOSED, TW_COMPLETION_STREAM_READY, TW_ERROR, TW_FOREVER, TW_OK,
    TW_STALE, TW_WOULD_PARK, TwCompletion, TwHandle, TwSubmission,
};
use thalweg_capi::{Export, Library};
use thalweg_port::{
    Incoming, Method, MethodOptions, Package, QueueLimits, Service, Task, Upstream, UpstreamFuture,
};
use thalweg_wire::{Decode, Encode, Handle, message};

struct Sums;

const fn method(name: &'static str, description: &'static str) -> Method {
    Method {
        name,
        params: 0,
        ok: u64::HASH,
        error: String::HASH,
        element: 0,
        is_async: true,
        options: MethodOptions::NONE,
        stream: None,
        description,
    }
}

impl Service for Sums {
    const PACKAGE: &'static Package = &Package {
        name: "test:sums",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method(
                "sums.sum",
                "record{by:tuple<u8,u64>,numbers:stream<tuple<u64,string>>}\nu64\nstring\n",
            ),
            method("sums.wait", "record{number:future<u64>}\nu64\nstring\n"),
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        if incoming.method() == 0 {
            let (_, numbers) = incoming
                .params::<((u8, u64), Upstream<(u64, String)>)>()
                .unwrap();
            match incoming.upstream(numbers) {
                Ok(numbers) => incoming.run(
                    Task::new(move |_| numbers.map(|n| n.map(|n| n.0)).sum::<Result<u64, _>>()),
                    |incoming, sum| match sum {
                        Ok(sum) => incoming.reply(&sum),
                        Err(why) => incoming.reply_error(&why.code.name()),
                    },
                ),
                Err(refusal) => incoming.refuse(refusal),
            }
        } else {
            let (number,) = incoming.params::<(Upstream<u64>,)>().unwrap();
            match incoming.upstream(number).map(UpstreamFuture::from) {
                Ok(number) => incoming.run(
                    Task::new(move |_| number.wait()),
                    |incoming, number| match number {
                        Ok(number) => incoming.reply(&number),
                        Err(why) => incoming.reply_error(&why.code.name()),
                    },
                ),
                Err(refusal) => incoming.refuse(refusal),
            }
        }
    }
}

struct Exported;

impl Export for Exported {
    type Service = Sums;

    fn make() -> Sums {
        Sums
    }
}

static LIBRARY: Library = Library::new::<Exported>();

/// Opens a client and a port.
fn open() -> (TwHandle, TwHandle) {
    let (mut client, mut port) = (0, 0);
    // SAFETY: the handles are local variables, and the error pointer may be null; also in all calls
    // below.
    unsafe {
        let table = LIBRARY.table();
        assert_eq!((table.client_open)(&raw mut client, null_mut()), TW_OK);
        assert_eq!((table.port_open)(8, &raw mut port, null_mut()), TW_OK);
    }
    (client, port)
}

fn new(client: TwHandle, method: u32, parameter: u32) -> Result<(TwHandle, TwHandle), u32> {
    let (mut writer, mut reader) = (0, 0);
    // SAFETY: see `open`.
    let code = unsafe {
        (LIBRARY.table().stream_new)(
            client,
            method,
            parameter,
            &raw mut writer,
            &raw mut reader,
            null_mut(),
        )
    };
    if code == TW_OK {
        Ok((writer, reader))
    } else {
        Err(code)
    }
}

fn send<T: Encode>(writer: TwHandle, element: &T, deadline: u64) -> u32 {
    let bytes = message::encode(element, <T::As as Decode>::HASH, Vec::new()).unwrap();
    // SAFETY: see `open`.
    unsafe {
        (LIBRARY.table().stream_send)(
            writer,
            bytes.as_ptr(),
            bytes.len() as u64,
            deadline,
            null_mut(),
        )
    }
}

fn finish(writer: TwHandle) -> u32 {
    // SAFETY: see `open`.
    unsafe { (LIBRARY.table().stream_finish)(writer, null_mut()) }
}

fn close(stream: TwHandle) -> u32 {
    // SAFETY: see `open`.
    unsafe { (LIBRARY.table().stream_close)(stream, null_mut()) }
}

fn submit<P: Encode>(client: TwHandle, port: TwHandle, method: u32, params: &P) {
    let args = message::encode(params, 0, Vec::new()).unwrap();
    let mut submission = TwSubmission {
        token: 1,
        client,
        method,
        flags: 0,
        args: args.as_ptr(),
        args_size: args.len() as u64,
        deadline_ns: TW_FOREVER,
        call: 0,
    };
    let mut count = 0;
    // SAFETY: see `open`.
    let code = unsafe {
        (LIBRARY.table().submit)(port, &raw mut submission, 1, &raw mut count, null_mut())
    };
    assert_eq!(code, TW_OK);
}

/// The kind, code and data of the next completion.
fn next(port: TwHandle) -> (u32, u32, Vec<u8>) {
    let mut place = std::mem::MaybeUninit::<TwCompletion>::uninit();
    let mut count = 0;
    // SAFETY: see `open`; the completion is initialised because the count is 1.
    unsafe {
        let table = LIBRARY.table();
        assert_eq!((table.port_wait)(port, TW_FOREVER, null_mut()), TW_OK);
        let reaped = (table.port_reap)(port, place.as_mut_ptr(), 1, &raw mut count, null_mut());
        assert_eq!((reaped, count), (TW_OK, 1));
        let completion = place.assume_init_mut();
        let data = match completion.data.is_null() {
            true => Vec::new(),
            false => {
                let size = completion.data_size as usize;
                std::slice::from_raw_parts(completion.data, size).to_vec()
            }
        };
        let reaped = (completion.kind, completion.code, data);
        (table.release)(completion);
        reaped
    }
}

fn result(port: TwHandle) -> u64 {
    let (_, code, data) = next(port);
    assert_eq!(code, TW_OK);
    message::open(&data, u64::HASH).unwrap().owned().unwrap()
}

fn error(port: TwHandle) -> String {
    let (_, code, data) = next(port);
    assert_eq!(code, TW_ERROR);
    message::open(&data, String::HASH).unwrap().owned().unwrap()
}

#[test]
fn sent_elements_are_read() {
    let (client, port) = open();
    let (writer, reader) = new(client, 0, 1).unwrap();
    submit(client, port, 0, &((1u8, 2u64), Handle(reader)));
    for number in 0..1_000u64 {
        assert_eq!(send(writer, &(number, "text"), TW_FOREVER), TW_OK);
    }
    assert_eq!(finish(writer), TW_OK);
    assert_eq!(result(port), 499_500);
    assert_eq!(send(writer, &(1u64, ""), 0), TW_CLOSED);
    assert_eq!(close(writer), TW_OK);
    assert_eq!(close(writer), TW_STALE);
    assert_eq!(close(reader), TW_STALE, "it belonged to the service");
    assert_eq!(send(writer, &(1u64, ""), 0), TW_STALE);
}

#[test]
fn stream_without_a_call_is_closed_by_the_caller() {
    let (client, port) = open();
    let (writer, reader) = new(client, 0, 1).unwrap();
    assert_eq!(send(writer, &7u64, 0), TW_ARGUMENT, "another layout");
    assert_eq!(send(reader, &(1u64, ""), 0), TW_ARGUMENT, "not a writer");
    while send(writer, &(1u64, ""), 0) == TW_OK {}
    assert_eq!(send(writer, &(1u64, ""), 0), TW_WOULD_PARK);
    let mut ready = 7;
    // SAFETY: see `open`.
    let code = unsafe { (LIBRARY.table().stream_arm)(writer, port, 3, &raw mut ready, null_mut()) };
    assert_eq!((code, ready), (TW_OK, 0));
    assert_eq!(close(reader), TW_OK);
    assert_eq!(next(port).0, TW_COMPLETION_STREAM_READY);
    assert_eq!(send(writer, &(1u64, ""), 0), TW_CLOSED);
    assert_eq!(close(writer), TW_OK);
}

#[test]
fn parameters_that_are_no_streams_are_refused() {
    let (client, port) = open();
    for (method, parameter) in [(0, 0), (0, 2), (1, 1), (2, 0)] {
        assert_eq!(new(client, method, parameter), Err(TW_ARGUMENT));
    }
    assert_eq!(new(port, 0, 1), Err(TW_ARGUMENT));
    // SAFETY: see `open`.
    unsafe { (LIBRARY.table().client_close)(client, null_mut()) };
    assert_eq!(new(client, 0, 1), Err(TW_STALE));
}

#[test]
fn closed_writer_cancels_the_stream() {
    let (client, port) = open();
    let (writer, reader) = new(client, 0, 1).unwrap();
    submit(client, port, 0, &((1u8, 2u64), Handle(reader)));
    assert_eq!(close(writer), TW_OK);
    assert_eq!(error(port), "cancelled");
}

#[test]
fn closed_client_cancels_its_streams() {
    let (client, _) = open();
    let (writer, reader) = new(client, 0, 1).unwrap();
    // SAFETY: see `open`.
    unsafe { (LIBRARY.table().client_close)(client, null_mut()) };
    assert_eq!(send(writer, &(1u64, ""), TW_FOREVER), TW_CANCELLED);
    assert_eq!((close(writer), close(reader)), (TW_OK, TW_OK));
}

#[test]
fn future_has_one_value() {
    let (client, port) = open();
    let (writer, reader) = new(client, 1, 0).unwrap();
    submit(client, port, 1, &(Handle(reader),));
    assert_eq!(send(writer, &7u64, 0), TW_OK);
    assert_eq!(send(writer, &7u64, 0), TW_CLOSED);
    assert_eq!(finish(writer), TW_OK);
    assert_eq!(result(port), 7);
    let (writer, reader) = new(client, 1, 0).unwrap();
    submit(client, port, 1, &(Handle(reader),));
    assert_eq!(finish(writer), TW_OK);
    assert_eq!(error(port), "cancelled", "it ended without a value");
}
