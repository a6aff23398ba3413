"""Makes good evidence, so that tests can break it. Signing lives here only: the package never signs."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
from typing import Any, Dict, List, Optional, Sequence

from reversi_sdk import ed25519
from reversi_sdk.keys import PublicKey, parse_public_key

GENESIS = "0" * 64
TEXTS = ["refund", "späte Buchung", "日本語", 'quote " and \\ slash', "tab\tnew\nline", "\u2028\u007f\u0001", "😀 \ue000"]
EVENTS = ["intended", "succeeded", "blocked"]


def dump(value: Any) -> bytes:
    """Canonical JSON for values with ASCII keys, written apart from the package's own."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def seal(record: Dict[str, Any]) -> Dict[str, Any]:
    body = {key: value for key, value in record.items() if key != "hash"}
    return {**body, "hash": hashlib.sha256(dump(body)).hexdigest()}


def rechain(records: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The same records with every prev and hash made to fit, as a forger would."""
    prev, done = GENESIS, []
    for record in records:
        done.append(seal({**record, "prev": prev}))
        prev = done[-1]["hash"]
    return done


def ledger(count: int, seed: int = 1, runs: int = 3) -> List[Dict[str, Any]]:
    rng = random.Random(seed)
    numbers: Dict[str, int] = {}
    records: List[Dict[str, Any]] = []
    for seq in range(count):
        record: Dict[str, Any] = {"seq": seq, "ts_ms": 1_700_000_000_000 + seq * 7, "event": rng.choice(EVENTS)}
        if rng.random() < 0.85:
            run_id = f"run_{rng.randrange(runs)}"
            record.update(run_id=run_id, run_seq=numbers.get(run_id, 0), scope_seal="sha256:" + "ab" * 32)
            numbers[run_id] = record["run_seq"] + 1
            record.update(step=rng.randrange(9), tool="payments.refund", effect="compensable")
            record["args_hash"] = "sha256:" + "cd" * 32
        else:
            record["event"] = "halted"
        record["actor"] = rng.choice(["billing-bot", "ops"])
        if rng.random() < 0.5:
            record["reason"] = rng.choice(TEXTS)
        if rng.random() < 0.2:
            record["detail"] = [rng.choice(TEXTS), seq, True]
        records.append(record)
    return rechain(records)


def lines(records: Sequence[Dict[str, Any]]) -> bytes:
    return b"".join(dump(record) + b"\n" for record in records)


def stream(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)


class Signer:
    """An Ed25519 key pair (RFC 8032, 5.1.5 and 5.1.6), slow and for tests only."""

    def __init__(self, seed: bytes = b"\x07" * 32) -> None:
        digest = hashlib.sha512(seed).digest()
        self._scalar = int.from_bytes(digest[:32], "little") & ~7 & ((1 << 254) - 1) | 1 << 254
        self._prefix = digest[32:]
        self.raw = ed25519.encode(ed25519.multiply(self._scalar, ed25519.BASE))
        self.key_id = hashlib.sha256(self.raw).hexdigest()[:16]
        der = bytes.fromhex("302a300506032b6570032100") + self.raw
        self.pem = f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(der).decode()}\n-----END PUBLIC KEY-----\n"

    def sign(self, message: bytes) -> bytes:
        r = int.from_bytes(hashlib.sha512(self._prefix + message).digest(), "little") % ed25519.L
        commitment = ed25519.encode(ed25519.multiply(r, ed25519.BASE))
        k = int.from_bytes(hashlib.sha512(commitment + self.raw + message).digest(), "little") % ed25519.L
        return commitment + ((r + k * self._scalar) % ed25519.L).to_bytes(32, "little")

    def trust(self) -> Dict[str, PublicKey]:
        key = parse_public_key(self.pem)
        return {key.key_id: key}


def leaf(record: Dict[str, Any]) -> bytes:
    body = {key: value for key, value in record.items() if key != "hash"}
    return hashlib.sha256(b"\x00" + dump(body)).digest()


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962, 2.1, by its recursive definition; the package works the other way, bottom up."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return hashlib.sha256(b"\x01" + tree_root(leaves[:k]) + tree_root(leaves[k:])).digest()


def tree_path(index: int, leaves: Sequence[bytes]) -> List[bytes]:
    if len(leaves) <= 1:
        return []
    k = split(len(leaves))
    if index < k:
        return tree_path(index, leaves[:k]) + [tree_root(leaves[k:])]
    return tree_path(index - k, leaves[k:]) + [tree_root(leaves[:k])]


def split(size: int) -> int:
    k = 1
    while k * 2 < size:
        k *= 2
    return k


def bundle(records: Sequence[Dict[str, Any]], signer: Signer, run_id: Optional[str] = None) -> Dict[str, Any]:
    """A good bundle of the whole ledger or of one of its runs."""
    leaves = [leaf(record) for record in records]
    chosen = [r for r in records if run_id is None or r.get("run_id") == run_id]
    paths = {str(r["seq"]): [h.hex() for h in tree_path(r["seq"], leaves)] for r in chosen if run_id is not None}
    made: Dict[str, Any] = {
        "format": "svc-bundle",
        "version": 1,
        "kind": "ledger" if run_id is None else "run",
        "run_id": run_id,
        "exported_ms": 1_700_000_100_000,
        "head": records[-1]["hash"] if records else GENESIS,
        "records": chosen,
        "count": len(chosen),
        "tree": {"size": len(leaves), "root": tree_root(leaves).hex()},
        "proofs": paths,
        "key_id": signer.key_id,
        "public_key": signer.pem,
    }
    return sign_bundle(made, signer)


def sign_bundle(made: Dict[str, Any], signer: Signer) -> Dict[str, Any]:
    """The bundle with a signature over what it says now, true or not."""
    signed = ("format", "version", "kind", "run_id", "exported_ms", "head", "count", "tree", "key_id")
    summary = {field: made[field] for field in signed if made.get(field) is not None}
    if made["records"]:
        summary.update(first_seq=made["records"][0]["seq"], last_seq=made["records"][-1]["seq"])
    return {**made, "signature": base64.b64encode(signer.sign(b"svc-bundle/v1\n" + dump(summary))).decode()}


def anchor(
    records: Sequence[Dict[str, Any]], signer: Optional[Signer], ts_ms: int = 1_700_000_200_000, **more: Any
) -> Dict[str, Any]:
    leaves = [leaf(record) for record in records]
    made: Dict[str, Any] = {
        "format": "svc-anchor",
        "version": 1,
        "ts_ms": ts_ms,
        "head": records[-1]["hash"] if records else GENESIS,
        "records": len(records),
        "tree": {"size": len(leaves), "root": tree_root(leaves).hex()},
        **more,
    }
    return made if signer is None else sign_anchor({**made, "key_id": signer.key_id}, signer)


def sign_anchor(made: Dict[str, Any], signer: Signer) -> Dict[str, Any]:
    summary = {key: value for key, value in made.items() if key != "signature"}
    return {**made, "signature": base64.b64encode(signer.sign(b"svc-anchor/v1\n" + dump(summary))).decode()}
