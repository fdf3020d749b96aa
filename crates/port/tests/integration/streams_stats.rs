//! The control lane, and the statistics of a method's streams.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread;

use thalweg_port::{Code, Event, Overflow, Sent, StreamReader, StreamWriter};

use crate::lab;
use crate::pair::{CAPACITY, POLICIES, Record, lost_in_all, pair};

fn record(number: u64) -> Record {
    (0, number, "x".repeat((number % 70) as usize))
}

/// Fills a stream, and returns the number of written records.
fn fill(writer: &StreamWriter<Record>) -> u64 {
    (0..10 * u64::from(CAPACITY))
        .take_while(|number| matches!(writer.send_until(&record(*number), 0), Ok(Sent::Written)))
        .count() as u64
}

/// Reads the available records: the numbers of control records, and how many other records there
/// were.
fn drain(reader: &mut StreamReader<Record>) -> (Vec<u64>, u64) {
    let (mut controls, mut others) = (Vec::new(), 0);
    while let Ok(Some(batch)) = reader.next_batch(u32::MAX, 0) {
        if batch.is_control() {
            assert_eq!((batch.len(), batch.lost_before()), (1, 0));
            assert_eq!(batch.first_sequence(), controls.len() as u64);
            controls.extend(batch.iter().map(|(_, number, _)| number));
        } else {
            others += u64::from(batch.len());
        }
    }
    (controls, others)
}

#[test]
fn full_stream_delivers_control_records_before_all_others() {
    for policy in POLICIES {
        let (writer, mut reader) = pair(policy);
        match policy {
            Overflow::Latest | Overflow::DropOldest => {
                for number in 0..3 * u64::from(CAPACITY) {
                    writer.send(&record(number)).unwrap();
                }
            }
            _ => drop(fill(&writer)),
        }
        let long = "long".repeat(100_000);
        writer.control(&(1u64, 7u64, "a".to_owned())).unwrap();
        writer.control(&(1u64, 8u64, long.clone())).unwrap();
        for number in [7, 8] {
            let batch = reader.next_batch(9, 0).unwrap().unwrap();
            assert!(batch.is_control(), "{policy:?}");
            let (writer, found, text) = batch.iter().next().unwrap();
            assert_eq!((writer, found), (1, number));
            assert_eq!(text.len(), if number == 7 { 1 } else { long.len() });
        }
        writer.finish().unwrap();
        let (controls, others) = drain(&mut reader);
        assert!(controls.is_empty());
        let counts = reader.counts();
        assert_eq!((counts.delivered, counts.undelivered), (others, 0));
        assert_eq!(
            others + lost_in_all(&counts),
            counts.published,
            "{policy:?}"
        );
    }
}

#[test]
fn sixty_fifth_control_record_waits_until_one_is_read() {
    let (writer, mut reader) = pair(Overflow::DropNewest);
    for number in 0..64 {
        writer.control(&record(number)).unwrap();
    }
    let refused = writer.control_until(&record(64), 0).unwrap_err();
    assert_eq!(refused.code, Code::TimedOut);
    thread::scope(|scope| {
        scope.spawn(|| {
            let writer = writer;
            writer.control(&record(64)).unwrap();
            writer.finish().unwrap();
        });
        while reader.stats().waits == 0 {
            thread::yield_now();
        }
        let mut next = 0;
        for event in &mut reader {
            assert_eq!(event.unwrap().1, next);
            next += 1;
        }
        assert_eq!(next, 65);
    });
    let stats = reader.stats();
    assert_eq!((stats.control, stats.counts.published), (65, 0));
}

