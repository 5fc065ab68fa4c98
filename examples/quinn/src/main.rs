//! 100 MB over loopback between two quinn endpoints of this process, under any fullpipe stack:
//!
//! ```text
//! cargo run --manifest-path examples/quinn/Cargo.toml -- 'cubic(beta=0.8)+hystart++' 100
//! ```
//!
//! The arguments are the stack and the megabytes; without them `cubic` and 100.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use fullpipe_cc::StackSpec;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

mod adapter;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: fullpipe-quinn [STACK [MEGABYTES]]   (default: cubic 100)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "-h" || arg == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let (stack, megabytes) = match asked(&args) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("error: {why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match transfer(stack, megabytes).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The stack and the megabytes of the command line.
fn asked(args: &[String]) -> Result<(StackSpec, u64), String> {
    let stack = args.first().map_or("cubic", String::as_str);
    let stack = StackSpec::parse(stack).map_err(|e| match e.hint() {
        Some(hint) => format!("{e}\nhint: {hint}"),
        None => e.to_string(),
    })?;
    let megabytes = match args.get(1) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("`{text}` is no whole number of megabytes"))?,
        None => 100,
    };
    match args.get(2) {
        Some(more) => Err(format!("`{more}` is one argument too many")),
        None => Ok((stack, megabytes)),
    }
}

/// Sends `megabytes` from one endpoint to another and prints what came of it.
async fn transfer(stack: StackSpec, megabytes: u64) -> Result<(), Failure> {
    let factory = adapter::Factory::new(stack.clone())?;
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = CertificateDer::from(key.cert);
    let secret = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], secret.into())?;
    let server = Endpoint::server(config, local)?;
    let to = server.local_addr()?;
    let receiver = tokio::spawn(receive(server));

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(factory));
    config.transport_config(Arc::new(transport));
    let client = Endpoint::client(local)?;
    let connection = client.connect_with(config, to, "localhost")?.await?;

    let start = Instant::now();
    let mut stream = connection.open_uni().await?;
    let megabyte = vec![0; 1_000_000];
    for _ in 0..megabytes {
        stream.write_all(&megabyte).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    let seconds = start.elapsed().as_secs_f64();
    let path = connection.stats().path;
    connection.close(0_u32.into(), b"done");

    let bytes = receiver.await??;
    let mbps = bytes as f64 * 8e-6 / seconds;
    println!("{stack}: {bytes} bytes, {mbps:.0} Mbit/s");
    println!(
        "{} of {} packets lost, {} congestion events, {} bytes of window at the end",
        path.lost_packets, path.sent_packets, path.congestion_events, path.cwnd
    );
    if bytes == megabytes * 1_000_000 {
        Ok(())
    } else {
        Err(format!("{megabytes} MB were sent").into())
    }
}

/// Bytes of the first stream of the first connection.
async fn receive(server: Endpoint) -> Result<u64, Failure> {
    let connection = server.accept().await.ok_or("no connection")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        bytes += chunk.bytes.len() as u64;
    }
    connection.closed().await;
    Ok(bytes)
}
