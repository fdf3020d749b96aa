//! The sides of cells in which threads pass messages to threads: `spsc_threads`, `mpsc`, `mpmc`.

use thalweg_peers::channel::{Channel, ManyReceivers, ManySenders};

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::problem::Problem;

use super::go_chan;
use super::run::{Messages, Sampler};
use super::subjects::{many_to_many, many_to_one, one_to_one};
use super::threads::{Threads, hand_over};

/// The threads and the channel of a cell.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// `None` means unbounded.
    capacity: Option<usize>,
    senders: usize,
    receivers: usize,
    threads: Threads,
    messages: Messages,
    quick: bool,
}

impl Shape {
    /// Reads `capacity`, `batch`, `placement` and `messages`.
    fn of(cell: &Cell, senders: usize, receivers: usize) -> Result<Self, Problem> {
        let capacity = match cell.text("capacity")? {
            "unbounded" => None,
            _ => Some(cell.number("capacity")? as usize),
        };
        Ok(Self {
            capacity,
            senders,
            receivers,
            threads: Threads {
                batch: cell.number("batch").unwrap_or(1).max(1) as usize,
                split: cell.text("placement")? == "split",
            },
            messages: Messages::parse(cell.text("messages")?)?,
            quick: cell.quick,
        })
    }

    fn sampler(&self) -> Sampler {
        let unit = (self.senders * self.receivers * self.threads.batch) as u64;
        Sampler::new(self.messages, unit, self.quick)
    }

    fn bound(&self) -> Result<usize, Problem> {
        self.capacity
            .ok_or_else(|| Problem::Usage("only mpsc has channels without bound".to_owned()))
    }

    fn go(&self) -> Result<Side<'static, Sample>, Problem> {
        // Go's channel has no unbounded variant and no batches; those cells do not include it.
        go_chan::side(
            self.bound()?,
            self.senders,
            self.receivers,
            self.messages,
            self.quick,
        )
    }

    /// A side whose every run creates a channel with `make` and sends its messages.
    fn side<C: Channel>(
        self,
        make: impl Fn() -> Result<(Vec<C::Sender>, Vec<C::Receiver>), Problem> + 'static,
    ) -> Side<'static, Sample> {
        let mut sampler = self.sampler();
        Side::new(move || {
            sampler.take(|messages| {
                let (senders, receivers) = make()?;
                hand_over::<C>(senders, receivers, messages, self.threads)
            })
        })
    }
}

fn one<C: Channel>(shape: Shape) -> Result<Side<'static, Sample>, Problem> {
    let capacity = shape.bound()?;
    Ok(shape.side::<C>(move || {
        let (sender, receiver) = C::bounded(capacity);
        Ok((vec![sender], vec![receiver]))
    }))
}

fn gathering<C: ManySenders>(shape: Shape) -> Result<Side<'static, Sample>, Problem> {
    Ok(shape.side::<C>(move || {
        let pair = match shape.capacity {
            Some(capacity) => Some(C::bounded(capacity)),
            None => C::unbounded(),
        };
        let (sender, receiver) = pair
            .ok_or_else(|| Problem::Usage(format!("{} has no channel without bound", C::NAME)))?;
        Ok((vec![sender; shape.senders], vec![receiver]))
    }))
}

fn spreading<C: ManyReceivers>(shape: Shape) -> Result<Side<'static, Sample>, Problem> {
    let capacity = shape.bound()?;
    Ok(shape.side::<C>(move || {
        let (sender, receiver) = C::bounded(capacity);
        Ok((vec![sender; shape.senders], vec![receiver; shape.receivers]))
    }))
}

/// The sides of a cell with one sender and one receiver.
///
/// # Errors
/// A parameter or a subject is invalid.
pub fn one_to_one_cell(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let shape = Shape::of(cell, 1, 1)?;
    each(cell, |name| match name {
        go_chan::NAME => shape.go(),
        name => one_to_one!(name, one(shape)),
    })
}

