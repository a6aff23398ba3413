"""Signed bundles: a whole ledger or one run, checked with nothing but the bundle and, best, a trusted key.

Members may come in any order and `records` may be larger than memory, so what depends on `kind` is decided
after reading: each record leaves behind only its leaf hash and a few numbers.
"""

from __future__ import annotations

from array import array
from typing import Any, BinaryIO, Dict, NamedTuple, Optional, Sequence

from . import keys, merkle, signatures, witness
from .chain import Chain
from .errors import InputError, Invalid, show
from .jsonstream import JsonStream
from .record import GENESIS, check_hash, check_shape, is_hash
from .strictjson import canonical, is_integer

DOMAIN = b"svc-bundle/v1\n"
_REQUIRED = ("format", "version", "kind", "exported_ms", "head", "records", "count", "tree", "key_id", "signature")
# `public_key` may travel with a bundle; first_seq and last_seq are signed and may be spelled out as well.
# Checkpoints and signatures of approvals carry signatures of their own.
_OPTIONAL = ("run_id", "proofs", "public_key", "first_seq", "last_seq", "checkpoints", "signatures")
_SIGNED = ("format", "version", "kind", "run_id", "exported_ms", "head", "count", "tree", "key_id")


class Report(NamedTuple):
    """What a good bundle showed. `trusted` says whether the key was one the caller already trusted."""

    kind: str
    run_id: Optional[str]
    count: int
    first_seq: Optional[int]
    last_seq: Optional[int]
    tree_size: int
    head: str
    head_tied: bool
    key_id: str
    trusted: bool
    witnesses: Sequence[witness.Seen] = ()
    covered: int = 0
    checkpoints: int = 0
    signers: Sequence[signatures.Signer] = ()
    deleted: int = 0


class Records:
    """The records of a bundle as they stream by: their hashes are checked, their order is remembered.

    A finding about order is kept until `kind` is known, since a run's records are not a whole chain.
    """

    def __init__(self) -> None:
        self.count = 0
        self.leaves = bytearray()
        self.seqs = array("Q")
        self.first_seq: Optional[int] = None
        self.last: Optional[Dict[str, Any]] = None
        self.run_id: Optional[str] = None
        self.not_a_ledger: Optional[Invalid] = None
        self.not_a_run: Optional[Invalid] = None
        # The last record that is more than word of a witness.
        self.last_other: Optional[int] = None
        self.naming = signatures.Naming()
        self._chain = Chain()

    def add(self, record: Any) -> None:
        where = f"record {self.count} of the bundle"
        try:
            where = f"record {check_shape(record)['seq']}"
            body = check_hash(record)
        except Invalid as finding:
            raise finding.at(where) from None
        if self.not_a_ledger is None:
            try:
                self._chain.link(record)
            except Invalid as finding:
                self.not_a_ledger = finding.at(where)
        if self.not_a_run is None:
            try:
                self._next_of_run(record)
            except Invalid as finding:
                self.not_a_run = finding.at(where)
        if self.first_seq is None:
            self.first_seq = record["seq"]
        self.naming.add(record)
        self.leaves += merkle.leaf_hash(body)
        self.seqs.append(record["seq"])
        if record["event"] != "witnessed":
            self.last_other = record["seq"]
        self.count += 1
        self.last = record

    def close(self) -> None:
        self._chain.close()

    def leaf(self, position: int) -> bytes:
        return bytes(self.leaves[32 * position : 32 * position + 32])

    def root(self) -> bytes:
        tree = merkle.Frontier()
        for position in range(self.count):
            tree.add(self.leaf(position))
        return tree.root()

    def _next_of_run(self, record: Dict[str, Any]) -> None:
        if self.last is None:
            self.run_id = record.get("run_id")
            if record["seq"] == 0 and record["prev"] != GENESIS:
                raise Invalid("it is the first of the ledger and its prev is not 64 zeros")
        elif record["seq"] <= self.last["seq"]:
            raise Invalid("it is repeated or out of order")
        elif record["seq"] == self.last["seq"] + 1 and record["prev"] != self.last["hash"]:
            raise Invalid("its prev is not the hash of the record before it")
        if record.get("run_id") != self.run_id or self.run_id is None:
            raise Invalid("it belongs to another run")
        if record["run_seq"] != self.count:
            due = f"its run_seq is {record['run_seq']} where {self.count} was due"
            raise Invalid(f"{due}: a record of the run is missing")


