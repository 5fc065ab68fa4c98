//! What limits a flow, in a word, of the running kernel's TCP on paths and with sockets that are
//! made for each word. They need network namespaces and TUN; without, they say so and pass.

// Flows of the running kernel take the clock on the wall.
#![allow(clippy::disallowed_methods)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_emulate::emulation::LoopConfig;
use fullpipe_emulate::namespace::{Side, addresses};
use fullpipe_emulate::stage::Stage;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_kernel::sockets::reserve;
use fullpipe_observe::{Filter, Limit, Observation, Observer};
use fullpipe_run::{Buffer, FlowSpec, LinkSpec, RunSpec};
use fullpipe_units::{Rate, Span};
use nix::sys::socket::{setsockopt, sockopt};

mod option {
    use nix::sys::socket::sockopt::SetStruct;
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Ceiling of the rate, bytes per second.
        MaxPacingRate,
        SetOnly,
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        usize,
        SetStruct<'_, usize>
    );
}

/// A flow and its path.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Module of the congestion control.
    module: &'static str,
    /// Bit/s that the bottleneck sends.
    rate: u64,
    rtt: Duration,
    /// Packets that the bottleneck holds back at most.
    packets: u64,
    /// Bytes of both ends' buffers and of the ceiling of the rate, where they are set.
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
    ceiling: Option<usize>,
    /// Between two writes of the application, and bytes of each.
    pause: Duration,
    bytes: usize,
    /// From its begin to the first look.
    warm_up: Duration,
}

/// One flow without a pause on 20 Mbit/s, 40 ms, one BDP of buffer.
const BULK: Case = Case {
    module: "reno",
    rate: 20_000_000,
    rtt: Duration::from_millis(40),
    packets: 66,
    send_buffer: None,
    receive_buffer: None,
    ceiling: None,
    pause: Duration::ZERO,
    bytes: 65_536,
    warm_up: Duration::from_secs(1),
};

/// Between the two looks.
const LOOKED: Duration = Duration::from_secs(1);

impl Case {
    fn spec(&self) -> RunSpec {
        let half = Span::from_nanos(self.rtt.as_nanos() as u64 / 2);
        let rate = Rate::from_bits_per_sec(self.rate);
        let buffer = Buffer::Packets(self.packets);
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Linux, 1500),
            ReceiverConfig::preset(Preset::Linux),
            vec![0],
            vec![1],
        );
        RunSpec {
            duration: Span::from_secs(60),
            links: vec![
                LinkSpec::new("bottleneck", Some(rate), half, buffer),
                LinkSpec::pure_delay("back", half),
            ],
            flows: vec![flow],
            ..RunSpec::default()
        }
    }

    fn listener(&self, at: SocketAddr) -> io::Result<OwnedFd> {
        let listener = OwnedFd::from(TcpListener::bind(at)?);
        if let Some(bytes) = self.receive_buffer {
            reserve(&listener, bytes)?;
        }
        Ok(listener)
    }

    fn sender(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let sender = TcpStream::connect(to)?;
        let module = self.module.to_owned().into();
        setsockopt(&sender, sockopt::TcpCongestion, &module)?;
        if let Some(bytes) = self.send_buffer {
            setsockopt(&sender, sockopt::SndBuf, &bytes)?;
        }
        if let Some(rate) = self.ceiling {
            setsockopt(&sender, option::MaxPacingRate, &rate)?;
        }
        Ok(sender)
    }

    /// What the flow shows of the time between two looks; `None`: the machine cannot have it.
    fn observed(&self) -> Option<Observation> {
        match self.observe() {
            Ok(seen) => Some(seen),
            Err(why) => {
                eprintln!("skipped: {why}");
                None
            }
        }
    }

    fn observe(&self) -> Result<Observation, Box<dyn std::error::Error>> {
        let hosts = Stage::without_processes(&self.spec(), 1500, [None, None])?;
        let config = LoopConfig {
            merge: true,
            real_time: true,
        };
        let (near, far) = (hosts.host(Side::Near), hosts.host(Side::Far));
        let known = near.congestion_control()?;
        if !known.available.iter().any(|name| name == self.module) {
            return Err(format!("no congestion module `{}`", self.module).into());
        }
        let carrying = hosts.carry(config)?;
        let to = SocketAddr::new(addresses(Side::Far, 0).0, 5001);
        let listener = TcpListener::from(far.enter(|| self.listener(to))?);
        let sender = near.enter(|| self.sender(to))?;
        let (mut sink, _) = listener.accept()?;
        let mut writer = sender.try_clone()?;
        let observer = || Observer::new(Filter::default()).map_err(io::Error::other);
        let mut observer = near.enter(observer)?;
        let seen = scope(|scope| {
            scope.spawn(move || {
                let chunk = vec![0; self.bytes];
                while writer.write_all(&chunk).is_ok() {
                    sleep(self.pause);
                }
            });
            scope.spawn(move || {
                let mut chunk = vec![0; 1 << 18];
                while sink.read(&mut chunk).is_ok_and(|n| n > 0) {}
            });
            let begin = Instant::now();
            sleep(self.warm_up);
            let before = observer.observe(begin.elapsed());
            sleep(LOOKED);
            let seen = before.and_then(|_| observer.observe(begin.elapsed()));
            // Both threads see the end.
            let _ = sender.shutdown(std::net::Shutdown::Both);
            drop(sender);
            seen
        })?;
        carrying.stop()?;
        let mut of_flow = seen.into_iter().filter(|flow| flow.socket.remote == to);
        of_flow.next().ok_or_else(|| "the flow is not there".into())
    }
}

