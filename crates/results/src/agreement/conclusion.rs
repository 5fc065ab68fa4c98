//! What follows from an agreement: whether the test bed held, whether it was chance, which causes
//! explain what parts, and what to try next.

use schemars::JsonSchema;
use serde::Serialize;

use super::cause::{CauseVerdict, Furthest, Tried};
use crate::compare::{Comparison, Row};
use crate::result::Params;
use fullpipe_metrics::Metric;

/// Why two grounds part, as far as switched causes and repeated seeds tell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Conclusion {
    /// Whether the hosts and the path were what the scenario says.
    pub test_bed: TestBed,
    /// Whether two runs of the same are as far apart.
    pub chance: Chance,
    /// Causes that explain everything that parts, chance apart.
    pub explained_by: Vec<String>,
    /// Causes that explain a part of it.
    pub in_part_by: Vec<String>,
    /// Causes with which they are further apart.
    pub worse_with: Vec<String>,
    /// What is furthest beyond its threshold, no cause switched.
    pub furthest: Option<Furthest>,
    /// Known causes of these grounds that were not tried, or could not be.
    pub not_tried: Vec<String>,
    /// Cases in which no flow of either side had a congestion event or a timeout: they agree about
    /// nothing that a window law decides.
    pub unexercised: Vec<Params>,
    /// All of it in sentences, and what to try next.
    pub says: Vec<String>,
}

/// Whether the hosts and the path were what the scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestBed {
    /// Time is virtual on both grounds.
    None,
    /// No run was flagged.
    Held,
    /// Runs were flagged.
    Flagged,
}

/// Whether two runs of the same are as far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Chance {
    /// Both grounds repeat a run to the byte, or the same once more parted as much.
    Excluded,
    /// The same once more agreed, or parted less.
    Possible,
    /// The same once more was not tried.
    Untried,
}

/// What two grounds were held against each other with.
pub(super) struct Found<'a> {
    pub comparison: &'a Comparison,
    pub left_out: &'a [Params],
    pub furthest: Option<Furthest>,
    pub causes: &'a [Tried],
    /// Known causes of these grounds that were not switched.
    pub left: &'a [&'a str],
    pub seeds: usize,
}

/// The cause that switches nothing.
const CHANCE: &str = "wake-ups";

/// Causes that draw numbers: of each a run with one seed is one draw.
const DRAWN: [&str; 2] = ["ties", "phase"];

/// Seeds from which on an interval is worth something.
const ENOUGH: usize = 5;

/// Judges test bed, chance and causes, and names the next step.
pub(super) fn conclude(found: &Found<'_>) -> Conclusion {
    let of = |wanted: CauseVerdict| -> Vec<String> {
        let causes = found.causes.iter().filter(|c| c.cause != CHANCE);
        let causes = causes.filter(|c| c.verdict == wanted);
        causes.map(|c| c.cause.clone()).collect()
    };
    let mut not_tried: Vec<String> = found.left.iter().map(|c| (*c).to_owned()).collect();
    not_tried.extend(of(CauseVerdict::Untried));
    let mut conclusion = Conclusion {
        test_bed: test_bed(found),
        chance: Chance::Untried,
        explained_by: of(CauseVerdict::Explains),
        in_part_by: of(CauseVerdict::InPart),
        worse_with: of(CauseVerdict::Worse),
        furthest: found.furthest.clone(),
        not_tried,
        unexercised: unexercised(found.comparison),
        says: Vec::new(),
    };
    let chance = found.causes.iter().find(|c| c.cause == CHANCE);
    conclusion.chance = match (chance.map(|c| c.verdict), conclusion.test_bed) {
        (Some(CauseVerdict::No | CauseVerdict::Worse), _) | (None, TestBed::None) => {
            Chance::Excluded
        }
        (Some(CauseVerdict::Explains | CauseVerdict::InPart), _) => Chance::Possible,
        (Some(CauseVerdict::Untried) | None, _) => Chance::Untried,
    };
    conclusion.says = sentences(found, &conclusion);
    conclusion
}

