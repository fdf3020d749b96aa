//! A cell: one point of a workload's parameters, with the subjects to compare there, measured in
//! one process.
//!
//! A workload that supports cells sets its `cells` field ([`crate::workloads::Workload`]): a
//! function that sets up all subjects of a [`Cell`] and returns a [`Side`] for each, in the order
//! of `cell.subjects`. The set-up is not timed. To get samples, call [`crate::processes`], which
//! starts this program again as `thalweg-bench cell`. That process reads one command per line:
//!
//! | line | answer |
//! | --- | --- |
//! | none | `{"ready": true}` |
//! | the cell as JSON, once | `{"opened": 2}`: the number of sides |
//! | the index of a side: `0` | `{"ns": 3.4, "metrics": {..}, "latencies": [[ns, count], ..]}`: one new sample |
//!
//! If something fails, the answer is `{"check": true, "failed": "counts differ"}`. Between samples
//! the process waits on its standard input and uses no processor time. By hand:
//!
//! ```text
//! $ thalweg-bench cell
//! {"workload": "spsc_threads", "params": {"capacity": "64"}, "subjects": ["thalweg", "rtrb"]}
//! 0
//! 1
//! ```

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::interleave::Side;
use crate::latency::Latencies;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::workloads;

/// One point of a workload's parameters and the subjects to measure there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The workload's public name.
    pub workload: String,
    /// All parameters of the point.
    pub params: BTreeMap<String, String>,
    /// The subjects, in the order of measurement.
    pub subjects: Vec<String>,
    /// Whether this is a quick run, whose figures need not be accurate.
    #[serde(default)]
    pub quick: bool,
    /// The placement of the process, applied before its first instruction.
    #[serde(skip, default = "anywhere")]
    pub placement: Placement,
    /// Environment variables of the process, in addition to the inherited ones.
    #[serde(skip)]
    pub environment: BTreeMap<String, String>,
}

/// Parameters that are counts, with the largest value for which any machine has enough memory and
/// threads.
const COUNTS: [(&str, u64); 21] = [
    ("actors", 1 << 20),
    ("batch", 1 << 24),
    ("bursts", 1 << 24),
    ("capacity", 1 << 24),
    ("channels", 1 << 10),
    ("chunks", 200_000),
    ("depth", 1 << 12),
    ("each", 1 << 31),
    ("items", 1 << 24),
    ("mean_us", 1 << 20),
    ("messages", 1 << 40),
    ("per_thread", 1 << 24),
    ("producers", 1 << 10),
    ("receivers", 1 << 10),
    ("round_trips", 1 << 32),
    ("rounds", 1 << 32),
    ("sleeps", 1 << 20),
    ("threads", 1 << 10),
    ("workers", 64),
    ("yielders", 1 << 10),
    ("yields", 1 << 32),
];

fn anywhere() -> Placement {
    Placement::Free
}

impl Cell {
    /// A cell of `workload`, in a process without a fixed placement.
    #[must_use]
    pub fn new(workload: &str, params: &[(&str, &str)], subjects: &[&str]) -> Self {
        Self {
            workload: workload.to_owned(),
            params: params
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            subjects: subjects.iter().map(|name| (*name).to_owned()).collect(),
            quick: false,
            placement: Placement::Free,
            environment: BTreeMap::new(),
        }
    }

    /// The same cell, in a process at `placement`.
    #[must_use]
    pub fn at(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// The text of a parameter.
    ///
    /// # Errors
    /// The cell has no such parameter.
    pub fn text(&self, name: &str) -> Result<&str, Problem> {
        let text = self.params.get(name).map(String::as_str);
        text.ok_or_else(|| Problem::Usage(format!("a cell needs the parameter `{name}`")))
    }

    /// Checks that every parameter that is a count is in range. No subject accepts 0.
    ///
    /// # Errors
    /// A count is out of range; the message contains the range.
    pub fn check(&self) -> Result<(), Problem> {
        for (name, most) in COUNTS {
            let count = self.params.get(name).and_then(|text| text.parse().ok());
            if let Some(count) = count
                && !(1..=most).contains(&count)
            {
                let why = format!("`{name}` is 1 to {most}, not {count}");
                return Err(Problem::Usage(why));
            }
        }
        Ok(())
    }

    /// The value of a parameter that is a whole number.
    ///
    /// # Errors
    /// The cell has no such parameter, or its value is not a whole number.
    pub fn number(&self, name: &str) -> Result<u64, Problem> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| Problem::Usage(format!("`{name}` is a whole number, not `{text}`")))
    }
}

