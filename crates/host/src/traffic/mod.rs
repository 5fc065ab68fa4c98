//! Traffic that is not a lasting flow: datagrams at prescribed times, answered or not, and short
//! flows that come and go.

mod class;
mod cross;

pub use class::ClassRecord;
pub(crate) use class::{Class, OpenSession, Short};
pub use cross::Cross;

use fullpipe_run::{ArrivalSpec, CrossSpec, RunSpec};
use fullpipe_units::Time;

/// When each short flow of a class starts, and its segments: for grounds whose hosts are not of
/// this crate. Of a class whose sessions go on these are the first transfers alone: when the others
/// start is known when they do.
pub fn short_flows(class: &ArrivalSpec, spec: &RunSpec) -> Vec<(Time, u64)> {
    let mut class = Class::new(class, spec);
    let one = || {
        let at = class.next_arrival()?;
        Some((at, class.next_flow().0.sender.transfer.unwrap_or(1)))
    };
    std::iter::from_fn(one).collect()
}

/// When each datagram of cross traffic leaves.
pub fn departures(cross: &CrossSpec, spec: &RunSpec) -> Vec<Time> {
    let mut cross = Cross::new(cross, spec);
    let mut next = cross.begin();
    let one = || {
        let at = next?;
        cross.depart(at);
        next = Some(cross.next_departure()).filter(|t| *t < Time::MAX);
        Some(at)
    };
    std::iter::from_fn(one).collect()
}

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{Arrivals, FlowSpec, Session, SizeLaw, Waveform};
    use fullpipe_units::{Rate, Span};

    use super::*;

    #[test]
    fn traffic_is_known_before_the_run() {
        let spec = RunSpec {
            duration: Span::from_secs(1),
            ..RunSpec::default()
        };
        let ms = |ms| Time::ZERO + Span::from_millis(ms);
        let template = FlowSpec::new(
            "mice",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Linux, 1500),
            ReceiverConfig::preset(Preset::Linux),
            vec![],
            vec![],
        );
        let class = ArrivalSpec {
            template,
            arrivals: Arrivals::Every(Span::from_millis(400)),
            sizes: SizeLaw::Fixed(7),
            session: Session::default(),
            seeded_by: None,
        };
        assert_eq!(short_flows(&class, &spec), [(ms(400), 7), (ms(800), 7)]);
        // None at the end of the run: it could not begin.
        let halves = ArrivalSpec {
            arrivals: Arrivals::Every(Span::from_millis(500)),
            ..class
        };
        assert_eq!(short_flows(&halves, &spec), [(ms(500), 7)]);
        // A seed whose thoughts are short, on a path without delay: the class ends all the same.
        let chatty = ArrivalSpec {
            arrivals: Arrivals::Spread {
                count: 2,
                within: Span::ZERO,
            },
            session: Session {
                exchanges: 1e6,
                think: Span::from_millis(100),
            },
            ..halves
        };
        let mut chats = Class::new(&chatty, &spec);
        chats.next_arrival().unwrap();
        let mut session = chats.next_flow().1;
        let mut flows = 1;
        // The second is announced, and counts.
        chats.next_arrival().unwrap();
        while chats.go_on(Time::ZERO, session.unwrap()).is_some() {
            session = chats.next_of_session().unwrap().1;
            flows += 1;
        }
        chats.next_flow();
        flows += 1;
        assert_eq!(chats.next_arrival(), None);
        assert_eq!(chatty.most_transfers(spec.duration), flows);
        // Eleven of each of (sqrt(2) + 4)^2, 29.3 sessions.
        assert_eq!(flows, 322);
        // 1250 bytes at 50 kbit/s: one every 200 ms, the first when its bits have come together.
        let rate = Waveform::Steps {
            steps: vec![(Span::ZERO, Rate::from_bits_per_sec(50_000))],
            period: None,
        };
        let cross = CrossSpec::source("noise", 1250, rate, vec![]);
        let wanted = [200, 400, 600, 800, 1000].map(ms);
        assert_eq!(departures(&cross, &spec), wanted);
        let pings = CrossSpec::probes("ping", 92, Span::from_millis(300), vec![], vec![]);
        assert_eq!(departures(&pings, &spec), [0, 300, 600, 900].map(ms));
    }
}
