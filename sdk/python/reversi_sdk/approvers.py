"""The approvers file: who may approve which tools, and their passkeys. Nothing fetches it from a server.

A client that has one verifies the signatures of an approval itself before it makes a call that the file names, and
trusts no answer of the service.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
import time
import warnings
from decimal import Decimal
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from .errors import InputError, Invalid
from .files import open_input
from .signatures import assertion_problem, is_assertion, is_payload, value_hash
from .strictjson import VALUES, decode_utf8, is_integer, parse, utf16
from .transport import encode_body

_MAX_BYTES = 16 * 1024 * 1024
_ALGORITHMS = ("ES256", "EdDSA", "RS256")
_ID = re.compile(r"[A-Za-z0-9_-]+")
_PUBLIC_KEY = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_MAX_NAME, _MAX_NAMES, _MAX_ORIGINS, _MAX_QUORUM = 256, 1_000, 100, 100
_MAX_GLOB, _MAX_NESTING, _MAX_ALTERNATIVES = 2_000, 10, 1_000
_CALL_KINDS = ("approval", "offer", "pre_approval", "break_glass", "plan")
_TOLERANCE_MS = 60_000
_SWEEP_S = 3_600.0
_KEEP_MS = 120_000

Approvers = Dict[str, Any]


def load_approvers(path: str) -> Approvers:
    """An approvers file. Raises InputError if it is not one."""
    with open_input(path) as source:
        data = source.read(_MAX_BYTES)
    try:
        value = parse(decode_utf8(data))
        _check(value)
    except (Invalid, KeyError, TypeError) as error:
        raise InputError(f"{path} is not an approvers file ({error})") from None
    return dict(value)


def _demand(good: bool, what: str) -> None:
    if not good:
        raise Invalid(f"{what} is not valid")


def _check(value: Any) -> None:
    _members(value, ("version", "ledger", "rp_id", "origins", "approvers", "require"), "the file")
    _demand(is_integer(value["version"]) and value["version"] == 1, "version")
    _demand(_is_text(value["ledger"]) and _is_text(value["rp_id"]), "ledger or rp_id")
    _demand(_are_texts(value["origins"], _MAX_ORIGINS) and value["origins"] != [], "origins")
    _demand(isinstance(value["approvers"], list) and isinstance(value["require"], list), "approvers or require")
    ids: Set[str] = set()
    for person in value["approvers"]:
        _members(person, ("name", "groups", "keys"), "approvers")
        good = _is_name(person["name"]) and _are_texts(person["groups"], _MAX_NAMES, _MAX_NAME)
        _demand(good and isinstance(person["keys"], list), "approvers")
        for key in person["keys"]:
            _check_key(key)
            _demand(key["id"] not in ids, "an id of two keys")
            ids.add(key["id"])
    for one in value["require"]:
        _members(one, ("tool", "groups", "quorum"), "require")
        _demand(_are_texts(one["groups"], _MAX_NAMES, _MAX_NAME), "require")
        _demand(is_integer(one["quorum"]) and 1 <= one["quorum"] <= _MAX_QUORUM, "require")
        _demand(_is_text(one["tool"]) and glob_pattern(one["tool"]) is not None, "require.tool")


def _check_key(key: Any) -> None:
    _members(key, ("id", "public_key", "alg", "revoked"), "keys")
    good = all(isinstance(key[name], str) for name in ("id", "public_key")) and key["alg"] in _ALGORITHMS
    _demand(good and isinstance(key["revoked"], bool), "keys")
    _demand(_ID.fullmatch(key["id"]) is not None, "keys.id")
    _demand(_PUBLIC_KEY.fullmatch(key["public_key"]) is not None, "keys.public_key")


def _members(value: Any, names: Tuple[str, ...], what: str) -> None:
    _demand(isinstance(value, dict) and set(value) == set(names), what)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_name(value: Any) -> bool:
    return _is_text(value) and len(value) <= _MAX_NAME


def _are_texts(values: Any, most: int, longest: Optional[int] = None) -> bool:
    good = isinstance(values, list) and len(values) <= most and all(map(_is_text, values))
    return good and (longest is None or all(len(value) <= longest for value in values))


def glob_pattern(source: str) -> "Optional[re.Pattern[str]]":
    """`*`, `?` and `{a,b}` as the service reads them; None if the text is not a glob."""
    if len(source) > _MAX_GLOB:
        return None
    pattern, counts = "", [[0, 1]]
    for character in _units(source):
        if character == "{":
            pattern += "(?:"
            counts.append([0, 1])
        elif character == "," and len(counts) > 1:
            pattern += "|"
            counts[-1] = [sum(counts[-1]), 1]
        elif character == "}":
            if len(counts) == 1:
                return None
            pattern += ")"
            alternatives = sum(counts.pop())
            counts[-1][1] *= alternatives
        else:
            pattern += {"*": ".*", "?": "."}.get(character) or re.escape(character)
        if len(counts) > _MAX_NESTING + 1 or counts[-1][1] > _MAX_ALTERNATIVES:
            return None
    return re.compile(pattern, re.DOTALL) if len(counts) == 1 else None


def _units(text: str) -> str:
    """A character for each UTF-16 unit, which is what `?` matches."""
    data = utf16(text)
    return "".join(chr(data[i] << 8 | data[i + 1]) for i in range(0, len(data), 2))


def _requirements(doc: Approvers, tool: str) -> List[Dict[str, Any]]:
    found = []
    for one in doc["require"]:
        pattern = glob_pattern(one["tool"])
        if pattern is None or pattern.fullmatch(_units(tool)):
            found.append(one)
    return found


class Call(NamedTuple):
    """The call that is about to be made, with exactly its arguments."""

    run_id: str
    tool: str
    args: Any


class Use(NamedTuple):
    """An approval that counts: its id, and until when the id must not be used again."""

    id: str
    expires_ms: int


class Refusal(Exception):
    """Why the signatures do not allow the call."""


def judge_signed_call(doc: Approvers, call: Call, answer: Any, now_ms: float) -> Optional[Use]:
    """The approval that allows the call; None if the file does not name its tool. `answer` is not trusted."""
    required = _requirements(doc, call.tool)
    if not required:
        return None
    salt, signatures = _evidence(answer)
    args_hash = _keyed_hash(salt, call.args)
    counted: Dict[str, Tuple[Set[str], int]] = {}
    problems: List[str] = []
    for one in signatures:
        found = _read_signature(doc, call, args_hash, one, now_ms)
        if isinstance(found, str):
            problems += [] if found in problems else [found]
            continue
        identity, name, expires_ms = found
        people, _ = counted.get(identity, (set(), 0))
        counted[identity] = (people | {name}, expires_ms)
    for identity, (people, expires_ms) in counted.items():
        if all(_is_met(doc, one, people) for one in required):
            return Use(identity, expires_ms)
    raise Refusal("; ".join(problems) or "too few of its approvers signed it")


def _evidence(answer: Any) -> Tuple[str, List[Dict[str, Any]]]:
    good = isinstance(answer, dict) and isinstance(answer.get("salt"), str)
    found = answer.get("signatures") if good else None
    signatures = [_readable(one) for one in found] if isinstance(found, list) else [None]
    if any(one is None for one in signatures):
        raise Refusal("the server has no valid signatures for it")
    return answer["salt"], [one for one in signatures if one is not None]


def _readable(one: Any) -> Optional[Dict[str, Any]]:
    """The signature with the members that a verification needs; None if one is missing."""
    if not isinstance(one, dict) or not is_payload(one.get("payload")):
        return None
    assertion = _picked(one.get("assertion"), ("id", "rawId", "type", "response"))
    assertion["response"] = _picked(
        assertion.get("response"), ("clientDataJSON", "authenticatorData", "signature")
    )
    return {**one, "assertion": assertion} if is_assertion(assertion) else None


def _picked(value: Any, names: Tuple[str, ...]) -> Dict[str, Any]:
    return {name: value[name] for name in names if name in value} if isinstance(value, dict) else {}


def _is_met(doc: Approvers, required: Dict[str, Any], people: Set[str]) -> bool:
    groups = required["groups"]
    counting = {
        person["name"]
        for person in doc["approvers"]
        if person["name"] in people and (not groups or any(group in groups for group in person["groups"]))
    }
    return len(counting) >= required["quorum"]


def _read_signature(
    doc: Approvers, call: Call, args_hash: str, one: Dict[str, Any], now_ms: float
) -> Union[str, Tuple[str, str, int]]:
    """What the signature approves: id, person and expiry. Or why it does not count."""
    payload, assertion = one["payload"], one["assertion"]
    if payload["kind"] not in _CALL_KINDS:
        return "a signature is for another kind of decision"
    if payload["decision"] not in ("approve", "offer"):
        return "a signature does not approve"
    if payload.get("ledger") != doc["ledger"] or payload.get("run_id") != call.run_id:
        return "a signature is for another ledger or run"
    expires_ms = payload.get("expires_ms")
    if expires_ms is None or expires_ms <= now_ms - _TOLERANCE_MS:
        return "a signature has expired"
    known = [(person, key) for person in doc["approvers"] for key in person["keys"] if key["id"] == assertion["id"]]
    if not known or known[0][1]["revoked"] or known[0][0]["name"] != payload["by"]:
        return "a signer is not in the approvers file"
    person, key = known[0]
    place = _place_in_plan(call, args_hash, one)
    if place is None:
        return "a signature is for other arguments or another tool"
    signed = {"payload": payload, "assertion": assertion, "public_key": key["public_key"], "alg": key["alg"]}
    problem = assertion_problem(signed, doc)
    if problem is not None:
        return f"a signature does not hold: {problem}"
    return f"{payload.get('id', payload['nonce'])}{place}", person["name"], expires_ms


def _place_in_plan(call: Call, args_hash: str, one: Dict[str, Any]) -> Optional[str]:
    """Empty for a signature over the call itself, the position in a signed plan, or None."""

    def is_this(tool: Any, given_hash: Any) -> bool:
        return tool == call.tool and given_hash == args_hash

    payload, plan = one["payload"], one.get("subject")
    if payload["kind"] != "plan":
        return "" if is_this(payload.get("tool"), payload.get("args_hash")) else None
    calls = plan.get("calls") if isinstance(plan, dict) else None
    if not isinstance(calls, list) or not all(isinstance(planned, dict) for planned in calls):
        return None
    if value_hash(plan) != payload.get("subject_hash"):
        return None
    for at, planned in enumerate(calls):
        if is_this(planned.get("tool"), planned.get("args_hash")):
            return f"#{at}"
    return None


def _keyed_hash(salt: str, args: Any) -> str:
    """The service's hash of the arguments, as they are sent."""
    try:
        sent = parse(encode_body(args).decode("utf-8"), VALUES)
        text = _canonical(sent).encode("utf-8")
    except (Invalid, TypeError, ValueError, RecursionError) as error:
        raise Refusal(f"its arguments have no exact JSON form: {error}") from None
    return f"sha256:{hmac.new(salt.encode('utf-8', 'surrogatepass'), text, hashlib.sha256).hexdigest()}"


