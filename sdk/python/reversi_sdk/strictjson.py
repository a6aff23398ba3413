"""Strict JSON in, RFC 8785 JSON out.

Reading is strict because a verifier must see exactly what every other reader sees: a repeated key, a
float, or an integer beyond 2^53 can mean one thing here and another elsewhere, so each is refused.
Writing needs no number formatting at all: evidence holds strings, safe integers, booleans and lists.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from .errors import Invalid, show

MAX_SAFE_INTEGER = 2**53 - 1


def _integer(text: str) -> int:
    # The length comes first: turning a million digits into an int is slow on purpose to attack.
    if len(text) > 17 or not text.isascii() or not -MAX_SAFE_INTEGER <= int(text) <= MAX_SAFE_INTEGER:
        raise Invalid(f"the number {show(text, 24)} is beyond 2^53")
    if text == "-0":
        raise Invalid("the number -0 has no place in evidence")
    return int(text)


def _fraction(text: str) -> Any:
    raise Invalid(f"the number {show(text, 24)} is not a plain integer")


def _kept(text: str) -> float:
    value = float(text)
    if value.is_integer() and abs(value) > MAX_SAFE_INTEGER:
        raise Invalid(f"the number {show(text, 24)} is beyond 2^53")
    return value


def _constant(text: str) -> Any:
    raise Invalid(f"{text} is not JSON")


def _object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    result = dict(pairs)
    # No record has such a field, and a reader in JavaScript may not see it.
    if "__proto__" in result:
        raise Invalid('the key "__proto__" is not allowed')
    if len(result) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise Invalid(f"the key {show(key)!r} appears twice")
            seen.add(key)
    return result


DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_fraction,
    parse_constant=_constant,
)

# Values of tools, which may have fractions.
VALUES = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_kept,
    parse_constant=_constant,
)


def decode_utf8(data: bytes) -> str:
    """The text of the bytes, or a finding; a byte-order mark is content here, and not JSON."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"not UTF-8 (byte {error.start})") from None
    if text.startswith("\ufeff"):
        raise Invalid("begins with a byte-order mark")
    return text


def parse(text: str, decoder: json.JSONDecoder = DECODER) -> Any:
    """One JSON value and nothing after it."""
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Invalid(f"not JSON ({error.msg} at character {error.pos})") from None
    except RecursionError:
        raise Invalid("nested too deeply") from None


def is_integer(value: Any) -> bool:
    """A bool is an int in Python and is not one in JSON."""
    return isinstance(value, int) and not isinstance(value, bool)


def utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


_ATOMS = frozenset((str, int, bool, type(None)))


def _ordered(value: Any) -> Any:
    """The value with every object's keys in RFC 8785 order: by UTF-16 code units, not code points."""
    if isinstance(value, dict):
        keys = sorted(value) if "".join(value).isascii() else sorted(value, key=utf16)
        return {key: value[key] if type(value[key]) in _ATOMS else _ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes. With floats refused on the way in, Python's own string escapes are the RFC's."""
    try:
        return _encode(_ordered(value)).encode("utf-8")
    except UnicodeEncodeError:
        raise Invalid("holds half of a surrogate pair, which has no UTF-8 form") from None
    except RecursionError:
        raise Invalid("nested too deeply") from None
