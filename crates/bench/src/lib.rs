//! The lab: workloads that measure Thalweg against its peers, in the same run, interleaved.
//!
//! Every quoted figure is a ratio. A workload takes its samples in the order A B B A A B ..
//! ([`interleave`]). The ratio is formed pair by pair and has a confidence interval
//! ([`statistics`]). Latencies come from a histogram ([`latency`]). One JSON document ([`report`])
//! contains everything that a reader needs to judge the figure: the host, the tools, the knobs, the
//! commit, and what each workload checked.
//!
//! The lab is a separate crate and no other crate depends on it. Users of Thalweg therefore never
//! depend on its peers.
//!
//! | module | contents |
//! | --- | --- |
//! | [`command`] | the command line: `list`, `run`, `baseline`, `regress`, `sweep`, `report`, `serve`, `doctor` |
//! | [`workloads`], [`catalogue`] | one file per workload, the list of workloads, their groups |
//! | [`interleave`], [`statistics`], [`latency`] | how a figure is measured |
//! | [`judgement`], [`report`], [`result_file`] | targets, verdicts, and the result file |
//! | [`figure`], [`table`], [`csv`], [`summary`], [`page`] | the same for people |
//! | [`baseline`], [`regress`], [`sweep`] | comparisons of runs |
//! | [`evidence`], [`docs`], [`claims`] | the committed results; the figures in README and docs; claims of other projects |
//! | [`machine`], [`doctor`], [`tools`] | the machine and the tools of a run |
//! | [`cell`], [`processes`] | samples of one point from several fresh processes |
//! | [`child`], [`hosts`], [`placement`], [`rust_host`] | programs in other languages, and their placement |
//! | [`nginx`] | nginx with the benchmark of echoes, and the servers on Unix sockets |

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
pub mod docs;
pub mod doctor;
pub mod evidence;
pub mod figure;
pub mod guests;
pub mod hosts;
pub mod interleave;
pub mod judgement;
pub mod lab;
pub mod latency;
pub mod machine;
pub mod nginx;
pub mod page;
pub mod placement;
pub mod problem;
pub mod processes;
pub mod regress;
pub mod report;
pub mod result_file;
pub mod round_trip;
pub mod rust_host;
pub mod statistics;
pub mod summary;
pub mod sweep;
pub mod table;
pub mod tools;
pub mod workloads;
