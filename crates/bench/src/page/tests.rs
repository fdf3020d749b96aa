//! Tests of the whole page: it needs no network, and any parser can read it.

use super::*;
use crate::judgement::Target;
use crate::report::tests::sample;
use crate::report::{Report, Row};

/// Sixty rows: three workloads, points and peers of all kinds, and text that looks like markup.
fn large() -> Report {
    let mut report = sample();
    report.peers.insert(
        "rtrb".to_owned(),
        "0.4.1 <https://example.test/&>".to_owned(),
    );
    report.results.clear();
    for (place, capacity) in ["64", "256", "1024", "4096", "8192"].iter().enumerate() {
        for (number, peer) in ["rtrb", "crossbeam", "kanal", "flume", "std"]
            .iter()
            .enumerate()
        {
            let time = 1.0 + 0.1 * place as f64;
            let theirs = 0.5 + 0.4 * number as f64;
            let mut row = Row::new(
                ("spsc_threads", "queue"),
                &[("capacity", *capacity), ("items", "1000")],
                "ns",
                ("thalweg", vec![time, time * 1.1, time * 0.9]),
                Some((peer, vec![theirs; 3])),
            )
            .checked("every item came, in order")
            .held_to(&Target::Ratio(1.2), None);
            row.metrics.insert("ops_per_s".to_owned(), 1e9 / time);
            report.results.push(row);
        }
    }
    for number in 0..35 {
        report.results.push(Row::new(
            ("made up", "queue"),
            &[("pattern", &format!("<b>\"{number}\" & 'x'"))],
            "switches",
            ("thalweg", vec![f64::from(number)]),
            None,
        ));
    }
    report
}

#[test]
fn nothing_is_fetched_and_nothing_runs() {
    let page = html(&[large(), sample()]);
    // The data may contain an address, but only as text, not as something to fetch.
    for fetched in [
        "src=", "url(", "@import", "<script", "<link", "<iframe", "<img", "<object",
    ] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    for reference in page.split("href=\"").skip(1) {
        assert!(reference.starts_with('#'), "{}", &reference[..40]);
    }
    let own = page.replace("https://example.test/", "");
    assert!(!own.contains("http://") && !own.contains("https://"));
}

#[test]
fn every_way_inside_the_page_leads_somewhere() {
    let page = html(&[large(), sample()]);
    for target in page.split("href=\"#").skip(1) {
        let id = target.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

#[test]
fn the_page_is_well_formed() {
    let mut empty = sample();
    empty.results.clear();
    for reports in [vec![large()], vec![large(), sample()], vec![empty], vec![]] {
        well_formed(&html(&reports)).unwrap();
    }
}

#[test]
fn every_row_and_every_fact_about_the_machine_is_on_it() {
    let report = large();
    let page = html(std::slice::from_ref(&report));
    for row in &report.results {
        for value in row.params.values() {
            assert!(page.contains(&escape(value)), "{value}");
        }
    }
    for part in [
        "A processor",
        "0.4.1",
        "Linux 6.1.0",
        "kvm",
        "0123abcd",
        "tsc, 25 ns a reading",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_check_of_the_form_finds_what_is_wrong() {
    for wrong in [
        "<p>",
        "</p>",
        "<p><b></p></b>",
        "<p class=x></p>",
        "<p a=\"1\" a=\"2\"></p>",
        "<p>a < b</p>",
        "<p>&nbsp;</p>",
        "<p>a & b</p>",
        "<p></p><p></p>",
    ] {
        let page = format!("<!doctype html>\n{wrong}");
        assert!(well_formed(&page).is_err(), "{wrong}");
    }
    well_formed("<!doctype html>\n<p a=\"1\" b=\"x&lt;\">x<br/>&#39;<b>y</b></p>\n").unwrap();
}

/// Whether `page` is one well-formed XML element: paired tags, quoted and unique attributes, and
/// only the entities that XML defines.
fn well_formed(page: &str) -> Result<(), String> {
    let mut rest = page
        .strip_prefix("<!doctype html>\n")
        .ok_or("no doctype")?
        .trim_end();
    let mut open: Vec<&str> = Vec::new();
    let mut elements = 0;
    while !rest.is_empty() {
        let text_ends = rest.find('<').unwrap_or(rest.len());
        text_is_fine(&rest[..text_ends])?;
        rest = &rest[text_ends..];
        let Some(inside) = rest.strip_prefix('<') else {
            break;
        };
        let end = inside.find('>').ok_or("a tag without an end")?;
        let tag = &inside[..end];
        rest = &inside[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(opened) if opened == name => {}
                other => return Err(format!("</{name}> closes {other:?}")),
            }
            continue;
        }
        let (tag, empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!("<{tag}> has no name"));
        }
        attributes_are_fine(attributes)?;
        if open.is_empty() {
            elements += 1;
        }
        if !empty {
            open.push(name);
            // The content of a style sheet is not markup.
            if name == "style" {
                rest = &rest[rest.find("</style>").ok_or("a style without an end")?..];
            }
        }
    }
    match (open.is_empty(), elements) {
        (true, 1) => Ok(()),
        (true, _) => Err(format!("{elements} elements")),
        (false, _) => Err(format!("still open: {open:?}")),
    }
}

fn text_is_fine(text: &str) -> Result<(), String> {
    for entity in text.split('&').skip(1) {
        let name = entity.split(';').next().unwrap_or_default();
        let known = ["amp", "lt", "gt", "quot"].contains(&name) || name.starts_with('#');
        if !known || !entity.contains(';') {
            return Err(format!("&{name} is no entity"));
        }
    }
    if text.contains('>') {
        return Err(format!("a stray > in {text}"));
    }
    Ok(())
}

fn attributes_are_fine(mut rest: &str) -> Result<(), String> {
    let mut names: Vec<&str> = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let (name, value) = rest
            .split_once("=\"")
            .ok_or(format!("`{rest}` is not quoted"))?;
        if names.contains(&name) || name.contains(char::is_whitespace) {
            return Err(format!("the attribute `{name}`"));
        }
        names.push(name);
        let (value, after) = value
            .split_once('"')
            .ok_or(format!("`{name}` has no end"))?;
        text_is_fine(value)?;
        rest = after;
    }
}