fn test_bed(found: &Found<'_>) -> TestBed {
    let sides = [&found.comparison.a, &found.comparison.b];
    if !found.left_out.is_empty() || sides.iter().any(|side| side.untrue.is_some()) {
        TestBed::Flagged
    } else if sides.iter().any(|side| side.test_bed.is_some()) {
        TestBed::Held
    } else {
        TestBed::None
    }
}

/// Cases in which every flow has neither an event nor a timeout on both sides.
fn unexercised(comparison: &Comparison) -> Vec<Params> {
    let counts = |row: &&Row| EVENTS.iter().any(|m| m.name == row.metric) && row.flow.is_some();
    let none = |x: Option<f64>| x.is_none_or(|x| x == 0.0);
    let mut quiet: Vec<Params> = Vec::new();
    for row in comparison.rows.iter().filter(counts) {
        if !quiet.contains(&row.params) {
            quiet.push(row.params.clone());
        }
    }
    let rows = comparison.rows.iter().filter(counts);
    for row in rows.filter(|row| !none(row.a.mean) || !none(row.b.mean)) {
        quiet.retain(|params| *params != row.params);
    }
    quiet
}

const EVENTS: [&Metric; 2] = [Metric::flow("loss_events"), Metric::flow("timeouts")];

fn sentences(found: &Found<'_>, c: &Conclusion) -> Vec<String> {
    let mut says = Vec::new();
    match c.unexercised.len() {
        0 => {}
        1 if c.unexercised[0].to_string().is_empty() => says.push(format!("{QUIET}.")),
        n => says.push(format!(
            "{QUIET} in {n} of the cases: {}.",
            listed(&c.unexercised, "; ")
        )),
    }
    if found.comparison.rows.is_empty() && !found.left_out.is_empty() {
        says.push(NOTHING.to_owned());
        return says;
    }
    if found.comparison.agree || found.comparison.rows.is_empty() {
        return says;
    }
    says.push(match c.test_bed {
        TestBed::None => {
            "Time is virtual on both grounds: no test bed, and a seed repeats itself.".to_owned()
        }
        TestBed::Held => "The test bed held: no run was flagged.".to_owned(),
        TestBed::Flagged => "The test bed did not hold: runs were flagged.".to_owned(),
    });
    if let Some(furthest) = &c.furthest {
        says.push(match furthest.times {
            Some(times) => {
                format!(
                    "Furthest: {}, {times:.1} times its threshold.",
                    furthest.place()
                )
            }
            None => format!("Furthest: {}, which one side alone has.", furthest.place()),
        });
    }
    let once_more = found.causes.iter().find(|t| t.cause == CHANCE);
    match (c.chance, once_more.and_then(|t| Some((t, t.after?)))) {
        (Chance::Excluded, Some((t, after))) => says.push(format!(
            "Not chance: run once more, {after} numbers are beyond their thresholds, as {} \
             were{}.",
            t.before,
            far(t)
        )),
        (Chance::Possible, Some((t, after))) => says.push(format!(
            "Chance plays a part: run once more, {after} of {} numbers are beyond their \
             thresholds{}.",
            t.before,
            far(t)
        )),
        (Chance::Untried, _) => says.push(format!("Chance was not tested (`{CHANCE}`).")),
        _ => {}
    }
    let tried: Vec<&str> = found.causes.iter().map(|t| t.cause.as_str()).collect();
    let tried: Vec<&str> = tried.into_iter().filter(|t| *t != CHANCE).collect();
    if !c.explained_by.is_empty() {
        says.push(format!("Explained by {}.", quoted(&c.explained_by)));
    } else if !c.in_part_by.is_empty() {
        let parts = found
            .causes
            .iter()
            .filter(|t| c.in_part_by.contains(&t.cause));
        let parts = parts.map(|t| {
            let left = t.after.unwrap_or_default();
            format!("`{}` ({left} of {} left{})", t.cause, t.before, far(t))
        });
        says.push(format!(
            "Explained in part by {}.",
            parts.collect::<Vec<_>>().join(", ")
        ));
    } else if tried.is_empty() {
        says.push("No cause was tried.".to_owned());
    } else {
        says.push(format!(
            "Explained by none of those tried: {}.",
            quoted(&tried)
        ));
    }
    if !c.worse_with.is_empty() {
        says.push(format!("Further apart with {}.", quoted(&c.worse_with)));
    }
    let differ = |row: &Row| row.difference_ci95.is_some_and(|[low, high]| low < high);
    if c.test_bed == TestBed::None
        && found.seeds < ENOUGH
        && !tried.is_empty()
        && found.comparison.rows.iter().any(differ)
    {
        says.push(format!(
            "{} seeds are few: what reshuffles a run may look like a cause (`--repeat {ENOUGH}`).",
            found.seeds
        ));
    }
    let explain = match c.explained_by.is_empty() {
        true => &c.in_part_by,
        false => &c.explained_by,
    };
    for (cause, keys) in KEYS
        .iter()
        .filter(|(cause, _)| explain.iter().any(|e| e == cause))
    {
        says.push(format!(
            "What `{cause}` switches, a scenario sets by {keys}."
        ));
    }
    if !c.not_tried.is_empty() {
        says.push(format!("Not tried: {}.", quoted(&c.not_tried)));
    }
    if let Some(next) = next(found, c) {
        says.push(next);
    }
    says
}

