"""The two ways a check can end badly, kept apart.

`Invalid` is a finding about the evidence: it was read and something in it is wrong.
`InputError` is a finding about the request: there was nothing that could be read as evidence.
Both end a command with exit code 1 and one line; neither is ever a stack trace.
"""

from __future__ import annotations

from typing import Optional


class InputError(Exception):
    """A file could not be opened or is not the kind of thing that was asked for."""


class Invalid(Exception):
    """The evidence does not hold. `where` names the first bad place, `problem` says why."""

    def __init__(self, problem: str, where: Optional[str] = None) -> None:
        super().__init__(problem if where is None else f"{where}: {problem}")
        self.problem = problem
        self.where = where

    def at(self, where: str) -> "Invalid":
        """The same finding with its place, for a caller that knows where it was reading."""
        return self if self.where is not None else Invalid(self.problem, where)


def show(value: object, limit: int = 80) -> str:
    """Text from a file, made safe for a terminal: escapes and control characters are spelled out."""
    text = value if isinstance(value, str) else repr(value)
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."
