//! Expectations held against runs.

use crate::ratios::RATIOS;
use crate::small::scenario;
use crate::store_support::run;
use fullpipe_results::result::{CaseResult, SeedValues};

/// A window of 8 segments instead of 4 doubles the rate of a flow that the window limits, whatever
/// the law.
#[test]
fn an_expectation_may_be_a_ratio_of_two_cases() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nwithin = [1.98, 2.02]\n\
         where = {{ \"flow.main.window\" = \"8 segments\" }}\nratio_to = {{ \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let (ran, _) = run(&scenario(&text), None, 1, false).unwrap();
    let found = &ran.result.expectations;
    assert_eq!(found.len(), 3);
    for e in found {
        assert!(e.pass && (e.observed.unwrap() - 2.0).abs() < 0.02, "{e:?}");
        assert_eq!(e.bound, [1.98, 2.02]);
    }
}

/// One flow through random losses, with several seeds: the smallest and largest of their goodputs
/// are known, so what passes is known for every way of asking.
#[test]
fn an_expectation_may_ask_for_single_seeds() {
    let base = "name = \"seeds\"\nduration = \"10s\"\nseeds = 5\n[path]\nrate = \"20Mbit/s\"\n\
                rtt = \"40ms\"\nloss = 0.003\n[[flow]]\nstack = \"reno\"\n";
    let expect = |holds_for: &str, bound: f64| {
        format!(
            "[[expect]]\nmetric = \"goodput_mbps\"\nholds_for = \"{holds_for}\"\nat_least = {bound}\n"
        )
    };
    let all = |bound: f64| {
        let ways = ["overlap", "interval", "every seed", "p50", "mean"];
        let text: String = ways.iter().map(|way| expect(way, bound)).collect();
        let (ran, _) = run(&scenario(&format!("{base}{text}")), None, 1, false).unwrap();
        let kept = |case: &CaseResult| case.by_seed != SeedValues::default();
        assert!(!ran.result.cases.iter().any(kept));
        ran.result.expectations
    };
    let found = all(0.0);
    assert!(found.iter().all(|e| e.pass && !e.unclear), "{found:?}");
    let [mean, _, worst, median] = [0, 1, 2, 3].map(|i| found[i].observed.unwrap());
    assert!(worst < mean && worst < median, "{worst} {mean} {median}");
    let [low, high] = found[0].observed_ci95.unwrap();
    // Between the worst seed and the mean: only who asks for less than every seed is content.
    let passes = |bound: f64| -> Vec<bool> { all(bound).iter().map(|e| e.pass).collect() };
    let between = worst + 0.01 * (mean - worst);
    assert!(!passes(between)[2] && passes(between)[4]);
    // Within the interval, on either side of the mean: unclear, and a mean alone says pass or
    // FAIL. Beyond the interval it is a FAIL.
    for (bound, by_mean) in [(0.5 * (low + mean), true), (0.5 * (high + mean), false)] {
        let found = all(bound);
        assert!(found[0].pass && found[0].unclear, "{found:?}");
        assert_eq!(
            (found[1].pass, found[4].pass),
            (false, by_mean),
            "{found:?}"
        );
    }
    let beyond = all(high + 0.1 * (high - low));
    assert!(!beyond[0].pass && !beyond[0].unclear, "{beyond:?}");
    let inside = all(0.5 * (low + mean));
    assert_eq!(inside[1].holds_for.as_deref(), Some("interval"));
}

/// Two laws on one lossy path with the same seeds, one of them a fifth faster: what the losses do
/// to both hides their difference from independent samples, not from pairs.
#[test]
fn cases_are_held_against_each_other_seed_by_seed() {
    let base = "name = \"pairs\"\nduration = \"20s\"\nseeds = 8\n[path]\nrate = \"50Mbit/s\"\n\
                rtt = \"60ms\"\nloss = 1e-3\n[[flow]]\nname = \"main\"\nstack = \"reno\"\n\
                [matrix]\n\"flow.main.stack\" = [\"reno\", \"aimd(increase=1.2)\"]\n";
    let expect = "[[expect]]\nmetric = \"goodput_mbps\"\n\
                  where = { \"flow.main.stack\" = \"aimd(increase=1.2)\" }\n";
    let peer = "{ \"flow.main.stack\" = \"reno\" }\n";
    let text = format!(
        "{base}{expect}agrees_with = {peer}{expect}ratio_to = {peer}at_least = 1\n\
         {expect}ratio_to = {peer}holds_for = \"interval\"\nat_least = 1\n"
    );
    let (ran, _) = run(&scenario(&text), None, 1, false).unwrap();
    let [agreement, ratio, interval] = &ran.result.expectations[..] else {
        panic!("{:?}", ran.result.expectations);
    };
    let goodput = |i: usize| ran.result.cases[i].flows[0].metrics["goodput_mbps"];
    let [reno, faster] = [0, 1].map(goodput);
    let wide = reno.ci95.unwrap()[1] - reno.mean.unwrap();
    assert!(faster.mean.unwrap() - reno.mean.unwrap() < wide);
    assert!(!agreement.pass && !agreement.unclear, "{agreement:?}");
    assert!(ratio.pass && !ratio.unclear && interval.pass, "{ratio:?}");

    let alone = text.replace("seeds = 8", "seeds = 1");
    let (ran, _) = run(&scenario(&alone), None, 1, false).unwrap();
    let [agreement, ratio, interval] = &ran.result.expectations[..] else {
        panic!("one seed judges as many: {:?}", ran.result.expectations);
    };
    assert!(agreement.pass && agreement.unclear && !agreement.bound[0].is_finite());
    assert!(ratio.pass && !ratio.unclear && interval.pass && interval.unclear);
}

/// What is undefined on one side or on both agrees with nothing.
#[test]
fn what_is_undefined_agrees_with_nothing() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"first_loss_cwnd\"\n\
         where = {{ \"flow.main.window\" = \"8 segments\" }}\n\
         agrees_with = {{ \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let drawn = text.replacen("[path]", "[path]\njitter = \"1ms\"", 1);
    assert_ne!(drawn, text);
    for text in [text, drawn] {
        let (ran, _) = run(&scenario(&text), None, 1, false).unwrap();
        assert!(!ran.result.expectations.is_empty());
        for e in &ran.result.expectations {
            assert!(!e.pass && !e.unclear && e.observed.is_none(), "{e:?}");
        }
    }
}

