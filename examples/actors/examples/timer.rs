//! Two kinds of timer: an actor that sleeps until the next of many points in time, and a behaviour
//! actor that sends delayed messages to itself.
//!
//! The program asserts that the reminders arrive in order and none of them early.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use thalweg::runtime::{
    Actor, Context, Handler, Receiver, Sender, channel, run, sleep_until, spawn, start,
};

fn main() {
    run(|| {
        reminders();
        heartbeat();
    });
}

/// One actor that sends a thousand reminders.
fn reminders() {
    let (sender, receiver): (Sender<(Instant, u64)>, Receiver<_>) = channel();
    spawn(move || {
        let now = Instant::now();
        let mut due: BinaryHeap<_> = (0..1_000u64)
            .map(|n| Reverse(now + Duration::from_micros(n * 7_919 % 50_000)))
            .collect();
        let mut sent = 0;
        while let Some(Reverse(at)) = due.pop() {
            sleep_until(at);
            sender
                .send((at, sent))
                .expect("the receiver reads all reminders");
            sent += 1;
        }
    });
    let mut latest = Duration::ZERO;
    let mut last = None;
    for (n, (at, number)) in receiver.iter().enumerate() {
        assert_eq!(number, n as u64);
        assert!(Instant::now() >= at, "no reminder is early");
        assert!(
            last.replace(at).is_none_or(|before| before <= at),
            "the reminders are in order"
        );
        latest = latest.max(at.elapsed());
    }
    println!("1,000 reminders in 50 ms, none early; the greatest delay was {latest:?}.");
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
            self.done.send(self.beats).expect("the receiver waits");
            context.stop();
        } else {
            context.actor().send_after(Duration::from_millis(5), Beat);
        }
    }
}

fn heartbeat() {
    let (done, result) = channel();
    let start_time = Instant::now();
    let heart = start(Heart { beats: 0, done });
    // The heart sends the further beats to itself.
    heart.cast(Beat).expect("the heart runs");
    let beats = result.recv().expect("the heart sends before it ends");
    assert!(start_time.elapsed() >= Duration::from_millis(40));
    println!("{beats} beats in {:?}.", start_time.elapsed());
}
