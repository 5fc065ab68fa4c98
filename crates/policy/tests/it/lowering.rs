//! Laws in fixed point.

use fullpipe_policy::{
    Action, LAW_BIC, LAW_CUBIC, LAW_FAST, LAW_HSTCP_LP, LAW_HTCP, LAW_SCALABLE, LAW_TABLE,
    LAW_VEGAS, LAW_WESTWOOD, Row, TABLE_ROWS,
};

use crate::support::{errors, ours, path};

const fn row(increase: u32, decrease: u32) -> Row {
    Row {
        window: 0,
        increase,
        decrease,
    }
}

#[test]
fn pairs_are_one_row() {
    for (stack, pair) in [
        ("reno", row(256, 32768)),
        ("aimd(increase=6,decrease=0.3)", row(1536, 19661)),
        ("aimd(increase=4,decrease=0.125)", row(1024, 8192)),
        ("multcp(n=4)", row(1024, 8192)),
        ("multcp(n=16)", row(4096, 2048)),
        // RFC 3649 section 5 at 3000 segments: a = 15.17, b = 0.2727.
        ("pretuned(window=3000)", row(3883, 17873)),
    ] {
        let (params, table) = ours(&format!("stack = \"{stack}\""));
        assert_eq!((params.law, params.rows), (LAW_TABLE, 1), "{stack}");
        assert_eq!(table, [pair], "{stack}");
    }
}

#[test]
fn pretuning_takes_the_window_that_the_path_can_hold() {
    // 622 Mbit/s x 80 ms / 12,000 bit = 4146 packets, and 854 of buffer.
    let (_, table) = ours(
        "rate = \"622Mbit/s\"\nrtt = \"80ms\"\nbuffer = \"854 packets\"\nstack = \"pretuned\"",
    );
    let (_, same) = ours("stack = \"pretuned(window=5000.67)\"");
    assert_eq!(table, same);
    let (_, capped) = ours("window = \"3000 segments\"\nstack = \"pretuned\"");
    assert_eq!(capped, [row(3883, 17873)]);
}

#[test]
fn highspeed_is_a_table_with_its_error() {
    let policy = path("stack = \"highspeed\"");
    let Action::Ours { params, table } = &policy.compiled.rules[0].action else {
        panic!("not ours");
    };
    assert_eq!((params.law, params.rows as usize), (LAW_TABLE, table.len()));
    assert!((100..=TABLE_ROWS).contains(&table.len()), "{}", table.len());
    assert!(table.windows(2).all(|pair| pair[0].window < pair[1].window));
    let (a, b) = policy.paths[0].table_error;
    assert!(a > 0.0 && a < 0.05 && b > 0.0 && b < 0.05, "{a} {b}");
    // Up to low_window the law is Reno, to the bit.
    assert_eq!(table[0], row(256, 32768));
}

#[test]
fn the_numbers_of_each_law_stand_where_the_kernel_side_reads_them() {
    for (stack, law, numbers) in [
        ("scalable", LAW_SCALABLE, vec![42_949_673, 8192, 16]),
        ("htcp", LAW_HTCP, vec![1_000_000, 32768, 52429, 13107, 1]),
        (
            "htcp(rtt_scaling=on)",
            LAW_HTCP,
            vec![1_000_000, 32768, 52429, 13107, 3],
        ),
        ("bic", LAW_BIC, vec![14, 4096, 51, 4, 256, 52416, 1]),
        ("bic-paper", LAW_BIC, vec![14, 8192, 3, 2, 3, 57344, 1]),
        ("cubic", LAW_CUBIC, vec![26214, 45875, 3]),
        ("westwood", LAW_WESTWOOD, vec![50_000]),
        ("vegas", LAW_VEGAS, vec![256, 768, 32768]),
        ("fast", LAW_FAST, vec![51200, 32768, 16384]),
        ("hstcp-lp", LAW_HSTCP_LP, vec![9830, 1000]),
    ] {
        let (params, _) = ours(&format!("stack = \"{stack}\""));
        assert_eq!(params.law, law, "{stack}");
        assert_eq!(params.number[..numbers.len()], numbers, "{stack}");
        assert!(
            params.number[numbers.len()..].iter().all(|n| *n == 0),
            "{stack}"
        );
    }
}

