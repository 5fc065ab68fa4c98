//! Flows of a run.

use fullpipe_realtime::live::{Live, LiveFlow, NamedFlow};
use fullpipe_units::{Span, Time};

use super::{Kind, Page, labels};

/// The flows of the latest run, in the state of a moment ago.
pub fn page(live: &Live) -> String {
    live.is_read();
    let now = live.latest();
    let mut page = Page::default();
    let alone = |value: f64| [(String::new(), value)];
    page.family(
        Kind::Counter,
        "runs_total",
        "Runs begun",
        alone(now.run.number as f64),
    );
    let lasted = (now.at - Time::ZERO).as_secs_f64();
    page.family(
        Kind::Gauge,
        "run_seconds",
        "Time since the run began",
        alone(lasted),
    );
    let mut of_flows = |kind, name, help, value: &dyn Fn(&NamedFlow, &LiveFlow) -> Option<f64>| {
        let flows = now.run.flows.iter().zip(&now.flows);
        let samples = flows.filter_map(|(flow, state)| {
            let direction = if flow.reverse { "reverse" } else { "forward" };
            let own = [
                ("flow", flow.name.as_str()),
                ("stack", &flow.stack),
                ("direction", direction),
            ];
            Some((labels(&own), value(flow, state)?))
        });
        page.family(kind, name, help, samples);
    };
    of_flows(
        Kind::Counter,
        "flow_delivered_bytes_total",
        "Payload delivered",
        &|flow, state| Some(state.delivered as f64 * f64::from(flow.mss)),
    );
    of_flows(
        Kind::Counter,
        "flow_retransmitted_segments_total",
        "Segments sent again",
        &|_, state| Some(state.retransmits? as f64),
    );
    of_flows(
        Kind::Gauge,
        "flow_window_segments",
        "Congestion window",
        &|_, state| state.cwnd,
    );
    of_flows(
        Kind::Gauge,
        "flow_rtt_seconds",
        "Smoothed round-trip time",
        &|_, state| state.srtt.map(Span::as_secs_f64),
    );
    page.text()
}

#[cfg(test)]
mod tests {
    use fullpipe_realtime::live::LiveRun;

    use super::*;

    #[test]
    fn a_flow_has_what_its_host_knows() {
        let live = Live::default();
        let named = |name: &str, reverse| NamedFlow {
            name: name.to_owned(),
            stack: "cubic".to_owned(),
            mss: 1000,
            size: None,
            reverse,
        };
        live.begin(LiveRun {
            flows: vec![named("main", false), named("back", true)],
            ..LiveRun::default()
        });
        let sent = LiveFlow {
            delivered: 7,
            retransmits: Some(2),
            cwnd: Some(12.5),
            srtt: Some(Span::from_millis(20)),
        };
        let received = LiveFlow {
            delivered: 3,
            ..LiveFlow::default()
        };
        live.publish(Time::from_nanos(500_000_000), [sent, received].into_iter());
        let page = page(&live);
        super::super::tests::holds(&page);
        let samples: Vec<&str> = page.lines().filter(|l| !l.starts_with('#')).collect();
        let main = r#"{flow="main",stack="cubic",direction="forward"}"#;
        let back = r#"{flow="back",stack="cubic",direction="reverse"}"#;
        assert_eq!(
            samples,
            [
                "fullpipe_runs_total 1".to_owned(),
                "fullpipe_run_seconds 0.5".to_owned(),
                format!("fullpipe_flow_delivered_bytes_total{main} 7000"),
                format!("fullpipe_flow_delivered_bytes_total{back} 3000"),
                format!("fullpipe_flow_retransmitted_segments_total{main} 2"),
                format!("fullpipe_flow_window_segments{main} 12.5"),
                format!("fullpipe_flow_rtt_seconds{main} 0.02"),
            ]
        );
    }
}
