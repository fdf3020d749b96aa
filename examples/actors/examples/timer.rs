//! Two ways to be told the time: an actor sleeps until the next of its appointments, and a state sends itself a message for later.
//!
//! It claims that no reminder comes before its time, and all in their order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use thalweg::runtime::{
    Actor, Context, Handler, Receiver, Sender, channel, run, sleep_until, spawn, start,
};

fn main() {
    run(|| {
        appointments();
        heartbeat();
    });
}

/// One actor for a thousand appointments.
fn appointments() {
    let (reminders, reminded): (Sender<(Instant, u64)>, Receiver<_>) = channel();
    spawn(move || {
        let now = Instant::now();
        let mut due: BinaryHeap<_> = (0..1_000u64)
            .map(|n| Reverse(now + Duration::from_micros(n * 7_919 % 50_000)))
            .collect();
        let mut sent = 0;
        while let Some(Reverse(at)) = due.pop() {
            sleep_until(at);
            reminders
                .send((at, sent))
                .expect("they are read to the end");
            sent += 1;
        }
    });
    let mut latest = Duration::ZERO;
    let mut last = None;
    for (n, (at, number)) in reminded.iter().enumerate() {
        assert_eq!(number, n as u64);
        assert!(Instant::now() >= at, "never early");
        assert!(
            last.replace(at).is_none_or(|before| before <= at),
            "in order"
        );
        latest = latest.max(at.elapsed());
    }
    println!("1,000 reminders in 50 ms, none early; the latest by {latest:?}.");
}

struct Heart {
    beats: u32,
    done: Sender<u32>,
}
struct Beat;

impl Actor for Heart {}

impl Handler<Beat> for Heart {
    type Reply = ();
    fn handle(&mut self, _: Beat, context: &Context<'_, Self>) {
        self.beats += 1;
        if self.beats == 10 {
            self.done.send(self.beats).expect("somebody waits for it");
            context.stop();
        } else {
            context.actor().send_after(Duration::from_millis(5), Beat);
        }
    }
}

fn heartbeat() {
    let (done, told) = channel();
    let began = Instant::now();
    let heart = start(Heart { beats: 0, done });
    // All others it sends itself.
    heart.cast(Beat).expect("it lives");
    let beats = told.recv().expect("it says so before it ends");
    assert!(began.elapsed() >= Duration::from_millis(40));
    println!("{beats} beats in {:?}.", began.elapsed());
}
