//! Three threads form a pipeline with a channel between neighbours: a source that writes its
//! samples directly into the ring, a filter that works in batches, and a meter that reads in place.
//!
//! It asserts that the meter's result is bit for bit the same as on one thread: nothing is lost,
//! duplicated or reordered.

use std::error::Error;
use std::thread;

use thalweg::channel::spsc;
use thalweg_example_channels::grouped;

const SAMPLES: u32 = 1_000_000;
const CAPACITY: usize = 4_096;
const BATCH: usize = 256;
/// The filter returns one sample for this many.
const DECIMATION: u32 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{} samples of a noisy tone at 48 kHz:",
        grouped(SAMPLES.into())
    );
    let (samples, noisy) = spsc::channel(CAPACITY)?;
    let (smooth, filtered) = spsc::channel(CAPACITY)?;

    let source = thread::spawn(move || source(samples));
    let filter = thread::spawn(move || filter(&noisy, &smooth));
    let (level, looks) = meter(filtered);
    let (fills, batches) = (join(source), join(filter));

    let all = u64::from(SAMPLES);
    println!();
    for (stage, samples, turns) in [
        ("source  wrote in place", all, fills),
        ("filter  took batches  ", all, batches),
        ("meter   read in place ", level.samples, looks),
    ] {
        let (samples, turns) = (grouped(samples), grouped(turns));
        println!("  {stage}  {samples:>9}  in {turns:>6} turns");
    }
    println!();
    println!(
        "  level {:.4}, peak {:.4}",
        level.root_mean_square(),
        level.peak
    );

    assert_eq!(level, on_one_thread());
    assert_eq!(level.samples, u64::from(SAMPLES / DECIMATION));
    println!("\nThe same on one thread, bit for bit.");
    Ok(())
}

/// Fills the free slots; if there are none, sends one sample, which waits. Returns how often it
/// filled.
fn source(mut samples: spsc::Sender<f32>) -> u64 {
    let mut tone = tone();
    let mut turns = 0;
    loop {
        let mut ended = false;
        let filled = samples
            .try_fill(CAPACITY, || {
                let sample = tone.next();
                ended = sample.is_none();
                sample
            })
            .expect("the filter takes all");
        if ended {
            return turns; // The sender is dropped here, which closes the channel.
        }
        turns += u64::from(filled > 0);
        if filled == 0 {
            let Some(sample) = tone.next() else {
                return turns;
            };
            samples.send(sample).expect("the filter takes all");
        }
    }
}

/// Receives batches of available samples and sends the filtered ones. Returns the number of
/// batches.
fn filter(noisy: &spsc::Receiver<f32>, smooth: &spsc::Sender<f32>) -> u64 {
    let mut low_pass = LowPass::default();
    let (mut batch, mut made) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    let mut turns = 0;
    while noisy.recv_batch(&mut batch, BATCH).is_ok() {
        made.extend(batch.drain(..).filter_map(|sample| low_pass.feed(sample)));
        smooth.send_batch(&mut made).expect("the meter takes all");
        turns += 1;
    }
    turns
}

/// Reads the available samples in place; if there are none, receives one, which waits. Returns how
/// often it read.
fn meter(mut filtered: spsc::Receiver<f32>) -> (Level, u64) {
    let mut level = Level::default();
    let mut turns = 0;
    loop {
        let read = filtered.try_drain(CAPACITY, |sample| level.add(*sample));
        turns += u64::from(read > 0);
        if read == 0 {
            match filtered.recv() {
                Ok(sample) => level.add(sample),
                Err(_closed_and_drained) => return (level, turns),
            }
        }
    }
}

fn on_one_thread() -> Level {
    let (mut low_pass, mut level) = (LowPass::default(), Level::default());
    for sample in tone().filter_map(|sample| low_pass.feed(sample)) {
        level.add(sample);
    }
    level
}

/// A tone of 440 Hz, with noise at a fifth of its amplitude.
fn tone() -> impl Iterator<Item = f32> {
    let mut noise = 1_u32;
    (0..SAMPLES).map(move |n| {
        // The linear congruential generator of Numerical Recipes: its high bits are good enough as
        // noise.
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let hiss = (noise >> 16) as f32 / 65_536.0 - 0.5;
        (n as f32 * 440.0 * std::f32::consts::TAU / 48_000.0).sin() + 0.4 * hiss
    })
}

/// The mean of each group of [`DECIMATION`] samples.
#[derive(Default)]
struct LowPass {
    sum: f32,
    count: u32,
}

impl LowPass {
    fn feed(&mut self, sample: f32) -> Option<f32> {
        self.sum += sample;
        self.count += 1;
        if self.count < DECIMATION {
            return None;
        }
        let mean = self.sum / DECIMATION as f32;
        *self = Self::default();
        Some(mean)
    }
}

/// The level and the peak of the samples.
#[derive(Debug, Default, PartialEq)]
struct Level {
    samples: u64,
    squares: f64,
    peak: f32,
}

impl Level {
    fn add(&mut self, sample: f32) {
        self.samples += 1;
        self.squares += f64::from(sample) * f64::from(sample);
        self.peak = self.peak.max(sample.abs());
    }

    fn root_mean_square(&self) -> f64 {
        (self.squares / self.samples as f64).sqrt()
    }
}

fn join<T>(thread: thread::JoinHandle<T>) -> T {
    thread.join().expect("no thread of this program panics")
}
