//! `thalweg config`: prints the settings that a runtime would have on this machine, and their
//! sources.

use crate::output::Output;
use std::fmt::Write;

use thalweg::runtime::{Config, Description, Machine, Profile, Setting, StartError, Value};

/// The arguments of `thalweg config`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print JSON: times in nanoseconds, sizes in bytes
    #[arg(long)]
    json: bool,

    /// Use the settings of a profile
    #[arg(long, value_parser = profile, value_name = "NAME")]
    profile: Option<Profile>,
}

fn profile(name: &str) -> Result<Profile, String> {
    let known = Profile::ALL.into_iter().find(|known| known.name() == name);
    known.ok_or_else(|| {
        format!(
            "the profiles are: {}",
            Profile::ALL.map(Profile::name).join(", ")
        )
    })
}

/// Formats the settings.
///
/// # Errors
/// An environment variable has an invalid value.
pub fn run(arguments: &Arguments) -> Result<Output, StartError> {
    let description = Config::profile(arguments.profile.unwrap_or_default()).describe()?;
    Ok(Output::done(match arguments.json {
        true => json(&description),
        false => table(&description),
    }))
}

/// A table with one line per setting, followed by the properties of the machine.
fn table(description: &Description) -> String {
    let settings = description.settings.iter().map(|setting| {
        let Setting { source, range, .. } = setting;
        let by = setting.variable.unwrap_or("-");
        [
            setting.name.to_owned(),
            shown(setting.value),
            source.to_string(),
            by.to_owned(),
            (*range).to_owned(),
        ]
    });
    let head = ["setting", "value", "from", "variable", "range"].map(str::to_owned);
    let mut text = columns(&[head].into_iter().chain(settings).collect::<Vec<_>>());
    text.push('\n');
    let Machine {
        processors_in_mask,
        processors,
        tsc_hz,
        max_guarded_stacks,
        ..
    } = description.machine;
    let mask = processors_in_mask.map_or("unknown".to_owned(), |count| count.to_string());
    let guards = match max_guarded_stacks {
        None => "light (no separate mapping)".to_owned(),
        Some(most) => format!("mprotect: at most {most} stacks, limited by vm.max_map_count"),
    };
    let machine = [
        ["processors in the affinity mask".to_owned(), mask],
        [
            "processors by mask and quota".to_owned(),
            processors.to_string(),
        ],
        [
            "frequency of the cycle counter".to_owned(),
            format!("{:.3} MHz", tsc_hz as f64 / 1e6),
        ],
        ["guard pages of stacks".to_owned(), guards],
    ];
    text + &columns(&machine)
}

fn shown(value: Value) -> String {
    match value {
        Value::Bytes(bytes) if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        Value::Bytes(bytes) if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        other => other.to_string(),
    }
}

fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The settings as JSON. All texts are known and contain no character that needs to be escaped.
fn json(description: &Description) -> String {
    let mut text = String::from("{\n  \"settings\": [\n");
    for (nth, setting) in description.settings.iter().enumerate() {
        let Setting {
            name,
            value,
            source,
            range,
            ..
        } = setting;
        let (value, unit) = match *value {
            Value::Bytes(bytes) => (bytes.to_string(), "\"bytes\""),
            Value::Time(time) => (time.as_nanos().to_string(), "\"ns\""),
            Value::Switch(on) => (on.to_string(), "null"),
            other => (other.to_string(), "null"),
        };
        let variable = setting
            .variable
            .map_or("null".to_owned(), |name| format!("\"{name}\""));
        let comma = if nth + 1 < description.settings.len() {
            ","
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "    {{\"name\": \"{name}\", \"value\": {value}, \"unit\": {unit}, \"from\": \"{source}\", \"variable\": {variable}, \"range\": \"{range}\"}}{comma}"
        );
    }
    let number = |count: Option<usize>| count.map_or("null".to_owned(), |count| count.to_string());
    let machine = &description.machine;
    let _ = writeln!(
        text,
        "  ],\n  \"machine\": {{\n    \"processors_in_mask\": {},\n    \"processors\": {},\n    \"tsc_hz\": {},\n    \"light_guards\": {},\n    \"max_guarded_stacks\": {}\n  }}\n}}",
        number(machine.processors_in_mask),
        machine.processors,
        machine.tsc_hz,
        machine.light_guards,
        number(machine.max_guarded_stacks),
    );
    text
}