def _canonical(value: Any) -> str:
    """RFC 8785, with numbers as JavaScript writes them."""
    if isinstance(value, dict):
        members = (f"{_canonical(key)}:{_canonical(value[key])}" for key in sorted(value, key=utf16))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return number_text(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def number_text(value: float) -> str:
    """A number as JavaScript writes it."""
    if value == 0:
        return "0"
    sign, digits_of, exponent = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, digits_of))
    point = len(digits) + int(exponent)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{fraction}e{point - 1:+d}"
    return f"-{text}" if sign else text


def _require_own(path: str, found: os.stat_result) -> None:
    """Refuses what another user of this machine could write, or a directory in which they could replace the file."""
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
        raise InputError(f"{path} can be written by others; use mode 0644 or stricter, 0755 for its directory")
    if found.st_uid not in (0, os.getuid()):
        raise InputError(f"{path} can be written by others; it must be yours or root's")


class ApproversGuard:
    """Guards calls with an approvers file: reads it again when it changes, and lets each approval be used once.

    Used ids are files of the directory `<file>.used`, so that processes and restarts share them, also with the
    TypeScript library.
    """

    def __init__(self, path: str, now_ms: Callable[[], float] = lambda: time.time() * 1_000) -> None:
        self._path = path
        self._used = f"{path}.used"
        self._now_ms = now_ms
        self._swept = 0.0
        self._stamp = self._stamp_now()
        self._doc = self._load()
        os.makedirs(self._used, mode=0o700, exist_ok=True)

    def objection(self, call: Call, evidence: Callable[[], Any]) -> Optional[str]:
        """Why the call must not be made; None if it may. `evidence` asks the service for the signatures."""
        self._refresh()
        if not _requirements(self._doc, call.tool):
            return None
        try:
            answer = evidence()
        except Exception:
            answer = None
        try:
            use = judge_signed_call(self._doc, call, answer, self._now_ms())
            if use is not None and not self._use(use):
                raise Refusal("its approval was used before")
        except Refusal as why:
            return f"{call.tool} was not called: the approvers file requires signatures, and {why}"
        return None

    def _refresh(self) -> None:
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._doc = self._load()
        except InputError as error:
            warnings.warn(f"the approvers file is not valid; the old one stays active: {error}", stacklevel=2)

    def _load(self) -> Approvers:
        real = os.path.realpath(self._path)
        for path in (real, os.path.dirname(real)):
            try:
                found = os.stat(path)
            except OSError as error:
                raise InputError(f"{self._path} cannot be read: {error.strerror}") from None
            if os.name == "posix":
                _require_own(path, found)
        return load_approvers(self._path)

    def _stamp_now(self) -> Optional[Tuple[int, ...]]:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)

    def _use(self, use: Use) -> bool:
        """False if the id was used before."""
        self._sweep()
        path = os.path.join(self._used, hashlib.sha256(use.id.encode("utf-8")).hexdigest())
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(str(use.expires_ms))
            file.flush()
            os.fsync(file.fileno())
        return True

    def _sweep(self) -> None:
        if time.monotonic() < self._swept:
            return
        self._swept = time.monotonic() + _SWEEP_S
        for name in os.listdir(self._used):
            path = os.path.join(self._used, name)
            try:
                with open(path, encoding="ascii") as file:
                    end = file.read(32).split(" ")[0]
                if end.isdecimal() and int(end) + _KEEP_MS < self._now_ms():
                    os.remove(path)
            except (OSError, ValueError):
                continue
