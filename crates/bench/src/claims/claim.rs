//! A claim and its possible verdicts.

use std::fmt;

use super::evidence::{Evidence, Missing, Point};

/// A statement in another project's documents, and how it is tested here.
#[derive(Debug)]
pub struct Claim {
    /// Its name on the page.
    pub id: &'static str,
    /// The project and its document.
    pub whose: &'static str,
    /// The claim, in our words.
    pub says: &'static str,
    /// How the original figure was made.
    pub made: &'static str,
    /// The arguments of `thalweg bench run` that measure the rows; with a leading `sweep`, the
    /// arguments of `thalweg bench sweep`.
    pub run: &'static str,
    /// The rows that are measured as the original figure was; empty if neither their programs nor
    /// this lab produce one.
    pub theirs: &'static [Point],
    /// The rows of the honest twin.
    pub twin: &'static [Point],
    /// The conditions for the verdicts "holds" and "confounded".
    pub rule: &'static str,
    /// Computes the finding from the rows of one machine.
    pub judge: Judge,
}

/// See [`Claim::judge`].
pub type Judge = fn(&Evidence<'_>) -> Result<Finding, Missing>;

/// The result of a claim on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The figure by the original's method.
    pub theirs: String,
    /// The figure of the honest twin.
    pub twin: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The original's method reaches the figure, and the twin confirms what the figure is quoted
    /// for.
    Holds,
    /// Even the original's method does not reach the figure.
    DoesNotHold,
    /// The original's method reaches the figure for another reason than the one it is quoted for:
    /// the twin does not reach it.
    Confounded,
    /// The measurements of this machine cannot decide the claim; contains the reason.
    NotTestable(String),
}

impl Verdict {
    /// The general rule: whether the original's method reaches the figure, and whether the twin
    /// does.
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

/// A number per second in short form: `615 M`, `34.2 M`, `512 K`.
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