/// What a user writes for the causes that are keys of a scenario.
const KEYS: [(&str, &str); 6] = [
    ("module", "the kernel's modules: `cubic-linux` for `cubic`"),
    ("preset", "`preset = \"linux\"`"),
    (
        "host",
        "`preset = \"linux\"` and the kernel's modules: `cubic-linux` for `cubic`",
    ),
    ("hystart-gso", "`cubic-linux(gso_max_size=65536)`"),
    (
        "host-gso",
        "`preset = \"linux\"` and `cubic-linux(gso_max_size=65536)`",
    ),
    ("phase", "`jitter` of its links"),
];

/// `, the furthest 12.3x for 48.2x`: after the switch and before it.
fn far(tried: &Tried) -> String {
    match (&tried.furthest_before, &tried.furthest_after) {
        (None, None) => String::new(),
        (before, after) => format!(
            ", the furthest {} for {}",
            Furthest::text(after.as_ref()),
            Furthest::text(before.as_ref())
        ),
    }
}

/// What to try, where nothing explains it all.
fn next(found: &Found<'_>, c: &Conclusion) -> Option<String> {
    if !c.explained_by.is_empty() {
        return None;
    }
    let mut steps = Vec::new();
    if c.test_bed == TestBed::Flagged {
        steps.push("a quieter machine".to_owned());
    }
    let left: Vec<&str> = found.left.to_vec();
    if !left.is_empty() {
        steps.push(format!("`--causes {}`", left.join(",")));
    }
    // In virtual time a seed repeats itself, unless a switch lets chance in.
    let draws = |tried: &Tried| DRAWN.contains(&tried.cause.as_str());
    let chance = c.test_bed != TestBed::None || found.causes.iter().any(draws);
    if found.seeds < ENOUGH && chance {
        steps.push(format!("more seeds (`--repeat {ENOUGH}`)"));
    }
    if steps.is_empty() {
        steps.push("a longer `duration`".to_owned());
        steps.push("the windows over each other in agreement.html".to_owned());
    }
    Some(format!("Try next: {}.", steps.join(", ")))
}

const NOTHING: &str = "\
    Nothing is left to compare: every case has flagged runs. Repeat it on a quieter machine or at \
    a lower rate, or count them with `--with-flagged`.";

const QUIET: &str = "No congestion event: the laws were not exercised";

fn quoted(names: &[impl AsRef<str>]) -> String {
    let names = names.iter().map(|name| format!("`{}`", name.as_ref()));
    names.collect::<Vec<_>>().join(", ")
}

