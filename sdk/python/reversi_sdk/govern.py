"""What the wrappers of tools have in common: a tool's call is asked for first, and a refusal is an answer to the model."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from .aio import AsyncRun
from .client import Blocked, Run
from .decorate import Reason, blocked_text, plain_args, reason_for

Refused = Callable[[str], Any]


class Governor:
    """`names` gives the manifest's name of a tool where that is another: `{"refund": "payments.refund"}`."""

    def __init__(
        self,
        run: Union[Run, AsyncRun],
        names: Optional[Dict[str, str]],
        reason: Reason,
        wait_for_approval: float,
    ) -> None:
        self.run = run.sync if isinstance(run, AsyncRun) else run
        self.reason = reason
        self.wait_for_approval = wait_for_approval
        self._names = names or {}

    def name_of(self, tool: str) -> str:
        return self._names.get(tool, tool)

    def call(self, tool: str, args: Dict[str, Any], fn: Callable[[], Any], refused: Refused = str) -> Any:
        """`refused` makes the text of a refusal what the framework takes for an answer."""
        try:
            return self.run.call(*self._asked(tool, args), fn, wait_for_approval=self.wait_for_approval)
        except Blocked as refusal:
            return refused(blocked_text(refusal))

    async def acall(self, tool: str, args: Dict[str, Any], fn: Callable[[], Any], refused: Refused = str) -> Any:
        try:
            run = AsyncRun(self.run)
            return await run.call(*self._asked(tool, args), fn, wait_for_approval=self.wait_for_approval)
        except Blocked as refusal:
            return refused(blocked_text(refusal))

    def _asked(self, tool: str, args: Dict[str, Any]) -> Any:
        name, plain = self.name_of(tool), plain_args(args)
        return name, plain, reason_for(self.reason, name, plain)


class Govern:
    """A framework's `govern(run, tools, ...)`; `wrap` makes one of its tools a governed one."""

    def __init__(self, wrap: Callable[[Governor, Any], Any]) -> None:
        self._wrap = wrap

    def __call__(
        self,
        run: Union[Run, AsyncRun],
        tools: Sequence[Any],
        *,
        names: Optional[Dict[str, str]] = None,
        reason: Reason = None,
        wait_for_approval: float = 0,
    ) -> List[Any]:
        """The tools, each behind the service. Tools with another name in their manifest are given it by `names`."""
        governor = Governor(run, names, reason, wait_for_approval)
        return [self._wrap(governor, tool) for tool in tools]
