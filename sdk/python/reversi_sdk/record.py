"""One ledger record on its own: its shape, its canonical bytes and its hash.

What a record's neighbours say about it is in `chain`; here is only what it can prove by itself.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Dict

from .errors import Invalid, show
from .strictjson import canonical, is_integer

GENESIS = "0" * 64
_HASH = re.compile(r"[0-9a-f]{64}")

_INTEGERS = ("seq", "ts_ms", "run_seq", "step")
_TEXTS = ("event", "run_id", "tool", "actor", "prev", "hash")
_REQUIRED = ("seq", "ts_ms", "event", "prev", "hash")


def is_hash(value: Any) -> bool:
    """A SHA-256 as evidence writes it: 64 lowercase hex digits."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


_SCALARS = frozenset((str, int, bool))  # floats never get in: the reader refuses them


def check_shape(record: Any) -> Dict[str, Any]:
    """The record itself, or a finding. Fields this version does not know are allowed: the hash covers them."""
    if not isinstance(record, dict):
        raise Invalid("is not a JSON object")
    for field in _REQUIRED:
        if field not in record:
            raise Invalid(f"has no {field}")
    for field, value in record.items():
        if type(value) not in _SCALARS and not (type(value) is list and _SCALARS.issuperset(map(type, value))):
            raise Invalid(f"its {show(field)} is neither text, integer, boolean nor a list of those")
    for field in _INTEGERS:
        if field in record and not (is_integer(record[field]) and record[field] >= 0):
            raise Invalid(f"its {field} is not a count")
    for field in _TEXTS:
        if field in record and not isinstance(record[field], str):
            raise Invalid(f"its {field} is not text")
    for field in ("prev", "hash"):
        if not is_hash(record[field]):
            raise Invalid(f"its {field} is not 64 lowercase hex digits")
    if ("run_id" in record) != ("run_seq" in record):
        raise Invalid("has one of run_id and run_seq without the other")
    return record


def check_hash(record: Dict[str, Any]) -> bytes:
    """The bytes that the record's hash covers, after checking that it does. They are its tree leaf too."""
    body = canonical({key: value for key, value in record.items() if key != "hash"})
    if hashlib.sha256(body).hexdigest() != record["hash"]:
        raise Invalid("its content does not match its hash: it was changed")
    return body