def verify_bundle(
    source: BinaryIO,
    trusted: Dict[str, keys.PublicKey],
    witnesses: Sequence[witness.WitnessKey] = (),
    quorum: Optional[int] = None,
    approvers: Optional[Dict[str, Any]] = None,
) -> Report:
    """Everything a bundle claims, or the first thing in it that does not hold.

    Where witnesses are given, `quorum` of them (all, unless said) must have cosigned every record. An approvers file
    says whose passkeys signed.
    """
    demanded = len(witnesses) if quorum is None else quorum
    records = Records()
    try:
        bundle = _read(source, records)
    finally:
        records.close()
    _check_members(bundle)
    if bundle["count"] != records.count:
        raise Invalid(f"it says it holds {bundle['count']} records and holds {records.count}")
    _check_named(bundle, "first_seq", records.first_seq)
    _check_named(bundle, "last_seq", records.last["seq"] if records.last else None)
    if bundle["kind"] == "ledger":
        _check_ledger(bundle, records)
    else:
        _check_run(bundle, records)
    key = keys.choose_key(bundle["key_id"], bundle.get("public_key"), trusted)
    if key is None:
        raise Invalid("its signature cannot be checked: it carries no public key; give one with --pub <file>")
    _check_signature(key, bundle, records)
    seen, covered = witness.check_witnesses(bundle, key, witnesses, demanded)
    if witnesses and records.last_other is not None and records.last_other >= covered:
        raise Invalid(f"record {records.last_other} was not seen by enough witnesses: they cosigned the first {covered}")
    signers, deleted = signatures.check_signatures(bundle.get("signatures", []), records.naming, approvers)
    report = _report(bundle, records, key, trusted=bool(trusted))._replace(signers=signers, deleted=deleted)
    carried = len(bundle.get("checkpoints", []))
    return report._replace(witnesses=seen, covered=covered, checkpoints=carried)


def _report(bundle: Dict[str, Any], records: Records, key: keys.PublicKey, trusted: bool) -> Report:
    return Report(
        kind=bundle["kind"],
        run_id=bundle.get("run_id"),
        count=records.count,
        first_seq=records.first_seq,
        last_seq=records.last["seq"] if records.last else None,
        tree_size=bundle["tree"]["size"],
        head=bundle["head"],
        head_tied=_holds_last_leaf(bundle, records),
        key_id=key.key_id,
        trusted=trusted,
    )


def _read(source: BinaryIO, records: Records) -> Dict[str, Any]:
    """The bundle's members; its records go to `records`, its proofs are kept as bytes."""
    stream = JsonStream(source)
    if stream.is_empty():
        raise InputError("the bundle is empty: there is nothing to verify")
    bundle: Dict[str, Any] = {}
    for key in stream.document():
        if key not in _REQUIRED and key not in _OPTIONAL:
            raise Invalid(f"it has a member {show(key)!r} that no bundle has and no signature covers")
        if key == "records":
            for record in stream.elements():
                records.add(record)
            bundle[key] = None
        elif key == "proofs":
            bundle[key] = {seq: _read_proof(seq, stream.value()) for seq in stream.members()}
        else:
            bundle[key] = stream.value()
    return bundle


def _read_proof(seq: str, path: Any) -> bytes:
    # No tree has more levels than a 64-bit size has bits, so a longer path is refused before it is stored.
    if not isinstance(path, list) or len(path) > 64 or not all(map(is_hash, path)):
        raise Invalid("its inclusion proof is not a list of hashes", f"record {show(seq, 20)}")
    return bytes.fromhex("".join(path))


def _check_members(bundle: Dict[str, Any]) -> None:
    for field in _REQUIRED:
        if field not in bundle:
            raise Invalid(f"it has no {field}")
    if bundle["format"] != "svc-bundle" or not is_integer(bundle["version"]) or bundle["version"] != 1:
        raise Invalid("it is not a svc-bundle of version 1")
    if bundle["kind"] not in ("ledger", "run"):
        raise Invalid("its kind is neither ledger nor run")
    for field in ("exported_ms", "count"):
        if not is_integer(bundle[field]) or bundle[field] < 0:
            raise Invalid(f"its {field} is not a count")
    if not is_hash(bundle["head"]):
        raise Invalid("its head is not 64 lowercase hex digits")
    check_tree(bundle["tree"])
    witness.check_carried(bundle.get("checkpoints", []))
    signatures.check_shape(bundle.get("signatures", []))
    run_id = bundle.get("run_id")
    if not (isinstance(run_id, str) if bundle["kind"] == "run" else run_id is None):
        raise Invalid("a run's bundle names its run, and a ledger's names none")


