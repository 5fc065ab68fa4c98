//! Names, units and number formats of the report, the page and the tables.

use crate::compare::{Deviation, Limit, Metric};

/// Every metric, in the order of tables.
pub const METRICS: [Metric; 12] = [
    Metric::Goodput,
    Metric::RttMean,
    Metric::RttP95,
    Metric::CwndMean,
    Metric::FirstLossTime,
    Metric::FirstLossWindow,
    Metric::LossEvents,
    Metric::Retransmits,
    Metric::Timeouts,
    Metric::Share,
    Metric::Winner,
    Metric::Completion,
];

/// Name of a metric in files: `first_loss_window`.
pub fn key(metric: Metric) -> &'static str {
    match metric {
        Metric::Goodput => "goodput",
        Metric::RttMean => "rtt_mean",
        Metric::RttP95 => "rtt_p95",
        Metric::CwndMean => "cwnd_mean",
        Metric::FirstLossTime => "first_loss_time",
        Metric::FirstLossWindow => "first_loss_window",
        Metric::LossEvents => "loss_events",
        Metric::Retransmits => "retransmits",
        Metric::Timeouts => "timeouts",
        Metric::Share => "share",
        Metric::Winner => "winner",
        Metric::Completion => "completion",
    }
}

/// The metric of a name in a file.
pub fn metric(key: &str) -> Option<Metric> {
    METRICS.into_iter().find(|m| self::key(*m) == key)
}

/// Name of a metric for people.
pub fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Goodput => "goodput",
        Metric::RttMean => "mean RTT",
        Metric::RttP95 => "RTT, 95th percentile",
        Metric::CwndMean => "mean window",
        Metric::FirstLossTime => "time of the first loss",
        Metric::FirstLossWindow => "window at the first loss",
        Metric::LossEvents => "loss events",
        Metric::Retransmits => "retransmissions",
        Metric::Timeouts => "timeouts",
        Metric::Share => "share of the link",
        Metric::Winner => "winner",
        Metric::Completion => "completion time",
    }
}

/// Unit of a metric, empty for counts.
pub fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Goodput => "Mbit/s",
        Metric::RttMean | Metric::RttP95 => "ms",
        Metric::CwndMean | Metric::FirstLossWindow => "segments",
        Metric::FirstLossTime | Metric::Completion => "s",
        Metric::Share => "%",
        Metric::LossEvents | Metric::Retransmits | Metric::Timeouts | Metric::Winner => "",
    }
}

/// A value of a metric: counts whole, means of counts with one decimal, the rest with five digits;
/// `-` for none.
pub fn value(metric: Metric, value: Option<f64>) -> String {
    let Some(v) = value else {
        return "-".to_owned();
    };
    match metric {
        // Flows count from one for people.
        Metric::Winner => format!("flow {}", v + 1.0),
        Metric::LossEvents | Metric::Retransmits | Metric::Timeouts if v == v.round() => {
            format!("{v:.0}")
        }
        Metric::LossEvents | Metric::Retransmits | Metric::Timeouts => format!("{v:.1}"),
        Metric::FirstLossTime | Metric::Completion => format!("{v:.3}"),
        Metric::FirstLossWindow if v == v.round() => format!("{v:.0}"),
        Metric::Share | Metric::FirstLossWindow => format!("{v:.1}"),
        _ => digits(v),
    }
}

/// Five significant digits, at most four of them decimals.
fn digits(v: f64) -> String {
    let decimals = match v.abs() {
        a if a >= 1e4 => 0,
        a if a >= 1e3 => 1,
        a if a >= 1e2 => 2,
        a if a >= 1e1 => 3,
        _ => 4,
    };
    format!("{v:.decimals$}")
}

/// A limit: `2 % or 2 segments`.
pub fn limit(metric: Metric, limit: Limit) -> String {
    match limit {
        Limit::Chance { relative, absolute } => {
            let near = self::limit(metric, Limit::Near { relative, absolute });
            format!("{near}, or intervals overlap")
        }
        Limit::Near { relative, absolute } => {
            let mut parts = Vec::new();
            if relative > 0.0 {
                parts.push(format!("{} %", round(100.0 * relative)));
            }
            if absolute > 0.0 {
                let unit = match unit(metric) {
                    "%" => "points",
                    unit => unit,
                };
                parts.push(format!("{absolute} {unit}").trim_end().to_owned());
            }
            parts.join(" or ")
        }
        Limit::Overlap => "95 % intervals overlap".to_owned(),
        Limit::Same => "the same".to_owned(),
    }
}

