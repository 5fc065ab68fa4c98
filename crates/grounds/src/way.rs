//! The way to another host: its addresses, the key, and how sessions are opened.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fullpipe_net::content::{Content, Question};
use fullpipe_net::io::{Mode, has_segmentation, pin};
use fullpipe_net::session::client::{Client, Peer, SessionError};
use fullpipe_net::session::known::KnownServers;
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::{HandshakeError, Key, PORT, ServerId};
use fullpipe_net::{ground, headers};
use fullpipe_run::RunSpec;
use fullpipe_units::Span;

/// How to reach a server, and how to talk to it.
#[derive(Clone, Debug)]
pub struct Way {
    /// Host and port, as `HOST:PORT` or `[IPV6]:PORT`.
    pub name: String,
    /// In the order in which they are tried.
    addresses: Vec<SocketAddr>,
    key: Key,
    /// The server that is meant, if the user says which.
    server: Option<ServerId>,
    known: Option<Acquaintance>,
    encrypted: bool,
    /// Flows are connections of the kernels' TCP.
    kernel_tcp: bool,
    options: ground::Options,
}

/// The servers that the user has met, and who tells the user of a new one.
#[derive(Clone, Debug)]
struct Acquaintance {
    /// `None`: there is no place to remember them.
    known: Option<KnownServers>,
    tell: fn(&str),
}

/// Why there is no way to a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WayError {
    /// The name means nothing.
    #[error("cannot find the host `{host}`: {error}")]
    Unknown {
        /// Host name as the user wrote it.
        host: String,
        /// The resolver's error.
        error: io::Error,
    },
    /// The name has no address.
    #[error("`{0}` has no address")]
    NoAddress(String),
    /// The kernels' TCP was to be encrypted.
    #[error("the data of the kernels' TCP cannot be encrypted")]
    InClear,
    /// The thread cannot be kept on the processor.
    #[error("cannot keep the thread on processor {cpu}: {error}")]
    Processor {
        /// Counted from 0.
        cpu: usize,
        /// The operating system's error.
        error: io::Error,
    },
}

impl WayError {
    /// Remedy in one sentence; `None` where there is none.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unknown { .. } => Some("give its name or its address"),
            Self::NoAddress(_) => None,
            Self::InClear => Some("leave out `--encrypt`, or use --ground udp"),
            Self::Processor { .. } => {
                Some("`--pin` takes the number of a processor, counted from 0")
            }
        }
    }
}

impl Way {
    /// Finds the server. Sessions have no key and are not encrypted; see [`Way::with_key`].
    ///
    /// # Errors
    /// [`WayError`].
    pub fn new(host: &str, port: Option<u16>, options: ground::Options) -> Result<Self, WayError> {
        let found = (host, port.unwrap_or(PORT)).to_socket_addrs();
        let addresses: Vec<SocketAddr> = match found {
            Ok(found) => found.collect(),
            Err(error) => {
                let host = named(host, port);
                return Err(WayError::Unknown { host, error });
            }
        };
        if addresses.is_empty() {
            return Err(WayError::NoAddress(host.to_owned()));
        }
        if let Some(cpu) = options.pin {
            // On a thread that ends: it is only tried out.
            let tried = std::thread::spawn(move || pin(cpu)).join();
            let tried = tried.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            tried.map_err(|error| WayError::Processor { cpu, error })?;
        }
        Ok(Self {
            name: named(host, Some(port.unwrap_or(PORT))),
            addresses,
            key: Key::open(),
            server: None,
            known: None,
            encrypted: false,
            kernel_tcp: false,
            options,
        })
    }

    /// With this server only, whatever the key and the servers known say.
    pub fn with_server(self, server: Option<ServerId>) -> Self {
        Self { server, ..self }
    }

    /// With the server that was met under this name before, if neither the key names one nor the
    /// user; a new one is added, and `tell` gets a sentence about it, or that there is no place for
    /// it. Loopback addresses name no host.
    pub fn with_known(self, known: Option<KnownServers>, tell: fn(&str)) -> Self {
        let known = Some(Acquaintance { known, tell });
        Self { known, ..self }
    }

    /// With the key that both sides have; every packet is `encrypted`, or none.
    pub fn with_key(self, key: Key, encrypted: bool) -> Self {
        Self {
            key,
            encrypted,
            ..self
        }
    }

    /// Flows are connections of the kernels' TCP, whose data are not encrypted.
    ///
    /// # Errors
    /// Every packet was to be encrypted.
    pub fn with_kernel_tcp(self) -> Result<Self, WayError> {
        match self.encrypted {
            true => Err(WayError::InClear),
            false => Ok(Self {
                kernel_tcp: true,
                ..self
            }),
        }
    }

