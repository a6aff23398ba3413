"""Ed25519: the vectors of RFC 8032, what strictness must refuse, and agreement with OpenSSL where it is here."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import tempfile
import unittest

from reversi_sdk import ed25519

from .support import Signer

# RFC 8032, 7.1: secret, public, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").hexdigest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
]


class Rfc8032(unittest.TestCase):
    def test_vectors(self) -> None:
        for secret, public, message, signature in VECTORS:
            signer = Signer(bytes.fromhex(secret))
            self.assertEqual(signer.raw.hex(), public)
            self.assertEqual(signer.sign(bytes.fromhex(message)).hex(), signature)
            self.assertTrue(ed25519.verify(bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)))

    def test_every_bit_of_a_signature_key_and_message(self) -> None:
        public, message, signature = (bytes.fromhex(part) for part in VECTORS[2][1:])
        for position in range(0, 512, 3):
            self.assertFalse(ed25519.verify(public, message, flip(signature, position)))
        for position in range(0, 256, 5):
            self.assertFalse(ed25519.verify(flip(public, position), message, signature))
        for position in range(16):
            self.assertFalse(ed25519.verify(public, flip(message, position), signature))


class Strictness(unittest.TestCase):
    def setUp(self) -> None:
        self.signer = Signer()
        self.message = b"svc"
        self.signature = self.signer.sign(self.message)

    def test_lengths(self) -> None:
        for cut in (0, 1, 32, 63):
            self.assertFalse(ed25519.verify(self.signer.raw, self.message, self.signature[:cut]))
        self.assertFalse(ed25519.verify(self.signer.raw, self.message, self.signature + b"\0"))
        self.assertFalse(ed25519.verify(self.signer.raw[:31], self.message, self.signature))
        self.assertFalse(ed25519.verify(self.signer.raw + b"\0", self.message, self.signature))

    def test_s_must_be_below_the_order(self) -> None:
        s = int.from_bytes(self.signature[32:], "little")
        for multiple in range(1, 16):
            raised = s + multiple * ed25519.L
            if raised < 1 << 256:
                other = self.signature[:32] + raised.to_bytes(32, "little")
                self.assertFalse(ed25519.verify(self.signer.raw, self.message, other))

    def test_points_of_small_order_are_no_keys(self) -> None:
        small = small_order_points()
        self.assertEqual(len(small), 8)
        for encoded in small:
            self.assertIsNotNone(ed25519.decode(encoded))
            self.assertIsNone(ed25519.usable_key(encoded))
            # R of small order and S = 0 satisfy the bare equation for some messages under such a key.
            self.assertFalse(ed25519.verify(encoded, self.message, encoded + bytes(32)))

    def test_encodings_that_are_not_canonical(self) -> None:
        for y in range(ed25519.P, 1 << 255):
            for sign in (0, 1):
                encoded = (y | sign << 255).to_bytes(32, "little")
                self.assertIsNone(ed25519.decode(encoded))
        minus_zero = (1 | 1 << 255).to_bytes(32, "little")
        self.assertIsNone(ed25519.decode(minus_zero))

    def test_about_half_of_all_y_are_on_the_curve(self) -> None:
        rng = random.Random(2)
        hits = 0
        for _ in range(200):
            y = rng.randrange(ed25519.P)
            point = ed25519.decode(y.to_bytes(32, "little"))
            if point is not None:
                hits += 1
                self.assertEqual(ed25519.encode(point), y.to_bytes(32, "little"))
                x = point[0]
                self.assertEqual((-x * x + y * y - 1 - ed25519.D * x * x * y * y) % ed25519.P, 0)
        self.assertTrue(60 < hits < 140)

    def test_the_base_point_has_the_group_order(self) -> None:
        self.assertTrue(ed25519.is_identity(ed25519.multiply(ed25519.L, ed25519.BASE)))
        self.assertFalse(ed25519.is_identity(ed25519.multiply(8, ed25519.BASE)))


@unittest.skipUnless(shutil.which("openssl"), "no openssl here to compare with")
class AgainstOpenssl(unittest.TestCase):
    def test_agreement_on_good_and_changed_signatures(self) -> None:
        rng = random.Random(3)
        with tempfile.TemporaryDirectory() as folder:
            if not self.openssl_verifies(folder, Signer(), b"probe", Signer().sign(b"probe")):
                self.skipTest("this openssl cannot verify raw Ed25519 signatures")
            for _ in range(12):
                signer = Signer(rng.getrandbits(256).to_bytes(32, "big"))
                message = rng.getrandbits(800).to_bytes(100, "big")
                signature = signer.sign(message)
                raised = (int.from_bytes(signature[32:], "little") + ed25519.L).to_bytes(32, "little")
                for candidate in (signature, flip(signature, rng.randrange(512)), signature[:32] + raised):
                    ours = ed25519.verify(signer.raw, message, candidate)
                    self.assertEqual(ours, self.openssl_verifies(folder, signer, message, candidate))

    @staticmethod
    def openssl_verifies(folder: str, signer: Signer, message: bytes, signature: bytes) -> bool:
        for name, data in (("pub", signer.pem.encode()), ("msg", message), ("sig", signature)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        command = "openssl pkeyutl -verify -pubin -inkey pub -rawin -in msg -sigfile sig"
        return subprocess.run(command.split(), cwd=folder, capture_output=True).returncode == 0


def flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def small_order_points() -> set:
    """The eight points whose order divides 8: the multiples of L of points off the prime-order subgroup."""
    found, y = {ed25519.encode(ed25519.IDENTITY)}, 2
    while len(found) < 8:
        point = ed25519.decode(y.to_bytes(32, "little"))
        if point is not None:
            torsion = ed25519.multiply(ed25519.L, point)
            for times in range(8):
                found.add(ed25519.encode(ed25519.multiply(times, torsion)))
        y += 1
    return found


if __name__ == "__main__":
    unittest.main()
