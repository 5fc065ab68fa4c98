//! Cycles of real controllers against the closed forms and tables of their documents.

use fullpipe_cc::StackSpec;
use fullpipe_cc::response::{Conditions, Cycle, NoCycle, cycle};
use fullpipe_units::Span;

fn at(stack: &str, window: f64) -> Cycle {
    with(stack, window, Span::from_millis(100)).unwrap()
}

fn with(stack: &str, window: f64, rtt: Span) -> Result<Cycle, NoCycle> {
    let conditions = Conditions {
        rtt,
        ..Conditions::default()
    };
    cycle(&StackSpec::parse(stack).unwrap(), window, &conditions)
}

#[track_caller]
fn near(is: f64, should: f64, within: f64) {
    let off = (is / should - 1.0).abs();
    assert!(off <= within, "{is}, not {should} (off by {off:.4})");
}

/// Mathis et al. 1997: w/2 round trips, 3/8 w^2 segments, a mean of 3/4 w, whatever the stack of
/// the same law.
#[test]
fn reno_is_mathis_sawtooth() {
    for stack in ["reno", "reno-linux", "aimd(increase=1,decrease=0.5)"] {
        for w in [100.0, 1000.0, 20_000.0] {
            let reno = at(stack, w);
            near(reno.rounds, w / 2.0, 0.03);
            near(reno.segments, 0.375 * w * w, 0.04);
            near(reno.mean_window, 0.75 * w, 0.02);
            near(reno.reno_flows(), 1.0, 0.02);
            near(reno.increase_last, 1.0, 0.05);
            assert!(reno.decrease == 0.5 && reno.settled, "{stack} {w} {reno:?}");
        }
    }
}

/// AIMD(a, b): b w / a round trips.
#[test]
fn aimd_takes_b_w_over_a_round_trips() {
    for (a, b, w) in [
        (8.0, 0.125, 1000.0),
        (0.5, 0.25, 300.0),
        (16.0, 0.5, 5000.0),
    ] {
        let c = at(&format!("aimd(increase={a},decrease={b})"), w);
        near(c.decrease, b, 1e-9);
        near(c.rounds, b * w / a, 0.03);
        near(c.increase_first, a, 0.03);
        near(c.increase_mean(), a, 0.03);
    }
}

/// RFC 3649 section 5 and appendix B, table 12: rows of (w, a(w), b(w)).
#[test]
fn highspeed_is_rfc_3649s_table() {
    for (w, a, b) in [
        (38.0, 1.0, 0.50),
        (1058.0, 8.0, 0.33),
        (10661.0, 30.0, 0.21),
        (84035.0, 71.0, 0.10),
    ] {
        let c = at("highspeed(form=table)", w);
        // The table has b in hundredths and a in whole segments, each row the first that needs it;
        // the last whole round trip begins one a(w) below.
        assert!((c.decrease - b).abs() < 0.006, "{w}: {c:?}");
        assert!((c.increase_last - a).abs() <= 1.0, "{w}: {c:?}");
    }
}

/// RFC 3649 section 5: w = 0.12 / p^0.835; section 5 table 3 has N(w) of it, 2.6 at 1e-5 and 20 at
/// 1e-9.
#[test]
fn highspeeds_response_is_rfc_3649s() {
    for w in [200.0, 2_000.0, 20_000.0, 80_000.0] {
        let c = at("highspeed", w);
        near(c.mean_window, 0.12 / c.loss_rate().powf(0.835), 0.06);
    }
}

/// Kelly 2003: any window is back after ln(1/0.875) / ln(1.01) = 13.4 round trips.
#[test]
fn scalable_comes_back_after_the_same_time_at_any_window() {
    for w in [500.0, 20_000.0, 1_000_000.0] {
        near(at("scalable", w).rounds, 13.42, 0.03);
    }
}

/// RFC 9438 section 4.2: K = cbrt(W (1 - beta) / C) seconds, whatever the round trip, where CUBIC
/// is faster than Reno.
#[test]
fn cubic_comes_back_after_k_seconds() {
    for (w, rtt) in [(10_000.0, 0.1), (10_000.0, 0.2), (100_000.0, 0.05)] {
        let c = with("cubic", w, Span::from_secs_f64(rtt)).unwrap();
        near(c.rounds * rtt, (w * 0.3 / 0.4_f64).cbrt(), 0.03);
        near(c.decrease, 0.3, 1e-9);
    }
}

/// Shorten and Leith 2004, section 2: without a queue RTTmin / RTTmax is one, so the largest share
/// is kept, and a round trip D seconds after the loss adds 2 (1 - beta) (1 + 10 (D - 1) +
/// ((D - 1) / 2)^2) segments, 2 (1 - beta) in the first second. Linux keeps 102 / 128.
#[test]
fn htcp_keeps_the_most_where_the_rtt_is_constant() {
    let (w, rtt) = (1000.0, 0.1);
    for (stack, beta) in [("htcp", 0.8), ("htcp-linux", 102.0 / 128.0)] {
        let (mut window, mut rounds) = (beta * w, 0.0_f64);
        while window < w {
            let late = (rounds * rtt - 1.0).max(0.0);
            window += 2.0 * (1.0 - beta) * (1.0 + 10.0 * late + (late / 2.0).powi(2));
            rounds += 1.0;
        }
        let c = at(stack, w);
        assert!(c.settled, "{stack} {c:?}");
        near(c.decrease, 1.0 - beta, 0.01);
        near(c.rounds, rounds, 0.05);
    }
    // What a steady path teaches is what a flow that has no other choice does.
    near(
        at("htcp", w).mean_window,
        at("htcp(beta_min=0.8)", w).mean_window,
        0.002,
    );
}

