//! What a client asks a server to do, as bytes.

use fullpipe_run::RunSpec;
use serde::{Deserialize, Serialize};

use super::check;
use super::gate::LONGEST_REQUEST;
use super::seal;
use super::simple;
use crate::content::Content;
use crate::headers;
use crate::io::Mode;

/// One run, as the server needs to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The run; links and routes are left out, because the path is what it is.
    pub spec: RunSpec,
    /// Direction, encryption, content and other options.
    pub options: Options,
}

/// How the server is to do it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Name of the run, for the server's log.
    pub label: String,
    /// Segmentation offload at the server ([`Mode::Bulk`]).
    pub bulk: bool,
    /// The run ends as soon as every flow that has a last segment is complete, if all have.
    pub until_complete: bool,
    /// Data is encrypted. The handshake has said so already.
    pub encrypted: bool,
    /// The path is one of IPv6, whose headers are longer ([`headers`]).
    pub ipv6: bool,
    /// Payload: pattern, file, or headers only.
    pub content: Content,
    /// The request was a JSON object, and the result is to be one.
    #[serde(skip)]
    pub json: bool,
    /// Flows are connections of the kernels' TCP. The handshake has said so already.
    #[serde(skip)]
    pub kernel_tcp: bool,
}

/// Bytes that are no request, by what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Not the bytes of a request.
    #[error("the request cannot be read")]
    Unreadable,
    /// Of another form than this version's, which is that of the result too.
    #[error(
        "client and server are of different versions (requests of form {theirs}, here {FORM}): use the same on both sides"
    )]
    OtherForm {
        /// Its form; 0: from before forms had numbers.
        theirs: u8,
    },
    /// Too long to send.
    #[error("the request has {0} bytes; at most {LONGEST_REQUEST} can be sent")]
    TooLong(usize),
    /// It asks for what cannot be run.
    #[error("{0}")]
    Unsound(String),
}

impl Options {
    /// Packets that are encrypted, or have longer headers, carry less: they are no longer than
    /// others. To be called once, before the request is made of `spec`.
    pub fn make_room(&self, spec: &mut RunSpec) {
        let room = self.overhead() + self.longer_headers();
        if room > 0 {
            headers::make_room(spec, room);
        }
    }

    /// Bytes that the headers in front of every datagram have more than those of IPv4.
    pub(super) fn longer_headers(&self) -> usize {
        match self.ipv6 {
            true => headers::IPV6_MORE,
            false => 0,
        }
    }

    /// Bytes that are added to every datagram.
    pub(super) fn overhead(&self) -> usize {
        match self.encrypted {
            true => seal::OVERHEAD,
            false => 0,
        }
    }

    /// Packet by packet, or merged by segmentation offload.
    pub fn mode(&self) -> Mode {
        match self.bulk {
            true => Mode::Bulk,
            false => Mode::Packet,
        }
    }
}

impl Request {
    /// As bytes.
    ///
    /// # Errors
    /// [`RequestError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, RequestError> {
        let start = [MARK, FORM].to_vec();
        let bytes = postcard::to_extend(self, start).map_err(|_| RequestError::Unreadable)?;
        match bytes.len() <= LONGEST_REQUEST as usize {
            true => Ok(bytes),
            false => Err(RequestError::TooLong(bytes.len())),
        }
    }

    /// From bytes that anybody may have written: every number is checked before anything is done
    /// with it.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RequestError> {
        if simple::is_simple(bytes) {
            let request = simple::read(bytes).map_err(RequestError::Unsound)?;
            return request.checked();
        }
        let body = match bytes {
            [MARK, FORM, body @ ..] => body,
            [MARK, theirs @ ..0x80, ..] => return Err(RequestError::OtherForm { theirs: *theirs }),
            _ => return Err(RequestError::OtherForm { theirs: 0 }),
        };
        let (request, rest): (Self, _) =
            postcard::take_from_bytes(body).map_err(|_| RequestError::Unreadable)?;
        if !rest.is_empty() {
            return Err(RequestError::Unreadable);
        }
        request.checked()
    }

    fn checked(self) -> Result<Self, RequestError> {
        check::options(&self.options)
            .and_then(|()| check::run(&self.spec))
            .map_err(RequestError::Unsound)?;
        Ok(self)
    }
}

