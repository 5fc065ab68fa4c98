//! What a search found, in numbers: shares of agreement by class, refusals by reason, and
//! disagreements grouped by what they have in common.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::draw::Class;
use super::judge::{Difference, Metric, Verdict, worst};
use super::log::Record;
use super::trial::Trial;

/// Everything that a log holds, summed up.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// One row per class, and all of them.
    pub classes: Vec<Row>,
    /// Disagreements, the largest groups first.
    pub groups: Vec<Group>,
    /// Draws that a ground cannot do, by reason.
    pub refused: BTreeMap<String, usize>,
    /// Faults of a ground and broken invariants: seed and words.
    pub faults: Vec<(u64, String)>,
}

/// Scenarios of a class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// `None`: of all classes.
    pub class: Option<Class>,
    /// Trials that both grounds ran.
    pub tried: usize,
    /// Within the bounds.
    pub agree: usize,
    /// Beyond them, and within chance.
    pub chance: usize,
    /// Beyond both.
    pub disagree: usize,
    /// Refused by a ground, or failed.
    pub not_run: usize,
}

impl Row {
    /// Part of those tried that agree, or are within chance.
    pub fn share(&self) -> f64 {
        (self.agree + self.chance) as f64 / self.tried.max(1) as f64
    }

    fn count(&mut self, trial: &Trial) {
        let Trial::Compared(compared) = trial else {
            self.not_run += 1;
            return;
        };
        self.tried += 1;
        match compared.verdict {
            Verdict::Agrees => self.agree += 1,
            Verdict::Chance => self.chance += 1,
            Verdict::Disagrees => self.disagree += 1,
        }
    }
}

/// Disagreements of one class, with the same congestion control, in the same direction.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Class.
    pub class: Class,
    /// Congestion control of the flows.
    pub stack: String,
    /// The metric that is furthest off.
    pub metric: Metric,
    /// The simulator's value is the higher one.
    pub higher: bool,
    /// Scenarios in the group.
    pub count: usize,
    /// Seed of the largest.
    pub seed: u64,
    /// The largest.
    pub worst: Difference,
}

impl Summary {
    /// Counts a log.
    pub fn of(records: &[Record]) -> Self {
        let mut classes: BTreeMap<Class, Row> = BTreeMap::new();
        let mut all = Row::default();
        let mut groups: BTreeMap<(Class, &str, Metric, bool), Group> = BTreeMap::new();
        let mut refused = BTreeMap::new();
        let mut faults = Vec::new();
        for r in records {
            let row = classes.entry(r.class).or_default();
            row.class = Some(r.class);
            row.count(&r.trial);
            all.count(&r.trial);
            match &r.trial {
                Trial::Refused { reason } => *refused.entry(reason.clone()).or_default() += 1,
                Trial::Fault { what } => faults.push((r.seed, what.clone())),
                Trial::Compared(c) => {
                    faults.extend(c.broken.iter().map(|b| (r.seed, b.clone())));
                    let Some(d) = worst(r.class, &c.differences) else {
                        continue;
                    };
                    let key = (r.class, r.stack.as_str(), d.metric, d.size > 0.0);
                    let group = groups.entry(key).or_insert_with(|| Group {
                        class: r.class,
                        stack: r.stack.clone(),
                        metric: d.metric,
                        higher: d.size > 0.0,
                        count: 0,
                        seed: r.seed,
                        worst: d.clone(),
                    });
                    group.count += 1;
                    if d.size.abs() > group.worst.size.abs() {
                        (group.seed, group.worst) = (r.seed, d.clone());
                    }
                }
            }
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|g| std::cmp::Reverse(g.count));
        let classes = classes.into_values().chain([all]).collect();
        Self {
            classes,
            groups,
            refused,
            faults,
        }
    }