/// The flow is limited by this; of a busy machine it is asked three times.
fn is_limited_by(limit: Limit, case: Case) {
    let mut last = None;
    for _ in 0..3 {
        let Some(seen) = case.observed() else { return };
        if seen.limited_by() == Some(limit) {
            return;
        }
        eprintln!("once more: {:?}", seen.limited_by());
        last = Some(seen);
    }
    let last = last.unwrap();
    let fields = fullpipe_observe::FIELDS.iter().zip(last.socket.info.all());
    let fields: Vec<_> = fields.map(|(f, value)| (f.name, value)).collect();
    panic!("{:?} instead of {limit:?}: {fields:?}", last.limited_by());
}

/// 10 kB take a round trip of 40 ms, and then nothing comes for 200.
#[test]
fn a_writer_that_pauses_is_the_application() {
    let paused = Case {
        pause: Duration::from_millis(200),
        bytes: 10_000,
        ..BULK
    };
    is_limited_by(Limit::Application, paused);
}

/// 32 kB of receive buffer hold less than the 100 kB that the path does.
#[test]
fn a_small_receive_buffer_is_the_receive_window() {
    let small = Case {
        receive_buffer: Some(16_384),
        ..BULK
    };
    is_limited_by(Limit::ReceiveWindow, small);
}

#[test]
fn a_small_send_buffer_is_the_send_buffer() {
    let small = Case {
        send_buffer: Some(16_384),
        ..BULK
    };
    is_limited_by(Limit::SendBuffer, small);
}

/// 4 of 20 Mbit/s.
#[test]
fn a_ceiling_of_the_rate_is_the_rate() {
    let held = Case {
        ceiling: Some(500_000),
        ..BULK
    };
    is_limited_by(Limit::Rate, held);
}

/// BBR sends at the rate that it has found, and its window holds twice what that needs (section
/// 4.2.3.2 of Cardwell et al. 2017, `cwnd_gain`).
#[test]
fn bbr_is_limited_by_its_pacing() {
    let bbr = Case {
        module: "bbr",
        packets: 500,
        warm_up: Duration::from_secs(3),
        ..BULK
    };
    is_limited_by(Limit::Pacing, bbr);
}

/// After 1.5 s, four round trips, slow start has some 200 segments in a path that holds 6,700.
#[test]
fn slow_start_is_limited_by_a_window_that_grows() {
    let long = Case {
        rate: 200_000_000,
        rtt: Duration::from_millis(400),
        packets: 7000,
        receive_buffer: Some(16 << 20),
        warm_up: Duration::from_millis(500),
        ..BULK
    };
    is_limited_by(Limit::Window, long);
}

/// After its first loss Reno's window is what the path made it.
#[test]
fn a_window_that_losses_have_set_is_the_network() {
    let lossy = Case {
        warm_up: Duration::from_secs(4),
        ..BULK
    };
    is_limited_by(Limit::Network, lossy);
}
