//! How fast an encrypted session is: client and server in one process, over loopback, from memory
//! to memory, with and without encryption. A line of JSON for each.
//!
//! ```sh
//! cargo run --release -p fullpipe-net --example sealed -- mode=packet seconds=3 encrypted=true
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::ground;
use fullpipe_net::io::{Mode, Stop};
use fullpipe_net::session::Key;
use fullpipe_net::session::client::{Client, Peer};
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::server::{Config, Server};
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::Span;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut seconds, mut window, mut mode) = (3.0, 400.0, Mode::Packet);
    let mut ways = vec![false, true];
    for arg in std::env::args().skip(1) {
        match arg.split_once('=').ok_or("write key=value")? {
            ("seconds", value) => seconds = value.parse()?,
            ("window", value) => window = value.parse()?,
            ("encrypted", value) => ways = vec![value.parse()?],
            ("mode", "packet") => mode = Mode::Packet,
            ("mode", "bulk") => mode = Mode::Bulk,
            (key, value) => return Err(format!("no such key or value: {key}={value}").into()),
        }
    }
    let key = Key::from_text(&"k".repeat(32), "example")?;
    let config = Config {
        listen: "127.0.0.1:0".parse()?,
        key: key.clone(),
        limits: Limits::default(),
        grace: Span::from_secs(1),
    };
    let server = Server::bind(config, Arc::new(|_| {}))?;
    let (peer, stop) = (Peer::new(server.address(), key), Stop::new()?);
    let until = stop.clone();
    let thread = std::thread::spawn(move || server.run(&until));
    let sender = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.window.max = window);
    let receiver = ReceiverConfig::preset(Preset::Y2026);
    let stack = StackSpec::parse("reno")?;
    let spec = RunSpec {
        duration: Span::from_secs_f64(seconds),
        flows: vec![FlowSpec::new(
            "main",
            stack,
            sender,
            receiver,
            vec![],
            vec![],
        )],
        ..RunSpec::default()
    };
    for encrypted in ways {
        let options = Options {
            bulk: mode == Mode::Bulk,
            encrypted,
            ..Options::default()
        };
        let mut spec = spec.clone();
        options.make_room(&mut spec);
        let request = Request { spec, options };
        let local = ground::Options {
            mode,
            ..ground::Options::default()
        };
        let never = AtomicBool::new(false);
        let mut client = Client::connect(&peer, &request, &local, &never)?;
        let spec = Arc::new(request.spec);
        let done = client.run(&spec, &local, Hooks::default(), &never)?;
        client.close();
        let sent = done.near.counts.cpu.as_secs_f64();
        let far = done
            .far
            .as_ref()
            .map_or(0.0, |far| far.counts.cpu.as_secs_f64());
        let outcome = done.merge(&spec)?;
        let f = &outcome.flows[0];
        let bytes = f.totals.delivered * u64::from(f.mss);
        println!(
            "{{\"bytes\":{bytes},\"seconds\":{seconds},\"sender_cpu_s\":{sent:.6},\
             \"receiver_cpu_s\":{far:.6},\"mode\":\"{mode:?}\",\"encrypted\":{encrypted},\
             \"gbps\":{:.3},\"retransmits\":{}}}",
            bytes as f64 * 8e-9 / seconds,
            f.totals.retransmits
        );
    }
    stop.set();
    // Its tests are over.
    thread.join().map_err(|_| "the server panicked")??;
    Ok(())
}
