//! The service that the boundary operations call. Its glue is written by hand.

use std::time::Duration;

use thalweg::port::{
    Call, Incoming, Method, MethodOptions, Overflow, Package, QueueLimits, Refusal, Service,
    StreamOptions, Task, Upstream,
};
use thalweg::runtime::sleep;
use thalweg::wire::{Decode, Handle};
use thalweg_capi::{Export, Library};

/// Returns its bytes, in the instance's turn.
pub(crate) const ECHO: u32 = 0;
/// Returns its bytes, from a separate actor.
pub(crate) const LATER: u32 = 1;
/// Returns a given number of records of a given size.
pub(crate) const SCAN: u32 = 2;
/// Counts the records of a stream.
pub(crate) const COUNT: u32 = 3;
/// Runs until it is stopped.
pub(crate) const HOLD: u32 = 4;

/// A record of [`SCAN`] and of [`COUNT`].
pub(crate) type Record = (u64, Vec<u8>);

pub(crate) struct Lab;

const fn method<P: Decode, T: Decode>(
    name: &'static str,
    stream: Option<StreamOptions>,
    description: &'static str,
) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: 0,
        element: 0,
        is_async: true,
        options: MethodOptions::NONE,
        stream,
        description,
    }
}

const BLOCK: Option<StreamOptions> = Some(StreamOptions {
    overflow: Overflow::Block,
    capacity: 64,
    ..StreamOptions::DEFAULT
});

impl Service for Lab {
    const PACKAGE: &'static Package = &Package {
        name: "test:faults",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method::<(Vec<u8>,), Vec<u8>>("lab.echo", None, ""),
            method::<(Vec<u8>,), Vec<u8>>("lab.later", None, ""),
            method::<(u64, u64), Handle>("lab.scan", BLOCK, ""),
            method::<(Handle,), u64>(
                "lab.count",
                None,
                "record{numbers:stream<tuple<u64,list<u8>>>}\nu64\n\n",
            ),
            method::<(), ()>("lab.hold", None, ""),
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        if let Err(refused) = serve(incoming) {
            let (incoming, refusal) = *refused;
            incoming.refuse(refusal);
        }
    }
}

type Refused = Box<(Incoming, Refusal)>;

fn params<P: Decode>(incoming: Incoming) -> Result<(Incoming, P), Refused> {
    match incoming.params() {
        Ok(params) => Ok((incoming, params)),
        Err(refusal) => Err(Box::new((incoming, refusal))),
    }
}

fn serve(incoming: Incoming) -> Result<(), Refused> {
    match incoming.method() {
        ECHO => {
            let (incoming, (bytes,)) = params::<(Vec<u8>,)>(incoming)?;
            incoming.reply(&bytes);
        }
        LATER => {
            let (incoming, (bytes,)) = params::<(Vec<u8>,)>(incoming)?;
            incoming.run(Task::new(move |_: &Call| bytes), |incoming, bytes| {
                incoming.reply(&bytes);
            });
        }
        SCAN => {
            let (incoming, (count, size)) = params::<(u64, u64)>(incoming)?;
            let (writer, reader) = incoming.call().stream::<Record, thalweg::port::Untyped>();
            incoming.call().spawn(move |_: &Call| {
                let mut record = (0, vec![7u8; size as usize]);
                for number in 0..count {
                    record.0 = number;
                    if writer.send(&record).is_err() {
                        return;
                    }
                }
                // If the reader has gone, it does not need the end.
                let _ = writer.finish();
            });
            incoming.reply_stream(reader);
        }
        COUNT => {
            let (incoming, (records,)) = params::<(Upstream<Record>,)>(incoming)?;
            let records = match incoming.upstream(records) {
                Ok(records) => records,
                Err(refusal) => return Err(Box::new((incoming, refusal))),
            };
            let task = Task::new(move |_: &Call| {
                let mut count = 0u64;
                for record in records {
                    record?;
                    count += 1;
                }
                Ok(count)
            });
            incoming.run(task, |incoming, counted| match counted {
                Ok(count) => incoming.reply(&count),
                Err::<_, thalweg::Failure>(why) => incoming.reply(&(u64::MAX - why.code as u64)),
            });
        }
        _ => {
            let task = Task::new(|call: &Call| {
                while call.check().is_ok() {
                    sleep(Duration::from_millis(1));
                }
            });
            incoming.run(task, |incoming, ()| incoming.reply(&()));
        }
    }
    Ok(())
}

struct Exported;

impl Export for Exported {
    type Service = Lab;

    fn make() -> Lab {
        Lab
    }
}

pub(crate) static LIBRARY: Library = Library::new::<Exported>();
