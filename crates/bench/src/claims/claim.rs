//! A claim, and what can be said of it.

use std::fmt;

use super::evidence::{Evidence, Missing, Point};

/// What somebody's documents say, and how it is tested here.
#[derive(Debug)]
pub struct Claim {
    /// Its name on the page.
    pub id: &'static str,
    /// The project, and the document in it.
    pub whose: &'static str,
    /// What it says, in our words.
    pub says: &'static str,
    /// How the original figure was made.
    pub made: &'static str,
    /// What `thalweg bench run` takes to measure the rows; `sweep` in front of it: what `thalweg bench sweep` takes.
    pub run: &'static str,
    /// The rows that are made as the original figure was; none where nothing there or here makes one.
    pub theirs: &'static [Point],
    /// The rows of the honest twin.
    pub twin: &'static [Point],
    /// When the verdict is that it holds, and when it is confounded.
    pub rule: &'static str,
    /// From the rows of one machine to what is said.
    pub judge: Judge,
}

/// See [`Claim::judge`].
pub type Judge = fn(&Evidence<'_>) -> Result<Finding, Missing>;

/// What the rows of one machine say to a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The figure by the original's method.
    pub theirs: String,
    /// The honest twin's.
    pub twin: String,
    /// What follows.
    pub verdict: Verdict,
}

/// What is said of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Reached by the original's method, and the twin bears out what the figure is quoted for.
    Holds,
    /// Not reached, not even by the original's method.
    DoesNotHold,
    /// Reached, but by something else than what it is quoted for: the twin does not reach it.
    Confounded,
    /// What was measured on this machine cannot tell, and why.
    NotTestable(String),
}

impl Verdict {
    /// The general rule: whether the figure is reached by the original's method, and by the twin.
    #[must_use]
    pub fn of(by_theirs: bool, by_twin: bool) -> Self {
        match (by_theirs, by_twin) {
            (true, true) => Self::Holds,
            (true, false) => Self::Confounded,
            (false, _) => Self::DoesNotHold,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => to.write_str("holds"),
            Self::DoesNotHold => to.write_str("does not hold"),
            Self::Confounded => to.write_str("confounded"),
            Self::NotTestable(why) => write!(to, "not testable here: {why}"),
        }
    }
}

/// A number a second, as people say it: `615 M`, `34.2 M`, `512 K`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    let (scaled, unit) = if per_s >= 1e6 {
        (per_s / 1e6, " M")
    } else if per_s >= 1e3 {
        (per_s / 1e3, " K")
    } else {
        (per_s, "")
    };
    let digits = if scaled >= 100.0 { 0 } else { 1 };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_only_its_method_reaches_is_confounded() {
        assert_eq!(Verdict::of(true, true), Verdict::Holds);
        assert_eq!(Verdict::of(true, false), Verdict::Confounded);
        assert_eq!(Verdict::of(false, true), Verdict::DoesNotHold);
        assert_eq!(Verdict::of(false, false), Verdict::DoesNotHold);
    }

    #[test]
    fn rates_are_short() {
        assert_eq!(rate(615e6), "615 M");
        assert_eq!(rate(34.25e6), "34.2 M");
        assert_eq!(rate(512_000.0), "512 K");
        assert_eq!(rate(12.0), "12.0");
    }
}
