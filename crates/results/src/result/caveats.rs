//! What is to be said about a result before it is believed.

use super::{CaseResult, PrecisionResult, RunResult};
use fullpipe_metrics::Fidelity;

impl RunResult {
    /// What is to be said about means that are less sure than was asked for; `None` if all are
    /// sure.
    pub fn unsure(&self) -> Option<String> {
        let judged = self.judged(|c| c.precision.as_ref());
        let missed: Vec<_> = judged.iter().filter(|(_, p)| !p.reached).collect();
        let width = |p: &PrecisionResult| p.achieved.unwrap_or(f64::INFINITY);
        let (case, p) = missed
            .iter()
            .max_by(|a, b| width(a.1).total_cmp(&width(b.1)))?;
        let percent = |x: f64| format!("{} %", (x * 1e3).round() / 10.0);
        let of =
            p.of.as_ref()
                .map_or(String::new(), |of| format!(" of {of}"));
        let achieved = match p.achieved {
            Some(width) => format!("±{}", percent(width)),
            None => "undefined, or zero with a spread".to_owned(),
        };
        let n = case.seeds.len();
        let seeds = format!("{n} seed{}", if n == 1 { "" } else { "s" });
        Some(format!(
            "the precision of ±{} is not reached in {} of {} cases; worst: {}{of} is {achieved} after {seeds}{}",
            percent(p.target),
            missed.len(),
            judged.len(),
            p.metric,
            which(case),
        ))
    }

    /// What of the runs the means leave out; `None` without a warm-up.
    pub fn warmup(&self) -> Option<String> {
        let spans = || self.cases.iter().map(|c| c.warmup_s);
        let (least, most) = (
            spans().reduce(f64::min)?,
            spans().reduce(f64::max).filter(|most| *most > 0.0)?,
        );
        // A part of the time of a test that was made shorter.
        let short = |seconds: f64| (seconds * 1e3).round() / 1e3;
        let first = match least == most {
            true => short(most).to_string(),
            false => format!("{} to {}", short(least), short(most)),
        };
        Some(format!(
            "the first {first} s (warm-up) are in counts, not in means"
        ))
    }

