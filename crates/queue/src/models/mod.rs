//! Loom models of internal types. The models of the channels are in `tests/loom`.

mod lane;
mod wait_list;
