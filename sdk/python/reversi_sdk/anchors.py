"""Anchors against a ledger: what was published earlier must still be the beginning of what is here now.

One pass over the ledger verifies it and notes head and tree root at every anchored size. Two anchors whose
roots both match one ledger at sizes in order are a tree and its prefix, so no further proof is needed.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional, Tuple

from . import keys, merkle
from .bundle import check_tree
from .chain import Chain, Summary, verify_ledger
from .errors import InputError, Invalid, show
from .files import lines
from .record import GENESIS, is_hash
from .strictjson import canonical, decode_utf8, is_integer, parse

DOMAIN = b"svc-anchor/v1\n"
_REQUIRED = ("format", "version", "ts_ms", "head", "records", "tree")
_OPTIONAL = ("region", "key_id", "signature", "public_key")


class Anchor(NamedTuple):
    """One line of the anchors file. `problem` is set where the line is wrong in itself."""

    line: int
    fields: Dict[str, Any]
    problem: Optional[str]


class Finding(NamedTuple):
    line: int
    ts_ms: Optional[int]
    records: Optional[int]
    signature: str  # "trusted", "self-consistent", "unchecked" or "none"
    problem: Optional[str]


def read_anchors(source: BinaryIO) -> List[Anchor]:
    anchors = []
    for number, line, _ in lines(source):
        try:
            anchors.append(Anchor(number, _read_anchor(line), None))
        except Invalid as finding:
            anchors.append(Anchor(number, {}, str(finding)))
    if not anchors:
        raise InputError("the anchors file is empty: there is nothing to check against")
    return anchors


def _read_anchor(line: bytes) -> Dict[str, Any]:
    if line.endswith(b"\r"):
        raise Invalid("the line ends in CR LF: the file was converted on the way")
    anchor = parse(decode_utf8(line))
    if not isinstance(anchor, dict):
        raise Invalid("is not a JSON object")
    for field in _REQUIRED:
        if field not in anchor:
            raise Invalid(f"has no {field}")
    for field in anchor:
        if field not in _REQUIRED and field not in _OPTIONAL:
            raise Invalid(f"has a member {show(field)!r} that no anchor has")
    if anchor["format"] != "svc-anchor" or not is_integer(anchor["version"]) or anchor["version"] != 1:
        raise Invalid("is not a svc-anchor of version 1")
    for field in ("ts_ms", "records"):
        if not is_integer(anchor[field]) or anchor[field] < 0:
            raise Invalid(f"its {field} is not a count")
    if not is_hash(anchor["head"]):
        raise Invalid("its head is not 64 lowercase hex digits")
    if not isinstance(anchor.get("region", ""), str):
        raise Invalid("its region is not text")
    check_tree(anchor["tree"])
    if anchor["tree"]["size"] != anchor["records"]:
        raise Invalid(f"its tree has {anchor['tree']['size']} leaves and it counts {anchor['records']} records")
    if ("key_id" in anchor) != ("signature" in anchor):
        raise Invalid("has one of key_id and signature without the other")
    return anchor


def verify_anchors(
    anchors: List[Anchor], ledger: BinaryIO, trusted: Dict[str, keys.PublicKey]
) -> Tuple[Summary, List[Finding]]:
    """A finding for each anchor, in order. Raises where the ledger itself does not verify."""
    sizes = {anchor.fields["records"] for anchor in anchors if anchor.problem is None}
    moments, summary = _moments(ledger, sizes)
    findings, reached = [], 0
    for anchor in anchors:
        signature, problem = "none", anchor.problem
        if problem is None:
            try:
                signature = _check_signature(anchor.fields, trusted)
                _check_position(anchor.fields, summary.records, moments, reached)
                reached = anchor.fields["records"]
            except Invalid as finding:
                problem = str(finding)
        at, records = anchor.fields.get("ts_ms"), anchor.fields.get("records")
        findings.append(Finding(anchor.line, at, records, signature, problem))
    return summary, findings


def _moments(ledger: BinaryIO, sizes: Any) -> Tuple[Dict[int, Tuple[str, str]], Summary]:
    """Head and tree root of the ledger at each of the sizes it reached."""
    tree = merkle.Frontier()
    moments = {0: (GENESIS, merkle.EMPTY_ROOT.hex())}

    def note(chain: Chain, body: bytes) -> None:
        tree.add(merkle.leaf_hash(body))
        if chain.count in sizes:
            moments[chain.count] = (chain.head, tree.root().hex())

    try:
        return moments, verify_ledger(ledger, note)
    except Invalid as finding:
        raise Invalid(finding.problem, f"the ledger, {finding.where}") from None


def _check_signature(anchor: Dict[str, Any], trusted: Dict[str, keys.PublicKey]) -> str:
    if "signature" not in anchor:
        if trusted:
            raise Invalid("it is not signed, and a trusted key was given")
        return "none"
    key = keys.choose_key(anchor["key_id"], anchor.get("public_key"), trusted)
    if key is None:
        keys.parse_signature(anchor["signature"])
        return "unchecked"
    signed = {field: value for field, value in anchor.items() if field != "signature"}
    keys.check_signature(key, DOMAIN, (canonical(signed),), anchor["signature"])
    return "trusted" if trusted else "self-consistent"


def _check_position(
    anchor: Dict[str, Any], ledger_records: int, moments: Dict[int, Tuple[str, str]], reached: int
) -> None:
    records = anchor["records"]
    if records > ledger_records:
        raise Invalid(f"the ledger has {ledger_records} records but was anchored at {records}: it has been truncated")
    head, root = moments[records]
    if anchor["head"] != head:
        raise Invalid(f"history was rewritten: record {records - 1} no longer has the anchored hash")
    if anchor["tree"]["root"] != root:
        raise Invalid(f"history was rewritten: the first {records} records no longer have the anchored tree root")
    if records < reached:
        raise Invalid(f"it counts {records} records after an anchor of {reached}: a ledger never shrinks")


def moment(ts_ms: Optional[int]) -> str:
    """ISO 8601 in UTC. Computed from the epoch, because fromtimestamp refuses years some systems cannot hold."""
    if ts_ms is None:
        return "unknown time"
    try:
        at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ts_ms)
    except OverflowError:
        return f"{ts_ms} ms"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
