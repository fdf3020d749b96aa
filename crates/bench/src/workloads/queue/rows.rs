//! Turns a cell's samples into rows: one per peer, and the selection of the row with the target.

use crate::cell::{Cell, Sample};
use crate::hosts;
use crate::judgement::{Target, worst_over_median};
use crate::lab::Lab;
use crate::placement::{Placement, allowed};
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, times};
use crate::report::Row;
use crate::statistics::Samples;
use crate::workloads::Workload;

use thalweg_peers::channel::Waiting;
use thalweg_peers::versions;

use super::go_chan;
use super::sides::Subject;

/// How thoroughly a cell is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rigour {
    /// The cell has a target: 15 pairs.
    Bar,
    /// For information only: the minimum for a row.
    Look,
    /// This number of pairs.
    Pairs(usize),
}

/// A cell with its samples.
#[derive(Debug)]
pub struct Measured<'a> {
    workload: &'a Workload,
    cell: Cell,
    taken: Vec<Samples<Sample>>,
    /// The peers that are left out, with the reasons.
    missing: Vec<(String, String)>,
}

/// Takes the samples of `cell`. A peer that is missing on this machine, or cannot have the cell's
/// capacity, is left out, and its row records the reason.
///
/// # Errors
/// Something failed in a process.
pub fn measure<'a>(
    lab: &mut Lab,
    workload: &'a Workload,
    mut cell: Cell,
    rigour: Rigour,
) -> Result<Measured<'a>, Problem> {
    let mut missing = Vec::new();
    let capacity = cell.number("capacity").ok();
    let many = cell.params.contains_key("producers");
    cell.subjects.retain(|name| {
        let unfit = capacity.and_then(|capacity| unfit(name, capacity, many));
        missing.extend(unfit.map(|why| (name.clone(), why.to_owned())));
        unfit.is_none()
    });
    if cell.subjects.iter().any(|name| name == go_chan::NAME) {
        match hosts::go_version() {
            Ok(version) => drop(lab.peers.insert(go_chan::NAME.to_owned(), version)),
            Err(why) => {
                cell.subjects.retain(|name| name != go_chan::NAME);
                missing.push((go_chan::NAME.to_owned(), why));
            }
        }
    }
    for name in cell.subjects.iter().skip(1) {
        let name = plain(name);
        if name != super::subjects::THALWEG && !lab.peers.contains_key(name) {
            lab.peers.insert(name.to_owned(), versions::of(name));
        }
    }
    let own = match rigour {
        Rigour::Bar => Some(15),
        Rigour::Look => None,
        Rigour::Pairs(pairs) => Some(pairs),
    };
    let taken = processes::sample(lab, &cell, lab.plan(own), PROCESSES)?;
    Ok(Measured {
        workload,
        cell,
        taken,
        missing,
    })
}

/// Why the ring of a peer cannot have this capacity, if it cannot.
fn unfit(peer: &str, capacity: u64, many_producers: bool) -> Option<&'static str> {
    match plain(peer) {
        "vyukov" if !capacity.is_power_of_two() || capacity < 2 => {
            Some("its capacity is a power of two from 2")
        }
        "disruptor" if many_producers && (!capacity.is_power_of_two() || capacity < 64) => {
            Some("its capacity for many producers is a power of two from 64")
        }
        "disruptor" | "c11_ring" | "c11_ring_inlined" if !capacity.is_power_of_two() => {
            Some("its capacity is a power of two")
        }
        _ => None,
    }
}

/// A subject's name without its variant: `thalweg` for `thalweg@4`.
fn plain(subject: &str) -> &str {
    subject.split('@').next().unwrap_or(subject)
}