    /// What is to be said about chance: cases whose seeds all gave the same numbers, or in whose
    /// only run nothing is random, and cases whose flows start in the same phase with every seed,
    /// so that who wins may be a matter of phase. `None` where there is nothing to say.
    pub fn repeated(&self) -> Option<String> {
        let place = |n: usize, all: &str| match (n, self.cases.len()) {
            (_, 1) => String::new(),
            (n, cases) if n == cases => all.to_owned(),
            (n, cases) => format!(" in {n} of {cases} cases"),
        };
        let fixed: Vec<&CaseResult> = self.cases.iter().filter(|c| c.seeds_repeat).collect();
        let seeds = fixed.iter().map(|c| c.seeds.len()).max().unwrap_or(0);
        let in_phase = self.cases.iter().filter(|c| c.in_phase).count();
        let fixed_in_phase = fixed.iter().filter(|c| c.in_phase).count();
        let mut said = Vec::new();
        if seeds > 1 || fixed_in_phase > 0 {
            said.push(match seeds > 1 {
                false => format!("nothing is random{}", place(fixed.len(), " in any case")),
                true => format!(
                    "all {seeds} seeds give the same numbers{}: more seeds make nothing surer",
                    place(fixed.len(), " in every case")
                ),
            });
        }
        if in_phase > 0 {
            said.push(format!(
                "competing flows meet in the same phase every time{}: `start_spread = \"1s\"` in \
                 [[flow]] draws their starts from the seed",
                place(in_phase, "")
            ));
        }
        if let Some(ties) = self.ties() {
            said.push(ties);
        }
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// The link at which phase, not chance, decides most often who loses, if there is one.
    fn ties(&self) -> Option<String> {
        let cases = self.cases.iter();
        let tied = cases.filter_map(|case| Some((case.tied()?, case)));
        let ((part, link), case) = tied.max_by(|(a, _), (b, _)| a.0.total_cmp(&b.0))?;
        Some(format!(
            "of the packets that link {link} dropped{} {:.0} % came in the same nanosecond as one of \
             another flow, which took the last place: phase decides who loses, and a kernel, or a \
             path, decides otherwise; `jitter` at the links, of the time that a packet takes there \
             (120us for 1500 bytes at 100 Mbit/s), makes it chance",
            which(case),
            100.0 * part,
        ))
    }

    /// What is to be said about runs that ended before their time; `None` if there is none.
    pub fn partial(&self) -> Option<String> {
        let cut = self.judged(|c| c.partial.as_ref());
        let (case, why) = cut.first()?;
        let cases = match self.cases.len() {
            1 => String::new(),
            all => format!("{} of {all} cases: ", cut.len()),
        };
        let lasted = (case.simulated_s * 10.0).round() / 10.0;
        Some(format!(
            "{cases}measured for {lasted} s{}: {why}",
            which(case)
        ))
    }

    /// What is to be said about cases whose path or hosts were not what they claim: how many, who
    /// was late and by how much, and what to do about it; `None` if there is none.
    pub fn untrue(&self) -> Option<String> {
        let judged = self.judged(|c| c.fidelity.as_ref());
        let untrue: Vec<_> = judged.iter().filter(|(_, f)| !f.valid).collect();
        let beyond = |f: &Fidelity| (f.unplanned_drops > 0, f.excess());
        let (case, worst) = untrue.iter().max_by(|a, b| {
            let ((drops, late), (others, later)) = (beyond(a.1), beyond(b.1));
            drops.cmp(&others).then(late.total_cmp(&later))
        })?;
        let cases = match judged.len() {
            1 => "these are numbers of the test bed".to_owned(),
            all => format!(
                "{} of {all} cases have numbers of the test bed and do not count; worst",
                untrue.len()
            ),
        };
        Some(format!(
            "{cases}: {}{}; {}",
            worst.faults().join("; "),
            which(case),
            worst
                .remedy(&self.ground, in_real_time())
                .unwrap_or_default(),
        ))
    }

    /// What the test bed had to do with the numbers, the worst of all cases
    /// ([`Fidelity::sentence`]); `None` where time is virtual.
    pub fn test_bed(&self) -> Option<String> {
        let all = self.cases.iter().filter_map(|c| c.fidelity.as_ref());
        Fidelity::worst(all).map(|f| f.sentence())
    }

    /// The cases that were judged, with what came of it.
    fn judged<'a, T>(
        &'a self,
        of: impl Fn(&'a CaseResult) -> Option<&'a T>,
    ) -> Vec<(&'a CaseResult, &'a T)> {
        let cases = self.cases.iter();
        cases.filter_map(|c| Some((c, of(c)?))).collect()
    }
}

/// Ties of a link from which on phase has a say: so many, and this part of its drops.
const TIES_AT_LEAST: f64 = 10.0;
const TIED_PART: f64 = 0.1;

impl CaseResult {
    /// The link at which phase decides most often who loses, and of what part of its drops; `None`:
    /// it does so nowhere.
    pub(crate) fn tied(&self) -> Option<(f64, &str)> {
        let tied = self.links.iter().filter_map(|link| {
            let (ties, drops) = (link.value("ties")?, link.value("buffer_drops")?);
            let many = ties >= TIES_AT_LEAST && ties >= TIED_PART * drops;
            many.then_some((ties / drops, link.name.as_str()))
        });
        tied.max_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// The parameters of a case in brackets, if it has any.
fn which(case: &CaseResult) -> String {
    match case.params.is_empty() {
        true => String::new(),
        false => format!(" ({})", case.params),
    }
}

/// Whether this program was started with real-time priority (`chrt -r`): policy FIFO or RR, field
/// 41 of proc_pid_stat(5).
pub fn in_real_time() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, field 2, may have spaces and stands in parentheses.
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    matches!(behind_name.split_whitespace().nth(38), Some("1" | "2"))
}
