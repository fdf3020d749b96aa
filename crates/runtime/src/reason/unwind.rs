//! The panic payloads that unwind an actor.

use super::ExitReason;

/// Unwinds an actor that does not end when its runtime stops.
pub(crate) struct StopUnwind;

/// Unwinds an actor that ends by [`exit`](crate::exit) or by a signal.
pub(crate) struct ExitUnwind(pub(crate) ExitReason);

/// Unwinds an actor to its cancelled scope.
pub(crate) struct CancelUnwind;
