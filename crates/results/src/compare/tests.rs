//! Comparisons of results made by hand.

use super::collect::verdict;
use super::difference::Difference;
use super::difference::pairs;
use super::*;
use crate::result::Params;
use crate::result::{CaseMetrics, Estimate, Estimates, FlowResult, LinkResult, SeedValues};

fn estimate(samples: &[f64]) -> Estimate {
    Estimate::of(&samples.iter().map(|&v| Some(v)).collect::<Vec<_>>())
}

fn case(mtu: i64, goodput: &[f64]) -> CaseResult {
    let of = |name: &str, e| Estimates::from([(name.to_owned(), e)]);
    let mut flow = of("goodput_mbps", estimate(goodput));
    flow.insert("recovery_time_s".into(), Estimate::default());
    flow.insert("var.k.last".into(), estimate(goodput));
    CaseResult {
        by_seed: SeedValues::default(),
        seeds_repeat: false,
        in_phase: false,
        params: Params::new(vec![
            ("path.mtu".into(), mtu.into()),
            ("flow.main.stack".into(), "reno".into()),
        ]),
        seeds: (1..=goodput.len() as u64).collect(),
        flows: vec![FlowResult {
            name: "main".into(),
            stack: "reno".into(),
            delivered_bytes: None,
            direction: None,
            rate_asked_mbps: None,
            streams: Vec::new(),
            metrics: flow,
        }],
        traffic: vec![],
        links: vec![LinkResult {
            name: "bottleneck".into(),
            metrics: of("drops", estimate(&[0.0])),
        }],
        metrics: CaseMetrics(of("jain", estimate(&[1.0]))),
        precision: None,
        fidelity: None,
        partial: None,
        simulated_s: 1.0,
        warmup_s: 0.0,
        delivered_packets: 1,
        wall_s: None,
        packets_per_s: None,
    }
}

fn result(cases: Vec<CaseResult>) -> RunResult {
    RunResult {
        fullpipe: "0".into(),
        scenario: "s".into(),
        ground: "sim".into(),
        kernel: None,
        brought: Vec::new(),
        peer: None,
        network: None,
        began: None,
        duration_s: None,
        quick: false,
        interrupted: None,
        cases,
        expectations: vec![],
    }
}

fn goodput<'a>(c: &'a Comparison, mtu: &str) -> &'a Row {
    let wanted =
        |r: &&Row| r.metric == "goodput_mbps" && r.params.text("path.mtu").as_deref() == Some(mtu);
    c.rows.iter().find(wanted).unwrap()
}

#[test]
fn a_result_agrees_with_itself() {
    let r = result(vec![case(1500, &[1.0, 2.0]), case(9000, &[3.0])]);
    let c = compare(&r, &r, &Options::default());
    assert!(c.agree && c.missing.is_empty());
    assert_eq!(c.rows.len(), 2 * 4);
    assert!(
        c.rows
            .iter()
            .all(|r| r.verdict == Verdict::Same && r.metric != "var.k.last")
    );
}

/// Another case's spread gives what is the same in every run no probability, and no small one.
#[test]
fn what_is_the_same_in_every_run_has_no_probability() {
    let of = |noisy: &[f64]| result(vec![case(1500, &[1.0; 3]), case(9000, noisy)]);
    let c = compare(
        &of(&[1.0, 5.0, 9.0]),
        &of(&[2.0, 7.0, 3.0]),
        &Options::default(),
    );
    let same = goodput(&c, "1500");
    assert_eq!((same.verdict, same.p), (Verdict::Same, None));
    assert!(goodput(&c, "9000").p > Some(0.05));
}

#[test]
fn one_seed_is_judged_by_the_threshold() {
    let a = result(vec![case(1500, &[100.0])]);
    for (b, verdict) in [
        (104.0, Verdict::Within),
        (106.0, Verdict::Beyond),
        (94.0, Verdict::Beyond),
    ] {
        let c = compare(&a, &result(vec![case(1500, &[b])]), &Options::default());
        assert_eq!(goodput(&c, "1500").verdict, verdict);
        assert_eq!(c.agree, verdict != Verdict::Beyond);
    }
    let loose = Options {
        thresholds: BTreeMap::from([("goodput_mbps".to_owned(), 0.10)]),
        ..Options::default()
    };
    assert!(compare(&a, &result(vec![case(1500, &[106.0])]), &loose).agree);
}

