//! Checks that all hosts agree.

use crate::grep::Reference;
use crate::host::Measured;

/// A host, and the result of each of its runs.
pub type Runs<'a> = (&'a str, &'a [Measured]);

/// Checks that all runs of all hosts found the same lines, and as many as grep.
///
/// # Errors
/// One line for each host that differs.
pub fn agree(reference: &Reference, runs: &[Runs<'_>]) -> Result<(), String> {
    let mut problems = Vec::new();
    let first = runs.first().and_then(|(_, runs)| runs.first());
    for (host, runs) in runs {
        let mut counts: Vec<u64> = runs.iter().map(|run| run.matches).collect();
        counts.dedup();
        if counts != [reference.matches] {
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            let counts = counts.join(", then ");
            problems.push(format!(
                "{host} found {counts} lines, grep {}",
                reference.matches
            ));
        } else if runs
            .iter()
            .any(|run| first.is_some_and(|first| first.lines_sum != run.lines_sum))
        {
            problems.push(format!(
                "{host} found as many lines as the others, but not the same"
            ));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    if !reference.complaints.is_empty() {
        problems.push(format!("grep said: {}", reference.complaints.trim()));
    }
    problems.push("(files that change meanwhile are a reason too)".to_owned());
    Err(problems.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Measured = Measured {
        matches: 3,
        lines_sum: 6,
        first_match_ns: 1,
        total_ns: 2,
    };

    fn reference(matches: u64) -> Reference {
        Reference {
            matches,
            complaints: String::new(),
        }
    }

    #[test]
    fn the_same_lines_everywhere_are_agreement() {
        let slower = Measured { total_ns: 9, ..RUN };
        assert_eq!(
            agree(&reference(3), &[("a", &[RUN]), ("b", &[RUN, slower])]),
            Ok(())
        );
    }

    #[test]
    fn another_count_than_greps_names_host_and_numbers() {
        let other = Measured { matches: 4, ..RUN };
        let error = agree(&reference(3), &[("a", &[RUN]), ("b", &[RUN, other])]).unwrap_err();
        assert!(
            error.starts_with("b found 3, then 4 lines, grep 3\n"),
            "{error}"
        );
    }

    #[test]
    fn as_many_lines_but_others_are_no_agreement() {
        let other = Measured {
            lines_sum: 7,
            ..RUN
        };
        let error = agree(&reference(3), &[("a", &[RUN]), ("b", &[other])]).unwrap_err();
        assert!(error.contains("b found as many"), "{error}");
    }
}
