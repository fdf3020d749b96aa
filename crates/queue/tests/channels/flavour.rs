//! The channel flavours under test, and the macro that runs a test for each of them.

/// Creates a module of tests for each named flavour. In the body, the flavour is a module with
/// `channel` and `with`.
///
/// Values are `Default`, because a `lane` starts after its sender has sent some.
macro_rules! flavours {
    ($group:ident: $($module:ident),+; $($tests:tt)*) => {
        mod $group {
            #[allow(unused_imports)]
            use super::*;
            flavours! { @each [$($module)+] { $($tests)* } }
        }
    };
    (@each [] $tests:tt) => {};
    (@each [$module:ident $($rest:ident)*] { $($tests:tt)* }) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            flavours! { @tests $module $($tests)* }
        }
        flavours! { @each [$($rest)*] { $($tests)* } }
    };
    (@tests $module:ident $($(#[$attribute:meta])* fn $name:ident($flavour:ident) $body:block)*) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $name() {
                use crate::flavour::$module as $flavour;
                let _watched = crate::threads::watch();
                $body
            }
        )*
    };
}

pub mod spsc {
    pub use thalweg_queue::spsc::{Receiver, Sender, channel, with};

    /// Additional senders: this flavour has none.
    pub fn more_senders<T>(_sender: &Sender<T>, _count: usize) -> Vec<Sender<T>> {
        Vec::new()
    }

    /// Additional receivers: this flavour has none.
    pub fn more_receivers<T>(_receiver: &Receiver<T>, _count: usize) -> Vec<Receiver<T>> {
        Vec::new()
    }
}

/// A sender that uses the shared lane.
pub mod mpsc {
    pub use thalweg_queue::mpsc::{Receiver, Sender, channel, with};

    /// `count` clones.
    pub fn more_senders<T>(sender: &Sender<T>, count: usize) -> Vec<Sender<T>> {
        (0..count).map(|_| sender.clone()).collect()
    }

    /// This flavour has none.
    pub fn more_receivers<T>(_receiver: &Receiver<T>, _count: usize) -> Vec<Receiver<T>> {
        Vec::new()
    }
}

pub mod mpmc {
    pub use thalweg_queue::mpmc::{Receiver, Sender, channel, with};

    /// `count` clones.
    pub fn more_senders<T>(sender: &Sender<T>, count: usize) -> Vec<Sender<T>> {
        vec![sender.clone(); count]
    }

    /// `count` clones.
    pub fn more_receivers<T>(receiver: &Receiver<T>, count: usize) -> Vec<Receiver<T>> {
        vec![receiver.clone(); count]
    }
}

/// An unbounded `mpsc` channel. It ignores the capacity that a test requests.
pub mod unbounded {
    pub use super::mpsc::{more_receivers, more_senders};
    pub use thalweg_queue::mpsc::{Receiver, Sender};
    use thalweg_queue::{CapacityError, Options, mpsc};

    pub fn channel<T>(_capacity: usize) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
        Ok(mpsc::unbounded())
    }

    /// It ignores the options, because no sender waits for capacity.
    pub fn with<T>(
        capacity: usize,
        _options: Options,
    ) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
        channel(capacity)
    }
}

/// An `mpsc` channel whose sender has its own lane, because it has sent 64 values.
pub mod lane {
    pub use super::mpsc::{more_receivers, more_senders};
    pub use thalweg_queue::mpsc::{Receiver, Sender};
    use thalweg_queue::{CreateError, Options, mpsc};

    pub fn channel<T: Default>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), CreateError> {
        with(capacity, Options::new())
    }

    pub fn with<T: Default>(
        capacity: usize,
        options: Options,
    ) -> Result<(Sender<T>, Receiver<T>), CreateError> {
        let (sender, receiver) = mpsc::with(capacity, options)?;
        for _ in 0..64 {
            assert!(sender.try_send(T::default()).is_ok());
            assert!(receiver.try_recv().is_ok());
        }
        Ok((sender, receiver))
    }
}