fn listed(params: &[Params], between: &str) -> String {
    let all = params.iter().map(ToString::to_string);
    all.collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Method, Number, Side, Verdict, View};

    fn tried(cause: &str, before: usize, after: usize) -> Tried {
        further(cause, [before, after], [None, None])
    }

    /// The furthest at these multiples of its threshold.
    fn further(cause: &str, count: [usize; 2], times: [Option<f64>; 2]) -> Tried {
        let [before, after] = count;
        let far = times.map(|times| {
            times.map(|times| Furthest {
                times: Some(times),
                metric: "goodput_mbps".to_owned(),
                of: Some("main".to_owned()),
                params: Params::default(),
            })
        });
        let verdict = CauseVerdict::of(count, [far[0].as_ref(), far[1].as_ref()]);
        let [furthest_before, furthest_after] = far;
        Tried {
            cause: cause.to_owned(),
            about: String::new(),
            ground: "sim".to_owned(),
            before,
            after: Some(after),
            furthest_before,
            furthest_after,
            why_not: None,
            verdict,
            cases: Vec::new(),
        }
    }

    fn comparison(events: f64, agree: bool) -> Comparison {
        let side = |ground: &str, test_bed: Option<&str>| Side {
            fullpipe: String::new(),
            scenario: "one".to_owned(),
            ground: ground.to_owned(),
            kernel: None,
            brought: Vec::new(),
            warmup: None,
            untrue: None,
            test_bed: test_bed.map(str::to_owned),
        };
        let number = |mean| Number {
            mean: Some(mean),
            ci95: None,
            seeds: 1,
        };
        let row = |metric: &str| Row {
            params: Params::default(),
            flow: Some("main".to_owned()),
            link: None,
            metric: metric.to_owned(),
            unit: "events",
            a: number(0.0),
            b: number(events),
            difference: None,
            difference_ci95: None,
            p: None,
            p_adjusted: None,
            chance: None,
            method: Method::Single,
            pairs: None,
            effect: None,
            relative: None,
            threshold: 0.0,
            verdict: Verdict::Same,
            judged: true,
        };
        Comparison {
            a: side("sim", None),
            b: side("kernel", Some("held")),
            rows: vec![row("loss_events"), row("timeouts")],
            distances: Vec::new(),
            missing: Vec::new(),
            left_out: Vec::new(),
            unknown: Vec::new(),
            view: View::Agreement,
            single: false,
            agree,
        }
    }

    fn concluded(events: f64, agree: bool, causes: &[Tried], left: &[&str]) -> Conclusion {
        conclude(&Found {
            comparison: &comparison(events, agree),
            left_out: &[],
            furthest: None,
            causes,
            left,
            seeds: 2,
        })
    }

    #[test]
    fn where_every_case_is_flagged_nothing_is_said_to_agree() {
        let mut nothing = comparison(0.0, false);
        nothing.rows.clear();
        let c = conclude(&Found {
            comparison: &nothing,
            left_out: &[Params::default()],
            furthest: None,
            causes: &[],
            left: &[],
            seeds: 2,
        });
        assert_eq!(
            (c.test_bed, c.says),
            (TestBed::Flagged, vec![NOTHING.to_owned()])
        );
    }

    #[test]
    fn rows_of_no_end_with_what_to_try() {
        let causes = [tried("ties", 3, 3), tried("wake-ups", 3, 4)];
        let c = concluded(2.0, false, &causes, &["preset", "host"]);
        assert_eq!((c.test_bed, c.chance), (TestBed::Held, Chance::Excluded));
        assert_eq!(c.not_tried, ["preset", "host"]);
        assert_eq!(
            c.says,
            [
                "The test bed held: no run was flagged.",
                "Not chance: run once more, 4 numbers are beyond their thresholds, as 3 were.",
                "Explained by none of those tried: `ties`.",
                "Not tried: `preset`, `host`.",
                "Try next: `--causes preset,host`, more seeds (`--repeat 5`).",
            ]
        );
    }

    #[test]
    fn more_seeds_help_in_virtual_time_where_a_switch_draws_numbers() {
        let says = |cause: &str| {
            let mut virtual_time = comparison(2.0, false);
            virtual_time.b.test_bed = None;
            let c = conclude(&Found {
                comparison: &virtual_time,
                left_out: &[],
                furthest: None,
                causes: &[tried(cause, 3, 3)],
                left: &[],
                seeds: 1,
            });
            c.says.last().cloned().unwrap_or_default()
        };
        assert_eq!(says("phase"), "Try next: more seeds (`--repeat 5`).");
        assert!(says("trains").starts_with("Try next: a longer `duration`"));
    }

    #[test]
    fn what_explains_it_is_named_and_chance_is_none() {
        let causes = [tried("preset", 3, 1), tried("wake-ups", 3, 2)];
        let c = concluded(2.0, false, &causes, &[]);
        assert_eq!(c.chance, Chance::Possible);
        assert_eq!(c.says[2], "Explained in part by `preset` (1 of 3 left).");
        assert_eq!(
            c.says[3],
            "What `preset` switches, a scenario sets by `preset = \"linux\"`."
        );
        let causes = [tried("preset", 3, 1), tried("host", 3, 0)];
        let c = concluded(2.0, false, &causes, &[]);
        assert_eq!((c.chance, c.explained_by.len()), (Chance::Untried, 1));
        assert_eq!(c.says[2], "Explained by `host`.");
        assert!(c.says[3].contains("`cubic-linux` for `cubic`"), "{c:?}");
    }

    /// Neither the count alone decides nor the furthest number.
    #[test]
    fn chance_and_causes_are_judged_by_count_and_furthest() {
        let of = |count, times: [f64; 2]| further("", count, times.map(Some)).verdict;
        assert_eq!(of([2, 2], [48.2, 12.3]), CauseVerdict::InPart);
        assert_eq!(of([2, 1], [12.3, 12.5]), CauseVerdict::InPart);
        assert_eq!(of([2, 1], [12.3, 48.2]), CauseVerdict::No);
        assert_eq!(of([2, 2], [12.3, 11.9]), CauseVerdict::No);
        assert_eq!(of([2, 3], [12.3, 2.0]), CauseVerdict::No);
        assert_eq!(of([2, 2], [12.3, 48.2]), CauseVerdict::Worse);
        assert_eq!(of([2, 0], [12.3, 0.0]), CauseVerdict::Explains);

        let once_more = further(CHANCE, [2, 2], [Some(48.2), Some(12.3)]);
        let worse = further("ties", [2, 3], [Some(2.0), Some(2.0)]);
        let c = concluded(2.0, false, &[once_more, worse], &[]);
        assert_eq!((c.chance, c.worse_with.len()), (Chance::Possible, 1));
        assert_eq!(
            c.says[1..3],
            [
                "Chance plays a part: run once more, 2 of 2 numbers are beyond their thresholds, \
                 the furthest 12.3x for 48.2x.",
                "Explained by none of those tried: `ties`.",
            ]
        );
        assert_eq!(c.says[3], "Further apart with `ties`.");
    }

    /// Where time is virtual a seed repeats itself: more of them are asked for only where they
    /// differ.
    #[test]
    fn without_a_test_bed_more_seeds_are_asked_for_where_they_differ() {
        let asks = |interval: Option<[f64; 2]>| {
            let mut both = comparison(2.0, false);
            both.b.test_bed = None;
            both.rows[0].difference_ci95 = interval;
            let c = conclude(&Found {
                comparison: &both,
                left_out: &[],
                furthest: None,
                causes: &[tried("ties", 3, 3)],
                left: &[],
                seeds: 2,
            });
            c.says.iter().any(|s| s.contains("2 seeds are few"))
        };
        assert!(!asks(None) && !asks(Some([1.0, 1.0])));
        assert!(asks(Some([1.0, 2.0])));
    }

    #[test]
    fn runs_without_an_event_agree_about_nothing() {
        let c = concluded(0.0, true, &[], &[]);
        assert_eq!(c.unexercised, [Params::default()]);
        assert_eq!(c.says, [format!("{QUIET}.")]);
        let c = concluded(1.0, true, &[], &[]);
        assert!(c.unexercised.is_empty() && c.says.is_empty(), "{c:?}");
    }
}
