//! A report as one HTML page with charts. It needs no network: the data is in the page as JSON, and
//! the page's own script draws it (`page.html`).
//!
//! The ratios come first, each with its interval, a line at 1 and a line at the target. Then follow
//! the times, the machine and the tools, and every row of the result files.

use serde_json::json;

use crate::baseline;
use crate::doctor::{self, State};
use crate::report::Report;
use crate::workloads::{CHARTS, WORKLOADS};

const TEMPLATE: &str = include_str!("page.html");
const PLACE: &str = "@DATA@";

/// The page of these runs, in the order given.
#[must_use]
pub fn html(reports: &[Report]) -> String {
    let runs = reports.iter().map(|report| {
        let findings = doctor::examine(&report.host).into_iter();
        let mind = findings.filter(|finding| finding.state == State::Mind);
        json!({
            "report": report,
            "refusal": baseline::refusal(report),
            "mind": mind.map(|it| json!([it.name, it.value, it.advice])).collect::<Vec<_>>(),
        })
    });
    let workloads = WORKLOADS
        .iter()
        .map(|it| json!({"name": it.name, "what": it.what}));
    let data = json!({
        "runs": runs.collect::<Vec<_>>(),
        "workloads": workloads.collect::<Vec<_>>(),
        "charts": CHARTS,
    });
    // No text of a result can end the element that contains the data.
    TEMPLATE.replacen(PLACE, &data.to_string().replace('<', "\\u003c"), 1)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::tests::sample;

    /// The data of a page, as its script reads it.
    fn data(page: &str) -> Value {
        let (_, rest) = page.split_once("id=\"data\">").expect("the data");
        let (data, _) = rest.split_once("</script>").expect("its end");
        serde_json::from_str(data).expect("JSON")
    }

    #[test]
    fn page_contains_every_row_and_fact_and_fetches_nothing() {
        let mut report = sample();
        let text = "</script><b>\"x\" & 'y' <https://example.test/&>";
        report.peers.insert("rtrb".to_owned(), text.to_owned());
        let page = html(&[report.clone(), sample()]);
        let data = data(&page);
        assert_eq!(
            data["runs"][0]["report"],
            serde_json::to_value(&report).unwrap()
        );
        assert_eq!(data["runs"].as_array().unwrap().len(), 2);
        let charts = data["charts"].as_array().unwrap().iter();
        let titles: Vec<&str> = charts.filter_map(|chart| chart["title"].as_str()).collect();
        assert_eq!(titles, ["One processor", "Two processors"]);
        assert_eq!(
            page.matches("</script>").count(),
            2,
            "the data and the script"
        );
        let own = page.replace("https://example.test/", "");
        let own = own.replace("http://www.w3.org/2000/svg", "");
        for fetched in [
            "http:", "https:", "src=", "url(", "@import", "<link", "fetch(", "import(",
        ] {
            assert!(!own.contains(fetched), "{fetched}");
        }
    }

    #[test]
    fn page_warns_of_a_quick_run_and_of_the_machine() {
        let mut report = sample();
        report.knobs.insert("quick".to_owned(), "true".to_owned());
        let data = data(&html(&[report]));
        assert_eq!(data["runs"][0]["refusal"], "it is from a quick run");
        let mind = data["runs"][0]["mind"].as_array().unwrap();
        assert!(
            mind.iter().any(|finding| finding[0] == "virtual"),
            "{mind:?}"
        );
    }
}
