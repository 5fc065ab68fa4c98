//! Results as JUnit's XML, which continuous integration reads: a suite per scenario, a test per
//! expectation and case.
//!
//! The elements are those of the schema of Jenkins' JUnit plug-in, which GitLab, GitHub's actions
//! and others read too.

use std::fmt::Write as _;

use fullpipe_results::result::RunResult;

use super::expectations::judged;

/// One document. A scenario without expectations has one test that passes; a case whose test bed
/// was not what the scenario says is an error.
pub fn junit(results: &[RunResult]) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    results.iter().for_each(|result| suite(&mut out, result));
    out + "</testsuites>\n"
}

fn suite(out: &mut String, result: &RunResult) {
    let name = escaped(&result.scenario);
    let mut tests = Vec::new();
    for row in judged(result) {
        let bracket = match row.case.as_str() {
            "" => String::new(),
            case => format!(" [{case}]"),
        };
        let title = escaped(&format!("{}{bracket}", row.result.name));
        let outcome = match (row.result.pass, row.result.unclear) {
            (false, _) => Some("failure"),
            // Neither passed nor failed.
            (true, true) => Some("skipped"),
            (true, false) => None,
        };
        let said = outcome.map(|kind| (kind, row.sentence(&result.scenario)));
        tests.push((title, said));
    }
    if tests.is_empty() {
        tests.push(("runs".to_owned(), None));
    }
    if let Some(untrue) = result.untrue() {
        tests.push(("test bed".to_owned(), Some(("error", untrue))));
    }
    let count = |kind| {
        let outcomes = tests.iter().filter_map(|(_, outcome)| outcome.as_ref());
        outcomes.filter(|(k, _)| *k == kind).count()
    };
    let seconds = (result.cases.iter())
        .filter_map(|c| c.wall_s)
        .fold(0.0, |a, b| a + b);
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
    for (title, outcome) in &tests {
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
    use super::super::testing::two_cases;
    use super::*;

    #[test]
    fn a_suite_per_scenario_and_a_test_per_expectation() {
        insta::assert_snapshot!(junit(&[two_cases(2)]));
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(
            escaped("a<\"b\">&\u{1}\n"),
            "a&lt;&quot;b&quot;&gt;&amp;\u{fffd} "
        );
    }
}
