//! The subjects: every structure with every rule, and Thalweg's channel in its normal form.

use super::bell::{Always, Edge, Flag, Rule};
use super::global_lock::GlobalLock;
use super::ingress::Woken;
use super::lanes::Lanes;
use super::mutex_shards::MutexShards;
use super::sample::{Load, take};
use super::take_all::TakeAll;
use super::thalweg::Channel;
use super::vyukov::Vyukov;
use crate::cell::Sample;
use crate::problem::Problem;

/// A subject.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The structure that carries the requests; the subject's name in a result.
    pub structure: &'static str,
    /// The wake-up rule of its consumer; the parameter `wake`.
    pub rule: &'static str,
    /// Takes one sample, compiled for this subject alone.
    pub take: fn(&Load) -> Result<Sample, Problem>,
}

/// `thalweg`, whose consumer is woken by the channel's own rule. That rule is a flag: a word that
/// tells whether the consumer sleeps.
pub const THALWEG: Subject = Subject {
    structure: "thalweg",
    rule: Flag::NAME,
    take: take::<Channel>,
};

macro_rules! under_each_rule {
    ($($name:literal: $structure:ty),*) => {
        [$(
            Subject { structure: $name, rule: Edge::NAME, take: take::<Woken<$structure, Edge>> },
            Subject { structure: $name, rule: Always::NAME, take: take::<Woken<$structure, Always>> },
            Subject { structure: $name, rule: Flag::NAME, take: take::<Woken<$structure, Flag>> },
        )*]
    };
}

/// The ablation's cells.
pub const CELLS: [Subject; 15] = under_each_rule! {
    "lanes": Lanes,
    "mutex_shards": MutexShards,
    "vyukov": Vyukov,
    "take_all": TakeAll,
    "global_lock": GlobalLock
};

/// The subjects that are measured against `thalweg`.
pub const PEERS: [&str; 4] = ["mutex_shards", "vyukov", "take_all", "global_lock"];

/// All subjects.
pub fn all() -> impl Iterator<Item = &'static Subject> {
    const THALWEGS: &[Subject] = &[THALWEG];
    const THE_CELLS: &[Subject] = &CELLS;
    THALWEGS.iter().chain(THE_CELLS)
}

/// The subject with this structure and rule.
#[must_use]
pub fn find(structure: &str, rule: &str) -> Option<&'static Subject> {
    all().find(|subject| subject.structure == structure && subject.rule == rule)
}