/// Where nothing is drawn one seed stands for all: what differs does so for certain. Counts that
/// differ by one in each of two seeds have a spread that nobody has seen.
#[test]
fn certainty_is_what_chance_leaves() {
    let of = |path: &str, seeds: u8, metric: &str| {
        let text = format!(
            "name = \"sure\"\nduration = \"3s\"\nseeds = {seeds}\n[path]\nrate = \"20Mbit/s\"\n\
             rtt = \"40ms\"\nbuffer = \"1BDP\"\n{path}[[flow]]\nname = \"main\"\nstack = \"reno\"\n\
             [matrix]\n\"flow.main.stack\" = [\"reno\", \"cubic\"]\n[[expect]]\nmetric = \"{metric}\"\n\
             where = {{ \"flow.main.stack\" = \"cubic\" }}\n\
             agrees_with = {{ \"flow.main.stack\" = \"reno\" }}\n"
        );
        let (ran, _) = run(&scenario(&text), None, 1, false).unwrap();
        ran.result.expectations[0].clone()
    };
    let exact = of("", 1, "goodput_mbps");
    assert!(!exact.pass && !exact.unclear, "{exact:?}");
    let drawn = of("loss = 0.0005\n", 1, "goodput_mbps");
    assert!(drawn.pass && drawn.unclear, "{drawn:?}");
    let counts = of("loss = 0.0005\n", 2, "loss_events");
    assert_eq!(counts.observed, Some(1.0));
    assert!(counts.pass, "{counts:?}");
}

/// Two links of one rate in a row, and round trips of a whole number of packets: what a flow over
/// both and a flow over the second bring comes in the same nanosecond. A little jitter parts them,
/// and a single flow has nobody to meet.
#[test]
fn a_result_says_where_phase_decides_who_loses() {
    let of = |jitter: &str, others: bool| {
        let link = |name: &str| {
            format!(
                "[[link]]\nname = \"{name}\"\nrate = \"12Mbit/s\"\ndelay = \"10ms\"\n\
                 buffer = \"20 packets\"\n{jitter}"
            )
        };
        let flow = |name: &str, way: &str| {
            format!(
                "[[flow]]\nname = \"{name}\"\nstack = \"reno\"\nrtt = \"40ms\"\n\
                 start_spread = \"1s\"\n[[route]]\nflow = \"{name}\"\nforward = {way}\n"
            )
        };
        let mut text = format!(
            "name = \"lot\"\nduration = \"20s\"\n{}{}{}",
            link("a"),
            link("b"),
            flow("long", "[\"a\", \"b\"]")
        );
        if others {
            text += &(flow("on-a", "[\"a\"]") + &flow("on-b", "[\"b\"]"));
        }
        let (ran, _) = run(&scenario(&text), None, 1, false).unwrap();
        let links = ran.result.cases[0].links.iter();
        let ties: f64 = links.filter_map(|link| link.value("ties")).sum();
        (ties, ran.result.repeated().unwrap_or_default())
    };
    let (ties, said) = of("", true);
    assert!(ties >= 10.0, "{ties}");
    assert!(
        said.contains("same nanosecond") && said.contains("jitter"),
        "{said}"
    );
    for (ties, said) in [of("jitter = \"1ms\"\n", true), of("", false)] {
        assert_eq!(ties, 0.0);
        assert!(!said.contains("nanosecond"), "{said}");
    }
}

/// Nothing is drawn, and only where two flows meet does their phase decide.
#[test]
fn a_result_says_where_its_seeds_repeat_one_run() {
    let base = "name = \"s\"\nduration = \"3s\"\nseeds = 2\n[path]\nrate = \"20Mbit/s\"\n\
                rtt = \"40ms\"\n";
    let flow = |name: &str| format!("[[flow]]\nname = \"{name}\"\nstack = \"reno\"\n");
    let said = |text: &str| {
        run(&scenario(text), None, 1, false)
            .unwrap()
            .0
            .result
            .repeated()
    };
    let one = said(&format!("{base}{}", flow("a"))).unwrap();
    let same = "all 2 seeds give the same numbers: more seeds make nothing surer";
    assert_eq!(one, same);
    // The numbers decide, not what counts as drawing.
    let codel = base.replace("rtt = ", "queue = \"codel\"\nbuffer = \"4BDP\"\nrtt = ");
    assert_eq!(said(&format!("{codel}{}", flow("a"))).unwrap(), same);
    let two = format!("{base}{}{}", flow("a"), flow("b"));
    assert!(said(&two).unwrap().contains("start_spread"));
    assert_eq!(said(&format!("{two}start_spread = \"1s\"\n")), None);
    // Chance elsewhere does not part them.
    let lossy = two.replace("rtt = ", "loss = 1e-4\nrtt = ");
    assert!(said(&lossy).unwrap().starts_with("competing flows meet"));
    let once = two.replace("seeds = 2\n", "");
    assert!(
        said(&once)
            .unwrap()
            .starts_with("nothing is random; competing")
    );
    assert_eq!(
        said(&format!("{}{}", base.replace("seeds = 2\n", ""), flow("a"))),
        None
    );
}
