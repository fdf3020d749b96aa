//! Loom models of the crate's synchronisation: `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo
//! test --profile loom -p thalweg-port --lib models`.

mod callback_slot;
mod lease;
mod mailbox;
mod mailbox_waiters;
mod open_state;
mod port;
mod result_cell;
mod spare_list;