/// The first byte of a request, and the number of its form, below 128. What follows has no names in
/// it: a reader of another form would take one field for another. Before there was a number a
/// request began with a seed and the run's nanoseconds: it cannot be mistaken.
const MARK: u8 = b'F';
/// One more for every change of what a request, a message of control or a result is made of.
const FORM: u8 = 14;

#[cfg(test)]
mod tests {
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{
        Ack, Episode, EpisodeKind, Preset, Proof, ReceiverConfig, SackBlocks, Segment,
        SenderConfig, TraceRow,
    };
    use fullpipe_host::{HostOutcome, ReceiverReport, SenderReport};
    use fullpipe_run::{
        ArrivalOutcome, ArrivalRecord, ArrivalSpec, Arrivals, CaptureEvent, CaptureRow,
        CrossOutcome, Extent, FlowSpec, FlowTotals, Histogram, Lateness, LinkOutcome, QueueSample,
        Round, SenderRecord, Series, Session, SizeLaw, Transfer,
    };
    use fullpipe_units::{Span, Time};

    use super::*;

    fn request() -> Request {
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            vec![],
            vec![],
        );
        let class = ArrivalSpec {
            template: FlowSpec {
                name: "mice".to_owned(),
                ..flow.clone()
            },
            arrivals: Arrivals::Poisson { per_second: 5.0 },
            sizes: SizeLaw::Fixed(10),
            session: Session::default(),
            seeded_by: None,
        };
        Request {
            spec: RunSpec {
                // The mark, if no form stood before it.
                seed: MARK.into(),
                duration: Span::from_secs(1),
                flows: vec![flow],
                arrivals: vec![class],
                ..RunSpec::default()
            },
            options: Options::default(),
        }
    }

    /// With one of everything: of what a list does not hold its bytes tell nothing.
    fn result() -> HostOutcome {
        let (at, span) = (Time::from_nanos(1), Span::from_nanos(2));
        let sender = SenderReport {
            flow: 0,
            totals: FlowTotals::default(),
            offered: 1,
            record: SenderRecord {
                rounds: vec![Round {
                    start: at,
                    delivered: 1,
                    cwnd: 10.0,
                }],
                episodes: vec![Episode {
                    at,
                    kind: EpisodeKind::Undo(Some(Proof::Stamp)),
                    before: 5.0,
                    after: 10.0,
                }],
                at_cap: vec![(at, 10.0)],
                variables: vec![(
                    "a",
                    Extent {
                        last: 1.0,
                        max: 2.0,
                    },
                )],
                series: Series {
                    rows: vec![TraceRow::default()],
                    variables: vec![("a", vec![1.0])],
                },
                ..SenderRecord::default()
            },
            started: at,
            completed: Some(at),
            acked: 0,
        };
        let receiver = ReceiverReport {
            flow: 0,
            totals: FlowTotals::default(),
            arrived: 1,
            not_taken: 0,
            arrivals: ArrivalRecord {
                delivered: vec![1],
                arrived: vec![2],
            },
        };
        let class = ArrivalOutcome {
            name: "mice".to_owned(),
            mss: 1448,
            packet: 1500,
            transfers: vec![Transfer {
                start: at,
                size: 3,
                completion: Some(span),
                lost: 1,
                retransmits: 1,
                timeouts: 0,
            }],
            rtt: Histogram::default(),
            totals: FlowTotals::default(),
            delivered_per_interval: vec![3],
        };
        let cross = CrossOutcome {
            name: "ping".to_owned(),
            packet: 64,
            answered: true,
            sent: 2,
            arrived: 1,
            dropped: 1,
            arrived_measured: 1,
            sent_measured: 2,
            last_arrival: at,
            delay: Histogram::default(),
            unloaded: span,
            sent_per_interval: vec![2],
            arrived_per_interval: vec![1],
            series: vec![(at, span)],
        };
        let interface = LinkOutcome {
            name: "host".to_owned(),
            offered: 9,
            delivered: 8,
            delivered_bytes: 7,
            measured_bytes: 6,
            buffer_drops: 5,
            random_drops: 4,
            policer_drops: 3,
            early_drops: 2,
            marks: 1,
            ties: Some(1),
            queueing_delay: Histogram::default(),
            queue_max: 4,
            queue_mean: 1.5,
            utilization: 0.5,
            series: vec![QueueSample {
                at,
                packets: 2,
                min: 1,
                max: 4,
            }],
        };
        let segment = Segment {
            seq: 1,
            syn: false,
            retransmission: false,
            stamp: at,
            ect: true,
            ce: false,
            cwr: false,
            push: true,
        };
        let ack = Ack {
            cum: 1,
            syn: false,
            echo: at,
            stamp_ms: 1,
            one_way: Some(span),
            sacks: SackBlocks::default(),
            dsack: false,
            ece: true,
            window_end: 9,
        };
        let seen = [
            CaptureEvent::SegmentSent(segment),
            CaptureEvent::SegmentReceived(segment),
            CaptureEvent::SegmentDropped(segment),
            CaptureEvent::AckSent(ack),
            CaptureEvent::AckReceived(ack),
            CaptureEvent::AckDropped(1),
            CaptureEvent::SegmentLost(1),
        ];
        let row = |event| CaptureRow { at, flow: 0, event };
        let mut result = HostOutcome {
            senders: vec![sender],
            receivers: vec![receiver],
            classes: vec![class],
            cross: vec![cross],
            interfaces: vec![(0, interface)],
            capture: seen.map(row).to_vec(),
            ..HostOutcome::default()
        };
        result.lateness.arrivals = Some(Lateness::default());
        result
    }

    #[test]
    fn a_request_of_another_version_says_so() {
        let ours = request().encode().unwrap();
        Request::decode(&ours).unwrap();
        for (theirs, bytes) in [
            (0, &ours[2..]),
            (FORM + 1, &[&[MARK, FORM + 1], &ours[2..]].concat()),
            (0, b""),
        ] {
            let why = Request::decode(bytes).unwrap_err();
            assert_eq!(why, RequestError::OtherForm { theirs });
            assert!(why.to_string().contains("different versions"), "{why}");
        }
    }

    /// If this fails, what hosts say to each other has changed: `FORM` grows by one, and the
    /// snapshot is taken anew (`INSTA_UPDATE=always`). The names show fields that change places
    /// without changing a byte; the bytes show what a name hides, such as the order of variants.
    #[test]
    fn a_form_does_not_change() {
        let page = include_str!("../../../../docs/wire.md").replace('\n', " ");
        let said = format!("the number of the form, {FORM},");
        assert!(page.contains(&said), "docs/wire.md does not say: {said}");
        let hex = |bytes: &[u8]| -> String {
            let lines = bytes.chunks(32).map(|line| {
                let text: String = line.iter().map(|b| format!("{b:02x}")).collect();
                format!("{text}\n")
            });
            lines.collect()
        };
        let (request, result) = (request(), result());
        insta::assert_snapshot!(format!(
            "form {FORM}\n\nrequest\n{}{}\nresult\n{}{}",
            hex(&request.encode().unwrap()),
            serde_json::to_string_pretty(&request).unwrap(),
            hex(&postcard::to_stdvec(&result).unwrap()),
            serde_json::to_string_pretty(&result).unwrap(),
        ));
    }
}