/// The function that sets up all subjects of a cell. See the module.
pub type Open = fn(&Cell) -> Result<Vec<Side<'static, Sample>>, Problem>;

/// One sample of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Nanoseconds per operation.
    pub ns: f64,
    /// Further metrics of this sample.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Latencies of single operations, as [`Latencies::counts`] gives them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<(u64, u64)>,
}

impl Sample {
    /// A sample of `operations` that took `elapsed` in total.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_bench::cell::Sample;
    /// assert_eq!(Sample::of(Duration::from_micros(3), 1_000).ns, 3.0);
    /// ```
    #[must_use]
    pub fn of(elapsed: Duration, operations: u64) -> Self {
        Self {
            ns: elapsed.as_secs_f64() * 1e9 / operations as f64,
            ..Self::default()
        }
    }

    /// Adds one metric.
    #[must_use]
    pub fn with(mut self, metric: &str, value: f64) -> Self {
        self.metrics.insert(metric.to_owned(), value);
        self
    }

    /// Adds the latencies of the operations.
    #[must_use]
    pub fn with_latencies(mut self, latencies: &Latencies) -> Self {
        self.latencies = latencies.counts();
        self
    }
}

/// The answer of the process to a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// The cell is set up.
    Opened {
        /// The number of sides.
        opened: usize,
    },
    /// Something failed; the process accepts no further commands.
    Failed {
        /// Whether a check of the workload failed.
        check: bool,
        /// The error message.
        failed: String,
    },
    /// One sample.
    Sample(Sample),
}

/// Serves a cell of any workload from `input` to `output`, until the input ends.
///
/// # Errors
/// The lines cannot be read or written. A failure in the cell is sent as an answer, not returned.
pub fn serve(input: impl BufRead, output: impl Write) -> Result<(), Problem> {
    serve_with(input, output, |cell| {
        let workload = workloads::find(&cell.workload)?;
        let open = workload
            .cells
            .ok_or_else(|| Problem::Usage(format!("{} is not measured by cells", cell.workload)))?;
        open(cell)
    })
}

fn serve_with(
    input: impl BufRead,
    mut output: impl Write,
    open: impl Fn(&Cell) -> Result<Vec<Side<'static, Sample>>, Problem>,
) -> Result<(), Problem> {
    let mut say = |text: &str| {
        writeln!(output, "{text}")
            .and_then(|()| output.flush())
            .map_err(Problem::io("standard output"))
    };
    say("{\"ready\": true}")?;
    let mut sides: Option<Vec<Side<'static, Sample>>> = None;
    for line in input.lines() {
        let line = line.map_err(Problem::io("standard input"))?;
        let answer = match &mut sides {
            None => opened(&line, &open).map(|new| {
                let opened = new.len();
                sides = Some(new);
                Answer::Opened { opened }
            }),
            Some(sides) => taken(&line, sides).map(Answer::Sample),
        };
        let answer = answer.unwrap_or_else(|problem| match problem {
            Problem::Check(failed) => Answer::Failed {
                check: true,
                failed,
            },
            other => Answer::Failed {
                check: false,
                failed: other.to_string(),
            },
        });
        say(&serde_json::to_string(&answer).expect("an answer has no odd keys"))?;
    }
    Ok(())
}

fn opened(
    line: &str,
    open: impl Fn(&Cell) -> Result<Vec<Side<'static, Sample>>, Problem>,
) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let cell: Cell = serde_json::from_str(line)
        .map_err(|error| Problem::Usage(format!("not a cell: {error}")))?;
    let sides = open(&cell)?;
    if sides.len() == cell.subjects.len() {
        Ok(sides)
    } else {
        Err(Problem::Check(format!(
            "{} subjects were asked for, {} sides came",
            cell.subjects.len(),
            sides.len()
        )))
    }
}

