//! Results for tests.

use fullpipe_results::result::{
    CaseMetrics, CaseResult, Estimate, ExpectationResult, FlowResult, Params, RunResult,
};
use serde_json::json;

pub(crate) fn case(
    params: &[(&str, serde_json::Value)],
    seeds: u64,
    flows: &[(&str, &str, f64)],
) -> CaseResult {
    let flow = |(name, stack, x): &(&str, &str, f64)| {
        let estimate = |x: f64| Estimate {
            mean: Some(x),
            ci95: (seeds > 1).then_some([x * 0.9, x * 1.1]),
            undefined: 0,
        };
        let metrics = [
            ("goodput_mbps", estimate(*x)),
            ("rtt_ms.mean", estimate(93.14)),
            ("retransmits", estimate(1234.0)),
            ("timeouts", estimate(0.0)),
            ("recovery_time_s", Estimate::default()),
        ];
        FlowResult {
            name: (*name).to_owned(),
            stack: (*stack).to_owned(),
            delivered_bytes: None,
            direction: None,
            rate_asked_mbps: None,
            streams: Vec::new(),
            metrics: metrics.map(|(k, v)| (k.to_owned(), v)).into(),
        }
    };
    CaseResult {
        by_seed: Default::default(),
        seeds_repeat: false,
        in_phase: false,
        params: Params::new(
            params
                .iter()
                .map(|(k, v)| ((*k).to_owned(), v.clone()))
                .collect(),
        ),
        seeds: (1..=seeds).collect(),
        flows: flows.iter().map(flow).collect(),
        traffic: vec![],
        links: Vec::new(),
        metrics: CaseMetrics::default(),
        precision: None,
        fidelity: None,
        partial: None,
        simulated_s: 60.0,
        warmup_s: 0.0,
        delivered_packets: 1,
        wall_s: None,
        packets_per_s: None,
    }
}

pub(crate) fn result(cases: Vec<CaseResult>) -> RunResult {
    let judged = |observed: Option<f64>, bound: [f64; 2], pass| ExpectationResult {
        name: "n".into(),
        params: cases[0].params.clone(),
        observed,
        observed_ci95: None,
        bound,
        holds_for: None,
        against: None,
        unclear: false,
        pass,
        metric: "goodput_mbps".into(),
        flow: Some("main".into()),
        link: None,
        source: "Net100 2003: 85".into(),
    };
    RunResult {
        fullpipe: "0.1.0".into(),
        scenario: "demo, \"quoted\"".into(),
        ground: "sim".into(),
        kernel: None,
        brought: Vec::new(),
        peer: None,
        network: None,
        began: None,
        duration_s: None,
        quick: false,
        interrupted: None,
        expectations: vec![
            judged(Some(85.25), [80.0, 90.0], true),
            judged(Some(0.329_879), [0.329_88, f64::INFINITY], false),
            judged(None, [f64::NEG_INFINITY, 1.0], false),
        ],
        cases,
    }
}

pub(crate) fn two_cases(seeds: u64) -> RunResult {
    let stack = |s: &str| [("flow.main.stack", json!(s)), ("path.mtu", json!(1500))];
    result(vec![
        case(&stack("reno"), seeds, &[("main", "reno", 85.25)]),
        case(&stack("highspeed"), seeds, &[("main", "highspeed", 1290.0)]),
    ])
}
