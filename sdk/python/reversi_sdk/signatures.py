"""Signatures of approvals inside a bundle: passkey assertions (WebAuthn) over what the records say.

A record names a signature by the hash of its assertion, so the ledger proves that it is the one that the person
made. Whose keys they are is not in the bundle; the caller's approvers file says it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import ed25519, p256, rsa
from .errors import Invalid
from .keys import strict_base64
from .strictjson import canonical, is_integer

_NAMED = re.compile(r"; signed ([0-9a-f]{64})\Z")
_ORIGIN = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::[0-9]{1,5})?")
_CLOCK_TOLERANCE_MS = 60_000
_PRESENT, _VERIFIED = 0x01, 0x04
_ED25519_SPKI = bytes.fromhex("302a300506032b6570032100")
_P256_SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")

_TEXTS = ("ledger", "kind", "id", "decision", "by", "run_id", "actor", "tenant", "environment", "tool")
_HASHES = ("args_hash", "card_hash", "shown_hash", "subject_hash", "policy_hash", "nonce")
_NEEDED = ("v", "kind", "decision", "by", "nonce")
_CALLS = ("approval", "offer", "break_glass", "pre_approval", "compensation", "plan")
_KINDS = {"approved": _CALLS, "plan_approved": ("plan",), "granted": ("grant",), "delegated": ("delegation",)}
_DECISIONS = {"offer": "offer", "grant": "grant", "delegation": "delegate"}


class Signer(NamedTuple):
    """Who signed what. `doubt` says why the approvers file does not vouch for it."""

    by: str
    what: str
    code: str
    records: Tuple[int, ...]
    doubt: Optional[str]


class Naming:
    """The records that name a signature, as they stream by, and the last `purged` record of each run."""

    def __init__(self) -> None:
        self.records: List[Tuple[str, Dict[str, Any]]] = []
        self.purged: Dict[str, int] = {}

    def add(self, record: Dict[str, Any]) -> None:
        detail = record.get("detail")
        if record["event"] == "purged" and "run_id" in record:
            self.purged[record["run_id"]] = record["seq"]
        if record["event"] in _KINDS and isinstance(detail, str):
            found = _NAMED.search(detail)
            if found is not None:
                self.records.append((found.group(1), record))


def check_shape(value: Any) -> None:
    """The shape of `signatures`, as far as a list goes."""
    if not isinstance(value, list):
        raise Invalid("its signatures are not a list")


def check_signatures(
    carried: List[Any], naming: Naming, approvers: Optional[Dict[str, Any]] = None
) -> Tuple[List[Signer], int]:
    """Who signed what, and how many signatures retention deleted with their runs. Raises where one does not hold."""
    found: Dict[str, Dict[str, Any]] = {}
    for one in carried:
        _check_carried(one)
        name = hashlib.sha256(canonical(one["assertion"])).hexdigest()
        if name in found:
            raise Invalid("it has a signature twice")
        found[name] = one
    used: Dict[str, List[Dict[str, Any]]] = {}
    deleted = 0
    for name, record in naming.records:
        where = f"record {record['seq']}"
        if name not in found:
            if naming.purged.get(record.get("run_id", ""), -1) < record["seq"]:
                raise Invalid("it names a signature that the bundle does not hold", where)
            deleted += 1
            continue
        before = used.setdefault(name, [])
        problem = _binding_problem(found[name], record, before)
        if problem is not None:
            raise Invalid(f"its signature {problem}", where)
        before.append(record)
    signers = []
    for name, one in found.items():
        if name not in used:
            raise Invalid("it has a signature that no record names")
        problem = assertion_problem(one)
        if problem is not None:
            raise Invalid(f"its signature does not hold: {problem}", f"record {used[name][0]['seq']}")
        signers.append(_signer(one, used[name], approvers))
    return signers, deleted


def _check_carried(one: Any) -> None:
    names = {"payload", "assertion", "public_key", "alg"}
    good = isinstance(one, dict) and names <= set(one) <= names | {"subject"}
    if not good or not is_payload(one["payload"]) or not is_assertion(one["assertion"]):
        raise Invalid("its signatures are not a list of {payload, assertion, public_key, alg, subject}")
    if not isinstance(one["public_key"], str) or one["alg"] not in ("ES256", "EdDSA", "RS256"):
        raise Invalid("its signatures are not a list of {payload, assertion, public_key, alg, subject}")


def is_payload(value: Any) -> bool:
    if not isinstance(value, dict) or not set(_NEEDED) <= set(value):
        return False
    if not set(value) <= {"v", "expires_ms", *_TEXTS, *_HASHES}:
        return False
    if not is_integer(value["v"]) or value["v"] != 1 or not is_integer(value.get("expires_ms", 0)):
        return False
    return all(isinstance(value.get(name, ""), str) for name in (*_TEXTS, *_HASHES))


def is_assertion(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"id", "rawId", "type", "response"}:
        return False
    response = value["response"]
    parts = ("clientDataJSON", "authenticatorData", "signature")
    if not isinstance(response, dict) or set(response) != set(parts) or value["type"] != "public-key":
        return False
    coded = [value["id"], value["rawId"], *(response[part] for part in parts)]
    return all(isinstance(text, str) and _base64url(text) is not None for text in coded)


def _base64url(text: str) -> Optional[bytes]:
    plain = text.replace("-", "+").replace("_", "/")
    if not text or "+" in text or "/" in text or "=" in text:
        return None
    return strict_base64(plain + "=" * (-len(plain) % 4))


def _binding_problem(one: Dict[str, Any], record: Dict[str, Any], before: List[Dict[str, Any]]) -> Optional[str]:
    """Why the signature is not over what the record says; None if it is."""
    payload, event = one["payload"], record["event"]
    kind = payload["kind"]
    if kind not in _KINDS[event]:
        return "is for another kind of decision"
    if payload["decision"] != _DECISIONS.get(kind, "approve"):
        return "does not approve"
    if payload["by"] != record.get("actor"):
        return "is another person's"
    if payload.get("run_id") != record.get("run_id"):
        return "is for another run"
    if "expires_ms" in payload and record["ts_ms"] > payload["expires_ms"] + _CLOCK_TOLERANCE_MS:
        return "had expired"
    if event == "approved" and kind == "plan":
        return _planned_problem(one, record, before)
    if any(other["event"] == event for other in before):
        return "is used twice"
    if event == "approved":
        same = all(payload.get(name) == record.get(name) for name in ("tool", "args_hash"))
        return None if same else "is for another tool or other arguments"
    identity = payload.get("id", "")
    start = f"plan {identity}" if event == "plan_approved" else f"{identity}:"
    return None if record["detail"].startswith(start) else "is for another subject"


def _planned_problem(one: Dict[str, Any], record: Dict[str, Any], before: List[Dict[str, Any]]) -> Optional[str]:
    """A plan's signature covers as many calls of one kind as the plan has."""
    plan = one.get("subject")
    calls = plan.get("calls") if isinstance(plan, dict) else None
    good = isinstance(calls, list) and all(isinstance(call, dict) for call in calls)
    if not good or one["payload"].get("subject_hash") != value_hash(plan):
        return "comes without the plan that it signs"

    def is_same(call: Dict[str, Any]) -> bool:
        return all(call.get(name) == record.get(name) for name in ("tool", "args_hash"))

    planned = sum(map(is_same, calls or []))
    used = sum(other["event"] == "approved" and is_same(other) for other in before)
    return None if used < planned else "is for a plan without this call"


