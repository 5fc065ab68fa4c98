//! Rows as the simulator would record them.

use fullpipe_flow::{Ack, Preset, ReceiverConfig, SackBlocks, Segment, SenderConfig};
use fullpipe_run::{CaptureEvent, CaptureRow, FlowSpec};
use fullpipe_units::Time;

pub fn flow(mtu: u32, stamps: bool) -> FlowSpec {
    let stack = "reno".parse().unwrap();
    let mut sender = SenderConfig::preset(Preset::Y2026, mtu);
    if !stamps {
        sender.header = 40;
        sender.mss = mtu - 40;
    }
    let receiver = ReceiverConfig::preset(Preset::Y2026);
    FlowSpec::new("main", stack, sender, receiver, vec![0], vec![1])
}

pub fn segment(seq: u64, stamp: Time) -> Segment {
    Segment {
        seq,
        syn: false,
        retransmission: false,
        stamp,
        ect: false,
        ce: false,
        cwr: false,
        push: false,
    }
}

pub fn ack(cum: u64, echo: Time, stamp_ms: u32) -> Ack {
    Ack {
        cum,
        syn: false,
        echo,
        stamp_ms,
        one_way: None,
        sacks: SackBlocks::default(),
        dsack: false,
        ece: false,
        window_end: u64::MAX,
    }
}

pub fn sent(flow: u32, at: Time, segment: Segment) -> CaptureRow {
    let event = CaptureEvent::SegmentSent(segment);
    CaptureRow { at, flow, event }
}

pub fn received(flow: u32, at: Time, segment: Segment) -> CaptureRow {
    let event = CaptureEvent::SegmentReceived(segment);
    CaptureRow { at, flow, event }
}

pub fn dropped(flow: u32, at: Time, segment: Segment) -> CaptureRow {
    let event = CaptureEvent::SegmentDropped(segment);
    CaptureRow { at, flow, event }
}

pub fn ack_row(flow: u32, at: Time, ack: Ack) -> CaptureRow {
    let event = CaptureEvent::AckReceived(ack);
    CaptureRow { at, flow, event }
}