/// Counts of few events have to be equal, whatever the view and whatever the others may differ by,
/// unless they are named.
#[test]
fn as_many_loss_events_are_expected_on_both_sides() {
    let of = |events: f64| {
        let mut r = result(vec![case(1500, &[100.0])]);
        let metrics = &mut r.cases[0].flows[0].metrics;
        metrics.insert("loss_events".into(), estimate(&[events]));
        r
    };
    let agree = |options: &Options| compare(&of(36.0), &of(35.0), options).agree;
    for view in [View::Metrics, View::Agreement] {
        let mut options = Options {
            threshold: 0.10,
            view,
            ..Options::default()
        };
        assert!(!agree(&options), "{view:?}");
        options.thresholds.insert("loss_events".to_owned(), 0.05);
        assert!(agree(&options), "{view:?}");
    }
}

/// Two runs in real time are never the same: of one on each side only what chance leaves alone is
/// judged, and what is asked for.
#[test]
fn single_runs_in_real_time_are_judged_by_what_matters() {
    let of = |goodput: f64, drops: f64, seeds: usize| {
        let mut r = result(vec![case(1500, &vec![goodput; seeds])]);
        let drops = estimate(&vec![drops; seeds]);
        r.cases[0].links[0].metrics.insert("drops".into(), drops);
        r.cases[0].fidelity = Some(fullpipe_metrics::Fidelity {
            valid: true,
            ..fullpipe_metrics::Fidelity::default()
        });
        r
    };
    let compared = |b: &RunResult, options: &Options| compare(&of(100.0, 1.0, 1), b, options);
    let usual = Options::default();
    let few = compared(&of(101.0, 4.0, 1), &usual);
    assert!(few.single && few.agree, "{few:?}");
    assert!(!compared(&of(110.0, 1.0, 1), &usual).agree);
    let drops = Options {
        thresholds: BTreeMap::from([("drops".to_owned(), 0.10)]),
        ..Options::default()
    };
    assert!(!compared(&of(100.0, 4.0, 1), &drops).agree);
    // In virtual time, and with an interval, every number counts.
    let mut simulated = [of(100.0, 1.0, 1), of(100.0, 4.0, 1)];
    simulated
        .iter_mut()
        .for_each(|r| r.cases[0].fidelity = None);
    assert!(!compare(&simulated[0], &simulated[1], &usual).agree);
    assert!(!compare(&of(100.0, 1.0, 3), &of(100.0, 4.0, 3), &usual).agree);
}

/// 0.1 + 0.2 is not 0.3 in binary: no difference of what ran.
#[test]
fn rounding_is_no_difference() {
    let of = |x: f64| result(vec![case(1500, &[x, x])]);
    let noise = compare(&of(0.3), &of(0.1 + 0.2), &Options::default());
    assert_eq!(goodput(&noise, "1500").verdict, Verdict::Same);
    let small = compare(&of(0.3), &of(0.3 + 1e-8), &Options::default());
    assert_eq!(goodput(&small, "1500").verdict, Verdict::Within);
}

#[test]
fn seeds_tell_noise_from_change() {
    let a = result(vec![case(1500, &[90.0, 100.0, 110.0])]);
    let noisy = compare(
        &a,
        &result(vec![case(1500, &[97.0, 107.0, 117.0])]),
        &Options::default(),
    );
    let row = goodput(&noisy, "1500");
    assert_eq!(row.verdict, Verdict::Indistinguishable);
    assert_eq!(row.method, Method::Welch);
    // Both have the deviation 10.
    assert!((row.effect.unwrap().value - 0.7).abs() < 1e-8);
    // Equal variances of 100 over 3 seeds: se = sqrt(200/3), 4 degrees, t = 2.776445.
    let half = 2.776_445_105 * (200.0f64 / 3.0).sqrt();
    let [low, high] = row.difference_ci95.unwrap();
    assert!((low - (7.0 - half)).abs() < 1e-6 && (high - (7.0 + half)).abs() < 1e-6);
    assert!((row.relative.unwrap() - 0.07).abs() < 1e-12);
    let change = compare(
        &a,
        &result(vec![case(1500, &[149.0, 150.0, 151.0])]),
        &Options::default(),
    );
    assert_eq!(goodput(&change, "1500").verdict, Verdict::Beyond);
    let exact = compare(
        &result(vec![case(1500, &[100.0, 100.0])]),
        &result(vec![case(1500, &[101.0, 101.0])]),
        &Options::default(),
    );
    assert_eq!(goodput(&exact, "1500").verdict, Verdict::Within);
}

