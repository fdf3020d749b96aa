//! The overflow policies of a full channel, with exact counts.
//!
//! First, 10,000 values are sent to 16 slots and received only after the last send: every figure is
//! known in advance. Then they are sent in bursts while a thread receives: the delivered number
//! varies.
//!
//! It asserts that published = delivered + dropped + refused in every row.

use std::error::Error;
use std::thread;
use std::time::Duration;

use thalweg::channel::{Options, Overflow, SendError, mpmc};
use thalweg_example_channels::grouped;

const PUBLISHED: u64 = 10_000;
const SLOTS: usize = 16;
/// The timeout of [`Overflow::BlockFor`]. Nobody receives here, so each wait takes this long.
const PATIENCE: Duration = Duration::from_micros(20);
/// The number of values per burst, and the pause before each burst.
const BURST: u64 = 100;
const PAUSE: Duration = Duration::from_micros(100);

/// The fate of the values.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    delivered: u64,
    dropped: u64,
    refused: u64,
    first: Option<u64>,
    last: Option<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    // Latest keeps one value, such as the current setting.
    let policies = [
        ("Block", Overflow::Block, SLOTS),
        ("BlockFor", Overflow::BlockFor(PATIENCE), SLOTS),
        ("Fail", Overflow::Fail, SLOTS),
        ("DropNewest", Overflow::DropNewest, SLOTS),
        ("DropOldest", Overflow::DropOldest, SLOTS),
        ("Latest", Overflow::Latest, 1),
    ];

    println!(
        "{} values, nobody receives meanwhile:\n",
        grouped(PUBLISHED)
    );
    heading();
    for (name, overflow, slots) in policies {
        // Without a receiver, Block would wait forever.
        if overflow == Overflow::Block {
            continue;
        }
        let counts = before_the_receiver(overflow, slots)?;
        show(name, slots, &counts);
        assert_eq!(counts, expected(overflow, slots), "{name}");
    }

    println!("\nThe same in bursts of {BURST}, and a thread receives meanwhile:\n");
    heading();
    for (name, overflow, slots) in policies {
        let counts = beside_the_receiver(overflow, slots)?;
        show(name, slots, &counts);
        let Counts {
            delivered,
            dropped,
            refused,
            last,
            ..
        } = counts;
        assert_eq!(delivered + dropped + refused, PUBLISHED, "{name}");
        match overflow {
            Overflow::Block => assert_eq!(delivered, PUBLISHED),
            // These policies drop older values and never lose the newest.
            Overflow::DropOldest | Overflow::Latest => assert_eq!(last, Some(PUBLISHED - 1)),
            _ => {}
        }
    }
    println!("\nEvery row adds up to {}.", grouped(PUBLISHED));
    Ok(())
}

/// Sends all values, with a pause before each burst. Returns how many were refused.
fn publish(values: &mpmc::Sender<u64>, pause: Option<Duration>) -> u64 {
    let mut refused = 0;
    for value in 0..PUBLISHED {
        if let Some(pause) = pause
            && value % BURST == 0
        {
            thread::sleep(pause);
        }
        match values.send(value) {
            Ok(()) => {}
            Err(SendError::Full(_) | SendError::TimedOut(_)) => refused += 1,
            Err(SendError::Closed(_)) => unreachable!("the receiver is there"),
        }
    }
    refused
}

/// Receives all values in order, and reads the channel's drop counts.
fn receive(received: &mpmc::Receiver<u64>, refused: impl FnOnce() -> u64) -> Counts {
    let mut counts = Counts::default();
    for value in received {
        assert!(counts.last.is_none_or(|last| last < value), "out of order");
        counts.first.get_or_insert(value);
        counts.last = Some(value);
        counts.delivered += 1;
    }
    let stats = received.stats();
    counts.dropped = stats.dropped_newest + stats.dropped_oldest + stats.conflated;
    counts.refused = refused();
    counts
}

fn before_the_receiver(overflow: Overflow, slots: usize) -> Result<Counts, Box<dyn Error>> {
    let (values, received) = mpmc::with(slots, Options::new().overflow(overflow))?;
    let refused = publish(&values, None);
    drop(values);
    Ok(receive(&received, || refused))
}

fn beside_the_receiver(overflow: Overflow, slots: usize) -> Result<Counts, Box<dyn Error>> {
    let (values, received) = mpmc::with(slots, Options::new().overflow(overflow))?;
    let publisher = thread::spawn(move || publish(&values, Some(PAUSE)));
    Ok(receive(&received, || {
        publisher.join().expect("the publisher does not panic")
    }))
}

fn expected(overflow: Overflow, slots: usize) -> Counts {
    let delivered = slots as u64;
    let rest = PUBLISHED - delivered;
    let kept_first = Counts {
        delivered,
        first: Some(0),
        last: Some(delivered - 1),
        ..Counts::default()
    };
    match overflow {
        Overflow::DropNewest => Counts {
            dropped: rest,
            ..kept_first
        },
        Overflow::DropOldest | Overflow::Latest => Counts {
            delivered,
            dropped: rest,
            refused: 0,
            first: Some(rest),
            last: Some(PUBLISHED - 1),
        },
        _ => Counts {
            refused: rest,
            ..kept_first
        },
    }
}

fn heading() {
    println!(
        "  {:<11}{:>5}{:>11}{:>9}{:>9}  received",
        "policy", "slots", "delivered", "dropped", "refused"
    );
}

fn show(name: &str, slots: usize, counts: &Counts) {
    let Counts {
        delivered,
        dropped,
        refused,
        first,
        last,
    } = counts;
    let [first, last] = [first, last].map(|value| value.map_or_else(String::new, grouped));
    let [delivered, dropped, refused] = [*delivered, *dropped, *refused].map(grouped);
    println!("  {name:<11}{slots:>5}{delivered:>11}{dropped:>9}{refused:>9}  {first} to {last}");
}
