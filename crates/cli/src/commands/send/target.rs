//! Hosts and files as they are named on the command line.
//!
//! `HOST`, `HOST:PORT`, `[IPV6]`, `[IPV6]:PORT` name a server; a file there is `SERVER:NAME`, as in
//! scp: with a port `HOST:PORT:NAME`. What has a slash before its first colon is a path of this
//! machine.

use std::fmt;
use std::path::PathBuf;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Name or address, without brackets.
    pub host: String,
    /// UDP port, if one is named.
    pub port: Option<u16>,
}

/// A file, here or there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAt {
    /// A path of this machine.
    Here(PathBuf),
    /// Of a server; an empty name stands for that of the other side.
    There(Server, String),
}

impl Server {
    /// Reads `HOST[:PORT]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (host, rest) = split_host(text)?;
        let port = match rest {
            None => None,
            Some(port) => Some(parse_port(port)?),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl FileAt {
    /// Reads one end of a copy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let before_colon = text.split(':').next().unwrap_or_default();
        if text.is_empty() {
            return Err("a file has a name".to_owned());
        }
        if text == STREAM {
            return Err(NO_STREAM.to_owned());
        }
        let is_remote = text.starts_with('[')
            || (text.contains(':') && !before_colon.is_empty() && !before_colon.contains('/'));
        if !is_remote {
            return Ok(Self::Here(PathBuf::from(text)));
        }
        let (host, rest) = split_host(text)?;
        let rest = rest.ok_or("write `HOST:NAME` for a file there")?;
        // `HOST:PORT:NAME`: what is all digits and has another colon behind it.
        let (port, name) = match rest.split_once(':') {
            Some((port, name)) if port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty() => {
                (Some(parse_port(port)?), name)
            }
            _ => (None, rest),
        };
        Ok(Self::There(Server { host, port }, name.to_owned()))
    }
}

/// How what other programs take is spelled here, if this is such.
pub fn habit(text: &str) -> Option<&'static str> {
    if text == STREAM {
        Some("a copy that is interrupted resumes, which a pipe cannot: put it into a file first")
    } else if text
        .split(':')
        .next()
        .is_some_and(|host| host.contains('@'))
    {
        Some("a server has a key and no users: leave out what stands before the `@`")
    } else {
        None
    }
}

/// Standard input or output, elsewhere.
const STREAM: &str = "-";
const NO_STREAM: &str = "neither standard input nor standard output can be one end";

/// The host, and what follows its colon.
fn split_host(text: &str) -> Result<(String, Option<&str>), String> {
    if let Some(inner) = text.strip_prefix('[') {
        let (host, rest) = inner
            .split_once(']')
            .ok_or("the bracket of an IPv6 address is not closed")?;
        let rest = match rest {
            "" => None,
            rest => Some(
                rest.strip_prefix(':')
                    .ok_or("write `[ADDRESS]:PORT` for an IPv6 address with a port")?,
            ),
        };
        return checked(host).map(|host| (host, rest));
    }
    // A bare IPv6 address, with its zone if it has one, has no port.
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    if address.parse::<std::net::Ipv6Addr>().is_ok() && !text.ends_with('%') {
        return Ok((text.to_owned(), None));
    }
    match text.split_once(':') {
        Some((host, rest)) => checked(host).map(|host| (host, Some(rest))),
        None => checked(text).map(|host| (host, None)),
    }
}

fn checked(host: &str) -> Result<String, String> {
    if host == STREAM {
        return Err(NO_STREAM.to_owned());
    }
    if host.contains('@') {
        return Err("a host has no user".to_owned());
    }
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == '/') {
        return Err(
            "expected a host, as `dtn.example.org`, `192.0.2.7:6220` or `[2001:db8::7]:6220`"
                .to_owned(),
        );
    }
    Ok(host.to_owned())
}

fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is not a port: a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, port: impl Into<Option<u16>>) -> Server {
        Server {
            host: host.to_owned(),
            port: port.into(),
        }
    }

    #[test]
    fn servers() {
        for (text, expected) in [
            ("dtn", server("dtn", None)),
            ("dtn.example.org:7000", server("dtn.example.org", 7000)),
            ("192.0.2.7:1", server("192.0.2.7", 1)),
            ("[2001:db8::7]:7000", server("2001:db8::7", 7000)),
            ("[::1]", server("::1", None)),
            ("::1", server("::1", None)),
            ("fe80::1%eth0", server("fe80::1%eth0", None)),
            ("[fe80::1%eth0]:7000", server("fe80::1%eth0", 7000)),
        ] {
            let read = Server::parse(text).unwrap();
            assert_eq!(read, expected);
            assert_eq!(Server::parse(&read.to_string()).unwrap(), expected);
        }
        for text in [
            "", ":7000", "a:0", "a:70000", "a:b", "[::1", "[::1]7", "a b", "a/b", "-", "me@a",
        ] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files() {
        let here = |path: &str| FileAt::Here(PathBuf::from(path));
        let there = |s: Server, name: &str| FileAt::There(s, name.to_owned());
        for (text, expected) in [
            ("data.bin", here("data.bin")),
            ("./odd:name", here("./odd:name")),
            ("/a/b:c", here("/a/b:c")),
            (":x", here(":x")),
            ("dtn:data.bin", there(server("dtn", None), "data.bin")),
            ("dtn:run 1/x", there(server("dtn", None), "run 1/x")),
            ("dtn:7000:x", there(server("dtn", 7000), "x")),
            ("dtn:7000", there(server("dtn", None), "7000")),
            ("dtn:", there(server("dtn", None), "")),
            ("dtn:7000:", there(server("dtn", 7000), "")),
            ("[::1]:x", there(server("::1", None), "x")),
            ("[::1]:7000:x", there(server("::1", 7000), "x")),
        ] {
            assert_eq!(FileAt::parse(text), Ok(expected), "{text}");
        }
        assert_eq!(FileAt::parse("./-"), Ok(here("./-")));
        for text in ["", "[::1]", "dtn:99999:x", "-", "me@dtn:x"] {
            assert!(FileAt::parse(text).is_err(), "{text}");
        }
    }
}
