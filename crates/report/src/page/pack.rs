//! Numbers as text: base64 columns, and curves rounded, shuffled and deflated.

use std::io::Write as _;

use flate2::{Compression, write::DeflateEncoder};

/// Little-endian `f64`, base64; NaN where undefined.
pub(super) fn f64s(values: impl IntoIterator<Item = Option<f64>>) -> String {
    let bytes: Vec<u8> = values
        .into_iter()
        .flat_map(|v| v.unwrap_or(f64::NAN).to_le_bytes())
        .collect();
    base64(&bytes)
}

/// Little-endian `f32`, base64.
pub(super) fn f32s(values: &[f64]) -> String {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|&v| (v as f32).to_le_bytes())
        .collect();
    base64(&bytes)
}

/// Curves: every value as [`rounded`] `f32`, the bytes of one significance together, deflated,
/// base64.
pub(super) fn curves(columns: &[Vec<f64>]) -> String {
    let words: Vec<[u8; 4]> = columns
        .iter()
        .flatten()
        .map(|&v| rounded(v).to_le_bytes())
        .collect();
    let mut planes = Vec::with_capacity(4 * words.len());
    for plane in 0..4 {
        planes.extend(words.iter().map(|w| w[plane]));
    }
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
    let bytes = deflated
        .write_all(&planes)
        .and_then(|()| deflated.finish())
        .expect("a vector takes every byte");
    base64(&bytes)
}

/// The nearest number with [`DIGITS`] binary digits after the first one, a relative error of at
/// most 2^-13.
pub(super) fn rounded(v: f64) -> f32 {
    let v = v as f32;
    if !v.is_finite() {
        return f32::NAN;
    }
    let dropped = 23 - DIGITS;
    let half = 1u32 << (dropped - 1);
    let near = f32::from_bits((v.to_bits().saturating_add(half)) & !((1 << dropped) - 1));
    if near.is_finite() { near } else { v }
}

/// Binary digits that are kept of a curve's value.
const DIGITS: u32 = 12;

/// RFC 4648 section 4, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0u32, |w, &b| w << 8 | u32::from(b));
        for i in 0..4 {
            let digit = (word >> (18 - 6 * i)) & 63;
            out.push(if i <= chunk.len() {
                char::from(ALPHABET[digit as usize])
            } else {
                '='
            });
        }
    }
    out
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_rfc() {
        // RFC 4648 section 10.
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn rounding_is_close_and_keeps_what_is_short() {
        for v in [0.0, 1.0, -2.5, 1500.0, 4095.0, 8190.0] {
            assert_eq!(f64::from(rounded(v)), v);
        }
        for i in 0..10_000 {
            let v = 1.0 + f64::from(i) * 0.731;
            assert!((f64::from(rounded(v)) / v - 1.0).abs() <= 1.0 / 8192.0 + 1e-7);
        }
        assert!(rounded(f64::NAN).is_nan() && rounded(f64::INFINITY).is_nan());
        assert!(rounded(f64::from(f32::MAX)).is_finite());
    }

    #[test]
    fn curves_come_back() {
        let columns = vec![vec![1.0, 2.0, 3.0], vec![f64::NAN, 0.5, 1024.0]];
        let text = curves(&columns);
        let mut bytes = Vec::new();
        for quad in text.as_bytes().chunks(4) {
            let digits = quad.iter().filter(|&&b| b != b'=');
            let n = digits.clone().count();
            let word = digits.fold(0u32, |w, b| {
                w << 6 | ALPHABET.iter().position(|a| a == b).unwrap() as u32
            }) << (6 * (4 - n));
            bytes.extend(&word.to_be_bytes()[1..n]);
        }
        let mut planes = Vec::new();
        let mut inflater = flate2::read::DeflateDecoder::new(&bytes[..]);
        std::io::Read::read_to_end(&mut inflater, &mut planes).unwrap();
        let n = planes.len() / 4;
        let value = |i: usize| f32::from_le_bytes([0, 1, 2, 3].map(|p| planes[p * n + i]));
        let all: Vec<f32> = (0..n).map(value).collect();
        assert_eq!(all[..3], [1.0, 2.0, 3.0]);
        assert!(all[3].is_nan());
        assert_eq!(all[4..], [0.5, 1024.0]);
    }
}
