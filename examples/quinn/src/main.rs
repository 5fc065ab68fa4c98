//! 100 MB over loopback between two quinn endpoints of this process, under any fullpipe stack:
//!
//! ```text
//! cargo run --manifest-path examples/quinn/Cargo.toml -- 'cubic(beta=0.8)+hystart++' 100
//! ```
//!
//! The arguments are the stack and the megabytes; without them `cubic` and 100.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use fullpipe_cc::StackSpec;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

mod adapter;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let stack: StackSpec = args.next().as_deref().unwrap_or("cubic").parse()?;
    let megabytes: u64 = args.next().map_or(Ok(100), |text| text.parse())?;

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
    transport.congestion_controller_factory(Arc::new(adapter::Factory(stack.clone())));
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
