"""A decorator that puts a function under governance without changing how it is called.

    @governed("payments.refund", reason="asked for by the customer")
    def refund(charge: str, amount: int) -> dict: ...

    with client.run(permissions=["payments.refund"]):
        refund("ch_1", amount=40)

Functions and coroutine functions alike. What is asked for is the call as it is made: every argument by its name,
defaults filled in. Where no run is open the function does not run.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
from typing import Any, Callable, Collection, Dict, Optional, TypeVar, Union, cast

from .aio import AsyncRun
from .client import Blocked, Run
from .current import current_run
from .reading import Read
from .transport import encode_body

F = TypeVar("F", bound=Callable[..., Any])
Reason = Union[str, Callable[[Dict[str, Any]], str], None]


def governed(
    tool: Optional[str] = None,
    *,
    reason: Reason = None,
    run: Union[Run, AsyncRun, None] = None,
    without: Collection[str] = (),
    wait_for_approval: float = 0,
    answer_blocked: bool = False,
    read: Optional[Read] = None,
) -> Callable[[F], F]:
    """`tool` is the function's own name unless it is given; `reason` a text, or a function of the arguments.

    `without` names parameters that are no part of the call (a context, a session); `self` and `cls` never are.
    With `answer_blocked` a refusal is returned as a text that a model can act on, instead of raised as Blocked.
    `read` is that of `run.call`.
    """

    def decorate(fn: F) -> F:
        asked = _Asked(fn, tool or fn.__name__, reason, run, frozenset(without))
        how = {"wait_for_approval": wait_for_approval, "read": read}
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def governed_async(*args: Any, **kwargs: Any) -> Any:
                try:
                    return await AsyncRun(asked.run()).call(*asked.call(args, kwargs), **how)
                except Blocked as refusal:
                    if not answer_blocked:
                        raise
                    return blocked_text(refusal)

            return cast(F, governed_async)

        @functools.wraps(fn)
        def governed_sync(*args: Any, **kwargs: Any) -> Any:
            try:
                return asked.run().call(*asked.call(args, kwargs), **how)
            except Blocked as refusal:
                if not answer_blocked:
                    raise
                return blocked_text(refusal)

        return cast(F, governed_sync)

    return decorate


class _Asked:
    """How a decorated function's calls become intents."""

    def __init__(
        self,
        fn: Callable[..., Any],
        tool: str,
        reason: Reason,
        run: Union[Run, AsyncRun, None],
        without: "frozenset[str]",
    ) -> None:
        self._fn = fn
        self._tool = tool
        self._reason = reason
        self._given = run.sync if isinstance(run, AsyncRun) else run
        self._without = without | {"self", "cls"}
        self._signature = inspect.signature(fn)

    def run(self) -> Run:
        return self._given if self._given is not None else current_run()

    def call(self, args: Any, kwargs: Any) -> Any:
        named = self._named(args, kwargs)
        return self._tool, named, reason_for(self._reason, self._tool, named), lambda: self._fn(*args, **kwargs)

    def _named(self, args: Any, kwargs: Any) -> Dict[str, Any]:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        named: Dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name in self._without:
                continue
            if self._signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            else:
                named[name] = value
        return plain_args(named)


def reason_for(reason: Reason, tool: str, args: Dict[str, Any]) -> str:
    if callable(reason):
        return reason(args)
    return reason or f"the agent calls {tool}"


def plain_args(args: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments as JSON. What is judged has to be what is called, so nothing is left out in silence."""
    plain = {name: _plain(value) for name, value in args.items()}
    for name, value in plain.items():
        try:
            encode_body(value)
        except (TypeError, ValueError, RecursionError):
            raise TypeError(f"argument {name} is no JSON, so that nobody could judge it; leave it out with without=") from None
    return plain


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def blocked_text(refusal: Blocked) -> str:
    """A refusal as an answer that a model can act on."""
    parts = [f"{refusal.tool} was not carried out: {'; '.join(refusal.reasons) or 'no reason given'}."]
    if refusal.hints:
        parts.append(f"Instead: {'; '.join(refusal.hints)}.")
    if refusal.offer is not None:
        args = json.dumps(refusal.offer.get("args"), ensure_ascii=False)
        parts.append(f"Approved in its place, once: {args}; call it with exactly these arguments.")
    if refusal.waits:
        parts.append(f"Request {refusal.approval_id} waits for a person; call again with the same arguments after that.")
    return " ".join(parts)