def value_hash(value: Any) -> str:
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def assertion_problem(one: Dict[str, Any], place: Optional[Dict[str, Any]] = None) -> Optional[str]:
    """Why the assertion does not sign the payload; None if it does. `place` names relying party and origins."""
    assertion = one["assertion"]
    if assertion["id"] != assertion["rawId"]:
        return "it names two passkeys"
    parts = {name: _base64url(text) or b"" for name, text in assertion["response"].items()}
    problem = _client_problem(parts["clientDataJSON"], one["payload"])
    if problem is not None:
        return problem
    origin = json.loads(parts["clientDataJSON"])["origin"]
    found = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if found is None or (place is not None and origin not in place["origins"]):
        return "it was not made at a known origin"
    labels = found.group(1).split(".")
    parties = [".".join(labels[i:]) for i in range(len(labels))] if place is None else [place["rp_id"]]
    data = parts["authenticatorData"]
    if data[:32] not in [hashlib.sha256(party.encode()).digest() for party in parties]:
        return "it was made for another relying party"
    if len(data) < 37 or (not data[32] & 0xC0 and len(data) != 37):
        return "its authenticator data is damaged"
    if not data[32] & _PRESENT or not data[32] & _VERIFIED:
        return "the person was not verified"
    signed = data + hashlib.sha256(parts["clientDataJSON"]).digest()
    return None if _is_signed(one, signed, parts["signature"]) else "the signature is wrong"