/// The sides of a cell with `producers` senders and one receiver. The subject `thalweg@4` has 4
/// senders in every cell.
///
/// # Errors
/// A parameter or a subject is invalid.
pub fn many_to_one_cell(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let producers = cell.number("producers")? as usize;
    each(cell, |subject| {
        let (name, producers) = match subject.split_once('@') {
            Some((name, own)) => {
                let own = own.parse().map_err(|_| {
                    Problem::Usage(format!("`{subject}` names no number of producers"))
                })?;
                (name, own)
            }
            None => (subject, producers),
        };
        let shape = Shape::of(cell, producers, 1)?;
        match name {
            go_chan::NAME => shape.go(),
            name => many_to_one!(name, gathering(shape)),
        }
    })
}

/// The sides of a cell with a `topology` like `2x3`: two senders, three receivers.
///
/// # Errors
/// A parameter or a subject is invalid.
pub fn many_to_many_cell(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let (senders, receivers) = topology(cell.text("topology")?)?;
    let shape = Shape::of(cell, senders, receivers)?;
    each(cell, |name| match name {
        go_chan::NAME => shape.go(),
        name => many_to_many!(name, spreading(shape)),
    })
}

fn each(
    cell: &Cell,
    side: impl Fn(&str) -> Result<Side<'static, Sample>, Problem>,
) -> Result<Vec<Side<'static, Sample>>, Problem> {
    cell.subjects.iter().map(|name| side(name)).collect()
}

/// The number of senders and receivers in a text like `2x3`.
///
/// # Errors
/// The text has another form.
pub fn topology(text: &str) -> Result<(usize, usize), Problem> {
    let sides = text.split_once('x').and_then(|(senders, receivers)| {
        let sides: (usize, usize) = (senders.parse().ok()?, receivers.parse().ok()?);
        (sides.0 > 0 && sides.1 > 0).then_some(sides)
    });
    sides.ok_or_else(|| Problem::Usage(format!("a topology is like 2x3, not `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(workload: &str, params: &[(&str, &str)], subjects: &[&str]) -> Cell {
        let mut all = vec![
            ("capacity", "64"),
            ("placement", "free"),
            ("messages", "2000"),
        ];
        all.extend(params);
        let mut cell = Cell::new(workload, &all, subjects);
        cell.quick = true;
        cell
    }

    fn takes(sides: Result<Vec<Side<'static, Sample>>, Problem>) {
        for mut side in sides.unwrap() {
            assert!(side.take().unwrap().ns > 0.0);
        }
    }

    #[test]
    fn every_subject_takes_a_sample_with_its_checks() {
        let all = [
            "thalweg",
            "rtrb",
            "rtrb_0_3",
            "crossbeam",
            "kanal",
            "flume",
            "async-channel",
            "std",
            "tokio",
            "disruptor",
            "c11_ring",
        ];
        takes(one_to_one_cell(&cell(
            "spsc_threads",
            &[("batch", "1")],
            &all,
        )));
        takes(one_to_one_cell(&cell(
            "spsc_threads",
            &[("batch", "16")],
            &all,
        )));
        let all = [
            "thalweg",
            "thalweg@2",
            "crossbeam",
            "kanal",
            "flume",
            "async-channel",
            "std",
            "tokio",
            "disruptor",
            "vyukov",
        ];
        takes(many_to_one_cell(&cell("mpsc", &[("producers", "4")], &all)));
        let all = [
            "thalweg",
            "crossbeam",
            "kanal",
            "flume",
            "async-channel",
            "vyukov",
        ];
        takes(many_to_many_cell(&cell(
            "mpmc",
            &[("topology", "5x3")],
            &all,
        )));
    }

    #[test]
    fn a_subject_or_a_topology_that_is_none_is_refused() {
        assert!(one_to_one_cell(&cell("spsc_threads", &[], &["vyukov"])).is_err());
        assert!(many_to_one_cell(&cell("mpsc", &[("producers", "4")], &["rtrb"])).is_err());
        assert!(topology("2x0").is_err() && topology("2").is_err());
        assert_eq!(topology("5x3").unwrap(), (5, 3));
    }
}
