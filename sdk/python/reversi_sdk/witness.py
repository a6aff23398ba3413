"""Checkpoints that a bundle carries, and the witnesses who cosigned them (C2SP signed-note, tlog-checkpoint,
tlog-cosignature).

A cosignature covers the records up to its checkpoint and none behind it, so that whoever demands witnesses
is shown nothing that enough of them have not seen.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import ed25519, merkle
from .errors import InputError, Invalid
from .files import read_small
from .keys import PublicKey, parse_public_key, strict_base64
from .record import is_hash

NOTE, COSIGNATURE = 1, 4
_MAX_NOTE, _MAX_SIGNATURES, _MAX_CHECKPOINTS = 65536, 100, 32
_NAME = re.compile("[^ \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000+]+")
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_SIZE = re.compile(r"(?:0|[1-9][0-9]{0,15})")
_VKEY = re.compile(r"([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)")


class WitnessKey(NamedTuple):
    """Whose cosignatures count. Without a name the key is known by its bytes alone, under any name."""

    name: Optional[str]
    raw: bytes


class Seen(NamedTuple):
    """The most that one witness cosigned."""

    name: str
    size: int
    seconds: int


class Note(NamedTuple):
    body: str
    signatures: List[Tuple[str, bytes, bytes]]


def load_witnesses(given: Sequence[str]) -> List[WitnessKey]:
    """Verifier keys, or files that hold one or a PEM public key. Each key counts once."""
    found: Dict[bytes, WitnessKey] = {}
    for one in given:
        text = one if _VKEY.fullmatch(one.strip()) else _text_of(one)
        try:
            key = _parse_vkey(text.strip()) if _VKEY.fullmatch(text.strip()) else _nameless(text)
        except ValueError as error:
            raise InputError(f"{one} {error}") from None
        found[key.raw] = key
    return list(found.values())


def _text_of(path: str) -> str:
    try:
        return read_small(path).decode("ascii")
    except UnicodeDecodeError:
        raise InputError(f"{path} is neither a verifier key nor a public key") from None


def _nameless(text: str) -> WitnessKey:
    return WitnessKey(None, parse_public_key(text).raw)


def _parse_vkey(text: str) -> WitnessKey:
    match = _VKEY.fullmatch(text)
    data = strict_base64(match.group(3)) if match else None
    if match is None or data is None or len(data) != 33 or ed25519.usable_key(data[1:]) is None:
        raise ValueError("is no verifier key of a usable Ed25519 key")
    if data[0] != COSIGNATURE:
        raise ValueError("is not the key of a witness, which has type 4")
    if _key_id(match.group(1), COSIGNATURE, data[1:]).hex() != match.group(2):
        raise ValueError("has a key id that does not belong to its name and key")
    return WitnessKey(match.group(1), data[1:])


def _key_id(name: str, kind: int, raw: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + raw).digest()[:4]


def parse_note(text: str) -> Note:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid("a checkpoint in it is not UTF-8") from None
    # Counted as the other verifiers count, in UTF-16 units.
    if len(text.encode("utf-16-le")) // 2 > _MAX_NOTE or _CONTROL.search(text):
        raise Invalid("a checkpoint in it is too long or holds control characters")
    at = text.rfind("\n\n")
    if at < 1 or not text.endswith("\n"):
        raise Invalid("a checkpoint in it has no signatures")
    lines = text[at + 2 :].split("\n")[:-1]
    if not 0 < len(lines) <= _MAX_SIGNATURES:
        raise Invalid("a checkpoint in it has no signatures, or too many")
    return Note(text[: at + 1], [_parse_line(line) for line in lines])


def _parse_line(line: str) -> Tuple[str, bytes, bytes]:
    parts = line.split(" ")
    data = strict_base64(parts[2]) if len(parts) == 3 and parts[0] == "\u2014" else None
    if data is None or len(data) < 5 or len(parts[1].encode("utf-16-le")) > 510 or not _NAME.fullmatch(parts[1]):
        raise Invalid("a signature line of a checkpoint in it is not a dash, a name and base64")
    return parts[1], data[:4], data[4:]


class Checkpoint(NamedTuple):
    origin: str
    size: int
    root: bytes
    note: Note


def parse_checkpoint(text: str) -> Checkpoint:
    note = parse_note(text)
    lines = note.body[:-1].split("\n")
    if len(lines) < 3 or "" in lines:
        raise Invalid("a checkpoint in it is not an origin, a size and a root")
    root = strict_base64(lines[2])
    if not _SIZE.fullmatch(lines[1]) or int(lines[1]) > 2**53 - 1 or root is None or len(root) != 32:
        raise Invalid("a checkpoint in it has no tree size or no root")
    return Checkpoint(lines[0], int(lines[1]), root, note)


def check_witnesses(
    bundle: Dict[str, Any], key: PublicKey, witnesses: Sequence[WitnessKey], quorum: int
) -> Tuple[List[Seen], int]:
    """Who of the witnesses cosigned what, and how many records from the first enough of them have seen."""
    best: Dict[bytes, Seen] = {}
    for carried in bundle.get("checkpoints", []):
        checkpoint = parse_checkpoint(carried["note"])
        _check_log(checkpoint, key)
        path = [bytes.fromhex(one) for one in carried["consistency"]]
        tree = bundle["tree"]
        if not merkle.proves_consistency(checkpoint.size, tree["size"], path, checkpoint.root, bytes.fromhex(tree["root"])):
            raise Invalid(f"its tree does not continue the checkpoint of {checkpoint.size} records that it carries")
        for witness in witnesses:
            seen = _cosignature(checkpoint, witness)
            if seen is not None and (witness.raw not in best or seen.size >= best[witness.raw].size):
                best[witness.raw] = seen
    order = sorted(best.values(), key=lambda seen: -seen.size)
    if len(order) < quorum:
        raise Invalid(f"{quorum} of the {len(witnesses)} witnesses given must have cosigned it, and {len(order)} did")
    return order, order[quorum - 1].size if quorum else 0


def _check_log(checkpoint: Checkpoint, key: PublicKey) -> None:
    """The log signs under its own name; a line of its key that does not verify spoils the note."""
    body, good = checkpoint.note.body.encode(), False
    for name, key_id, data in checkpoint.note.signatures:
        if name == checkpoint.origin and key_id == _key_id(name, NOTE, key.raw):
            if len(data) != 64 or not ed25519.verify(key.raw, body, data):
                raise Invalid("a checkpoint in it is not signed with its key")
            good = True
    if not good:
        raise Invalid("a checkpoint in it is not signed with its key")


def _cosignature(checkpoint: Checkpoint, witness: WitnessKey) -> Optional[Seen]:
    newest: Optional[Seen] = None
    for name, key_id, data in checkpoint.note.signatures:
        if witness.name not in (None, name) or key_id != _key_id(name, COSIGNATURE, witness.raw):
            continue
        seconds = int.from_bytes(data[:8], "big")
        message = f"cosignature/v1\ntime {seconds}\n{checkpoint.note.body}".encode()
        if len(data) != 72 or not 0 < seconds < 2**53 or not ed25519.verify(witness.raw, message, data[8:]):
            raise Invalid("a witness's cosignature in it does not match its checkpoint")
        if newest is None or seconds > newest.seconds:
            newest = Seen(name, checkpoint.size, seconds)
    return newest


def check_carried(value: Any) -> None:
    """The shape of `checkpoints`: a list of {note, consistency}."""
    good = isinstance(value, list) and len(value) <= _MAX_CHECKPOINTS
    if not good or not all(_is_carried(one) for one in value):
        raise Invalid("its checkpoints are not a list of {note, consistency}")


def _is_carried(one: Any) -> bool:
    if not isinstance(one, dict) or set(one) != {"note", "consistency"} or not isinstance(one["note"], str):
        return False
    path = one["consistency"]
    return isinstance(path, list) and len(path) <= 64 and all(map(is_hash, path))