/// RFC 6817 with GAIN 1 and no queue: a segment per round trip, half of the window for a loss. Its
/// cap on what is in flight stops nothing as long as the window is the limit.
#[test]
fn ledbat_without_a_queue_is_reno() {
    for window in [100.0, 1000.0] {
        let (ledbat, reno) = (at("ledbat", window), at("reno", window));
        near(ledbat.rounds, window / 2.0, 0.05);
        near(ledbat.segments, reno.segments, 0.05);
    }
}

#[test]
fn what_has_no_cycle_says_why() {
    let rtt = Span::from_millis(50);
    assert_eq!(with("bbr", 100.0, rtt), Err(NoCycle::Model));
    assert_eq!(with("own-linux", 100.0, rtt), Err(NoCycle::InAKernel));
    assert_eq!(with("reno", 1.5, rtt), Err(NoCycle::Window));
    assert_eq!(with("reno", f64::NAN, rtt), Err(NoCycle::Window));
    assert_eq!(with("westwood", 100.0, rtt), Err(NoCycle::KeepsWindow));
}

/// The round trip in which the window is back ends there, and says little of the increase.
#[test]
fn the_last_increase_is_that_of_a_whole_round_trip() {
    for w in [20_000.0, 20_001.0] {
        near(at("reno", w).increase_last, 1.0, 0.0002);
    }
}

/// Every stack of the registry, at small and large windows: numbers or a reason, in finite time.
#[test]
fn every_law_has_numbers_or_a_reason() {
    use fullpipe_cc::registry::{Kind, entries};
    let leads = |kind| matches!(kind, Kind::Law | Kind::Module | Kind::Model);
    for entry in entries().filter(|e| leads(e.kind)) {
        for w in [4.0, 7.0, 60.0, 3_000.0] {
            let Ok(spec) = StackSpec::parse(entry.name) else {
                continue;
            };
            match cycle(&spec, w, &Conditions::default()) {
                Ok(c) => {
                    println!("{} {c:?}", entry.name);
                    assert!(c.decrease > 0.0 && c.decrease < 1.0, "{} {c:?}", entry.name);
                    assert!(
                        c.mean_window > 0.0 && c.mean_window <= w,
                        "{} {c:?}",
                        entry.name
                    );
                    assert!(c.segments >= c.rounds, "{} {c:?}", entry.name);
                }
                Err(why) => println!("{} {w} {why}", entry.name),
            }
        }
    }
}

/// What a stack that removes a fifth more or less at a loss really removes, for every law; and no
/// law has such a parameter that does not say so.
#[test]
fn what_removes_a_fifth_more_takes_a_fifth_more() {
    use fullpipe_cc::params::Domain;
    use fullpipe_cc::registry::entries;
    let b = |spec: &StackSpec| cycle(spec, 1000.0, &Conditions::default()).map(|c| c.decrease);
    let mut moved = Vec::new();
    for entry in entries() {
        // The end point of HighSpeed TCP, where its b is the parameter.
        let has_end = entry.params.iter().any(|p| p.name == "high_window");
        let end = if has_end { "(high_window=1000)" } else { "" };
        let Ok(spec) = StackSpec::parse(&format!("{}{end}", entry.name)) else {
            continue;
        };
        let Ok(is) = b(&spec) else {
            continue;
        };
        for times in [1.2, 0.8] {
            let Some(other) = spec.removing(times) else {
                continue;
            };
            // Shares of 1/1024, windows in whole segments.
            near(b(&other).unwrap(), is * times, 0.01);
            moved.push(entry.name);
        }
        for (param, value) in spec.numbers().filter(|(p, _)| p.share.is_none()) {
            let shares = ["fraction", "1/1024"].contains(&param.unit);
            let Domain::Number { min, max, .. } = param.domain else {
                continue;
            };
            for other in [value * 0.9, value * 1.1] {
                let other = other.clamp(min, max);
                let changed = match has_end {
                    true => format!("{}(high_window=1000,{}={other})", entry.name, param.name),
                    false => format!("{}({}={other})", entry.name, param.name),
                };
                let Some(changed) = StackSpec::parse(&changed).ok().filter(|_| shares) else {
                    continue;
                };
                near(b(&changed).unwrap(), is, 1e-6);
            }
        }
    }
    moved.dedup();
    let known = [
        "aimd",
        "scalable",
        "cubic",
        "bic",
        "htcp",
        "illinois",
        "vegas",
        "highspeed",
    ];
    for law in known.iter().chain(&["bic-linux", "cubic-linux"]) {
        assert!(moved.contains(law), "{law}: {moved:?}");
    }
    // Thresholds of a queue are no decrease.
    assert!(StackSpec::parse("veno").unwrap().removing(1.2).is_none());
    let vegas = StackSpec::parse("vegas").unwrap().removing(1.2).unwrap();
    assert_eq!(vegas.to_string(), "vegas(decrease=0.6)");
    let cubic = StackSpec::parse("cubic").unwrap();
    let moved = [1.2, 0.8].map(|times| cubic.removing(times).unwrap().to_string());
    assert_eq!(moved, ["cubic(beta=0.64)", "cubic(beta=0.76)"]);
    // Both bounds move together.
    let narrow = StackSpec::parse("htcp(beta_min=0.79,beta_max=0.8)").unwrap();
    let moved = narrow.removing(0.8).unwrap().to_string();
    assert_eq!(moved, "htcp(beta_min=0.832,beta_max=0.84)");
}