#[test]
fn slow_start_comes_from_the_stack() {
    let of = |stack: &str| {
        let (params, _) = ours(&format!("stack = \"{stack}\""));
        (params.max_ssthresh, params.gamma, params.gamma_then)
    };
    assert_eq!(of("reno"), (0, 0, 0));
    assert_eq!(of("reno+limited(max_ssthresh=200)"), (200, 0, 0));
    assert_eq!(of("reno+gamma(threshold=2,then=ca)"), (0, 512, 0));
    assert_eq!(of("reno+gamma(then=limited)"), (0, 256, u32::MAX));
    assert_eq!(
        of("reno+gamma(limit=120,max_ssthresh=300)"),
        (300, 256, 120)
    );
    assert_eq!(of("vegas"), (0, 256, 0));
    assert_eq!(of("vegas+limited(max_ssthresh=100)"), (100, 0, 0));
}

#[test]
fn the_initial_window_is_set_once_and_spread_over_its_gaps() {
    let of = |lines: &str| {
        let (params, _) = ours(lines);
        (params.initial_window, params.spread_us)
    };
    assert_eq!(of("stack = \"reno\""), (0, 0));
    assert_eq!(of("stack = \"reno+burst(iw=24)\""), (24, 0));
    // min(RTT/IW, 4 ms) times the segments (Initial Spreading 2014).
    assert_eq!(of("stack = \"reno+spread\"\nrtt = \"80ms\""), (10, 40_000));
    assert_eq!(
        of("stack = \"reno+spread(iw=20)\"\nrtt = \"40ms\""),
        (20, 40_000)
    );
    // Less than a jiffy apart: at once.
    assert_eq!(of("stack = \"reno+spread\"\nrtt = \"9ms\""), (10, 0));
    assert_eq!(of("stack = \"reno+spread\"\nrtt = \"10ms\""), (10, 10_000));
    let coarse = "stack = \"reno+spread(jiffy=10ms)\"\nrtt = \"90ms\"";
    assert_eq!(of(coarse), (10, 0));
    let table = "initial_window = { segments = 24, spread = \"4ms\" }";
    assert_eq!(
        of(&format!("stack = \"reno\"\nrtt = \"20ms\"\n{table}")),
        (24, 0)
    );
    assert_eq!(
        of(&format!("stack = \"reno\"\nrtt = \"170ms\"\n{table}")),
        (24, 96_000)
    );
    let twice = errors("stack = \"reno+burst(iw=24)\"\ninitial_window = { segments = 24 }");
    assert!(
        twice.contains("the stack sets the initial window, too"),
        "{twice}"
    );
}

#[test]
fn the_polled_daemon_is_an_interval() {
    let of = |lines: &str| ours(lines).0.update_interval_us;
    assert_eq!(of("stack = \"highspeed(retune=100ms)\""), 100_000);
    assert_eq!(
        of("stack = \"highspeed\"\nupdate_interval = \"100ms\""),
        100_000
    );
    assert!(
        errors("stack = \"highspeed(retune=100ms)\"\nupdate_interval = \"1s\"").contains("same")
    );
}

#[test]
fn algorithms_of_the_kernel_are_called_as_it_calls_them() {
    for (line, name, pacing) in [
        ("stack = \"cubic-linux\"", "cubic", 0),
        ("stack = \"bbr-linux\"", "bbr", 0),
        (
            "stack = \"htcp-linux\"\npacing = \"8Mbit/s\"",
            "htcp",
            1_000_000,
        ),
        (
            "kernel = \"dctcp\"\nrate = \"1Gbit/s\"\npacing = \"path.rate*0.5\"",
            "dctcp",
            62_500_000,
        ),
    ] {
        let rule = path(line).compiled.rules.swap_remove(0);
        let name = name.to_owned();
        assert_eq!(rule.action, Action::Kernel { name, pacing });
    }
}
