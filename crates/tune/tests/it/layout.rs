//! Both sides of the maps see the same bytes: `bpf/shared.h`, compiled, beside `layout`.

use std::collections::BTreeMap;
use std::process::Command;

use fullpipe_policy::{Params, Row, Side};
use fullpipe_tune::layout::{
    self, Control, Event, FlowRecord, Kind, Listing, Locks, Match, Opened, Order, OrderAction,
    Record,
};

use crate::support::compile;

/// Bytes by the name of the structure; `None` without a C compiler.
pub fn of_c(file: &str) -> Option<BTreeMap<String, Vec<u8>>> {
    let (_folder, program) = compile(file)?;
    let out = Command::new(program).output().expect("it runs");
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(pair, 16).expect("digits")
    };
    let line = |line: &str| {
        let (name, digits) = line.split_once(' ').expect("a name");
        let bytes = digits.as_bytes().chunks(2).map(byte).collect();
        (name.to_owned(), bytes)
    };
    Some(
        String::from_utf8(out.stdout)
            .expect("text")
            .lines()
            .map(line)
            .collect(),
    )
}

#[test]
fn structures_are_written_as_the_programs_read_them() {
    let Some(c) = of_c("layout.c") else { return };
    let params = Params {
        law: 1,
        flags: 2,
        rows: 3,
        max_ssthresh: 4,
        gamma: 5,
        gamma_then: 6,
        clamp: 7,
        initial_window: 8,
        spread_us: 9,
        update_interval_us: 10,
        pacing: 11,
        number: [12, 13, 14, 15, 16, 17, 18, 19],
    };
    assert_eq!(layout::params(&params), c["params"]);
    let sizes = [
        layout::RULES,
        layout::POLICIES,
        layout::NETWORKS,
        layout::RANGES,
    ];
    let sizes = sizes.into_iter().map(|n| n as u32);
    let constants = sizes.chain([layout::CLASSES, u32::from(layout::QUEUE)]);
    let constants: Vec<u8> = constants.flat_map(u32::to_ne_bytes).collect();
    assert_eq!(constants, c["constants"]);
    let row = |window, increase, decrease| Row {
        window,
        increase,
        decrease,
    };
    assert_eq!(
        layout::table(&[row(0, 256, 32768), row(38, 512, 30000)]),
        c["table"]
    );
    let m = Match {
        flags: 1,
        side: 2,
        share: 3,
        ranges: vec![(80, 81), (443, 444)],
        algorithm: "fp_aimd".into(),
        send_buffer: 4,
        receive_buffer: 5,
        policy: 6,
    };
    assert_eq!(m.bytes(), c["match"]);
    let control = Control {
        active: 1,
        generation: 2,
        off: true,
        keep: true,
        heartbeat_us: 3,
        patience_us: 4,
        watched: 5,
        never: vec![(22, 23)],
        namespace: 6,
    };
    assert_eq!(control.bytes(), c["control"]);
    let address = [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(layout::prefix(1, address, 120), c["prefix"]);
    let order = Order {
        action: OrderAction::Release,
        rule: Some(2),
        send_buffer: 4,
        receive_buffer: 5,
        algorithm: "reno".into(),
        max_pacing: 6,
        ceiling: 7,
    };
    assert_eq!(order.bytes(), c["order"]);
}

#[test]
fn structures_are_read_as_the_programs_write_them() {
    let Some(c) = of_c("layout.c") else { return };
    assert_eq!(c["listing"].len(), layout::size::LISTING);
    let flow = FlowRecord {
        cookie: 1,
        max_pacing: 2,
        rule: Some(16),
        control: true,
        adopted: true,
        ceiling: 3,
        pacing_status: 4,
        locks: Locks::of(2),
        send_buffer: 18,
        receive_buffer: 19,
        given_send: 20,
        given_receive: 25,
        before: "bbr".into(),
        given: "fp_bic".into(),
        cuts: 21,
        timeouts: 22,
        stalls: 23,
        stalls_ignored: 24,
    };
    let listing = Listing {
        cookie: 1,
        local: ("::1".parse().unwrap(), 3),
        remote: ([10, 0, 0, 2].into(), 4),
        state: 5,
        algorithm: "fp_bic".into(),
        chosen: true,
        done: Some(-7),
        cwnd: 8,
        ssthresh: 9,
        srtt_us: 10,
        mss: 11,
        retransmitted: 12,
        side: Some(Side::Passive),
        bytes_acked: 13,
        max_pacing: 14,
        inode: 17,
        cgroup: 18,
        send_buffer: 15,
        receive_buffer: 16,
        locks: Locks::of(1),
        pacing_status: 1,
        a: Some(26.0),
        b: Some(27.0 / 64.0),
        flow: Some(flow.clone()),
    };
    assert_eq!(Listing::read(&c["listing"]), listing);
    let event = Event {
        time_us: 1,
        cookie: 2,
        kind: Kind::Cut,
        rule: Some(3),
        window: 5.5,
        ssthresh: 6,
        value: 7,
        rtt_us: 8,
        a: 9.0,
        b: 10.0 / 64.0,
        flight: 11,
        delivered: 12,
        state: 13,
    };
    assert_eq!(Record::read(&c["event"]), Some(Record::Event(event)));
    let opened = Opened {
        local: ("::1".parse().unwrap(), 4),
        remote: ("2000::".parse().unwrap(), 5),
        done: -6,
        namespace: 7,
        flow,
    };
    let opened = Box::new(opened);
    assert_eq!(Record::read(&c["opened"]), Some(Record::Opened(opened)));
}
