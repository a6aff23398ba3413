"""The run that decorated functions ask in: that of the nearest `with run:` around them, each task its own."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .client import Run

_current: "ContextVar[Optional[Run]]" = ContextVar("reversi_sdk_run", default=None)


def enter(run: "Run") -> "Token[Any]":
    return _current.set(run)


def leave(token: "Token[Any]") -> None:
    _current.reset(token)


def current_run() -> "Run":
    """Raises where no run is open: a function outside a run does not run."""
    run = _current.get()
    if run is None:
        raise RuntimeError("no run is open here: enter one with `with client.run(...):`, or give run=")
    return run
