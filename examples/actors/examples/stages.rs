//! A pipeline with one stage that parses lines. The receiver adds up the numbers. A bounded queue
//! keeps the sender from running far ahead of the stage.
//!
//! The program asserts that each number is added once, and that all other lines are counted.

use thalweg::patterns::{PipelineBuilder, PoolError};
use thalweg::runtime::run;

const LINES: u64 = 200_000;

fn main() -> Result<(), PoolError> {
    let (sum, refused) = run(|| {
        let pipeline = PipelineBuilder::new()
            .stage("parse", 1, 1_024, |line: String| line.parse::<u64>())
            .start()?;
        pipeline.feed((0..LINES).map(|n| {
            if n.is_multiple_of(10) {
                format!("line {n}")
            } else {
                n.to_string()
            }
        }));
        let (mut sum, mut refused) = (0, 0);
        for number in pipeline.iter() {
            match number {
                Ok(number) => sum += number,
                Err(_) => refused += 1,
            }
        }
        Ok::<_, PoolError>((sum, refused))
    })?;
    println!("{LINES} lines, {refused} of them not numbers; the sum of the others is {sum}.");
    assert_eq!(refused, LINES / 10);
    assert_eq!(sum, (0..LINES).filter(|n| n % 10 > 0).sum());
    Ok(())
}
