//! Results in GitHub's markdown, for a comment or the summary of a job.

use fullpipe_results::result::RunResult;

use super::{expectations, flows, links, queues_compete, spread, traffic};

/// Of each result: what failed first, then its tables.
pub fn markdown(results: &[RunResult]) -> String {
    let parts: Vec<String> = results.iter().map(one).collect();
    parts.join("\n")
}

fn one(result: &RunResult) -> String {
    let ground = result.kernel.as_ref().unwrap_or(&result.ground);
    let mut out = format!("### {} ({ground})\n", result.scenario);
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
    use super::super::testing::two_cases;
    use super::*;

    #[test]
    fn what_failed_stands_first() {
        insta::assert_snapshot!(markdown(&[two_cases(2)]));
    }
}