#[test]
fn undefined_against_a_number_is_beyond() {
    let one = |a: Option<f64>, b: Option<f64>| {
        let e = |mean| Estimate {
            mean,
            ..Estimate::default()
        };
        let relative = a
            .zip(b)
            .filter(|(a, _)| *a != 0.0)
            .map(|(a, b)| (b - a) / a.abs());
        verdict(
            [a, b],
            &Difference::welch(&e(a), 1, &e(b), 1),
            relative,
            0.05,
        )
    };
    assert_eq!(one(None, None), Verdict::Same);
    assert_eq!(one(None, Some(1.0)), Verdict::Beyond);
    assert_eq!(one(Some(0.0), Some(1.0)), Verdict::Beyond);
    assert_eq!(one(Some(0.0), Some(0.0)), Verdict::Same);
}

/// Student 1908, "The probable error of a mean": additional hours of sleep of ten patients with two
/// drugs. In pairs the difference is 1.58 with t(9) = 4.0621; as independent samples t = 1.8608
/// with 17.776 degrees.
const SLEEP: [[f64; 2]; 10] = [
    [0.7, 1.9],
    [-1.6, 0.8],
    [-0.2, 1.1],
    [-1.2, 0.1],
    [-0.1, -0.1],
    [3.4, 4.4],
    [3.7, 5.5],
    [0.8, 1.6],
    [0.0, 4.6],
    [2.0, 3.4],
];

#[test]
fn pairs_see_what_two_samples_do_not() {
    let paired = Difference::paired(&SLEEP);
    let [low, high] = paired.interval.unwrap();
    // Published interval of R's `t.test(extra ~ group, paired = TRUE)`: 0.7001142 to 2.4598858.
    assert!((low - 0.7001142).abs() < 1e-6 && (high - 2.4598858).abs() < 1e-6);
    assert!((paired.mean.unwrap() - 1.58).abs() < 1e-12);
    // d_z = t / sqrt(n).
    let d_z = paired.effect.unwrap();
    assert_eq!(d_z.measure, "d_z");
    assert!((d_z.value - 4.0621 / 10f64.sqrt()).abs() < 1e-4);

    let side = |i: usize| estimate(&SLEEP.map(|p| p[i]));
    let apart = Difference::welch(&side(0), 10, &side(1), 10);
    let [low, high] = apart.interval.unwrap();
    // `t.test(extra ~ group)` with the sign turned: -0.2054832 to 3.3654832.
    assert!((low + 0.2054832).abs() < 1e-5 && (high - 3.3654832).abs() < 1e-5);
    // d = t sqrt(2/n) for equal sizes.
    assert!((apart.effect.unwrap().value - 1.8608 * 0.2f64.sqrt()).abs() < 1e-4);
}

