"""Ed25519 signature verification (RFC 8032, 5.1.7) in plain Python, for checking public evidence.

Verification handles nothing secret, so its time may depend on its input. It is strict where RFC 8032
leaves room: S must be below the group order (else one signature could be rewritten as another), a key must
be the canonical encoding of a point, and a point of small order is no key at all (such a "key" accepts
signatures that no key made). The equation is the cofactorless one over encoded bytes, as OpenSSL checks it.
"""

from __future__ import annotations

import hashlib
from typing import Optional, Tuple

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
_SQRT_MINUS_ONE = pow(2, (P - 1) // 4, P)

# Extended homogeneous coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x*y = T/Z. No inversion until the end.
Point = Tuple[int, int, int, int]
IDENTITY: Point = (0, 1, 1, 0)


def add(a: Point, b: Point) -> Point:
    """The complete addition law of the curve: it has no exceptional cases, so it also doubles."""
    s = (a[1] - a[0]) * (b[1] - b[0]) % P
    t = (a[1] + a[0]) * (b[1] + b[0]) % P
    u = 2 * a[3] * b[3] * D % P
    v = 2 * a[2] * b[2] % P
    e, f, g, h = t - s, v - u, v + u, t + s
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def negate(a: Point) -> Point:
    return (-a[0] % P, a[1], a[2], -a[3] % P)


def is_identity(a: Point) -> bool:
    return a[0] % P == 0 and (a[1] - a[2]) % P == 0


def multiply(scalar: int, point: Point) -> Point:
    result = IDENTITY
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def decode(data: bytes) -> Optional[Point]:
    """The point that 32 bytes encode, or None where they are no canonical encoding of one."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    if y >= P:
        return None
    numerator, denominator = (y * y - 1) % P, (D * y * y + 1) % P
    # The candidate square root of numerator/denominator, with one exponentiation (RFC 8032, 5.1.3).
    x = numerator * pow(denominator, 3, P) * pow(numerator * pow(denominator, 7, P), (P - 5) // 8, P) % P
    square = denominator * x * x % P
    if square == (-numerator) % P:
        x = x * _SQRT_MINUS_ONE % P
    elif square != numerator:
        return None
    if x == 0 and sign:
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


def encode(a: Point) -> bytes:
    inverse = pow(a[2], P - 2, P)
    x, y = a[0] * inverse % P, a[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


_base = decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
assert _base is not None
BASE: Point = _base


def usable_key(public: bytes) -> Optional[Point]:
    """The key's point, or None where these bytes are no key."""
    if len(public) != 32:
        return None
    point = decode(public)
    return None if point is None or is_identity(multiply(8, point)) else point


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` over `message` was made with the private half of `public`."""
    key = usable_key(public)
    if key is None or len(signature) != 64:
        return False
    commitment, s = signature[:32], int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    challenge = int.from_bytes(hashlib.sha512(commitment + public + message).digest(), "little") % L
    return encode(add(multiply(s, BASE), multiply(challenge, negate(key)))) == commitment
