//! Loom models of internal types. The models of the channels are in `tests/loom`.

mod lane;
mod spsc;
mod wait_list;