/// Counts that chance made equal in the few seeds there are say little; those that repeat say all.
#[test]
fn equal_counts_are_no_certainty() {
    let of = |events: f64, seeds: usize, repeat: bool| {
        let mut case = case(1500, &vec![1.0; seeds]);
        case.seeds_repeat = repeat;
        case.flows[0]
            .metrics
            .insert("loss_events".into(), estimate(&vec![events; seeds]));
        result(vec![case])
    };
    let verdict = |a: f64, b: f64, seeds: usize, repeat: bool| {
        let seen = compare(
            &of(a, seeds, repeat),
            &of(b, seeds, repeat),
            &Options::default(),
        );
        let row = seen.rows.iter().find(|row| row.metric == "loss_events");
        row.unwrap().verdict
    };
    assert_eq!(verdict(5.0, 7.0, 2, true), Verdict::Beyond);
    // t(2) = 4.30: 4.30 sqrt(1/12) = 1.24 for two seeds each, t(18) sqrt(1/60) = 0.27 for ten.
    assert_eq!(verdict(5.0, 6.0, 2, false), Verdict::Indistinguishable);
    assert_eq!(verdict(5.0, 6.0, 10, false), Verdict::Beyond);
    let paired = |n: usize| Difference::paired(&vec![[5.0, 6.0]; n]).of_counts(n, n);
    // Two pairs say as much as two seeds on each side: 4.30 sqrt(1/12) = 1.24; three are enough.
    let [low, high] = paired(2).interval.unwrap();
    assert!(
        (low + 0.242).abs() < 1e-3 && (high - 2.242).abs() < 1e-3,
        "{low} {high}"
    );
    assert!(paired(3).interval.unwrap()[0] > 0.0);
}

/// A spread that is rounding is none: nothing is measured in it.
#[test]
fn rounding_is_no_standard_deviation() {
    let pairs = [[0.5, 0.3], [0.5, 0.3 + 1e-16], [0.5, 0.3 - 1e-16]];
    assert_eq!(Difference::paired(&pairs).effect, None);
}

#[test]
fn pairs_need_a_partner_for_every_seed_of_a_side() {
    let of = |seeds: &[i64]| {
        seeds
            .iter()
            .map(|s| (*s, Some(*s as f64)))
            .collect::<Vec<_>>()
    };
    assert_eq!(pairs(&of(&[1, 2, 3]), &of(&[3, 2, 1])).unwrap().len(), 3);
    // More seeds on one side, as a precision may ask for.
    assert_eq!(
        pairs(&of(&[1, 2, 3]), &of(&[1, 2, 3, 4, 5])).unwrap().len(),
        3
    );
    assert_eq!(pairs(&of(&[1, 2, 3]), &of(&[2, 3, 4])), None);
    assert_eq!(pairs(&of(&[1]), &of(&[1])), None);
    assert_eq!(pairs(&of(&[]), &of(&[])), None);
    assert_eq!(pairs(&[(1, None), (2, Some(1.0))], &of(&[1, 2])), None);
}

#[test]
fn what_only_one_has_is_listed() {
    let a = result(vec![case(1500, &[1.0]), case(9000, &[1.0])]);
    let mut other = case(1500, &[1.0]);
    other.flows[0].name = "late".into();
    // Parameters in another order are the same case.
    let reversed: Vec<_> = (other.params.iter().map(|(k, v)| (k.to_owned(), v.clone()))).collect();
    other.params = Params::new(reversed.into_iter().rev().collect());
    let b = result(vec![other, case(576, &[1.0])]);
    let c = compare(&a, &b, &Options::default());
    let text: Vec<String> = c
        .missing
        .iter()
        .map(|m| {
            format!(
                "{} {} {:?}",
                m.missing_in,
                m.params.text("path.mtu").unwrap(),
                m.flow
            )
        })
        .collect();
    assert_eq!(
        text,
        [
            "b 1500 Some(\"main\")",
            "a 1500 Some(\"late\")",
            "b 9000 None",
            "a 576 None"
        ]
    );
    assert!(!c.agree);
}

#[test]
fn values_are_one_however_they_are_written() {
    let of = |rtt: &str| {
        let mut one = case(1500, &[1.0]);
        one.params = Params::new(vec![("path.rtt".into(), rtt.into())]);
        result(vec![one])
    };
    let agree = |a: &str, b: &str| compare(&of(a), &of(b), &Options::default()).agree;
    assert!(agree("40ms", "0.04s") && !agree("40ms", "41ms") && !agree("40ms", "40"));
}

