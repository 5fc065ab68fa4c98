//! Results as JUnit's XML, which continuous integration reads: a suite per scenario, a test per
//! expectation and case.
//!
//! The elements are those of the schema of Jenkins' JUnit plug-in, which GitLab, GitHub's actions
//! and others read too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fullpipe_results::result::RunResult;

use super::NoResult;
use super::expectations::{Judged, judged};

/// One document. A scenario without expectations has one test that passes. An error is a case whose
/// test bed was not what the scenario says, runs that were interrupted, and no result at all.
pub fn junit(results: &[RunResult], without: &[NoResult<'_>]) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for result in results {
        let walls = result.cases.iter().filter_map(|c| c.wall_s);
        let seconds = walls.fold(0.0, |a, b| a + b);
        suite(&mut out, &result.scenario, &tests(result), seconds);
    }
    for NoResult { scenario, why } in without {
        let test = (RUNS.to_owned(), Some(("error", why.clone())));
        suite(&mut out, scenario, &[test], 0.0);
    }
    out + "</testsuites>\n"
}

/// The test that stands for the runs themselves.
const RUNS: &str = "runs";

/// Its title, and the element and the text that say what came of it; `None`: it passed.
type Test = (String, Option<(&'static str, String)>);

fn tests(result: &RunResult) -> Vec<Test> {
    let mut tests = Vec::new();
    let rows = judged(result);
    for (row, title) in rows.iter().zip(titles(&rows)) {
        let outcome = match (row.result.pass, row.result.unclear) {
            (false, _) => Some("failure"),
            // Neither passed nor failed.
            (true, true) => Some("skipped"),
            (true, false) => None,
        };
        let said = outcome.map(|kind| (kind, row.sentence(&result.scenario)));
        tests.push((title, said));
    }
    if let Some(interrupted) = &result.interrupted {
        let why = format!("interrupted {interrupted}: no expectation was judged");
        tests.push((RUNS.to_owned(), Some(("error", why))));
    } else if tests.is_empty() {
        tests.push((RUNS.to_owned(), None));
    }
    if let Some(untrue) = result.untrue() {
        tests.push(("test bed".to_owned(), Some(("error", untrue))));
    }
    tests
}

/// Titles that tell the tests of a suite apart, as what reads them keeps one test of a title: the
/// name and the case, with what is accepted where these are not enough, and at last a number.
fn titles(rows: &[Judged<'_>]) -> Vec<String> {
    let mut alike: BTreeMap<_, usize> = BTreeMap::new();
    for row in rows {
        *alike.entry((&row.result.name, &row.case)).or_default() += 1;
    }
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    let title = |row: &Judged<'_>| {
        let mut title = row.result.name.clone();
        if alike[&(&row.result.name, &row.case)] > 1 {
            title += &format!(" {}", row.accepted);
        }
        if !row.case.is_empty() {
            title += &format!(" [{}]", row.case);
        }
        let nth = given.entry(title.clone()).or_default();
        *nth += 1;
        match *nth {
            1 => title,
            nth => format!("{title} ({nth})"),
        }
    };
    rows.iter().map(title).collect()
}

fn suite(out: &mut String, scenario: &str, tests: &[Test], seconds: f64) {
    let name = escaped(scenario);
    let count = |kind| {
        let outcomes = tests.iter().filter_map(|(_, outcome)| outcome.as_ref());
        outcomes.filter(|(k, _)| *k == kind).count()
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
         skipped=\"{}\" time=\"{seconds:.3}\">",
        tests.len(),
        count("failure"),
        count("error"),
        count("skipped"),
    );
    for (title, outcome) in tests {
        let title = escaped(title);
        let head = format!("    <testcase classname=\"{name}\" name=\"{title}\"");
        let _ = match outcome {
            None => writeln!(out, "{head}/>"),
            Some((kind, text)) => writeln!(
                out,
                "{head}>\n      <{kind} message=\"{}\"/>\n    </testcase>",
                escaped(text)
            ),
        };
    }
    *out += "  </testsuite>\n";
}

/// Text of an attribute. Characters that XML 1.0 does not have (section 2.2) are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use fullpipe_results::result::Interrupted;

    use super::super::testing::two_cases;
    use super::*;

    #[test]
    fn a_suite_per_scenario_and_a_test_per_expectation() {
        insta::assert_snapshot!(junit(&[two_cases(2)], &[]));
    }

    #[test]
    fn equal_expectations_are_numbered() {
        let mut result = two_cases(1);
        result.expectations[1] = result.expectations[0].clone();
        let rows = judged(&result);
        assert_eq!(
            titles(&rows),
            [
                "n 80 to 90 [reno]",
                "n 80 to 90 [reno] (2)",
                "n at most 1 [reno]"
            ]
        );
    }

    #[test]
    fn what_was_not_judged_is_an_error() {
        let mut result = two_cases(1);
        result.expectations.clear();
        result.interrupted = Some(Interrupted { done: 2, total: 8 });
        let later = NoResult {
            scenario: "later",
            why: "not reached".to_owned(),
        };
        let xml = junit(&[result], &[later]);
        let errors = xml.matches("tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\"");
        assert_eq!(errors.count(), 2, "{xml}");
        for why in [
            "<error message=\"interrupted after 2 of 8 runs: no expectation was judged\"/>",
            "<error message=\"not reached\"/>",
        ] {
            assert!(xml.contains(why), "{xml}");
        }
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(
            escaped("a<\"b\">&\u{1}\n"),
            "a&lt;&quot;b&quot;&gt;&amp;\u{fffd} "
        );
    }
}
