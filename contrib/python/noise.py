"""Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s, written from the Noise specification (revision 34).

X25519 and ChaCha20-Poly1305 are those of the package `cryptography`.
"""

import hashlib
import hmac
import os
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

PROTOCOL = b"Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s"
KEY = 32
TAG = 16


class Damaged(Exception):
    """A message that does not prove itself."""


def public(private):
    """The public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def dh(private, other):
    """Section 4.1, DH()."""
    secret = X25519PrivateKey.from_private_bytes(private)
    return secret.exchange(X25519PublicKey.from_public_bytes(other))


def nonce(number):
    """Section 12.3: 32 bits of zeros and the number, lowest byte first."""
    return bytes(4) + struct.pack("<Q", number)


def seal(key, number, ad, plain):
    """ENCRYPT(): the ciphertext and its tag."""
    return ChaCha20Poly1305(key).encrypt(nonce(number), plain, ad)


def unseal(key, number, ad, sealed):
    """DECRYPT()."""
    try:
        return ChaCha20Poly1305(key).decrypt(nonce(number), sealed, ad)
    except InvalidTag as error:
        raise Damaged from error


def digest(data):
    """HASH()."""
    return hashlib.blake2s(data).digest()


def hkdf(chaining, material, outputs):
    """Section 4.3, HKDF()."""
    mac = lambda key, data: hmac.new(key, data, hashlib.blake2s).digest()
    temporary, last, out = mac(chaining, material), b"", []
    for n in range(1, outputs + 1):
        last = mac(temporary, last + bytes([n]))
        out.append(last)
    return out


class Handshake:
    """Both sides of the pattern:

    <- s  ...  -> psk, e, es  <- e, ee
    """

    def __init__(self, prologue, psk, server, private=None):
        """`server`: its public key; `private`: its private one, at the server."""
        self.hash = digest(PROTOCOL) if len(PROTOCOL) > 32 else PROTOCOL.ljust(32, b"\0")
        self.chaining = self.hash
        self.key, self.number = None, 0
        self.psk, self.server, self.private = psk, server, private
        self.ephemeral = self.theirs = None
        self.mix_hash(prologue)
        self.mix_hash(server)

    def mix_hash(self, data):
        self.hash = digest(self.hash + data)

    def mix_key(self, material):
        self.chaining, self.key = hkdf(self.chaining, material, 2)
        self.number = 0

    def mix_key_and_hash(self, material):
        self.chaining, middle, self.key = hkdf(self.chaining, material, 3)
        self.mix_hash(middle)
        self.number = 0

    def encrypt(self, plain):
        sealed = seal(self.key, self.number, self.hash, plain)
        self.number += 1
        self.mix_hash(sealed)
        return sealed

    def decrypt(self, sealed):
        plain = unseal(self.key, self.number, self.hash, sealed)
        self.number += 1
        self.mix_hash(sealed)
        return plain

    def token_e(self, key):
        """In a pattern with a pre-shared key, `e` is mixed into the key too (section 9.2)."""
        self.mix_hash(key)
        self.mix_key(key)

    def write_first(self, payload, ephemeral=None):
        """The client's message."""
        self.ephemeral = ephemeral or os.urandom(KEY)
        self.mix_key_and_hash(self.psk)
        mine = public(self.ephemeral)
        self.token_e(mine)
        self.mix_key(dh(self.ephemeral, self.server))
        return mine + self.encrypt(payload)

    def read_first(self, message):
        """The client's message, at the server."""
        self.mix_key_and_hash(self.psk)
        self.theirs = message[:KEY]
        self.token_e(self.theirs)
        self.mix_key(dh(self.private, self.theirs))
        return self.decrypt(message[KEY:])

    def write_second(self, payload, ephemeral=None):
        """The server's message."""
        self.ephemeral = ephemeral or os.urandom(KEY)
        mine = public(self.ephemeral)
        self.token_e(mine)
        self.mix_key(dh(self.ephemeral, self.theirs))
        return mine + self.encrypt(payload)

    def read_second(self, message):
        """The server's message. A damaged one changes nothing."""
        before = (self.hash, self.chaining, self.key, self.number)
        try:
            theirs = message[:KEY]
            self.token_e(theirs)
            self.mix_key(dh(self.ephemeral, theirs))
            return self.decrypt(message[KEY:])
        except Exception:
            self.hash, self.chaining, self.key, self.number = before
            raise

    def split(self):
        """The keys of what the client sends, and of what the server sends."""
        return hkdf(self.chaining, b"", 2)
