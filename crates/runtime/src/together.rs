//! Several actors' values at once.

use crate::join::{JoinError, JoinHandle};

/// Joins several actors, all of which run meanwhile: a tuple of their results, in the order of the handles. Up to eight.
///
/// ```
/// use thalweg_runtime::{join, run, spawn};
///
/// let (sum, word) = run(|| join!(spawn(|| 1 + 1), spawn(|| "two")));
/// assert_eq!((sum.unwrap(), word.unwrap()), (2, "two"));
/// ```
#[macro_export]
macro_rules! join {
    ($($handle:expr),+ $(,)?) => {
        $crate::Together::join(($($handle,)+))
    };
}

/// Handles that [`join!`] joins: a tuple of up to eight.
pub trait Together {
    /// A tuple of their results.
    type Results;

    /// Waits for each.
    fn join(self) -> Self::Results;
}

macro_rules! together {
    ($($value:ident $place:tt),+) => {
        impl<$($value),+> Together for ($(JoinHandle<$value>,)+) {
            type Results = ($(Result<$value, JoinError>,)+);

            fn join(self) -> Self::Results {
                ($(self.$place.join(),)+)
            }
        }
    };
}

together!(A 0);
together!(A 0, B 1);
together!(A 0, B 1, C 2);
together!(A 0, B 1, C 2, D 3);
together!(A 0, B 1, C 2, D 3, E 4);
together!(A 0, B 1, C 2, D 3, E 4, F 5);
together!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
together!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
