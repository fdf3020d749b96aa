//! The walk on real trees, compared with the real `grep` and with git.

mod ending;
mod filters;
mod grep;
mod oddities;
mod progress;
mod refusals;
mod threads;
mod tree;
