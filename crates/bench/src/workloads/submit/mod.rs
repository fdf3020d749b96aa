//! Submission: requests from several producer threads to one consumer that runs them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`ffi_submit`], [`ablation`] | the two workloads |
//! | [`knobs`], [`gate`] | the settings, and the condition for scaling to pass |
//! | [`grid`], [`sample`] | how samples are taken and checked |
//! | [`request`] | the request, and the consumer's bookkeeping |
//! | [`ingress`], [`bell`] | what an ingress is, and how its consumer is woken |
//! | [`subjects`] | all subjects: [`lanes`], [`thalweg`], [`mutex_shards`], [`vyukov`], [`take_all`], [`global_lock`] |
//!
//! `docs/internals/ablation.md` describes the results of the ablation.

pub mod ablation;
pub mod bell;
pub mod ffi_submit;
pub mod gate;
pub mod global_lock;
pub mod grid;
pub mod ingress;
pub mod knobs;
pub mod lanes;
pub mod mutex_shards;
pub mod request;
pub mod sample;
pub mod subjects;
pub mod take_all;
pub mod thalweg;
pub mod vyukov;
