//! Cookies: what a server gives to a stranger instead of memory.
//!
//! A cookie is the time and a keyed hash of it, the stranger's address and its nonce. Who sends it
//! back has received it, so the address is its own. The secret is replaced every minute; a cookie
//! is good for twenty seconds and for one session.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use fullpipe_units::{Span, Time};

use super::message::Nonce;

/// Bytes of a cookie.
pub const COOKIE: usize = 36;

/// Lifetime of a cookie.
pub const LIFE: Span = Span::from_secs(20);

/// How long a secret makes cookies; it is known for as long again.
pub const ROTATION: Span = Span::from_secs(60);

/// Most cookies that are remembered as used.
pub const MOST_USED: usize = 65_536;

/// Most of them that one host may use within their life; it cannot lock out the others.
pub const MOST_OF_HOST: u32 = 512;

/// A cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub [u8; COOKIE]);

/// Reasons for which an OPEN is refused by its cookie alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieError {
    /// Not of this server, for this address and nonce, or too old.
    Invalid,
    /// A session was opened with it.
    Used,
}

/// Makes and checks cookies.
pub struct CookieJar {
    /// Number of the present minute, its secret, and that of the minute before.
    minute: u64,
    present: [u8; 32],
    before: Option<[u8; 32]>,
    fresh: Box<dyn FnMut() -> [u8; 32] + Send>,
    used: HashSet<[u8; 32]>,
    /// The same, oldest first, with the time after which they are of no use anyway, and the host.
    order: VecDeque<(Time, [u8; 32], u128)>,
    /// How many of them each host used.
    hosts: HashMap<u128, u32>,
}

impl CookieJar {
    /// With a source of random secrets.
    pub fn new(now: Time, mut fresh: Box<dyn FnMut() -> [u8; 32] + Send>) -> Self {
        Self {
            minute: minute(now),
            present: fresh(),
            before: None,
            fresh,
            used: HashSet::new(),
            order: VecDeque::new(),
            hosts: HashMap::new(),
        }
    }

    /// A cookie for a stranger. Nothing is remembered.
    pub fn mint(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) -> Cookie {
        self.rotate(now);
        let second = second(now);
        let tag = tag(&self.present, second, from, nonce);
        let mut cookie = [0; COOKIE];
        cookie[..4].copy_from_slice(&second.to_be_bytes());
        cookie[4..].copy_from_slice(tag.as_bytes());
        Cookie(cookie)
    }

    /// Checks a cookie that came back.
    ///
    /// # Errors
    /// [`CookieError`].
    pub fn check(
        &mut self,
        now: Time,
        from: SocketAddr,
        nonce: &Nonce,
        cookie: &Cookie,
    ) -> Result<(), CookieError> {
        self.rotate(now);
        let (stamp, given) = parts(cookie);
        let made = Time::ZERO + Span::from_secs(u64::from(stamp));
        // `made` is cut to the second, so a cookie lives between 20 and 21 seconds.
        if made > now || now.saturating_since(made) >= LIFE + Span::from_secs(1) {
            return Err(CookieError::Invalid);
        }
        let secret = match minute(made) {
            m if m == self.minute => Some(self.present),
            m if m + 1 == self.minute => self.before,
            _ => None,
        };
        // `Hash` compares in constant time.
        match secret {
            Some(secret) if tag(&secret, stamp, from, nonce) == given => {}
            _ => return Err(CookieError::Invalid),
        }
        self.forget(now);
        match self.used.contains(given.as_bytes()) {
            true => Err(CookieError::Used),
            false => Ok(()),
        }
    }

    /// Marks a cookie that [`CookieJar::check`] found good as used by `from`. False if no more can
    /// be remembered, of this host or at all, and then it must not be used.
    #[must_use]
    pub fn spend(&mut self, now: Time, from: SocketAddr, cookie: &Cookie) -> bool {
        self.forget(now);
        let host = host(from);
        let of_host = self.hosts.get(&host).copied().unwrap_or(0);
        if self.order.len() >= MOST_USED || of_host >= MOST_OF_HOST {
            return false;
        }
        let (_, tag) = parts(cookie);
        if self.used.insert(*tag.as_bytes()) {
            let until = now + LIFE + Span::from_secs(1);
            self.order.push_back((until, *tag.as_bytes(), host));
            self.hosts.insert(host, of_host + 1);
        }
        true
    }

    /// Cookies that are remembered.
    pub fn remembered(&self) -> usize {
        self.order.len()
    }

    fn forget(&mut self, now: Time) {
        while let Some((until, tag, host)) = self.order.front()
            && *until < now
        {
            self.used.remove(tag);
            if let Some(count) = self.hosts.get_mut(host) {
                *count -= 1;
                if *count == 0 {
                    self.hosts.remove(host);
                }
            }
            self.order.pop_front();
        }
    }

    fn rotate(&mut self, now: Time) {
        let m = minute(now);
        if m == self.minute {
            return;
        }
        self.before = (m == self.minute + 1).then_some(self.present);
        self.present = (self.fresh)();
        self.minute = m;
    }
}

impl std::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CookieJar")
            .field("remembered", &self.order.len())
            .finish_non_exhaustive()
    }
}

fn parts(cookie: &Cookie) -> (u32, blake3::Hash) {
    let [a, b, c, d, tag @ ..] = cookie.0;
    (u32::from_be_bytes([a, b, c, d]), blake3::Hash::from(tag))
}

fn tag(secret: &[u8; 32], second: u32, from: SocketAddr, nonce: &Nonce) -> blake3::Hash {
    let ip = match from.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    blake3::Hasher::new_keyed(secret)
        .update(&second.to_be_bytes())
        .update(&ip.octets())
        .update(&from.port().to_be_bytes())
        .update(&nonce.0)
        .finalize()
}