/// The size of a deviation: percent of Linux's value, or the difference where percent says nothing.
pub fn size(d: &Deviation) -> String {
    match (d.oracle, d.sim) {
        (None, None) => "-".to_owned(),
        (Some(_), None) => "not in the simulator".to_owned(),
        (None, Some(_)) => "not in Linux".to_owned(),
        (Some(o), Some(s)) => match d.metric {
            Metric::Winner if o == s => "same".to_owned(),
            Metric::Winner => "other".to_owned(),
            _ if o == s => "0".to_owned(),
            Metric::Share => format!("{} points", signed(s - o)),
            _ if o == 0.0 => format!("{:+}", round(s)),
            _ => format!("{} %", signed(100.0 * (s - o) / o)),
        },
    }
}

/// How much of its limit a deviation takes: 1 on the limit, infinite where one side alone has a
/// value; none without a limit.
pub fn load(d: &Deviation) -> Option<f64> {
    let limit = d.limit?;
    let (o, s) = match (d.oracle, d.sim) {
        (Some(o), Some(s)) => (o, s),
        (None, None) => return Some(0.0),
        _ => return Some(f64::INFINITY),
    };
    let apart = (s - o).abs();
    let allowed = match limit {
        Limit::Near { relative, absolute } => (relative * o.abs()).max(absolute),
        Limit::Chance { relative, absolute } => {
            let chance = d.half_widths.map_or(0.0, |(a, b)| a + b);
            (relative * o.abs()).max(absolute).max(chance)
        }
        Limit::Overlap => d.half_widths.map_or(0.0, |(a, b)| a + b),
        Limit::Same => 0.0,
    };
    Some(if apart == 0.0 { 0.0 } else { apart / allowed })
}

/// One decimal and a sign, unless it rounds to zero.
fn signed(v: f64) -> String {
    let text = format!("{v:+.1}");
    match text.as_str() {
        "+0.0" | "-0.0" => "0.0".to_owned(),
        _ => text,
    }
}

/// Three decimals, no trailing zeros.
fn round(v: f64) -> f64 {
    (v * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{EVENTS, FIRST_LOSS, GOODPUT, SHARE};

    fn deviation(metric: Metric, o: Option<f64>, s: Option<f64>, limit: Limit) -> Deviation {
        Deviation {
            metric,
            flow: None,
            oracle: o,
            sim: s,
            half_widths: None,
            limit: Some(limit),
            inside: true,
        }
    }

    #[test]
    fn keys_are_those_of_the_json() {
        for m in METRICS {
            assert_eq!(serde_json::to_value(m).unwrap(), key(m));
            assert_eq!(metric(key(m)), Some(m));
        }
        assert_eq!(metric("speed"), None);
    }

    #[test]
    fn limits_in_words() {
        assert_eq!(limit(Metric::Goodput, GOODPUT), "2 %");
        assert_eq!(
            limit(Metric::FirstLossWindow, FIRST_LOSS),
            "2 % or 2 segments"
        );
        assert_eq!(limit(Metric::Retransmits, EVENTS), "15 % or 2");
        assert_eq!(limit(Metric::Share, SHARE), "5 points");
    }

    #[test]
    fn numbers_in_words() {
        assert_eq!(value(Metric::Goodput, Some(95.123_456)), "95.123");
        assert_eq!(value(Metric::CwndMean, Some(12_345.6)), "12346");
        assert_eq!(value(Metric::Retransmits, Some(12.0)), "12");
        assert_eq!(value(Metric::Retransmits, Some(12.4)), "12.4");
        assert_eq!(value(Metric::Winner, Some(0.0)), "flow 1");
        assert_eq!(value(Metric::FirstLossTime, None), "-");
        let d = |o, s| deviation(Metric::Retransmits, o, s, EVENTS);
        assert_eq!(size(&d(Some(200.0), Some(220.0))), "+10.0 %");
        assert_eq!(size(&d(Some(0.0), Some(3.0))), "+3");
        assert_eq!(size(&d(Some(0.0), Some(0.0))), "0");
        assert_eq!(size(&d(Some(90.0), Some(89.999))), "0.0 %");
        assert_eq!(size(&d(None, Some(3.0))), "not in Linux");
    }

    #[test]
    fn a_load_of_one_is_on_the_limit() {
        let d = |o, s| deviation(Metric::Retransmits, Some(o), Some(s), EVENTS);
        assert_eq!(load(&d(200.0, 230.0)), Some(1.0));
        assert_eq!(load(&d(4.0, 8.0)), Some(2.0));
        assert_eq!(load(&d(0.0, 0.0)), Some(0.0));
        let one_sided = deviation(Metric::FirstLossWindow, Some(1.0), None, FIRST_LOSS);
        assert_eq!(load(&one_sided), Some(f64::INFINITY));
        let intervals = Deviation {
            half_widths: Some((3.0, 1.0)),
            ..deviation(Metric::CwndMean, Some(10.0), Some(12.0), Limit::Overlap)
        };
        assert_eq!(load(&intervals), Some(0.5));
    }
}
