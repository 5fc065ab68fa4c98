//! Set-ups of unit tests.

use std::net::IpAddr;

use fullpipe_policy::{
    Action, Compiled, OnDaemonLoss, Params, Prefix, Row, Rule, Selector, Side, Via,
};

/// AIMD(1, 1/2) to a network.
pub fn rule(name: &str, address: &str, bits: u8) -> Rule {
    let address: IpAddr = address.parse().expect("an address");
    Rule {
        name: name.into(),
        selector: Selector {
            to: vec![Prefix { address, bits }],
            ports: Vec::new(),
            side: Side::Either,
            cgroup: None,
            process: None,
        },
        respect_app: true,
        share: 1 << 16,
        divide: false,
        via: Via::Auto,
        action: Action::Ours {
            params: Params {
                rows: 1,
                ..Params::default()
            },
            table: vec![Row {
                window: 0,
                increase: 256,
                decrease: 32768,
            }],
        },
        send_buffer: None,
        receive_buffer: None,
        stack: "reno".into(),
    }
}

/// No rule.
pub fn empty() -> Compiled {
    Compiled {
        rules: Vec::new(),
        warnings: Vec::new(),
        on_daemon_loss: OnDaemonLoss::Standard,
        never_tune: Vec::new(),
    }
}