def _client_problem(data: bytes, payload: Dict[str, Any]) -> Optional[str]:
    try:
        client = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return "its client data is not JSON"
    if not isinstance(client, dict) or client.get("type") != "webauthn.get" or "origin" not in client:
        return "its client data is not that of an assertion"
    if client.get("crossOrigin") is True:
        return "it was made in another site's frame"
    challenge = base64.urlsafe_b64encode(hashlib.sha256(canonical(payload)).digest()).decode().rstrip("=")
    return None if client.get("challenge") == challenge else "it signs another payload"


def _is_signed(one: Dict[str, Any], message: bytes, signature: bytes) -> bool:
    spki = strict_base64(one["public_key"]) or b""
    if one["alg"] == "ES256":
        return spki.startswith(_P256_SPKI) and p256.verify(spki[len(_P256_SPKI) :], message, signature)
    if one["alg"] == "EdDSA":
        return spki.startswith(_ED25519_SPKI) and ed25519.verify(spki[len(_ED25519_SPKI) :], message, signature)
    return rsa.verify(spki, message, signature)


def _signer(one: Dict[str, Any], records: List[Dict[str, Any]], approvers: Optional[Dict[str, Any]]) -> Signer:
    payload = one["payload"]
    named = [payload["decision"], payload["kind"], *(payload.get(name) for name in ("tool", "id", "run_id"))]
    return Signer(
        by=payload["by"],
        what=", ".join(text for text in named if text is not None),
        code=hashlib.sha256(strict_base64(one["public_key"]) or b"").hexdigest()[:8],
        records=tuple(record["seq"] for record in records),
        doubt=None if approvers is None else _doubt(one, approvers),
    )


def _doubt(one: Dict[str, Any], approvers: Dict[str, Any]) -> Optional[str]:
    """Why the approvers file does not vouch for the signer; None if it does."""
    payload, identity = one["payload"], one["assertion"]["id"]
    known = [(person, key) for person in approvers["approvers"] for key in person["keys"] if key["id"] == identity]
    if not known:
        return "the passkey is nobody's in the approvers file"
    person, key = known[0]
    if any(key[name] != one[name] for name in ("public_key", "alg")):
        return "the passkey has another public key in the approvers file"
    if person["name"] != payload["by"]:
        return f"the passkey is {person['name']}'s in the approvers file"
    if key["revoked"]:
        return "the passkey is revoked in the approvers file"
    if payload.get("ledger") != approvers["ledger"]:
        return "the signature is for another ledger than the approvers file"
    problem = assertion_problem(one, approvers)
    return None if problem is None else f"the approvers file does not permit it: {problem}"
