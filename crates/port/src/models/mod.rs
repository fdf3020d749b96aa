//! Small models of what must hold between threads, explored by loom:
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p thalweg-port --lib models`.

mod life;
mod port;
mod room;
mod turn;
