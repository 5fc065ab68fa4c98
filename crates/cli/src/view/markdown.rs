//! Results in GitHub's markdown, for a comment or the summary of a job.

use fullpipe_results::result::RunResult;

use super::{
    NoResult, expectations, flows, interrupted, links, links_tell, not_valid, spread, traffic,
};

/// Of each result: first whether it is whole and counts, then what failed and its tables. Then the
/// scenarios that have none.
pub fn markdown(results: &[RunResult], without: &[NoResult<'_>]) -> String {
    let mut parts: Vec<String> = results.iter().map(one).collect();
    let none =
        |none: &NoResult<'_>| format!("### {}\n\n**NO RESULT: {}**\n", none.scenario, none.why);
    parts.extend(without.iter().map(none));
    parts.join("\n")
}

fn one(result: &RunResult) -> String {
    let ground = result.kernel.as_ref().unwrap_or(&result.ground);
    let mut out = format!("### {} ({ground})\n", result.scenario);
    for first in [interrupted(result), not_valid(result)]
        .into_iter()
        .flatten()
    {
        out += &format!("\n**{}**\n", first.trim_end());
    }
    if result.cases.is_empty() {
        return out;
    }
    if !result.expectations.is_empty() {
        out += &format!("\n{}", expectations::summary(result));
        out += &format!("\n{}", expectations::table(result).markdown());
    }
    let traffics = result.cases.iter().any(|c| !c.traffic.is_empty());
    if !traffics || result.cases.iter().any(|c| !c.flows.is_empty()) {
        out += &format!("\n{}", flows::table(result, &[]).markdown());
    }
    if traffics {
        out += &format!("\n{}", traffic::table(result, &[]).markdown());
    }
    if links_tell(result) {
        out += &format!("\n{}", links::table(result, &[]).markdown());
    }
    // Each remark is a paragraph.
    for remark in spread(result).lines() {
        out += &format!("\n{remark}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use fullpipe_metrics::Fidelity;
    use fullpipe_results::result::Interrupted;

    use super::super::testing::two_cases;
    use super::*;

    #[test]
    fn what_failed_stands_first() {
        insta::assert_snapshot!(markdown(&[two_cases(2)], &[]));
    }

    #[test]
    fn what_does_not_count_says_so_first() {
        let mut result = two_cases(2);
        result.cases[0].fidelity = Some(Fidelity {
            unplanned_drops: 1,
            ..Fidelity::default()
        });
        let text = markdown(&[result], &[]);
        let first = text.lines().nth(2).unwrap();
        assert!(first.starts_with("**NOT VALID: "), "{text}");
        assert_eq!(text.matches("NOT VALID").count(), 1, "{text}");
    }

    #[test]
    fn what_was_interrupted_says_so_first() {
        let mut result = two_cases(2);
        result.expectations.clear();
        result.interrupted = Some(Interrupted { done: 2, total: 8 });
        let later = NoResult {
            scenario: "later",
            why: "not reached".to_owned(),
        };
        let text = markdown(&[result], &[later]);
        let first = text.lines().nth(2).unwrap();
        assert!(
            first.starts_with("**INTERRUPTED after 2 of 8 runs: "),
            "{text}"
        );
        assert!(
            text.ends_with("\n### later\n\n**NO RESULT: not reached**\n"),
            "{text}"
        );
    }
}
