//! Who a server is: a key pair of X25519 (RFC 7748) of its own, made when it first serves.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver as _, DefaultResolver};

use super::private_file;
use super::{KeyError, entropy};

/// A server's public key: what clients know it by. Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerId(pub [u8; 32]);

/// A server's key pair.
#[derive(Clone)]
pub struct Identity {
    private: [u8; 32],
    public: ServerId,
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// [`KeyError::NoEntropy`].
    pub fn generate() -> Result<Self, KeyError> {
        let mut private = [0; 32];
        entropy(&mut private).map_err(|e| KeyError::NoEntropy(e.to_string()))?;
        Ok(Self::from_private(private))
    }

    /// With this private key.
    ///
    /// # Panics
    /// Never: the only curve that is built in is the one asked for.
    pub fn from_private(private: [u8; 32]) -> Self {
        let curve = DefaultResolver.resolve_dh(&DHChoice::Curve25519);
        let mut curve = curve.expect("Curve25519 is built in");
        curve.set(&private);
        let mut public = [0; 32];
        public.copy_from_slice(curve.pubkey());
        Self {
            private,
            public: ServerId(public),
        }
    }

    /// From the file, which nobody but its owner may read; a new one is written there if there is
    /// none.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn at(path: &Path) -> Result<Self, KeyError> {
        match private_file::read(path, "identity file") {
            Ok(text) => {
                let private = decode(text.trim()).ok_or_else(|| KeyError::NoIdentity {
                    path: path.to_owned(),
                })?;
                Ok(Self::from_private(private))
            }
            Err(KeyError::Unreadable { error, .. }) if error.kind() == ErrorKind::NotFound => {
                let made = Self::generate()?;
                if let Some(dir) = path.parent() {
                    // If it cannot be made, neither can the file.
                    let _ = std::fs::create_dir_all(dir);
                }
                match private_file::create(path, "identity", &format!("{}\n", Hex(&made.private))) {
                    // Another server has made it a moment ago.
                    Err(KeyError::Unwritable { error, .. })
                        if error.kind() == ErrorKind::AlreadyExists =>
                    {
                        Self::at(path)
                    }
                    written => written.map(|()| made),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Public key, which clients remember.
    pub fn public(&self) -> ServerId {
        self.public
    }

    pub(super) fn private(&self) -> &[u8; 32] {
        &self.private
    }
}

/// Private keys never reach a log.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.public)
    }
}

/// Bytes in hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

fn decode(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

impl ServerId {
    /// The first of its digits: enough for people to compare, not for programs.
    pub fn short(&self) -> String {
        Hex(&self.0[..8]).to_string()
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerId({self})")
    }
}

/// Not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server's identity is 64 hexadecimal digits")]
pub struct NoServerId;

impl FromStr for ServerId {
    type Err = NoServerId;

    fn from_str(text: &str) -> Result<Self, NoServerId> {
        decode(text).map(Self).ok_or(NoServerId)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Whoever comes second waits for nobody, and reads no half of it.
    #[test]
    fn servers_that_first_start_at_once_have_one_identity() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..100 {
            let path = dir.path().join(round.to_string());
            let all: Vec<ServerId> = std::thread::scope(|scope| {
                let servers: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| Identity::at(&path).unwrap().public()))
                    .collect();
                servers.into_iter().map(|s| s.join().unwrap()).collect()
            });
            assert!(all.iter().all(|id| *id == all[0]), "{all:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 100);
    }

    /// Neither under its name nor under another.
    #[test]
    fn what_cannot_have_its_name_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "theirs").unwrap();
        let taken = private_file::create(&path, "key", "ours\n");
        let is_taken = |e: &KeyError| {
            matches!(e, KeyError::Unwritable { error, .. }
            if error.kind() == ErrorKind::AlreadyExists)
        };
        assert!(taken.as_ref().is_err_and(is_taken), "{taken:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// RFC 7748 section 5.2: the base point as a scalar, once.
    #[test]
    fn a_public_key_belongs_to_its_private_one() {
        let mut private = [0; 32];
        private[0] = 9;
        assert_eq!(
            Identity::from_private(private).public().to_string(),
            "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
        );
    }

    #[test]
    fn a_server_stays_who_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/fullpipe/identity");
        let first = Identity::at(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Identity::at(&path).unwrap().public(), first.public());
        assert!(!format!("{first:?}").contains(&Hex(&first.private).to_string()));
        let other = Identity::at(&dir.path().join("other")).unwrap();
        assert_ne!(other.public(), first.public());
        std::fs::write(&path, "not an identity").unwrap();
        let error = Identity::at(&path).unwrap_err();
        assert!(matches!(error, KeyError::NoIdentity { .. }), "{error}");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let error = Identity::at(&path).unwrap_err();
        assert!(matches!(error, KeyError::Exposed { .. }), "{error}");
    }

    #[test]
    fn an_identity_is_read_as_it_is_written() {
        let public = Identity::from_private([7; 32]).public();
        assert_eq!(public.to_string().parse(), Ok(public));
        assert!(public.to_string().starts_with(&public.short()));
        for bad in ["", "00", &"g".repeat(64), &"0".repeat(63), &"+0".repeat(32)] {
            assert_eq!(bad.parse::<ServerId>(), Err(NoServerId));
        }
    }
}
