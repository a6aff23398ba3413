"""Public keys and signatures as text: PEM files, key ids, and who is trusted.

A key id is a short name for a key, never a proof of it: wherever a trusted key is given, the signature is
checked with that whole key, and a key that came with the evidence must be equal to it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any, Dict, NamedTuple, Optional, Sequence

from . import ed25519
from .errors import InputError, Invalid, show
from .files import read_small

# An Ed25519 SubjectPublicKeyInfo is these twelve bytes and then the key (RFC 8410); there is no other form.
_SPKI_PREFIX = bytes.fromhex("302a300506032b6570032100")
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----\r?\n([A-Za-z0-9+/=\r\n]+?)\r?\n-----END PUBLIC KEY-----\s*")
_KEY_ID = re.compile(r"[0-9a-f]{16}")


class PublicKey(NamedTuple):
    raw: bytes
    key_id: str


def strict_base64(text: str) -> Optional[bytes]:
    """Decoded bytes, where the text is the one canonical spelling of them; else None."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def parse_public_key(text: str) -> PublicKey:
    """A PEM public key as `svc keygen` writes it. Raises ValueError."""
    if "PRIVATE KEY" in text:
        raise ValueError("is a private key; give the .pub file, and keep the private one private")
    match = _PEM.fullmatch(text)
    if match is None:
        raise ValueError("is not a PEM public key")
    der = strict_base64(re.sub(r"[\r\n]", "", match.group(1)))
    if der is None or len(der) < 16:
        raise ValueError("is a damaged PEM file")
    if len(der) != 44 or not der.startswith(_SPKI_PREFIX):
        raise ValueError("is not an Ed25519 public key")
    raw = der[len(_SPKI_PREFIX) :]
    if ed25519.usable_key(raw) is None:
        raise ValueError("is not a usable Ed25519 key")
    return PublicKey(raw, hashlib.sha256(raw).hexdigest()[:16])


def load_trusted(paths: Sequence[str]) -> Dict[str, PublicKey]:
    """The keys the person who runs this check trusts, by key id."""
    trusted = {}
    for path in paths:
        try:
            key = parse_public_key(read_small(path).decode("ascii"))
        except UnicodeDecodeError:
            raise InputError(f"{path} is not a PEM public key") from None
        except ValueError as error:
            raise InputError(f"{path} {error}") from None
        trusted[key.key_id] = key
    return trusted


def is_key_id(value: Any) -> bool:
    return isinstance(value, str) and _KEY_ID.fullmatch(value) is not None


def parse_signature(value: Any) -> bytes:
    """64 bytes in base64: the one spelling that every verifier takes."""
    data = strict_base64(value) if isinstance(value, str) else None
    if data is not None and len(data) == 64:
        return data
    raise Invalid("its signature is not 64 bytes of base64")


def choose_key(key_id: Any, embedded: Any, trusted: Dict[str, PublicKey]) -> Optional[PublicKey]:
    """The key to check a signature with: the trusted one of that id, else the one that came along.

    None means that there is no key to check with: none was trusted and none came along.
    """
    if not is_key_id(key_id):
        raise Invalid("its key_id is not 16 lowercase hex digits")
    came_along = None
    if embedded is not None:
        try:
            came_along = parse_public_key(embedded if isinstance(embedded, str) else "")
        except ValueError as error:
            raise Invalid(f"its public_key {error}") from None
        if came_along.key_id != key_id:
            raise Invalid("its key_id does not belong to its public_key")
    if not trusted:
        return came_along
    key = trusted.get(key_id)
    if key is None:
        raise Invalid(f"it is signed with key {show(key_id)}, which is not the trusted key")
    if came_along is not None and came_along.raw != key.raw:
        raise Invalid("its public_key is not the trusted key of that id")
    return key


def check_signature(key: PublicKey, domain: bytes, spellings: Sequence[bytes], signature: Any) -> None:
    """Whether one of the equal spellings of a summary was signed with the key.

    The domain line keeps a signature over one kind of evidence from passing for another kind.
    """
    signed = parse_signature(signature)
    if not any(ed25519.verify(key.raw, domain + summary, signed) for summary in dict.fromkeys(spellings)):
        raise Invalid("the signature does not match: what was signed is not what is here")