fn taken(line: &str, sides: &mut [Side<'static, Sample>]) -> Result<Sample, Problem> {
    let count = sides.len();
    let side = line
        .trim()
        .parse()
        .ok()
        .and_then(|place: usize| sides.get_mut(place))
        .ok_or_else(|| Problem::Usage(format!("`{line}` is none of the {count} sides")))?;
    let sample = side.take()?;
    if sample.ns.is_finite() {
        Ok(sample)
    } else {
        // JSON cannot represent it, and no workload can use it.
        Err(Problem::Check("a sample is not a number".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workload whose first side counts its samples and whose second side fails.
    fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
        let step = cell.number("step")? as f64;
        let mut ns = 0.0;
        Ok(vec![
            Side::new(move || {
                ns += step;
                Ok(Sample {
                    ns,
                    ..Sample::default()
                }
                .with("failed_sends", 3.0))
            }),
            Side::new(|| Err(Problem::Check("counts differ".to_owned()))),
        ])
    }

    fn answers(input: &str) -> Vec<String> {
        let mut output = Vec::new();
        serve_with(input.as_bytes(), &mut output, open).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn counts_that_no_subject_takes_are_refused() {
        let check = |name, text| Cell::new("w", &[(name, text)], &["thalweg"]).check();
        let wrong = [
            ("capacity", "0"),
            ("producers", "1025"),
            ("messages", "0"),
            ("receivers", "0"),
        ];
        for (name, text) in wrong {
            let problem = check(name, text).unwrap_err().to_string();
            assert!(problem.contains(&format!("`{name}` is 1 to ")), "{problem}");
        }
        check("capacity", "16777216").unwrap();
        check("capacity", "unbounded").unwrap();
        check("placement", "0").unwrap();
    }

    #[test]
    fn a_cell_is_opened_once_and_gives_a_sample_a_line() {
        let cell = Cell::new("w", &[("step", "2")], &["thalweg", "rtrb"]);
        let cell = serde_json::to_string(&cell).unwrap();
        assert_eq!(
            answers(&format!("{cell}\n0\n0\n1\n")),
            [
                r#"{"ready": true}"#,
                r#"{"opened":2}"#,
                r#"{"ns":2.0,"metrics":{"failed_sends":3.0}}"#,
                r#"{"ns":4.0,"metrics":{"failed_sends":3.0}}"#,
                r#"{"check":true,"failed":"counts differ"}"#,
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_answered_with_why() {
        let no_step = r#"{"workload": "w", "params": {}, "subjects": []}"#;
        assert!(answers(&format!("{no_step}\n"))[1].contains("needs the parameter `step`"));
        let odd = r#"{"workload": "w", "params": {"step": "x"}, "subjects": []}"#;
        assert!(answers(&format!("{odd}\n"))[1].contains("a whole number, not `x`"));
        let one = r#"{"workload": "w", "params": {"step": "1"}, "subjects": ["a"]}"#;
        assert!(answers(&format!("{one}\n"))[1].contains("1 subjects were asked for, 2 sides"));
        let two = r#"{"workload": "w", "params": {"step": "1"}, "subjects": ["a", "b"]}"#;
        assert!(answers(&format!("{two}\n2\n"))[2].contains("none of the 2 sides"));
        assert!(answers("hello\n")[1].contains("not a cell"));
    }

    #[test]
    fn a_workload_without_cells_says_so() {
        let mut output = Vec::new();
        let line = "{\"workload\": \"idle\", \"params\": {}, \"subjects\": []}\n";
        serve(line.as_bytes(), &mut output).unwrap();
        assert!(
            String::from_utf8(output)
                .unwrap()
                .contains("idle is not measured by cells")
        );
    }

    #[test]
    fn every_answer_reads_back_as_what_it_is() {
        let sample = Sample {
            ns: 1.5,
            metrics: BTreeMap::new(),
            latencies: vec![(7, 2)],
        };
        let text = serde_json::to_string(&Answer::Sample(sample.clone())).unwrap();
        let back: Answer = serde_json::from_str(&text).unwrap();
        assert!(matches!(back, Answer::Sample(same) if same == sample));
        let back: Answer = serde_json::from_str(r#"{"opened":2}"#).unwrap();
        assert!(matches!(back, Answer::Opened { opened: 2 }));
        let back: Answer = serde_json::from_str(r#"{"check":false,"failed":"x"}"#).unwrap();
        assert!(matches!(back, Answer::Failed { check: false, .. }));
    }
}
