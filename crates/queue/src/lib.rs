//! Queues between threads and the one protocol by which their readers sleep and are woken.
//!
//! * [`ring`]: a bounded ring whose slots carry full and empty; any number of writers and readers.
//! * [`inbox`]: an unbounded stack that its reader takes whole.
//! * [`gate`]: how a reader goes to sleep without missing what was published meanwhile.
//! * [`park`]: a thread that sleeps until it is woken, a deadline passes, or a signal arrives.
//! * [`spin`]: how long it is worth to look again before sleeping.
//! * [`event_fd`]: a wake-up that an event loop can watch.
//! * [`clock`]: the one clock.

pub mod clock;
pub mod event_fd;
pub mod gate;
pub mod inbox;
pub mod park;
pub mod ring;
pub mod spin;
mod sync;

pub use event_fd::EventFd;
pub use gate::Gate;
pub use inbox::Inbox;
pub use park::{Parker, Wake};
pub use ring::Ring;
pub use spin::Spin;
