//! temporary skeleton, being replaced
#![allow(missing_docs)]
use std::ops::*;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);
impl Time { pub const ZERO: Self = Self(0); pub const MAX: Self = Self(u64::MAX);
 pub const fn from_nanos(n: u64) -> Self { Self(n) } pub const fn as_nanos(self) -> u64 { self.0 }
 pub fn from_secs_f64(s: f64) -> Self { Self((s * 1e9).round() as u64) } pub fn as_secs_f64(self) -> f64 { self.0 as f64 * 1e-9 }
 pub fn saturating_since(self, e: Time) -> Span { Span(self.0.saturating_sub(e.0)) } }
impl Sub<Time> for Time { type Output = Span; fn sub(self, o: Time) -> Span { Span(self.0 - o.0) } }
impl Add<Span> for Time { type Output = Time; fn add(self, o: Span) -> Time { Time(self.0.saturating_add(o.0)) } }
impl Sub<Span> for Time { type Output = Time; fn sub(self, o: Span) -> Time { Time(self.0.saturating_sub(o.0)) } }
impl AddAssign<Span> for Time { fn add_assign(&mut self, o: Span) { *self = *self + o } }
impl Span { pub const ZERO: Self = Self(0); pub const MAX: Self = Self(u64::MAX);
 pub const fn from_nanos(n: u64) -> Self { Self(n) } pub const fn from_micros(n: u64) -> Self { Self(n * 1000) }
 pub const fn from_millis(n: u64) -> Self { Self(n * 1_000_000) } pub const fn from_secs(n: u64) -> Self { Self(n * 1_000_000_000) }
 pub fn from_secs_f64(s: f64) -> Self { Self((s * 1e9).round() as u64) } pub const fn as_nanos(self) -> u64 { self.0 }
 pub fn as_secs_f64(self) -> f64 { self.0 as f64 * 1e-9 } pub fn as_millis_f64(self) -> f64 { self.0 as f64 * 1e-6 }
 pub fn mul_f64(self, f: f64) -> Self { Self((self.0 as f64 * f) as u64) } pub fn saturating_sub(self, o: Span) -> Span { Span(self.0.saturating_sub(o.0)) }
 pub fn ratio(self, o: Span) -> f64 { self.0 as f64 / o.0 as f64 } }
impl Add for Span { type Output = Span; fn add(self, o: Span) -> Span { Span(self.0.saturating_add(o.0)) } }
impl Sub for Span { type Output = Span; fn sub(self, o: Span) -> Span { Span(self.0 - o.0) } }
impl AddAssign for Span { fn add_assign(&mut self, o: Span) { *self = *self + o } }
impl Mul<u64> for Span { type Output = Span; fn mul(self, k: u64) -> Span { Span(self.0.saturating_mul(k)) } }
impl Div<u64> for Span { type Output = Span; fn div(self, k: u64) -> Span { Span(self.0 / k) } }
impl std::fmt::Display for Span { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{}ns", self.0) } }
impl std::str::FromStr for Span { type Err = ParseQuantityError; fn from_str(s: &str) -> Result<Self, ParseQuantityError> {
 for (u, k) in [("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("s", 1e9)] { if let Some(n) = s.strip_suffix(u) { if let Ok(x) = n.parse::<f64>() { return Ok(Span((x * k) as u64)); } } } Err(ParseQuantityError(s.into())) } }
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] #[error("bad quantity {0}")]
pub struct ParseQuantityError(String);
impl ParseQuantityError { pub fn hint(&self) -> Option<String> { None } }
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);
impl Rate { pub const fn from_bits_per_sec(b: u64) -> Self { Self(b) } pub const fn as_bits_per_sec(self) -> u64 { self.0 } }
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);
impl Bytes { pub const fn new(b: u64) -> Self { Self(b) } pub const fn get(self) -> u64 { self.0 } }
