//! The `join!` macro, which joins several actors at once.

use crate::join::JoinHandle;
use crate::reason::JoinError;

/// Joins up to eight actors, which run concurrently. Returns a tuple of their results, in the order
/// of the handles.
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
        $crate::JoinAll::join(($($handle,)+))
    };
}

/// A tuple of up to eight handles, for [`join!`].
pub trait JoinAll {
    /// The tuple of the results.
    type Results;

    /// Waits for all handles.
    fn join(self) -> Self::Results;
}

macro_rules! join_all {
    ($($value:ident $place:tt),+) => {
        impl<$($value),+> JoinAll for ($(JoinHandle<$value>,)+) {
            type Results = ($(Result<$value, JoinError>,)+);

            fn join(self) -> Self::Results {
                ($(self.$place.join(),)+)
            }
        }
    };
}

join_all!(A 0);
join_all!(A 0, B 1);
join_all!(A 0, B 1, C 2);
join_all!(A 0, B 1, C 2, D 3);
join_all!(A 0, B 1, C 2, D 3, E 4);
join_all!(A 0, B 1, C 2, D 3, E 4, F 5);
join_all!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
join_all!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