#[test]
fn callback_receives_control_records() {
    let (writer, reader) = pair(Overflow::Block);
    let (mut controls, mut others) = (0, 0);
    let seen = Arc::new(std::sync::Mutex::new((0, 0)));
    let last = Arc::clone(&seen);
    let subscription = reader
        .subscribe(move |event: Event<'_, Record>| {
            match event {
                Event::Records(records) if records.is_control() => controls += records.len(),
                Event::Records(records) => others += records.len(),
                Event::Ended { .. } => *last.lock().unwrap() = (controls, others),
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    for number in 0..200 {
        writer.send(&record(number)).unwrap();
        writer.control(&record(number)).unwrap();
    }
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(*seen.lock().unwrap(), (200, 200));
}

#[test]
fn stats_of_a_method_add_up_over_closed_and_open_streams() {
    let client = lab::client();
    let of_all = || client.stream_stats("lab.generate").unwrap();
    assert_eq!(of_all(), thalweg_port::Stats::default());
    for _ in 0..3 {
        let reader = lab::stream(&client, 5_000, 2, false).wait().unwrap();
        assert_eq!(reader.map(Result::unwrap).count(), 10_000);
    }
    // One stream is dropped in the middle, so its remaining records are not delivered.
    let mut reader = lab::stream(&client, 500, 1, false).wait().unwrap();
    assert_eq!(reader.by_ref().take(100).map(Result::unwrap).count(), 100);
    drop(reader);
    // The writer's own reference is dropped last.
    let stats = loop {
        let stats = of_all();
        let counts = stats.counts;
        // A writer adds its records to the counts by segments.
        let all_are_in = counts.published == counts.delivered + counts.undelivered;
        if all_are_in && stats.occupancy == 0 && counts.published > 30_000 {
            break stats;
        }
        thread::yield_now();
    };
    assert_eq!(stats.streams, 4);
    assert_eq!(stats.counts.delivered, 30_100);
    assert!(stats.counts.undelivered <= 400);
    assert_eq!((lost_in_all(&stats.counts), stats.faults), (0, 0));
    let segments: u64 = stats.age.iter().sum();
    assert!(segments > 30_000 / 32 / 32, "{:?}", stats.age);
    assert!(stats.high_water > 0 && stats.high_water <= 1024 + 2 * 32);

    let mut open = lab::stream(&client, 100, 1, false).wait().unwrap();
    assert_eq!(open.by_ref().take(10).map(Result::unwrap).count(), 10);
    while of_all().counts.published < stats.counts.published + 100 {
        thread::yield_now();
    }
    let now = of_all();
    assert_eq!(now.streams, 5);
    let all = now.counts.delivered + now.counts.undelivered + now.occupancy;
    assert_eq!(all, now.counts.published);
    assert_eq!(open.stats(), now);
    // Another client has its own statistics, and a method that does not exist has none.
    assert_eq!(
        lab::client().stream_stats("lab.generate").unwrap().streams,
        0
    );
    let unknown = client.stream_stats("lab.nothing").unwrap_err();
    assert_eq!(unknown.code, Code::Argument);
}

struct Counted(std::sync::atomic::AtomicU64);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn wakes_parks_faults_and_losses_are_counted() {
    let (writer, mut reader) = pair(Overflow::DropNewest);
    let counted = Arc::new(Counted(0.into()));
    let waker = Waker::from(Arc::clone(&counted));
    let mut context = std::task::Context::from_waker(&waker);
    use futures_core::Stream;
    for number in 0..3 {
        assert!(
            std::pin::Pin::new(&mut reader)
                .poll_next(&mut context)
                .is_pending()
        );
        writer.send(&record(number)).unwrap();
        assert!(
            std::pin::Pin::new(&mut reader)
                .poll_next(&mut context)
                .is_ready()
        );
    }
    let stats = reader.stats();
    assert_eq!((stats.wakes, stats.parks), (3, 3));
    assert_eq!(counted.0.load(std::sync::atomic::Ordering::SeqCst), 3);
    let written = fill(&writer);
    assert_eq!(writer.send_until(&record(0), 0), Ok(Sent::Dropped));
    writer.lost(4);
    let stats = reader.stats();
    assert_eq!(stats.counts.published, 3 + written + 1 + 1 + 4);
    assert_eq!((stats.counts.dropped(), stats.occupancy), (6, written));

    let client = lab::client();
    // More than the stream's capacity, so that the writer does not reach its end, where it panics,
    // before its call was answered.
    let broken = lab::stream(&client, 2 * 1024, 1, true).wait().unwrap();
    assert_eq!(broken.filter_map(Result::err).count(), 1);
    assert_eq!(client.stream_stats("lab.generate").unwrap().faults, 1);
}
