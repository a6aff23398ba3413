"""RSA verification (RSASSA-PKCS1-v1_5 with SHA-256, RFC 8017) in plain Python, for checking public evidence.

The padded hash is built and compared as a whole, never taken apart, so nothing in the padding can hide.
"""

from __future__ import annotations

import hashlib
from typing import Optional, Tuple

_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
_ALGORITHM = bytes.fromhex("300d06092a864886f70d0101010500")
_BITS = range(2048, 8193)


def _element(data: bytes, tag: int) -> Optional[Tuple[bytes, bytes]]:
    """The content of the DER element at the start, and what follows it; None where there is no such element."""
    if len(data) < 2 or data[0] != tag:
        return None
    length, at = data[1], 2
    if length >= 0x80:
        count = length & 0x7F
        coded = data[2 : 2 + count]
        if count not in (1, 2) or len(coded) != count or coded[0] == 0:
            return None
        length, at = int.from_bytes(coded, "big"), 2 + count
        if length < 0x80:
            return None
    return (data[at : at + length], data[at + length :]) if at + length <= len(data) else None


def _number(data: bytes) -> Optional[Tuple[int, bytes]]:
    found = _element(data, 2)
    if found is None or not found[0] or found[0][0] & 0x80:
        return None
    content, rest = found
    if len(content) > 1 and content[0] == 0 and not content[1] & 0x80:
        return None
    return int.from_bytes(content, "big"), rest


def decode_key(spki: bytes) -> Optional[Tuple[int, int]]:
    """Modulus and exponent of a SubjectPublicKeyInfo, or None where it is not the one spelling of a usual key."""
    outer = _element(spki, 0x30)
    if outer is None or outer[1] or not outer[0].startswith(_ALGORITHM):
        return None
    bits = _element(outer[0][len(_ALGORITHM) :], 3)
    if bits is None or bits[1] or bits[0][:1] != b"\0":
        return None
    inner = _element(bits[0][1:], 0x30)
    if inner is None or inner[1]:
        return None
    modulus = _number(inner[0])
    exponent = None if modulus is None else _number(modulus[1])
    if modulus is None or exponent is None or exponent[1]:
        return None
    n, e = modulus[0], exponent[0]
    usual = (n.bit_length() + 7) // 8 * 8 in _BITS and e.bit_length() <= 64 and e % 2 == 1 and e > 1
    return (n, e) if usual else None


def verify(spki: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` over `message` was made with the private half of the key."""
    key = decode_key(spki)
    if key is None:
        return False
    n, e = key
    size = (n.bit_length() + 7) // 8
    number = int.from_bytes(signature, "big")
    if len(signature) != size or number >= n:
        return False
    digest = _SHA256 + hashlib.sha256(message).digest()
    padded = b"\0\1" + b"\xff" * (size - len(digest) - 3) + b"\0" + digest
    return pow(number, e, n).to_bytes(size, "big") == padded
