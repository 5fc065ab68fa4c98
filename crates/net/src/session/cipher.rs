//! ChaCha20-Poly1305 (RFC 8439) as Noise uses it: the key of one direction of a session.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Bytes of the proof behind a ciphertext.
pub(super) const TAG: usize = 16;

/// The key of one direction. "Less safe" is that its user sees to it that no number is used twice.
#[derive(Debug)]
pub(super) struct Cipher(LessSafeKey);

impl Cipher {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key);
        Self(LessSafeKey::new(key.expect("32 bytes are a key")))
    }

    /// Encrypts in place; the tag. `None` for 256 GiB and more.
    #[inline]
    pub(super) fn seal(&self, number: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG]> {
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce(number), Aad::from(header), body);
        tag.ok()?.as_ref().try_into().ok()
    }

    /// Decrypts in place if the tag is right; otherwise `body` is of no use any more.
    #[inline]
    pub(super) fn open(
        &self,
        number: u64,
        header: &[u8],
        body: &mut [u8],
        tag: &[u8; TAG],
    ) -> bool {
        let opened = self.0.open_in_place_separate_tag(
            nonce(number),
            Aad::from(header),
            (*tag).into(),
            body,
            0..,
        );
        opened.is_ok()
    }
}

/// The nonce of Noise's ChaChaPoly (section 12.3 of its specification): four zero bytes, then the
/// number, lowest byte first.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439, section 2.8.2, but for its nonce, whose first four bytes are not zero: appendix
    /// A.5 has 00 00 00 00 01 02 03 04 05 06 07 08.
    #[test]
    fn the_rfc_s_example_opens() {
        let key = [
            0x1c, 0x92, 0x40, 0xa5, 0xeb, 0x55, 0xd3, 0x8a, 0xf3, 0x33, 0x88, 0x86, 0x04, 0xf6,
            0xb5, 0xf0, 0x47, 0x39, 0x17, 0xc1, 0x40, 0x2b, 0x80, 0x09, 0x9d, 0xca, 0x5c, 0xbc,
            0x20, 0x70, 0x75, 0xc0,
        ];
        let number = u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
        let header = [
            0xf3, 0x33, 0x88, 0x86, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x4e, 0x91,
        ];
        let tag = [
            0xee, 0xad, 0x9d, 0x67, 0x89, 0x0c, 0xbb, 0x22, 0x39, 0x23, 0x36, 0xfe, 0xa1, 0x85,
            0x1f, 0x38,
        ];
        let text = concat!(
            "Internet-Drafts are draft documents valid for a maximum of six months and may be ",
            "updated, replaced, or obsoleted by other documents at any time. It is ",
            "inappropriate to use Internet-Drafts as reference material or to cite them other ",
            "than as /\u{201c}work in progress./\u{201d}"
        );
        let cipher = Cipher::new(&key);
        let mut body = text.as_bytes().to_vec();
        assert_eq!(body.len(), 265);
        assert_eq!(cipher.seal(number, &header, &mut body), Some(tag));
        assert_eq!(body[..4], [0x64, 0xa0, 0x86, 0x15]);
        assert!(!cipher.open(number + 1, &header, &mut body.clone(), &tag));
        assert!(cipher.open(number, &header, &mut body, &tag));
        assert_eq!(body, text.as_bytes());
    }
}
