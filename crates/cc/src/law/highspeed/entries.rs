//! What the registry says of HighSpeed TCP: `highspeed` and `highspeed-ns2`, their parameters, and
//! which contradict each other.

use alloc::string::String;

use fullpipe_units::{Span, Time};

use super::{Constants, Form, HighSpeed, Response, Tuned};
use crate::entry::Entry;
use crate::params::{ParamSpec, Params};

/// `highspeed`.
pub const HIGHSPEED: Entry<HighSpeed> = Entry {
    name: "highspeed",
    aliases: &["hstcp"],
    about: "HighSpeed TCP: increase and decrease that depend on the window",
    source: "RFC 3649 section 5",
    params: &[
        low_window(38.0, "RFC 3649 section 5"),
        LOW_P,
        HIGH_WINDOW,
        HIGH_P,
        HIGH_DECREASE,
        param!(form: choice = Form::WORDS,
            "p(w): log-log line, 0.078/w^1.2, 1/(12.8 w^1.2); or the table of Appendix B read \
            downwards or (Linux) upwards",
            "RFC 3649 section 5 and Appendix B"),
        param!(constants: choice = &["rfc", "ns2"],
            "loss rate at low_window when low_p is not given: 1e-3, or 1.5/low_window^2 as in ns-2",
            "RFC 3649 section 5; ns-2 tcp.cc"),
        rto_b(0.0),
        FIRST_DECREASE,
        RETUNE,
    ],
    build: |p| {
        let form = Form::of(p.word("form"));
        let given = |names: &[&str]| names.iter().any(|name| p.is_given(name));
        if form != Form::Exact && (given(&["low_p", "high_p"]) || p.word("constants") == "ns2") {
            let form = p.word("form");
            return Err(format!(
                "form={form} fixes p(w); low_p, high_p and constants need form=exact"
            ));
        }
        let tabular = matches!(form, Form::Floor | Form::Ceil);
        if tabular && given(&["low_window", "high_window", "high_decrease"]) {
            let form = p.word("form");
            return Err(format!(
                "form={form} is the table of the RFC's constants; they cannot be changed"
            ));
        }
        let low_window = p.number("low_window");
        let low_p = if p.word("constants") == "ns2" && !p.is_given("low_p") {
            Constants::ns2_low_p(low_window)
        } else {
            p.number("low_p")
        };
        let constants = Constants {
            low_window,
            low_p,
            high_window: p.number("high_window"),
            high_p: p.number("high_p"),
            high_decrease: p.number("high_decrease"),
        };
        build(p, constants, form)
    },
};

/// `highspeed-ns2`.
pub const HIGHSPEED_NS2: Entry<HighSpeed> = Entry {
    name: "highspeed-ns2",
    aliases: &["hstcp-ns2"],
    about: "HighSpeed TCP as the ns-2 of early 2002 had it and the Net100 pages ran it: \
        low_window 31",
    source: "ns-2 tcp.cc; Net100 2003",
    params: &[
        low_window(31.0, "ns-2 before August 2002; 38 after"),
        HIGH_WINDOW,
        HIGH_P,
        HIGH_DECREASE,
        rto_b(0.5),
        FIRST_DECREASE,
        RETUNE,
    ],
    build: |p| {
        let low_window = p.number("low_window");
        let constants = Constants {
            low_window,
            low_p: Constants::ns2_low_p(low_window),
            high_window: p.number("high_window"),
            high_p: p.number("high_p"),
            high_decrease: p.number("high_decrease"),
        };
        build(p, constants, Form::Exact)
    },
};

fn build(p: &Params, constants: Constants, form: Form) -> Result<HighSpeed, String> {
    let mut law = HighSpeed::new(Response::new(constants, form)?);
    let rto_b = p.number("rto_b");
    law.rto_decrease = (rto_b > 0.0).then_some(rto_b);
    law.halve_next = p.word("first_decrease") == "half";
    let period = p.time("retune");
    law.tuned = (period > Span::ZERO).then_some(Tuned {
        period,
        next: Time::ZERO,
        a: 1.0,
        b: 0.5,
    });
    Ok(law)
}

const fn low_window(default: f64, source: &'static str) -> ParamSpec {
    param!(low_window: number = default, 1.0..=1e6, "segments",
        "window up to which the flow is standard TCP", source)
}

const LOW_P: ParamSpec = param!(low_p: number = 1e-3, 1e-12..=1.0, "events/segment",
    "loss rate at low_window", "RFC 3649 section 5");

const HIGH_WINDOW: ParamSpec = param!(high_window: number = 83_000.0, 2.0..=1e9, "segments",
    "window at the end point, 10 Gbit/s at 100 ms",
    "RFC 3649 section 5");

const HIGH_P: ParamSpec = param!(high_p: number = 1e-7, 1e-15..=1.0, "events/segment",
    "loss rate at high_window", "RFC 3649 section 5");

const HIGH_DECREASE: ParamSpec = param!(high_decrease: number = 0.1, 0.01..=1.0, "fraction",
    "fraction removed at high_window, at most 0.5",
    "RFC 3649 section 5")
.removed();

const FIRST_DECREASE: ParamSpec = param!(first_decrease: choice = &["law", "half"],
    "decrease at the connection's first congestion event: b(w), or one half as in ns-2",
    "Net100 2003 (law); ns-2 (half)");

const RETUNE: ParamSpec = param!(retune: time = Span::ZERO, Span::ZERO..=Span::from_secs(60),
    "a and b are taken from the window once per period, as the Net100 daemon did every 100 ms; 0s: \
    on every ACK",
    "Net100 2003");

const fn rto_b(default: f64) -> ParamSpec {
    param!(rto_b: number = default, 0.0..=0.999, "fraction",
        "fraction removed on a timeout; 0: b(w)", "RFC 3649 says nothing; ns-2 0.5")
}

#[cfg(test)]
mod tests {
    use crate::rounds::try_law;

    #[test]
    fn contradicting_parameters_are_refused_in_words() {
        for (params, word) in [
            (
                &[("high_window", "38")][..],
                "high_window (38) must be above low_window (38)",
            ),
            (&[("high_decrease", "0.6")], "at most 0.5"),
            (&[("high_p", "0.01")], "must be below low_p"),
            (&[("form", "rfc"), ("low_p", "0.01")], "need form=exact"),
            (
                &[("form", "ceil"), ("low_window", "31")],
                "cannot be changed",
            ),
        ] {
            let why = try_law("highspeed", params).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
