//! Results in GitHub's markdown, for a comment or the summary of a job.

use fullpipe_results::result::RunResult;

use super::{expectations, flows, links, not_valid, queues_compete, spread, traffic};

/// Of each result: first whether it counts, then what failed and its tables.
pub fn markdown(results: &[RunResult]) -> String {
    let parts: Vec<String> = results.iter().map(one).collect();
    parts.join("\n")
}

fn one(result: &RunResult) -> String {
    let ground = result.kernel.as_ref().unwrap_or(&result.ground);
    let mut out = format!("### {} ({ground})\n", result.scenario);
    if let Some(not_valid) = not_valid(result) {
        out += &format!("\n**{}**\n", not_valid.trim_end());
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
    if queues_compete(result) {
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

    use super::super::testing::two_cases;
    use super::*;

    #[test]
    fn what_failed_stands_first() {
        insta::assert_snapshot!(markdown(&[two_cases(2)]));
    }

    #[test]
    fn what_does_not_count_says_so_first() {
        let mut result = two_cases(2);
        result.cases[0].fidelity = Some(Fidelity {
            unplanned_drops: 1,
            ..Fidelity::default()
        });
        let text = markdown(&[result]);
        let first = text.lines().nth(2).unwrap();
        assert!(first.starts_with("**NOT VALID: "), "{text}");
        assert_eq!(text.matches("NOT VALID").count(), 1, "{text}");
    }
}
