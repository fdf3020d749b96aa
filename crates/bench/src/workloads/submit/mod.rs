//! Submission: requests from several producer threads to one consumer that runs them.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`ffi_submit`], [`ablation`] | the two workloads |
//! | [`knobs`], [`gate`] | what can be set, and when scaling passes |
//! | [`grid`], [`sample`] | how samples are taken, and what each asserts |
//! | [`request`] | what is submitted, and the books that are kept of it |
//! | [`ingress`], [`bell`] | what an ingress is, and how its consumer is woken |
//! | [`subjects`] | all of them: [`lanes`], [`thalweg`], [`mutex_shards`], [`vyukov`], [`take_all`], [`global_lock`] |
//!
//! `docs/internals/ablation.md` says what the ablation found.

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