    /// For pages: a table of the classes, one of the disagreements, and the refusals.
    pub fn markdown(&self) -> String {
        let mut t = String::new();
        let _ = writeln!(
            t,
            "| class | on both grounds | agree | within chance | disagree | share |\n\
             |---|---:|---:|---:|---:|---:|"
        );
        for row in &self.classes {
            let class = row.class.map_or_else(|| "all".to_owned(), Class::name);
            let _ = writeln!(
                t,
                "| {class} | {} | {} | {} | {} | {:.1} % |",
                row.tried,
                row.agree,
                row.chance,
                row.disagree,
                row.share() * 100.0
            );
        }
        if !self.groups.is_empty() {
            let _ = writeln!(
                t,
                "\n| class | stack | metric | scenarios | Linux | simulator | difference | seed |\n\
                 |---|---|---|---:|---:|---:|---:|---:|"
            );
        }
        for g in &self.groups {
            let _ = writeln!(
                t,
                "| {} | {} | {} | {} | {:.4} | {:.4} | {:+.1} % | {} |",
                g.class.name(),
                g.stack,
                g.metric.name(),
                g.count,
                g.worst.linux,
                g.worst.sim,
                g.worst.size * 100.0,
                g.seed
            );
        }
        if !self.refused.is_empty() {
            let _ = writeln!(t, "\n| refused | draws |\n|---|---:|");
        }
        for (reason, count) in &self.refused {
            let _ = writeln!(t, "| {reason} | {count} |");
        }
        for (seed, what) in &self.faults {
            let _ = writeln!(t, "\nFault, seed {seed}: {what}");
        }
        t
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut t = String::new();
        // Writing to a `String` cannot fail, here and below.
        let _ = writeln!(
            t,
            "class         tried  agree  chance  disagree  share  not run"
        );
        for row in &self.classes {
            let class = row.class.map_or_else(|| "all".to_owned(), Class::name);
            let _ = writeln!(
                t,
                "{class:<12} {:>6} {:>6} {:>7} {:>9} {:>5.1}% {:>8}",
                row.tried,
                row.agree,
                row.chance,
                row.disagree,
                row.share() * 100.0,
                row.not_run
            );
        }
        if !self.groups.is_empty() {
            let _ = writeln!(
                t,
                "\nclass        stack                       metric      count        Linux    \
                 simulator      size  seed"
            );
        }
        for g in &self.groups {
            let _ = writeln!(
                t,
                "{:<12} {:<27} {:<11} {:>5} {:>12.4} {:>12.4} {:>+8.1} %  {}",
                g.class.name(),
                g.stack,
                g.metric.name(),
                g.count,
                g.worst.linux,
                g.worst.sim,
                g.worst.size * 100.0,
                g.seed
            );
        }
        for (reason, count) in &self.refused {
            let _ = writeln!(t, "\nrefused {count}: {reason}");
        }
        for (seed, what) in &self.faults {
            let _ = writeln!(t, "\nfault, seed {seed}: {what}");
        }
        t
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::{FlowSeen, Seen};
    use super::super::trial::Compared;
    use super::*;

    fn record(seed: u64, verdict: Verdict) -> Record {
        let flow = FlowSeen {
            goodput: 9.0,
            rtt: 40.0,
            rtt_min: 40.0,
            completion: None,
            sent: 1,
            retransmits: 0,
            dropped: 0,
            duplicates: 0,
            events: 0,
            timeouts: 0,
            undone: 0,
            cwnd: 1.0,
            cwnd_max: 1.0,
        };
        let seen = Seen { flows: vec![flow] };
        let difference = Difference {
            metric: Metric::Goodput,
            flow: 0,
            linux: 8.0,
            sim: 9.0,
            size: 0.125,
            chance: 0.01,
            verdict,
        };
        Record {
            seed,
            class: Class::Outage,
            stack: "reno-linux".to_owned(),
            scenario: String::new(),
            kernel: String::new(),
            trial: Trial::Compared(Compared {
                verdict,
                differences: vec![difference],
                broken: Vec::new(),
                linux: vec![seen.clone()],
                sim: seen,
            }),
        }
    }

    #[test]
    fn the_page_counts_verdicts_and_shows_disagreements() {
        let mut records = vec![
            record(1, Verdict::Agrees),
            record(2, Verdict::Chance),
            record(3, Verdict::Disagrees),
        ];
        records[0].trial = Trial::Refused {
            reason: "no".to_owned(),
        };
        let page = Summary::of(&records).markdown();
        assert!(
            page.contains("| outage | 2 | 0 | 1 | 1 | 50.0 % |"),
            "{page}"
        );
        let group = "| outage | reno-linux | goodput | 1 | 8.0000 | 9.0000 | +12.5 % | 3 |";
        assert!(page.contains(group), "{page}");
        assert!(page.contains("| no | 1 |"), "{page}");
    }
}
