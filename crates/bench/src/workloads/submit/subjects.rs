//! The subjects: every structure under every rule, and Thalweg's channel as its users get it.

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

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What carries the requests; the name in a result.
    pub structure: &'static str,
    /// How its consumer is woken; the parameter `wake`.
    pub rule: &'static str,
    /// Takes one sample, compiled for this subject alone.
    pub take: fn(&Load) -> Result<Sample, Problem>,
}

/// `thalweg`, whose consumer wakes by a rule of the channel's own. That is a flag: a word that says whether somebody sleeps.
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

/// Who is measured against `thalweg`.
pub const PEERS: [&str; 4] = ["mutex_shards", "vyukov", "take_all", "global_lock"];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Subject> {
    const THALWEGS: &[Subject] = &[THALWEG];
    const THE_CELLS: &[Subject] = &CELLS;
    THALWEGS.iter().chain(THE_CELLS)
}

/// The one of this structure and rule.
#[must_use]
pub fn find(structure: &str, rule: &str) -> Option<&'static Subject> {
    all().find(|subject| subject.structure == structure && subject.rule == rule)
}
