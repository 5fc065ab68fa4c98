//! The matcher beside a model that tries everything bit by bit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fullpipe_policy::{
    Action, Compiled, Flow, OnDaemonLoss, Params, Prefix, Rule, Selector, Side, Verdict, Via,
};
use proptest::prelude::*;

/// Few networks, ports and names, so that rules and flows meet.
fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0_u32..4).prop_map(|low| IpAddr::V4(Ipv4Addr::from_bits(0xc000_0200 | low))),
        (0_u128..4).prop_map(|low| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | low))),
        (0_u32..4).prop_map(|low| {
            IpAddr::V6(Ipv4Addr::from_bits(0xc000_0200 | low).to_ipv6_mapped())
        }),
    ]
}

fn prefix() -> impl Strategy<Value = Prefix> {
    (address(), 0_u8..=128).prop_map(|(address, bits)| {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        // Mostly long ones.
        let bits = longest - bits % 4 * if bits % 7 == 0 { longest / 4 } else { 1 };
        let keep = |width: u32, value: u128| match bits {
            0 => 0,
            bits => value >> (width - u32::from(bits)) << (width - u32::from(bits)),
        };
        let address = match address {
            IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(keep(32, v4.to_bits().into()) as u32)),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(keep(128, v6.to_bits()))),
        };
        Prefix { address, bits }
    })
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Either), Just(Side::Active), Just(Side::Passive)]
}

fn name() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![3 => Just(None), 1 => Just(Some("/a")), 1 => Just(Some("/a/b")), 1 => Just(Some("/ab"))]
}

fn ranges() -> impl Strategy<Value = Vec<std::ops::RangeInclusive<u16>>> {
    prop::collection::vec(
        (1_u16..9, 0_u16..3).prop_map(|(low, more)| low..=low + more),
        0..3,
    )
}

fn rule() -> impl Strategy<Value = Rule> {
    let parts = (
        prop::collection::vec(prefix(), 1..3),
        ranges(),
        side(),
        name(),
        name(),
        any::<bool>(),
        prop_oneof![Just(65536_u32), 0_u32..=65536],
    );
    parts.prop_map(
        |(to, ports, side, cgroup, process, respect_app, share)| Rule {
            name: "a".to_owned(),
            selector: Selector {
                to,
                ports,
                side,
                cgroup: cgroup.map(Into::into),
                process: process.map(Into::into),
            },
            respect_app,
            share,
            divide: false,
            via: Via::Auto,
            action: Action::Ours {
                params: Params::default(),
                table: Vec::new(),
            },
            send_buffer: None,
            receive_buffer: None,
            stack: String::new(),
        },
    )
}

fn flow() -> impl Strategy<Value = Flow> {
    let side = prop_oneof![
        Just(None),
        Just(Some(Side::Active)),
        Just(Some(Side::Passive))
    ];
    let parts = (
        1_u16..12,
        address(),
        1_u16..12,
        side,
        name(),
        name(),
        any::<bool>(),
        any::<u64>(),
    );
    parts.prop_map(
        |(local_port, ip, port, side, cgroup, process, chose_algorithm, cookie)| Flow {
            local_port,
            remote: SocketAddr::new(ip, port),
            side,
            cgroup: cgroup.map(Into::into),
            process: process.map(Into::into),
            chose_algorithm,
            cookie,
        },
    )
}

/// Bits of an address as the kernel side has it, highest first.
fn bits(address: IpAddr) -> Vec<bool> {
    let v6 = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    v6.octets()
        .iter()
        .flat_map(|octet| (0..8).rev().map(move |i| octet >> i & 1 == 1))
        .collect()
}

/// Tries every rule, every network bit by bit and every port of every range.
fn model(compiled: &Compiled, flow: &Flow) -> Verdict {
    let all = |ranges: &[std::ops::RangeInclusive<u16>]| -> Vec<u16> {
        ranges.iter().flat_map(|range| range.clone()).collect()
    };
    let (local, remote) = (flow.local_port, flow.remote.port());
    let never = all(&compiled.never_tune);
    if never.contains(&local) || never.contains(&remote) {
        return Verdict::NeverTuned;
    }
    for (i, rule) in compiled.rules.iter().enumerate() {
        let mut in_a_network = false;
        let selector = &rule.selector;
        for to in &selector.to {
            let length = usize::from(to.bits) + if to.address.is_ipv4() { 96 } else { 0 };
            if bits(to.address)[..length] == bits(flow.remote.ip())[..length] {
                in_a_network = true;
            }
        }
        let ports = all(&selector.ports);
        let good_port = match selector.side {
            _ if ports.is_empty() => true,
            Side::Either => ports.contains(&local) || ports.contains(&remote),
            Side::Active => ports.contains(&remote),
            Side::Passive => ports.contains(&local),
        };
        let good_side = match (selector.side, flow.side) {
            (Side::Either, _) => true,
            (side, Some(of)) => side == of,
            (_, None) => false,
        };
        let good_cgroup = match (
            selector.cgroup.as_ref().map(|c| c.to_str().unwrap()),
            &flow.cgroup,
        ) {
            (None, _) => true,
            (Some(above), Some(below)) => below == above || below.starts_with(&format!("{above}/")),
            (Some(_), None) => false,
        };
        let good_process = selector.process.is_none() || selector.process == flow.process;
        if in_a_network && good_port && good_side && good_cgroup && good_process {
            if rule.respect_app && flow.chose_algorithm {
                return Verdict::AppChose(i);
            }
            let hash = (u128::from(flow.cookie) * 0x9e37_79b9_7f4a_7c15 % (1 << 64)) >> 48;
            return match hash < u128::from(rule.share) {
                true => Verdict::Rule(i),
                false => Verdict::Control(i),
            };
        }
    }
    Verdict::NoRule
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_matcher_is_the_model(
        rules in prop::collection::vec(rule(), 0..5),
        never_tune in ranges(),
        flow in flow(),
    ) {
        let compiled = Compiled {
            rules,
            warnings: Vec::new(),
            on_daemon_loss: OnDaemonLoss::Standard,
            never_tune,
        };
        prop_assert_eq!(compiled.verdict(&flow), model(&compiled, &flow));
    }

    /// A share is kept: of neighbouring cookies that part gets the policy, whatever the first.
    #[test]
    fn a_share_is_that_part_of_the_flows(mut rule in rule(), first: u64, share in 0_u32..=65536) {
        rule.share = share;
        let taken = (0..4096).filter(|i| rule.takes(first.wrapping_add(*i))).count();
        let part = taken as f64 / 4096.0;
        prop_assert!((part - f64::from(share) / 65536.0).abs() < 0.01, "{part}");
    }
}
