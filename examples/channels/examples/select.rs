//! One thread waits for three things at once: readings of two sensors, commands of an operator, and
//! the time of its next report.
//!
//! It asserts that no reading is lost: the receiver closes the channel, and the readings that were
//! accepted before the close are still received.

use std::error::Error;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use thalweg::channel::{Select, TryRecvError, mpmc, mpsc, oneshot};
use thalweg_example_channels::grouped;

const EVERY: Duration = Duration::from_millis(50);
const UNTIL_STOP: Duration = Duration::from_millis(180);
const LAST_WORDS: Duration = Duration::from_millis(5);

/// In hundredths of a degree.
struct Reading {
    sensor: &'static str,
    value: i64,
}

enum Command {
    /// Asks for the number of readings so far.
    Count(oneshot::Sender<u64>),
    Stop,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "Two sensors, a report every {} ms, and an operator:\n",
        EVERY.as_millis()
    );
    // mpsc would be enough for many senders and one receiver. But mpmc closes exactly: a send
    // concurrent with the close is either refused or received.
    let (readings, received) = mpmc::channel(256)?;
    let (commands, ordered) = mpsc::channel(4)?;

    let sensors = [("inside", 2_150), ("outside", 480)].map(|(name, base)| {
        let readings = readings.clone();
        thread::spawn(move || sense(name, base, &readings))
    });
    drop(readings);
    let operator = thread::spawn(move || operate(&commands));

    let collected = collect(&received, &ordered);
    let sent: u64 = sensors
        .map(|sensor| sensor.join().expect("a sensor does not panic"))
        .iter()
        .sum();
    let told = operator.join().expect("the operator does not panic");

    println!(
        "\n  {} readings sent, {} received, {} after the stop",
        grouped(sent),
        grouped(collected.count),
        collected.after_stop
    );
    assert_eq!(collected.count, sent);
    assert!(told <= sent);
    assert!(collected.reports > 0, "no report in {UNTIL_STOP:?}");
    println!("\nNot one is missing.");
    Ok(())
}

#[derive(Default)]
struct Collected {
    count: u64,
    reports: u64,
    after_stop: u64,
}

fn collect(received: &mpmc::Receiver<Reading>, ordered: &mpsc::Receiver<Command>) -> Collected {
    let mut collected = Collected::default();
    let mut since_report = Summary::default();
    let began = Instant::now();
    let mut next_report = began + EVERY;

    let mut select = Select::new();
    let reading = select.recv(received);
    let command = select.recv(ordered);
    loop {
        let ready = select.ready_deadline(next_report);
        // A busy channel does not delay the report.
        if Instant::now() >= next_report {
            println!("  {:>4} ms  {}", began.elapsed().as_millis(), since_report);
            since_report = Summary::default();
            collected.reports += 1;
            next_report += EVERY;
        }
        // Ready does not mean received: with several receivers, another one may be faster.
        if ready == Some(reading)
            && let Ok(reading) = received.try_recv()
        {
            since_report.add(&reading);
            collected.count += 1;
        } else if ready == Some(command) {
            match ordered.try_recv() {
                Ok(Command::Count(answer)) => {
                    // The operator may have given up.
                    let _ = answer.send(collected.count);
                    println!(
                        "  {:>4} ms  asked: {} so far",
                        began.elapsed().as_millis(),
                        collected.count
                    );
                }
                // After the operator has left, no more commands come.
                Ok(Command::Stop) | Err(TryRecvError::Closed) => break,
                Err(TryRecvError::Empty) => {}
            }
        }
    }
    println!("  {:>4} ms  told to stop", began.elapsed().as_millis());

    // While the collector is busy for a moment, the sensors continue.
    thread::sleep(LAST_WORDS);
    // From here on, sends fail, and the channel holds the last readings.
    received.close();
    collected.after_stop = received.iter().count() as u64;
    collected.count += collected.after_stop;
    collected
}

/// Sends a reading about every millisecond until the channel is closed. Returns how many were
/// accepted.
fn sense(sensor: &'static str, base: i64, readings: &mpmc::Sender<Reading>) -> u64 {
    let mut accepted = 0;
    loop {
        let value = base + (accepted as i64 * 7) % 30;
        if readings.send(Reading { sensor, value }).is_err() {
            return accepted;
        }
        accepted += 1;
        thread::sleep(Duration::from_millis(1));
    }
}

/// Asks once, then stops the collector. Returns the answer.
fn operate(commands: &mpsc::Sender<Command>) -> u64 {
    thread::sleep(UNTIL_STOP / 2);
    let (answer, answered) = oneshot::channel();
    commands
        .send(Command::Count(answer))
        .expect("the collector runs until it is told to stop");
    let told = answered.recv().expect("the collector answers");
    thread::sleep(UNTIL_STOP / 2);
    commands
        .send(Command::Stop)
        .expect("the collector runs until it is told to stop");
    told
}

/// The readings of one report.
#[derive(Default)]
struct Summary {
    inside: Vec<i64>,
    outside: Vec<i64>,
}

impl Summary {
    fn add(&mut self, reading: &Reading) {
        match reading.sensor {
            "inside" => self.inside.push(reading.value),
            _ => self.outside.push(reading.value),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [inside, outside] = [&self.inside, &self.outside].map(|values| {
            let mean = values.iter().sum::<i64>() as f64 / values.len().max(1) as f64 / 100.0;
            format!("{mean:>5.2} C ({} readings)", values.len())
        });
        write!(to, "inside {inside}, outside {outside}")
    }
}
