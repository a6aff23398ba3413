"""ECDSA verification on P-256 with SHA-256 (FIPS 186-5) in plain Python, for checking public evidence.

Verification handles nothing secret, so its time may depend on its input. A signature is accepted in its one
DER form only, and a key only as an uncompressed point of the curve.
"""

from __future__ import annotations

import hashlib
from typing import Optional, Tuple

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
_BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)

# Jacobian coordinates (X, Y, Z): x = X/Z², y = Y/Z³. Z = 0 is the point at infinity.
Point = Tuple[int, int, int]
INFINITY: Point = (1, 1, 0)


def double(a: Point) -> Point:
    x, y, z = a
    if z == 0 or y == 0:
        return INFINITY
    square = y * y % P
    s = 4 * x * square % P
    m = 3 * (x - z * z) * (x + z * z) % P
    x3 = (m * m - 2 * s) % P
    return (x3, (m * (s - x3) - 8 * square * square) % P, 2 * y * z % P)


def add(a: Point, b: Point) -> Point:
    if a[2] == 0:
        return b
    if b[2] == 0:
        return a
    za, zb = a[2] * a[2] % P, b[2] * b[2] % P
    ua, ub = a[0] * zb % P, b[0] * za % P
    sa, sb = a[1] * zb * b[2] % P, b[1] * za * a[2] % P
    if ua == ub:
        return double(a) if sa == sb else INFINITY
    h, r = ub - ua, sb - sa
    h2 = h * h % P
    h3, v = h2 * h % P, ua * h2 % P
    x = (r * r - h3 - 2 * v) % P
    return (x, (r * (v - x) - sa * h3) % P, h * a[2] * b[2] % P)


def _both(u: int, v: int, key: Point) -> Point:
    """`u` times the base point plus `v` times the key, in one pass."""
    base: Point = (_BASE[0], _BASE[1], 1)
    summed, result = add(base, key), INFINITY
    for bit in range(max(u.bit_length(), v.bit_length()) - 1, -1, -1):
        result = double(result)
        chosen = (u >> bit & 1, v >> bit & 1)
        if chosen == (1, 1):
            result = add(result, summed)
        elif chosen != (0, 0):
            result = add(result, base if chosen[0] else key)
    return result


def decode_key(point: bytes) -> Optional[Point]:
    """The point of an uncompressed key, or None where it is none of the curve."""
    if len(point) != 65 or point[0] != 4:
        return None
    x, y = int.from_bytes(point[1:33], "big"), int.from_bytes(point[33:], "big")
    if x >= P or y >= P or (y * y - x * x * x + 3 * x - B) % P != 0:
        return None
    return (x, y, 1)


def decode_signature(der: bytes) -> Optional[Tuple[int, int]]:
    """The two numbers of a DER signature, or None where it is not the one spelling of two positive numbers."""
    if len(der) < 8 or der[0] != 0x30 or der[1] != len(der) - 2:
        return None
    numbers, at = [], 2
    for _ in range(2):
        if at + 2 > len(der) or der[at] != 2:
            return None
        data = der[at + 2 : at + 2 + der[at + 1]]
        if len(data) != der[at + 1] or not data or data[0] & 0x80:
            return None
        if len(data) > 1 and data[0] == 0 and not data[1] & 0x80:
            return None
        numbers.append(int.from_bytes(data, "big"))
        at += 2 + len(data)
    return (numbers[0], numbers[1]) if at == len(der) else None


def verify(point: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the DER `signature` over `message` was made with the private half of the key at `point`."""
    key, numbers = decode_key(point), decode_signature(signature)
    if key is None or numbers is None:
        return False
    r, s = numbers
    if not 0 < r < N or not 0 < s < N:
        return False
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    inverse = pow(s, N - 2, N)
    x, _, z = _both(digest * inverse % N, r * inverse % N, key)
    if z == 0:
        return False
    scale = pow(z, P - 2, P)
    return x * scale * scale % P % N == r
