//! The tests of the patterns: a module for each subject.

mod breakers;
mod bulkheads;
mod dropped;
mod kit;
mod rate_limits;