/// What a link does that only delays, flows show; of two grounds no link is judged.
#[test]
fn a_link_that_only_delays_is_told_and_not_judged() {
    let with = |name: &str, busy: &str| {
        let mut c = case(1500, &[1.0]);
        let names = ["utilization", "drops", "marks", "queue_packets.max"];
        let metrics = names.map(|n| {
            let value = if n == busy { 1.0 } else { 0.0 };
            (n.to_owned(), estimate(&[value]))
        });
        c.links.push(LinkResult {
            name: name.into(),
            metrics: Estimates::from(metrics),
        });
        result(vec![c])
    };
    let without = result(vec![case(1500, &[1.0])]);
    let judged = |a: &RunResult, b: &RunResult, options: &Options| {
        let c = compare(a, b, options);
        let [missing] = &c.missing[..] else {
            panic!("{:?}", c.missing);
        };
        assert_eq!(
            (missing.link.as_deref(), c.agree),
            (Some("wire"), !missing.judged)
        );
        missing.judged
    };
    let plain = Options::default();
    assert!(!judged(&without, &with("wire", ""), &plain));
    assert!(!judged(&with("wire", ""), &without, &plain));
    for busy in ["utilization", "drops", "marks", "queue_packets.max"] {
        assert!(judged(&with("wire", busy), &without, &plain), "{busy}");
    }
    let agreement = Options {
        view: View::Agreement,
        ..Options::default()
    };
    assert!(!judged(&with("wire", "drops"), &without, &agreement));
    let asked = Options {
        metrics: vec!["drops".into()],
        ..agreement
    };
    assert!(judged(&with("wire", "drops"), &without, &asked));
    for view in [View::Metrics, View::Agreement] {
        let asked = Options {
            view,
            ..asked.clone()
        };
        assert!(!judged(&without, &with("wire", ""), &asked), "{view:?}");
    }
}

/// Both means are undefined, but not because of the same number of seeds.
#[test]
fn undefined_in_more_seeds_is_not_the_same() {
    let with = |samples: &[Option<f64>]| {
        let mut c = case(1500, &vec![1.0; samples.len()]);
        let metrics = &mut c.flows[0].metrics;
        metrics.insert("recovery_time_s".into(), Estimate::of(samples));
        result(vec![c])
    };
    let (none, one, two) = (
        with(&[None, None, None]),
        with(&[Some(1.0), None, None]),
        with(&[Some(1.0), Some(1.0), None]),
    );
    let seen_in = |view, a: &RunResult, b: &RunResult| {
        let options = Options {
            view,
            ..Options::default()
        };
        let c = compare(a, b, &options);
        let row = c.rows.iter().find(|r| r.metric == "recovery_time_s");
        row.unwrap().verdict
    };
    let seen = |a: &RunResult, b: &RunResult| seen_in(View::Metrics, a, b);
    assert_eq!(seen(&one, &one), Verdict::Same);
    assert_eq!(seen(&none, &none), Verdict::Same);
    assert_eq!(seen(&one, &two), Verdict::Indistinguishable);
    assert_eq!(seen(&none, &one), Verdict::Indistinguishable);
    let all = with(&[Some(1.0), Some(2.0), Some(3.0)]);
    // One of ten draws has three of six on one side (Fisher), one of 126 five of ten. Grounds have
    // no such excuse.
    assert_eq!(seen(&none, &all), Verdict::Indistinguishable);
    assert_eq!(seen_in(View::Agreement, &none, &all), Verdict::Beyond);
    assert_eq!(
        seen(&with(&[None; 5]), &with(&[Some(1.0); 5])),
        Verdict::Beyond
    );
    assert_eq!(seen(&all, &two), Verdict::Indistinguishable);
    // Of 2 * 12 seeds, 4 are undefined on one side (p = 0.093) or 6 (p = 0.014).
    let some = |undefined: usize| {
        let of = |i: usize| (i >= undefined).then_some(i as f64);
        with(&(0..12).map(of).collect::<Vec<_>>())
    };
    assert_eq!(seen(&some(0), &some(4)), Verdict::Indistinguishable);
    assert_eq!(seen(&some(6), &some(0)), Verdict::Beyond);
}

