//! The subjects: every structure with every rule, and Thalweg's channel in its normal form.

use super::bell::{Always, Edge, Flag, Rule};
use super::global_lock::GlobalLock;
use super::grid::Subject;
use super::lanes::Lanes;
use super::mutex_shards::MutexShards;
use super::path::Woken;
use super::sample::take;
use super::take_all::TakeAll;
use super::thalweg::Channel;
use super::vyukov::Vyukov;

macro_rules! under_each_rule {
    ($($name:literal: $structure:ty),*) => {
        [
            // Woken by the channel's own rule: a word that tells whether the consumer sleeps.
            Subject { name: "thalweg", variant: Flag::NAME, take: take::<Channel> },
            $(
                Subject { name: $name, variant: Edge::NAME, take: take::<Woken<$structure, Edge>> },
                Subject { name: $name, variant: Always::NAME, take: take::<Woken<$structure, Always>> },
                Subject { name: $name, variant: Flag::NAME, take: take::<Woken<$structure, Flag>> },
            )*
        ]
    };
}

/// All subjects: `thalweg`, then the ablation's cells.
pub static SUBJECTS: [Subject; 16] = under_each_rule! {
    "lanes": Lanes,
    "mutex_shards": MutexShards,
    "vyukov": Vyukov,
    "take_all": TakeAll,
    "global_lock": GlobalLock
};

/// The subjects that are measured against `thalweg`.
pub const PEERS: [&str; 4] = ["mutex_shards", "vyukov", "take_all", "global_lock"];
