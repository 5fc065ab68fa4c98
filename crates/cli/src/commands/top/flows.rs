//! What is remembered of flows from look to look.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use fullpipe_observe::tcp_info::{MIN_RTT, RTT, SND_CWND, TOTAL_RETRANS};
use fullpipe_observe::{Observation, Tuned};

use super::super::observe::policies::Tunings;
use super::super::observe::{name, policy};

/// Looks whose windows are remembered: the widest sparkline.
pub const REMEMBERED: usize = 40;

/// Flows that are there now, by cookie.
#[derive(Debug, Default)]
pub struct Flows(HashMap<u64, Row>);

/// A flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Both ends.
    pub name: String,
    pub remote: Option<SocketAddr>,
    pub algorithm: String,
    /// Path of the tuner's policy; empty without one.
    pub policy: String,
    /// a(w) and b(w) in force.
    pub law: (Option<f64>, Option<f64>),
    /// Segments, the latest last.
    pub windows: VecDeque<u64>,
    /// bit/s.
    pub sent: Option<f64>,
    /// bit/s.
    pub received: Option<f64>,
    /// ms.
    pub rtt: Option<f64>,
    /// ms.
    pub min_rtt: Option<f64>,
    /// Segments sent again since the look before.
    pub resent: u64,
    /// The same since the flow began.
    pub resent_ever: u64,
    pub limit: &'static str,
}

impl Flows {
    /// All of them as they are now.
    pub fn look(&mut self, seen: &[Observation], tunings: &Tunings) {
        let mut before = std::mem::take(&mut self.0);
        for flow in seen {
            let cookie = flow.socket.cookie;
            let windows = before.remove(&cookie).map(|row| row.windows);
            let row = row(flow, tunings.get(&cookie), windows.unwrap_or_default());
            self.0.insert(cookie, row);
        }
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.values()
    }
}

fn row(flow: &Observation, tuned: Option<&Tuned>, mut windows: VecDeque<u64>) -> Row {
    let info = &flow.socket.info;
    let millis = |field| info.get(field).map(|us| us as f64 / 1000.0);
    windows.push_back(info.count(&SND_CWND));
    while windows.len() > REMEMBERED {
        windows.pop_front();
    }
    Row {
        name: name(flow),
        remote: Some(flow.socket.remote),
        algorithm: flow.socket.congestion.clone(),
        policy: tuned.map(policy).unwrap_or_default(),
        law: tuned.map_or((None, None), |t| (t.a, t.b)),
        windows,
        sent: flow.sending_rate(),
        received: flow.receiving_rate(),
        rtt: millis(&RTT),
        min_rtt: millis(&MIN_RTT),
        resent: flow.retransmits().unwrap_or(0),
        resent_ever: info.count(&TOTAL_RETRANS),
        limit: flow.limited_by().map_or("-", |limit| limit.word()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fullpipe_observe::{Socket, TcpInfo};

    use super::*;

    #[test]
    fn windows_are_remembered_as_long_as_the_flow_is_there() {
        let flow = |cookie: u64, window: u64, before: Option<u64>| Observation {
            socket: Socket {
                cookie,
                info: TcpInfo::of(&[(SND_CWND, window), (TOTAL_RETRANS, window / 10)]),
                ..Socket::default()
            },
            process: None,
            since: before.map(|n| {
                let then = TcpInfo::of(&[(TOTAL_RETRANS, n / 10)]);
                (Duration::from_secs(1), then)
            }),
        };
        let mut flows = Flows::default();
        flows.look(&[flow(1, 10, None), flow(2, 5, None)], &Tunings::new());
        let tuned = Tuned {
            path: "lab".to_owned(),
            control: true,
            a: Some(4.0),
            b: None,
        };
        flows.look(&[flow(1, 20, Some(10))], &Tunings::from([(1, tuned)]));
        let rows: Vec<&Row> = flows.rows().collect();
        assert_eq!(rows.len(), 1, "2 has gone");
        assert_eq!(rows[0].windows, [10, 20]);
        assert_eq!((rows[0].resent, rows[0].resent_ever), (1, 2));
        assert_eq!(rows[0].policy, "lab (control)");
        assert_eq!(rows[0].law, (Some(4.0), None));
        for window in 0..100 {
            flows.look(&[flow(1, window, None)], &Tunings::new());
        }
        let row = flows.rows().next().unwrap();
        assert_eq!((row.windows.len(), row.windows[0]), (REMEMBERED, 60));
        assert_eq!(row.policy, "");
    }
}
