//! One QUIC stream over loopback for SECONDS with quinn; prints one line of JSON.
//!
//! One thread and one single-threaded runtime for each side, as the two hosts of a transfer would
//! have. Packets of 1472 bytes, so that they fill an Ethernet frame; quinn's default congestion
//! control (CUBIC); flow control out of the way (256 MB).

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

const FLOW_CONTROL: u32 = 256 << 20;
const SOCKET_BUFFER: usize = 16 << 20;

fn main() {
    let seconds: f64 = std::env::args()
        .nth(1)
        .map_or(3.0, |s| s.parse().expect("seconds"));
    let span = Duration::from_secs_f64(seconds);
    let cert = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("certificate");
    let key = PrivatePkcs8KeyDer::from(cert.signing_key.serialize_der());
    let cert = CertificateDer::from(cert.cert);
    let mut server =
        ServerConfig::with_single_cert(vec![cert.clone()], key.into()).expect("server");
    server.transport_config(transport());
    let (tell, told) = mpsc::channel();
    let receiver = thread::spawn(move || runtime().block_on(receive(server, tell, span)));
    let to = told.recv().expect("address");
    let sender = thread::spawn(move || runtime().block_on(send(cert, to, span)));
    let (bytes, took, receiver_cpu) = receiver.join().expect("receiver");
    let sender_cpu = sender.join().expect("sender");
    println!(
        "{{\"bytes\": {bytes}, \"seconds\": {took:.6}, \"sender_cpu_s\": {sender_cpu:.6}, \"receiver_cpu_s\": {receiver_cpu:.6}}}"
    );
}

async fn receive(
    config: ServerConfig,
    tell: mpsc::Sender<SocketAddr>,
    span: Duration,
) -> (u64, f64, f64) {
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        Some(config),
        socket(),
        Arc::new(TokioRuntime),
    )
    .expect("endpoint");
    tell.send(endpoint.local_addr().expect("address"))
        .expect("main");
    let connection = endpoint
        .accept()
        .await
        .expect("connection")
        .await
        .expect("handshake");
    let mut stream = connection.accept_uni().await.expect("stream");
    let start = Instant::now();
    let mut bytes = 0;
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
        bytes += chunk.bytes.len() as u64;
        if start.elapsed() >= span {
            break;
        }
    }
    let (took, cpu) = (start.elapsed().as_secs_f64(), cpu());
    connection.close(VarInt::from_u32(0), b"");
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    (bytes, took, cpu)
}

async fn send(cert: CertificateDer<'static>, to: SocketAddr, span: Duration) -> f64 {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert).expect("certificate");
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("client");
    config.transport_config(transport());
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        None,
        socket(),
        Arc::new(TokioRuntime),
    )
    .expect("endpoint");
    let connection = endpoint
        .connect_with(config, to, "localhost")
        .expect("connect")
        .await
        .expect("handshake");
    let mut stream = connection.open_uni().await.expect("stream");
    let data = vec![0; 1 << 20];
    let start = Instant::now();
    let mut used = None;
    // On until the receiver has closed the connection.
    while start.elapsed() < span + Duration::from_secs(5) && stream.write_all(&data).await.is_ok() {
        if start.elapsed() >= span {
            used.get_or_insert_with(cpu);
        }
    }
    used.unwrap_or_else(cpu)
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .initial_mtu(1472)
        .min_mtu(1472)
        .mtu_discovery_config(None)
        .stream_receive_window(VarInt::from_u32(FLOW_CONTROL))
        .receive_window(VarInt::from_u32(FLOW_CONTROL))
        .send_window(u64::from(FLOW_CONTROL));
    Arc::new(config)
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket");
    let options = socket2::SockRef::from(&socket);
    options
        .set_send_buffer_size(SOCKET_BUFFER)
        .expect("send buffer");
    options
        .set_recv_buffer_size(SOCKET_BUFFER)
        .expect("receive buffer");
    socket
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime")
}

/// Seconds of this thread.
fn cpu() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("usage");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