#[test]
fn metrics_can_be_chosen_variables_by_name_only() {
    let r = result(vec![case(1500, &[1.0])]);
    let options = Options {
        metrics: vec!["jain".into(), "var.k.last".into()],
        ..Options::default()
    };
    let c = compare(&r, &r, &options);
    assert_eq!(
        c.rows.iter().map(|r| r.metric.as_str()).collect::<Vec<_>>(),
        ["var.k.last", "jain"]
    );
    assert!(c.agree && c.unknown.is_empty());
}

/// A gate with a misspelt variable would pass for ever.
#[test]
fn what_neither_side_has_agrees_with_nothing() {
    let asked = |metric: &str| Options {
        metrics: vec![metric.into()],
        ..Options::default()
    };
    let r = result(vec![case(1500, &[1.0])]);
    for metric in ["var.other.last", "1"] {
        let c = compare(&r, &r, &asked(metric));
        assert_eq!((c.unknown, c.agree), (vec![metric.to_owned()], false));
    }
    // What is undefined on both sides is the same.
    let c = compare(&r, &r, &asked("recovery_time_s"));
    assert!(c.agree && c.unknown.is_empty());
    let mut bare = r.clone();
    bare.cases[0].flows[0].metrics = [("goodput_mbps", estimate(&[1.0]))].into();
    let c = compare(&r, &bare, &asked("var.k.last"));
    assert_eq!(c.rows[0].verdict, Verdict::Beyond);
    assert!(!c.agree && c.unknown.is_empty());
}

#[test]
fn a_side_whose_path_was_not_true_says_so() {
    use fullpipe_metrics::Fidelity;
    let r = result(vec![case(1500, &[1.0])]);
    let mut late = r.clone();
    late.cases[0].fidelity = Some(Fidelity {
        late_p50_ms: Some(0.1),
        late_p99_ms: Some(2.0),
        late_max_ms: Some(3.0),
        late_bound_ms: 0.8,
        ..Fidelity::default()
    });
    let c = compare(&r, &late, &Options::default());
    assert_eq!(c.a.untrue, None);
    let said = c.b.untrue.unwrap();
    assert!(said.contains("2 ms late"), "{said}");
}

/// With everything else left out a case of one side alone still tells the two apart.
#[test]
fn a_case_of_one_side_alone_is_not_nothing() {
    let both = result(vec![case(1500, &[1.0])]);
    let mut more = result(vec![case(1500, &[1.0]), case(9000, &[1.0])]);
    more.cases[0].fidelity = Some(fullpipe_metrics::Fidelity::default());
    assert!(more.cases[0].is_flagged());
    for (a, b) in [(&both, &more), (&more, &both)] {
        let c = compare(a, b, &Options::default());
        assert_eq!((c.rows.len(), c.left_out.len(), c.missing.len()), (0, 1, 1));
        assert!(!c.is_empty() && !c.agree, "{c:?}");
    }
}

#[test]
fn cases_with_flagged_runs_count_only_if_they_are_asked_for() {
    use fullpipe_metrics::Fidelity;
    let good = result(vec![case(1500, &[1.0]), case(9000, &[1.0])]);
    let mut other = result(vec![
        case(9000, &[2.0]),
        case(1500, &[1.0]),
        case(576, &[1.0]),
    ]);
    for flagged in [0, 2] {
        other.cases[flagged].fidelity = Some(Fidelity::default());
        assert!(other.cases[flagged].is_flagged());
    }
    let params = |r: &RunResult, at: usize| r.cases[at].params.clone();
    let left_out = [params(&good, 1), params(&other, 2)];
    for (a, b) in [(&good, &other), (&other, &good)] {
        let c = compare(a, b, &Options::default());
        assert!(c.agree && !c.is_empty(), "{c:?}");
        assert_eq!(c.left_out.len(), 2);
        assert!(left_out.iter().all(|p| c.left_out.contains(p)));
        let compared = c.rows.iter().all(|r| r.params == params(&good, 0));
        assert!(compared && c.missing.is_empty());
        let asked = Options {
            with_flagged: true,
            ..Options::default()
        };
        let c = compare(a, b, &asked);
        assert!(!c.agree && c.left_out.is_empty());
        assert!(c.rows.iter().any(|r| r.verdict == Verdict::Beyond));
        assert_eq!(c.missing.len(), 1);
    }
    let mut both = good.clone();
    for case in &mut both.cases {
        case.fidelity = Some(Fidelity::default());
    }
    let nothing = compare(&good, &both, &Options::default());
    assert!(nothing.is_empty() && !nothing.agree);
}