impl Measured<'_> {
    /// The samples of this subject, in ns.
    #[must_use]
    pub fn times_of(&self, subject: &str) -> Option<Samples> {
        let place = self.cell.subjects.iter().position(|name| name == subject)?;
        Some(times(&self.taken[place]))
    }

    /// A row for the first subject against each of the others, in `unit`; each row lists `checks`.
    #[must_use]
    pub fn rows(&self, unit: &str, checks: &[&str]) -> Vec<Row> {
        let mut rows: Vec<Row> = (1..self.cell.subjects.len())
            .map(|place| self.row(unit, Some(place), checks))
            .collect();
        for (peer, why) in &self.missing {
            let mut row = self.row(unit, None, checks);
            row.peer = Some(peer.clone());
            row.verdict = Some(format!("not judged: {why}"));
            rows.push(row);
        }
        rows
    }

    /// The row of the first subject alone.
    #[must_use]
    pub fn alone(&self, unit: &str, checks: &[&str]) -> Row {
        self.row(unit, None, checks)
    }

    fn row(&self, unit: &str, peer: Option<usize>, checks: &[&str]) -> Row {
        let params: Vec<(&str, &str)> = self
            .cell
            .params
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let side = |place: usize| {
            let name = self.cell.subjects[place].as_str();
            (name, times(&self.taken[place]))
        };
        let mut row = Row::new(
            (self.workload.name, self.workload.group),
            &params,
            unit,
            side(0),
            peer.map(side),
        );
        for (prefix, place) in [("", Some(0)), ("peer_", peer)] {
            if let Some(place) = place {
                let mut metrics = processes::metrics(&self.taken[place]);
                if let Some(worst) = worst_over_median(&times(&self.taken[place])) {
                    metrics.count("worst_over_median", worst);
                }
                row.add_metrics(prefix, metrics);
            }
        }
        checks.iter().fold(row, |row, check| row.checked(*check))
    }
}

/// The reason why a target between two threads is not judged here, if there is one.
#[must_use]
pub fn refusal(lab: &Lab) -> Option<&'static str> {
    let few = (allowed().len() < 2).then_some("fewer than 2 processors");
    lab.refusal().or(few)
}

/// The placement of a cell's process. `split` only affects its threads.
///
/// # Errors
/// There is no such placement.
pub fn process_placement(placement: &str) -> Result<Placement, Problem> {
    match placement {
        "free" | "split" => Ok(Placement::Free),
        "one_cpu" => Ok(Placement::OneCpu),
        other => Err(Problem::Usage(format!(
            "a placement is free, one_cpu or split, not `{other}`"
        ))),
    }
}

/// Sets `target` on the row against this peer, if there is such a row.
pub fn hold(rows: &mut [Row], peer: &str, target: &Target, refusal: Option<&str>) {
    for row in rows.iter_mut() {
        // A row without a ratio already contains the reason.
        if row.peer.as_deref() == Some(peer) && row.ratio.is_some() {
            *row = row.clone().held_to(target, refusal);
        }
    }
}

/// Adds to each row how its peer waits, if that peer has no blocking calls.
pub fn note_waiting(rows: &mut [Row], table: &[Subject]) {
    for row in rows {
        let peer = row.peer.as_deref();
        let looks = |one: &&Subject| Some(one.name) == peer && one.waiting == Waiting::Looks;
        if let Some(subject) = table.iter().find(looks) {
            row.checks
                .push(format!("the peer {}", subject.waiting.text()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peer: &str, subject: f64, of_peer: f64) -> Row {
        Row::new(
            ("mpsc", "queue"),
            &[],
            "ns",
            ("thalweg", vec![subject; 5]),
            Some((peer, vec![of_peer; 5])),
        )
    }

    #[test]
    fn a_row_without_its_peer_keeps_the_reason() {
        let mut rows = [row("go_chan", 6.0, 20.0)];
        rows[0].ratio = None;
        rows[0].verdict = Some("not judged: no go".to_owned());
        hold(&mut rows, "go_chan", &Target::Ratio(0.5), None);
        assert_eq!(rows[0].verdict.as_deref(), Some("not judged: no go"));
    }

    #[test]
    fn peer_that_cannot_have_the_capacity_is_left_out() {
        for (peer, capacity, many) in [
            ("vyukov", 1, true),
            ("vyukov", 1000, true),
            ("disruptor", 3, false),
            ("disruptor", 32, true),
            ("c11_ring", 100, false),
        ] {
            assert!(unfit(peer, capacity, many).is_some(), "{peer} {capacity}");
        }
        for (peer, capacity, many) in [
            ("vyukov", 2, true),
            ("disruptor", 1, false),
            ("disruptor", 64, true),
            ("c11_ring", 1, false),
            ("rtrb", 1000, false),
            ("thalweg", 1000, true),
        ] {
            assert_eq!(unfit(peer, capacity, many), None, "{peer} {capacity}");
        }
    }

    #[test]
    fn the_fourth_part_of_a_name_is_no_peer_of_its_own() {
        assert_eq!(plain("thalweg@4"), "thalweg");
        assert_eq!(plain("rtrb"), "rtrb");
    }
}
