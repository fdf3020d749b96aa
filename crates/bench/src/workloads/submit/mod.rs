//! Submission: requests from several threads to one consumer that runs them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`port_submit`] | the workload whose threads submit calls through the C table of a library |
//! | [`table`], [`table_peers`] | the functions that it uses of a table, and the peers behind them |
//! | [`ingress`], [`ablation`] | the workloads whose threads submit over a Rust channel, or one of its peers |
//! | [`path`], [`bell`] | what an ingress is, and how its consumer is woken |
//! | [`subjects`] | all of them: [`lanes`], [`thalweg`], [`mutex_shards`], [`vyukov`], [`take_all`], [`global_lock`] |
//! | [`request`], [`sample`] | the request, and one sample of an ingress |
//! | [`knobs`], [`grid`], [`gate`] | for all three workloads: the settings, how samples become rows, and the condition for scaling to pass |
//!
//! `docs/internals/ablation.md` describes the results of the ablation.

pub mod ablation;
pub mod bell;
pub mod gate;
pub mod global_lock;
pub mod grid;
pub mod ingress;
pub mod knobs;
pub mod lanes;
pub mod mutex_shards;
pub mod path;
pub mod port_submit;
pub mod request;
pub mod sample;
pub mod subjects;
pub mod table;
pub mod table_peers;
pub mod take_all;
pub mod thalweg;
pub mod vyukov;
