"""What a manifest's `before` asks for, read before a call and after it, so that the undo restores what was there.

Whoever gives no `read` makes the call without: the service takes that, and counts the step as one that cannot be undone.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Optional

from .errors import Invalid
from .exact import exact_size, told

# What is there after the call is told in the same request, and a request is 1 MB at most.
MAX_READ_BYTES = 450_000

Read = Callable[[Dict[str, Any]], Any]


class ReadFailed(Exception):
    """What is there before the call could not be read, so the tool did not run; the step is recorded as `failed`."""

    def report(self) -> Dict[str, Any]:
        return {"status": "failed", "error": told(str(self))}

    def instead_of(self, error: BaseException) -> BaseException:
        """An interrupt or a cancellation stays what it is."""
        return self if isinstance(error, Exception) else error


class Reading:
    """The reads of one call. `seen` is what they showed, as the outcome tells it."""

    def __init__(self, asked: Optional[Dict[str, Any]], read: Optional[Read]) -> None:
        self.wanted = asked is not None and read is not None
        self.seen: Dict[str, Any] = {}
        self._asked = asked or {}
        self._read = read

    def now(self) -> Any:
        """One read; what it answers has to be awaited where `read` is asynchronous.

        A list of arguments is one read for each, answered as a list; one that fails is `{"error": text}`.
        """
        sets = self._asked.get("arguments")
        if not isinstance(sets, list):
            return self._one(sets)
        answers = [_tried(lambda: self._one(args)) for args in sets]
        if any(inspect.isawaitable(answer) for answer in answers):
            return _all_awaited(answers)
        return _some_answered(answers)

    def _one(self, arguments: Any) -> Any:
        assert self._read is not None
        return self._read({"tool": self._asked.get("tool"), "arguments": arguments})

    def was(self, answer: Any) -> None:
        problem = _problem(answer, self._asked.get("max_bytes"))
        if problem is not None:
            raise ValueError(problem)
        self.seen["before"] = answer

    def is_now(self, answer: Any) -> None:
        """What cannot be told is left out: an undo then meets it as changed."""
        if _problem(answer, None) is None:
            self.seen["after"] = answer

    def failed(self, error: BaseException) -> Optional[ReadFailed]:
        """None where the manifest lets the call pass; the step can then not be undone."""
        if isinstance(error, Exception) and self._asked.get("required") is False:
            self.wanted = False
            return None
        return ReadFailed(f"before: {self._asked.get('tool')} could not be read: {error or type(error).__name__}")


def _tried(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception as error:
        return error


async def _all_awaited(answers: List[Any]) -> List[Any]:
    seen: List[Any] = []
    for answer in answers:
        try:
            seen.append(await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:
            seen.append(error)
    return _some_answered(seen)


def _some_answered(answers: List[Any]) -> List[Any]:
    failures = [answer for answer in answers if isinstance(answer, Exception)]
    if len(failures) == len(answers):
        raise failures[0]
    return [{"error": str(answer)} if isinstance(answer, Exception) else answer for answer in answers]


def _problem(answer: Any, max_bytes: Any) -> Optional[str]:
    try:
        size = exact_size(answer)
    except Invalid as error:
        return f"the answer cannot be kept exactly: {error}"
    except (TypeError, ValueError, RecursionError):
        return "the answer is not JSON"
    most = min(max_bytes, MAX_READ_BYTES) if isinstance(max_bytes, int) else MAX_READ_BYTES
    return f"the answer has {size} bytes, more than {most}" if size > most else None
