"""Passkey signatures: what OpenSSL signed holds, and nothing that differs in a bit or in its spelling does."""

from __future__ import annotations

import base64
import unittest

from reversi_sdk import p256, rsa

MESSAGE = b"approve"
P256_SPKI = base64.b64decode("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwR08WRK/C3IK4RTWzfbW7i8qnAKRD5ooTaST0JduBsNDfIuD1ijRXb9R7xp+CbF8/5i5L0FrykQxqfYiqGlYVg==")
P256_SIGNATURE = base64.b64decode("MEUCID15/+UrhDGsoUCh67wfw3wxNSQirruepFh61pATCtOPAiEAipLTTbAcOiDM5bK1Lic3J+hxIyO1phGWEe/Pr/QasGo=")
RSA_SPKI = base64.b64decode(
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA8d7YqbKONzUbmn68CxZuc4ZTm5D0AP/qndNyJBXn+rAxIec16kHp/sFA"
    "bWYN+IoWuSNL8ZqQgqwhKu7Ee1zAa6pBz3PP5BwiPBJ34nPT2Asfw1uT2jDUzkPLA6vpMXRp0813ru8MzsD+aULS7bJ7HTpgKob8"
    "q+iqDQ8QtOKa5IsPOpAEGuHBp1X7nus8JD1FaySE1A+XeIeA/zj2EbY6EFSEYObYEzVdAL0EvHTx9oICSpC0aAPIiccQcV1rwkph"
    "H6EO3Isizm4yF6L/47IPwqJohd3PCn53ABkiEmoWx1smnahBOoZB8uOBCOyN6PGzXpkCUSUO2ob3A76uY3D/wwIDAQAB"
)
RSA_SIGNATURE = base64.b64decode(
    "HWhDdYGOn14QP7zscWUdbPeShfzwCGWnbZhpS95xK8QSIBvVLZ4onui6s/SWjpahggf76IbWCb6w4x/Tyq9+k4vZbMhY4J4K7lmJ"
    "k6kKokPXwGUq7nTg6D1OwZNwtQeHpWQsfpemldwBr70slMV3N6MDC1+Gr8GzsZFWuz3aYuAH8m/6otoaV7SE3q4BsUke/K4sLZUM"
    "Miv5IcRgj2MEvn7oodZ1v4zOX2zs8WaHRNpVvXqwTXp1GqFBD+AYsAkp/kXV5sjMa/FT+dsuS0ks+fiOm7/gMCNXZFRILjFtdjV5"
    "Q4qbirQ8iVeXz94DmduMlJrF+GV6xtUHTJ+bUK4QGw=="
)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


class P256(unittest.TestCase):
    point = P256_SPKI[26:]

    def test_good(self) -> None:
        self.assertTrue(p256.verify(self.point, MESSAGE, P256_SIGNATURE))

    def test_every_bit_counts(self) -> None:
        for at in range(len(P256_SIGNATURE)):
            self.assertFalse(p256.verify(self.point, MESSAGE, flipped(P256_SIGNATURE, at)), at)
        for at in range(0, len(self.point), 8):
            self.assertFalse(p256.verify(flipped(self.point, at), MESSAGE, P256_SIGNATURE), at)
        self.assertFalse(p256.verify(self.point, MESSAGE + b"!", P256_SIGNATURE))

    def test_one_spelling(self) -> None:
        r, s = p256.decode_signature(P256_SIGNATURE) or (0, 0)
        for numbers in ((0, s), (r, 0), (p256.N, s), (r, p256.N), (r + p256.N, s), (r, s + p256.N)):
            self.assertFalse(p256.verify(self.point, MESSAGE, der(*numbers)))
        self.assertTrue(p256.verify(self.point, MESSAGE, der(r, s)))
        for odd in (b"", P256_SIGNATURE[:-1], P256_SIGNATURE + b"\0", b"\x30\0", der(r, s, b"\0")):
            self.assertFalse(p256.verify(self.point, MESSAGE, odd))
        compressed = bytes([2 + (self.point[64] & 1)]) + self.point[1:33]
        self.assertFalse(p256.verify(compressed, MESSAGE, P256_SIGNATURE))

    def test_the_law_of_the_curve(self) -> None:
        key = p256.decode_key(self.point)
        assert key is not None
        opposite = (key[0], -key[1] % p256.P, 1)
        self.assertEqual(p256.add(key, opposite)[2], 0)
        self.assertEqual(p256.add(p256.INFINITY, key), key)
        self.assertEqual(p256.double(p256.INFINITY)[2], 0)
        self.assertEqual(p256.add(key, key), p256.double(key))


def der(r: int, s: int, pad: bytes = b"") -> bytes:
    def number(value: int) -> bytes:
        data = value.to_bytes((value.bit_length() + 8) // 8, "big")
        return bytes([2, len(pad + data)]) + pad + data

    body = number(r) + number(s)
    return bytes([0x30, len(body)]) + body


class Rsa(unittest.TestCase):
    def test_good(self) -> None:
        self.assertTrue(rsa.verify(RSA_SPKI, MESSAGE, RSA_SIGNATURE))

    def test_every_byte_counts(self) -> None:
        for at in range(0, len(RSA_SIGNATURE), 5):
            self.assertFalse(rsa.verify(RSA_SPKI, MESSAGE, flipped(RSA_SIGNATURE, at)), at)
        self.assertFalse(rsa.verify(RSA_SPKI, MESSAGE + b"!", RSA_SIGNATURE))
        for odd in (b"", RSA_SIGNATURE[:-1], b"\0" + RSA_SIGNATURE):
            self.assertFalse(rsa.verify(RSA_SPKI, MESSAGE, odd))

    def test_one_spelling_of_a_key(self) -> None:
        self.assertIsNotNone(rsa.decode_key(RSA_SPKI))
        for odd in (b"", RSA_SPKI + b"\0", RSA_SPKI[:-1], P256_SPKI, b"\x30\x84" + RSA_SPKI[2:]):
            self.assertIsNone(rsa.decode_key(odd))

    def test_the_exponent_one_signs_everything(self) -> None:
        found = rsa.decode_key(RSA_SPKI)
        assert found is not None
        self.assertEqual(RSA_SPKI[-5:], b"\x02\x03\x01\x00\x01")
        easy = RSA_SPKI[:-5] + b"\x02\x03\x00\x00\x01"
        self.assertIsNone(rsa.decode_key(easy))


if __name__ == "__main__":
    unittest.main()