/// Two kernels are two grounds: what counts is how far they agree.
#[test]
fn results_of_two_kernels_are_held_against_each_other_like_grounds() {
    let on = |kernel: Option<&str>| RunResult {
        ground: "linux".into(),
        kernel: kernel.map(str::to_owned),
        ..result(vec![])
    };
    let view = |a, b| compare(&on(a), &on(b), &Options::default()).view;
    assert_eq!(view(Some("Linux 6.1"), Some("Linux 6.1")), View::Metrics);
    assert_eq!(view(Some("Linux 6.1"), Some("Linux 6.12")), View::Agreement);
    let c = compare(&on(Some("Linux 6.1")), &on(None), &Options::default());
    assert_eq!(c.a.kernel.as_deref(), Some("Linux 6.1"));
    assert_eq!((c.b.kernel, c.view), (None, View::Agreement));
}

/// One run against five: it differs where it is not among those that the five make likely.
#[test]
fn a_single_seed_is_held_against_the_spread_of_the_other_side() {
    let five = result(vec![case(1500, &[98.0, 99.0, 100.0, 101.0, 102.0])]);
    for (value, verdict) in [
        (104.0, Verdict::Indistinguishable),
        (106.0, Verdict::Beyond),
    ] {
        let one = result(vec![case(1500, &[value])]);
        for (a, b) in [(&one, &five), (&five, &one)] {
            let compared = compare(a, b, &Options::default());
            let row = goodput(&compared, "1500");
            assert_eq!((row.method, row.verdict), (Method::Prediction, verdict));
            // 2.776 (four degrees of freedom) * 1.5811 * sqrt(1 + 1/5).
            let [low, high] = row.difference_ci95.unwrap();
            assert!(((high - low) / 2.0 - 4.808).abs() < 0.01, "{low} {high}");
        }
    }
    let one = result(vec![case(1500, &[104.0])]);
    let compared = compare(&one, &one, &Options::default());
    assert_eq!(goodput(&compared, "1500").method, Method::Single);
}

/// As many cases as there are, of this many seeds each; `shift` moves the goodput of the first.
fn of_chance(draws: &mut impl FnMut() -> f64, cases: i64, seeds: usize, shift: f64) -> RunResult {
    let cases = (0..cases).map(|i| {
        let off = if i == 0 { shift } else { 0.0 };
        let goodput: Vec<f64> = (0..seeds).map(|_| 100.0 + off + 10.0 * draws()).collect();
        case(1500 + i, &goodput)
    });
    result(cases.collect())
}

