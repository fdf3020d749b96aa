//! The result of a measured search, and the line that reports it.

use std::time::{Duration, Instant};

/// Lines that matched, or some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The number of lines.
    pub matches: u64,
    /// The sum of the line numbers, so that two results can be compared.
    pub lines_sum: u64,
    /// When the first match arrived.
    pub first: Option<Instant>,
}

impl Found {
    /// The sum of both results.
    pub fn and(self, other: Found) -> Found {
        Found {
            matches: self.matches + other.matches,
            lines_sum: self.lines_sum.wrapping_add(other.lines_sum),
            first: self.first.into_iter().chain(other.first).min(),
        }
    }

    /// The line that the hosts in all languages print. The search lasted from `began` to `ended`.
    pub fn line(&self, host: &str, began: Instant, ended: Instant) -> String {
        let nanos = |time: Duration| time.as_nanos() as u64;
        format!(
            "{{\"host\":\"{host}\",\"matches\":{},\"lines_sum\":{},\"first_match_ns\":{},\"total_ns\":{}}}",
            self.matches,
            self.lines_sum,
            nanos(self.first.unwrap_or(ended) - began),
            nanos(ended - began),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_the_earliest_first_match_counts() {
        let now = Instant::now();
        let later = now + Duration::from_millis(1);
        let part = |matches, first| Found {
            matches,
            lines_sum: 10 * matches,
            first,
        };
        let all = part(1, Some(later))
            .and(part(0, None))
            .and(part(2, Some(now)));
        assert_eq!(all, part(3, Some(now)));
    }

    #[test]
    fn without_a_match_the_first_one_is_the_end() {
        let began = Instant::now();
        let line = Found::default().line("Rust", began, began + Duration::from_nanos(7));
        let expected =
            r#"{"host":"Rust","matches":0,"lines_sum":0,"first_match_ns":7,"total_ns":7}"#;
        assert_eq!(line, expected);
    }
}
