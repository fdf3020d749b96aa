//! A block of operations, each timed by itself.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::problem::Problem;

/// Runs `operation` according to the numbers of a line, COUNT UNCOUNTED PAUSE_US, and returns the
/// answer's JSON: the latencies of the counted operations, in ns.
///
/// # Errors
/// Invalid numbers, or the operation's own problem.
pub fn timed(
    numbers: &[&str],
    mut operation: impl FnMut() -> Result<(), Problem>,
) -> Result<String, Problem> {
    let [count, uncounted, pause] = numbers else {
        return Err(Problem::Host(format!(
            "three numbers are wanted, not {numbers:?}"
        )));
    };
    let (count, uncounted) = (number(count)?, number(uncounted)?);
    let pause = Duration::from_micros(number(pause)?);
    for _ in 0..uncounted {
        operation()?;
    }
    let mut latencies = Vec::new();
    for _ in 0..count {
        if !pause.is_zero() {
            sleep(pause);
        }
        let began = Instant::now();
        operation()?;
        latencies.push(began.elapsed().as_nanos());
    }
    Ok(answer(&latencies))
}

/// Latencies, in ns, as the lab reads them.
pub fn answer<T: ToString>(latencies: &[T]) -> String {
    let latencies: Vec<String> = latencies.iter().map(T::to_string).collect();
    format!("{{\"latencies\": [{}]}}", latencies.join(", "))
}

/// A number of a line.
///
/// # Errors
/// It is none.
pub fn number(word: &str) -> Result<u64, Problem> {
    word.parse()
        .map_err(|_| Problem::Host(format!("not a number: {word}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncounted_operations_run_and_are_not_in_the_answer() {
        let mut ran = 0;
        let answer = timed(&["3", "4", "0"], || {
            ran += 1;
            Ok(())
        });
        assert_eq!(ran, 7);
        let value: serde_json::Value = serde_json::from_str(&answer.unwrap()).unwrap();
        assert_eq!(value["latencies"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn a_pause_is_not_part_of_the_latency() {
        let answer = timed(&["2", "0", "20000"], || Ok(())).unwrap();
        let value: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert!(value["latencies"][0].as_u64().unwrap() < 20_000_000);
    }
}