    /// Addresses of the server.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Datagrams are to leave in bulk, and this system has no segmentation offload for UDP: they
    /// leave one by one.
    pub fn lacks_segmentation(&self) -> bool {
        self.options.mode == Mode::Bulk && matches!(has_segmentation(), Ok(false))
    }

    /// Opens a session for `spec`; the addresses of the server are tried one after the other.
    ///
    /// # Errors
    /// [`SessionError`] of the last address.
    pub fn connect(
        &self,
        spec: RunSpec,
        label: &str,
        until_complete: bool,
        content: Content,
        interrupt: &AtomicBool,
    ) -> Result<Client, SessionError> {
        let request = Request {
            spec,
            options: Options {
                label: label.to_owned(),
                bulk: self.options.mode == Mode::Bulk,
                until_complete,
                content,
                ..self.packets()
            },
        };
        let meant = self.server.or(self.key.server());
        let acquaintance = match meant {
            Some(_) => None,
            None => self.known.as_ref(),
        };
        let known = acquaintance.and_then(|a| a.known.as_ref());
        let met = known.map(|known| known.find(&self.name)).transpose()?;
        let met = met.flatten();
        let last = self.addresses.len() - 1;
        let mut error = SessionError::Interrupted;
        for (i, address) in self.addresses.iter().enumerate() {
            let mut peer = Peer::new(*address, self.key.clone());
            let loopback = address.ip().to_canonical().is_loopback();
            let met = met.filter(|_| !loopback);
            peer.server = meant.or(met.map(|met| met.identity));
            if i < last {
                peer.patience = Span::from_secs(2);
            }
            let connect = || Client::connect(&peer, &request, &self.options, interrupt);
            let mut found = connect();
            if matches!(&found, Err(SessionError::Handshake { error, .. }) if error.is_busy()) {
                // With our own question of a moment ago, perhaps.
                std::thread::sleep(SOON);
                found = connect();
            }
            match found {
                Err(SessionError::Handshake {
                    error: HandshakeError::OtherServer { found, .. },
                    ..
                }) if let (Some(met), Some(known)) = (met, known) => {
                    return Err(SessionError::Changed {
                        name: self.name.clone(),
                        found,
                        met: met.identity,
                        known: format!("line {} of {}", met.line, known.path().display()),
                    });
                }
                Err(e @ SessionError::Handshake { .. }) if i < last => error = e,
                Ok(client) => {
                    if let Some(a) = acquaintance.filter(|_| met.is_none() && !loopback) {
                        a.introduce(&self.name, &client.server())?;
                    }
                    return Ok(client);
                }
                other => return other,
            }
        }
        Err(error)
    }

    /// What packets hold besides data. If only some of the addresses are of IPv6, there is room for
    /// its headers too.
    fn packets(&self) -> Options {
        Options {
            encrypted: self.encrypted,
            ipv6: self.addresses.iter().any(|to| headers::is_ipv6(*to)),
            kernel_tcp: self.kernel_tcp,
            ..Options::default()
        }
    }

    /// Makes room in the packets of `spec` for what encryption and IPv6 add, so that they stay as
    /// long as they were; once for each run.
    pub fn fit(&self, spec: &mut RunSpec) {
        self.packets().make_room(spec);
    }

    /// The round-trip time to the server, the shortest of a few small questions.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn round_trip(&self, interrupt: &AtomicBool) -> Result<Span, SessionError> {
        let nothing = RunSpec::default();
        let mut client = self.connect(nothing, "round trip", true, Content::Nothing, interrupt)?;
        let mut shortest = Span::MAX;
        for _ in 0..ROUNDS {
            let asked = Instant::now();
            client.ask(&Question::Prepared, interrupt)?;
            let took = Span::from_secs_f64(asked.elapsed().as_secs_f64());
            shortest = shortest.min(took);
        }
        client.close();
        Ok(shortest)
    }

    /// How datagrams leave, and how precisely it waits.
    pub fn options(&self) -> &ground::Options {
        &self.options
    }
}

impl Acquaintance {
    fn introduce(&self, name: &str, server: &ServerId) -> Result<(), SessionError> {
        let Some(known) = &self.known else {
            // A copy has many sessions.
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                (self.tell)(&format!(
                    "identity {server} of `{name}` is not remembered: neither XDG_STATE_HOME nor \
                     HOME is set (`--known-servers FILE`)"
                ));
            });
            return Ok(());
        };
        known.add(name, server)?;
        (self.tell)(&format!(
            "`{name}` is a new server, identity {server}; it is kept in {}",
            known.path().display()
        ));
        Ok(())
    }
}

/// `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`.
fn named(host: &str, port: Option<u16>) -> String {
    let mut name = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    if let Some(port) = port {
        name += &format!(":{port}");
    }
    name
}

/// Questions of [`Way::round_trip`].
const ROUNDS: u32 = 3;

/// Until a server that was busy is asked once more.
const SOON: Duration = Duration::from_millis(300);
