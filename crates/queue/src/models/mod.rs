//! Small models of what users do not see, explored by loom. Those of the channels are in `tests/loom`.

mod lane;
mod wait_list;
