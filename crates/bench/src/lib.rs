//! The lab: workloads that measure Thalweg against its peers, in the same run, interleaved.
//!
//! What is quoted is a ratio. A workload takes its samples A B B A A B .. ([`interleave`]), the ratio is formed
//! pair by pair and comes with an interval ([`statistics`]), latencies come from a histogram
//! ([`latency`]), and everything that a reader needs to judge the figure stands in one JSON document
//! ([`report`]): the host, the tools, the knobs, the commit, and what each workload checked.
//!
//! The lab is a crate apart, that nothing depends on: none of its peers ever reaches a user.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`command`] | the command line: `list`, `run`, `baseline`, `regress`, `sweep`, `report`, `doctor` |
//! | [`workloads`], [`catalogue`] | one file a workload, the list of them, their groups |
//! | [`interleave`], [`statistics`], [`latency`] | how a figure is taken |
//! | [`judgement`], [`report`], [`result_file`] | what is said about it, and the file that says it |
//! | [`table`], [`csv`], [`summary`], [`page`] | the same for people |
//! | [`baseline`], [`regress`], [`sweep`] | runs held against each other |
//! | [`claims`] | what others' documents say, held against runs |
//! | [`machine`], [`doctor`], [`tools`] | on what it was measured, with what |
//! | [`cell`], [`processes`] | samples of one point out of several fresh processes |
//! | [`child`], [`hosts`], [`placement`], [`rust_host`] | the programs of other languages, and where they run |

/// The page, so that its template of a benchmark is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/lab.md")]
pub struct Page;

pub mod baseline;
pub mod catalogue;
pub mod cell;
pub mod child;
pub mod claims;
pub mod command;
pub mod csv;
pub mod doctor;
pub mod hosts;
pub mod interleave;
pub mod judgement;
pub mod lab;
pub mod latency;
pub mod machine;
pub mod page;
pub mod placement;
pub mod problem;
pub mod processes;
pub mod regress;
pub mod report;
pub mod result_file;
pub mod rust_host;
pub mod statistics;
pub mod summary;
pub mod sweep;
pub mod table;
pub mod tools;
pub mod workloads;
