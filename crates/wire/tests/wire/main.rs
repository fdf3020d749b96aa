//! The tests of the crate. All are in one binary, which links faster than one per file.
#![recursion_limit = "1024"] // for `depth`: rustc's default is lower than the limit under test

mod largest_allocation;
mod sample;

mod cbor;
mod cbor_memory;
mod corpus;
mod depth;
mod evolve;
mod refused;
mod rfc8949;
mod round_trip;
mod transcode;