def check_tree(tree: Any) -> None:
    """`{size, root}` and nothing more; anchors carry the same."""
    if not isinstance(tree, dict) or set(tree) != {"size", "root"}:
        raise Invalid("its tree is not {size, root}")
    if not is_integer(tree["size"]) or tree["size"] < 0 or not is_hash(tree["root"]):
        raise Invalid("its tree is not a size and a hash")


def _check_named(bundle: Dict[str, Any], field: str, actual: Optional[int]) -> None:
    stated = bundle.get(field)
    if field in bundle and (stated != actual or isinstance(stated, bool)):
        raise Invalid(f"its {field} is not that of its records")


def _check_ledger(bundle: Dict[str, Any], records: Records) -> None:
    """From genesis to head, and the tree rebuilt from every leaf; proofs would add nothing, but must hold."""
    if records.not_a_ledger is not None:
        raise records.not_a_ledger
    if bundle["head"] != (records.last["hash"] if records.last else GENESIS):
        raise Invalid("its head is not the hash of its last record")
    if bundle["tree"]["size"] != records.count:
        raise Invalid(f"its tree has {bundle['tree']['size']} leaves and it holds {records.count} records")
    if bundle["tree"]["root"] != records.root().hex():
        raise Invalid("its tree root is not that of its records")
    _check_proofs(bundle, records, required=False)


def _check_run(bundle: Dict[str, Any], records: Records) -> None:
    """Each record proven to be in the tree, and none of the run's records left out of those signed for."""
    if records.not_a_run is not None:
        raise records.not_a_run
    if records.count and records.run_id != bundle["run_id"]:
        raise Invalid("its records belong to another run")
    _check_proofs(bundle, records, required=True)
    if records.last and _holds_last_leaf(bundle, records) and records.last["hash"] != bundle["head"]:
        raise Invalid("its head is not the hash of the ledger's last record, which it holds")


def _check_proofs(bundle: Dict[str, Any], records: Records, required: bool) -> None:
    """Every proof belongs to a record that is here and leads to the signed root; one for each where required."""
    tree, proofs, used = bundle["tree"], bundle.get("proofs") or {}, 0
    root = bytes.fromhex(tree["root"])
    for position, seq in enumerate(records.seqs if proofs or required else ()):
        joined = proofs.get(str(seq))
        if joined is None and not required:
            continue
        where = f"record {seq}"
        if joined is None:
            raise Invalid("it has no inclusion proof", where)
        if seq >= tree["size"]:
            raise Invalid(f"it lies beyond the signed tree of {tree['size']} leaves", where)
        path = [joined[start : start + 32] for start in range(0, len(joined), 32)]
        if not merkle.proves_inclusion(records.leaf(position), seq, tree["size"], path, root):
            raise Invalid("its inclusion proof does not lead to the signed tree root", where)
        used += 1
    if used != len(proofs):
        raise Invalid("it has an inclusion proof for a record that it does not hold")


def _holds_last_leaf(bundle: Dict[str, Any], records: Records) -> bool:
    """Whether the ledger's last record is in the bundle, so that chain head and tree can be tied together."""
    return records.last is not None and records.last["seq"] == bundle["tree"]["size"] - 1


def _check_signature(key: keys.PublicKey, bundle: Dict[str, Any], records: Records) -> None:
    """The signed summary is rebuilt from what was just checked, never taken as the bundle spells it.

    A value that is not there (a ledger's run_id, the first_seq of no records) may have been signed as left
    out or as null: the two say the same.
    """
    summary = {field: bundle.get(field) for field in _SIGNED}
    summary["first_seq"] = records.first_seq
    summary["last_seq"] = records.last["seq"] if records.last else None
    without = {field: value for field, value in summary.items() if value is not None}
    keys.check_signature(key, DOMAIN, (canonical(without), canonical(summary)), bundle["signature"])