/// Normal numbers from counted ones (SplitMix64).
fn normal() -> impl FnMut() -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal};
    let law = Normal::standard();
    let mut state = 1_u64;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        law.inverse_cdf(((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// Two samples of the same differ in one comparison of twenty, however many numbers they have; the
/// interval of 95 % alone would part them in all.
#[test]
fn many_numbers_that_chance_moves_do_not_make_a_difference() {
    let mut draws = normal();
    let (trials, mut disagree, mut alone) = (200, 0, 0);
    for _ in 0..trials {
        let [a, b] = [1, 2].map(|_| of_chance(&mut draws, 50, 5, 0.0));
        let c = compare(&a, &b, &Options::default());
        disagree += usize::from(!c.agree);
        let parts = |row: &&Row| {
            let interval = row.difference_ci95;
            interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
        };
        alone += c.rows.iter().filter(parts).count();
    }
    // 5 % within three standard deviations; of small samples Welch's interval is on the safe side.
    assert!(disagree <= 19, "{disagree} of {trials}");
    assert!((400..=565).contains(&alone), "{alone} of 10,000");
}

/// Ten standard deviations among a hundred numbers are found, and that one alone; two numbers are
/// what they were.
#[test]
fn a_difference_is_found_among_many() {
    let mut draws = normal();
    let a = of_chance(&mut draws, 100, 5, 0.0);
    let b = of_chance(&mut draws, 100, 5, 100.0);
    let c = compare(&a, &b, &Options::default());
    let beyond: Vec<_> = c
        .rows
        .iter()
        .filter(|r| r.verdict == Verdict::Beyond)
        .collect();
    assert!(!c.agree && beyond.len() == 1, "{beyond:?}");
    assert_eq!(beyond[0].params.text("path.mtu").as_deref(), Some("1500"));
    assert!(beyond[0].p_adjusted.unwrap() > beyond[0].p.unwrap());
}

/// What differs as much in every case is found by all of them together, where none would be alone
/// among so many.
#[test]
fn a_difference_everywhere_needs_no_large_numbers() {
    let (a, b) = ([100.0, 104.0, 108.0], [110.0, 115.0, 119.0]);
    let of = |x: &[f64]| result((0..50).map(|i| case(1500 + i, x)).collect());
    let c = compare(&of(&a), &of(&b), &Options::default());
    assert!(
        c.rows
            .iter()
            .filter(|r| r.verdict == Verdict::Beyond)
            .count()
            == 50
    );
    let p = c.rows.iter().find_map(|r| r.p).unwrap();
    assert!(p > 0.05 / 50.0, "{p}: would be found alone");
}

/// A metric with two values, of which three seeds often have the same: their spread is none, and
/// any other sample lies outside its interval.
#[test]
fn seeds_that_agree_by_chance_make_no_difference() {
    let mut draws = normal();
    let (trials, mut disagree, mut apart) = (200, 0, 0);
    for _ in 0..trials {
        let [a, b] = [1, 2].map(|_| {
            let cases = (0..12).map(|i| {
                let one = |draws: &mut dyn FnMut() -> f64| [18.0, 52.0][usize::from(draws() > 0.0)];
                let goodput: Vec<f64> = (0..3).map(|_| one(&mut draws)).collect();
                case(1500 + i, &goodput)
            });
            result(cases.collect())
        });
        let c = compare(&a, &b, &Options::default());
        disagree += usize::from(!c.agree);
        apart += c
            .rows
            .iter()
            .filter(|r| r.difference_ci95 == Some([34.0; 2]))
            .count();
    }
    assert!(disagree <= 19, "{disagree} of {trials}");
    // One of 64 pairs of samples is three small ones beside three large.
    assert!((20..60).contains(&apart), "{apart} of 2,400");
}

/// A case without losses in which every seed tells the same, beside one whose seeds scatter: five
/// on each side do not fall apart like that by chance, and three may, if nothing else is known.
#[test]
fn noise_of_one_case_hides_no_difference_of_another() {
    let calm =
        |from: f64, n: usize| -> Vec<f64> { (0..n).map(|i| from + 1e-4 * i as f64).collect() };
    let (noise, others) = ([4.0, 7.0, 5.0, 9.0, 6.0], [6.5, 4.5, 8.0, 5.0, 7.5]);
    let of = |from: f64, noise: &[f64]| {
        result(vec![
            case(1500, &calm(from, noise.len())),
            case(9000, noise),
        ])
    };
    for (to, seeds, agree) in [(9.4, 5, false), (9.6, 5, false), (9.4, 3, true)] {
        let (a, b) = (of(9.894, &noise[..seeds]), of(to, &others[..seeds]));
        let asked = Options {
            metrics: vec!["goodput_mbps".into()],
            threshold: 0.02,
            ..Options::default()
        };
        let c = compare(&a, &b, &asked);
        assert_eq!(c.agree, agree, "{to}, {seeds} seeds: {c:?}");
        // 2/4^n of the one other case, whose noise would explain it.
        let p = goodput(&c, "1500").p.unwrap();
        assert!((p - 2.0 / 4_f64.powi(seeds as i32)).abs() < 1e-12, "{p}");
        assert_eq!(goodput(&c, "1500").is_lost_among_many(), agree);
        assert_eq!(goodput(&c, "9000").verdict, Verdict::Indistinguishable);
    }
}