/// Whom a limit per peer counts as one: an IPv4 address, or the 64 bits that name a network in
/// IPv6.
pub(super) fn host(peer: SocketAddr) -> u128 {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits() >> 64 << 64,
    }
}

fn second(now: Time) -> u32 {
    // Seconds since the server began: 136 years.
    (now.as_nanos() / 1_000_000_000) as u32
}

fn minute(t: Time) -> u64 {
    t.as_nanos() / ROTATION.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar() -> CookieJar {
        let mut n = 0u8;
        CookieJar::new(
            Time::ZERO,
            Box::new(move || {
                n += 1;
                [n; 32]
            }),
        )
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_cookie_is_good_for_its_address_nonce_and_time() {
        let mut jar = jar();
        let (here, nonce) = (address("192.0.2.1:1000"), Nonce([7; 16]));
        let cookie = jar.mint(at(5_900), here, &nonce);
        let check = |jar: &mut CookieJar, t, from: &str, nonce, cookie| {
            jar.check(at(t), address(from), &Nonce([nonce; 16]), &cookie)
        };
        assert_eq!(check(&mut jar, 5_900, "192.0.2.1:1000", 7, cookie), Ok(()));
        assert_eq!(check(&mut jar, 25_999, "192.0.2.1:1000", 7, cookie), Ok(()));
        let invalid = Err(CookieError::Invalid);
        assert_eq!(
            check(&mut jar, 26_000, "192.0.2.1:1000", 7, cookie),
            invalid
        );
        let mut jar = self::jar();
        for (t, from, nonce) in [
            (4_000, "192.0.2.1:1000", 7), // from the future
            (6_000, "192.0.2.1:1001", 7),
            (6_000, "192.0.2.2:1000", 7),
            (6_000, "192.0.2.1:1000", 8),
        ] {
            assert_eq!(check(&mut jar, t, from, nonce, cookie), invalid, "{from}");
        }
        for i in 0..COOKIE {
            let mut bent = cookie;
            bent.0[i] ^= 1;
            assert_eq!(check(&mut jar, 6_000, "192.0.2.1:1000", 7, bent), invalid);
        }
        let mapped = check(&mut jar, 6_000, "[::ffff:192.0.2.1]:1000", 7, cookie);
        assert_eq!(mapped, Ok(()), "a mapped address is the same address");
    }

    #[test]
    fn cookies_survive_one_change_of_the_secret() {
        let (here, nonce) = (address("[2001:db8::1]:9"), Nonce([1; 16]));
        let mut jar = jar();
        let cookie = jar.mint(at(59_000), here, &nonce);
        assert_eq!(jar.check(at(61_000), here, &nonce, &cookie), Ok(()));
        let other = jar.mint(at(61_000), here, &nonce);
        assert_ne!(cookie, other);
        assert_eq!(jar.check(at(62_000), here, &nonce, &other), Ok(()));
        // Silence for more than a minute: the secret before last is gone.
        let late = jar.mint(at(200_000), here, &nonce);
        assert_eq!(jar.check(at(200_001), here, &nonce, &late), Ok(()));
        assert!(jar.check(at(200_001), here, &nonce, &other).is_err());
    }

    #[test]
    fn a_cookie_is_used_once_and_memory_is_bounded() {
        // Each network of IPv6 may use its share.
        let here = |n: usize| {
            let network = (n as u32 / MOST_OF_HOST) as u16;
            SocketAddr::from(([0x2001, 0xdb8, 0, network, 0, 0, 0, 1], 1000))
        };
        let mut jar = jar();
        let mint = |jar: &mut CookieJar, t: u64, n: usize| {
            let mut nonce = Nonce([0; 16]);
            nonce.0[..8].copy_from_slice(&n.to_be_bytes());
            (nonce, jar.mint(at(t), here(n), &nonce))
        };
        let (nonce, cookie) = mint(&mut jar, 0, 0);
        assert!(jar.spend(at(0), here(0), &cookie));
        let used = Err(CookieError::Used);
        assert_eq!(jar.check(at(20_900), here(0), &nonce, &cookie), used);
        for n in 1..MOST_USED {
            let (_, cookie) = mint(&mut jar, 1, n);
            assert!(jar.spend(at(1), here(n), &cookie), "{n}");
        }
        let (nonce, more) = mint(&mut jar, 2, MOST_USED);
        assert!(!jar.spend(at(2), here(MOST_USED), &more), "full");
        assert_eq!(jar.remembered(), MOST_USED);
        assert_eq!(jar.check(at(2), here(MOST_USED), &nonce, &more), Ok(()));
        let (_, later) = mint(&mut jar, 30_000, 1);
        assert!(
            jar.spend(at(30_000), here(1), &later),
            "old ones are forgotten"
        );
        assert_eq!(
            (jar.remembered(), jar.used.len(), jar.hosts.len()),
            (1, 1, 1)
        );
    }

    #[test]
    fn one_host_does_not_lock_out_another() {
        let mut jar = jar();
        let (greedy, other) = (address("192.0.2.1:1000"), address("192.0.2.2:1000"));
        let mut open = |from: SocketAddr, n: u32| {
            let mut nonce = Nonce([0; 16]);
            nonce.0[..4].copy_from_slice(&n.to_be_bytes());
            let cookie = jar.mint(at(0), from, &nonce);
            jar.spend(at(0), from, &cookie)
        };
        assert!((0..MOST_OF_HOST).all(|n| open(greedy, n)));
        assert!(!open(greedy, MOST_OF_HOST));
        assert!(open(other, 0));
    }
}
