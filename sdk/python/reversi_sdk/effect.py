"""The read that a manifest's `effect_check` asks for after a success: whether the call did what it said."""

from __future__ import annotations

import inspect
import re
import time
from typing import Any, Awaitable, Callable, Dict, Generator, List, Optional, Set, Tuple

from .errors import Invalid
from .exact import exact_size
from .reading import MAX_READ_BYTES, Read

_START = re.compile(r"^\$(args|result|before)(?=$|[.\[])")
_SEGMENT = re.compile(r'\.([^.\[\]"$\s]+)|\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]')
_MISSING = object()

# Each item is a read to make, or a pause in seconds without one. What is sent back is whether it could be read, and what.
Reads = Generator[Tuple[float, Optional[Dict[str, Any]]], Optional[Tuple[bool, Any]], Dict[str, Any]]


def reads(asked: Optional[Dict[str, Any]], values: Dict[str, Any]) -> Reads:
    """Asks for one read after the other until the effect is there; returns what the outcome reports."""
    if asked is None:
        return {}
    args, expect = _filled(asked.get("args"), values), _expected(asked.get("expect"), values)
    if args is _MISSING or expect is _MISSING:
        return {}
    seen: Dict[str, Any] = {}
    pause = float(asked.get("backoff_ms") or 0) / 1000
    for left in range(int(asked.get("retries") or 0), -1, -1):
        sent = yield 0.0, {"tool": asked.get("tool"), "arguments": args}
        could, answer = sent or (False, None)
        if could and _told(answer):
            seen = {"observed": answer}
            if _matches(expect, answer):
                return seen
        if left > 0:
            yield pause, None
            pause *= 2
    return seen


def observe(asked: Optional[Dict[str, Any]], values: Dict[str, Any], read: Optional[Read]) -> Dict[str, Any]:
    """What the read shows, as `observed`; empty where nothing was asked or it could not be read."""
    if read is None:
        return {}
    steps = reads(asked, values)
    answer: Optional[Tuple[bool, Any]] = None
    try:
        while True:
            pause, request = steps.send(answer)
            answer = (False, None)
            if request is None:
                time.sleep(pause)
                continue
            try:
                answer = (True, read(request))
            except Exception:  # a read that fails is no answer
                pass
    except StopIteration as done:
        return dict(done.value)


async def observe_later(
    asked: Optional[Dict[str, Any]],
    values: Dict[str, Any],
    read: Optional[Read],
    sleep: Callable[[float], Awaitable[None]],
) -> Dict[str, Any]:
    """The same where `read` may have to be awaited."""
    if read is None:
        return {}
    steps = reads(asked, values)
    answer: Optional[Tuple[bool, Any]] = None
    try:
        while True:
            pause, request = steps.send(answer)
            answer = (False, None)
            if request is None:
                await sleep(pause)
                continue
            try:
                found = read(request)
                answer = (True, await found if inspect.isawaitable(found) else found)
            except Exception:  # a read that fails is no answer
                pass
    except StopIteration as done:
        return dict(done.value)


def _told(answer: Any) -> bool:
    try:
        return exact_size(answer) <= MAX_READ_BYTES
    except (Invalid, TypeError, ValueError, RecursionError):
        return False


def _filled(template: Any, values: Dict[str, Any]) -> Any:
    if isinstance(template, str):
        return _at(template, values)
    if isinstance(template, list):
        filled = [_filled(item, values) for item in template]
        return _MISSING if any(item is _MISSING for item in filled) else filled
    if isinstance(template, dict):
        named = {name: _filled(item, values) for name, item in template.items()}
        return _MISSING if any(item is _MISSING for item in named.values()) else named
    return template


def _expected(template: Any, values: Dict[str, Any]) -> Any:
    """Leaves out members that name an argument which the call does not have; nothing is expected without any."""
    named = [path for path in _paths(template) if path.startswith("$args")]
    given = {path for path in named if _at(path, values) is not _MISSING}
    if named and not given:
        return _MISSING
    return _filled(_without(template, set(named) - given), values)


def _paths(template: Any) -> List[str]:
    if isinstance(template, str):
        return [template] if _START.match(template) else []
    inner = template.values() if isinstance(template, dict) else template if isinstance(template, list) else []
    return [path for item in inner for path in _paths(item)]


def _without(template: Any, absent: Set[str]) -> Any:
    if not isinstance(template, dict):
        return template
    kept = {}
    for name, item in template.items():
        inner = _without(item, absent)
        if isinstance(item, str) and item in absent or item and inner == {}:
            continue
        kept[name] = inner
    return kept


def _at(text: str, values: Dict[str, Any]) -> Any:
    start = _START.match(text)
    if start is None:
        return text
    here, at = values.get(start.group(1), _MISSING), start.end()
    while at < len(text):
        part = _SEGMENT.match(text, at)
        if part is None:
            return text
        name, index, quoted = part.groups()
        key = name if name is not None else quoted
        if isinstance(here, dict) and (key is not None or index is not None):
            here = here.get(key if key is not None else index, _MISSING)
        elif isinstance(here, list) and index is not None and int(index) < len(here):
            here = here[int(index)]
        else:
            return _MISSING
        at = part.end()
    return here


def _matches(expect: Any, observed: Any) -> bool:
    if isinstance(expect, dict):
        return isinstance(observed, dict) and all(
            name in observed and _matches(item, observed[name]) for name, item in expect.items()
        )
    if isinstance(expect, list):
        return (
            isinstance(observed, list)
            and len(expect) == len(observed)
            and all(_equal(a, b) for a, b in zip(expect, observed))
        )
    return _equal(expect, observed)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[name], b[name]) for name in a)
    return bool(a == b)
