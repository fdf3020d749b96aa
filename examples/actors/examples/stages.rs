//! Three stages, each an actor: one reads lines, one parses them, one adds up. What a stage owns it hands to the next.
//!
//! It claims that each line that is a number is counted once, and that the others are counted as refused.

use thalweg::runtime::{Receiver, channel, run, spawn};

const LINES: u64 = 200_000;

fn main() {
    let (sum, refused) = run(|| {
        let (lines, to_parse) = channel();
        let (numbers, to_add) = channel();
        spawn(move || {
            for n in 0..LINES {
                let line = if n % 10 == 0 {
                    format!("line {n}")
                } else {
                    n.to_string()
                };
                lines.send(line).expect("the parser reads to the end");
            }
        });
        let parser = spawn(move || {
            parse(&to_parse, |n| {
                numbers.send(n).expect("the adder reads to the end")
            })
        });
        let sum: u64 = to_add.iter().sum();
        (sum, parser.join().expect("the parser does not panic"))
    });
    println!("{LINES} lines, of which {refused} are no numbers; the others add up to {sum}.");
    assert_eq!(refused, LINES / 10);
    assert_eq!(sum, (0..LINES).filter(|n| n % 10 > 0).sum());
}

fn parse(lines: &Receiver<String>, mut to: impl FnMut(u64)) -> u64 {
    let mut refused = 0;
    for line in lines {
        match line.parse() {
            Ok(number) => to(number),
            Err(_) => refused += 1,
        }
    }
    refused
}
